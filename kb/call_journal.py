"""The journal of a knowledge base: answers of models, paid once, and the requests that left for them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.kb import connection
from hapax.kb.files import asking, own_files, spill
from hapax.kb.record_store import FileMoved, RecordStore
from hapax.kb.records import ATTEMPTS, CALLS, AttemptRecord, CallRecord
from hapax.kb.rows import OnConflict

SPILL_SECONDS = 0.5
"""Seconds that an answer waits in memory for another process's lock before it goes into the file beside."""

TIMED_ANSWERS = 10_000
"""Newest answers by which the pace of a model is known."""

LONGEST_PAUSE = 600
"""Seconds between answers beyond which nothing ran."""


@checked
class CallJournal(RecordStore):
    """A record store with the journal of its calls to models."""

    _attempt_log: AttemptLog | None = None

    def record_calls(self, calls: Iterable[CallRecord]) -> None:
        """Store paid answers, on disk when this returns.

        A request answered before keeps its first answer, unless it had no usable reply.

        If the file is locked or the disk fails, they go into a file beside it, from which `bring_home` moves them.
        """
        if self.connection.in_transaction:
            raise RuntimeError("a call recorded inside a transaction is not safe on disk; record it outside")
        calls = list(calls)
        if self.path is None:
            self._add_calls(calls)
            return
        is_waiting = spill.is_waiting(self.path)
        try:
            with self.transaction(0.0 if is_waiting else min(SPILL_SECONDS, connection.BUSY_SECONDS)):
                self._add_calls(calls)
        except FileMoved:
            raise
        except HapaxError as fault:
            if not isinstance(fault.__cause__, sqlite3.OperationalError):
                raise
            self._spill(self.path, calls, fault)

    def _add_calls(self, calls: Sequence[CallRecord]) -> None:
        stored = self.select_in(CALLS, "request_id", [call.request_id for call in calls])
        unusable = {call.request_id for call in stored if call.is_unusable}
        self.add(CALLS, (call for call in calls if call.request_id not in unusable))
        self.add(CALLS, (call for call in calls if call.request_id in unusable), OnConflict.REPLACE)

    def _spill(self, path: Path, calls: Sequence[CallRecord], fault: HapaxError) -> None:
        """Append answers to the file beside. Raises the fault of the knowledge base if that fails, too."""
        try:
            with asking.asking(path, 0.0):
                spill.append(path, calls)
        except own_files.ForeignFileError as other:
            raise HapaxError(
                f"{fault} Nor can they be kept in {other.filename}: {other.strerror}. Remove it, or move it away."
            ) from fault.__cause__
        except (HapaxError, OSError):
            raise fault from fault.__cause__

    def bring_home(self, seconds: float | None = None) -> bool:
        """Move the answers of the file beside into this one; False if there are none.

        `seconds`: how long to wait for each lock; None: as long as other writes. Raises HapaxError if they stay there.
        """
        if self.path is None or self.connection.in_transaction or not spill.is_waiting(self.path):
            return False  # inside a transaction they would be gone from the file beside before they are in this one
        try:
            with asking.asking(self.path, seconds):
                with self.transaction(seconds):
                    self._add_calls(spill.spilled(self.path))
                with suppress(OSError):  # they come home again, which changes nothing
                    spill.remove(self.path)
        except HapaxError as fault:
            name = spill.spill_path(self.path).name
            raise HapaxError(
                f"{fault} Answers that it does not take are safe in {name}, beside it; the next command that writes "
                "moves them into it."
            ) from fault
        return True

    @property
    def attempt_log(self) -> AttemptLog:
        """The log of requests that leave for servers while this object is open."""
        if self._attempt_log is None:
            from hapax.kb.call_journal import AttemptLog

            self._attempt_log = AttemptLog(self.path)
        return self._attempt_log

    def attempts(self) -> list[AttemptRecord]:
        """All requests that left for servers, in the order they were first written."""
        if self._attempt_log is not None:
            self._attempt_log.flush()
            self.add(ATTEMPTS, self._attempt_log.taken())
        return self.select(ATTEMPTS)

    def attempt_counts(self) -> dict[str | None, int]:
        """Number of requests that were written down before they left for servers, by outcome; None: none is known."""
        if not self.has(ATTEMPTS.name):
            return {}
        return dict(self.sql("SELECT outcome, count(*) FROM attempts GROUP BY 1"))

    def attempt_sums(self) -> dict[tuple[str, str], tuple[int, int, int, int]]:
        """By model and role: requests that left, those answered, and their prompt and completion tokens."""
        if not self.has(ATTEMPTS.name):
            return {}
        sql = (
            "SELECT model, role, count(*), sum(outcome IN ('answered', 'refused')), sum(prompt_tokens), "
            "sum(completion_tokens) FROM attempts WHERE coalesce(outcome, '') NOT IN ('unsent', 'queued') GROUP BY 1, 2"
        )
        return {
            (model, role): (count, answered or 0, *tokens) for model, role, count, answered, *tokens in self.sql(sql)
        }

    def call(self, request_id: str) -> CallRecord | None:
        return self.calls([request_id]).get(request_id)

    def calls(self, request_ids: Iterable[str] | None = None) -> dict[str, CallRecord]:
        """Answered requests by id, or all of them for None. Unanswered ids are left out."""
        wanted = None if request_ids is None else list(dict.fromkeys(request_ids))
        # Read first: answers that come home in between are then found in the file.
        away = {call.request_id: call for call in spill.spilled(self.path)} if self.path else {}
        records = self.select(CALLS) if wanted is None else self.select_in(CALLS, "request_id", wanted)
        calls = {call.request_id: call for call in records}
        for request_id in away if wanted is None else wanted:
            if request_id in away:
                calls.setdefault(request_id, away[request_id])
        return calls

    def newest_revision(self, model: str) -> str | None:
        """Revision of the model of this name that gave the newest answer, maybe empty; None if none did."""
        # Not LIKE, since a name may contain `_` and `%`.
        sql = "SELECT model FROM calls WHERE model = ? OR substr(model, 1, ?) = ? ORDER BY rowid DESC LIMIT 1"
        answered = self.sql(sql, (model, len(model) + 1, f"{model}@"))
        return answered[0][0][len(model) + 1 :] if answered else None

    def seconds_per_answer(self, role: str, model: str) -> float | None:
        """Mean time of a model's newest answers in a role, each since the answer before it; None without answers.

        The beginning of a run counts as an answer, and a pause of more than `LONGEST_PAUSE` as one between runs.
        """
        # Role and model are compared outside only: the answer before may be one of another role.
        sql = """
            SELECT sum(seconds), count(*) FROM (
                SELECT role, model, moment - lag(moment) OVER (ORDER BY moment, place) AS seconds FROM (
                    SELECT 86400 * julianday(created) AS moment, rowid AS place, role, model FROM calls
                    WHERE rowid > (SELECT coalesce(max(rowid), 0) FROM calls) - ?
                    UNION ALL SELECT 86400 * julianday(started), 0, '', '' FROM runs
                )
            ) WHERE role = ? AND model = ? AND seconds < ?
        """
        total, count = self.sql(sql, (TIMED_ANSWERS, role, model, LONGEST_PAUSE))[0]
        return total / count if count else None

    def call_counts(self) -> dict[str, int]:
        """Number of journaled requests by the role of the model that was asked first."""
        return dict(self.sql("SELECT role, count(*) FROM calls GROUP BY 1 ORDER BY min(rowid)"))

    def refusals(self) -> list[tuple[str, str, int]]:
        """Number of permanently refused requests by role and reason."""
        sql = (
            "SELECT role, json_extract(response, '$.refused'), count(*) FROM calls "
            "WHERE json_extract(response, '$.refused') IS NOT NULL GROUP BY 1, 2 ORDER BY min(rowid)"
        )
        return [(role, str(reason), count) for role, reason, count in self.sql(sql)]

    def first_knowledge_call(self, model: str) -> CallRecord | None:
        """The oldest answer of a model in the role knowledge."""
        sql = "SELECT request_id FROM calls WHERE model = ? AND role = 'knowledge' ORDER BY rowid LIMIT 1"
        found = self.sql(sql, (model,))
        return self.call(found[0][0]) if found else None


# --- requests to servers ----------------------------------------------------------------------------------------------


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
