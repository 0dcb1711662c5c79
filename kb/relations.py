"""Facts as relations of whole numbers, for joins in bulk, and what such joins derived, in the knowledge base's file.

A constant is one tagged integer: a whole number n below 2^60 in size is 2n + 1, anything else is the even id of its
row in `symbols`. Equal constants have equal tags, as Prolog takes them: 2 and 2.0 are one, 2 and "2" are two. Each
predicate has a table `relation_N (a1, .., ref)`, `ref` being the fact's rowid; triggers note what other commands delete
or change, so `bring_up_to_date` reads what is new and nothing else. `atoms_N (ref, a1, ..)` holds a derived predicate
and `instances_N` the instances of a rule: its variables, and for each premise the `ref` of the fact or atom below it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeGuard

from grammar.errors import HapaxError
from grammar.prolog_text import MAXIMUM_POWER
from grammar.terms import Value
from kb import rows, values
from kb.connection import translated
from kb.records import FactRecord

if TYPE_CHECKING:
    import sqlite3

    from kb.store import KnowledgeBase

TAGGED_BITS = 60
"""Whole numbers below two to this power are tagged; a sum of two of them is far from SQLite's 64 bits."""

BATCH = 20_000
"""Rows that are held in memory at a time."""

_KNOWN_TAGS = 1_000_000
"""Constants whose tags are remembered while facts are read: some 100 MB."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The numbers in a relation: the largest tagged one by size, and whether there are others (decimals, huge ones)."""

    largest: int = 0
    inexact: bool = False

    def __or__(self, other: Extent) -> Extent:
        return Extent(max(self.largest, other.largest), self.inexact or other.inexact)


@dataclass(frozen=True, slots=True)
class Derivation:
    """What is stored of one rule's last bulk derivation; `engine` is `sql` or `prolog`."""

    rule: str
    number: int
    engine: str
    fingerprint: str
    statements: int = 0
    stale: int = 0
    """1: facts have changed since."""

    @property
    def table(self) -> str:
        return f"instances_{self.number}"


def canonical(value: Value) -> Value:
    """The value as Prolog gives it back: whole decimals as integers, others without zeros at their end.

    A number too large or too small for Prolog stays a decimal.
    """
    if not isinstance(value, Decimal):
        return value
    if abs(value.adjusted()) <= MAXIMUM_POWER and value == value.to_integral_value():
        return int(value)
    sign, digits, exponent = value.as_tuple()
    kept = list(digits)
    assert isinstance(exponent, int)  # noqa: S101  it is finite
    while kept[-1] == 0 and len(kept) > 1:
        kept.pop()
        exponent += 1
    return Decimal((sign, tuple(kept), exponent))


def _is_whole(value: Value) -> TypeGuard[int]:
    """Whether a canonical value is a whole number small enough to be its own tag."""
    return isinstance(value, int) and -(1 << TAGGED_BITS) < value < 1 << TAGGED_BITS


def extent_of(value: Value) -> Extent:
    """Of one constant."""
    one = canonical(value)
    if isinstance(one, str):
        return Extent()
    return Extent(abs(one)) if _is_whole(one) else Extent(inexact=True)


