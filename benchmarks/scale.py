"""A search at the paper's scale, undisturbed and killed: statements, wall time, memory, database, and one result.

    python -m benchmarks.scale -o scale.json
    python -m benchmarks.scale --kill 10 --seed 1 -o killed.json

Every search runs in a process of its own. With `--kill` a second one, into a database of its own, is ended by SIGKILL
and started again, and what it leaves is compared row by row with what the undisturbed one left.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common import FACTS, LIBRARY, SHIPPED, Beside, chosen_rules, machine, simulated, write_figures
from benchmarks.comparison import differences
from engine.report import SearchSettings
from engine.search import search
from grammar.errors import HapaxError
from kb.connection import reading_uri
from kb.store import KnowledgeBase
from llm_oracle.backends.frequency import FrequencyLikelihood
from llm_oracle.calls import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    Journal,
    JournaledCritic,
    JournaledGenerator,
    JournaledLikelihood,
)
from llm_oracle.protocols import Models
from llm_oracle.simulated import SimulatedModel

POLL_SECONDS = 0.05
EARLY_EVERY = 3
"""Every third kill comes while the process still replays what the journal knows."""
MOST_DELAY = {True: 5.0, False: 0.5}
"""Seconds between the moment that a kill waits for and the kill, at most; early ones wait for the search to begin."""

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Task:
    """What is searched. `rules`: so many of them, spread evenly; None: all. `facts`: right values of a question."""

    paths: tuple[Path, ...]
    rules: int | None = None
    world: int = 1
    facts: float = FACTS
    beam: int = 200


class Kill(NamedTuple):
    """When a search is killed: so many seconds after the journal holds so many rows; 0: after the search began."""

    rows: int
    delay: float


# --- the process that searches ---------------------------------------------------------------------------------------


class Noted(Beside):
    """The simulated model, which writes down the journal's number of each request before it answers."""

    def __init__(self, model: SimulatedModel, kb: KnowledgeBase, log: Path) -> None:
        super().__init__(Models(model, model, model, model))
        self._log = log
        journal = Journal(kb)
        self._call_ids: dict[str, Callable[..., Sequence[str]]] = {
            KNOWLEDGE: JournaledGenerator(model, journal).call_ids,
            CRITIC: JournaledCritic(model, journal).call_ids,
            LIKELIHOOD: JournaledLikelihood(model, journal).call_ids,
        }

    def _answered(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        with self._log.open("a", encoding="ascii") as stream:
            stream.writelines(f"{one}\n" for one in self._call_ids[role](asked, *more))
        return list(answer(asked, *more))


def search_once(task: Task, database: Path, log: Path, told: Path) -> None:
    """One search from beginning to end; what it took goes to the file `told`."""
    library, rules = chosen_rules(task.paths, task.rules)
    with KnowledgeBase(database) as kb:
        model = Noted(simulated(library, task.world, task.facts), kb, log)
        log.touch()
        begun = time.perf_counter()
        settings = SearchSettings(beam=task.beam)
        report = search(library, rules, kb, Models(model, model, model, FrequencyLikelihood()), settings)
        seconds = time.perf_counter() - begun
    kept = report.summary()
    figures = {
        "rules": len(report.searched),
        "statements": kept["statements"],
        "rules_with_statements": sum(any(one.statements.values()) for one in report.searched),
        "calls": {role: {"sent": one["calls"], "from_journal": one["hits"]} for role, one in kept["calls"].items()},
        "search_seconds": round(seconds, 1),
        **_used(),
    }
    told.write_text(json.dumps(figures), "utf-8")


def _used() -> dict[str, float]:
    """Processor time and peak memory of this process, and peak memory of the Prolog process that it started."""
    unit = 1 if sys.platform == "darwin" else 1024
    own, prolog = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "processor_seconds": round(own.ru_utime + own.ru_stime + prolog.ru_utime + prolog.ru_stime, 1),
        "peak_memory_mb": round(own.ru_maxrss * unit / MEGABYTE),
        "peak_prolog_memory_mb": round(prolog.ru_maxrss * unit / MEGABYTE),
    }


# --- the process that measures and kills -----------------------------------------------------------------------------


