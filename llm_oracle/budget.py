"""Prices, limits, statistics and ledger of model calls, the exceptions that stop asking, and the pace of servers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import CALL
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.records import AttemptRecord, Outcome
from hapax.llm_oracle.protocols import PartlyAnswered, Usage

if TYPE_CHECKING:
    from concurrent.futures import Future


BYTES_PER_TOKEN = 3
"""Low for English text (about 4), so that an estimate is too high rather than too low."""


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text from its UTF-8 bytes, rather too high than too low."""
    # surrogatepass: a broken reply may hold lone surrogates, which strict UTF-8 cannot encode.
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + 1


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens, in whatever currency the whole price table uses."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        return (self.prompt * usage.prompt_tokens + self.completion * usage.completion_tokens) / 1_000_000


FREE = Price(0.0, 0.0)


@checked
@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the calls of one invocation; None: no limit. Answers from the journal cost nothing.

    `roles`: the roles whose calls count, so that a limit can apply to the knowledge model alone; None: all roles.
    """

    max_calls: Annotated[
        int | None,
        Option(
            "Most requests of this run, retries, votes and models in this process included.",
            least=0,
        ),
    ] = None
    max_tokens: Annotated[int | None, Option("Most tokens.", least=0)] = None
    max_cost: Annotated[float | None, Option("Most money.", least=0)] = None
    roles: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for name, limit in self.limits.items():
            if not (isinstance(limit, int | float) and limit >= 0):  # refuses nan, too
                raise HapaxError(f"max_{name} is {limit!r}. Set it to a number from 0, or to None for no limit.")

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set: `calls`, `tokens` and `cost`, as `CallStatistics` names what was used."""
        limits = {"calls": self.max_calls, "tokens": self.max_tokens, "cost": self.max_cost}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @property
    def is_unlimited(self) -> bool:
        return not self.limits

    def counts(self, role: str) -> bool:
        return self.roles is None or role in self.roles

    def less(self, spent: CallStatistics) -> Budget:
        """The limits after so much was used."""
        left = {name: max(0, limit - (getattr(spent, name) or 0)) for name, limit in self.limits.items()}
        changes: dict[str, Any] = {f"max_{name}": limit for name, limit in left.items()}
        return replace(self, **changes)

    def exceeded(self, spent: CallStatistics) -> tuple[str, float] | None:
        """Name and value of the first limit that `spent` exceeds; None if it is within all limits."""
        # An unknown cost passes here: `Journal` refuses a model without a price under a limit on cost.
        over = (pair for pair in self.limits.items() if (getattr(spent, pair[0]) or 0) > pair[1])
        return next(over, None)


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """Counts of requests sent (`calls`) and of calls answered by the journal (`hits`), with tokens and cost.

    A model on a server counts every request that left: repeated ones, refused ones and each vote. `cost` is None as
    soon as one price in it is unknown. `refused` counts the refusals among both, `unusable` the requests without a
    usable reply.
    """

    calls: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    refused: int = 0
    unusable: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def of_call(cls, usage: Usage, price: Price | None) -> CallStatistics:
        """Statistics of one call that was sent."""
        cost = None if price is None else price.of(usage)
        return cls(usage.requests, 0, usage.prompt_tokens, usage.completion_tokens, cost)

    def __add__(self, other: CallStatistics) -> CallStatistics:
        return CallStatistics(
            self.calls + other.calls,
            self.hits + other.hits,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            # An unknown cost stays unknown, or a sum would look cheaper than it is.
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.refused + other.refused,
            self.unusable + other.unusable,
        )


class BudgetReached(HapaxError):  # noqa: N818  # an expected outcome, with its own exit code
    """The next request would exceed the budget; it was not sent.

    `used`: statistics of this invocation. `answers`: answers to the interrupted batch, aligned with its requests (None
    for those that were not sent). Every answer is in the journal, so a later run continues from here.
    """

    def __init__(self, limit: str, allowed: float, used: CallStatistics) -> None:
        HapaxError.__init__(self)  # not super(): Deferred has another base, whose message this is not
        self.limit = limit
        self.allowed = allowed
        self.used = used
        self.answers: tuple[Any, ...] = ()

    def __str__(self) -> str:
        # Not a fixed text: requests under way end after the exception is raised, and count in `used`.
        cost = "unknown" if self.used.cost is None else f"{self.used.cost:.4f}"
        return (
            f"Budget reached: the next request would exceed the limit of {self.allowed:g} on {self.limit}; so far "
            f"{counted(self.used.calls, 'call')}, {counted(self.used.tokens, 'token')}, cost {cost}. "
            f"Raise the limit and run the same {CALL}: nothing is asked twice."
        )


