"""One process at a time asks models on behalf of one file, so that two never pay for the same answer.

The lock is the system's, on a file beside the knowledge base: it goes with the process that holds it, however that
ends. Reading, and writing what no model says, need no lock.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from grammar.errors import HapaxError

WAIT_SECONDS = 600.0
"""As long as a request to a server may take with all its pauses."""

_WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
"""What file systems say that have no locks."""


@contextmanager
def asking(path: Path) -> Iterator[None]:
    """The right to ask for the file at `path`, once no other process has it. Within one thread it nests.

    Raises HapaxError when another one has it for `WAIT_SECONDS`, or when the lock cannot be made.
    """
    whole = path.resolve()  # a link to it is the same file
    lock = FileLock(whole.with_name(f"{whole.name}-asking"), is_singleton=True, fallback_to_soft=False)
    try:
        lock.acquire(timeout=WAIT_SECONDS)
    except Timeout:
        raise HapaxError(
            f"{path}: another process has been asking models for it for {WAIT_SECONDS:g} seconds; it holds "
            f"{lock.lock_file}. Run the same command when that one has ended, or name another file by --db and merge "
            "the two later."
        ) from None
    except OSError as error:
        raise HapaxError(
            f"{path}: its lock {lock.lock_file} cannot be made or opened ({error.strerror}). {_remedy(error)}"
        ) from error
    try:
        _share(Path(lock.lock_file), whole)
        yield
    finally:
        lock.release()


def _share(lock: Path, whole: Path) -> None:
    """Who may write the knowledge base may lock it. Only the lock's owner can see to that."""
    with suppress(OSError):
        mode = whole.stat().st_mode & 0o666 | stat.S_IRUSR | stat.S_IWUSR
        if stat.S_IMODE(lock.stat().st_mode) != mode:
            lock.chmod(mode)


def _remedy(error: OSError) -> str:
    if error.errno in _WITHOUT_LOCKS:
        return "Its file system has no locks: keep the file on one that does, such as a local disk."
    return "Allow writing to it and in its folder, or free some space."
