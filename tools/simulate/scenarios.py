"""Commands that run on the simulated machine, each with what it begins with and what it leaves."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import hapax
from benchmarks.server import ExclusionReader, reply_to
from hapax.api.browser.judging import Cells, Judging
from hapax.api.browser.tables import Wanted
from hapax.engine.search.settings import SearchSettings
from hapax.evaluation.dataset import build
from hapax.evaluation.dataset.selection import SelectionOptions, Target
from hapax.evaluation.votes.items import subject_id
from hapax.evaluation.votes.questions import VotingItem
from hapax.grammar.rules import Library
from hapax.kb import spill, system
from hapax.kb.store import SPILL_SECONDS, KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.backends.openai_batch import BatchQueue, Queued
from hapax.llm_oracle.journal import Journal
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
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings
from tools.simulate.disk import Disk
from tools.simulate.network import URL, ServedRequest, SimulatedModelServer

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
DATABASE, TARGET = "kb.db", "dataset"

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
    """The folder of a scenario, its disk, and the batches of requests that the model in this process answered.

    `provider`: the server, if there is one.
    """

    folder: Path
    disk: Disk
    asked: list[list[str]] = field(default_factory=list)
    provider: SimulatedModelServer | None = None

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

    `prepare` fills the folder; `works` are the processes; `server`: it needs one.
    `derives`: the tables of `derive` are compared, too. `together`: the undisturbed processes run at a time, not one
    after the other, because what they do depends on each other.
    """

    name: str
    works: Callable[[ScenarioFolder], list[Work]]
    prepare: Callable[[ScenarioFolder], object] = lambda _: None
    server: bool = False
    derives: bool = False
    together: bool = False


# --- searches ---------------------------------------------------------------------------------------------------------


def search(place: ScenarioFolder) -> None:
    """A search with the model in this process."""
    with KnowledgeBase(place.database) as kb:
        hapax.search(rules(), kb, models(place), SETTINGS, only="fits")


def search_served(place: ScenarioFolder) -> None:
    """A search with a model on the server."""
    with KnowledgeBase(place.database) as kb:
        served = hapax.open_models(f"openai:simulated@{URL}", likelihood="frequency", journal=Journal(kb))
        hapax.search(rules(), kb, served, SETTINGS, only="fits")


def search_queued(place: ScenarioFolder) -> None:
    """A search whose requests are answered as batches, round after round."""
    queue, results = place.folder / "next.jsonl", place.folder / "answered.jsonl"
    while True:
        batch = BatchQueue(queue, [results] if results.exists() else [])
        with KnowledgeBase(place.database) as kb:
            served = hapax.open_models(
                f"openai:simulated@{URL}", likelihood="frequency", journal=Journal(kb), queue=batch
            )
            try:
                hapax.search(rules(), kb, served, SETTINGS, only="fits")
            except Queued:
                pass
            except BaseException:
                batch.discard()
                raise
        batch.land()
        if not batch.count:
            return
        _answer_batch(place, queue, results)


def _answer_batch(place: ScenarioFolder, queue: Path, results: Path) -> None:
    """The results of a batch that somebody sent: a whole file, or none."""
    lines, charged = [], []
    for text in queue.read_text("utf-8").splitlines():
        request = json.loads(text)
        reply = reply_to(ExclusionReader(world()), request["url"], request["body"])
        response = {"status_code": 200 if reply else 404, "body": reply or {"error": {"message": "no such page"}}}
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": response}) + "\n")
        if reply:
            charged.append(ServedRequest(request["custom_id"], 200, sum(reply["usage"].values()), False))
    earlier = results.read_text("utf-8") if results.exists() else ""

    def receive() -> None:
        place.disk.receive(results, (earlier + "".join(lines)).encode())
        if place.provider is not None:
            place.provider.served += charged

    place.disk.cross("answer", receive)


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


@cache
def _searched() -> bytes:
    """The file of an undisturbed search, whose statements are judged and written."""
    with tempfile.TemporaryDirectory() as folder:
        place = ScenarioFolder(Path(folder), Disk(Path(folder), 0))
        search(place)
        return place.database.read_bytes()


