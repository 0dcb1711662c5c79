"""One seed: a scenario, its faults, its runs, and the invariants that hold after them."""

from __future__ import annotations

import gc
import logging
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import hapax
from hapax.engine.answers.derivation import read_statements
from hapax.grammar.errors import HapaxError
from hapax.kb.connection import reading_uri
from hapax.kb.records import ATTEMPTS, RUNS
from hapax.kb.schema import TABLES
from hapax.kb.store import KnowledgeBase
from tools.comparison import CLOCKS, SUMMARIES
from tools.simulate.disk import DEATHS, ERRORS, DiskFault
from tools.simulate.machine import Machine
from tools.simulate.scenarios import DATABASE, DERIVED, EXPORT, SCENARIOS, Scenario, ScenarioFolder, clean, rules
from tools.simulate.scheduling import SimulatedProcess, Stuck

Content = dict[str, tuple[str, ...]]


def content(folder: Path, scenario: Scenario) -> Content:
    """Everything that the folder keeps, apart from times, in an order of its own."""
    found: Content = {}
    with closing(sqlite3.connect(reading_uri(folder / DATABASE), uri=True)) as connection:
        found |= dict(_rows(connection))
    if scenario.derives:
        with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
            for name in DERIVED:
                statements = read_statements(kb, rules(), rules().rule(name))
                found[f"derived {name}"] = tuple(sorted(map(repr, statements)))
            for table in ("derivations", "relations"):
                lines = kb.sql(f"SELECT * FROM {table}")  # noqa: S608  ours
                found[f"derived tables, {table}"] = tuple(sorted(map(repr, lines)))
    return found | whole_files(folder)


def whole_files(folder: Path) -> Content:
    """The file that must appear complete or not at all."""
    path = folder / EXPORT
    return {f"file {EXPORT}": (path.read_text("utf-8", "replace"),)} if path.is_file() else {}


def torn_files(folder: Path, earlier: Content, expected: Content) -> Iterator[str]:
    """Files that are neither as before a command nor as after it. Between the two there may be none."""
    found = whole_files(folder)
    new = {name: lines for name, lines in expected.items() if name.startswith("file ")}
    if found and found not in (earlier, new):
        yield from differences(found, new if len(found) >= len(new) else earlier)


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[str, ...]]]:
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for table in TABLES:
        if table is ATTEMPTS or table.name not in found:
            continue
        ignored = CLOCKS | (SUMMARIES if table is RUNS else frozenset())
        columns = ", ".join(name for name in table.all_columns if name not in ignored)
        rows = connection.execute(f"SELECT {columns} FROM {table.name}")  # noqa: S608  ours
        yield table.name, tuple(sorted(map(repr, rows)))


def differences(found: Content, expected: Content) -> Iterator[str]:
    """A line for each part that is not as expected."""
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            here, there = Counter(found.get(name, ())), Counter(expected.get(name, ()))
            missing, excess = list((there - here).elements()), list((here - there).elements())
            yield f"{name}: missing {missing[:2]}, too many {excess[:2]}"[:600]


def damages(folder: Path) -> Iterator[str]:
    """Findings of `verify`."""
    with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
        for damage in hapax.verify(kb).damages:
            yield f"verify: {damage}"


MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made in it


@dataclass
class Totals:
    """Counts over seeds."""

    seeds: int = 0
    failed: int = 0
    runs: int = 0
    seconds: float = 0.0
    scenarios: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.seeds} seeds, {self.failed} failed, {self.runs} runs, {self.seconds:.0f} s of processor time"]
        for title, counts in (("scenario", self.scenarios), ("fault", self.injected)):
            lines += [f"  {title} {name}: {count}" for name, count in sorted(counts.items()) if count]
        return "\n".join(lines)


@dataclass(frozen=True)
class ReferenceRun:
    """An undisturbed run: its content, and its crossings by kind."""

    content: Content
    crossings: Counter[str]
    asked: Counter[str]


