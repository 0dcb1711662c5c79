"""Compare two knowledge bases row by row and table by table, apart from the conclusions of `derive` and attempts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from hapax.kb.connection import reading_uri
from hapax.kb.records import ATTEMPTS, RUNS, TABLES

CLOCKS = frozenset({"created", "started", "finished"})
"""Columns with the time of writing."""

SUMMARIES = frozenset({"summary"})
"""Columns of a run that count requests and answers from the journal, which differ between ways to the same result."""


def differences(first: Path, second: Path) -> dict[str, int]:
    """Number of rows of each table that are missing or different in either database, apart from times and summaries.

    Raises sqlite3.OperationalError for a file without the tables of a knowledge base.
    """
    with closing(sqlite3.connect(reading_uri(first), uri=True)) as connection:
        connection.execute("ATTACH ? AS other", (reading_uri(second),))
        return dict(_differences(connection))


def _differences(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    for table in TABLES:
        if table is ATTEMPTS:
            continue  # requests of a run of its own, such as the repeated ones
        same_key = " AND ".join(f"one.{name} = two.{name}" for name in table.key)
        ignored = CLOCKS | (SUMMARIES if table is RUNS else frozenset())
        compared = [name for name in table.all_columns if name not in ignored]
        same = " AND ".join(f"one.{name} IS two.{name}" for name in compared)  # IS: two NULLs are equal
        found = 0
        for here, there in (("main", "other"), ("other", "main")):
            sql = (
                f"SELECT count(*) FROM {here}.{table.name} one LEFT JOIN {there}.{table.name} two ON {same_key} "  # noqa: S608 - our names
                f"WHERE NOT ({same})"
            )
            found += connection.execute(sql).fetchone()[0]
        yield table.name, found
