"""Progress of a search: its events are counted and passed to watchers."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from hapax.grammar.arguments import checked
from hapax.grammar.writing.words import counted
from hapax.kb.files import own_files, system
from hapax.kb.files.unfinished import replace_file
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
    `current`: names of the rules that are searched now, side by side.
    """

    watchers: Sequence[Watcher] = ()
    clock: Callable[[], float] = system.monotonic
    calls: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)
    accepted: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)
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

    def _tell(self) -> None:
        for watcher in self.watchers:
            watcher(self)

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
        """The time left at the present pace, `, 0:01:40 left`; empty while it is unknown."""
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


class StateWriter:
    """Writes the progress of a search beside the knowledge base."""

    def __init__(self, file: RunFile, journal: Journal) -> None:
        self._file, self._journal = file, journal
        # The first state is written at once.
        self._written = float("-inf")
        self._shown: tuple[str, ...] = ()

    def show(self, progress: Progress) -> None:
        """Write the state if it says something new, or if the last one is old enough."""
        now = system.monotonic()
        if progress.current == self._shown and now - self._written < WRITING_SECONDS:
            return
        self._shown, self._written = progress.current, now
        state = RunState(
            system.process_id(),
            socket.gethostname(),
            system.now().timestamp(),
            progress.seconds,
            progress.rules,
            progress.share,
            progress.seconds_left,
            progress.accepted,
            progress.rejected,
            {role: asdict(statistics) for role, statistics in self._journal.statistics.items()},
        )
        self._file.write(state)


# --- the file of a running search -------------------------------------------------------------------------------------


SILENT_SECONDS = 3600.0
"""A search on another machine that has written nothing for so long is taken for ended."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a running search when it last wrote it.

    `done`: share of the search, from 0 to 1; `seconds_left`: at the present pace, None while that is unknown.
    `sent`: figures of `CallStatistics` by role.
    """

    process: int
    host: str
    written: float
    seconds: float
    rules: str = ""
    done: float = 0.0
    seconds_left: float | None = None
    accepted: int = 0
    rejected: int = 0
    sent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """False if its process has ended; on another machine, if it has been silent for SILENT_SECONDS."""
        if self.host != socket.gethostname():
            return system.now().timestamp() - self.written < SILENT_SECONDS
        try:
            # Signal 0 is not sent; the call only tells whether the process exists.
            os.kill(self.process, 0)
        except PermissionError:
            return True  # somebody else's
        except (OSError, OverflowError):
            return False
        return True

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return asdict(self)


class RunFile:
    """The file of one run on the knowledge base at `database`."""

    def __init__(self, database: Path, run_id: str) -> None:
        self._database = resolved = database.resolve()  # a symbolic link must share the file
        # Hashed: the id may come from a stranger's file, and must not lead elsewhere.
        key = hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._path = resolved.with_name(f"{resolved.name}-running-{key}")

    def write(self, state: RunState) -> None:
        """Replace the state. A disk that takes none costs the view of the search and not the search."""
        with suppress(OSError):
            replace_file(self._path, json.dumps(state.to_json()), is_durable=False)

    def read(self) -> RunState | None:
        """The state; None if no search has left one, or another program has written the file."""
        try:
            values = json.loads(own_files.read(self._path, self._database))
            state = RunState(**{known.name: values[known.name] for known in fields(RunState)})
            numbers = (state.written, state.seconds, state.done, state.seconds_left or 0.0)
            counts = (state.process, state.accepted, state.rejected)
            is_sound = all(isinstance(number, int | float) for number in numbers)
            is_sound = is_sound and all(isinstance(count, int) and count >= 0 for count in counts)
            return state if is_sound and isinstance(state.sent, dict) and state.process > 0 else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self) -> None:
        """Remove the file, at the begin and the end of a search."""
        with suppress(OSError):
            own_files.remove(self._path)
