"""Brings the workers' answers home, in batches and through the cluster: no folder has to be shared.

What is known when a run begins (the journal of the knowledge base, what earlier runs left here and in the workers'
folders) is told to the workers first. All of it happens in one thread beside the search.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from engine.cluster.owner import PLACE
from engine.cluster.routing import Owners, owner_of
from grammar.errors import HapaxError
from kb.records import CallRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import PROBE

ROWS = 2000
"""Calls in one batch between a worker and home."""

GATHERED, KEPT, LOCK = "gathered.db", "gathered.db.kept", "lock"

MADE = b"This folder goes once nothing else is in it.\n"
"""What the lock's file says in a folder that a search made, whichever: nobody else will miss it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder for this run alone; one that a search made goes if nothing is left in it.

    Raises HapaxError where another run uses it, or where it cannot be locked.
    """
    try:
        file = _held(folder)
    except BlockingIOError:
        raise HapaxError(
            f"{folder}: another search keeps its shards here. Wait for it, or name another folder by --shards."
        ) from None
    except OSError as error:
        raise HapaxError(
            f"{folder}: shards cannot be kept here, because {error.filename or folder / LOCK} cannot be made and "
            f"locked ({error.strerror}). Name a folder on a local disk that you may write to by --shards."
        ) from error
    with file:
        try:
            yield
        finally:
            if {path.name for path in folder.iterdir()} <= {LOCK, PLACE}:
                (folder / PLACE).unlink(missing_ok=True)
                if (folder / LOCK).read_bytes().startswith(MADE):
                    (folder / LOCK).unlink()
                    with suppress(OSError):  # somebody has just put something there
                        folder.rmdir()


def _held(folder: Path) -> IO[bytes]:
    """The lock's file, open and locked."""
    while True:
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink:
                if made:
                    file.write(MADE)
                    file.flush()
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its last holder has deleted it meanwhile


@dataclass
class Gathering:
    """What was gathered, in `folder`; `database` is the knowledge base. Its methods belong to one thread.

    `models`: of which the workers must know the answers, as the journal names them. `taken_in`: answers that earlier
    runs left in the workers' folders; `restarted`: how often a worker came back without its shard.
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
        """Where `end` sets aside what stays."""
        return self.folder / KEPT

    def begin(self) -> None:
        """Take in what earlier runs left, then tell the workers all that is known."""
        with KnowledgeBase(self.pool) as pool:
            self._take_back(pool)
            places: dict[str, int] = {}
            for number in range(self.owners.count):
                places.setdefault(self._now(number, "place"), number)
            for number in places.values():
                for name in self._now(number, "left_over"):
                    self._take_in(pool, number, name)
        self._rows = [0] * self.owners.count
        self._tell(range(self.owners.count))

    def _take_back(self, pool: KnowledgeBase) -> None:
        """What a run had set aside that was killed at its end."""
        if self.kept.exists():
            with KnowledgeBase(self.kept) as kept:
                for calls in _batches(kept):
                    pool.record_calls(calls)
            _delete(self.kept)

    def _take_in(self, pool: KnowledgeBase, number: int, name: str) -> None:
        calls, row = self._now(number, "left_after", name, 0, ROWS)
        before = pool.counts()["calls"]
        while calls:
            pool.record_calls(calls)
            calls, row = self._now(number, "left_after", name, row, ROWS)
        self.taken_in += pool.counts()["calls"] - before
        self._now(number, "forget", name)

    def _tell(self, numbers: Collection[int]) -> None:
        """Everything known goes to its worker, and what was found out about servers to all of them."""
        for path in (self.pool, self.database):
            with KnowledgeBase(path, read_only=True) as source:
                for calls in _batches(source):
                    relevant = [one for one in calls if one.role == PROBE or one.model in self.models]
                    self._send(relevant, numbers)
        for number in numbers:
            self._rows[number] = self._now(number, "finish_seeding")

    def _send(self, calls: Collection[CallRecord], numbers: Collection[int]) -> None:
        told = []
        for number in numbers:
            own = [one for one in calls if one.role == PROBE or owner_of(one.request_id, self.owners.count) == number]
            if own:
                told.append(self.owners.begin(number, "take_in", own))
        for one in told:
            one.result()

    def gather(self) -> None:
        """What is new in the workers' shards. A worker that came back without its shard is told what is known."""
        if lost := [number for number in range(self.owners.count) if not self._now(number, "is_seeded")]:
            self.restarted += len(lost)
            self._tell(lost)
        with KnowledgeBase(self.pool) as pool:
            for number in range(self.owners.count):
                calls, row = self._now(number, "after", self._rows[number], ROWS)
                while calls:
                    pool.record_calls(calls)
                    self._rows[number] = row
                    calls, row = self._now(number, "after", row, ROWS)

    def end(self) -> int:
        """The search is over: delete shards and what was gathered but for answers that the knowledge base lacks.

        Gives how many those are. Wherever it is killed, each answer is in some file that `begin` looks into.
        """
        self.gather()
        count = self._set_aside()
        _delete(self.pool)
        if count:
            self.kept.replace(self.pool)
        for number in range(self.owners.count):
            self._now(number, "close")
        return count

    def _set_aside(self) -> int:
        """Write the answers that the knowledge base lacks, if there are any, to a file of their own; gives how many."""
        count = 0
        with KnowledgeBase(self.pool, read_only=True) as pool, KnowledgeBase(self.database, read_only=True) as kb:
            for calls in _batches(pool):
                known = kb.calls([one.request_id for one in calls])
                if lacking := [one for one in calls if one.request_id not in known]:
                    with KnowledgeBase(self.kept) as kept:
                        kept.record_calls(lacking)
                    count += len(lacking)
        return count

    def _now(self, number: int, method: str, *arguments: Any) -> Any:
        return self.owners.begin(number, method, *arguments).result()


def _delete(database: Path) -> None:
    for end in ("", "-wal", "-shm"):
        database.with_name(database.name + end).unlink(missing_ok=True)


def _batches(kb: KnowledgeBase) -> Iterator[list[CallRecord]]:
    calls, row = kb.calls_after(0, ROWS)
    while calls:
        yield calls
        calls, row = kb.calls_after(row, ROWS)
