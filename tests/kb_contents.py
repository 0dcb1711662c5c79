"""The contents of a knowledge base as text, without what differs from one run to the next."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from hapax.kb.store import KnowledgeBase

TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00)?")
SHOWN = 2
"""Rows of a table that are shown whole; of more, the first ones and a checksum of all."""


def checksum(lines: Iterable[str]) -> str:
    """Twelve digits that tell whether any of the lines has changed."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def contents(kb: KnowledgeBase, *, shown: int = SHOWN) -> str:
    """The rows of every table, sorted."""
    return "".join(f"{line}\n" for line in _lines(kb, shown))


def _lines(kb: KnowledgeBase, shown: int) -> Iterator[str]:
    for table in kb.database.tables:
        if "sqlite_" in table.name or "_fts" in table.name or not table.count:
            continue
        columns = [column.name for column in table.columns]
        rows = sorted(_row(columns, row) for row in kb.database.query(f"SELECT * FROM [{table.name}]"))  # noqa: S608
        yield f"{table.name}: {len(rows)} rows, {checksum(rows)}"
        yield from (f"  {row}" for row in rows[:shown])
    statements = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name NOT LIKE '%_fts%' ORDER BY sql"
    made = [sql for (sql,) in kb.database.execute(statements)]
    yield f"schema: {len(made)} tables, indexes and triggers, {checksum(made)}"


def _row(columns: Sequence[str], row: dict[str, object]) -> str:
    cells = {name: row[name] for name in columns if row[name] is not None}
    return TIME.sub("TIME", json.dumps(cells, ensure_ascii=False, default=repr))
