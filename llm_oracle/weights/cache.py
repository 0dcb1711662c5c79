"""The folder for what Hapax can make again on this machine: converted models."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hapax.kb.files import system

Notice = Callable[[str], None]
"""Receives a line for the user while something slow is prepared."""

CACHE_VARIABLE = "HAPAX_CACHE"
"""Environment variable that names another folder."""


def cache_folder() -> Path:
    """The folder, which may not exist yet: HAPAX_CACHE, else the platform's place for caches. Safe to delete."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hapax"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG base directory specification says to ignore relative paths.
    return (base if base.is_absolute() else Path.home() / ".cache") / "hapax"


@contextmanager
def alone(folder: Path, notice: Notice, work: str) -> Iterator[None]:
    """Hold the lock on making this folder of the cache, after waiting for another process that `work` says."""
    lock = system.file_lock(folder.with_suffix(".lock"))
    try:
        # Tried without waiting first, so that the user learns why nothing happens.
        lock.acquire(timeout=0)
    except system.LockTimeout:
        notice(f"Waiting for another process that {work}.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