class Simulation:
    """Runs seeds; references are kept from one to the next."""

    def __init__(self, only: str | None = None) -> None:
        self._only = only
        self.trace = ""
        """The scenario of the last seed, its faults, and its time and crossings, which show if it is repeated."""
        self._references: dict[str, ReferenceRun] = {}
        logging.disable(logging.CRITICAL)  # asyncio complains of the tasks of killed processes

    @cached_property
    def _folder(self) -> Path:
        self._temporary = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="hapax-simulate-")
        return Path(self._temporary.name)

    def run(self, seed: int, totals: Totals) -> list[str]:
        """Run a seed; returns what went wrong."""
        stream = random.Random(f"seed {seed}")  # noqa: S311  no secret
        scenario = SCENARIOS[self._only or stream.choice(list(SCENARIOS))]
        totals.seeds += 1
        totals.scenarios[scenario.name] += 1
        try:
            reference = self._reference(scenario)
            return [
                f"{scenario.name}: {failure}" for failure in self._disturbed(scenario, reference, seed, stream, totals)
            ]
        except Stuck as stuck:
            return [f"{scenario.name}: {stuck}"]
        except (sqlite3.Error, HapaxError) as fault:
            return [f"{scenario.name}: what is left cannot be read: {fault}"]

    def _reference(self, scenario: Scenario) -> ReferenceRun:
        if scenario.name not in self._references:
            machine, place = self._machine(scenario, 0)
            works = scenario.works(place)
            for work in works:
                _check_ended(machine.run([work]))
            found = content(place.folder, scenario)
            asked = Counter(request for batch in place.asked for request in batch)
            self._references[scenario.name] = ReferenceRun(found, machine.crossings, asked)
            clean(place)
            gc.freeze()  # the modules that it imported: each run collects what is left of its processes
        return self._references[scenario.name]

    def _machine(self, scenario: Scenario, seed: int) -> tuple[Machine, ScenarioFolder]:
        machine = Machine(self._folder / "world", seed)
        place = ScenarioFolder(machine.folder, machine.disk)
        scenario.prepare(place)
        return machine, place

    def _disturbed(
        self, scenario: Scenario, reference: ReferenceRun, seed: int, stream: random.Random, totals: Totals
    ) -> Iterator[str]:
        machine, place = self._machine(scenario, seed)
        in_flight, earlier = 0, whole_files(place.folder)
        try:
            for _ in range(stream.choice((1, 1, 2, 3))):
                # Without faults only the order differs in which processes take turns.
                faults = [_drawn(stream, reference.crossings)] if stream.random() < 0.8 else []
                if faults and stream.random() < 0.3:
                    faults.append(_drawn(stream, reference.crossings))
                processes = machine.run(scenario.works(place), faults, stream.choice((0.0, 0.05, 0.3)))
                totals.runs += 1
                ended = sum(process.is_killed or process.fault is not None for process in processes)
                # The model answers batch by batch, and the last one of each process may be lost.
                in_flight += sum(map(len, place.asked[-ended:])) if ended else 0
                yield from _tracebacks(processes)
                yield from torn_files(place.folder, earlier, reference.content)
            processes = machine.run(scenario.works(place))
            totals.runs += 1
            totals.injected += machine.disk.injected
            injected = sorted(machine.disk.injected.items())
            self.trace = f"{scenario.name}, {injected}, {sorted(machine.crossings.items())}, {machine.clock:.4f} s"
            yield from (f"undisturbed, it ends with {process.fault!r}" for process in processes if process.fault)
            yield from differences(content(place.folder, scenario), reference.content)
            yield from damages(place.folder)
            yield from _asked_again(place, reference, in_flight)
        finally:
            clean(place)


def _check_ended(processes: list[SimulatedProcess]) -> None:
    for process in processes:
        if process.fault is not None:
            raise process.fault


def _drawn(stream: random.Random, crossings: Counter[str]) -> DiskFault:
    """A fault at one of the crossings, each kind of which is as likely as any other."""
    kind = stream.choice(sorted(crossings))
    number = stream.randint(1, crossings[kind])
    if stream.random() < 0.7:
        return DiskFault(kind, number, stream.choice(DEATHS))
    return DiskFault(kind, number, stream.choice(list(ERRORS)), stream.choice((1, 1, 3, 10_000)))


def _tracebacks(processes: list[SimulatedProcess]) -> Iterator[str]:
    """Errors that no user should see."""
    for process in processes:
        if process.fault is not None and not process.is_killed and not isinstance(process.fault, HapaxError | OSError):
            yield f"it ends with {process.fault!r}"


def _asked_again(place: ScenarioFolder, reference: ReferenceRun, in_flight: int) -> Iterator[str]:
    """Requests beyond those of the undisturbed run and those that were in flight when a process ended early."""
    asked = Counter(request for batch in place.asked for request in batch)
    if missing := reference.asked - asked:
        yield f"{missing.total()} requests were not asked"
    if (again := asked - reference.asked).total() > in_flight:
        yield f"{again.total()} requests were asked again, {in_flight} may have been in flight"
