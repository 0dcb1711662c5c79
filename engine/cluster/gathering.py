"""Brings the workers' answers home, in batches and through the cluster: no folder has to be shared.

What is known when a run begins (the journal of the knowledge base, what earlier runs left here and in the workers'
folders) is told to the workers first. All of it happens in one thread beside the search.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.cluster.owner import PLACE
from engine.cluster.routing import Owners, owner_of
from grammar.errors import HapaxError
from kb.records import CallRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import PROBE

ROWS = 2000
"""Calls in one batch between a worker and home."""

GATHERED, LOCK = "gathered.db", "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder for this run alone; it goes if nothing is left in it. Raises HapaxError where another run uses it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HapaxError(
                f"{folder}: another search keeps its shards here. Wait for it, or name another folder by --shards."
            ) from None
        try:
            yield
        finally:
            if {path.name for path in folder.iterdir()} <= {LOCK, PLACE}:
                shutil.rmtree(folder)


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

    def begin(self) -> None:
        """Take in what earlier runs left, then tell the workers all that is known."""
        with KnowledgeBase(self.pool) as pool:
            places: dict[str, int] = {}
            for number in range(self.owners.count):
                places.setdefault(self._now(number, "place"), number)
            for number in places.values():
                for name in self._now(number, "left_over"):
                    self._take_in(pool, number, name)
        self._rows = [0] * self.owners.count
        self._tell(range(self.owners.count))

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

        Gives how many those are.
        """
        self.gather()
        kept = self._lacking()
        for number in range(self.owners.count):
            self._now(number, "close")
        for end in ("", "-wal", "-shm"):
            self.pool.with_name(GATHERED + end).unlink(missing_ok=True)
        if kept.exists():
            with KnowledgeBase(kept, read_only=True) as lacking:
                count = lacking.counts()["calls"]
            kept.rename(self.pool)
            return count
        return 0

    def _lacking(self) -> Path:
        """A file with the answers that the knowledge base lacks, if there are any."""
        path = self.folder / f"{GATHERED}.kept"
        path.unlink(missing_ok=True)
        with KnowledgeBase(self.pool, read_only=True) as pool, KnowledgeBase(self.database, read_only=True) as kb:
            for calls in _batches(pool):
                known = kb.calls([one.request_id for one in calls])
                if lacking := [one for one in calls if one.request_id not in known]:
                    with KnowledgeBase(path) as kept:
                        kept.record_calls(lacking)
        return path

    def _now(self, number: int, method: str, *arguments: Any) -> Any:
        return self.owners.begin(number, method, *arguments).result()


def _batches(kb: KnowledgeBase) -> Iterator[list[CallRecord]]:
    calls, row = kb.calls_after(0, ROWS)
    while calls:
        yield calls
        calls, row = kb.calls_after(row, ROWS)
