"""Writes requests to servers into the knowledge base, each before it is sent, and again when its outcome is known.

The requests of a server leave from a thread of their own, and an SQLite connection belongs to one thread; so a log has
a thread and a connection of its own, and commits together whatever is waiting.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from hapax.grammar.errors import HapaxError
from hapax.kb.record_store import RecordStore
from hapax.kb.records import ATTEMPTS, AttemptRecord

CLOSING_SECONDS = 5.0

Entry = tuple[AttemptRecord | None, "Future[None]"]
"""An attempt to write, and its completion; None ends the thread."""


class AttemptLog:
    """Attempts on their way into the file at `path`; without a path they stay here until `taken`. Thread-safe."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Entry] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._unwritten: list[AttemptRecord] = []
        self._latest: Future[None] | None = None
        self._is_closed = False

    def write(self, attempt: AttemptRecord) -> Future[None]:
        """Write an attempt, in place of an earlier row of it. The future is done when it is on disk, or has failed."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # whoever stops waiting for it must not cancel the writing
        with self._lock:
            if self._is_closed:
                done.set_exception(HapaxError(f"{self._path}: the knowledge base was closed, so nothing is sent."))
                return done
            if self._path is None:
                self._unwritten.append(attempt)
                done.set_result(None)
                return done
            if self._thread is None:
                # Daemon: a file that stays locked must not keep the process from ending.
                self._thread = threading.Thread(target=_write_all, args=(self._path, self._queue), daemon=True)
                self._thread.start()
            self._queue.put((attempt, done))
            self._latest = done
        return done

    def flush(self) -> None:
        """Wait until all that was given is written, or has failed."""
        # Attempts are written in order, so the latest is done last; `exception` waits without raising it.
        if (latest := self._latest) is not None:
            # The queue is written in order, so when the latest is done all are.
            latest.exception()

    def taken(self) -> list[AttemptRecord]:
        """The attempts of a log without a path, which the caller then has to store."""
        with self._lock:
            taken, self._unwritten = self._unwritten, []
        return taken

    def close(self, seconds: float = CLOSING_SECONDS) -> None:
        """Write the waiting attempts, for at most this time, and close the file. Later attempts are refused."""
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
            if self._thread is not None and is_first:
                self._queue.put((None, Future()))
        if self._thread is not None and is_first:
            # Behind another process's lock an end must not take long. An outcome that is lost counts as the most.
            self._thread.join(seconds)


def _write_all(path: Path, queue: SimpleQueue[Entry]) -> None:
    """Write attempts as they come until the file is closed; a failure is passed to those that wait for it."""
    store: RecordStore | None = None
    is_open = True
    try:
        while is_open:
            entries = _waiting(queue)
            is_open = all(attempt is not None for attempt, _ in entries)
            try:
                if store is None:
                    # Opened by this thread, which alone may use it. After a failure the next entries try again.
                    store = RecordStore(path)
                attempts = [attempt for attempt, _ in entries if attempt is not None]
                # In the order of the queue: of a request's beginning and its outcome the outcome stays.
                store.add(ATTEMPTS, attempts)
            except Exception as fault:  # noqa: BLE001  whoever waits gets it
                for _, done in entries:
                    done.set_exception(fault)
            else:
                for _, done in entries:
                    done.set_result(None)
    finally:
        if store is not None:
            store.close()


def _waiting(queue: SimpleQueue[Entry]) -> list[Entry]:
    """All entries in the queue, up to one that announces the end; waits for the first."""
    entries = [queue.get()]
    with suppress(Empty):
        while entries[-1][0] is not None:
            entries.append(queue.get_nowait())
    return entries
