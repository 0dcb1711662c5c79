"""Answers that the knowledge base does not take now, in an append-only file beside it that is forced to the disk.

A line is one row of the table `calls`, as a JSON list. Whoever appends or removes holds the lock on asking models.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.kb.files import own_files, system
from hapax.kb.records import CALLS, CallRecord


def spill_path(database: Path) -> Path:
    """Path of the file beside a knowledge base; it exists while answers wait in it."""
    resolved = database.resolve()  # a symbolic link must share the file
    return resolved.with_name(f"{resolved.name}-answers")


def append(database: Path, calls: Sequence[CallRecord]) -> None:
    """Append answers; they are on disk when this returns. Raises OSError if they cannot be, and leaves none of them."""
    lines = "".join(json.dumps(CALLS.row(call)) + "\n" for call in calls)
    path = spill_path(database)
    is_new = not path.exists()
    # Whoever may read the knowledge base may read its answers here.
    mode = database.stat().st_mode & 0o666
    file = own_files.open_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode, database)
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


def is_waiting(database: Path) -> bool:
    """True if answers wait beside a knowledge base. Somebody else's file or link of this name is left alone."""
    return own_files.is_there(spill_path(database), database)


def remove(database: Path) -> None:
    """Remove the file, whose answers are in the knowledge base now. Raises OSError if it cannot be removed."""
    own_files.remove(spill_path(database))


def spilled(database: Path) -> list[CallRecord]:
    """The answers in the file, oldest first; lines that were not written whole are left out.

    Raises HapaxError for a file that cannot be read.
    """
    try:
        lines = own_files.read(spill_path(database), database).split(b"\n")
    except (FileNotFoundError, own_files.ForeignFileError):
        return []
    except OSError as error:
        raise HapaxError(
            f"{spill_path(database)}: this file holds paid answers and cannot be read ({error.strerror}). "
            "Make it readable."
        ) from error
    calls: list[CallRecord] = []
    for line in lines:
        try:
            calls.append(CALLS.read(tuple(json.loads(line))))
        except (ValueError, TypeError, HapaxError):
            continue  # never acknowledged: it was being written when its process was killed
    return calls
