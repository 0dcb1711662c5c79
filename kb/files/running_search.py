"""The state of a running search, and what people ask of it, in two files beside its knowledge base.

The search replaces `FILE-running-RUN` as it goes on and removes it at its end; `FILE-wish-RUN` asks it to pause or to
end. Neither is knowledge, and the knowledge base may be locked, so that both stay outside of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb.files import own_files, system
from hapax.kb.files.unfinished import replace_file

SILENT_SECONDS = 3600.0
"""A search on another machine that has written nothing for so long is taken for ended."""


class Wish(StrEnum):
    """A request to a running search."""

    PAUSE = "pause"
    END = "end"


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a running search when it last wrote it.

    `done`: share of the search, from 0 to 1; `seconds_left`: at the present pace, None while that is unknown.
    `calls_per_minute`: requests of all roles in the last minute. `sent`: figures of `CallStatistics` by role.
    """

    process: int
    host: str
    written: float
    seconds: float
    is_paused: bool = False
    rules: str = ""
    done: float = 0.0
    seconds_left: float | None = None
    calls_per_minute: float = 0.0
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


class RunFiles:
    """The two files of one run on the knowledge base at `database`."""

    def __init__(self, database: Path, run_id: str) -> None:
        self._database = resolved = database.resolve()  # a symbolic link must share the files
        # Hashed: the id may come from a stranger's file, and must not lead elsewhere.
        key = hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._state = resolved.with_name(f"{resolved.name}-running-{key}")
        self._wish = resolved.with_name(f"{resolved.name}-wish-{key}")

    def write(self, state: RunState) -> None:
        """Replace the state. A disk that takes none costs the view of the search and not the search."""
        with suppress(OSError):
            replace_file(self._state, json.dumps(state.to_json()), is_durable=False)

    def read(self) -> RunState | None:
        """The state; None if no search has left one, or another program has written the file."""
        try:
            values = json.loads(own_files.read(self._state, self._database))
            state = RunState(**{known.name: values[known.name] for known in fields(RunState)})
            numbers = (state.written, state.seconds, state.done, state.seconds_left or 0.0, state.calls_per_minute)
            counts = (state.process, state.accepted, state.rejected)
            is_sound = all(isinstance(number, int | float) for number in numbers)
            is_sound = is_sound and all(isinstance(count, int) and count >= 0 for count in counts)
            return state if is_sound and isinstance(state.sent, dict) and state.process > 0 else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def ask(self, wish: Wish | None) -> None:
        """Ask the search to pause or to end; None: to go on. Raises HapaxError where the file cannot be written."""
        try:
            if wish is None:
                own_files.remove(self._wish)
            else:
                replace_file(self._wish, wish.value, is_durable=False)
        except OSError as fault:
            raise HapaxError(
                f"{self._wish} cannot be written ({fault.strerror}). Allow writing to its folder, or press Ctrl-C "
                "where the search runs."
            ) from fault

    def wish(self) -> Wish | None:
        """The wish that is left for the search; None: to go on."""
        try:
            return Wish(own_files.read(self._wish, self._database).decode("utf-8"))
        except (OSError, ValueError):
            return None

    def remove(self) -> None:
        """Remove both files, at the begin and the end of a search."""
        for path in (self._wish, self._state):
            with suppress(OSError):
                own_files.remove(path)
