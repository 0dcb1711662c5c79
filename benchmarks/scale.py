"""A search at the paper's scale, undisturbed and killed: statements, wall time, memory, database, and one result.

    python -m benchmarks.scale -o scale.json
    python -m benchmarks.scale --kill 10 --seed 1 -o killed.json

Each search runs in a process of its own. With `--kill` a second search, into another database, is repeatedly ended by
SIGKILL and resumed, and its result is compared row by row with that of the undisturbed search.
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

from benchmarks.common import FACTS, LIBRARY, SHIPPED, DelegatingModel, chosen_rules, machine, simulated, write_figures
from benchmarks.comparison import differences
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.kb.connection import reading_uri
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, LIKELIHOOD, Models
from hapax.llm_oracle.simulated import SimulatedModel

POLL_SECONDS = 0.05
EARLY_EVERY = 3
"""Each third kill comes early: while the process still replays the answers in the journal."""
MOST_DELAY = {True: 5.0, False: 0.5}
"""Most seconds between the event that a kill waits for and the kill, by whether it is early."""

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Task:
    """The search to run. `rules`: number of rules, spread evenly (None: all); `facts`: right values of a question."""

    paths: tuple[Path, ...]
    rules: int | None = None
    world: int = 1
    facts: float = FACTS
    beam: int = 200


class Kill(NamedTuple):
    """A kill `delay` seconds after the journal has `rows` rows, or for 0 rows after the start of the search."""

    rows: int
    delay: float


# --- the process that searches ---------------------------------------------------------------------------------------


class LoggingModel(DelegatingModel):
    """The simulated model, which writes the journal's id of each request to a file before it answers."""

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
            stream.writelines(f"{call_id}\n" for call_id in self._call_ids[role](asked, *more))
        return list(answer(asked, *more))


def search_once(task: Task, database: Path, log: Path, output: Path) -> None:
    """Run a search from beginning to end, and write its figures to the file `output`."""
    library, rules = chosen_rules(task.paths, task.rules)
    with KnowledgeBase(database) as kb:
        model = LoggingModel(simulated(library, task.world, task.facts), kb, log)
        log.touch()
        begun = time.perf_counter()
        settings = SearchSettings(beam=task.beam)
        report = search(SearchJob(library, rules, kb, Models(model, model, model, FrequencyLikelihood()), settings))
        seconds = time.perf_counter() - begun
    kept = report.summary()
    figures = {
        "rules": len(report.searched),
        "statements": kept["statements"],
        "rules_with_statements": sum(any(outcome.statements.values()) for outcome in report.searched),
        "calls": {
            role: {"sent": counts["calls"], "from_journal": counts["hits"]} for role, counts in kept["calls"].items()
        },
        "search_seconds": round(seconds, 1),
        **_used(),
    }
    output.write_text(json.dumps(figures), "utf-8")


def _used() -> dict[str, float]:
    """Processor time and peak memory of this process, and peak memory of the Prolog process that it started."""
    unit = 1 if sys.platform == "darwin" else 1024  # `ru_maxrss` is in bytes there, elsewhere in kilobytes
    own, prolog = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "processor_seconds": round(own.ru_utime + own.ru_stime + prolog.ru_utime + prolog.ru_stime, 1),
        "peak_memory_mb": round(own.ru_maxrss * unit / MEGABYTE),
        "peak_prolog_memory_mb": round(prolog.ru_maxrss * unit / MEGABYTE),
    }


# --- the process that measures and kills -----------------------------------------------------------------------------


@dataclass
class RepeatedSearch:
    """A search that is run repeatedly into the same database, each time in a new process."""

    task: Task
    folder: Path
    name: str

    @property
    def database(self) -> Path:
        return self.folder / f"{self.name}.db"

    @property
    def figures_file(self) -> Path:
        return self.folder / f"{self.name}.json"

    def log(self, number: int) -> Path:
        """The file with the request ids of the process with this number."""
        return self.folder / f"{self.name}.{number}.log"

    def start(self, number: int) -> SpawnProcess:
        process = multiprocessing.get_context("spawn").Process(
            target=search_once, args=(self.task, self.database, self.log(number), self.figures_file)
        )
        process.start()
        return process

    def finish(self, number: int) -> dict[str, Any]:
        """Search to the end, and return the figures. Raises HapaxError if the process fails."""
        begun = time.perf_counter()
        process = self.start(number)
        process.join()
        if process.exitcode != 0:
            raise HapaxError(f"The search ended with exit code {process.exitcode}. See its message above.")
        figures: dict[str, Any] = json.loads(self.figures_file.read_text("utf-8"))
        return {**figures, "seconds": round(time.perf_counter() - begun, 1)}

    def rows(self) -> int:
        """Number of rows in the journal now."""
        try:
            with closing(sqlite3.connect(reading_uri(self.database), uri=True)) as connection:
                return int(connection.execute("SELECT coalesce(max(rowid), 0) FROM calls").fetchone()[0])
        except sqlite3.OperationalError:  # the process has not made the file or its tables yet
            return 0

    def killed(self, number: int, kill: Kill) -> dict[str, Any] | None:
        """Search until the kill, and return its figures, or None if the search ended first."""
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
    """The figures of a search that is not killed."""
    searches = RepeatedSearch(task, folder, "undisturbed")
    figures = searches.finish(0)
    size = searches.database.stat().st_size
    with KnowledgeBase(searches.database, read_only=True) as kb:
        return {**figures, "database_mb": round(size / MEGABYTE, 1), "rows": kb.counts()}


