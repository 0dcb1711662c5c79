"""Whether two knowledge bases hold the same: row by row, by table. What `derive` made of the facts is left out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from kb.connection import reading_uri
from kb.rows import RUNS, TABLES, Table

CLOCKS = frozenset({"created", "started", "finished"})
"""Columns that say when something was written."""

TOLD = frozenset({"summary"})
"""What a run tells of itself: what it sent and what the journal answered, which two ways to one result do not share."""


def differences(first: Path, second: Path) -> dict[str, int]:
    """By table, the rows of either database that the other lacks or has otherwise; clocks and summaries are left out.

    Raises sqlite3.OperationalError for a file without the tables of a knowledge base.
    """
    with closing(sqlite3.connect(reading_uri(first), uri=True)) as connection:
        connection.execute("ATTACH ? AS other", (reading_uri(second),))
        return dict(_differences(connection))


def _differences(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    for table in TABLES:
        same_key = " AND ".join(f"one.{name} = two.{name}" for name in table.key)
        same = " AND ".join(f"one.{name} IS two.{name}" for name in _compared(table))
        found = 0
        for here, there in (("main", "other"), ("other", "main")):
            sql = (
                f"SELECT count(*) FROM {here}.{table.name} one LEFT JOIN {there}.{table.name} two ON {same_key} "  # noqa: S608 - our names
                f"WHERE NOT ({same})"
            )
            found += connection.execute(sql).fetchone()[0]
        yield table.name, found


def _compared(table: Table[object]) -> list[str]:
    left_out = CLOCKS | (TOLD if table is RUNS else frozenset())
    return [name for name in table.all_columns if name not in left_out]