def prepare_searched(place: ScenarioFolder) -> None:
    """The knowledge base of a search."""
    place.database.write_bytes(_searched())


def prepare_spilled(place: ScenarioFolder) -> None:
    """A new knowledge base, and the answers of a whole search beside it."""
    with tempfile.TemporaryDirectory() as folder:
        searched = Path(folder) / DATABASE
        searched.write_bytes(_searched())
        with KnowledgeBase(searched, read_only=True) as kb:
            calls = list(kb.calls().values())
    KnowledgeBase(place.database).close()
    spill.append(place.database, calls)


def hold_lock(place: ScenarioFolder) -> None:
    """Another program, which locks the file for writing again and again."""
    with KnowledgeBase(place.database) as kb:
        for _ in range(4):
            with kb.transaction():
                system.sleep(3 * SPILL_SECONDS)
            system.sleep(SPILL_SECONDS / 10)


def judge(place: ScenarioFolder, voter: str) -> None:
    """A browser tab in which a voter judges all statements. Raises RuntimeError if a stored vote is gone."""
    judging = Judging(place.database)
    items: list[VotingItem] = []
    with KnowledgeBase(place.database, read_only=True) as kb:
        while (shown := judging.next(kb, "soundness", voter, Wanted(), skip=len(items))) is not None:
            items.append(shown.item)
    for item in items:
        question = item.questions[0]
        number = sum(map(ord, item.id + voter)) % len(question.choices)
        judging.vote("soundness", voter, item.id, question.key, Cells(question.choices[number]))
    with KnowledgeBase(place.database, read_only=True) as kb:
        stored = {vote.statement_id for vote in kb.votes() if vote.voter == voter}
    if gone := {subject_id(item.id) for item in items} - stored:
        raise RuntimeError(f"{len(gone)} stored votes are gone")


def write_dataset(place: ScenarioFolder) -> None:
    """Write a dataset, in place of an earlier one."""
    with KnowledgeBase(place.database, read_only=True) as kb:
        build.write_dataset(kb, Target(place.folder / TARGET, ("jsonl",), force=True), SelectionOptions())


def prepare_dataset(place: ScenarioFolder) -> None:
    """A dataset of other statements is there already."""
    prepare_searched(place)
    write_dataset(place)
    (place.folder / TARGET / "old.txt").write_text("an earlier dataset", "utf-8")


def export(place: ScenarioFolder) -> None:
    """An export over an earlier one."""
    from hapax.kb.whole_files import atomic_text_file

    with KnowledgeBase(place.database, read_only=True) as kb, atomic_text_file(str(place.folder / "out.csv")) as stream:
        hapax.export_facts(kb, stream, form="csv")


def prepare_export(place: ScenarioFolder) -> None:
    """Facts, and an earlier export."""
    give_facts(place)
    (place.folder / "out.csv").write_text("an earlier export\n" * 100, "utf-8")


def _processes(*works: Callable[[ScenarioFolder], object]) -> Callable[[ScenarioFolder], list[Work]]:
    return lambda place: [partial(work, place) for work in works]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("search", _processes(search)),
        Scenario("search on a server", _processes(search_served), server=True),
        Scenario("two searches", _processes(search, search)),
        Scenario("three processes", _processes(search, import_facts, derive), write_facts),
        Scenario("answers beside the file", _processes(search), prepare_spilled),
        Scenario("locked file", _processes(search, hold_lock), together=True),
        Scenario("queue", _processes(search_queued), server=True),
        Scenario("derive", _processes(derive), give_facts, derives=True),
        Scenario("dataset", _processes(write_dataset), prepare_dataset),
        Scenario("export", _processes(export), prepare_export),
        Scenario("judging", _processes(partial(judge, voter="ann"), partial(judge, voter="bob")), prepare_searched),
    )
}


def clean(place: ScenarioFolder) -> None:
    """Remove the folder."""
    shutil.rmtree(place.folder, ignore_errors=True)
