"""A worker of a cluster: opens the models, answers the requests that are its own, and keeps each answer in its shard.

A shard is a knowledge base with nothing but calls. An answer is on the worker's disk before it is given out, so a
worker that is killed and started again on its machine asks nothing twice.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from engine.oracle import journaled
from grammar.errors import HapaxError
from kb.records import CallRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, Journal
from llm_oracle.protocols import ModelIdentity, Models, Streaming
from llm_oracle.registry import OpeningOptions, open_models

SHARDS = "shard-*"
"""Shards, and what lies beside them."""

PLACE = "place"
"""The file with a folder's mark."""

SEEDED = ".seeded"
"""The ending of the empty file that says that a shard has got what was known before it was begun."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The models that each worker opens, by role as for `open_models`. `options` without queue and journal."""

    knowledge: str
    critic: str | None
    likelihood: str | None
    evaluator: str
    options: OpeningOptions

    def open(self, journal: Journal, sharers: int) -> Models:
        """The models of one of so many workers. Raises HapaxError as `open_models` does."""
        options = replace(self.options, journal=journal, sharers=sharers)
        return open_models(self.knowledge, self.critic, self.likelihood, self.evaluator, options)


@dataclass(frozen=True, slots=True)
class Post:
    """A worker's place: which of how many it is, the folder of its shard, and the run that begins the shard."""

    number: int
    count: int
    folder: Path
    run: str

    @property
    def shard(self) -> Path:
        return self.folder / f"shard-{self.run}-{self.number}.db"

    @property
    def seeded(self) -> Path:
        return self.shard.with_suffix(SEEDED)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answers in the order of their requests. `fault`: why there are none; `seeded` False: it is too early to ask."""

    answers: tuple[Any, ...] = ()
    fault: str = ""
    seeded: bool = True


class Shard:
    """The calls in a worker's file, for any thread: each has a connection of its own."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._open = threading.local()

    @property
    def kb(self) -> KnowledgeBase:
        if not hasattr(self._open, "kb"):
            self._post.folder.mkdir(parents=True, exist_ok=True)
            self._open.kb = KnowledgeBase(self._post.shard)
        kb: KnowledgeBase = self._open.kb
        return kb

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:
        return self.kb.calls(request_ids)

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        self.kb.record_calls(calls)


class Opens(Protocol):
    """What opens a worker's models: an `Opening`, or what stands for one."""

    def open(self, journal: Journal, sharers: int) -> Models: ...


