"""A running search as others see it: where it stands, and pausing and ending it from another process."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict

from hapax.engine.search.progress import ProgressCounter, SearchProgress
from hapax.kb import system
from hapax.kb.running import RunFiles, RunState, Wish
from hapax.llm_oracle.journal import Journal

WRITING_SECONDS = 1.0
"""Least time between two states."""
LOOKING_SECONDS = 0.2
"""Time between two looks at what is wanted."""
PACE_SECONDS = 60.0
"""Time over which the pace is taken."""


class WatchedSearch:
    """A display of progress that also writes the state beside the knowledge base, and the journal's pause.

    `files`: None for a knowledge base in memory, which nobody else can see. `display`: where progress goes, too.
    """

    def __init__(self, files: RunFiles | None, journal: Journal, display: SearchProgress | None) -> None:
        self._files, self._journal, self._display = files, journal, display
        self._paused_seconds = 0.0
        self._counter = ProgressCounter(clock=lambda: system.monotonic() - self._paused_seconds)
        # The first state is written at once.
        self._written = self._looked = float("-inf")
        self._wanted = False
        self._paces: deque[tuple[float, int]] = deque()

    def started(self, rules: int, calls: int) -> None:
        for display in self._displays():
            display.started(rules, calls)

    def searching(self, rules: Sequence[str], calls: int) -> None:
        for display in self._displays():
            display.searching(rules, calls)
        self._write()

    def expecting(self, calls: int) -> None:
        for display in self._displays():
            display.expecting(calls)

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        for display in self._displays():
            display.advanced(calls, hits, accepted, rejected)
        self.tick()

    def paused(self, is_paused: bool) -> None:
        for display in self._displays():
            display.paused(is_paused)
        self._write(is_paused)

    def tick(self) -> None:
        """Write the state if the last one is old enough."""
        if system.monotonic() - self._written >= WRITING_SECONDS:
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
            self.paused(True)
        while wish is Wish.PAUSE and self._files is not None:
            system.sleep(LOOKING_SECONDS)
            wish = self._files.wish()
        if wish is Wish.END:
            raise KeyboardInterrupt
        self._paused_seconds += system.monotonic() - began
        self._wanted = False
        # The pace of the last minute begins anew, without the pause.
        self._paces.clear()
        self.paused(False)

    def _displays(self) -> list[SearchProgress]:
        return [self._counter] if self._display is None else [self._counter, self._display]

    def _write(self, is_paused: bool = False) -> None:
        if self._files is None:
            return
        self._written = system.monotonic()
        counter = self._counter
        state = RunState(
            system.process_id(),
            socket.gethostname(),
            system.now().timestamp(),
            counter.seconds,
            is_paused,
            counter.rules,
            counter.share,
            counter.seconds_left,
            self._pace(),
            counter.accepted,
            counter.rejected,
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
