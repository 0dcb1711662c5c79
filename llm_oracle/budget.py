"""Prices, limits and statistics of model calls, and the exceptions that stop asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.words import counted
from hapax.llm_oracle.protocols import PartlyAnswered, Usage

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


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the calls of one invocation; None: no limit. Answers from the journal cost nothing.

    `roles`: the roles whose calls count, so that a limit can apply to the knowledge model alone; None: all roles.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    roles: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens", "max_cost"):
            limit = getattr(self, name)
            if limit is not None and not (isinstance(limit, int | float) and limit >= 0):  # refuses nan, too
                raise HapaxError(f"{name} is {limit!r}. Set it to a number from 0, or to None for no limit.")

    @property
    def is_unlimited(self) -> bool:
        return self.max_calls is None and self.max_tokens is None and self.max_cost is None

    def counts(self, role: str) -> bool:
        return self.roles is None or role in self.roles

    def exceeded(self, spent: CallStatistics) -> tuple[str, float] | None:
        """Name and value of the first limit that `spent` exceeds; None if it is within all limits."""
        if self.max_calls is not None and spent.calls > self.max_calls:
            return "calls", self.max_calls
        if self.max_tokens is not None and spent.tokens > self.max_tokens:
            return "tokens", self.max_tokens
        if self.max_cost is not None and spent.cost is not None and spent.cost > self.max_cost:
            return "cost", self.max_cost
        return None


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """Counts of calls sent (`calls`) and of calls answered by the journal (`hits`), with tokens and cost.

    `cost` is None as soon as one price in it is unknown. `refused` counts the refusals among both.
    """

    calls: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    refused: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def of_call(cls, usage: Usage, price: Price | None, refused: int = 0) -> CallStatistics:
        """Statistics of one call that was sent."""
        cost = None if price is None else price.of(usage)
        return cls(1, 0, usage.prompt_tokens, usage.completion_tokens, cost, refused)

    def __add__(self, other: CallStatistics) -> CallStatistics:
        return CallStatistics(
            self.calls + other.calls,
            self.hits + other.hits,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            # An unknown cost stays unknown, or a sum would look cheaper than it is.
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.refused + other.refused,
        )


class BudgetReached(HapaxError):  # noqa: N818  # an expected outcome, with its own exit code
    """The next request would exceed the budget; it was not sent.

    `used`: statistics of this invocation. `answers`: answers to the interrupted batch, aligned with its requests (None
    for those that were not sent). Every answer is in the journal, so a later run continues from here.
    """

    def __init__(self, limit: str, allowed: float, used: CallStatistics) -> None:
        self.limit = limit
        self.allowed = allowed
        self.used = used
        self.answers: tuple[Any, ...] = ()
        cost = "unknown" if used.cost is None else f"{used.cost:.4f}"
        super().__init__(
            f"Budget reached: the next request would exceed the limit of {allowed:g} on {limit}; so far "
            f"{counted(used.calls, 'call')}, {counted(used.tokens, 'token')}, cost {cost}. "
            "Raise the limit and run the same command: nothing is asked twice."
        )


class Deferred(BudgetReached, PartlyAnswered):
    """Requests were recorded, to be answered elsewhere, instead of being sent. Other requests may still be sent."""

    def __init__(self, message: str) -> None:
        # Not BudgetReached.__init__: no limit was reached, and its message would say so.
        PartlyAnswered.__init__(self, message)
        self.limit, self.allowed, self.used = "requests sent", 0.0, CallStatistics()


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
