"""Reads facts into their relations: batches go into temporary tables, and from there in key order into the relations.

What costs is the work for each fact, so each step takes a batch at once: the facts of a predicate are read as one list
of JSON and cut into columns, tags are looked up a column at a time, one INSERT takes many rows. Facts for which that
would not be right are read one by one, to the same effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING

from grammar.errors import HapaxError
from grammar.prolog_text import MAXIMUM_POWER
from grammar.terms import Value
from kb import values
from kb.symbols import Extent, canonical, extent_of

if TYPE_CHECKING:
    from kb.relations import Relations

MOST_ARGUMENTS = 100
"""Arguments of a fact that gets a row in a relation: SQLite's tables and indexes have an end, and SQL a depth."""

_FACTS = 2_000
"""Facts that are read at a time: so few fit the processor's cache, and leave Python little to clear away."""

_WAITING = 20 * _FACTS
"""Facts that may wait for others of their predicates."""

_ROWS = 500
"""Rows that one INSERT takes: twice as fast as one each, and more are no faster."""


def load_facts(relations: Relations, connection: sqlite3.Connection, where: str, parameters: Sequence[object]) -> int:
    """Read the facts of which the SQL condition holds; gives how many. Raises HapaxError for one that is damaged."""
    loader = _Loader(relations, connection)
    cursor = connection.execute(f"SELECT predicate, arguments, rowid FROM facts WHERE {where}", parameters)  # noqa: S608  ours
    read = 0
    waiting: dict[str, list[tuple[str, str, int]]] = {}
    while batch := cursor.fetchmany(_FACTS):
        for row in batch:
            waiting.setdefault(row[0], []).append(row)
        read += len(batch)
        enough = 1 if read % _WAITING == 0 else _FACTS
        for predicate in [one for one, rows in waiting.items() if len(rows) >= enough]:
            loader.take(waiting.pop(predicate))
    for rows in waiting.values():
        loader.take(rows)
    loader.finish()
    return read