class Deferred(BudgetReached, PartlyAnswered):
    """Requests were recorded, to be answered elsewhere, instead of being sent. Other requests may still be sent."""

    def __init__(self, message: str) -> None:
        super().__init__("requests sent", 0.0, CallStatistics())
        self._message = message

    def __str__(self) -> str:
        return self._message  # no limit was reached, and the other message would say so


class Paused(BudgetReached):
    """Somebody has paused the asking. Everything in flight is answered; the rest can be asked later."""

    def __init__(self, used: CallStatistics) -> None:
        super().__init__("requests until the search goes on", 0.0, used)


class Pause(Protocol):
    """A switch by which another process stops requests for a while."""

    @property
    def is_wanted(self) -> bool:
        """True if nothing more may be sent now. Called from the threads of models, and must be quick."""

    def wait(self) -> None:
        """Wait until requests may be sent again. Raises KeyboardInterrupt if there will be no more."""


@dataclass(frozen=True, slots=True)
class BatchedRequest:
    """A request of a batch that somebody else sends: queued, with the most that it can use, or with its result."""

    id: str
    path: str
    used: Usage
    outcome: Outcome


class AttemptWriter(Protocol):
    """Writes requests to disk; a later record of the same id replaces the earlier one."""

    def write(self, attempt: AttemptRecord) -> Future[None]: ...


class Ledger:
    """The requests of one invocation: what was used, by role, and what is reserved for requests under way.

    A request is reserved before it is sent, so that many at a time cannot exceed the budget. `writer`, if there is one,
    writes it down then, and again when it has ended. `pause`: if it is wanted, nothing is reserved. Thread-safe.
    """

    def __init__(self, budget: Budget, writer: AttemptWriter | None = None) -> None:
        self.budget = budget
        self.writer = writer
        self.pause: Pause | None = None
        # Reentrant, since `settle` and `reserve` call methods that take it, too.
        self._lock = threading.RLock()
        self._statistics: dict[str, CallStatistics] = {}
        self._reserved: dict[Reservation, CallStatistics] = {}
        self._reached: dict[Account, tuple[str, float]] = {}

    @property
    def statistics(self) -> dict[str, CallStatistics]:
        """Statistics by role, in order of first use."""
        with self._lock:
            return dict(self._statistics)

    @property
    def used(self) -> CallStatistics:
        """The sum over the roles that count in the budget."""
        counting = (spent for role, spent in self.statistics.items() if self.budget.counts(role))
        return sum(counting, CallStatistics())

    def count(self, role: str, more: CallStatistics) -> None:
        with self._lock:
            self._statistics[role] = self._statistics.get(role, CallStatistics()) + more

    def reserve(self, account: Account, most: Usage, path: str = "") -> Reservation | None:
        """Reserve a request that uses at most so much; None if it has to wait for the end of another one.

        Raises BudgetReached if it would exceed the budget with none under way, and from then on for this account.
        Raises Paused while a pause is wanted.
        """
        if self.pause is not None and self.pause.is_wanted:
            raise Paused(self.used)
        wanted = CallStatistics.of_call(most, account.price)
        with self._lock:
            used = self.used  # under the lock: a settlement in between would be in neither sum
            limit = self._reached.get(account)
            if limit is None and self.budget.counts(account.role):
                limit = self.budget.exceeded(sum(self._reserved.values(), used + wanted))
                # Requests under way mostly use less than is reserved for them, so their end may leave room.
                if limit is not None and self._reserved:
                    return None
            if limit is not None:
                self._reached[account] = limit
                raise BudgetReached(*limit, used)
            attempt = _attempt(account, most, path)
            reservation = Reservation(account, attempt, self.writer.write(attempt) if self.writer else None)
            if self.budget.counts(account.role):
                self._reserved[reservation] = wanted
            return reservation

    def enter_batched(self, account: Account, requests: Sequence[BatchedRequest]) -> None:
        """Write down requests that others send, and wait until they are on disk. They count in no limit."""
        if self.writer is not None:
            written = []
            for request in requests:
                attempt = _attempt(account, request.used, request.path)
                finished = None if request.outcome is Outcome.QUEUED else attempt.started
                attempt = replace(attempt, id=request.id, outcome=request.outcome, finished=finished)
                written.append(self.writer.write(attempt))
            # Awaited only now, because what waits together is committed together.
            for done in written:
                done.result()

    def settle(self, reservation: Reservation, spent: Usage | None, outcome: Outcome) -> None:
        """End a reservation and count the request's use; None: it was not sent."""
        account = reservation.account
        if self.writer is not None:
            self.writer.write(_ended(reservation, spent, outcome))
        with self._lock:
            self._reserved.pop(reservation, None)
            if spent is not None:
                self.count(account.role, CallStatistics.of_call(spent, account.price))


