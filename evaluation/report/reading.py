"""Reading a knowledge base for a page: all of one moment, and row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from kb import rows
from kb.connection import translated
from kb.records import StatementRecord
from kb.store import KnowledgeBase

_WITHOUT_PROOFS = replace(rows.STATEMENTS, record=partial(StatementRecord, proof={}), side=None)


@contextmanager
def snapshot(kb: KnowledgeBase) -> Iterator[None]:
    """Everything read inside is of one moment, though a search may be writing."""
    with translated(kb.place):
        kb.database.conn.execute("BEGIN")
        try:
            yield
        finally:
            kb.database.conn.execute("ROLLBACK")


def streamed(kb: KnowledgeBase, sql: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, one at a time."""
    with translated(kb.place):
        yield from kb.database.conn.execute(sql, tuple(parameters))


def statements_of(kb: KnowledgeBase, run_id: str) -> Iterator[StatementRecord]:
    """The statements of a run without their proofs, which are most of them by size."""
    sql = f"{_WITHOUT_PROOFS.select} WHERE statements.run_id = ? ORDER BY statements.rowid"
    return map(_WITHOUT_PROOFS.read, streamed(kb, sql, (run_id,)))


def proved(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> list[StatementRecord]:
    """The same statements with their proofs, in the same order."""
    keys = [rows.statement_key(one) for one in statements]
    found = {rows.statement_key(one): one for one in kb.select_in(rows.STATEMENTS, "key", keys)}
    return [found[key] for key in keys if key in found]