def kills(rows: int, count: int, seed: int) -> list[Kill]:
    """`count` kills at random places of a journal that will have `rows` rows, in order; some of them early."""
    draw = random.Random(seed)  # noqa: S311  # reproducible, not secret
    places = sorted(draw.randrange(1, rows) for _ in range(count))
    planned = []
    for number, place in enumerate(places):
        is_early = number % EARLY_EVERY == EARLY_EVERY - 1
        planned.append(Kill(0 if is_early else place, draw.uniform(0, MOST_DELAY[is_early])))
    return planned


def disturbed(task: Task, folder: Path, planned: Sequence[Kill]) -> dict[str, Any]:
    """The figures of a search that is killed and resumed: requests, and differences from the undisturbed result."""
    searches = RepeatedSearch(task, folder, "killed")
    begun = time.perf_counter()
    done: list[dict[str, Any]] = []
    segments = 0
    sent = Counter[str]()
    twice = 0
    for kill in planned:
        known = searches.rows()
        killed = searches.killed(segments, kill)
        sent += _requests(searches.log(segments))
        twice += _known_before(searches.database, searches.log(segments), known)
        segments += 1
        if killed is None:
            break
        done.append(killed)
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
    """Number of times that each request was sent."""
    # The kill may have cut off the last line.
    return Counter(line for line in log.read_text("ascii").split("\n")[:-1]) if log.exists() else Counter()


def _known_before(database: Path, log: Path, rows: int) -> int:
    """Number of requests in a log that were already answered by the first `rows` rows of the journal."""
    sql = "SELECT 1 FROM calls WHERE request_id = ? AND rowid <= ?"
    with closing(sqlite3.connect(reading_uri(database), uri=True)) as connection:
        return sum(connection.execute(sql, (request, rows)).fetchone() is not None for request in _requests(log))


# --- the command -----------------------------------------------------------------------------------------------------


def measured(task: Task, folder: Path, count: int = 0, seed: int = 0) -> dict[str, Any]:
    """The figures of the undisturbed search and, if `count` kills are asked for, of the killed one."""
    first = undisturbed(task, folder)
    figures = {"task": {**asdict(task), "paths": [str(path) for path in task.paths]}, "undisturbed": first}
    if count:
        figures["killed"] = disturbed(task, folder, kills(first["rows"]["calls"], count, seed))
    return figures


def lines(figures: dict[str, Any]) -> Iterator[str]:
    """The figures as lines of text."""
    first = figures["undisturbed"]
    statements = first["statements"]
    yield f"{first['rules']} rules, {first['rules_with_statements']} of them with statements"
    count = statements["head"] + statements["long_tail"]
    yield f"{count} statements, {statements['head']} head and {statements['long_tail']} long tail"
    yield f"{first['seconds']} s wall, {first['processor_seconds']} s processor"
    yield f"{first['peak_memory_mb']} MB memory at most, and {first['peak_prolog_memory_mb']} MB in Prolog"
    yield f"{first['database_mb']} MB database, {sum(first['rows'].values())} rows"
    yield "calls " + ", ".join(f"{role} {calls['sent']}" for role, calls in first["calls"].items())
    if killed := figures.get("killed"):
        yield ""
        rows = ", ".join(str(kill["rows"]) for kill in killed["kills"])
        yield f"killed {len(killed['kills'])} times, with {rows} rows in the journal"
        yield f"{killed['seconds']} s wall in all"
        lost = killed["requests_lost_in_flight"]
        yield f"{killed['requests_sent']} requests sent, {lost} of them lost in flight and sent again"
        yield f"{killed['answered_requests_sent_again']} answered requests were sent again"
        yield f"{sum(killed['different_rows'].values())} rows differ from the undisturbed search's"


def is_same(figures: dict[str, Any]) -> bool:
    """True if the killed search, if any, has the undisturbed result and sent no answered request again."""
    killed = figures.get("killed")
    return killed is None or not (killed["answered_requests_sent_again"] or sum(killed["different_rows"].values()))


@contextmanager
def _folder(path: Path | None) -> Iterator[Path]:
    """A new folder with this name, or a temporary one."""
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        path.mkdir(parents=True)
        yield path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if a search fails or the result of the killed search differs."""
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
    print("\n".join(lines(figures)))
    write_figures(options.output, figures)
    return 0 if is_same(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
