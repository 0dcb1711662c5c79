"""Realistic bugs that `python -m tools.simulate --planted NAME` plants, each of which the simulation must find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb import connection
from hapax.kb.files import asking, system
from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase


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
        asking_without_a_lock,
        newest_answer_overlooked,
        renamed_without_sync,
    )
}
