"""How hard a server is asked: concurrency that adapts, requests and tokens per minute, and patience with faults."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType

from aiolimiter import AsyncLimiter
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from grammar.errors import HapaxError

Sleep = Callable[[float], Awaitable[None]]

DECREASE = 0.75
SUCCESSES_PER_STEP = 25
COOL_DOWN = 2.0
"""Seconds in which further refusals are the same congestion and slow down no more."""


class Fault(Exception):  # noqa: N818  # it says what happened; whether it becomes an error is decided by patience
    """What may be over at the next attempt: a refusal for now, an error of the server, a reply that cannot be used.

    `status` is the reply's, None where none came; 200: a reply that cannot be used. A refusal for now (429) does not
    count as an attempt.
    """

    def __init__(self, reason: str, status: int | None = 200, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after

    @property
    def is_congestion(self) -> bool:
        """Whether fewer requests at a time would help."""
        return self.status is not None and (self.status == 429 or self.status >= 500)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user allows. None: no limit."""

    max_concurrency: int = 16
    rpm: float | None = None
    tpm: float | None = None

    def shared(self, sharers: int) -> Limits:
        """What each of so many processes may do, so that all together keep these limits. Raises HapaxError for less
        than one request at a time."""
        if sharers > self.max_concurrency:
            raise HapaxError(
                f"{sharers} workers cannot share a max_concurrency of {self.max_concurrency}: each needs one request "
                "at a time. Give fewer --workers, or raise it in the model's alias."
            )
        rpm, tpm = (None if limit is None else limit / sharers for limit in (self.rpm, self.tpm))
        return Limits(self.max_concurrency // sharers, rpm, tpm)


@dataclass(frozen=True, slots=True)
class Patience:
    """Attempts with faults, pauses between them in seconds, and how long all pauses of one request may be together."""

    attempts: int = 5
    first_pause: float = 0.5
    longest_pause: float = 30.0
    seconds: float = 600.0
    timeout: float = 120.0
    """Of one attempt, from the first byte sent to the last byte read."""

    def retrying(self, sleep: Sleep) -> AsyncRetrying:
        """A fresh count of attempts for one request; the last fault is raised when patience ends."""
        random_pause = wait_random_exponential(multiplier=self.first_pause, max=self.longest_pause)
        counted = 0

        def pause(state: RetryCallState) -> float:
            fault = _fault(state)
            return random_pause(state) if fault.retry_after is None else fault.retry_after

        def is_over(state: RetryCallState) -> bool:
            nonlocal counted
            counted += _fault(state).status != 429
            return counted >= self.attempts or state.idle_for + state.upcoming_sleep > self.seconds

        return AsyncRetrying(retry=retry_if_exception_type(Fault), wait=pause, stop=is_over, sleep=sleep, reraise=True)


def _fault(state: RetryCallState) -> Fault:
    fault = state.outcome.exception() if state.outcome else None
    if not isinstance(fault, Fault):
        raise TypeError("patience is asked about faults alone")
    return fault


class Concurrency:
    """Requests at a time. Up to the first refusal one more after each success, so that the number doubles with each
    round; three quarters after a refusal, from then on one more after 25 successes (AIMD); never below one."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic, start: int = 4) -> None:
        self.most = max(1, most)
        self.allowed = float(min(start, self.most))
        self._clock = clock
        self._successes = 0
        self._per_step = 1
        self._cool_at = self._resume_at = -math.inf

    def succeeded(self) -> None:
        self._successes += 1
        if self._successes >= self._per_step:
            self._successes = 0
            self.allowed = min(self.allowed + 1, float(self.most))

    def refused(self, retry_after: float | None = None) -> None:
        """Slow down, once for all refusals of one cool-down; nothing new is sent before the time the server names."""
        now = self._clock()
        if now >= self._cool_at:
            self.allowed = max(1.0, self.allowed * DECREASE)
            self._successes, self._per_step = 0, SUCCESSES_PER_STEP
            self._cool_at = now + COOL_DOWN
        self._resume_at = max(self._resume_at, now + (retry_after or 0.0))

    @property
    def pause(self) -> float:
        """Seconds until the server wants to hear the next request."""
        return max(0.0, self._resume_at - self._clock())


class Throttle:
    """Lets requests through by all limits: `async with throttle.slot(tokens): send`."""

    def __init__(self, limits: Limits, concurrency: Concurrency, sleep: Sleep = asyncio.sleep) -> None:
        self.concurrency = concurrency
        self._sleep = sleep
        # Requests are spread evenly, because servers enforce a limit per minute over seconds, too; tokens may come in
        # bursts of a minute's worth, so that a long request fits.
        self._requests = AsyncLimiter(1, 60 / limits.rpm) if limits.rpm else None
        self._tokens = AsyncLimiter(limits.tpm, 60) if limits.tpm else None
        self._in_flight = 0
        self._freed = asyncio.Condition()

    def slot(self, tokens: int) -> Slot:
        return Slot(self, tokens)

    async def enter(self, tokens: int) -> None:
        """Waits until one more request of so many tokens may be sent."""
        async with self._freed:
            try:
                await self._freed.wait_for(lambda: self._in_flight < int(self.concurrency.allowed))
            except asyncio.CancelledError:
                self._freed.notify()  # who is cancelled may have been woken already, and somebody else would wait on
                raise
            self._in_flight += 1
        try:
            if pause := self.concurrency.pause:
                await self._sleep(pause)
            if self._tokens:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            if self._requests:
                await self._requests.acquire()
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """The request is over."""
        async with self._freed:
            self._in_flight -= 1
            # As many as there is room for: to wake all who wait, each time, takes longer than their requests.
            self._freed.notify(max(0, int(self.concurrency.allowed) - self._in_flight))


@dataclass(frozen=True, slots=True)
class Slot:
    """One request's place among those in flight."""

    throttle: Throttle
    tokens: int

    async def __aenter__(self) -> None:
        await self.throttle.enter(self.tokens)

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        concurrency = self.throttle.concurrency
        if kind is None:
            concurrency.succeeded()
        elif isinstance(fault, Fault) and fault.is_congestion:
            concurrency.refused(fault.retry_after)
        await self.throttle.leave()
