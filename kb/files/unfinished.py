"""Files and folders that are written in a hidden folder beside their place, and removal of what killed processes left.

The user's journal has a record of each hidden folder as long as it is used, locked by its process. Only a folder that a
record without a lock names is swept: in a stranger's folder anything may be named like one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hapax.kb.files import own_files, system

PREFIX = ".hapax-unfinished-"

EARLIER = "earlier"
"""Folder, in a hidden folder, of what is being replaced, under its name."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Identity = tuple[int, int]
"""Inode and owner of a hidden folder. Not its device, whose number may change when the machine starts again."""


@contextmanager
def unfinished(place: Path, *, is_durable: bool = True) -> Iterator[Path]:
    """A free path with the name of `place`, on the same file system, to write a file or folder at.

    Whatever is still there when the block ends is removed, and so is what killed processes of this user left beside
    `place`. `is_durable`: also after a power cut. Raises OSError if nothing can be written there.
    """
    sweep(place.parent)
    folder = place.parent.resolve() / f"{PREFIX}{secrets.token_hex(8)}"
    record = _Record.begin(folder)
    try:
        folder.mkdir(0o700)
        found = folder.lstat()
        identity = found.st_ino, found.st_uid
        if record is not None:
            record.write(folder, identity, is_durable)
        try:
            yield folder / place.name
        finally:
            with suppress(OSError):
                _remove(folder, identity)
    finally:
        if record is not None:
            # Kept for the next sweep if the folder could not be removed.
            record.end(forget=not folder.exists())


def publish(written: Path, place: Path, *, is_durable: bool = True) -> None:
    """Give a written file the name of `place`, with the permissions of a file that it replaces.

    A link of that name is replaced, not followed. `is_durable`: also after a power cut.
    """
    if is_durable:
        system.sync_path(written)  # a rename may reach the disk before the content does
    with suppress(FileNotFoundError):
        replaced = place.lstat()
        if stat.S_ISREG(replaced.st_mode):
            written.chmod(stat.S_IMODE(replaced.st_mode))
        elif not stat.S_ISLNK(replaced.st_mode):
            raise own_files.ForeignFileError(errno.EEXIST, "it is no regular file", str(place))
    system.rename(written, place)
    if is_durable:
        system.sync_folder(place.parent)  # the name, too


def replace_file(place: Path, content: str | bytes, *, is_durable: bool = True) -> None:
    """Write a file as a whole, in place of a file or link of this name. Raises OSError if it cannot be written."""
    with unfinished(place, is_durable=is_durable) as written:
        written.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        publish(written, place, is_durable=is_durable)


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
    """Remove the hidden folders that killed processes of this user left in a folder; those of living ones stay."""
    journal = journal_folder()
    if journal is None:
        return
    with suppress(OSError):
        folder = folder.resolve()
        for path in journal.iterdir():
            with suppress(OSError):  # removed meanwhile, of a living process, or on a file system without locks
                _Record.sweep(path, folder)


class _Record:
    """A record of the journal about one hidden folder, whose name it has."""

    def __init__(self, path: Path, file: int) -> None:
        self.path, self._file = path, file

    @classmethod
    def begin(cls, folder: Path) -> _Record | None:
        """A new record, locked; None if there can be none. Then a kill leaves the hidden folder for good."""
        journal = journal_folder(make=True)
        if journal is None:
            return None
        path = journal / folder.name
        try:
            while True:
                record = cls(path, own_files.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                try:
                    fcntl.flock(record._file, fcntl.LOCK_EX)
                    if os.fstat(record._file).st_nlink:  # otherwise it was swept before it was locked
                        record.write(folder, None)
                        return record
                except OSError:
                    record.end(forget=True)
                    raise
                record.end(forget=False)
        except OSError:
            return None

    def write(self, folder: Path, identity: Identity | None, is_durable: bool = False) -> None:
        """Record the folder's place, and its identity once it is made."""
        content = json.dumps({"folder": str(folder.parent), "identity": identity}).encode("ascii")
        with suppress(OSError):  # on a full disk the folder is left for good if the process is killed
            os.lseek(self._file, 0, os.SEEK_SET)
            system.write(self._file, content.ljust(os.fstat(self._file).st_size))
            if is_durable:
                system.sync(self._file)
                system.sync_folder(self.path.parent)

    def end(self, forget: bool) -> None:
        """Unlock the record, and remove it if `forget`."""
        try:
            if forget:
                with suppress(OSError):
                    own_files.remove(self.path)
        finally:
            os.close(self._file)

    @classmethod
    def sweep(cls, path: Path, folder: Path) -> None:
        """Remove the hidden folder of this record, if it lies in `folder` and no process uses it."""
        record, forget = cls(path, own_files.open_file(path, os.O_RDWR)), False
        try:
            # A living process has the lock: BlockingIOError, which is an OSError.
            fcntl.flock(record._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            place, identity = _recorded(os.read(record._file, os.fstat(record._file).st_size))
            if place == str(folder):
                _remove(folder / path.name, identity)
            forget = place in ("", str(folder))
        finally:
            record.end(forget)


def _recorded(content: bytes) -> tuple[str, Identity | None]:
    """Folder and identity of a record; the folder is empty if a killed process did not write it."""
    try:
        record = json.loads(content)
        identity = record["identity"] and (int(record["identity"][0]), int(record["identity"][1]))
        return str(record["folder"]), identity
    except (ValueError, TypeError, LookupError):
        return "", None


def journal_folder(make: bool = False) -> Path | None:
    """The folder of this user's journal; None if nothing but this user's processes may write it, or it cannot be had.

    It lies in XDG_STATE_HOME, else in ~/.local/state.
    """
    try:
        base = Path(os.environ.get("XDG_STATE_HOME", ""))
        # The XDG base directory specification says to ignore relative paths.
        own = (base if base.is_absolute() else Path.home() / ".local" / "state") / "hapax"
        journal = own / "unfinished"
        if make:
            own.mkdir(0o700, parents=True, exist_ok=True)
            journal.mkdir(0o700, exist_ok=True)
        found = journal.lstat()
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    is_private = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return journal if is_private and stat.S_ISDIR(found.st_mode) else None


def _remove(path: Path, identity: Identity | None) -> None:
    """Remove a hidden folder with this identity, after moving what was being replaced back to a place that is empty.

    None: only if the folder is empty. Raises OSError if it cannot be removed.
    """
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            hidden = os.open(path.name, _FOLDER, dir_fd=parent)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            found = os.fstat(hidden)
            if identity is None:
                os.rmdir(path.name, dir_fd=parent)
            elif (found.st_ino, found.st_uid) == identity:
                _put_back(path, hidden, parent)
                system.remove_folder(path, parent)
        finally:
            os.close(hidden)
    finally:
        os.close(parent)


def _put_back(path: Path, hidden: int, parent: int) -> None:
    """Move what was being replaced back to its place, if that is empty."""
    with suppress(OSError):
        earlier = os.open(EARLIER, _FOLDER, dir_fd=hidden)
        try:
            for replaced in [entry.name for entry in os.scandir(earlier)]:
                if not os.path.lexists(path.parent / replaced):
                    system.rename(path / EARLIER / replaced, path.parent / replaced, (earlier, parent))
        finally:
            os.close(earlier)
