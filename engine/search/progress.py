"""Progress of a search: the events that a display receives, and a counter of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from hapax.grammar.arguments import checked
from hapax.grammar.words import counted
from hapax.kb import system

ESTIMATE_FROM = 0.05
"""Share of a search from which its pace gives the time left; earlier questions are few and have long lists."""


class SearchProgress(Protocol):
    """A display of progress. The engine calls it, and does not know how anything is shown."""

    def started(self, rules: int, calls: int) -> None:
        """A search of `rules` rules begins, which is expected to need `calls` calls of the knowledge model."""

    def searching(self, rules: Sequence[str], calls: int) -> None:
        """The search of the next rules begins, side by side; `calls` of the expected calls are theirs."""

    def expecting(self, calls: int) -> None:
        """The current rules are expected to need `calls` more calls, as follows from the answers so far."""

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        """Numbers of new calls to the knowledge model, answers from the journal, accepted and rejected values."""

    def paused(self, is_paused: bool) -> None:
        """The search waits, because somebody has paused it from elsewhere, or it goes on."""


@dataclass
class ProgressCounter:
    """A `SearchProgress` that counts, for displays of every kind.

    Rules take fewer or more calls than expected. Therefore finished rules count as expected, the share of the current
    rules follows from their calls, and what these are expected to take is corrected at each of their steps.
    """

    clock: Callable[[], float] = system.monotonic
    calls: int = 0
    hits: int = 0
    accepted: int = 0
    rejected: int = 0
    is_paused: bool = False
    _rules: int = 0
    _expected: int = 0
    _current: tuple[str, ...] = ()
    _rules_over: int = 0
    _expected_now: int = 0
    _expected_over: int = 0
    _asked_now: int = 0
    _started: float = 0.0

    def started(self, rules: int, calls: int) -> None:
        self._rules, self._expected, self._started = rules, calls, self.clock()
        self._current, self._rules_over, self._expected_now, self._expected_over, self._asked_now = (), 0, 0, 0, 0

    def searching(self, rules: Sequence[str], calls: int) -> None:
        self._rules_over += len(self._current)
        self._expected_over += self._expected_now
        self._current, self._expected_now, self._asked_now = tuple(rules), calls, 0

    def expecting(self, calls: int) -> None:
        now = self._asked_now + calls
        self._expected += now - self._expected_now
        self._expected_now = now

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        self.calls += calls
        self.hits += hits
        self.accepted += accepted
        self.rejected += rejected
        self._asked_now += calls + hits

    def paused(self, is_paused: bool) -> None:
        self.is_paused = is_paused

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return self.clock() - self._started

    @property
    def share(self) -> float:
        """Share of the search that is done, from 0 to 1."""
        # Rules that take more calls than expected count as done at most.
        done = self._expected_over + min(self._asked_now, self._expected_now)
        return done / self._expected if self._expected else 0.0

    @property
    def rules(self) -> str:
        """The current rules: `rule 3 of 9`, `rules 1 to 8 of 9`."""
        first, last = self._rules_over + 1, self._rules_over + len(self._current)
        return f"rule {first} of {self._rules}" if first == last else f"rules {first} to {last} of {self._rules}"

    @property
    def counts(self) -> str:
        """`204 calls, 1 hit, 310 accepted, 95 rejected`."""
        return (
            f"{counted(self.calls, 'call')}, {counted(self.hits, 'hit')}, "
            f"{self.accepted} accepted, {self.rejected} rejected"
        )

    @property
    def left(self) -> str:
        """The time left at the present pace, `, 0:01:40 left`; empty while it is unknown; or that the search waits."""
        if self.is_paused:
            return ", paused from a browser"
        return "" if self.seconds_left is None else f", {duration(self.seconds_left)} left"

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at the present pace; None while that cannot be estimated, and at the end."""
        return self.seconds * (1 / self.share - 1) if ESTIMATE_FROM <= self.share < 1 else None


@checked
class Progress(ProgressCounter):
    """The state of a running search, given to the progress callback at each event: calls, hits, accepted, share ..."""

    def __init__(self, callback: Callable[[Progress], None]) -> None:
        super().__init__()
        self._callback = callback

    def started(self, rules: int, calls: int) -> None:
        # The counter first, so that the callback sees the event counted.
        super().started(rules, calls)
        self._callback(self)

    def searching(self, rules: Sequence[str], calls: int) -> None:
        super().searching(rules, calls)
        self._callback(self)

    def expecting(self, calls: int) -> None:
        super().expecting(calls)
        self._callback(self)

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        super().advanced(calls, hits, accepted, rejected)
        self._callback(self)

    def paused(self, is_paused: bool) -> None:
        super().paused(is_paused)
        self._callback(self)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: `0:01:40`."""
    return str(timedelta(seconds=round(seconds)))
