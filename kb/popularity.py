"""Stores the popularity of the values of statements and facts row by row, so that an index gives the order.

The tables are filled when a list first needs them, and follow new rows then. A frequency is that of the row's values,
and is deleted with its row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hapax.kb.store import KnowledgeBase

Measure = Callable[[object], float | None]
"""The frequency of a cell of values; None if they have no words."""

CELLS = {"statements": ("substitution", "rowid"), "facts": ("arguments", "ref")}
"""The columns of the values and of the numbers of each table's rows."""

BATCH = 20_000
"""Rows of one transaction: others write in between."""


def ranks_table(table: str) -> str:
    """The table of the frequencies of this table's rows: `row` and `frequency`."""
    return f"{table}_popularity"


def is_ranked(kb: KnowledgeBase, table: str) -> bool:
    """True if every row of the table has its frequency."""
    # Filled in the order of rows, and a row's number is used again only after the last rows were deleted.
    number = CELLS[table][1]
    ((last,),) = kb.sql(f"SELECT coalesce(max({number}), 0) FROM {table}")  # noqa: S608  ours
    if not kb.has(ranks_table(table)):
        return not last
    ((ranked,),) = kb.sql(f"SELECT coalesce(max(row), 0) FROM {ranks_table(table)}")  # noqa: S608  ours
    return bool(last <= ranked)


def add_ranks(database: Path, measure: Measure) -> None:
    """Store the frequencies of all rows that have none. Raises HapaxError for a file that cannot be written."""
    with KnowledgeBase(database) as kb:
        for table, (cell, number) in CELLS.items():
            ranks = ranks_table(table)
            with kb.transaction():
                kb.make(ranks)
            sql = (
                f"SELECT {number}, {cell} FROM {table} "  # noqa: S608  ours
                f"WHERE {number} > coalesce((SELECT max(row) FROM {ranks}), 0) ORDER BY {number} LIMIT ?"
            )
            while not is_ranked(kb, table):
                with kb.transaction():
                    rows = [(row, measure(values)) for row, values in kb.sql(sql, (BATCH,))]
                    kb.write(f"INSERT INTO {ranks} VALUES (?, ?)", rows)  # noqa: S608  ours
