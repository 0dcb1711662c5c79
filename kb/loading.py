"""Bulk loading of facts into relations: batches go to temporary tables, and from there in key order to the relations.

The cost is in the work for each fact, so each step takes a whole batch: the facts of a predicate are parsed as one JSON
list and cut into columns, tags are looked up a column at a time, and one INSERT takes many rows. Facts for which this
shortcut would be wrong are read one at a time, with the same result.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import MAXIMUM_POWER, Value
from hapax.kb import values
from hapax.kb.records import canonical_text, content_id
from hapax.kb.rows import OTHER_CONTENT, RESTORE
from hapax.kb.symbols import Symbols, canonical

MOST_ARGUMENTS = 900
"""Most arguments of a fact in a relation: SQLite limits the columns of a table, and the depth of a condition."""

# So few facts fit into the processor's cache and leave little garbage for Python to collect.
_FACTS_PER_BATCH = 2_000

# Facts of rare predicates wait for others of their predicate until this many were read.
_FACTS_WAITING = 20 * _FACTS_PER_BATCH

# One INSERT of 500 rows is twice as fast as 500 inserts; more rows are no faster.
_ROWS_PER_INSERT = 500


class FactLoader:
    """Reads rows of `facts` into relations.

    `relation_of` gives the table of a predicate's facts by indicator, and creates it where it is missing. `between` is
    called after each batch.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        symbols: Symbols,
        relation_of: Callable[[str], str],
        between: Callable[[], None],
    ) -> None:
        self._conn, self._symbols, self._relation_of, self._between = connection, symbols, relation_of, between

    def load(self, where: str, parameters: Sequence[object]) -> int:
        """Read the facts that match the SQL condition; returns their number. Raises HapaxError for a damaged fact."""
        load = _Load(self._conn, self._symbols)
        sql = f"SELECT predicate, arguments, rowid, id FROM facts WHERE {where}"  # noqa: S608  ours
        cursor = self._conn.execute(sql, parameters)
        read = 0
        waiting: dict[str, list[tuple[str, str, int]]] = {}
        while batch := cursor.fetchmany(_FACTS_PER_BATCH):
            for predicate, arguments, ref, identity in batch:
                check_identity(identity, predicate, arguments)
                waiting.setdefault(predicate, []).append((predicate, arguments, ref))
            read += len(batch)
            self._between()
            enough = 1 if read % _FACTS_WAITING == 0 else _FACTS_PER_BATCH
            for predicate in [name for name, rows in waiting.items() if len(rows) >= enough]:
                load.add_facts(waiting.pop(predicate))
        for rows in waiting.values():
            load.add_facts(rows)
        load.move_into(self._relation_of)
        return read


