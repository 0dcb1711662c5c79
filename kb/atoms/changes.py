"""Changes of relations and derived atoms in temporary tables, while both states of a table can be read.

Until `settle` a changed table contains the rows that are gone as well as those that are new, and views give its states.
A row is identified by its arguments; a row whose `ref` alone has changed, since its fact was deleted and added again,
has moved.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableChange:
    """The temporary tables of the rows that a table lost and got, and the views of its states."""

    table: str
    columns: tuple[str, ...]

    @property
    def gone(self) -> str:
        """Table of the rows that the table lost."""
        return f"temp.gone_{self.table}"

    @property
    def new(self) -> str:
        """Table of the rows that the table got."""
        return f"temp.new_{self.table}"

    @property
    def moved(self) -> str:
        """Table of pairs `(ref, now)` of the rows whose `ref` has changed."""
        return f"temp.moved_{self.table}"

    @property
    def now(self) -> str:
        """View of the rows after the change."""
        return f"temp.now_{self.table}"

    @property
    def old(self) -> str:
        """View of the rows before the change, with their `ref` of that time."""
        return f"temp.old_{self.table}"

    @property
    def kept(self) -> str:
        """View of the rows that were there before and are there now."""
        return f"temp.kept_{self.table}"

    def same(self, left: str, right: str) -> str:
        """SQL condition: two aliases have the same arguments."""
        return " AND ".join(f"{left}.{column} = {right}.{column}" for column in self.columns)


class TableChanges:
    """The changes of tables on a connection, by table."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection
        self._by_table: dict[str, TableChange] = {}

    def get(self, table: str) -> TableChange | None:
        """The change of a table; None if it is unchanged."""
        return self._by_table.get(table)

    def __bool__(self) -> bool:
        return bool(self._by_table)

    def follow(self, table: str, columns: Sequence[str], gone: Sequence[Sequence[int]], since: int) -> None:
        """Open the change of a table of facts: the rows that are gone, with their `ref`, and those after `since`."""
        change, key = self.open(table, columns), ", ".join(columns)
        marks = ", ".join("?" * (len(columns) + 1))
        self._conn.executemany(f"INSERT INTO {change.gone} VALUES ({marks})", gone)  # noqa: S608  ours
        self._conn.execute(f"INSERT INTO {change.new} SELECT {key}, ref FROM main.{table} WHERE ref > ?", (since,))  # noqa: S608
        pairs = f"{change.gone} AS g JOIN {change.new} AS n ON {change.same('g', 'n')}"
        # Equal arguments on both sides: only the ref has changed, so the row has moved and is neither gone nor new.
        self._conn.execute(f"INSERT INTO {change.moved} SELECT g.ref, n.ref FROM {pairs}")  # noqa: S608  ours
        both = f"SELECT {', '.join(f'g.{column}' for column in columns)} FROM {pairs}"  # noqa: S608  ours
        keys = self._conn.execute(both).fetchall()
        where = " AND ".join(f"{column} = ?" for column in columns)
        for side in (change.gone, change.new):
            self._conn.executemany(f"DELETE FROM {side} WHERE {where}", keys)  # noqa: S608  ours
        # Gone rows come back until `settle`, so that one table can show both states.
        self._conn.execute(f"INSERT INTO main.{table} ({key}, ref, id) SELECT {key}, ref, x'' FROM {change.gone}")  # noqa: S608
        if not any(self.count(name) for name in (change.gone, change.new, change.moved)):
            self.discard(table)

    def open(self, table: str, columns: Sequence[str]) -> TableChange:
        """Begin an empty change of a table."""
        change = TableChange(table, tuple(columns))
        key = ", ".join(columns)
        typed = ", ".join(f"{column} INTEGER NOT NULL" for column in (*columns, "ref"))
        for name in ("gone", "new"):
            self._make(f"{name}_{table}", f"{typed}, PRIMARY KEY ({key})", " WITHOUT ROWID")
        self._make(f"moved_{table}", "ref INTEGER PRIMARY KEY, now INTEGER NOT NULL UNIQUE")
        is_gone = f"EXISTS (SELECT 1 FROM {change.gone} AS g WHERE {change.same('g', 'x')})"  # noqa: S608  ours
        is_new = f"EXISTS (SELECT 1 FROM {change.new} AS g WHERE {change.same('g', 'x')})"  # noqa: S608  ours
        before = f"coalesce((SELECT m.ref FROM {change.moved} AS m WHERE m.now = x.ref), x.ref)"  # noqa: S608  ours
        states = {
            "now": ("x.ref", f"NOT {is_gone}"),
            "old": (f"CASE WHEN {is_gone} THEN x.ref ELSE {before} END", f"NOT {is_new}"),
            "kept": ("x.ref", f"NOT {is_gone} AND NOT {is_new}"),
        }
        for name, (ref, condition) in states.items():
            self._conn.execute(f"DROP VIEW IF EXISTS temp.{name}_{table}")
            # SQLite puts so simple a view into the query that reads it, which then uses the table's indexes.
            select = f"SELECT {key}, {ref} AS ref FROM main.{table} AS x WHERE {condition}"  # noqa: S608  ours
            self._conn.execute(f"CREATE TEMP VIEW {name}_{table} AS {select}")
        self._by_table[table] = change
        return change

    def count(self, name: str) -> int:
        """Number of rows of a temporary table."""
        return int(self._conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0])  # noqa: S608  ours

    def discard(self, table: str) -> None:
        """Forget a table's change. The table stays as it is."""
        del self._by_table[table]
        for name in ("now", "old", "kept"):
            self._conn.execute(f"DROP VIEW temp.{name}_{table}")
        for name in ("gone", "new", "moved"):
            self._conn.execute(f"DROP TABLE temp.{name}_{table}")

    def settle(self) -> None:
        """Delete the rows that are gone from their tables, and forget the changes."""
        for table, change in list(self._by_table.items()):
            key = ", ".join(change.columns)
            self._conn.execute(f"DELETE FROM main.{table} WHERE ({key}) IN (SELECT {key} FROM {change.gone})")  # noqa: S608
            self.discard(table)

    def _make(self, name: str, columns: str, kind: str = "") -> None:
        """Create a temporary table; one that a failed command left behind is replaced."""
        self._conn.execute(f"DROP TABLE IF EXISTS temp.{name}")
        self._conn.execute(f"CREATE TEMP TABLE {name} ({columns}){kind}")
