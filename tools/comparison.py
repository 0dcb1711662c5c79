"""Compare two knowledge bases row by row and table by table, apart from the conclusions of `derive` and attempts."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from hapax.kb.connection import reading_uri
from hapax.kb.records import ATTEMPTS, RUNS
from hapax.kb.schema import TABLES

CLOCKS = frozenset({"created", "started", "finished"})
"""Columns with the time of writing."""

NUMBERS = frozenset({"ref"})
"""Columns with the order of writing: a search that was interrupted writes its last facts again."""

SUMMARIES = frozenset({"summary"})
"""Columns of a run that count requests and answers from the journal, which differ between ways to the same result."""


def differences(first: Path, second: Path) -> dict[str, int]:
    """Number of rows of each table that are missing or different in either database, apart from times, order
    and summaries.

    Raises sqlite3.OperationalError for a file without the tables of a knowledge base.
    """
    with closing(sqlite3.connect(reading_uri(first), uri=True)) as connection:
        connection.execute("ATTACH ? AS other", (reading_uri(second),))
        return dict(_differences(connection))


def _differences(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    for table in TABLES:
        if table is ATTEMPTS:
            continue  # requests of a run of its own, such as the repeated ones
        ignored = CLOCKS | NUMBERS | (SUMMARIES if table is RUNS else frozenset())
        here, there = (_rows(connection, file, table.name, ignored) for file in ("main", "other"))
        yield table.name, (here - there).total() + (there - here).total()


def _rows(
    connection: sqlite3.Connection, file: str, table: str, ignored: frozenset[str]
) -> Counter[tuple[object, ...]]:
    """Counts of the rows of a table, in the columns of the file's own version; none without the table."""
    names = connection.execute("SELECT name FROM pragma_table_info(?, ?)", (table, file))
    columns = ", ".join(name for (name,) in names if name not in ignored)
    if not columns:
        return Counter()
    return Counter(connection.execute(f"SELECT {columns} FROM {file}.{table}"))  # noqa: S608  our names