class Account:
    """One batch in a ledger: role, price and model of its requests.

    `is_metered`: its model counts them one by one.
    """

    def __init__(self, ledger: Ledger, role: str, price: Price | None, model: str = "") -> None:
        self.ledger, self.role, self.price, self.model = ledger, role, price, model
        self.is_metered = False

    def reserve(self, most: Usage) -> Reservation | None:
        """Like `Ledger.reserve`, and wait until the request is written down. Raises HapaxError if it cannot be."""
        reservation = self.ledger.reserve(self, most)
        if reservation is not None and reservation.written is not None:
            try:
                reservation.written.result()
            except BaseException:
                # It was not sent, and its reservation must not stand in the way of others.
                reservation.settle(None)
                raise
        return reservation


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """The place of one request in a ledger.

    `attempt`: the request with the most that it can use. `written`: done when that is on disk, which must be awaited
    before the request is sent; None: nothing is written.
    """

    account: Account
    attempt: AttemptRecord
    written: Future[None] | None = None

    def settle(self, spent: Usage | None, outcome: Outcome | None = None) -> None:
        """Like `Ledger.settle`; by default the request was answered if it was sent."""
        self.account.ledger.settle(self, spent, outcome or (Outcome.UNSENT if spent is None else Outcome.ANSWERED))


def _now() -> str:
    return system.now().isoformat(timespec="milliseconds")


def _attempt(account: Account, most: Usage, path: str) -> AttemptRecord:
    """A request that is about to be sent, counted at the most that it can use."""
    cost = None if account.price is None else account.price.of(most)
    return AttemptRecord(
        uuid.uuid4().hex,
        account.role,
        account.model,
        path,
        _now(),
        prompt_tokens=most.prompt_tokens,
        completion_tokens=most.completion_tokens,
        cost=cost,
    )


def _ended(reservation: Reservation, spent: Usage | None, outcome: Outcome) -> AttemptRecord:
    """The attempt of a reservation with its outcome and what it used."""
    used, price = spent or Usage(), reservation.account.price
    return replace(
        reservation.attempt,
        finished=_now(),
        outcome=Outcome.UNSENT if spent is None else outcome,
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        cost=None if price is None else price.of(used),
    )


ACCOUNT: ContextVar[Account | None] = ContextVar("ACCOUNT", default=None)
"""The account of the batch that a journal is sending. A model that sends several requests for an answer, or repeats
them, sets its `is_metered` and reserves and settles each request; otherwise the journal counts one for each answer."""


class DeferralCollector:
    """Context manager that collects Deferred until all requests were tried; `raise_first` then raises the first.

    It is entered once per request: `with deferrals: ask(...)`. Other exceptions pass through.
    """

    def __init__(self) -> None:
        self.first: Deferred | None = None

    def __enter__(self) -> None:
        """Enter; there is nothing to prepare."""

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> bool:
        if not isinstance(fault, Deferred):
            return False
        self.first = self.first or fault
        return True

    def raise_first(self) -> None:
        """Raise the first Deferred that was collected, if any."""
        if self.first is not None:
            raise self.first


@dataclass(frozen=True, slots=True)
class ServerPace:
    """Limits and speed of a server. None: no limit, or unknown.

    `latency`: seconds of a request apart from its answer's tokens; `speed`: tokens per second of one answer.
    """

    max_concurrency: int
    rpm: float | None = None
    tpm: float | None = None
    latency: float | None = None
    speed: float | None = None

    def seconds(self, requests: int, usage: Usage, rounds: int) -> float | None:
        """Wall time of requests that use `usage` and are sent in `rounds`, one after the other; None if unknown.

        A round takes at least the time of one request; its last requests leave some places empty, half of them in
        the mean.
        """
        if not requests:
            return 0.0
        # Each limit alone gives a least time; the longest of them holds.
        limits = [60 * requests / self.rpm] if self.rpm else []
        if self.tpm:
            limits.append(60 * requests * usage.tokens / self.tpm)
        if self.latency is None:
            return max(limits, default=None)
        duration = self.latency + (usage.completion_tokens / self.speed if self.speed else 0.0)
        rounds = min(rounds, requests)
        places = self.max_concurrency
        # No more than each request in turn, no less than all rounds.
        waves = max(rounds, min(requests, requests / places + rounds * (places - 1) / (2 * places)))
        return max(*limits, waves * duration) if limits else waves * duration
