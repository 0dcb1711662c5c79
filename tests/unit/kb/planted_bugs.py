"""Realistic bugs that `python -m tools.simulate --planted NAME` plants, each of which the simulation must find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb import connection
from hapax.kb.attempts import AttemptLog
from hapax.kb.files import asking, system
from hapax.kb.records import AttemptRecord, CallRecord, Outcome
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle import budget


def commit_without_sync() -> None:
    """SQLite does not force commits to the disk."""
    connected = connection._connected

    def without(uri: str) -> Any:
        database = connected(uri)
        database.execute("PRAGMA synchronous = OFF")
        return database

    connection._connected = without


def answer_used_before_it_is_stored() -> None:
    """Answers are written along with those of the next batch, so that a kill loses two."""
    record, waiting = KnowledgeBase.record_calls, dict[int, list[CallRecord]]()

    def later(kb: KnowledgeBase, calls: Sequence[CallRecord]) -> None:
        before = waiting.pop(id(kb), [])
        waiting[id(kb)] = list(calls)
        if before:
            record(kb, before)

    close = KnowledgeBase.close

    def closing(kb: KnowledgeBase) -> None:
        if before := waiting.pop(id(kb), []):
            with suppress(HapaxError):
                record(kb, before)
        close(kb)

    KnowledgeBase.record_calls, KnowledgeBase.close = later, closing  # type: ignore[method-assign, assignment]


def attempt_written_after_it_was_sent() -> None:
    """A request leaves before it is in the ledger."""
    write = AttemptLog.write

    def late(log: AttemptLog, attempt: AttemptRecord) -> Future[None]:
        if attempt.finished is not None:
            return write(log, attempt)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    AttemptLog.write = late  # type: ignore[method-assign]


def unusable_replies_not_counted() -> None:
    """A reply that was charged and could not be used is no attempt."""
    settle = budget.Ledger.settle

    def forgiving(ledger: budget.Ledger, reservation: Any, spent: Any, outcome: Outcome) -> None:
        settle(ledger, reservation, None if outcome is Outcome.UNUSABLE else spent, outcome)

    budget.Ledger.settle = forgiving  # type: ignore[method-assign]


def attempts_stored_twice() -> None:
    """The outcome of a request is a row of its own."""
    ended = budget._ended

    def another(*arguments: Any) -> AttemptRecord:
        attempt = ended(*arguments)
        return replace(attempt, id=attempt.id[::-1])

    budget._ended = another


def asking_without_a_lock() -> None:
    """Two processes ask for the same file at the same time."""

    @contextmanager
    def unlocked(path: Path, seconds: float | None = None) -> Iterator[None]:
        yield

    asking.asking = unlocked


def newest_answer_overlooked() -> None:
    """A run that goes on does not see the last row of the journal."""
    calls = KnowledgeBase.calls

    def without_newest(kb: KnowledgeBase, request_ids: Any = None) -> dict[str, CallRecord]:
        found = calls(kb, request_ids)
        newest = kb.sql("SELECT request_id FROM calls WHERE role <> 'probe' ORDER BY rowid DESC LIMIT 1")
        for (request_id,) in newest:
            found.pop(request_id, None)
        return found

    KnowledgeBase.calls = without_newest  # type: ignore[method-assign]


def renamed_without_sync() -> None:
    """A file gets its name before its content is on the disk."""
    system.sync_path = lambda path: None


PLANTED: dict[str, Callable[[], None]] = {
    bug.__name__: bug
    for bug in (
        commit_without_sync,
        answer_used_before_it_is_stored,
        attempt_written_after_it_was_sent,
        unusable_replies_not_counted,
        attempts_stored_twice,
        asking_without_a_lock,
        newest_answer_overlooked,
        renamed_without_sync,
    )
}
