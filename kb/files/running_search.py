"""The state of a running search, in a file beside its knowledge base.

The search replaces `FILE-running-RUN` as it goes on and removes it at its end. It is no knowledge, and the knowledge
base may be locked, so that it stays outside of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hapax.kb.files import own_files, system
from hapax.kb.files.unfinished import replace_file

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
