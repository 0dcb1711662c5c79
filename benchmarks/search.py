"""Cost of the search itself: processor time with instant models, wall time with slow models, and memory.

    python -m benchmarks.search -o search.json
    python -m benchmarks.search --parts latency --rules 32

*Overhead.* The rules are searched once to collect the answers of the simulated models. Then, in turns, they are
searched into a new file by models that look their answers up, and the rows of that file are written again by
`executemany` alone. The ratio of the two processor times is the overhead of the search over its own storage. A profiled
turn, not among the timed ones, shows where the time goes; time in libraries counts for the room that called them.

*Latency.* The rules are searched on a server that takes the latency for each request and accepts any number at once, of
which Hapax may have `in flight`. No scheduler can make the same calls faster than either of two bounds:

- calls x latency / in flight: all slots are busy all the time;
- longest chain x latency: the questions of a rule in one phase of its search depend on the answers of the phase before.
  The chain is the largest number of phases in which a single rule sends requests, when rules are searched one after
  another and the answers to earlier rules are known.

`efficiency` is the larger bound divided by the wall time, `of the slots` the first bound. Calls are those sent by the
journal. `in flight, on average` is measured by the server, to distinguish a slow client from a slow server.

*Memory.* A quarter of the rules and all rules are searched, each in a process of its own; the growth of the peak for
each additional rule is the memory that a rule leaves behind.
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

from benchmarks.calls import CallBenchmark, in_process, on_server
from benchmarks.common import FACTS, LIBRARY, SHIPPED, DelegatingModel, chosen_rules, machine, simulated, write_figures
from benchmarks.scale import Task, undisturbed
from benchmarks.server import counts, served
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library, Rule
from hapax.kb.records import TABLES, CallRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Asker, Journal, PreparedCall, Send
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.simulated import SimulatedModel

PARTS = ("overhead", "latency", "memory")

ROOT = Path(__file__).resolve().parent.parent

ROOMS = (
    ("models, looked up", ("benchmarks/",)),
    ("journal", ("llm_oracle/budget.py", "llm_oracle/calls.py", "llm_oracle/journal.py", "llm_oracle/protocols.py")),
    ("reading answers", ("llm_oracle/answers.py",)),
    ("prompts and claims", ("llm_oracle/prompts.py", "grammar/verbalize.py")),
    ("questions", ("engine/search/inquiry.py", "engine/search/oracle.py", "engine/inference/known_facts.py")),
    ("gates", ("engine/search/gates.py", "engine/search/ranking.py", "engine/search/thresholds.py")),
    ("beams", ("engine/search/beams.py", "engine/search/search.py")),
    (
        "Prolog and proofs",
        (
            "engine/inference/derive.py",
            "engine/inference/program.py",
            "engine/inference/proof.py",
            "engine/inference/session.py",
        ),
    ),
    ("identities", ("kb/records.py",)),
    ("knowledge base", ("kb/",)),
    ("elsewhere", ("",)),
)
"""Parts of a search and the files of their code; the first match counts."""


# --- overhead --------------------------------------------------------------------------------------------------------


class LookupModel(DelegatingModel):
    """The simulated model with all answers cached, so that a second search of the same rules is answered instantly."""

    def __init__(self, model: SimulatedModel) -> None:
        super().__init__(Models(model, model, model, model))
        self._known: dict[Hashable, Any] = {}

    def _answered(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        for request in asked:
            if (role, request) not in self._known:
                (self._known[role, request],) = answer([request], *more)
        return [self._known[role, request] for request in asked]


def overhead(task: Task, repeats: int) -> dict[str, Any]:
    """Processor time of complete searches with instant models, and of writing the same rows alone."""
    library, rules = chosen_rules(task.paths, task.rules)
    model = LookupModel(simulated(library, task.world, task.facts))

    def searched(kb: KnowledgeBase) -> SearchReport:
        return search(SearchJob(library, rules, kb, Models(model, model, model, model), SearchSettings(beam=task.beam)))

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
    seconds, storing = median(searching for searching, _ in turns), median(writing for _, writing in turns)
    statements, all_rows = len(report.statements), sum(rows.values())
    return {
        "rules": len(rules),
        "statements": statements,
        "candidates": rows["candidates"],
        "rows": all_rows,
        "turns": [
            {"search_seconds": round(searching, 3), "storing_seconds": round(writing, 3)}
            for searching, writing in turns
        ],
        "processor_seconds": round(seconds, 3),
        "microseconds_per_candidate": _each(seconds, rows["candidates"]),
        "microseconds_per_statement": _each(seconds, statements),
        "microseconds_per_row": _each(seconds, all_rows),
        "storing_microseconds_per_row": _each(storing, all_rows),
        "ratio_to_storing": round(median(searching / writing for searching, writing in turns), 2),
        "shares": shares(pstats.Stats(profile)),
    }


def _processor_seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _written_alone(kb: KnowledgeBase, path: Path) -> float:
    """Processor seconds for writing all rows of the knowledge base into a new file, an `executemany` for each table."""
    contents = []
    for table in TABLES:
        found = kb.connection.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
        columns = [column[0] for column in found.description]
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - the same
        contents.append((sql, found.fetchall()))
    with KnowledgeBase(path) as copy:

        def write() -> None:
            with copy.transaction():
                for sql, rows in contents:
                    copy.connection.executemany(sql, rows)

        return _processor_seconds(write)


def shares(stats: pstats.Stats) -> dict[str, float]:
    """The share of the profiled time in each room. Code of libraries counts for its callers."""
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
    """Shares of a function's own time by room: its own room, or those of its callers if it is in a library."""
    path = Path(function[0]).resolve()
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        inside = path.relative_to(ROOT).as_posix()
        return Counter({next(room for room, places in ROOMS if inside.startswith(places)): 1.0})
    found: Counter[str] = Counter()
    # Without callers seen before: library functions may call each other in cycles.
    calling = {caller: timing for caller, timing in callers.items() if caller not in seen and caller != function}
    whole = sum(timing[2] for timing in calling.values())  # 2: own time on behalf of this caller
    for caller, timing in calling.items():
        part = timing[2] / whole if whole else 1 / len(calling)
        for room, share in _rooms(caller, functions[caller][4], functions, seen | {function}).items():
            found[room] += part * share
    return found or Counter({"elsewhere": 1.0})


