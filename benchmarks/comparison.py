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


def _columns(connection: sqlite3.Connection, schema: str, table: str) -> set[str]:
    rows = connection.execute("SELECT name FROM pragma_table_info(?, ?)", (table, schema))
    return {name for (name,) in rows}


def _has_table(connection: sqlite3.Connection, schema: str, name: str) -> bool:
    sql = f"SELECT count(*) FROM {schema}.sqlite_master WHERE name = ?"  # noqa: S608 - our names
    return bool(connection.execute(sql, [name]).fetchone()[0])


def _differences(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    for table in TABLES:
        if table is ATTEMPTS:
            continue  # requests of a run of its own, such as the repeated ones
        # Files of an older version lack tables, and both do if neither was migrated.
        if not any(_has_table(connection, schema, table.name) for schema in ("main", "other")):
            continue
        same_key = " AND ".join(f"one.{name} = two.{name}" for name in table.key)
        ignored = CLOCKS | (SUMMARIES if table is RUNS else frozenset())
        # Files of an older version lack columns, too.
        present = _columns(connection, "main", table.name) & _columns(connection, "other", table.name)
        compared = [name for name in table.all_columns if name in present - ignored]
        same = " AND ".join(f"one.{name} IS two.{name}" for name in compared)  # IS: two NULLs are equal
        found = 0
        for here, there in (("main", "other"), ("other", "main")):
            sql = (
                f"SELECT count(*) FROM {here}.{table.name} one LEFT JOIN {there}.{table.name} two ON {same_key} "  # noqa: S608 - our names
                f"WHERE NOT ({same})"
            )
            found += connection.execute(sql).fetchone()[0]
        yield table.name, found
