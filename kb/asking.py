"""One process at a time asks models on behalf of one file, so that two never pay for the same answer.

The lock is the system's, on a file beside the knowledge base: it goes with the process that holds it, however that
ends. Reading, and writing what no model says, need no lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from grammar.errors import HapaxError

WAIT_SECONDS = 600.0
"""As long as a request to a server may take with all its pauses."""


@contextmanager
def asking(path: Path) -> Iterator[None]:
    """The right to ask for the file at `path`, once no other process has it.

    Raises HapaxError when another one has it for `WAIT_SECONDS`, or when the lock cannot be made.
    """
    whole = path.resolve()  # a link to it is the same file
    lock = FileLock(whole.with_name(f"{whole.name}-asking"), timeout=WAIT_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise HapaxError(
            f"{path}: another process has been asking models for it for {WAIT_SECONDS:g} seconds. Run the same command "
            "when that one has ended, or name another file by --db and merge the two later."
        ) from None
    except OSError as error:
        raise HapaxError(
            f"{path}: its lock {lock.lock_file} cannot be made ({error.strerror}). Allow writing in its folder, or "
            "free some space."
        ) from error
    try:
        yield
    finally:
        lock.release()
