"""A search with a cluster's workers as its models: the same rows and report as in one process, and nothing asked twice.

The search writes the knowledge base as always, from answers in the order in which it asks for them. Workers and walks
only prepare the answers. Under a budget there are no walks: they would spend what the search may not.

A walk searches some rules in a knowledge base in memory, with the workers as its models, and discards its result: the
answers stay in the workers' shards, from which they are gathered in batches and through the cluster, so that no folder
has to be shared. The answers that are known when a run begins (those in the journal of the knowledge base, and those
that earlier runs left here and in the workers' folders) are sent to the workers first. All about shards happens in one
thread beside the search.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Protocol

from hapax.engine.cluster.owner import PLACE, Opening, OwnerReply, identities
from hapax.engine.cluster.routing import Owners, Pending, budgeted, owner_of, routed
from hapax.engine.search.profile_choice import settled_job
from hapax.engine.search.progress import Progress
from hapax.engine.search.report import SearchReport, unanswerable
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library
from hapax.kb import own_files, system
from hapax.kb.record_store import RecordStore
from hapax.kb.records import ATTEMPTS, AttemptRecord, CallRecord, FactRecord, Source
from hapax.kb.rows import OnConflict
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import publish
from hapax.llm_oracle.journal import PROBE, Journal
from hapax.llm_oracle.protocols import Models

# --- rules searched ahead ---------------------------------------------------------------------------------------------

WALKS_PER_WORKER = 4
"""Walks for each worker at least, if there are enough rules, so that all workers are busy to the end."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """Common data of all walks of a run. `given`: the facts that users gave; `models` ask the workers."""

    library: Library
    given: tuple[FactRecord, ...]
    models: Models
    settings: SearchSettings


def walk(ahead: Ahead, names: Sequence[str]) -> str:
    """Search the rules with these names, and return the error that ended it early, or an empty text."""
    try:
        with KnowledgeBase() as kb:
            kb.add_facts(ahead.given)
            rules = [ahead.library.rule(name) for name in names]
            search(SearchJob(ahead.library, rules, kb, ahead.models, ahead.settings, Journal(kb)))
    except HapaxError as fault:
        return str(fault)
    return ""


class Walkers(Protocol):
    """Processes that walk, at most `count` walks at a time."""

    @property
    def count(self) -> int: ...

    def begin(self, names: Sequence[str]) -> Pending: ...


@dataclass
class Walking:
    """The walks of a run, which keep ahead of the rules that the search itself has reached.

    `names`: of the rules, in the order of the search. `together`: the most rules in one walk. `done` and `failed` count
    walks; rules that the search reached before a walk began are in neither.
    """

    names: Sequence[str]
    together: int
    walkers: Walkers
    done: int = 0
    failed: int = 0
    faults: dict[str, None] = field(default_factory=dict)
    _reached: int = 0
    _next: int = 0
    _walks: list[Pending] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of rules in one walk."""
        return max(1, min(self.together, len(self.names) // (WALKS_PER_WORKER * self.walkers.count)))

    def reached(self, names: Sequence[str]) -> None:
        """Leave out these rules, whose search begins now. May be called from another thread."""
        self._reached = self.names.index(names[-1]) + 1 if self.names else 0

    def advance(self) -> None:
        """Count the walks that ended, and begin others in their place."""
        running = []
        for pending in self._walks:
            if pending.done():
                self._count(pending)
            else:
                running.append(pending)
        # The search has overtaken the walks: what it reached needs no walk.
        self._next = max(self._next, self._reached)
        while self._next < len(self.names) and len(running) < self.walkers.count:
            names = self.names[self._next : self._next + self.size]
            self._next += len(names)
            running.append(self.walkers.begin(names))
        self._walks = running

    def end(self) -> None:
        """Cancel all walks, because the search is over."""
        self._next = len(self.names)
        for pending in self._walks:
            pending.cancel()
        self._walks = []

    def _count(self, pending: Pending) -> None:
        try:
            fault = pending.result()
        except HapaxError as error:
            fault = str(error)
        if fault:
            self.failed += 1
            self.faults[fault] = None
        else:
            self.done += 1


# --- answers brought home ---------------------------------------------------------------------------------------------

ROWS = 2000
"""Calls in one batch between a worker and the search."""

GATHERED, KEPT, LOCK = "gathered.db", "gathered.db.kept", "lock"

MADE = b"This folder goes once nothing else is in it.\n"
"""Content of the lock file in a folder that a search made. Any search may remove such a folder once it is empty."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder for this run; at the end remove it if a search made it and nothing is left in it.

    Raises HapaxError if another run uses the folder, or if it cannot be locked.
    """
    try:
        file = _lock_file(folder)
    except BlockingIOError:
        raise HapaxError(
            f"{folder}: another search keeps its shards here.",
            Remedy("Wait for it to end, or name another folder with {}.", Setting("shards")),
        ) from None
    except OSError as error:
        raise HapaxError(
            f"{folder}: shards cannot be kept here, because {error.filename or folder / LOCK} cannot be "
            f"created and locked ({error.strerror}).",
            Remedy("Name a writable folder on a local disk with {}.", Setting("shards")),
        ) from error
    with file:
        try:
            yield
        finally:
            if {path.name for path in folder.iterdir()} <= {LOCK, PLACE}:
                own_files.remove(folder / PLACE)
                if own_files.read(folder / LOCK).startswith(MADE):
                    own_files.remove(folder / LOCK)
                    with suppress(OSError):  # a file was added meanwhile
                        folder.rmdir()


def _lock_file(folder: Path) -> IO[bytes]:
    """The lock file, open and locked."""
    while True:
        own_files.check_folder(folder)
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(own_files.open_file(folder / LOCK, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink:  # otherwise its last owner deleted it before it was locked here
                if made:
                    file.write(MADE)
                    file.flush()
                return file
        except BaseException:
            file.close()
            raise
        # Its last owner deleted the file after it was opened here: lock the one that is there now.
        file.close()


@dataclass
class Gathering:
    """Collected answers, in `folder`; `database` is the knowledge base. All methods belong to one thread.

    `models`: names, as in the journal, of the models whose answers the workers must know. `taken_in`: number of answers
    that earlier runs left in the workers' folders. `restarted`: number of workers that came back without a shard.
    """

    owners: Owners
    folder: Path
    database: Path
    models: Collection[str]
    taken_in: int = 0
    restarted: int = 0
    _rows: list[int] = field(default_factory=list)

    @property
    def pool(self) -> Path:
        return self.folder / GATHERED

    @property
    def kept(self) -> Path:
        """File in which `end` collects the answers to keep."""
        return self.folder / KEPT

    def begin(self) -> None:
        """Collect the answers that earlier runs left, then send all known answers to the workers."""
        for path in (self.pool, self.kept):
            if path.is_symlink():
                raise HapaxError(f"{path}: it is a symbolic link, and Hapax follows none there. Remove it.")
        with KnowledgeBase(self.pool) as pool:
            if self.kept.exists():  # a run was killed during its `end`
                with KnowledgeBase(self.kept) as kept:
                    for calls in _batches(kept):
                        pool.record_calls(calls)
                _delete(self.kept)
            # Workers on one machine share a folder: one of them is asked for what is in it.
            places: dict[str, int] = {}
            for number in range(self.owners.count):
                places.setdefault(self._now(number, "place"), number)
            for number in places.values():
                for name in self._now(number, "left_over"):
                    self._take_in(pool, number, name)
        # `_seed` sets the row after which a worker's answers are new.
        self._rows = [0] * self.owners.count
        self._seed(range(self.owners.count))

    def _take_in(self, pool: KnowledgeBase, number: int, name: str) -> None:
        """Collect the answers of a shard that an earlier run left, and delete it."""
        calls, row = self._now(number, "left_after", name, 0, ROWS)
        before = pool.counts()["calls"]
        while calls:
            pool.record_calls(calls)
            calls, row = self._now(number, "left_after", name, row, ROWS)
        self.taken_in += pool.counts()["calls"] - before
        self._enter(self._now(number, "left_attempts", name))
        self._now(number, "forget", name)

    def _seed(self, numbers: Collection[int]) -> None:
        """Send each known answer to its worker, and the capabilities of servers to all workers."""
        for path in (self.pool, self.database):
            with KnowledgeBase(path, read_only=True) as source:
                # Probes of servers are not answers to requests, and every worker needs them.
                for calls in _batches(source):
                    relevant = [call for call in calls if call.role == PROBE or call.model in self.models]
                    self._send(relevant, numbers)
        for number in numbers:
            self._rows[number] = self._now(number, "finish_seeding")

    def _send(self, calls: Collection[CallRecord], numbers: Collection[int]) -> None:
        count = self.owners.count
        sent = []
        for number in numbers:
            own = [call for call in calls if call.role == PROBE or owner_of(call.request_id, count) == number]
            if own:
                sent.append(self.owners.begin(number, "take_in", own))
        for pending in sent:
            pending.result()

    def gather(self) -> None:
        """Collect the new answers in the workers' shards, and seed workers that came back without their shard."""
        if lost := [number for number in range(self.owners.count) if not self._now(number, "is_seeded")]:
            self.restarted += len(lost)
            self._seed(lost)
        with KnowledgeBase(self.pool) as pool:
            for number in range(self.owners.count):
                calls, row = self._now(number, "after", self._rows[number], ROWS)
                while calls:
                    pool.record_calls(calls)
                    self._rows[number] = row
                    calls, row = self._now(number, "after", row, ROWS)

    def end(self) -> int:
        """Delete shards and collected answers, except those that the knowledge base has not. Returns their number."""
        self.gather()
        count = self._set_aside()
        # Wherever this is killed, each answer is in some file that `begin` reads.
        _delete(self.pool)
        if count:
            publish(self.kept, self.pool)
        # Shards go last: until then they have every answer.
        for number in range(self.owners.count):
            self._enter(self._now(number, "attempts"))
            self._now(number, "close")
        return count

    def _enter(self, attempts: Sequence[AttemptRecord]) -> None:
        """Write requests that workers sent into the ledger of the knowledge base, each once."""
        if attempts:
            with RecordStore(self.database) as ledger:
                ledger.add(ATTEMPTS, attempts, OnConflict.BEST)

    def _set_aside(self) -> int:
        """Write the answers that are not in the knowledge base to a file of their own, and return their number."""
        count = 0
        with KnowledgeBase(self.pool, read_only=True) as pool, KnowledgeBase(self.database, read_only=True) as kb:
            for calls in _batches(pool):
                known = kb.calls([call.request_id for call in calls])
                if unknown := [call for call in calls if call.request_id not in known]:
                    with KnowledgeBase(self.kept) as kept:
                        kept.record_calls(unknown)
                    count += len(unknown)
        return count

    def _now(self, number: int, method: str, *arguments: Any) -> Any:
        return self.owners.begin(number, method, *arguments).result()


def _delete(database: Path) -> None:
    # SQLite keeps a log and its index beside a database.
    for suffix in ("", "-wal", "-shm"):
        own_files.remove(database.with_name(database.name + suffix))


def _batches(kb: KnowledgeBase) -> Iterator[list[CallRecord]]:
    calls, row = kb.calls_after(0, ROWS)
    while calls:
        yield calls
        calls, row = kb.calls_after(row, ROWS)


# --- the search -------------------------------------------------------------------------------------------------------

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
