"""Answers that the knowledge base does not take now, in an append-only file beside it that is forced to the disk.

A line is one row of the table `calls`, as a JSON list. Whoever appends or removes holds the lock on asking models.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.kb import rows, system
from hapax.kb.records import CallRecord


def spill_path(database: Path) -> Path:
    """Path of the file beside a knowledge base; it exists while answers wait in it."""
    resolved = database.resolve()  # a symbolic link must share the file
    return resolved.with_name(f"{resolved.name}-answers")


def append(database: Path, calls: Sequence[CallRecord]) -> None:
    """Append answers; they are on disk when this returns. Raises OSError if they cannot be, and leaves none of them."""
    lines = "".join(json.dumps(rows.CALLS.row(call)) + "\n" for call in calls)
    path = spill_path(database)
    is_new = not path.exists()
    # Whoever may read the knowledge base may read its answers here.
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, database.stat().st_mode & 0o666)
    try:
        size = os.fstat(file).st_size
        # A process that was killed while it wrote leaves the beginning of a line.
        is_torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        try:
            system.write(file, (b"\n" if is_torn else b"") + lines.encode("ascii"))
            system.sync(file)
        except OSError:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)
    if is_new:
        system.sync_folder(path.parent)  # the name, too


def spilled(database: Path) -> list[CallRecord]:
    """The answers in the file, oldest first; lines that were not written whole are left out.

    Raises HapaxError for a file that cannot be read.
    """
    try:
        lines = spill_path(database).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HapaxError(
            f"{spill_path(database)}: this file holds paid answers and cannot be read ({error.strerror}). "
            "Make it readable."
        ) from error
    calls: list[CallRecord] = []
    for line in lines:
        try:
            calls.append(rows.CALLS.read(tuple(json.loads(line))))
        except (ValueError, TypeError, HapaxError):
            continue  # never acknowledged: it was being written when its process was killed
    return calls
