"""Atomic writing of files and folders: a file appears complete under its name, or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hapax.grammar.errors import HapaxError

STDOUT = "-"


@contextmanager
def atomic_text_file(name: str) -> Iterator[IO[str]]:
    """Text stream whose content becomes the file of this name when the block ends; `-` is standard output.

    Until then, and if an exception leaves the block, an earlier file of this name stays unchanged. Devices and standard
    output are written directly. Raises HapaxError if the file cannot be written.
    """
    if name == STDOUT:
        yield sys.stdout
        return
    with atomic_path(name) as path, path.open("w", encoding="utf-8") as stream:
        yield stream


@contextmanager
def atomic_path(name: str | Path) -> Iterator[Path]:
    """Temporary path with the same suffix, whose file takes this name when the block ends; otherwise as above."""
    path = Path(name).resolve()
    is_ordinary = path.is_file() or not path.exists()  # a device such as /dev/null must not be replaced
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    with _translated_errors(name):
        try:
            yield temporary if is_ordinary else path
            if is_ordinary:
                _replace(path, temporary)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(name: str | Path) -> Iterator[Path]:
    """Temporary folder, whose files move to the folder of this name when the block ends; otherwise as above."""
    folder = Path(name).resolve()
    temporary = folder.with_name(f".{os.getpid()}.{folder.name}")
    with _translated_errors(name):
        try:
            temporary.mkdir(parents=True)
            yield temporary
            folder.mkdir(exist_ok=True)
            for file in sorted(temporary.iterdir()):
                _replace(folder / file.name, file)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _replace(path: Path, written: Path) -> None:
    """Rename a written file to `path`, with the permissions of the file it replaces."""
    with written.open("rb+") as stream:
        os.fsync(stream.fileno())  # a rename may reach the disk before the content does
    if path.exists():
        shutil.copymode(path, written)
    written.replace(path)


@contextmanager
def _translated_errors(name: str | Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise HapaxError(
            f"{name}: there is no folder {Path(name).resolve().parent}. Create it, or name a file in another folder."
        ) from error
    except OSError as error:
        raise HapaxError(
            f"{name}: it cannot be written ({error.strerror or error}). An earlier file of this name is unchanged. "
            "Free some space, allow writing, or name another file."
        ) from error
