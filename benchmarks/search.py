"""What the search itself takes: processor time where models answer at once, wall time where they take long, memory.

    python -m benchmarks.search -o search.json
    python -m benchmarks.search --parts latency --rules 32

*Overhead.* The rules are searched once to learn what the simulated models say, then in turns: searched into a new file
by models that look their answers up, and the rows of that file written again by `executemany` alone. The ratio of the
two processor times is what the search adds to its own storage. A profiled turn, not among the timed ones, says where
the time goes; what the interpreter's library takes counts for the room that called it.

*Latency.* The rules are searched on a server that takes the latency for each request and any number at once, of which
Hapax may have so many in flight. No way of asking the same calls is faster than either of two bounds:

- calls x latency / in flight: all slots busy all the time;
- the longest chain x latency: what a rule asks in one phase of its search follows from the answers to the phase before.
  The chain is the most phases in which one rule had to send anything, when rules are searched one after the other and
  what earlier rules asked is known.

`efficiency` is the larger bound over the wall time, `of the slots` the first one. Calls are those that the journal
sent. `in flight, on average` is measured by the server, so it tells a slow client from a slow server.

*Memory.* A quarter of the rules and all of them are searched, each in a process of its own; what the peak grows by for
each rule more is what a rule leaves behind.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.calls import Bench, in_process, on_server
from benchmarks.common import FACTS, LIBRARY, SHIPPED, Beside, chosen_rules, machine, simulated, write_figures
from benchmarks.scale import Task, undisturbed
from benchmarks.server import counts, served
from engine.report import SearchReport, SearchSettings
from engine.search import search
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from kb.records import CallRecord
from kb.rows import TABLES
from kb.store import KnowledgeBase
from llm_oracle.calls import Asker, Journal, PreparedCall, Send
from llm_oracle.protocols import Models
from llm_oracle.simulated import SimulatedModel

PARTS = ("overhead", "latency", "memory")

ROOT = Path(__file__).parent.parent

ROOMS = (
    ("models, looked up", ("benchmarks/",)),
    ("journal", ("llm_oracle/calls.py", "llm_oracle/protocols.py")),
    ("reading answers", ("llm_oracle/answers.py",)),
    ("prompts and claims", ("llm_oracle/prompts.py", "grammar/verbalize.py")),
    ("questions", ("engine/inquiry.py", "engine/oracle.py", "engine/known.py")),
    ("gates", ("engine/gates.py",)),
    ("beams", ("engine/beams.py", "engine/search.py")),
    ("Prolog and proofs", ("engine/derive.py", "engine/program.py", "engine/proof.py", "engine/session.py")),
    ("identities", ("kb/records.py",)),
    ("knowledge base", ("kb/",)),
    ("elsewhere", ("",)),
)
"""What of a search the code of these files is, the first that fits."""


# --- overhead --------------------------------------------------------------------------------------------------------


class LookedUp(Beside):
    """The simulated model's answers, each worked out once: a second search of the same rules is answered at once."""

    def __init__(self, model: SimulatedModel) -> None:
        super().__init__(Models(model, model, model, model))
        self._known: dict[Hashable, Any] = {}

    def _answered(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        for one in asked:
            if (role, one) not in self._known:
                (self._known[role, one],) = answer([one], *more)
        return [self._known[role, one] for one in asked]


def overhead(task: Task, repeats: int) -> dict[str, Any]:
    """Processor time of whole searches whose models answer at once, beside writing the same rows alone."""
    library, rules = chosen_rules(task.paths, task.rules)
    model = LookedUp(simulated(library, task.world, task.facts))

    def searched(kb: KnowledgeBase) -> SearchReport:
        return search(library, rules, kb, Models(model, model, model, model), SearchSettings(beam=task.beam))

    turns: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with KnowledgeBase() as kb:
            report = searched(kb)
        for number in range(repeats):
            path = folder / f"{number}.db"
            with KnowledgeBase(path) as kb:
                seconds = _processor_seconds(lambda kb=kb: searched(kb))  # type: ignore[misc]
                rows = kb.counts()
                turns.append((seconds, _written_alone(kb, folder / f"{number}.copy.db")))
            path.unlink()
        profile = cProfile.Profile()
        with KnowledgeBase(folder / "profiled.db") as kb:
            profile.enable()
            searched(kb)
            profile.disable()
    seconds, storing = median(one for one, _ in turns), median(two for _, two in turns)
    statements, all_rows = len(report.statements), sum(rows.values())
    return {
        "rules": len(rules),
        "statements": statements,
        "candidates": rows["candidates"],
        "rows": all_rows,
        "turns": [{"search_seconds": round(one, 3), "storing_seconds": round(two, 3)} for one, two in turns],
        "processor_seconds": round(seconds, 3),
        "microseconds_per_candidate": _each(seconds, rows["candidates"]),
        "microseconds_per_statement": _each(seconds, statements),
        "microseconds_per_row": _each(seconds, all_rows),
        "storing_microseconds_per_row": _each(storing, all_rows),
        "ratio_to_storing": round(median(one / two for one, two in turns), 2),
        "shares": shares(pstats.Stats(profile)),
    }


def _processor_seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _written_alone(kb: KnowledgeBase, path: Path) -> float:
    """Processor seconds of writing all rows of the knowledge base into a new file, one `executemany` for each table."""
    contents = []
    for table in TABLES:
        found = kb.database.conn.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
        columns = [column[0] for column in found.description]
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - the same
        contents.append((sql, found.fetchall()))
    with KnowledgeBase(path) as copy:

        def write() -> None:
            with copy.transaction():
                for sql, rows in contents:
                    copy.database.conn.executemany(sql, rows)

        return _processor_seconds(write)


def shares(stats: pstats.Stats) -> dict[str, float]:
    """The share of the profiled time in each room; code that is none of ours counts for who called it."""
    functions: dict[Any, Any] = stats.stats  # type: ignore[attr-defined]  # typeshed does not know it
    found: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in functions.items():
        for room, share in _rooms(function, callers, functions, frozenset()).items():
            found[room] += own * share
    total = found.total() or 1.0
    return {room: round(found[room] / total, 3) for room, _ in ROOMS if found[room]}


def _rooms(
    function: Any, callers: Mapping[Any, Any], functions: Mapping[Any, Any], seen: frozenset[Any]
) -> Counter[str]:
    """In which rooms a function's own time was spent, as shares of it."""
    path = Path(function[0])
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        inside = path.relative_to(ROOT).as_posix()
        return Counter({next(room for room, places in ROOMS if inside.startswith(places)): 1.0})
    found: Counter[str] = Counter()
    calling = {one: told for one, told in callers.items() if one not in seen and one != function}
    whole = sum(told[2] for told in calling.values())
    for caller, told in calling.items():
        part = told[2] / whole if whole else 1 / len(calling)
        for room, share in _rooms(caller, functions[caller][4], functions, seen | {function}).items():
            found[room] += part * share
    return found or Counter({"elsewhere": 1.0})


def _each(seconds: float, count: int) -> float | None:
    """Microseconds for each; None where there are none."""
    return round(1e6 * seconds / count, 1) if count else None


# --- latency ---------------------------------------------------------------------------------------------------------


class Phases(Journal):
    """A journal that counts the phases in which something was sent, for each rule searched."""

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(kb)
        self.sent = 0

    def answers(self, asker: Asker, calls: Sequence[PreparedCall], send: Send) -> list[CallRecord]:
        before = self.total.calls
        found = super().answers(asker, calls, send)
        self.sent += self.total.calls > before
        return found


def longest_chain(library: Library, rules: Sequence[Rule], bench: Bench) -> int:
    """The most phases in which one rule sent anything, with what all rules before it asked being known."""
    settings = SearchSettings(beam=bench.beam, rules_together=1)
    models = in_process(library, bench)
    models = replace(models, likelihood=models.critic, evaluator=models.critic)  # the simulated model plays every role
    longest = 0
    with KnowledgeBase() as kb:
        for rule in rules:
            journal = Phases(kb)
            search(library, [rule], kb, models, settings, journal=journal)
            longest = max(longest, journal.sent)
    return longest


def latency(bench: Bench) -> dict[str, Any]:
    """A whole search on the server, by the wall clock, beside what no executor beats."""
    library, rules = chosen_rules(bench.paths, bench.rules)
    chain = longest_chain(library, rules, bench)
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase(Path(folder) / "hapax.db") as kb,
        served(bench.paths, bench.world, bench.latency) as url,
    ):
        models = on_server(url, library, bench, bench.in_flight)
        before = counts(url)
        begun = time.perf_counter()
        report = search(library, rules, kb, models, SearchSettings(beam=bench.beam))
        seconds = time.perf_counter() - begun
        after = counts(url)
    calls = sum(one.calls for one in report.statistics.values())
    slots, dependent = calls * bench.latency / bench.in_flight, chain * bench.latency
    return {
        "rules": len(rules),
        "statements": len(report.statements),
        "calls": calls,
        "latency": bench.latency,
        "in_flight": bench.in_flight,
        "seconds": round(seconds, 2),
        "slots_bound_seconds": round(slots, 2),
        "longest_chain": chain,
        "chain_bound_seconds": round(dependent, 2),
        "efficiency": round(max(slots, dependent) / seconds, 3),
        "efficiency_of_the_slots": round(slots / seconds, 3),
        "in_flight_on_average": round((after["busy_seconds"] - before["busy_seconds"]) / seconds, 1),
        "server_seconds_per_call": round(
            (after["busy_seconds"] - before["busy_seconds"]) / max(1, after["asked"] - before["asked"]), 4
        ),
    }


