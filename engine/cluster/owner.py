"""A worker of a cluster: it opens the models, answers the requests that it owns, and stores the answers in its shard.

A shard is a knowledge base that has only calls. An answer is on the worker's disk before it is sent, so a worker that
is killed and restarted on its machine asks nothing twice.
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

from hapax.engine.search.oracle import journaled
from hapax.grammar.errors import HapaxError
from hapax.kb import own_files, system
from hapax.kb.attempts import AttemptLog
from hapax.kb.records import AttemptRecord, CallRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import Budget, BudgetReached, CallStatistics, Price
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity, Models, Streaming
from hapax.llm_oracle.registry import open_roles

SHARDS = "shard-*"
"""Pattern of shards and the files beside them."""

PLACE = "place"
"""File with the mark of a folder."""

SEEDED = ".seeded"
"""Suffix of the empty file that marks a shard as seeded: it has the answers known before the run."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The models that each worker opens, by role as for `open_roles`. `options` without queue and journal."""

    knowledge: str
    critic: str | None
    likelihood: str | None
    evaluator: str
    options: OpeningOptions

    def open(self, journal: Journal, sharers: int) -> Models:
        """The models of one of `sharers` workers. Raises HapaxError as `open_roles` does."""
        options = replace(self.options, journal=journal, sharers=sharers)
        return open_roles(OpenedModels(options), self.knowledge, self.critic, self.likelihood, self.evaluator)


@dataclass(frozen=True, slots=True)
class Post:
    """A worker's place: its number among `count`, the folder of its shard, and the run that the shard belongs to."""

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
class OwnerReply:
    """Answers in the order of their requests. `fault`: why there are none; `seeded` False: ask again later."""

    answers: tuple[Any, ...] = ()
    fault: str = ""
    seeded: bool = True
    spent: SpentAllowance | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits for one call to a worker. `price`: of the model asked.

    `before`: requests of the worker, as in its ledger, that the search has counted. What it sent since then, in a
    process that died, counts in this allowance.
    """

    budget: Budget
    price: Price | None
    before: CallStatistics


@dataclass(frozen=True, slots=True)
class SpentAllowance:
    """The use of an allowance, and all requests in the worker's ledger. `reached`: the limit that left requests open,
    whose answers are then None."""

    used: CallStatistics
    ledger: CallStatistics
    reached: tuple[str, float] | None = None


class Shard:
    """The calls in a worker's file, for use in all threads: each thread has a connection of its own."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self.attempt_log = AttemptLog(post.shard)
        # SQLite connections belong to the thread that opened them.
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

    def newest_revision(self, model: str) -> str | None:
        return self.kb.newest_revision(model)


class Opens(Protocol):
    """Opens a worker's models: an `Opening`, or a reference to one."""

    def open(self, journal: Journal, sharers: int) -> Models: ...