class Relations:
    """The relations of an open knowledge base. Everything that writes belongs into one `kb.transaction()`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._conn: sqlite3.Connection = kb.database.conn
        self._tags: dict[Value, int] = {}

    # -- constants

    def tag(self, value: Value) -> int:
        """The integer that stands for a constant; a new constant gets a row."""
        return self.tagged([value])[value]

    def tagged(self, constants: Iterable[Value]) -> Mapping[Value, int]:
        """A map that has the integers of these constants, and of others. Equal numbers are one key, as here."""
        if len(self._tags) > _KNOWN_TAGS:
            self._tags.clear()
        new = set(constants).difference(self._tags)
        if new:
            one_by_one = {value: canonical(value) for value in new}
            symbols = {value: values.encode_value(one) for value, one in one_by_one.items() if not _is_whole(one)}
            ids = self._symbols(set(symbols.values()))
            for value, one in one_by_one.items():
                self._tags[value] = ids[symbols[value]] if value in symbols else 2 * int(one) + 1
        return self._tags

    def _symbols(self, texts: Collection[str]) -> dict[str, int]:
        """The ids of symbols, new ones included."""
        (last,) = self._conn.execute("SELECT coalesce(max(id), 0) FROM symbols").fetchone()
        found: dict[str, int] = {}
        if last:
            sql = "SELECT symbol, id FROM symbols WHERE symbol IN (SELECT value FROM json_each(?))"
            found.update(self._conn.execute(sql, (json.dumps(list(texts), ensure_ascii=False),)))
        new = sorted(set(texts).difference(found))
        found.update(zip(new, range(last + 2, last + 2 * len(new) + 2, 2), strict=True))
        self._conn.executemany("INSERT INTO symbols (symbol, id) VALUES (?, ?)", ((one, found[one]) for one in new))
        return found

    def values(self, tags: Iterable[int]) -> dict[int, Value]:
        """The constants behind tags."""
        found: dict[int, Value] = {}
        asked = []
        for tag in set(tags):
            if tag & 1:
                found[tag] = tag >> 1
            else:
                asked.append(tag)
        sql = "SELECT id, symbol FROM symbols WHERE id IN (SELECT value FROM json_each(?))"
        for tag, text in self._conn.execute(sql, (json.dumps(asked),)):
            found[tag] = values.decode_value(text)
        return found

    # -- relations of facts

    def bring_up_to_date(self) -> int:
        """Take over what changed in `facts` since the last time; gives how many facts were read."""
        seen = self._seen()
        if seen is None:
            self._begin_anew()
            seen = 0
        changed = self._conn.execute("SELECT ref, predicate, arguments FROM fact_changes").fetchall()
        for ref, predicate, arguments in changed:
            self._forget(ref, predicate, arguments)
        self._conn.execute("DELETE FROM fact_changes")
        # A rowid that was freed may have been given again, so what was deleted is looked up once more.
        again = json.dumps(sorted({ref for ref, _, _ in changed if ref <= seen}))
        read = self._load("rowid IN (SELECT value FROM json_each(?)) AND rowid <= ?", (again, seen))
        read += self._load("rowid > ?", (seen,))
        if read or changed:
            self._out_of_date()
        last = self._conn.execute("SELECT rowid, id FROM facts ORDER BY rowid DESC LIMIT 1").fetchone() or (0, "")
        self._conn.execute("DELETE FROM relation_state")
        self._conn.execute("INSERT INTO relation_state (ref, fact_id) VALUES (?, ?)", last)
        return read

    @property
    def is_up_to_date(self) -> bool:
        """Whether the relations say what `facts` says."""
        sql = "SELECT EXISTS (SELECT 1 FROM fact_changes) OR coalesce((SELECT max(rowid) FROM facts), 0) > ?"
        seen = self._seen()
        return seen is not None and not self._conn.execute(sql, (seen,)).fetchone()[0]

    def _seen(self) -> int | None:
        """The rowid up to which facts were read; None where a copy of the file has numbered them otherwise."""
        state = self._conn.execute("SELECT ref, fact_id FROM relation_state").fetchone()
        if state is None:
            return None
        ref, fact_id = state
        if not ref:
            return 0
        sql = (
            "SELECT EXISTS (SELECT 1 FROM facts WHERE rowid = ? AND id = ?)"
            " OR EXISTS (SELECT 1 FROM fact_changes WHERE ref = ?)"
        )
        return ref if self._conn.execute(sql, (ref, fact_id, ref)).fetchone()[0] else None

    def _begin_anew(self) -> None:
        for (number,) in self._conn.execute("SELECT number FROM relations").fetchall():
            self._conn.execute(f"DROP TABLE IF EXISTS relation_{number}")
        self._conn.execute("DELETE FROM relations")
        self._conn.execute("DELETE FROM fact_changes")
        self._out_of_date()

    def _out_of_date(self) -> None:
        """What was derived rests on facts that have changed."""
        self._conn.execute("UPDATE derivations SET stale = 1")
        self.drop_atoms()

    def _forget(self, ref: int, predicate: str, arguments: str) -> None:
        """Take a deleted fact out. Where another may say the same in other digits (2 and 2.0), all are read again."""
        cells = _cells(predicate, arguments)
        relation = self._relation(f"{predicate}/{len(cells)}")
        if relation is None or not _is_sayable(cells):
            return
        number, shadowed = relation
        if shadowed:
            self._conn.execute(f"DELETE FROM relation_{number}")  # noqa: S608  our number
            self._load("predicate = ? AND json_array_length(arguments) = ?", (predicate, len(cells)))
            return
        where = " AND ".join(f"a{place} = ?" for place in range(1, len(cells) + 1))
        tags = [self.tag(cell) for cell in cells]
        self._conn.execute(f"DELETE FROM relation_{number} WHERE {where} AND ref = ?", (*tags, ref))  # noqa: S608

    def _relation(self, indicator: str) -> tuple[int, bool] | None:
        sql = "SELECT number, shadowed FROM relations WHERE indicator = ?"
        found = self._conn.execute(sql, (indicator,)).fetchone()
        return (found[0], bool(found[1])) if found else None

    def relation(self, indicator: str) -> str:
        """The table of a predicate's facts, an empty one if there are none."""
        found = self._relation(indicator)
        if found is None:
            arity = _arity(indicator)
            sql = (
                "INSERT INTO relations SELECT ?, coalesce(max(number), 0) + 1, 0, 0, 0 FROM relations RETURNING number"
            )
            found = self._conn.execute(sql, (indicator,)).fetchone()
            columns = _columns(arity)
            defined = ", ".join(f"{column} INTEGER NOT NULL" for column in (*columns, "ref"))
            self._conn.execute(
                f"CREATE TABLE relation_{found[0]} ({defined}, PRIMARY KEY ({', '.join(columns)})) WITHOUT ROWID"
            )
        return f"relation_{found[0]}"

    def extent(self, indicator: str) -> Extent:
        """The numbers among a predicate's facts, or more than those where facts were taken out."""
        sql = "SELECT largest, inexact FROM relations WHERE indicator = ?"
        found = self._conn.execute(sql, (indicator,)).fetchone()
        return Extent(found[0], bool(found[1])) if found else Extent()

    def is_empty(self, table: str) -> bool:
        return self._conn.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None  # noqa: S608  our table

    def _load(self, where: str, parameters: Sequence[object]) -> int:
        """Read facts into their relations: in batches into temporary tables, then each relation in its key's order."""
        loader = _Loader(self, self._conn)
        cursor = self._conn.execute(f"SELECT rowid, predicate, arguments FROM facts WHERE {where}", parameters)  # noqa: S608
        read = 0
        while batch := cursor.fetchmany(BATCH):
            loader.take(batch)
            read += len(batch)
        loader.finish()
        return read

    # -- what is derived

    def drop_atoms(self) -> None:
        """Forget every derived predicate: the facts have changed."""
        for (number,) in self._conn.execute("SELECT number FROM derived_predicates").fetchall():
            self._conn.execute(f"DROP TABLE IF EXISTS atoms_{number}")
        self._conn.execute("DELETE FROM derived_predicates")

    def atoms(self, indicator: str, fingerprint: str) -> str | None:
        """The table of a predicate that was derived by these rules from these facts, if there is one."""
        sql = "SELECT number FROM derived_predicates WHERE indicator = ? AND fingerprint = ?"
        found = self._conn.execute(sql, (indicator, fingerprint)).fetchone()
        return f"atoms_{found[0]}" if found else None

    def new_atoms(self, indicator: str, fingerprint: str) -> str:
        """An empty table for a derived predicate's atoms, in place of the one before."""
        old = self._conn.execute("DELETE FROM derived_predicates WHERE indicator = ? RETURNING number", (indicator,))
        for (number,) in old.fetchall():
            self._conn.execute(f"DROP TABLE IF EXISTS atoms_{number}")
        sql = (
            "INSERT INTO derived_predicates SELECT ?, coalesce(max(number), 0) + 1, ? FROM derived_predicates "
            "RETURNING number"
        )
        (number,) = self._conn.execute(sql, (indicator, fingerprint)).fetchone()
        columns = _columns(_arity(indicator))
        defined = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
        self._conn.execute(
            f"CREATE TABLE atoms_{number} (ref INTEGER PRIMARY KEY, {defined}, UNIQUE ({', '.join(columns)}))"
        )
        return f"atoms_{number}"

    def add_atoms(self, table: str, arity: int, select: str) -> int:
        """Add the atoms of a SELECT that are not there yet; gives how many were new."""
        sql = f"INSERT OR IGNORE INTO {table} ({', '.join(_columns(arity))}) {select}"
        return self._conn.execute(sql).rowcount

    def add_pairs(self, table: str, first: int, seconds: Collection[int]) -> None:
        """Add the pairs of one constant with these that are not there yet."""
        sql = f"INSERT OR IGNORE INTO {table} (a1, a2) SELECT ?, value FROM json_each(?)"  # noqa: S608  our table
        self._conn.execute(sql, (first, json.dumps(sorted(seconds))))

    def successors(self, table: str) -> dict[int, list[int]]:
        """A binary relation by its first argument."""
        found: dict[int, list[int]] = {}
        for first, second in self._conn.execute(f"SELECT a1, a2 FROM {table} ORDER BY a1, a2"):  # noqa: S608  ours
            found.setdefault(first, []).append(second)
        return found

    def index(self, table: str, arity: int) -> None:
        """So that a join can begin at any argument."""
        columns = _columns(arity)
        for place in range(1, arity):
            rotated = ", ".join((columns[place], *columns[:place], *columns[place + 1 :]))
            self._conn.execute(f"CREATE INDEX IF NOT EXISTS {table}_by_{place + 1} ON {table} ({rotated})")

    def highest(self, table: str) -> int:
        """The last `ref` of a table of atoms."""
        return int(self._conn.execute(f"SELECT coalesce(max(ref), 0) FROM {table}").fetchone()[0])  # noqa: S608

    def derivations(self) -> dict[str, Derivation]:
        """What is stored, by rule."""
        sql = "SELECT rule, number, engine, fingerprint, statements, stale FROM derivations ORDER BY rowid"
        with translated(self._kb.place):
            found = [Derivation(*row) for row in self._conn.execute(sql)]
        return {one.rule: one for one in found}

    def new_instances(self, rule: str, engine: str, fingerprint: str, columns: Sequence[str]) -> Derivation:
        """An empty table for a rule's instances, in place of the one before."""
        old = self.derivations().get(rule)
        if old is not None:
            self._conn.execute(f"DROP TABLE IF EXISTS {old.table}")
            self._conn.execute("DELETE FROM derivations WHERE rule = ?", (rule,))
        sql = (
            "INSERT INTO derivations (rule, number, engine, fingerprint, statements, stale) "
            "SELECT ?, coalesce(max(number), 0) + 1, ?, ?, 0, 0 FROM derivations RETURNING number"
        )
        (number,) = self._conn.execute(sql, (rule, engine, fingerprint)).fetchone()
        derivation = Derivation(rule, number, engine, fingerprint)
        defined = ", ".join(["id INTEGER PRIMARY KEY", *(f"{column} INTEGER" for column in columns)])
        self._conn.execute(f"CREATE TABLE {derivation.table} ({defined})")
        return derivation

    def fill(self, derivation: Derivation, select: str) -> int:
        """Store what a SELECT gives, its first column NULL, as a rule's instances."""
        count = self._conn.execute(f"INSERT INTO {derivation.table} {select}").rowcount
        return self._counted(derivation, count)

    def fill_rows(self, derivation: Derivation, found: Sequence[Sequence[Value | None]]) -> int:
        """Store rows of values as a rule's instances; None is a variable without a value."""
        for begin in range(0, len(found), BATCH):
            batch = found[begin : begin + BATCH]
            tags = self.tagged(cell for row in batch for cell in row if cell is not None)
            marks = ", ".join(["NULL", *("?" * len(batch[0]))])
            rows = ([None if cell is None else tags[cell] for cell in row] for row in batch)
            self._conn.executemany(f"INSERT INTO {derivation.table} VALUES ({marks})", rows)  # noqa: S608  ours
        return self._counted(derivation, len(found))

    def _counted(self, derivation: Derivation, count: int) -> int:
        self._conn.execute("UPDATE derivations SET statements = ? WHERE rule = ?", (count, derivation.rule))
        return count

    # -- reading

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reading inside sees one state of the file, whoever writes meanwhile."""
        with translated(self._kb.place):
            self._conn.execute("BEGIN")
            try:
                yield
            finally:
                self._conn.execute("ROLLBACK")

    def batches(self, derivation: Derivation) -> Iterator[list[tuple[Any, ...]]]:
        """The stored instances of a rule, so many at a time: their number, the variables' tags, the premises' refs."""
        cursor = self._conn.execute(f"SELECT * FROM {derivation.table} ORDER BY id")  # noqa: S608  ours
        while batch := cursor.fetchmany(BATCH):
            yield batch

    def rows(self, select: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a SELECT of ours."""
        return iter(self._conn.execute(select))

    def table(self, name: str) -> tuple[list[str], Iterator[list[tuple[Any, ...]]]]:
        """The columns of one of these tables, and its rows, so many at a time."""
        cursor = self._conn.execute(f"SELECT * FROM {name}")  # noqa: S608  our table
        return [column[0] for column in cursor.description], iter(lambda: cursor.fetchmany(BATCH), [])

    def wanted(self, name: str, refs: Iterable[int]) -> str:
        """A temporary table of these refs, for a join."""
        self._conn.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} (ref INTEGER PRIMARY KEY)")
        self._conn.execute(f"DELETE FROM temp.{name}")  # noqa: S608  ours
        self._conn.executemany(f"INSERT INTO temp.{name} VALUES (?)", ((ref,) for ref in refs))  # noqa: S608
        return f"temp.{name}"

    def facts(self, refs: Iterable[int]) -> list[FactRecord]:
        """The facts behind the refs of relations."""
        wanted = json.dumps(sorted(set(refs)))
        return self._kb.select(rows.FACTS, "WHERE facts.rowid IN (SELECT value FROM json_each(?))", (wanted,))


