"""Files and folders that are written beside their place, and removal of those that killed processes left.

Each lies in a hidden folder that is locked as long as its process lives. So a folder without a lock was left behind.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hapax.kb import system

PREFIX = ".hapax-unfinished-"

EARLIER = "earlier"
"""Folder, in a hidden folder, of what is being replaced, under its name."""


@contextmanager
def unfinished(place: Path) -> Iterator[Path]:
    """A free path with the name of `place`, on the same file system, to write a file or folder at.

    Whatever is still there when the block ends is removed, and so is what killed processes left beside `place`. Raises
    OSError if nothing can be written there.
    """
    sweep(place.parent)
    folder, lock = _locked_folder(place.parent)
    try:
        yield folder / place.name
    finally:
        _remove(folder)
        os.close(lock)


def exchange(new: Path, place: Path) -> None:
    """Replace the folder `place` by `new`, which `unfinished` gave. The block of `unfinished` removes the earlier one.

    If the process is killed in between, the next `sweep` puts the earlier folder back.
    """
    for path in new.rglob("*"):
        if path.is_file():
            system.sync_path(path)  # a rename may reach the disk before the content does
    if place.exists():
        earlier = new.parent / EARLIER
        earlier.mkdir()
        system.rename(place, earlier / place.name)
    system.rename(new, place)
    system.sync_folder(place.parent)


def sweep(folder: Path) -> None:
    """Remove the files that killed processes left in a folder; those of living processes stay."""
    try:
        left = [Path(entry.path) for entry in os.scandir(folder) if entry.name.startswith(PREFIX)]
    except OSError:
        return  # there is no folder, or none that may be read
    for path in left:
        with suppress(OSError):  # another user's, removed meanwhile, or on a file system without locks
            # Not through a symbolic link: in a shared folder somebody else may have put one there.
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                # A living process has the lock: BlockingIOError, which is an OSError.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """A new hidden folder with the descriptor that locks it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # swept before it was locked
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # without locks nothing sweeps it, either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a hidden folder, after moving what was being replaced back to a place that is empty."""
    with suppress(OSError):
        for kept in (folder / EARLIER).iterdir():
            place = folder.parent / kept.name
            if not place.exists():
                system.rename(kept, place)
    system.remove_folder(folder)