def insert_columns(connection: sqlite3.Connection, table: str, columns: Sequence[Sequence[int | None]]) -> None:
    """Add rows to a table of ours, given as its columns."""
    width, count = len(columns), len(columns[0])
    cells = list(chain.from_iterable(zip(*columns, strict=True)))
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    at_once = max(1, min(_ROWS, most // width))
    row = f"({', '.join('?' * width)})"
    for begin in range(0, count, at_once):
        taken = cells[begin * width : (begin + at_once) * width]
        rows = ", ".join([row] * (len(taken) // width))
        connection.execute(f"INSERT INTO {table} VALUES {rows}", taken)  # noqa: S608  ours


class _Loader:
    """Goes through batches of facts, and gathers what numbers each relation gets."""

    def __init__(self, relations: Relations, connection: sqlite3.Connection) -> None:
        self._relations, self._conn = relations, connection
        self._extents: dict[str, Extent] = {}
        self._shadowed: set[str] = set()
        self._tables: dict[str, str] = {}

    def take(self, rows: Sequence[tuple[str, str, int]]) -> None:
        """Facts of one predicate: its name, their arguments and their numbers."""
        (predicate, *_), texts, refs = zip(*rows, strict=True)
        columns = _columns(texts)
        if columns is not None:
            self._add(f"{predicate}/{len(columns)}", columns, refs)
            return
        by_arity: dict[int, list[tuple[Value, ...]]] = {}
        for text, ref in zip(texts, refs, strict=True):
            cells = cells_of(predicate, text)
            if 0 < len(cells) <= MOST_ARGUMENTS and is_sayable(cells):
                by_arity.setdefault(len(cells), []).append((*cells, ref))
        for arity, facts in by_arity.items():
            *mixed, kept = zip(*facts, strict=True)
            self._add(f"{predicate}/{arity}", mixed, kept)

    def _add(self, indicator: str, columns: Sequence[Sequence[Value]], refs: Sequence[int]) -> None:
        tags = map(self._relations.symbols.tags, columns)
        insert_columns(self._conn, self._table(indicator), [*tags, refs])
        for column in columns:
            if {*map(type, column)} != {str}:
                self._numbers(indicator, [cell for cell in column if not isinstance(cell, str)])

    def _numbers(self, indicator: str, numbers: Sequence[Value]) -> None:
        self._extents[indicator] = self._extents.get(indicator, Extent()) | extent_of(*set(numbers))
        if any(isinstance(number, Decimal) and str(canonical(number)) != str(number) for number in numbers):
            self._shadowed.add(indicator)

    def _table(self, indicator: str) -> str:
        if indicator not in self._tables:
            name = f"loaded_{len(self._tables)}"
            self._conn.execute(f"DROP TABLE IF EXISTS temp.{name}")
            self._conn.execute(f"CREATE TEMP TABLE {name} ({', '.join((*columns_of(indicator), 'ref'))})")
            self._tables[indicator] = f"temp.{name}"
        return self._tables[indicator]

    def finish(self) -> None:
        for indicator, loaded in self._tables.items():
            table, key = self._relations.relation(indicator), ", ".join(columns_of(indicator))
            # Of facts that say the same (2 and 2.0) the later one is the fact that proofs name.
            self._conn.execute(
                f"INSERT INTO {table} SELECT * FROM {loaded} WHERE true ORDER BY {key}, ref "  # noqa: S608  ours
                f"ON CONFLICT ({key}) DO UPDATE SET ref = max(ref, excluded.ref)"
            )
            self._conn.execute(f"DROP TABLE {loaded}")
            extent = self._extents.get(indicator, Extent())
            self._conn.execute(
                "UPDATE relations SET largest = max(largest, ?), inexact = inexact OR ?, shadowed = shadowed OR ? "
                "WHERE indicator = ?",
                (extent.largest, extent.inexact, indicator in self._shadowed, indicator),
            )


def columns_of(indicator: str) -> tuple[str, ...]:
    """`a1, a2, ...`, the arguments' columns in each table of a predicate."""
    return tuple(f"a{place}" for place in range(1, int(indicator.rpartition("/")[2]) + 1))


def _columns(texts: Sequence[str]) -> list[list[Value]] | None:
    """The columns of facts whose arguments these are; None: not all are sound and of one arity.

    They are read as one list with a null between two facts. Hapax writes neither nulls nor line feeds into arguments,
    so anything else shows in how many of them there are and where.
    """
    count, joined = len(texts), "\n".join(texts)
    if not joined.count("\n") == joined.count("]\n[") == count - 1 or "\\u0000" in joined:
        return None
    try:
        cells = values.load_list(joined.replace("]\n[", ",null,"))
    except (ValueError, TypeError):
        return None
    width = cells.index(None) if None in cells else len(cells)
    if len(cells) != count * (width + 1) - 1 or cells[width :: width + 1] != [None] * (count - 1):
        return None
    columns = [cells[place :: width + 1] for place in range(width)]
    kinds = {*map(type, chain.from_iterable(columns))}
    if not 0 < width <= MOST_ARGUMENTS or not kinds <= {str, int, Decimal}:
        return None
    return columns if Decimal not in kinds or all(map(is_sayable, columns)) else None


def cells_of(predicate: str, arguments: str) -> tuple[Value, ...]:
    """The arguments of a fact. Raises HapaxError where the database's cell is damaged."""
    try:
        cells = values.decode_values(arguments)
        if None not in cells:
            return tuple(cell for cell in cells if cell is not None)
        raise ValueError("an argument is missing")
    except (ValueError, TypeError) as fault:
        raise HapaxError(
            f"facts.arguments: the cell {arguments[:60]!r} of {predicate} was not written by Hapax ({fault}). "
            "Restore the file from a copy, or delete the row."
        ) from fault


def is_sayable(cells: Iterable[Value]) -> bool:
    """Whether Prolog can hold a fact with these arguments; others are left out, since no rule or goal could name them.

    It holds neither U+0000 nor, as exact rationals, numbers beyond `MAXIMUM_POWER` powers of ten.
    """
    return not any(
        "\0" in cell if isinstance(cell, str) else isinstance(cell, Decimal) and abs(cell.adjusted()) > MAXIMUM_POWER
        for cell in cells
    )
