"""A running search as others see it: where it stands, and pausing and ending it from another process."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import asdict

from hapax.engine.search.progress import Progress
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
