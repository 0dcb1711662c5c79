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
from benchmarks.server import ExclusionReader
from hapax.engine.answers.derivation import read_statements
from hapax.grammar.errors import HapaxError
from hapax.kb.connection import reading_uri
from hapax.kb.records import ATTEMPTS, CALLS, RUNS, TABLES, Outcome
from hapax.kb.store import KnowledgeBase
from tools.comparison import CLOCKS, SUMMARIES
from tools.simulate.disk import DEATHS, ERRORS, DiskFault
from tools.simulate.machine import Machine, SimulatedModelServer
from tools.simulate.scenarios import DATABASE, DERIVED, EXPORT, SCENARIOS, Scenario, ScenarioFolder, clean, rules, world
from tools.simulate.scheduling import SimulatedProcess, Stuck

IN_FLIGHT = 16
"""Requests at a time to a server, and in a batch of a model in this process."""

FIGURES = frozenset({"prompt_tokens", "completion_tokens", "cost"})

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
        names = [name for name in table.all_columns if name not in ignored]
        if table is CALLS:  # a probe's figures count its repeated requests
            names = [f"iif(role = 'probe', NULL, {name})" if name in FIGURES else name for name in names]
        columns = ", ".join(names)
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


def ledger(folder: Path, provider: SimulatedModelServer, in_flight: int) -> Iterator[str]:
    """Differences between the attempts in the file and the account of the server.

    Up to `in_flight` attempts may have been written down by processes that then died before they sent them.
    """
    with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
        attempts = [attempt for attempt in kb.attempts() if attempt.outcome not in (Outcome.UNSENT, Outcome.QUEUED)]
    outcomes = Counter(attempt.outcome for attempt in attempts)
    sure = outcomes[Outcome.ANSWERED] + outcomes[Outcome.REFUSED] + outcomes[Outcome.UNUSABLE]
    perhaps = len(attempts) - sure - outcomes[Outcome.ERROR]
    replies = len(provider.charged) + provider.repeated
    doubled = provider.faults.get("double request", 0)
    if replies < sure:
        yield f"ledger: {sure} answered, but the server answered {replies}"
    if replies > sure + perhaps + doubled:
        yield f"ledger: {sure} answered and {perhaps} perhaps, but the server answered {replies}"
    arrived = len(provider.served) + provider.repeated
    if arrived > len(attempts) + doubled:
        yield f"ledger: {len(attempts)} attempts, but {arrived} requests arrived"
    if len(attempts) > arrived + provider.faults.get("lost request", 0) + in_flight:
        yield f"ledger: {len(attempts)} attempts, but only {arrived} requests arrived"
    tokens = sum(attempt.prompt_tokens + attempt.completion_tokens for attempt in attempts)
    extra = sum(request.tokens for request in provider.charged if request.is_extra)
    if sum(request.tokens for request in provider.charged) > tokens + extra:
        yield f"ledger: {tokens} tokens, but the server charged more"


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
    charged: Counter[str]


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
            machine, place, provider = self._machine(scenario, 0)
            works = scenario.works(place)
            for work in works:
                _check_ended(machine.run([work]))
            found = content(place.folder, scenario)
            charged = Counter(request.body for request in provider.charged) if provider else Counter[str]()
            asked = Counter(request for batch in place.asked for request in batch)
            self._references[scenario.name] = ReferenceRun(found, machine.crossings, asked, charged)
            clean(place)
            gc.freeze()  # the modules that it imported: each run collects what is left of its processes
        return self._references[scenario.name]

    def _machine(self, scenario: Scenario, seed: int) -> tuple[Machine, ScenarioFolder, SimulatedModelServer | None]:
        provider = None
        if scenario.server:
            provider = SimulatedModelServer(ExclusionReader(world()))
        machine = Machine(self._folder / "world", seed, provider)
        place = ScenarioFolder(machine.folder, machine.disk, provider=provider)
        scenario.prepare(place)
        return machine, place, provider

    def _disturbed(
        self, scenario: Scenario, reference: ReferenceRun, seed: int, stream: random.Random, totals: Totals
    ) -> Iterator[str]:
        machine, place, provider = self._machine(scenario, seed)
        if provider is not None:
            provider.stream = random.Random(f"network {seed}")  # noqa: S311  no secret
            provider.fault_share = stream.choice((0.0, 0.0, 0.1, 0.3))
            provider.knows_keys = stream.random() < 0.5
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
                # A model in this process answers batch by batch, and the last one of each process may be lost.
                last = place.asked[-ended:] if ended else []
                in_flight += ended * IN_FLIGHT if provider else sum(map(len, last))
                yield from _tracebacks(processes)
                yield from torn_files(place.folder, earlier, reference.content)
            if provider is not None:
                totals.injected.update({f"network, {name}": count for name, count in provider.faults.items()})
                provider.fault_share = 0.0
            processes = machine.run(scenario.works(place))
            totals.runs += 1
            totals.injected += machine.disk.injected
            injected = sorted(machine.disk.injected.items())
            self.trace = f"{scenario.name}, {injected}, {sorted(machine.crossings.items())}, {machine.clock:.4f} s"
            yield from (f"undisturbed, it ends with {process.fault!r}" for process in processes if process.fault)
            yield from differences(content(place.folder, scenario), reference.content)
            yield from damages(place.folder)
            yield from _paid_again(place, provider, reference, in_flight)
            if provider is not None:
                yield from ledger(place.folder, provider, in_flight)
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


def _paid_again(
    place: ScenarioFolder, provider: SimulatedModelServer | None, reference: ReferenceRun, in_flight: int
) -> Iterator[str]:
    """Requests beyond those of the undisturbed run and those that were in flight when a process ended early."""
    expected, allowed = reference.asked, in_flight
    asked = Counter(request for batch in place.asked for request in batch)
    if provider is not None:
        asked = Counter(request.body for request in provider.charged if not request.is_extra)
        expected = reference.charged
        allowed += provider.faults.get("double request", 0)
    # On a server, an answer whose reply was lost is used if the server knows the key of the next attempt.
    if (missing := expected - asked) and provider is None:
        yield f"{missing.total()} requests were not asked"
    if (again := asked - expected).total() > allowed:
        yield f"{again.total()} requests were paid again, {allowed} may have been in flight"
