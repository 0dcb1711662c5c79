"""Commands that run on the simulated machine, and one seed: its faults, its runs, and what must hold after them."""

from __future__ import annotations

import gc
import logging
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import hapax
from hapax.engine.answers.derivation import read_statements
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.files.whole_files import atomic_text_file
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    Models,
)
from hapax.llm_oracle.rankers.frequency import FrequencyLikelihood
from hapax.llm_oracle.scripts.simulated import SimulatedModel, SimulatedWorld, SimulationSettings
from tools.comparison import differences
from tools.simulate.disk import DEATHS, ERRORS, Disk, DiskFault
from tools.simulate.machine import Machine, Work
from tools.simulate.scheduling import Stuck

RULES = """
functional was_invented_in(Tool, Year): "the [1] was invented in [2]" / "the [1] was not invented in [2]" / "?".
oracle is_part_of(Part, Machine): "[1] is part of [2]" / "[1] is not part of [2]" / "?".
given makes(Person, Part): "[1] makes [2]" / "[1] does not make [2]" / "?".
@name fits
is_part_of(Part A, Machine B) -> fits_into(Part A, Machine B).
@name repair
@generic X
makes(Person X, Part A) & fits_into(Part A, Machine B) -> can_mend(Person X, Machine B).
@name both
@generic X
makes(Person X, Part A) & is_part_of(Part A, Machine B) & can_mend(Person Y, Machine B) -> can_ask(Person X, Person Y).
"""
DERIVED = ("repair", "both")
SETTINGS = SearchSettings(beam=2)
DATABASE, EXPORT = "kb.db", "out.csv"


@cache
def rules() -> Library:
    """The rules of the world."""
    return hapax.parse_rules(RULES)


@cache
def world() -> SimulatedModel:
    """The model of a small world."""
    small = SimulationSettings(
        entities_per_type=6, facts_per_argument=2.0, recall=1.0, malformed=0.0, critic_recall=1.0
    )
    return SimulatedModel(SimulatedWorld(rules(), 12, small))


@dataclass
class ScenarioFolder:
    """The folder of a scenario, its disk, and the batches of requests that its model answered."""

    folder: Path
    disk: Disk
    asked: list[list[str]] = field(default_factory=list)

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def requests(self) -> Counter[str]:
        """Count of answers by request."""
        return Counter(chain.from_iterable(self.asked))


class NotedModel:
    """The model of the world, which notes each batch as soon as it is answered."""

    def __init__(self, place: ScenarioFolder) -> None:
        self.identity = world().identity
        self._place = place

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return self._noted(KNOWLEDGE, requests, world().generate, parameters)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return self._noted(CRITIC, claims, world().probabilities)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self._noted(LIKELIHOOD, texts, world().log_likelihoods)

    def _noted(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        requests = [f"{role} {request} {more}" for request in asked]
        self._place.disk.cross("answer", lambda: self._place.asked.append(requests))
        return list(answer(asked, *more))


@dataclass(frozen=True)
class Scenario:
    """A command, or several at a time.

    `prepare` fills the folder; `works` are the processes; `derives`: the tables of `derive` are compared, too.
    """

    name: str
    works: Callable[[ScenarioFolder], list[Work]]
    prepare: Callable[[ScenarioFolder], object] = lambda _: None
    derives: bool = False


# --- searches ---------------------------------------------------------------------------------------------------------


def search(place: ScenarioFolder) -> None:
    """A search, of which the model notes what it is asked."""
    model = NotedModel(place)
    with KnowledgeBase(place.database) as kb:
        hapax.search(rules(), kb, Models(model, model, model, FrequencyLikelihood()), SETTINGS, only="fits")


# --- without models ---------------------------------------------------------------------------------------------------


def give_facts(place: ScenarioFolder) -> None:
    """A knowledge base of given facts."""
    with KnowledgeBase(place.database) as kb:
        hapax.add_facts(kb, "makes", [(f"person {i % 6}", f"part {i}") for i in range(24)], rules())
        hapax.add_facts(kb, "is_part_of", [(f"part {i}", f"machine {i % 5}") for i in range(24)], rules())


def derive(place: ScenarioFolder) -> None:
    """Derive all statements."""
    with KnowledgeBase(place.database) as kb:
        hapax.derive(rules(), kb, only=DERIVED)


def write_facts(place: ScenarioFolder) -> None:
    """A file of facts to import."""
    lines = [f"makes,Person,Part,person {i % 7},part {i % 24}" for i in range(100, 140)]
    text = "\n".join(["predicate,type1,type2,value1,value2", *lines, ""])
    (place.folder / "facts.csv").write_text(text, "utf-8")


def import_facts(place: ScenarioFolder) -> None:
    """Import a file of facts."""
    with KnowledgeBase(place.database) as kb:
        mapping = hapax.TableMapping.of("makes", ["value1", "value2"])
        hapax.import_facts(kb, place.folder / "facts.csv", mapping=mapping, rules=rules())


def export(place: ScenarioFolder) -> None:
    """An export over an earlier one."""
    with KnowledgeBase(place.database, read_only=True) as kb, atomic_text_file(str(place.folder / EXPORT)) as stream:
        hapax.export_facts(kb, stream, form="csv")


def prepare_export(place: ScenarioFolder) -> None:
    """Facts, and an earlier export."""
    give_facts(place)
    (place.folder / EXPORT).write_text("an earlier export\n" * 100, "utf-8")


def _processes(*works: Callable[[ScenarioFolder], object]) -> Callable[[ScenarioFolder], list[Work]]:
    return lambda place: [partial(work, place) for work in works]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("search", _processes(search)),
        Scenario("two searches", _processes(search, search)),
        Scenario("three processes", _processes(search, import_facts, derive), write_facts),
        Scenario("derive", _processes(derive), give_facts, derives=True),
        Scenario("export", _processes(export), prepare_export),
    )
}