class Owner:
    """One worker. What fails is told in a `Reply`, because exceptions do not cross every cluster whole.

    `ask` may be called from several threads at once; a request that one of them has sent the others wait for. All that
    concerns shards is called from one other thread.
    """

    def __init__(self, post: Post, opening: Opens) -> None:
        self._post = post
        self._opening = opening
        self._shard = Shard(post)
        self._opened: Models | None = None
        self._lock = threading.Lock()
        self._one_by_one = threading.Lock()
        self._sent: dict[str, threading.Event] = {}

    def ask(self, role: str, asked: Sequence[Any], *parameters: Any) -> Reply:
        """What the role's model says to these requests, from the shard where it can."""
        if not self.is_seeded():
            return Reply(seeded=False)
        try:
            model, answers = _asking(self._models(), role)
            # A model in this process answers one thread at a time; a server is what several threads are for.
            with nullcontext() if isinstance(model.model, Streaming) else self._one_by_one:
                return Reply(tuple(self._answers(model.call_ids(asked, *parameters), asked, parameters, answers)))
        except HapaxError as fault:
            return Reply(fault=str(fault))

    def _answers(
        self,
        ids: Sequence[str],
        asked: Sequence[Any],
        parameters: Sequence[Any],
        answers: Callable[..., Sequence[Any]],
    ) -> Sequence[Any]:
        """The answers, no request being sent by two threads at a time.

        What others were waited for is asked again here: the shard has it, unless their sending failed.
        """
        requests = dict(zip(ids, asked, strict=True))
        found: dict[str, Any] = {}
        while waiting := [one for one in requests if one not in found]:
            with self._lock:
                others = {one: self._sent[one] for one in waiting if one in self._sent}
                own = [one for one in waiting if one not in others]
                over = threading.Event()
                self._sent.update(dict.fromkeys(own, over))
            try:
                if own:
                    found.update(zip(own, answers([requests[one] for one in own], *parameters), strict=True))
            finally:
                with self._lock:
                    for one in own:
                        del self._sent[one]
                over.set()
            for other in others.values():
                other.wait()
        return [found[one] for one in ids]

    def identities(self) -> Reply:
        """The identities of the four models."""
        try:
            models = self._models()
        except HapaxError as fault:
            return Reply(fault=str(fault))
        return Reply(identities(models))

    def _models(self) -> Models:
        with self._lock:
            if self._opened is None:
                journal = Journal(self._shard)
                self._opened = journaled(self._opening.open(journal, self._post.count), journal)
            return self._opened

    # -- the shard

    def process(self) -> int:
        """The number of the worker's process on its machine."""
        return os.getpid()

    def is_seeded(self) -> bool:
        """Whether the shard holds what was known before it was begun. One on a machine that it is new to does not."""
        return self._post.seeded.exists()

    def take_in(self, calls: Sequence[CallRecord]) -> None:
        """Answers that are known already."""
        self._shard.record_calls(calls)

    def finish_seeding(self) -> int:
        """No more of these will come. Gives the row behind which answers will be new."""
        self._post.seeded.touch()
        return self._shard.kb.last_call_row()

    def after(self, row: int, most: int) -> tuple[list[CallRecord], int]:
        """As `KnowledgeBase.calls_after`, of the shard."""
        return self._shard.kb.calls_after(row, most)

    def place(self) -> str:
        """A mark of the folder, the same for all workers that share it."""
        self._post.folder.mkdir(parents=True, exist_ok=True)
        mark = self._post.folder / PLACE
        with suppress(FileExistsError), mark.open("x", encoding="ascii") as stream:
            stream.write(uuid.uuid4().hex)
        return mark.read_text("ascii")

    # -- shards of earlier runs

    def left_over(self) -> list[str]:
        """The shards in the folder that other runs have left, by file name; of some only what lay beside them."""
        names = {f"{path.name.partition('.')[0]}.db" for path in self._post.folder.glob(SHARDS)}
        return sorted(name for name in names if not name.startswith(f"shard-{self._post.run}-"))

    def left_after(self, name: str, row: int, most: int) -> tuple[list[CallRecord], int]:
        """As `after`, of a shard that was left."""
        path = self._post.folder / name
        if not path.exists():  # a run was killed as it deleted it: its answers are elsewhere
            return [], row
        with KnowledgeBase(path, read_only=True) as kb:
            return kb.calls_after(row, most)

    def forget(self, name: str) -> None:
        """Delete a shard that was left."""
        _delete(self._post.folder / name)

    def close(self) -> None:
        """Delete this worker's shard: all of it is elsewhere."""
        _delete(self._post.shard)


def identities(models: Models) -> tuple[ModelIdentity, ...]:
    """Of knowledge, critic, likelihood and evaluator."""
    return tuple(one.identity for one in (models.knowledge, models.critic, models.likelihood, models.evaluator))


def _asking(models: Models, role: str) -> tuple[Any, Callable[..., Sequence[Any]]]:
    """The role's model behind its journal, and the method by which it is asked."""
    if role == KNOWLEDGE:
        return models.knowledge, models.knowledge.generate
    if role == CRITIC:
        return models.critic, models.critic.probabilities
    ranker = {LIKELIHOOD: models.likelihood, EVALUATOR: models.evaluator}[role]
    return ranker, ranker.log_likelihoods


def _delete(shard: Path) -> None:
    for path in (shard, *(shard.with_name(shard.name + end) for end in ("-wal", "-shm")), shard.with_suffix(SEEDED)):
        path.unlink(missing_ok=True)
