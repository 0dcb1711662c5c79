"""A search of shipped rules spread over workers in this process, whose model writes down what it is asked.

It goes into `spread.db` of a folder; every request that reaches the model is a line of `asked.log` there, by its number
in the journal.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from openai_fake import FakeServer

from hapax.engine.cluster.owner import Opening, Owner, Post
from hapax.engine.cluster.running import Ahead, ClusterReport, Spread, search_spread, walk
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library, Rule
from hapax.kb.connection import reading_uri
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, LIKELIHOOD, Models
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld
from tools.delegating import DelegatingModel

SHIPPED = Path(__file__).parents[3] / "rules"
SETTINGS = SearchSettings(beam=3, rules_together=1)
RULES = 6


@cache
def shipped(count: int = RULES) -> tuple[Library, list[Rule]]:
    """So many of the shipped rules, spread evenly, with their library."""
    library = load_library([SHIPPED])
    rules = [rule for rule in library.rules if not library.is_definition(rule)]
    return library, [rules[place * len(rules) // count] for place in range(count)]


class LoggingModel(DelegatingModel):
    """A model that writes the journal's id of each request to a file, and takes a while for each batch."""

    seconds = 0.0

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
        time.sleep(self.seconds)
        return list(answer(asked, *more))


@dataclass(frozen=True, slots=True)
class NotedOpening(Opening):
    """Opens the simulated model for all roles but the evaluator."""

    log: Path
    seconds: float = 0.0

    def open(self, journal: Journal, sharers: int) -> Models:
        model = noted(self.log, journal)
        model.seconds = self.seconds
        return Models(model, model, model, FrequencyLikelihood())


def noted(log: Path, journal: Journal) -> LoggingModel:
    model = SimulatedModel(SimulatedWorld(shipped()[0], 1))
    return LoggingModel(model, journal.store, log)  # type: ignore[arg-type]  # it only wraps


def opening(log: Path, seconds: float = 0.0) -> NotedOpening:
    return NotedOpening("simulated", None, None, "frequency", OpeningOptions(), log, seconds)


def alone(folder: Path) -> Path:
    """The search in one process; gives its knowledge base."""
    library, rules = shipped()
    with KnowledgeBase(folder / "alone.db") as kb:
        model = noted(folder / "alone.log", Journal(kb))
        search(SearchJob(library, rules, kb, Models(model, model, model, FrequencyLikelihood()), SETTINGS))
    return folder / "alone.db"


def spread(
    folder: Path, cluster: Any, seconds: float = 0.0, budget: Budget | None = None
) -> tuple[SearchReport, ClusterReport]:
    """The search spread over a cluster."""
    library, rules = shipped()
    with KnowledgeBase(folder / "spread.db") as kb:
        opened = opening(folder / "asked.log", seconds)
        journal = Journal(kb, budget)
        models = opened.open(journal, 1)
        job = SearchJob(library, rules, kb, models, SETTINGS, journal)
        return search_spread(job, Spread(cluster, opened, folder / "shards"))


def asked(folder: Path) -> list[str]:
    """The journal's numbers of the requests that reached the model, in order."""
    log = folder / "asked.log"
    return log.read_text("ascii").split("\n")[:-1] if log.exists() else []


def answered(folder: Path) -> set[str]:
    """The requests whose answers are on the disk, in the knowledge base or in a shard."""
    found: set[str] = set()
    for path in (folder / "spread.db", *(folder / "shards").glob("*.db")):
        try:
            with closing(sqlite3.connect(reading_uri(path), uri=True)) as connection:
                found |= {request_id for (request_id,) in connection.execute("SELECT request_id FROM calls")}
        except sqlite3.OperationalError:  # gone, or not yet a knowledge base
            continue
    return found


@dataclass
class Threads:
    """A cluster in this process: each worker is asked in one thread, and told in another."""

    worker_count: int
    post: list[Post] = field(default_factory=list)
    opened: Opening | None = None
    owners: list[Owner] = field(default_factory=list)
    fails: str = ""
    """Why every walk fails."""

    @property
    def count(self) -> int:
        return self.worker_count

    @contextmanager
    def workers(self, opening: Opening, folder: Path) -> Iterator[Threads]:
        self.opened = opening
        self.post = [Post(number, self.count, folder, f"{time.monotonic_ns():x}") for number in range(self.count)]
        self.owners = [Owner(post, opening) for post in self.post]
        self._asked = [ThreadPoolExecutor(1) for _ in self.owners]
        self._told = ThreadPoolExecutor(1)
        try:
            yield self
        finally:
            for executor in (*self._asked, self._told):
                executor.shutdown()

    def begin(self, number: int, method: str, *arguments: Any) -> Future[Any]:
        thread = self._asked[number] if method in ("ask", "identities") else self._told
        return thread.submit(lambda: getattr(self.owners[number], method)(*arguments))

    def restart(self, number: int) -> None:
        """The worker as it comes back after its process died: nothing is in its memory."""
        assert self.opened is not None
        self.owners[number] = Owner(self.post[number], self.opened)

    def walkers(self, ahead: Ahead) -> Walks:
        return Walks(ahead, self)


@dataclass
class Walks:
    """Walks, one at a time."""

    ahead: Ahead
    threads: Threads
    count: int = 1

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def begin(self, names: Sequence[str]) -> Future[str]:
        return self._thread.submit(lambda: self.threads.fails or walk(self.ahead, names))


def opening_at(fake: FakeServer, folder: Path) -> Opening:
    entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, "logprobs": "none", "completion": False}
    (folder / "models.yaml").write_text(json.dumps([entry]), encoding="utf-8")
    return Opening("openai:small", None, "frequency", "frequency", OpeningOptions(aliases=folder / "models.yaml"))