@dataclass
class Searches:
    """Searches of one task into one database, one process after the other."""

    task: Task
    folder: Path
    name: str

    @property
    def database(self) -> Path:
        return self.folder / f"{self.name}.db"

    @property
    def told(self) -> Path:
        return self.folder / f"{self.name}.json"

    def log(self, number: int) -> Path:
        """The requests of the process with this number."""
        return self.folder / f"{self.name}.{number}.log"

    def start(self, number: int) -> SpawnProcess:
        process = multiprocessing.get_context("spawn").Process(
            target=search_once, args=(self.task, self.database, self.log(number), self.told)
        )
        process.start()
        return process

    def finish(self, number: int) -> dict[str, Any]:
        """Search to the end; gives what it took."""
        begun = time.perf_counter()
        process = self.start(number)
        process.join()
        if process.exitcode != 0:
            raise HapaxError(f"The search ended with exit code {process.exitcode}. Its message stands above.")
        figures: dict[str, Any] = json.loads(self.told.read_text("utf-8"))
        return {**figures, "seconds": round(time.perf_counter() - begun, 1)}

    def rows(self) -> int:
        """How many rows the journal holds now."""
        try:
            with closing(sqlite3.connect(reading_uri(self.database), uri=True)) as connection:
                return int(connection.execute("SELECT coalesce(max(rowid), 0) FROM calls").fetchone()[0])
        except sqlite3.OperationalError:  # the process has not made the file or its tables yet
            return 0

    def killed(self, number: int, kill: Kill) -> dict[str, Any] | None:
        """Search until the kill; None: the search was over first."""
        begun = time.perf_counter()
        process = self.start(number)
        while not (self.log(number).exists() and self.rows() >= kill.rows) and process.is_alive():
            time.sleep(POLL_SECONDS)
        process.join(kill.delay)
        if process.exitcode is not None:
            return None
        process.kill()
        process.join()
        return {"rows": self.rows(), "seconds": round(time.perf_counter() - begun, 1), "early": not kill.rows}


def undisturbed(task: Task, folder: Path) -> dict[str, Any]:
    """The figures of one search."""
    searches = Searches(task, folder, "undisturbed")
    figures = searches.finish(0)
    return {
        **figures,
        "database_mb": round(searches.database.stat().st_size / MEGABYTE, 1),
        "rows": _counts(searches.database),
    }


def kills(rows: int, count: int, seed: int) -> list[Kill]:
    """So many kills at random places of a journal that will have so many rows, in order; some early."""
    draw = random.Random(seed)  # noqa: S311  # reproducible, not secret
    places = sorted(draw.randrange(1, rows) for _ in range(count))
    early = [number % EARLY_EVERY == EARLY_EVERY - 1 for number in range(count)]
    return [
        Kill(0 if soon else place, draw.uniform(0, MOST_DELAY[soon])) for place, soon in zip(places, early, strict=True)
    ]


def disturbed(task: Task, folder: Path, planned: Sequence[Kill]) -> dict[str, Any]:
    """The same search, killed and resumed: what was asked, and how the result differs from the undisturbed one's."""
    searches = Searches(task, folder, "killed")
    begun = time.perf_counter()
    done: list[dict[str, Any]] = []
    segments = 0
    sent = Counter[str]()
    twice = 0
    for kill in planned:
        known = searches.rows()
        told = searches.killed(segments, kill)
        sent += _requests(searches.log(segments))
        twice += _known_before(searches.database, searches.log(segments), known)
        segments += 1
        if told is None:
            break
        done.append(told)
    known = searches.rows()
    figures = searches.finish(segments)
    sent += _requests(searches.log(segments))
    twice += _known_before(searches.database, searches.log(segments), known)
    return {
        **figures,
        "seconds": round(time.perf_counter() - begun, 1),
        "kills": done,
        "requests_sent": sent.total(),
        "requests_lost_in_flight": sent.total() - len(sent),
        "answered_requests_sent_again": twice,
        "different_rows": differences(folder / "undisturbed.db", searches.database),
    }


