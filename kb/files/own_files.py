"""Files whose names Hapax chooses itself: beside a knowledge base, in a folder of shards, in its journal.

The folder may be a stranger's, such as a clone or a shared folder, with a link, a pipe or another user's file of that
name. So no link is followed, and nothing but a regular file is opened or removed. Links that the user names are
followed as in any other program; see `whole_files`.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hapax.kb.files import system

_LINK = "it is a symbolic link, and Hapax follows none there"


class ForeignFileError(OSError):
    """Something else than a file of Hapax has its name."""


def open_file(path: Path, flags: int, mode: int = 0o666, beside: Path | None = None) -> int:
    """Open a regular file, but not through a link, and return its descriptor.

    `beside`: the knowledge base that it belongs to. Then its owner must be this user or that of the knowledge base,
    unless others may write the knowledge base, too. Raises ForeignFileError, or another OSError.
    """
    try:
        # Without waiting: somebody may have put a pipe there.
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as fault:
        if path.is_symlink():
            raise _not_own(path, _LINK) from fault
        raise
    found = os.fstat(file)
    reason = _oddity(found, is_written=bool(flags & (os.O_WRONLY | os.O_RDWR)))
    if not reason and beside is not None and not _is_trusted(found.st_uid, beside):
        reason = "it belongs to another user"
    if reason:
        os.close(file)
        raise _not_own(path, reason)
    return file


def read(path: Path, beside: Path | None = None) -> bytes:
    """The content of a file. Raises OSError as `open_file` does."""
    with os.fdopen(open_file(path, os.O_RDONLY, beside=beside), "rb") as stream:
        return stream.read()


def is_there(path: Path, beside: Path | None = None) -> bool:
    """True if `open_file` would open this file for reading."""
    try:
        os.close(open_file(path, os.O_RDONLY, beside=beside))
    except ForeignFileError:
        return False
    except FileNotFoundError:
        return False
    except OSError:
        return True  # a file that may not be read must not pass for none
    return True


def remove(path: Path) -> None:
    """Remove a regular file; nothing happens if there is none. Raises ForeignFileError for anything else."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(kind):
        raise _not_own(path, "it is no regular file")
    system.remove(path)


def check_file(path: Path) -> None:
    """Raise ForeignFileError for a file that another library will write but `open_file` would not open for it."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if reason := _oddity(found, is_written=True):
        raise _not_own(path, reason)


def _oddity(found: os.stat_result, is_written: bool) -> str:
    """Why a file is not used; empty for a regular file, which has no other name if it `is_written`."""
    if stat.S_ISLNK(found.st_mode):
        return _LINK
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    return "it is a hard link, so another file would change with it" if is_written and found.st_nlink > 1 else ""


def _is_trusted(owner: int, beside: Path) -> bool:
    if owner == os.geteuid():
        return True
    try:
        database = beside.stat()
    except OSError:
        return False
    return owner == database.st_uid or bool(database.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _not_own(path: Path, reason: str) -> ForeignFileError:
    return ForeignFileError(errno.ELOOP, reason, str(path))
