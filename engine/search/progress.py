"""Progress of a search: its events are counted and passed to watchers."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from hapax.grammar.arguments import checked
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.files.running_search import RunFiles, RunState, Wish
from hapax.llm_oracle.journal import Journal

ESTIMATE_FROM = 0.05
"""Share of a search from which its pace gives the time left; earlier questions are few and have long lists."""


Watcher = Callable[["Progress"], None]
"""Called after each event of a search, to show or to write its progress."""


@checked
@dataclass
class Progress:
    """The state of a running search, given to the progress callback at each event: calls, hits, accepted, share ...

    Rules take fewer or more calls than expected. Therefore finished rules count as expected, the share of the current
    rules follows from their calls, and what these are expected to take is corrected at each of their steps.

    `calls`, `hits`: requests to the knowledge model, and answers from the journal; `accepted`, `rejected`: values.
    `current`: names of the rules that are searched now, side by side. `paused_seconds`: time in which it waited.
    """

    watchers: Sequence[Watcher] = ()
    clock: Callable[[], float] = system.monotonic
    calls: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)
    accepted: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)
    is_paused: bool = field(default=False, init=False)
    paused_seconds: float = field(default=0.0, init=False)
    current: tuple[str, ...] = field(default=(), init=False)
    _rules: int = field(default=0, init=False)
    _expected: int = field(default=0, init=False)
    _rules_over: int = field(default=0, init=False)
    _expected_now: int = field(default=0, init=False)
    _expected_over: int = field(default=0, init=False)
    _asked_now: int = field(default=0, init=False)
    _started: float = field(default=0.0, init=False)

    def started(self, rules: int, calls: int) -> None:
        """A search of `rules` rules begins, which is expected to need `calls` calls of the knowledge model."""
        self._rules, self._expected, self._started = rules, calls, self.clock()

    def searching(self, rules: Sequence[str], calls: int) -> None:
        """The search of the next rules begins, side by side; `calls` of the expected calls are theirs."""
        self._rules_over += len(self.current)
        self._expected_over += self._expected_now
        self.current, self._expected_now, self._asked_now = tuple(rules), calls, 0
        self._tell()

    def expecting(self, calls: int) -> None:
        """The current rules are expected to need `calls` more calls, as follows from the answers so far."""
        now = self._asked_now + calls
        self._expected += now - self._expected_now
        self._expected_now = now
        self._tell()

    def advanced(self, calls: int = 0, hits: int = 0, accepted: int = 0, rejected: int = 0) -> None:
        """So many more calls to the knowledge model, answers from the journal, accepted and rejected values."""
        self.calls += calls
        self.hits += hits
        self.accepted += accepted
        self.rejected += rejected
        self._asked_now += calls + hits
        self._tell()

    def paused(self, is_paused: bool) -> None:
        """The search waits, because somebody has paused it from elsewhere, or it goes on."""
        self.is_paused = is_paused
        self._tell()

    def _tell(self) -> None:
        for watcher in self.watchers:
            watcher(self)

    @property
    def seconds(self) -> float:
        """Seconds since the search began, without those in which it waited."""
        return self.clock() - self._started - self.paused_seconds

    @property
    def share(self) -> float:
        """Share of the search that is done, from 0 to 1."""
        # Rules that take more calls than expected count as done at most.
        done = self._expected_over + min(self._asked_now, self._expected_now)
        return done / self._expected if self._expected else 0.0

    @property
    def rules(self) -> str:
        """The current rules: `rule 3 of 9`, `rules 1 to 8 of 9`."""
        first, last = self._rules_over + 1, self._rules_over + len(self.current)
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


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: `0:01:40`."""
    return str(timedelta(seconds=round(seconds)))


WRITING_SECONDS = 1.0
"""Least time between two states."""
LOOKING_SECONDS = 0.2
"""Time between two looks at what is wanted."""
PACE_SECONDS = 60.0
"""Time over which the pace is taken."""


class WatchedSearch:
    """Writes the progress of a search beside the knowledge base, and is the journal's pause.

    `files`: None for a knowledge base in memory, which nobody else can see.
    """

    def __init__(self, files: RunFiles | None, journal: Journal, progress: Progress) -> None:
        self._files, self._journal, self._progress = files, journal, progress
        # The first state is written at once.
        self._written = self._looked = float("-inf")
        self._shown: tuple[object, ...] = ()
        self._wanted = False
        self._paces: deque[tuple[float, int]] = deque()

    def show(self, progress: Progress) -> None:
        """Write the state if it says something new, or if the last one is old enough."""
        now = (progress.current, progress.is_paused)
        if now != self._shown or system.monotonic() - self._written >= WRITING_SECONDS:
            self._shown = now
            self._write()

    # The journal's pause

    @property
    def is_wanted(self) -> bool:
        """True if nothing more may be sent now."""
        now = system.monotonic()
        if self._files is not None and now - self._looked >= LOOKING_SECONDS:
            self._looked, self._wanted = now, self._files.wish() is not None
        return self._wanted

    def wait(self) -> None:
        """Wait until the search may go on. Raises KeyboardInterrupt if it is asked to end."""
        began = system.monotonic()
        wish = self._files.wish() if self._files else None
        if wish is Wish.PAUSE:
            self._progress.paused(True)
        while wish is Wish.PAUSE and self._files is not None:
            system.sleep(LOOKING_SECONDS)
            wish = self._files.wish()
        if wish is Wish.END:
            raise KeyboardInterrupt
        self._progress.paused_seconds += system.monotonic() - began
        self._wanted = False
        # The pace of the last minute begins anew, without the pause.
        self._paces.clear()
        self._progress.paused(False)

    def _write(self) -> None:
        if self._files is None:
            return
        self._written = system.monotonic()
        progress = self._progress
        state = RunState(
            system.process_id(),
            socket.gethostname(),
            system.now().timestamp(),
            progress.seconds,
            progress.is_paused,
            progress.rules,
            progress.share,
            progress.seconds_left,
            self._pace(),
            progress.accepted,
            progress.rejected,
            {role: asdict(statistics) for role, statistics in self._journal.statistics.items()},
        )
        self._files.write(state)

    def _pace(self) -> float:
        """Requests a minute, over the last minute."""
        now, calls = system.monotonic(), self._journal.total.calls
        self._paces.append((now, calls))
        while now - self._paces[0][0] > PACE_SECONDS:
            self._paces.popleft()
        began, before = self._paces[0]
        return 60 * (calls - before) / (now - began) if now > began else 0.0
