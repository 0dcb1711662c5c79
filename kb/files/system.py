"""The operating system as Hapax uses it: clock, pauses, locks, and what changes the names and content of files.

Other modules call these functions instead of `time`, `os`, `shutil` and `filelock`, so that `tools.simulate` can put
a simulated machine in their place. SQLite's files are simulated below SQLite, threads below the locks of `threading`,
and servers at the transport of httpx2.
"""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

LockTimeout = TimeoutError
"""Raised by `acquire` of a lock that another process holds for too long; filelock's own error is one."""


def now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Seconds since some moment, by a clock that is never set back."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Pause this thread."""
    time.sleep(seconds)


def process_id() -> int:
    """The number of this process on its machine."""
    return os.getpid()


def file_lock(path: Path) -> BaseFileLock:
    """A lock of the operating system, which ends with its process. Locks of one path in one process are one lock."""
    # Imported for the first lock: reading a knowledge base takes none.
    from filelock import FileLock

    # A soft lock is a mere file, which a killed process would leave behind.
    return FileLock(path, is_singleton=True, fallback_to_soft=False)


def write(file: int, content: bytes) -> None:
    """Write all of the content to an open file."""
    while content:
        # The system may take a part only, for example when the disk is nearly full.
        content = content[os.write(file, content) :]


def sync(file: int) -> None:
    """Force the content of an open file to the disk. A name that is new reaches it by `sync_folder`."""
    os.fsync(file)


def sync_path(path: Path) -> None:
    """Force the content of a file to the disk."""
    with path.open("rb+") as stream:
        sync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: Path, target: Path, folders: tuple[int, int] | None = None) -> None:
    """Give a file or folder another name, in place of a file that has it.

    `folders`: descriptors of the folders of both, whose paths then do not matter.
    """
    if folders is None:
        source.replace(target)
    else:
        os.rename(source.name, target.name, src_dir_fd=folders[0], dst_dir_fd=folders[1])


def remove(path: Path) -> None:
    """Remove a file; nothing happens if there is none."""
    path.unlink(missing_ok=True)


def remove_folder(folder: Path, parent: int) -> None:
    """Remove a folder and what is in it, as far as possible. `parent`: descriptor of the folder that it is in."""
    # By descriptors, so that nobody can put a link in the place of a folder while it is emptied.
    shutil.rmtree(folder.name, ignore_errors=True, dir_fd=parent)