# --- memory ----------------------------------------------------------------------------------------------------------


def memory(task: Task) -> dict[str, Any]:
    """Peak memory of a quarter of the rules and of all of them."""
    _, rules = chosen_rules(task.paths, task.rules)
    searched = {}
    for count in (max(1, len(rules) // 4), len(rules)):
        with tempfile.TemporaryDirectory() as folder:
            figures = undisturbed(replace(task, rules=count), Path(folder))
        searched[count] = {
            "rules": count,
            "statements": figures["rows"]["statements"],
            "rows": sum(figures["rows"].values()),
            "peak_memory_mb": figures["peak_memory_mb"],
            "peak_prolog_memory_mb": figures["peak_prolog_memory_mb"],
            "processor_seconds": figures["processor_seconds"],
        }
    few, many = min(searched), max(searched)
    more = searched[many]["peak_memory_mb"] - searched[few]["peak_memory_mb"]
    rows = searched[many]["rows"] - searched[few]["rows"]
    return {
        "beam": task.beam,
        "searches": [searched[count] for count in sorted(searched)],
        "mb_per_rule_more": round(more / (many - few), 3) if many > few else None,
        "bytes_per_row_more": round(1e6 * more / rows, 1) if rows > 0 else None,
    }


# --- the command -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: the parts, and the size of each."""

    parts: tuple[str, ...]
    overhead: Task
    latency: Bench
    memory: Task
    repeats: int


def measured(planned: Plan) -> dict[str, Any]:
    """The figures of the chosen parts."""
    works: dict[str, Callable[[], dict[str, Any]]] = {
        "overhead": lambda: overhead(planned.overhead, planned.repeats),
        "latency": lambda: latency(planned.latency),
        "memory": lambda: memory(planned.memory),
    }
    return {part: works[part]() for part in PARTS if part in planned.parts}


def told(figures: Mapping[str, Any]) -> Iterator[Table]:
    """The figures in tables."""
    for part in PARTS:
        if part not in figures:
            continue
        table = Table("", part, title_justify="left")
        for name, figure in _lines(figures[part]):
            table.add_row(name, figure)
        yield table


def _lines(figures: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, figure in figures.items():
        shown = before + name.replace("_", " ")
        if isinstance(figure, dict):
            yield from _lines(figure, f"{shown}: ")
        elif isinstance(figure, list):
            for number, one in enumerate(figure, 1):
                yield from _lines(one, f"{shown} {number}: ")
        else:
            yield shown, "" if figure is None else f"{figure:,}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="rule files and folders (default: rules and rules/library)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="(default: all)")
    parser.add_argument("--rules", type=int, help="so many, spread evenly (default: 24, 32 and 417, by part)")
    parser.add_argument("--beam", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--facts", type=float, default=FACTS, help="right values of a question (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="turns of the overhead (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of a call (default: %(default)s)")
    parser.add_argument("--in-flight", type=int, default=32, help="calls at once, at most (default: %(default)s)")
    parser.add_argument("--world", type=int, default=1, help="seed of the simulated world (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args(arguments)
    paths = tuple(options.paths) or (SHIPPED, LIBRARY)
    task = Task(paths, options.rules or 24, options.world, options.facts, options.beam)
    bench = Bench(paths, options.rules or 32, options.beam, options.latency, options.in_flight, world=options.world)
    planned = Plan(tuple(options.parts), task, bench, replace(task, rules=options.rules or 417), options.repeats)
    try:
        figures = measured(planned)
    except HapaxError as error:
        print(error, file=sys.stderr)
        return 1
    console = Console()
    for table in told(figures):
        console.print(table)
    plan = {**asdict(planned), "parts": list(planned.parts)}
    for name in PARTS:
        plan[name]["paths"] = [str(path) for path in paths]
    write_figures(options.output, {"benchmark": "search", "machine": machine(), "plan": plan, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
