"""Commands that run on the simulated machine, each with what it begins with and what it leaves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import hapax
from hapax.engine.search.settings import SearchSettings
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
from hapax.llm_oracle.scripts.simulated import SimulatedModel
from hapax.llm_oracle.scripts.simulated_world import SimulatedWorld, SimulationSettings
from tools.simulate.disk import Disk

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

Work = Callable[[], object]


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


def models(place: ScenarioFolder) -> Models:
    """The four roles by the noted model."""
    model = NotedModel(place)
    return Models(model, model, model, FrequencyLikelihood())


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
    with KnowledgeBase(place.database) as kb:
        hapax.search(rules(), kb, models(place), SETTINGS, only="fits")


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
