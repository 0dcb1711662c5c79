"""Models that send each request to the worker that owns it, as many calls at a time as there are workers.

Under a budget each call has a part of it that no two share. A worker counts each request before it leaves. So whatever
it repeats, the parts are never exceeded, and neither is their sum. What a part leaves over is in the next ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any, Protocol

from hapax.engine.cluster.owner import Allowance, OwnerReply
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy
from hapax.kb import system
from hapax.kb.records import CallRecord
from hapax.llm_oracle.budget import ACCOUNT, Account, Allotment, BudgetReached, CallStatistics
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood, TokenReserving
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.measures import Measure, lists_names, measures_of
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
    SpannedText,
    Stream,
    Usage,
    in_request_order,
)

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


def when_seeded(owners: Owners, number: int, question: Sequence[Any], pending: Pending) -> OwnerReply:
    """The reply of a worker, repeated until the worker is seeded, if it was restarted on another machine.

    Raises HapaxError with a worker's message.
    """
    deadline = system.monotonic() + SEEDING_SECONDS
    reply: OwnerReply = pending.result()
    while not reply.seeded:
        if system.monotonic() > deadline:
            raise HapaxError(
                f"A worker that was restarted did not receive the known answers in {SEEDING_SECONDS:g} s.",
                Remedy("Run the same {} again: no collected answer is asked for twice.", CALL),
            )
        # Meanwhile `Gathering.gather` seeds the worker, in its own thread.
        system.sleep(PAUSE_SECONDS)
        reply = owners.begin(number, *question).result()
    if reply.fault:
        raise HapaxError(f"Worker {number}: {reply.fault}")
    return reply


class AllottedCalls:
    """Calls within a budget, which one process keeps. `counted`: requests in a worker's ledger that are counted."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._counted = dict.fromkeys(range(owners.count), CallStatistics())

    def stream(
        self,
        account: Account,
        role: str,
        calls: Sequence[tuple[int, list[int]]],
        asked: Sequence[Any],
        parameters: Sequence[GenerationParameters],
    ) -> Stream[Any]:
        """The answers of these calls, which are a worker's number and positions in `asked`, as they return in order.

        Raises BudgetReached when all that is left of the budget is too little for the next request.
        """
        waiting, under_way = deque(calls), deque[tuple[int, list[int], tuple[Any, ...], Allotment, Any]]()
        # As many calls as there are workers; one at a time once a part was too small.
        most = self._owners.count
        while waiting or under_way:
            while waiting and len(under_way) < most:
                number, positions = waiting.popleft()
                allotment = account.ledger.allot(account, most - len(under_way))
                allowance = Allowance(allotment.budget, account.price, self._counted[number])
                question: tuple[Any, ...] = (
                    "ask",
                    allowance,
                    role,
                    [asked[position] for position in positions],
                    *parameters,
                )
                under_way.append((number, positions, question, allotment, self._owners.begin(number, *question)))
            number, positions, question, allotment, pending = under_way.popleft()
            reply = when_seeded(self._owners, number, question, pending)
            is_lost = not pending.result().seeded  # it was restarted without its ledger
            reached = self._settle(number, allotment, reply, is_lost)
            pairs = list(zip(positions, reply.answers, strict=True))
            yield [(position, answer) for position, answer in pairs if answer is not None]
            if open_positions := [position for position, answer in pairs if answer is None]:
                if most == 1 and reached is not None:
                    # The worker knows its part of the budget alone; a person set the whole one.
                    raise BudgetReached(reached, account.ledger.budget.allowed(reached), account.ledger.used)
                # A part was too small: from here on each call gets all that is left, when the others have returned.
                most = 1
                # Before the others, so that the worker's requests keep their order.
                waiting.appendleft((number, open_positions))

    def _settle(self, number: int, allotment: Allotment, reply: OwnerReply, is_lost: bool) -> str | None:
        """Count what a worker used; returns the name of the limit that it reached."""
        spent = reply.spent
        if spent is None:
            raise TypeError("a reply without its use of the allowance")
        allotment.account.ledger.settle_allotment(allotment, allotment.most if is_lost else spent.used)
        self._counted[number] = spent.ledger
        return None if spent.reached is None else spent.reached[0]


# --- models of workers ------------------------------------------------------------------------------------------------

AT_ONCE = 32
"""Requests in one call to a worker."""

CALLS_AHEAD = 8
"""Pending calls of one request stream to each worker, so that the slowest answer of one call delays no other."""


