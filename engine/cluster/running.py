"""The ordinary search with a cluster's workers as its models: same rows, same report, and nothing asked twice.

The search writes the knowledge base as it always does, from answers in the order in which it asks for them. Workers and
walks only have the answers ready. With a budget there are no walks, because they would spend what the search may not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.cluster.gathering import Gathering, locked
from engine.cluster.owner import Opening, Reply, identities
from engine.cluster.routing import Owners, budgeted, routed
from engine.cluster.walking import Ahead, Walkers, Walking, Watched
from engine.oracle import model_name
from engine.report import SearchProgress, SearchReport, SearchSettings, Tally
from engine.search import search, unanswerable
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from kb.records import Source
from kb.store import KnowledgeBase
from llm_oracle.calls import Journal
from llm_oracle.protocols import Models

GATHERING_SECONDS = 2.0
WALKING_SECONDS = 0.1
"""Between two looks at the shards, and at the walks."""


class Cluster(Protocol):
    """Processes that answer and walk, from `workers` on until the block of `workers` ends."""

    def workers(self, opening: Opening, folder: Path) -> AbstractContextManager[Owners]: ...

    def walkers(self, ahead: Ahead) -> Walkers: ...


@dataclass(frozen=True, slots=True)
class Spread:
    """How a search is spread: over which cluster, which models its workers open, and where shards are kept."""

    cluster: Cluster
    opening: Opening
    folder: Path


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What the cluster did beside the search.

    `walks`, `walks_failed`: rules searched ahead; `faults`: why walks failed. `taken_in`: answers of an earlier run
    that was killed; `restarted`: workers that came back without their shard; `kept`: answers that this search did not
    need.
    """

    workers: int
    walks: int
    walks_failed: int
    faults: tuple[str, ...]
    taken_in: int
    restarted: int
    kept: int


def search_spread(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    spread: Spread,
    *,
    settings: SearchSettings,
    progress: SearchProgress | None = None,
    journal: Journal | None = None,
) -> tuple[SearchReport, ClusterReport]:
    """As `engine.search.search`; `models` are those that `spread.opening` opens, which are asked by the workers alone.

    From beginning to end no other process asks models for the knowledge base, because it could not see what walks ask.
    Raises HapaxError for a knowledge base in memory, where another process keeps asking for it, and where a worker
    opens other models or is gone for good. Whatever ends it early, the same call again goes on from what the workers
    answered.
    """
    if kb.path is None:
        raise HapaxError("A search on a cluster needs a knowledge base in a file. Name one.")
    journal = journal or Journal(kb)
    roles = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    names = {model_name(one) for one in roles}
    with locked(spread.folder), kb.asking(), spread.cluster.workers(spread.opening, spread.folder) as owners:
        gathering = Gathering(owners, spread.folder, kb.path, names)
        remote = routed(models, owners)
        ahead = Ahead(library, tuple(one for one in kb.facts() if one.source is Source.GIVEN), remote, settings)
        searched = [one.name for one in rules if unanswerable(one, library, remote) is None]
        walking = Walking(
            searched if journal.budget.is_unlimited else [], settings.rules_together, spread.cluster.walkers(ahead)
        )
        with ThreadPoolExecutor(1, "gathering") as thread:
            thread.submit(gathering.begin).result()
            _check(owners, models)
            with _beside(thread, gathering, walking):
                watched = Watched(progress or Tally(), walking)
                spending = budgeted(remote, models)
                report = search(library, rules, kb, spending, settings, progress=watched, journal=journal)
            kept = thread.submit(gathering.end).result()
    return report, ClusterReport(
        owners.count,
        walking.done,
        walking.failed,
        tuple(walking.faults),
        gathering.taken_in,
        gathering.restarted,
        kept,
    )


def _check(owners: Owners, models: Models) -> None:
    """Raises HapaxError where a worker cannot open the models, or opens others under their names."""
    replies: list[Reply] = [one.result() for one in [owners.begin(each, "identities") for each in range(owners.count)]]
    for number, reply in enumerate(replies):
        if reply.fault:
            raise HapaxError(f"Worker {number}: {reply.fault}")
        for here, there in zip(identities(models), reply.answers, strict=True):
            if here != there:
                raise HapaxError(
                    f"Worker {number} opened {here.name} as {there.revision or there.name}, this process as "
                    f"{here.revision or here.name}: their answers would differ. Give all machines the same files, "
                    "versions and --dtype."
                )


@contextmanager
def _beside(thread: ThreadPoolExecutor, gathering: Gathering, walking: Walking) -> Iterator[None]:
    """Walks go on and answers are gathered while the block runs; whatever ends it, what is answered is gathered."""
    over = threading.Event()

    def look() -> None:
        due = time.monotonic()
        while not over.wait(WALKING_SECONDS):
            walking.advance()
            if time.monotonic() >= due:
                gathering.gather()
                due = time.monotonic() + GATHERING_SECONDS
        walking.end()
        gathering.gather()

    looking = thread.submit(look)
    try:
        yield
    except BaseException:
        over.set()
        with suppress(HapaxError):  # what ended the block is what matters; the shards stay
            looking.result()
        raise
    over.set()
    looking.result()