def insert_columns(connection: sqlite3.Connection, table: str, columns: Sequence[Sequence[int | None]]) -> None:
    """Insert rows, given as columns, into a table of ours."""
    width, count = len(columns), len(columns[0])
    cells = list(chain.from_iterable(zip(*columns, strict=True)))
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    at_once = max(1, min(_ROWS_PER_INSERT, most // width))
    row = f"({', '.join('?' * width)})"
    for begin in range(0, count, at_once):
        taken = cells[begin * width : (begin + at_once) * width]
        rows = ", ".join([row] * (len(taken) // width))
        connection.execute(f"INSERT INTO {table} VALUES {rows}", taken)  # noqa: S608  ours


class _Load:
    """Temporary tables of facts by indicator."""

    def __init__(self, connection: sqlite3.Connection, symbols: Symbols) -> None:
        self._conn, self._symbols = connection, symbols
        self._shadowed: set[str] = set()
        self._tables: dict[str, str] = {}

    def add_facts(self, rows: Sequence[tuple[str, str, int]]) -> None:
        """Add facts of one predicate: rows of its name, the arguments as JSON and the fact's rowid."""
        (predicate, *_), texts, refs = zip(*rows, strict=True)
        columns = _columns(texts)
        if columns is not None:
            self._add_columns(f"{predicate}/{len(columns)}", columns, refs)
            return
        by_arity: dict[int, list[tuple[Value, ...]]] = {}
        for text, ref in zip(texts, refs, strict=True):
            cells = cells_of(predicate, text)
            if 0 < len(cells) <= MOST_ARGUMENTS and is_sayable(cells):
                by_arity.setdefault(len(cells), []).append((*cells, ref))
        for arity, facts in by_arity.items():
            *argument_columns, kept_refs = zip(*facts, strict=True)
            self._add_columns(f"{predicate}/{arity}", argument_columns, kept_refs)

    def _add_columns(self, indicator: str, columns: Sequence[Sequence[Value]], refs: Sequence[int]) -> None:
        tags = map(self._symbols.tags, columns)
        insert_columns(self._conn, self._table(indicator), [*tags, refs])
        for column in columns:
            # Most columns are all text; comparing the set of types skips them fastest.
            if {*map(type, column)} == {str}:
                continue
            if any(isinstance(cell, Decimal) and str(canonical(cell)) != str(cell) for cell in column):
                self._shadowed.add(indicator)

    def _table(self, indicator: str) -> str:
        if indicator not in self._tables:
            name = f"loaded_{len(self._tables)}"
            # A load that failed may have left its table behind.
            self._conn.execute(f"DROP TABLE IF EXISTS temp.{name}")
            self._conn.execute(f"CREATE TEMP TABLE {name} ({', '.join((*columns_of(indicator), 'ref'))})")
            self._tables[indicator] = f"temp.{name}"
        return self._tables[indicator]

    def move_into(self, relation_of: Callable[[str], str]) -> None:
        """Move all facts to their relations, in key order, which SQLite appends fastest."""
        for indicator, loaded in self._tables.items():
            table, key = relation_of(indicator), ", ".join(columns_of(indicator))
            # Where two facts have equal arguments (2 and 2.0), proofs name the later fact.
            self._conn.execute(
                f"INSERT INTO {table} SELECT * FROM {loaded} WHERE true ORDER BY {key}, ref "  # noqa: S608  ours
                f"ON CONFLICT ({key}) DO UPDATE SET ref = max(ref, excluded.ref)"
            )
            self._conn.execute(f"DROP TABLE {loaded}")
            if indicator in self._shadowed:
                self._conn.execute("UPDATE relations SET shadowed = 1 WHERE indicator = ?", (indicator,))


def columns_of(indicator: str) -> tuple[str, ...]:
    """`a1, a2, ...`, the argument columns in every table of a predicate."""
    return tuple(f"a{place}" for place in range(1, int(indicator.rpartition("/")[2]) + 1))


def _columns(texts: Sequence[str]) -> list[list[Value]] | None:
    """Argument columns of facts, given as JSON lists; None unless all are sound and of one arity.

    They are parsed as one list with a null between two facts. Hapax writes neither nulls nor line feeds into arguments,
    so the number and places of the nulls show anything else.
    """
    count, joined = len(texts), "\n".join(texts)
    # Prolog cannot hold U+0000, so facts with it are left to `is_sayable`.
    if not joined.count("\n") == joined.count("]\n[") == count - 1 or "\\u0000" in joined:
        return None
    try:
        cells = values.load_list(joined.replace("]\n[", ",null,"))
    except (ValueError, TypeError):
        return None
    # All cells before the first null are those of the first fact.
    width = cells.index(None) if None in cells else len(cells)
    if len(cells) != count * (width + 1) - 1 or cells[width :: width + 1] != [None] * (count - 1):
        return None
    columns = [cells[place :: width + 1] for place in range(width)]
    types = {*map(type, chain.from_iterable(columns))}
    if not 0 < width <= MOST_ARGUMENTS or not types <= {str, int, Decimal}:
        return None
    return columns if Decimal not in types or all(map(is_sayable, columns)) else None


def check_identity(identity: str, predicate: str, arguments: str) -> None:
    """Raise HapaxError unless the row of `facts` with this id was stored with these arguments, given as JSON."""
    # Nearly all arguments are stored in the very form that is hashed, so they need not be parsed.
    hashed = f'["fact",{canonical_text(predicate)},{arguments}]'.encode("utf-8", "surrogatepass")
    if hashlib.sha256(hashed).hexdigest()[:32] == identity:
        return
    if content_id("fact", predicate, list(cells_of(predicate, arguments))) != identity:
        raise HapaxError(
            f"facts.id: the cell {str(identity)[:60]!r} was not written by Hapax ({OTHER_CONTENT}: "
            f"{predicate}, {arguments[:90]}). {RESTORE}"
        )


def cells_of(predicate: str, arguments: str) -> tuple[Value, ...]:
    """The arguments of a fact. Raises HapaxError where the database's cell is damaged."""
    try:
        cells = values.decode_values(arguments)
        if None not in cells:
            return tuple(cell for cell in cells if cell is not None)
        raise ValueError("an argument is missing")
    except (ValueError, TypeError) as fault:
        raise HapaxError(
            f"facts.arguments: the cell {arguments[:60]!r} of {predicate} was not written by Hapax ({fault}). {RESTORE}"
        ) from fault


def is_sayable(cells: Iterable[Value]) -> bool:
    """True if Prolog can hold a fact with these arguments; other facts are left out, since no rule can name them."""
    for cell in cells:
        if isinstance(cell, str):
            if "\0" in cell:
                return False
        # Prolog holds decimals as exact rationals, which outgrow memory with the exponent.
        elif isinstance(cell, Decimal) and abs(cell.adjusted()) > MAXIMUM_POWER:
            return False
    return True