def _requests(log: Path) -> Counter[str]:
    """How often each request was sent; the last line may have been cut off by the kill."""
    return Counter(line for line in log.read_text("ascii").split("\n")[:-1]) if log.exists() else Counter()


def _known_before(database: Path, log: Path, rows: int) -> int:
    """How many requests of a log the journal had answered before, among its first so many rows."""
    with closing(sqlite3.connect(reading_uri(database), uri=True)) as connection:
        found = (
            connection.execute("SELECT 1 FROM calls WHERE request_id = ? AND rowid <= ?", (one, rows)).fetchone()
            for one in _requests(log)
        )
        return sum(one is not None for one in found)


def _counts(database: Path) -> dict[str, int]:
    with KnowledgeBase(database, read_only=True) as kb:
        return kb.counts()


# --- the command -----------------------------------------------------------------------------------------------------


def measured(task: Task, folder: Path, count: int = 0, seed: int = 0) -> dict[str, Any]:
    """The figures of the undisturbed search and, with a count of kills, of the killed one."""
    first = undisturbed(task, folder)
    figures = {"task": {**asdict(task), "paths": [str(path) for path in task.paths]}, "undisturbed": first}
    if count:
        figures["killed"] = disturbed(task, folder, kills(first["rows"]["calls"], count, seed))
    return figures


def told(figures: dict[str, Any]) -> Iterator[str]:
    """The figures in lines."""
    first = figures["undisturbed"]
    statements = first["statements"]
    yield f"{first['rules']} rules, {first['rules_with_statements']} of them with statements"
    count = statements["head"] + statements["long_tail"]
    yield f"{count} statements, {statements['head']} head and {statements['long_tail']} long tail"
    yield f"{first['seconds']} s wall, {first['processor_seconds']} s processor"
    yield f"{first['peak_memory_mb']} MB memory at most, and {first['peak_prolog_memory_mb']} MB in Prolog"
    yield f"{first['database_mb']} MB database, {sum(first['rows'].values())} rows"
    yield "calls " + ", ".join(f"{role} {one['sent']}" for role, one in first["calls"].items())
    if killed := figures.get("killed"):
        yield ""
        rows = ", ".join(str(one["rows"]) for one in killed["kills"])
        yield f"killed {len(killed['kills'])} times, with {rows} rows in the journal"
        yield f"{killed['seconds']} s wall in all"
        lost = killed["requests_lost_in_flight"]
        yield f"{killed['requests_sent']} requests sent, {lost} of them lost in flight and sent again"
        yield f"{killed['answered_requests_sent_again']} answered requests were sent again"
        yield f"{sum(killed['different_rows'].values())} rows differ from the undisturbed search's"


def is_same(figures: dict[str, Any]) -> bool:
    """Whether the killed search, if there was one, ended as the undisturbed one and asked nothing twice."""
    killed = figures.get("killed")
    return killed is None or not (killed["answered_requests_sent_again"] or sum(killed["different_rows"].values()))


@contextmanager
def _folder(path: Path | None) -> Iterator[Path]:
    """The new folder with this name, or one that goes with its databases."""
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        path.mkdir(parents=True)
        yield path


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1: a search failed, or the killed one ended otherwise than the undisturbed one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="rule files and folders (default: rules and rules/library)")
    parser.add_argument("--rules", type=int, help="so many rules, spread evenly (default: all)")
    parser.add_argument("--world", type=int, default=1, help="seed of the simulated world (default: %(default)s)")
    parser.add_argument(
        "--facts", type=float, default=FACTS, help="right values of a question in it, on average (default: %(default)s)"
    )
    parser.add_argument("--beam", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="kill a second search so often")
    parser.add_argument("--seed", type=int, default=0, help="of the kills (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="a new folder in which the databases stay (default: none stays)")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args(arguments)
    paths = tuple(options.paths) or (SHIPPED, LIBRARY)
    task = Task(paths, options.rules, options.world, options.facts, options.beam)
    try:
        with _folder(options.folder) as folder:
            figures = measured(task, folder, options.kill, options.seed)
    except (HapaxError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    figures = {"benchmark": "scale", "machine": machine(), **figures}
    print("\n".join(told(figures)))
    write_figures(options.output, figures)
    return 0 if is_same(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
