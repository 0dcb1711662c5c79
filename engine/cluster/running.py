"""A search with a cluster's workers as its models: the same rows and report as in one process, and nothing asked twice.

The search writes the knowledge base as always, from answers in the order in which it asks for them. Workers and walks
only prepare the answers. Under a budget there are no walks: they would spend what the search may not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from hapax.engine.cluster.calling import Owners
from hapax.engine.cluster.gathering import Gathering, locked
from hapax.engine.cluster.owner import Opening, OwnerReply, identities
from hapax.engine.cluster.routing import budgeted, routed
from hapax.engine.cluster.walking import Ahead, Walkers, Walking
from hapax.engine.search.profile_choice import settled_job
from hapax.engine.search.progress import Progress
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search, unanswerable
from hapax.engine.search.settings import SearchJob
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb import system
from hapax.kb.records import Source
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models

GATHERING_SECONDS = 2.0
"""Interval at which answers are gathered from the shards."""

WALKING_SECONDS = 0.1
"""Interval at which finished walks are replaced by new ones."""


class Cluster(Protocol):
    """Processes that answer and walk, from `workers` on until its block ends."""

    def workers(self, opening: Opening, folder: Path) -> AbstractContextManager[Owners]: ...

    def walkers(self, ahead: Ahead) -> Walkers: ...


@dataclass(frozen=True, slots=True)
class Spread:
    """Where and how a search is spread: the cluster, the models that its workers open, and the folder of shards."""

    cluster: Cluster
    opening: Opening
    folder: Path


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """Work of the cluster beside the search.

    `walks`, `walks_failed`: numbers of walks, each some rules searched ahead; `faults`: why walks failed. `taken_in`:
    answers of an earlier run that was killed. `restarted`: workers that came back without their shard. `kept`: answers
    that this search did not need.
    """

    workers: int
    walks: int
    walks_failed: int
    faults: tuple[str, ...]
    taken_in: int
    restarted: int
    kept: int


def search_spread(job: SearchJob, spread: Spread) -> tuple[SearchReport, ClusterReport]:
    """Search a job on a cluster; the result is that of `engine.search.search`.

    The job's models are those that `spread.opening` opens; only the workers ask them. No other process may ask models
    for the knowledge base meanwhile, because it could not see what walks ask. After any interruption, the same call
    goes on from what the workers answered.

    Raises HapaxError for a knowledge base in memory, if another process is asking for it, if a worker opens other
    models, and if a worker is gone for good.
    """
    path = job.kb.path
    if path is None:
        raise HapaxError("A search on a cluster needs a knowledge base in a file. Give the file's name.")
    journal, models = job.journal or Journal(job.kb), job.models
    # Here, because walks need the words of the questions before the search begins.
    job = settled_job(job, journal)
    names = {model.identity.title for model in (models.knowledge, models.critic, models.likelihood, models.evaluator)}
    with locked(spread.folder), job.kb.asking(), spread.cluster.workers(spread.opening, spread.folder) as owners:
        gathering = Gathering(owners, spread.folder, path, names)
        # Walks get the routed models as they are; the search's own keep the budget (`budgeted`).
        remote = routed(models, owners)
        given = tuple(fact for fact in job.kb.facts() if fact.source is Source.GIVEN)
        walkers = spread.cluster.walkers(Ahead(job.library, given, remote, job.settings))
        preset = job.settings.order
        searched = [rule.name for rule in job.rules if unanswerable(rule, job.library, remote, preset) is None]
        walking = Walking(searched if journal.budget.is_unlimited else [], job.settings.rules_together, walkers)
        # SQLite connections belong to one thread, so everything about the shards happens in this one.
        with ThreadPoolExecutor(1, "gathering") as thread:
            thread.submit(gathering.begin).result()
            # Checked after seeding, because probing servers again would cost requests.
            _check_models(owners, models)
            with _beside(thread, gathering, walking):

                def show(progress: Progress) -> None:
                    walking.reached(progress.current)
                    if job.progress is not None:
                        job.progress(progress)

                report = search(replace(job, models=budgeted(remote, models), journal=journal, progress=show))
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


def _check_models(owners: Owners, models: Models) -> None:
    """Raises HapaxError if a worker cannot open the models, or opens others under their names."""
    # Begun for all first, so that they open their models side by side.
    pending = [owners.begin(number, "identities") for number in range(owners.count)]
    replies: list[OwnerReply] = [call.result() for call in pending]
    for number, reply in enumerate(replies):
        if reply.fault:
            raise HapaxError(f"Worker {number}: {reply.fault}")
        for here, there in zip(identities(models), reply.answers, strict=True):
            if here != there:
                raise HapaxError(
                    f"Worker {number} opened {here.name} as {there.revision or there.name}, this process "
                    f"as {here.revision or here.name}: their answers would differ.",
                    Remedy("Give all machines the same files, versions and {}.", Setting("dtype")),
                )


@contextmanager
def _beside(thread: ThreadPoolExecutor, gathering: Gathering, walking: Walking) -> Iterator[None]:
    """Advance the walks and gather answers while the block runs, and once more when it ends in whatever way."""
    ended = threading.Event()

    def work() -> None:
        due = system.monotonic()
        while not ended.wait(WALKING_SECONDS):
            walking.advance()
            if system.monotonic() >= due:
                gathering.gather()
                due = system.monotonic() + GATHERING_SECONDS
        walking.end()
        gathering.gather()

    working = thread.submit(work)
    try:
        yield
    except BaseException:
        ended.set()
        with suppress(HapaxError):  # what ended the block is what matters; the shards stay
            working.result()
        raise
    ended.set()
    working.result()
