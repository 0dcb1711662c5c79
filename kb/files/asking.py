"""Exclusive lock on asking models for one file, so that two processes never pay for the same answer.

It is a lock of the operating system on a file next to the knowledge base, so it ends with its process, even a killed
one. The file goes with the lock. Reading, and writing anything that did not come from a model, need no lock.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.kb.files import own_files, system

WAIT_SECONDS = 600.0
"""The longest that a request to a server may take, retries and pauses included."""

# Errors of file systems that do not support locks.
_WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


@contextmanager
def asking(path: Path, seconds: float | None = None) -> Iterator[None]:
    """Hold the lock on asking models for the file at `path`, after waiting for other processes. Nests in one thread.

    Raises HapaxError if another process holds it for `seconds` (None: WAIT_SECONDS), or if the lock file cannot be
    created.
    """
    seconds = WAIT_SECONDS if seconds is None else seconds
    place = _lock_path(path)
    lock = system.file_lock(place)
    try:
        _make(place, path.resolve())
        lock.acquire(timeout=seconds)
    except system.LockTimeout:
        raise HapaxError(
            f"{path}: another process has been asking models for this file for {seconds:g} seconds; it "
            f"holds {lock.lock_file}.",
            Remedy(
                "Run the same {} when that process has ended, or use another file with {} and merge the two later.",
                CALL,
                Setting("kb"),
            ),
        ) from None
    except OSError as error:
        raise HapaxError(
            f"{path}: the lock file {lock.lock_file} cannot be created or opened ({error.strerror}). {_remedy(error)}"
        ) from error
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            # Still locked: a process that waits for it sees that the file has no name any more, and makes another.
            with suppress(OSError):
                own_files.remove(place)
        lock.release()


def _make(lock: Path, database: Path) -> None:
    """Make the lock file if there is none, and let everyone who may write the knowledge base lock it, too."""
    file = own_files.open_file(lock, os.O_RDWR | os.O_CREAT, beside=database)
    try:
        with suppress(OSError):  # only the owner of the lock file can change its mode
            mode = database.stat().st_mode & 0o666 | stat.S_IRUSR | stat.S_IWUSR
            if stat.S_IMODE(os.fstat(file).st_mode) != mode:
                os.fchmod(file, mode)
    finally:
        os.close(file)


def _lock_path(path: Path) -> Path:
    resolved = path.resolve()  # a symbolic link must share the lock of its file
    return resolved.with_name(f"{resolved.name}-asking")


def _remedy(error: OSError) -> str:
    if isinstance(error, own_files.ForeignFileError):
        return "Remove it, or move it away."
    if error.errno in _WITHOUT_LOCKS:
        return "Its file system does not support locks: keep the file on one that does, such as a local disk."
    return "Allow writing to it and to its folder, or free some space."