class _Loader:
    """Reads facts into temporary tables, one a predicate, and from there in key order into the relations."""

    def __init__(self, relations: Relations, connection: sqlite3.Connection) -> None:
        self._relations, self._conn = relations, connection
        self._extents: dict[str, Extent] = {}
        self._shadowed: set[str] = set()
        self._tables: dict[str, str] = {}

    def take(self, batch: Sequence[tuple[int, str, str]]) -> None:
        facts = _parsed(batch)
        if any("\\u0000" in arguments for _, _, arguments in batch):
            said = [place for place, cells in enumerate(facts) if _is_sayable(cells)]
            batch, facts = [batch[place] for place in said], [facts[place] for place in said]
        tags = self._relations.tagged(chain.from_iterable(facts)).__getitem__
        waiting: dict[tuple[str, int], list[tuple[int, ...]]] = {}
        for (ref, predicate, _), cells in zip(batch, facts, strict=True):
            waiting.setdefault((predicate, len(cells)), []).append((*map(tags, cells), ref))
        for (predicate, arity), found in waiting.items():
            if arity:
                marks = ", ".join("?" * (arity + 1))
                table = self._table(f"{predicate}/{arity}")
                self._conn.executemany(f"INSERT INTO {table} VALUES ({marks})", found)  # noqa: S608  ours
        if {type(cell) for cells in facts for cell in cells} - {str}:
            for (_, predicate, _), cells in zip(batch, facts, strict=True):
                self._numbers(f"{predicate}/{len(cells)}", (cell for cell in cells if not isinstance(cell, str)))

    def _numbers(self, indicator: str, numbers: Iterable[Value]) -> None:
        for number in numbers:
            self._extents[indicator] = self._extents.get(indicator, Extent()) | extent_of(number)
            if isinstance(number, Decimal) and str(canonical(number)) != str(number):
                self._shadowed.add(indicator)

    def _table(self, indicator: str) -> str:
        if indicator not in self._tables:
            name = f"loaded_{len(self._tables)}"
            columns = ", ".join((*_columns(_arity(indicator)), "ref"))
            self._conn.execute(f"DROP TABLE IF EXISTS temp.{name}")
            self._conn.execute(f"CREATE TEMP TABLE {name} ({columns})")
            self._tables[indicator] = f"temp.{name}"
        return self._tables[indicator]

    def finish(self) -> None:
        for indicator, loaded in self._tables.items():
            arity = _arity(indicator)
            table, key = self._relations.relation(indicator), ", ".join(_columns(arity))
            # Of facts that say the same (2 and 2.0) the later one is the fact that proofs name.
            self._conn.execute(
                f"INSERT INTO {table} SELECT * FROM {loaded} WHERE true ORDER BY {key}, ref "  # noqa: S608  ours
                f"ON CONFLICT ({key}) DO UPDATE SET ref = max(ref, excluded.ref)"
            )
            self._conn.execute(f"DROP TABLE {loaded}")
            self._relations.index(table, arity)
            extent = self._extents.get(indicator, Extent())
            self._conn.execute(
                "UPDATE relations SET largest = max(largest, ?), inexact = inexact OR ?, shadowed = shadowed OR ? "
                "WHERE indicator = ?",
                (extent.largest, extent.inexact, indicator in self._shadowed, indicator),
            )


def _columns(arity: int) -> tuple[str, ...]:
    return tuple(f"a{place}" for place in range(1, arity + 1))


def _arity(indicator: str) -> int:
    return int(indicator.rpartition("/")[2])


def _parsed(batch: Sequence[tuple[int, str, str]]) -> Sequence[Sequence[Value]]:
    """The arguments of a batch of facts: read in one go, or one by one to name the one that is at fault."""
    try:
        whole = values.load_list(f"[{','.join(arguments for _, _, arguments in batch)}]")
    except ValueError:
        whole = []
    kinds = {type(cell) for cells in whole if type(cells) is list for cell in cells}
    if len(whole) == len(batch) and {*map(type, whole)} == {list} and kinds <= {str, int, Decimal}:
        return whole
    return [_cells(predicate, arguments) for _, predicate, arguments in batch]


def _cells(predicate: str, arguments: str) -> tuple[Value, ...]:
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


def _is_sayable(cells: Iterable[Value]) -> bool:
    """Prolog cannot hold U+0000, so no rule speaks of such a fact."""
    return not any(isinstance(cell, str) and "\0" in cell for cell in cells)
