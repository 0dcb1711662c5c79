"""Reading of a knowledge base for a page: all at one moment, and row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from hapax.kb.connection import translated
from hapax.kb.records import STATEMENTS, StatementRecord
from hapax.kb.store import STANDING, KnowledgeBase

# The table without its side table, which holds the proofs: the join and their parsing are spared.
_WITHOUT_PROOFS = replace(
    STATEMENTS,
    record=partial(StatementRecord, proof={}),
    columns={name: codec for name, codec in STATEMENTS.columns.items() if name != "proof"},
)


@contextmanager
def snapshot(kb: KnowledgeBase) -> Iterator[None]:
    """Keep everything that is read inside at one moment, even while a search writes."""
    with translated(kb.place):
        # In WAL mode, a transaction that only reads sees one state of the file, and keeps no writer waiting.
        kb.connection.execute("BEGIN")
        try:
            yield
        finally:
            kb.connection.execute("ROLLBACK")


def streamed(kb: KnowledgeBase, sql: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query, read one by one."""
    with translated(kb.place):
        # `yield from` would close the cursor of an abandoned reading, maybe after the file was closed.
        for row in kb.connection.execute(sql, tuple(parameters)):  # noqa: UP028  see above
            yield row


def statements_of(kb: KnowledgeBase, run_id: str, rule: str | None = None) -> Iterator[StatementRecord]:
    """Statements of a run, or of one of its rules, without their proofs, which take most of the space."""
    of_rule, parameters = ("", (run_id,)) if rule is None else ("AND statements.rule = ?", (run_id, rule))
    sql = f"{_WITHOUT_PROOFS.select} WHERE statements.run_id = ? {of_rule} AND {STANDING} ORDER BY statements.rowid"
    return kb.read_rows(_WITHOUT_PROOFS, streamed(kb, sql, parameters))


def proved(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> list[StatementRecord]:
    """The same statements with their proofs, in the same order."""
    keys = [statement.key for statement in statements]
    by_key = {statement.key: statement for statement in kb.select_in(STATEMENTS, "key", keys)}
    # select_in returns rows in the order of the table.
    return [by_key[key] for key in keys if key in by_key]
