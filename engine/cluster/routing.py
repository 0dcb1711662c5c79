"""Sends each request to the worker that owns it: models whose answers come from a cluster's workers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from engine.cluster.owner import Reply
from grammar.errors import HapaxError
from kb.records import CallRecord
from llm_oracle.calls import (
    CRITIC,
    EVALUATOR,
    KNOWLEDGE,
    LIKELIHOOD,
    Journal,
    JournaledCritic,
    JournaledGenerator,
    JournaledLikelihood,
    Reserving,
)
from llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
    Stream,
    Usage,
    gathered,
)

AT_ONCE = 32
"""Requests in one call to a worker."""

CALLS_AHEAD = 8
"""Calls to each worker that one asker has under way, so that no call's slowest answer keeps the others waiting."""

SEEDING_SECONDS = 600.0
"""How long a worker that was started again may take to learn what is known."""

PAUSE_SECONDS = 0.2


class Pending(Protocol):
    """What will come of a call to a worker. `result` waits, and raises HapaxError where the worker is gone for good."""

    def done(self) -> bool: ...

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...


class Owners(Protocol):
    """The workers: methods of `Owner` by the worker's number. Those that ask models do not hold up the others."""

    @property
    def count(self) -> int: ...

    def begin(self, number: int, method: str, *arguments: Any) -> Pending: ...


def owner_of(request_id: str, count: int) -> int:
    """Which of so many workers a request belongs to, by its journal id."""
    return int(request_id, 16) % count


class Nothing:
    """A store of calls that holds none."""

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:  # noqa: ARG002  # it knows none
        return {}

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        """Nothing is kept."""


class Routed:
    """A model whose requests are answered by the workers; it goes to other processes with all it needs."""

    role = ""

    def __init__(self, identity: ModelIdentity, owners: Owners) -> None:
        self.identity = identity
        self.owners = owners

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]:
        """Answers as calls to workers come back, in order. Raises HapaxError with a worker's message."""
        own: list[list[int]] = [[] for _ in range(self.owners.count)]
        for place, request_id in enumerate(self.call_ids(asked, *parameters)):
            own[owner_of(request_id, self.owners.count)].append(place)
        calls = [
            (number, places[start : start + AT_ONCE])
            for start in range(0, max(map(len, own)), AT_ONCE)
            for number, places in enumerate(own)
            if places[start : start + AT_ONCE]
        ]
        under_way: deque[tuple[int, list[int], Sequence[Any], Pending]] = deque()
        waiting = iter(calls)
        while True:
            for number, chunk in islice(waiting, CALLS_AHEAD * self.owners.count - len(under_way)):
                question: Sequence[Any] = (self.role, [asked[place] for place in chunk], *parameters)
                under_way.append((number, chunk, question, self.owners.begin(number, "ask", *question)))
            if not under_way:
                return
            number, chunk, question, pending = under_way.popleft()
            reply = self._seeded(number, question, pending)
            if reply.fault:
                raise HapaxError(f"Worker {number}: {reply.fault}")
            yield list(zip(chunk, reply.answers, strict=True))

    def call_ids(self, asked: Sequence[Any], *parameters: GenerationParameters) -> list[str]:
        """The journal's ids of the requests."""
        raise NotImplementedError

    def _seeded(self, number: int, question: Sequence[Any], pending: Pending) -> Reply:
        """The reply, asked for again while the worker, started again elsewhere, learns what is known."""
        patience = time.monotonic() + SEEDING_SECONDS
        reply: Reply = pending.result()
        while not reply.seeded:
            if time.monotonic() > patience:
                raise HapaxError(
                    "A worker that was started again was not told what is known. Run the same command again: nothing "
                    "that was gathered is asked twice."
                )
            time.sleep(PAUSE_SECONDS)
            reply = self.owners.begin(number, "ask", *question).result()
        return reply


class RoutedGenerator(Routed):
    """The knowledge model."""

    role = KNOWLEDGE

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return gathered(self.stream(requests, parameters), len(requests))

    def call_ids(self, asked: Sequence[Any], *parameters: GenerationParameters) -> list[str]:
        return JournaledGenerator(self, Journal(Nothing())).call_ids(asked, *parameters)


class RoutedCritic(Routed):
    """The critic."""

    role = CRITIC

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return gathered(self.stream(claims), len(claims))

    def call_ids(self, asked: Sequence[Any], *_: GenerationParameters) -> list[str]:
        return JournaledCritic(self, Journal(Nothing())).call_ids(asked)


class ReservingCritic(RoutedCritic):
    """A critic that needs more for a claim than is usual. Stays in the process that minds the budget."""

    def __init__(self, identity: ModelIdentity, owners: Owners, opened: Reserving) -> None:
        super().__init__(identity, owners)
        self._opened = opened

    def reserved(self, claim: str) -> Usage:
        return self._opened.reserved(claim)


class RoutedLikelihood(Routed):
    """The ranker, or the evaluator."""

    def __init__(self, identity: ModelIdentity, owners: Owners, role: str) -> None:
        super().__init__(identity, owners)
        self.role = role

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return gathered(self.stream(texts), len(texts))

    def call_ids(self, asked: Sequence[Any], *_: GenerationParameters) -> list[str]:
        return JournaledLikelihood(self, Journal(Nothing())).call_ids(asked)


def routed(models: Models, owners: Owners) -> Models:
    """The workers in the models' place, for this process and any other."""
    return Models(
        RoutedGenerator(models.knowledge.identity, owners),
        RoutedCritic(models.critic.identity, owners),
        RoutedLikelihood(models.likelihood.identity, owners, LIKELIHOOD),
        RoutedLikelihood(models.evaluator.identity, owners, EVALUATOR),
    )


def budgeted(models: Models, opened: Models) -> Models:
    """Routed models that reserve what the opened ones do."""
    critic = opened.critic
    if not isinstance(critic, Reserving):
        return models
    assert isinstance(models.critic, RoutedCritic)  # noqa: S101  # `routed` made it
    reserving = ReservingCritic(models.critic.identity, models.critic.owners, critic)
    return Models(models.knowledge, reserving, models.likelihood, models.evaluator)
