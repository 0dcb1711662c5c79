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
    path = Path(name).resolve()
    if name == STDOUT:
        yield sys.stdout
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    is_ordinary = path.is_file() or not path.exists()
    try:
        try:
            with (beside if is_ordinary else path).open("w", encoding="utf-8") as stream:
                yield stream
                stream.flush()
                if is_ordinary:
                    os.fsync(stream.fileno())
            if is_ordinary:
                if path.exists():
                    shutil.copymode(path, beside)
                beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise HapaxError(
            f"{name}: it cannot be written ({error.strerror}). What stood under this name is left as it was; free some "
            "space, allow writing, or name another file."
        ) from error
