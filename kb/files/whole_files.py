"""Files as wholes: a text is read at once, and a file appears complete under its name, or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from hapax.grammar.errors import HapaxError
from hapax.kb.files.unfinished import publish, unfinished

STDOUT = "-"


def read_text(path: Path, remedy: str) -> str:
    """The text of a file in UTF-8, line ends as they are. Raises HapaxError, which ends in the remedy."""
    try:
        # `-sig`: spreadsheets write a byte order mark, which would become part of the first word.
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read as UTF-8 text ({fault}). {remedy}") from None


@contextmanager
def atomic_text_file(name: str) -> Iterator[IO[str]]:
    """Text stream whose content becomes the file of this name when the block ends; `-` is standard output.

    Until then, and if an exception leaves the block, an earlier file of this name stays unchanged. Devices and standard
    output are written directly. Raises HapaxError if the file cannot be written.
    """
    if name == STDOUT:
        with _exact_output():
            yield sys.stdout
        return
    with atomic_path(name) as path, path.open("w", encoding="utf-8") as stream:
        yield stream


@contextmanager
def _exact_output() -> Iterator[None]:
    """Raise HapaxError for text that the encoding of standard output does not have, in place of any substitute."""
    stream = sys.stdout
    # A notebook or a test may have put another stream there, which takes every text.
    if not isinstance(stream, TextIOWrapper):
        yield
        return
    errors = stream.errors
    # The command line lets standard output escape what it cannot encode; a file must not be changed so.
    stream.reconfigure(errors="strict")
    try:
        yield
        # A text that is still waiting may be the one that cannot be encoded.
        stream.flush()
    except UnicodeEncodeError as fault:
        raise HapaxError(
            f"Standard output is encoded in {stream.encoding}, which lacks {fault.object[fault.start]!a}. "
            "Set PYTHONIOENCODING=utf-8, or write to a file."
        ) from fault
    finally:
        stream.reconfigure(errors=errors)


@contextmanager
def atomic_path(name: str | Path) -> Iterator[Path]:
    """Temporary path with the same suffix, whose file takes this name if the block ends without an error."""
    with _translated_errors(name):
        # A symbolic link stays, and the file that it names is replaced.
        path = Path(name).resolve()
        if path.exists() and not path.is_file():  # a device such as /dev/null must not be replaced
            yield path
            return
        with unfinished(path) as temporary:
            yield temporary
            publish(temporary, path)


@contextmanager
def _translated_errors(name: str | Path) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # `Path.resolve` raises this for links that lead to each other.
        if "Symlink loop" not in str(error):
            raise
        raise HapaxError(f"{name}: the path cannot be followed ({error}). Name another file.") from error
    except FileNotFoundError as error:
        raise HapaxError(
            f"{name}: there is no folder {Path(name).resolve().parent}. Create it, or name a file in another folder."
        ) from error
    except OSError as error:
        raise HapaxError(
            f"{name}: it cannot be written ({error.strerror or error}). An earlier file of this name is unchanged. "
            "Free some space, allow writing, or name another file."
        ) from error