class Owner:
    """One worker. Errors are returned in an `OwnerReply`, because not every cluster transports exceptions whole.

    `ask` may be called from several threads at once; if two need the same request, one sends it and the other waits.
    The methods about shards are called from one other thread.
    """

    def __init__(self, post: Post, opening: Opens) -> None:
        self._post = post
        self._opening = opening
        self._shard = Shard(post)
        self._journal = Journal(self._shard)
        self._opened: Models | None = None
        self._lock = threading.Lock()
        self._local_model = threading.Lock()
        self._sent: dict[str, threading.Event] = {}

    def ask(self, allowance: Allowance | None, role: str, asked: Sequence[Any], *parameters: Any) -> OwnerReply:
        """The answers of the role's model to these requests, from the shard if they are there.

        Under an allowance, the answers of requests beyond it are None.
        """
        if not self.is_seeded():
            return OwnerReply(seeded=False)
        try:
            models, journal, earlier = self._models(), self._journal, CallStatistics()
            if allowance is not None:
                # What a process that died has sent since the search last counted is spent already.
                earlier = self._in_ledger() - allowance.before
                journal = Journal(self._shard, allowance.budget.less(earlier))
            model, answers = _asking(journaled(models, journal), role)
            # A model in this process answers one thread at a time; only servers answer several.
            with nullcontext() if isinstance(model.model, Streaming) else self._local_model:
                if allowance is None:
                    ids = model.call_ids(asked, *parameters)
                    return OwnerReply(tuple(self._answers(ids, asked, parameters, answers)))
                if allowance.price is not None:
                    journal.prices[model.identity.name] = allowance.price
                replies, reached = _within(answers, asked, parameters)
            return OwnerReply(replies, spent=SpentAllowance(earlier + journal.total, self._in_ledger(), reached))
        except HapaxError as fault:
            return OwnerReply(fault=str(fault))

    def _in_ledger(self) -> CallStatistics:
        """All requests that the worker wrote down before they left."""
        count, prompt_tokens, completion_tokens, cost = self._shard.kb.attempt_totals()
        return CallStatistics(count, 0, prompt_tokens, completion_tokens, cost)

    def _answers(
        self,
        ids: Sequence[str],
        asked: Sequence[Any],
        parameters: Sequence[Any],
        answers: Callable[..., Sequence[Any]],
    ) -> Sequence[Any]:
        """The answers in the order of `ids`. No request is sent by two threads at a time."""
        requests = dict(zip(ids, asked, strict=True))
        found: dict[str, Any] = {}
        while missing := [request_id for request_id in requests if request_id not in found]:
            with self._lock:
                sent_elsewhere = {
                    request_id: self._sent[request_id] for request_id in missing if request_id in self._sent
                }
                own = [request_id for request_id in missing if request_id not in sent_elsewhere]
                answered = threading.Event()
                self._sent.update(dict.fromkeys(own, answered))
            try:
                if own:
                    replies = answers([requests[request_id] for request_id in own], *parameters)
                    found.update(zip(own, replies, strict=True))
            finally:
                with self._lock:
                    for request_id in own:
                        del self._sent[request_id]
                # After a failure as well: the threads that wait then send the requests themselves.
                answered.set()
            # Only after its own requests: two threads that waited for each other first would never end.
            for event in sent_elsewhere.values():
                event.wait()
            # The next round asks for what other threads sent: the shard has it, unless their sending failed.
        return [found[request_id] for request_id in ids]

    def identities(self) -> OwnerReply:
        """The identities of the four models."""
        try:
            models = self._models()
        except HapaxError as fault:
            return OwnerReply(fault=str(fault))
        return OwnerReply(identities(models))

    def _models(self) -> Models:
        with self._lock:
            if self._opened is None:
                # Opened at the first request, in the worker: models are not sent between processes.
                self._opened = self._opening.open(self._journal, self._post.count)
            return self._opened

    # -- the shard

    def process(self) -> int:
        """The number of the worker's process on its machine."""
        return system.process_id()

    def is_seeded(self) -> bool:
        """True if the shard has the answers known before the run. After a restart on another machine it has not."""
        return self._post.seeded.exists()

    def take_in(self, calls: Sequence[CallRecord]) -> None:
        """Store known answers in the shard."""
        self._shard.record_calls(calls)

    def finish_seeding(self) -> int:
        """Mark the shard as seeded. Returns the row after which answers will be new."""
        os.close(own_files.open_file(self._post.seeded, os.O_WRONLY | os.O_CREAT))
        return self._shard.kb.last_call_row()

    def attempts(self) -> list[AttemptRecord]:
        """The requests that this worker sent to servers so far."""
        self._shard.attempt_log.flush()
        return self._shard.kb.attempts()

    def after(self, row: int, most: int) -> tuple[list[CallRecord], int]:
        """`KnowledgeBase.calls_after` of the shard."""
        return self._shard.kb.calls_after(row, most)

    def place(self) -> str:
        """The mark of the folder, which is the same for all workers that share it."""
        self._post.folder.mkdir(parents=True, exist_ok=True)
        mark = self._post.folder / PLACE
        # Exclusive creation: of several workers in one folder, one writes the mark and all read it.
        with suppress(FileExistsError):
            file = own_files.open_file(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(file, "wb") as stream:
                stream.write(uuid.uuid4().hex.encode("ascii"))
        return own_files.read(mark).decode("ascii")

    # -- shards of earlier runs

    def left_over(self) -> list[str]:
        """File names of the shards that other runs left in the folder; of some only files beside them are left."""
        # A shard may be deleted while its -wal or .seeded file is left.
        names = {f"{path.name.partition('.')[0]}.db" for path in self._post.folder.glob(SHARDS)}
        return sorted(name for name in names if not name.startswith(f"shard-{self._post.run}-"))

    def left_after(self, name: str, row: int, most: int) -> tuple[list[CallRecord], int]:
        """`KnowledgeBase.calls_after` of a shard that another run left."""
        path = self._post.folder / name
        if not own_files.is_there(path):  # a run was killed while it deleted the shard, after collecting its answers
            return [], row
        with KnowledgeBase(path, read_only=True) as kb:
            return kb.calls_after(row, most)

    def left_attempts(self, name: str) -> list[AttemptRecord]:
        """The requests to servers in a shard that another run left."""
        path = self._post.folder / name
        if not own_files.is_there(path):
            return []
        with KnowledgeBase(path, read_only=True) as kb:
            return kb.attempts()

    def forget(self, name: str) -> None:
        """Delete a shard that another run left."""
        _delete(self._post.folder / name)

    def close(self) -> None:
        """Delete this worker's shard, whose answers and attempts have all been collected."""
        self._shard.attempt_log.close()
        _delete(self._post.shard)


def identities(models: Models) -> tuple[ModelIdentity, ...]:
    """Identities of the knowledge model, critic, likelihood model and evaluator, in this order."""
    roles = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    return tuple(model.identity for model in roles)


def _asking(models: Models, role: str) -> tuple[Any, Callable[..., Sequence[Any]]]:
    """The role's model behind its journal, and the method by which it is asked."""
    if role == KNOWLEDGE:
        return models.knowledge, models.knowledge.generate
    if role == CRITIC:
        return models.critic, models.critic.probabilities
    ranker: Any = {LIKELIHOOD: models.likelihood, EVALUATOR: models.evaluator}[role]
    return ranker, ranker.scores


def _within(
    answers: Callable[..., Sequence[Any]], asked: Sequence[Any], parameters: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[str, float] | None]:
    """The answers, None for those that a budget left open, and the limit that was reached."""
    try:
        return tuple(answers(asked, *parameters)), None
    except BudgetReached as fault:
        return tuple(fault.answers), (fault.limit, fault.allowed)


def _delete(shard: Path) -> None:
    beside = [shard.with_name(f"{shard.name}{suffix}") for suffix in ("-wal", "-shm")]
    for path in (shard, *beside, shard.with_suffix(SEEDED)):
        own_files.remove(path)
