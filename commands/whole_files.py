"""Files that a command writes: whole under their names, or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grammar.errors import HapaxError

STDOUT = "-"


@contextmanager
def written_whole(name: str) -> Iterator[IO[str]]:
    """A text stream that becomes the file of this name when the block ends; `-` and devices are written at once.

    Until then, and when an exception leaves the block, an earlier file of the name stays as it was. Raises HapaxError
    where the system does not let it be written.
    """
    if name == STDOUT:
        yield sys.stdout
        return
    with replaced_whole(name) as path, path.open("w", encoding="utf-8") as stream:
        yield stream


@contextmanager
def replaced_whole(name: str | Path) -> Iterator[Path]:
    """The path of a file to write, of the same ending, that takes this name when the block ends; else as above."""
    path = Path(name).resolve()
    is_ordinary = path.is_file() or not path.exists()
    beside = path.with_name(f".{os.getpid()}.{path.name}")
    with _told(name):
        try:
            yield beside if is_ordinary else path
            if is_ordinary:
                _take_place(beside, path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def filled_whole(name: str | Path) -> Iterator[Path]:
    """A folder to write files into, which come into the folder of this name when the block ends; else as above."""
    folder = Path(name).resolve()
    beside = folder.with_name(f".{os.getpid()}.{folder.name}")
    with _told(name):
        try:
            beside.mkdir(parents=True)
            yield beside
            folder.mkdir(exist_ok=True)
            for file in sorted(beside.iterdir()):
                _take_place(file, folder / file.name)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _take_place(written: Path, path: Path) -> None:
    """Rename a file that is on the disk, under the rights of the one that had the name."""
    with written.open("rb+") as stream:
        os.fsync(stream.fileno())
    if path.exists():
        shutil.copymode(path, written)
    written.replace(path)


@contextmanager
def _told(name: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HapaxError(
            f"{name}: it cannot be written ({error.strerror or error}). What stood under this name is left as it was; "
            "free some space, allow writing, or name another file."
        ) from error