def _each(seconds: float, count: int) -> float | None:
    """Microseconds per item; None without items."""
    return round(1e6 * seconds / count, 1) if count else None


# --- latency ---------------------------------------------------------------------------------------------------------


class PhaseCountingJournal(Journal):
    """A journal that counts the phases in which requests were sent."""

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(kb)
        self.sent = 0

    def answers(self, asker: Asker, calls: Sequence[PreparedCall], send: Send) -> list[CallRecord]:
        before = self.total.calls
        found = super().answers(asker, calls, send)
        self.sent += self.total.calls > before
        return found


def longest_chain(library: Library, rules: Sequence[Rule], bench: CallBenchmark) -> int:
    """The largest number of phases in which a rule sends requests, given the answers to all rules before it."""
    settings = SearchSettings(beam=bench.beam, rules_together=1)
    models = in_process(library, bench)
    models = replace(models, likelihood=models.critic, evaluator=models.critic)  # the simulated model in all roles
    longest = 0
    with KnowledgeBase() as kb:
        for rule in rules:
            journal = PhaseCountingJournal(kb)
            search(SearchJob(library, [rule], kb, models, settings, journal))
            longest = max(longest, journal.sent)
    return longest


def latency(bench: CallBenchmark) -> dict[str, Any]:
    """Wall time of a complete search on the server, and its lower bounds."""
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
        report = search(SearchJob(library, rules, kb, models, SearchSettings(beam=bench.beam)))
        seconds = time.perf_counter() - begun
        after = counts(url)
    calls = sum(statistics.calls for statistics in report.statistics.values())
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
    """The parts to measure, and the size of each."""

    parts: tuple[str, ...]
    overhead: Task
    latency: CallBenchmark
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


def tables(figures: Mapping[str, Any]) -> Iterator[Table]:
    """The figures as tables."""
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
            for number, entry in enumerate(figure, 1):
                yield from _lines(entry, f"{shown} {number}: ")
        else:
            yield shown, "" if figure is None else f"{figure:,}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
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
    bench = CallBenchmark(
        paths, options.rules or 32, options.beam, options.latency, options.in_flight, world=options.world
    )
    planned = Plan(tuple(options.parts), task, bench, replace(task, rules=options.rules or 417), options.repeats)
    try:
        figures = measured(planned)
    except HapaxError as error:
        print(error, file=sys.stderr)
        return 1
    console = Console()
    for table in tables(figures):
        console.print(table)
    plan = {**asdict(planned), "parts": list(planned.parts)}
    for name in PARTS:
        plan[name]["paths"] = [str(path) for path in paths]
    write_figures(options.output, {"benchmark": "search", "machine": machine(), "plan": plan, **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