def owner_of(request_id: str, count: int) -> int:
    """Number of the worker, of `count`, that owns a request, by its journal id."""
    # The id is a hash in hexadecimal digits, so that each worker owns an equal part.
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
    allotted: AllottedCalls | None = None
    """In the process that keeps the budget: the calls within it."""

    def __init__(self, identity: ModelIdentity, owners: Owners) -> None:
        self.identity = identity
        self.owners = owners

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]:
        """Answers in batches, as the calls to workers return in order. Raises HapaxError with a worker's message.

        Under a budget, raises BudgetReached after the answers that fit into it.
        """
        account = ACCOUNT.get()
        if self.allotted is not None and account is not None and not account.ledger.budget.is_unlimited:
            # Otherwise the journal would count a request for each answer as well.
            account.is_metered = True
            calls = self._calls(asked, *parameters)
            yield from self.allotted.stream(account, self.role, calls, asked, parameters)
            return
        under_way: deque[tuple[int, list[int], Sequence[Any], Pending]] = deque()
        waiting = iter(self._calls(asked, *parameters))
        while True:
            for number, chunk in islice(waiting, CALLS_AHEAD * self.owners.count - len(under_way)):
                question: Sequence[Any] = ("ask", None, self.role, [asked[position] for position in chunk], *parameters)
                under_way.append((number, chunk, question, self.owners.begin(number, *question)))
            if not under_way:
                return
            number, chunk, question, pending = under_way.popleft()
            reply = when_seeded(self.owners, number, question, pending)
            yield list(zip(chunk, reply.answers, strict=True))

    def _calls(self, asked: Sequence[Any], *parameters: GenerationParameters) -> list[tuple[int, list[int]]]:
        """The calls to workers: the number of the worker, and the positions of its requests."""
        owned: list[list[int]] = [[] for _ in range(self.owners.count)]
        for position, request_id in enumerate(self.call_ids(asked, *parameters)):
            owned[owner_of(request_id, self.owners.count)].append(position)
        # The first chunk of each worker, then the second ones: all workers are busy from the start.
        calls: list[tuple[int, list[int]]] = []
        for start in range(0, max(map(len, owned)), AT_ONCE):
            for number, positions in enumerate(owned):
                if chunk := positions[start : start + AT_ONCE]:
                    calls.append((number, chunk))
        return calls

    def call_ids(self, asked: Sequence[Any], *parameters: GenerationParameters) -> list[str]:
        """The journal's ids of the requests."""
        kind = {KNOWLEDGE: JournaledGenerator, CRITIC: JournaledCritic}.get(self.role, JournaledLikelihood)
        journaled: Any = kind(self, Journal(Nothing()))  # an id follows from the request alone
        ids: list[str] = journaled.call_ids(asked, *parameters)
        return ids


class RoutedGenerator(Routed):
    """The knowledge model of the workers."""

    role = KNOWLEDGE

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return in_request_order(self.stream(requests, parameters), len(requests))


class RoutedCritic(Routed):
    """The critic of the workers."""

    role = CRITIC

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return in_request_order(self.stream(claims), len(claims))


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


class RoutedSpanLikelihood(RoutedLikelihood):
    """A ranker or evaluator of the workers that also scores the values in a text."""

    def __init__(self, identity: ModelIdentity, owners: Owners, role: str, words_are_independent: bool) -> None:
        super().__init__(identity, owners, role)
        self.words_are_independent = words_are_independent

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
    able = measures_of(model)
    if Measure.SPAN in able:
        return RoutedSpanLikelihood(model.identity, owners, role, words_are_independent=Measure.PAIR not in able)
    return RoutedLikelihood(model.identity, owners, role)


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
    """Routed models for the process that keeps the budget; the critic reserves tokens if the opened one does."""
    critic = models.critic
    assert isinstance(critic, RoutedCritic)  # noqa: S101  # `routed` made it
    if isinstance(opened.critic, TokenReserving):
        critic = ReservingCritic(critic.identity, critic.owners, opened.critic)
    allotted = AllottedCalls(critic.owners)
    kept = Models(copy(models.knowledge), copy(critic), copy(models.likelihood), copy(models.evaluator), models.names)
    for model in (kept.knowledge, kept.critic, kept.likelihood, kept.evaluator):
        assert isinstance(model, Routed)  # noqa: S101  # likewise
        model.allotted = allotted
    return kept