def clean(place: ScenarioFolder) -> None:
    """Remove the folder."""
    shutil.rmtree(place.folder, ignore_errors=True)


# --- seeds ------------------------------------------------------------------------------------------------------------


def beside_facts(folder: Path, scenario: Scenario) -> dict[str, str | None]:
    """The export of a folder and, where its scenario derives, the statements of each rule."""
    found: dict[str, str | None] = {EXPORT: export_of(folder)}
    if scenario.derives:
        with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
            for name in DERIVED:
                found[name] = "\n".join(sorted(map(repr, read_statements(kb, rules(), rules().rule(name)))))
    return found


def export_of(folder: Path) -> str | None:
    """The file that must appear complete or not at all; None if it is not there."""
    path = folder / EXPORT
    return path.read_text("utf-8", "replace") if path.is_file() else None


MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made in it


@dataclass(frozen=True)
class ReferenceRun:
    """An undisturbed run: a copy of its folder, what it left beside facts, and its crossings by kind."""

    folder: Path
    beside: dict[str, str | None]
    crossings: Counter[str]
    asked: Counter[str]

    def differences(self, folder: Path, scenario: Scenario) -> Iterator[str]:
        """A line for each part of a folder that is not as in this one."""
        for table, count in differences(folder / DATABASE, self.folder / DATABASE).items():
            if count:
                yield f"{table}: {count} rows are missing or too many"
        for name, text in beside_facts(folder, scenario).items():
            if text != self.beside[name]:
                yield f"{name} differs"


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

    def run(self, seed: int) -> list[str]:
        """Run a seed; returns what went wrong."""
        stream = random.Random(f"seed {seed}")  # noqa: S311  no secret
        scenario = SCENARIOS[self._only or stream.choice(list(SCENARIOS))]
        try:
            reference = self._reference(scenario)
            return [f"{scenario.name}: {failure}" for failure in self._disturbed(scenario, reference, seed, stream)]
        except Stuck as stuck:
            return [f"{scenario.name}: {stuck}"]
        except (sqlite3.Error, HapaxError) as fault:
            return [f"{scenario.name}: what is left cannot be read: {fault}"]

    def _reference(self, scenario: Scenario) -> ReferenceRun:
        if scenario.name not in self._references:
            machine, place = self._machine(scenario, 0)
            for work in scenario.works(place):
                for process in machine.run([work]):
                    if process.fault is not None:
                        raise process.fault
            copy = shutil.copytree(place.folder, self._folder / scenario.name)
            reference = ReferenceRun(copy, beside_facts(copy, scenario), machine.crossings, place.requests)
            self._references[scenario.name] = reference
            clean(place)
            gc.freeze()  # the modules that it imported: each run collects what is left of its processes
        return self._references[scenario.name]

    def _machine(self, scenario: Scenario, seed: int) -> tuple[Machine, ScenarioFolder]:
        machine = Machine(self._folder / "world", seed)
        place = ScenarioFolder(machine.folder, machine.disk)
        scenario.prepare(place)
        return machine, place

    def _disturbed(
        self, scenario: Scenario, reference: ReferenceRun, seed: int, stream: random.Random
    ) -> Iterator[str]:
        machine, place = self._machine(scenario, seed)
        in_flight = 0
        allowed = (None, export_of(place.folder), reference.beside[EXPORT])
        try:
            for _ in range(stream.choice((1, 1, 2, 3))):
                # Without faults only the order differs in which processes take turns.
                faults = [_drawn(stream, reference.crossings)] if stream.random() < 0.8 else []
                if faults and stream.random() < 0.3:
                    faults.append(_drawn(stream, reference.crossings))
                processes = machine.run(scenario.works(place), faults, stream.choice((0.0, 0.05, 0.3)))
                ended = sum(process.is_killed or process.fault is not None for process in processes)
                # The model answers batch by batch, and the last one of each process may be lost.
                in_flight += sum(map(len, place.asked[-ended:])) if ended else 0
                for process in processes:
                    if not (process.is_killed or isinstance(process.fault, HapaxError | OSError | None)):
                        yield f"it ends with {process.fault!r}, which no user should see"
                # Between the earlier file and the new one there may be none, but no part of one.
                if export_of(place.folder) not in allowed:
                    yield f"{EXPORT} is neither the earlier one nor the new one"
            processes = machine.run(scenario.works(place))
            injected = sorted(machine.disk.injected.items())
            self.trace = f"{scenario.name}, {injected}, {sorted(machine.crossings.items())}, {machine.clock:.4f} s"
            yield from (f"undisturbed, it ends with {process.fault!r}" for process in processes if process.fault)
            yield from reference.differences(place.folder, scenario)
            with KnowledgeBase(place.database, read_only=True) as kb:
                yield from (f"verify: {damage}" for damage in hapax.verify(kb).damages)
            if missing := reference.asked - place.requests:
                yield f"{missing.total()} requests were not asked"
            if (again := place.requests - reference.asked).total() > in_flight:
                yield f"{again.total()} requests were asked again, {in_flight} may have been in flight"
        finally:
            clean(place)


def _drawn(stream: random.Random, crossings: Counter[str]) -> DiskFault:
    """A fault at one of the crossings, each kind of which is as likely as any other."""
    kind = stream.choice(sorted(crossings))
    number = stream.randint(1, crossings[kind])
    if stream.random() < 0.7:
        return DiskFault(kind, number, stream.choice(DEATHS))
    return DiskFault(kind, number, stream.choice(list(ERRORS)), stream.choice((1, 1, 3, 10_000)))
