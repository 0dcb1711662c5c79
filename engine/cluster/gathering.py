"""Collects the workers' answers, in batches and through the cluster, so that no folder has to be shared.

The answers that are known when a run begins (those in the journal of the knowledge base, and those that earlier runs
left here and in the workers' folders) are sent to the workers first. All of it happens in one thread beside the search.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hapax.engine.cluster.calling import Owners
from hapax.engine.cluster.owner import PLACE
from hapax.engine.cluster.routing import owner_of
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb import own_files
from hapax.kb.record_store import RecordStore
from hapax.kb.records import ATTEMPTS, AttemptRecord, CallRecord
from hapax.kb.rows import OnConflict
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import publish
from hapax.llm_oracle.journal import PROBE

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
