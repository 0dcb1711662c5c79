"""Models that send each request to the worker that owns it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from hapax.engine.cluster.owner import OwnerReply
from hapax.grammar.errors import HapaxError
from hapax.kb import system
from hapax.kb.records import CallRecord
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood, TokenReserving
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.measures import lists_names
from hapax.llm_oracle.protocols import (
    CRITIC,
    EVALUATOR,
    KNOWLEDGE,
    LIKELIHOOD,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
    PopularityModel,
    SpanLikelihoodModel,
    SpannedText,
    Stream,
    Usage,
    in_request_order,
)

AT_ONCE = 32
"""Requests in one call to a worker."""

CALLS_AHEAD = 8
"""Pending calls of one request stream to each worker, so that the slowest answer of one call delays no other."""

SEEDING_SECONDS = 600.0
"""Time limit for seeding a worker that was restarted."""

PAUSE_SECONDS = 0.2


class Pending(Protocol):
    """A call to a worker. `result` waits for it, and raises HapaxError if the worker is gone for good."""

    def done(self) -> bool: ...

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...


class Owners(Protocol):
    """The workers. `begin` calls a method of `Owner` by name; methods that ask models do not delay the others."""

    @property
    def count(self) -> int: ...

    def begin(self, number: int, method: str, *arguments: Any) -> Pending: ...


def owner_of(request_id: str, count: int) -> int:
    """Number of the worker, of `count`, that owns a request, by its journal id."""
    return int(request_id, 16) % count


class Nothing:
    """An empty store of calls that stays empty."""

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:  # noqa: ARG002  # it knows none
        return {}

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        """Discard the calls."""


class Routed:
    """A model whose requests the workers answer. It can be sent to other processes."""

    role = ""

    def __init__(self, identity: ModelIdentity, owners: Owners) -> None:
        self.identity = identity
        self.owners = owners

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]:
        """Answers in batches, as the calls to workers return in order. Raises HapaxError with a worker's message."""
        owned: list[list[int]] = [[] for _ in range(self.owners.count)]
        for position, request_id in enumerate(self.call_ids(asked, *parameters)):
            owned[owner_of(request_id, self.owners.count)].append(position)
        # The first chunk of each worker, then the second ones: all workers are busy from the start.
        calls: list[tuple[int, list[int]]] = []
        for start in range(0, max(map(len, owned)), AT_ONCE):
            for number, positions in enumerate(owned):
                if chunk := positions[start : start + AT_ONCE]:
                    calls.append((number, chunk))
        under_way: deque[tuple[int, list[int], Sequence[Any], Pending]] = deque()
        waiting = iter(calls)
        while True:
            for number, chunk in islice(waiting, CALLS_AHEAD * self.owners.count - len(under_way)):
                question: Sequence[Any] = (self.role, [asked[position] for position in chunk], *parameters)
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

    def _seeded(self, number: int, question: Sequence[Any], pending: Pending) -> OwnerReply:
        """The reply, repeated until the worker is seeded, if it was restarted on another machine."""
        deadline = system.monotonic() + SEEDING_SECONDS
        reply: OwnerReply = pending.result()
        while not reply.seeded:
            if system.monotonic() > deadline:
                raise HapaxError(
                    f"A worker that was restarted did not receive the known answers in {SEEDING_SECONDS:g} s. "
                    "Run the same command again: no collected answer is asked for twice."
                )
            # Meanwhile `Gathering.gather` seeds the worker, in its own thread.
            system.sleep(PAUSE_SECONDS)
            reply = self.owners.begin(number, "ask", *question).result()
        return reply


class RoutedGenerator(Routed):
    """The knowledge model of the workers."""

    role = KNOWLEDGE

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return in_request_order(self.stream(requests, parameters), len(requests))

    def call_ids(self, asked: Sequence[Any], *parameters: GenerationParameters) -> list[str]:
        return JournaledGenerator(self, Journal(Nothing())).call_ids(asked, *parameters)


class RoutedCritic(Routed):
    """The critic of the workers."""

    role = CRITIC

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return in_request_order(self.stream(claims), len(claims))

    def call_ids(self, asked: Sequence[Any], *_: GenerationParameters) -> list[str]:
        return JournaledCritic(self, Journal(Nothing())).call_ids(asked)


class ReservingCritic(RoutedCritic):
    """A critic that reserves tokens as the opened one does. It stays in the process that keeps the budget."""

    def __init__(self, identity: ModelIdentity, owners: Owners, opened: TokenReserving) -> None:
        super().__init__(identity, owners)
        self._opened = opened

    def reserved(self, claim: str) -> Usage:
        return self._opened.reserved(claim)


class RoutedLikelihood(Routed):
    """The ranker or the evaluator of the workers."""

    def __init__(self, identity: ModelIdentity, owners: Owners, role: str) -> None:
        super().__init__(identity, owners)
        self.role = role

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))

    def call_ids(self, asked: Sequence[Any], *_: GenerationParameters) -> list[str]:
        return JournaledLikelihood(self, Journal(Nothing())).call_ids(asked)


class RoutedSpanLikelihood(RoutedLikelihood):
    """A ranker or evaluator of the workers that also scores the values in a text."""

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))


class RoutedPopularity(RoutedLikelihood):
    """A ranker of the workers that counts names."""

    def __init__(self, identity: ModelIdentity, owners: Owners, role: str, lists_names: bool) -> None:
        super().__init__(identity, owners, role)
        self.lists_names = lists_names

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        return [answer.total for answer in in_request_order(self.stream(names), len(names))]


def _routed_likelihood(model: Any, owners: Owners, role: str) -> RoutedLikelihood:
    """The routed model with the abilities of the opened one."""
    inner = getattr(model, "model", model)
    if isinstance(inner, PopularityModel):
        return RoutedPopularity(model.identity, owners, role, lists_names(inner))
    is_spanned = isinstance(inner, SpanLikelihoodModel)
    return (RoutedSpanLikelihood if is_spanned else RoutedLikelihood)(model.identity, owners, role)


def routed(models: Models, owners: Owners) -> Models:
    """Models of the same identities that the workers answer for, in this process or another."""
    return Models(
        RoutedGenerator(models.knowledge.identity, owners),
        RoutedCritic(models.critic.identity, owners),
        _routed_likelihood(models.likelihood, owners, LIKELIHOOD),
        _routed_likelihood(models.evaluator, owners, EVALUATOR),
        models.names,
    )


def budgeted(models: Models, opened: Models) -> Models:
    """Routed models with a critic that reserves tokens if the opened one does."""
    critic = opened.critic
    if not isinstance(critic, TokenReserving):
        return models
    assert isinstance(models.critic, RoutedCritic)  # noqa: S101  # `routed` made it
    reserving = ReservingCritic(models.critic.identity, models.critic.owners, critic)
    return Models(models.knowledge, reserving, models.likelihood, models.evaluator, models.names)
