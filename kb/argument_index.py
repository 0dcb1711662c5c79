"""Facts by their arguments, found by index, so that a question about a few facts reads no others.

The index of a predicate is made when a goal first needs it. It need not be complete: facts that were added or changed
since are read besides those that it names, and it is brought up to date when they become many. Its keys are texts and
rounded numbers, so it names a few facts too many, and never too few.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import chain
from typing import Any, TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Value
from hapax.kb import rows
from hapax.kb.connection import translated
from hapax.kb.loading import cells_of, check_identity, is_sayable
from hapax.kb.records import FACTS, FactRecord
from hapax.kb.store import KnowledgeBase

FEW_FACTS = 2_000
"""Facts that are read at once, because this is faster than to look some of them up."""

INDEXED_PLACES = 3
"""Number of arguments, from the first, by which facts of every predicate are indexed. Wider ones have all places."""

FactRow: TypeAlias = tuple[int, tuple[Value, ...]]
"""A fact's rowid and arguments."""

# The place of the index that has the data types of facts in place of a key, each combination once.
_TYPES = -1

# In place of a fact's rowid: the index has this place of a predicate. No fact has this rowid.
_HAS_PLACE = 0

# Keys of numbers are floats as SQLite rounds them, within this much of the exact number.
_ROUNDING = 1e-12

# Rowids in one SELECT.
_LISTED = 10_000

# A decimal is an object; as a float it is equal to a whole number of the same value.
_KEY = (
    "CASE json_type(arguments, '$[{0}]') WHEN 'object' THEN CAST(json_extract(arguments, '$[{0}].decimal') AS REAL) "
    "ELSE json_extract(arguments, '$[{0}]') END"
)

_SELECT = "SELECT rowid, id, arguments, types FROM facts WHERE predicate = ?"

_FactCells: TypeAlias = tuple[int, str, str, str]
"""A fact's rowid, id, arguments and types as they are stored."""


class ArgumentIndex:
    """The index of an open knowledge base's facts by argument."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._conn: sqlite3.Connection = kb.connection

    def is_small(self, predicate: str) -> bool:
        """True if few facts are stored under the predicate's name."""
        return not self._exceeds(FEW_FACTS, "predicate = ?", (predicate,))

    def is_looked_up(self, indicator: str) -> bool:
        """True if the facts of the predicate are many, and can be looked up."""
        return not self.is_small(indicator.rpartition("/")[0]) and self.is_ready(indicator)

    def is_ready(self, indicator: str) -> bool:
        """True if the facts of the predicate can be looked up by any argument, and few others are read besides."""
        name, _, arity = indicator.rpartition("/")
        state = self._state(name)
        if state is None:
            return False
        number, seen = state
        wider = range(INDEXED_PLACES, int(arity))
        if not all(self._has_place(number, place) for place in (_TYPES, *wider)):
            return False
        return not self._exceeds(FEW_FACTS, "predicate = ? AND rowid > ?", (name, seen))

    def prepare(self, indicators: Iterable[str]) -> None:
        """Index the facts of these predicates where many are not indexed yet.

        Does nothing if the file may not be written, or if another process is writing to it.
        """
        waiting = [
            indicator
            for indicator in dict.fromkeys(indicators)
            if not self.is_small(indicator.rpartition("/")[0]) and not self.is_ready(indicator)
        ]
        if not waiting:
            return
        if self._kb.path is None or not self._kb.is_read_only:
            with self._kb.transaction():
                self._add(waiting)
            return
        try:
            # A second connection writes, and gives up at once where it cannot: without the index a goal is only slower.
            with KnowledgeBase(self._kb.path) as writer, writer.transaction(seconds=0):
                ArgumentIndex(writer)._add(waiting)
        except HapaxError:
            return

    def rows(self, indicator: str, bound: Mapping[int, Value], *, given: bool = False) -> list[FactRow]:
        """A predicate's facts, in the order of storage, that may have these values at these places, counted from 0.

        All facts that have them are among the rows. `given`: only those that a user gave. Raises HapaxError for a
        damaged fact.
        """
        # A fact that has changed since may be found by its old key and again among the changed ones.
        found = sorted(set(self._found(indicator, bound, given=given)))
        return [(ref, cells) for ref, cells, _ in self._read(indicator, found)]

    def types_of(self, indicator: str, value: Value) -> set[str]:
        """The data types that a predicate's facts give to a value. Raises HapaxError for a damaged fact."""
        found: set[str] = set()
        known = self._types(indicator)
        for place in range(int(indicator.rpartition("/")[2])):
            possible = {types[place] for types in known if len(types) > place}
            # A value may be in a million facts, which mostly give it the same type.
            for _, cells, text in self._read(indicator, self._found(indicator, {place: value})):
                types = _names(text)
                if cells[place] == value and len(types) > place and is_sayable(cells):
                    found.add(types[place])
                if possible <= found:
                    break
        return found

    def typed_values(self, indicator: str, is_wanted: Callable[[str], bool]) -> set[tuple[Value, str]]:
        """The values to which a predicate's facts give a wanted data type, with the type.

        All facts are read if any gives such a type, and none otherwise. Raises HapaxError for a damaged fact.
        """
        found: set[tuple[Value, str]] = set()
        if any(map(is_wanted, chain.from_iterable(self._types(indicator)))):
            for _, cells, text in self._read(indicator, self._found(indicator, {})):
                pairs = zip(cells, _names(text), strict=False)  # imported facts may have no types
                if is_sayable(cells):
                    found.update((value, data_type) for value, data_type in pairs if is_wanted(data_type))
        return found

    def _types(self, indicator: str) -> list[tuple[str, ...]]:
        """The combinations of data types of a predicate's facts, and perhaps of facts that are gone."""
        name = indicator.rpartition("/")[0]
        state = self._state(name)
        whole = "SELECT DISTINCT types FROM facts WHERE predicate = ?"
        if state is None or not self._has_place(state[0], _TYPES):
            found = self._kb.query(whole, (name,))
        else:
            number, seen = state
            indexed = "SELECT key FROM argument_index WHERE number = ? AND place = ? AND ref <> ?"
            found = self._kb.query(indexed, (number, _TYPES, _HAS_PLACE))
            found += self._kb.query(f"{whole} AND rowid > ?", (name, seen))
            found += self._kb.query(f"{whole} AND rowid IN (SELECT ref FROM unindexed_facts)", (name,))  # noqa: S608  ours
        return [_names(text) for (text,) in dict.fromkeys(found)]

    def _read(self, indicator: str, found: Iterable[_FactCells]) -> Iterator[tuple[int, tuple[Value, ...], str]]:
        """The rowids, arguments and types of facts, without those of another predicate of this name."""
        name, _, arity = indicator.rpartition("/")
        for ref, identity, text, types in found:
            check_identity(identity, name, text)
            values = cells_of(name, text)
            # Facts of this name with another number of arguments are another predicate's.
            if len(values) == int(arity):
                yield ref, values, types

    def _found(self, indicator: str, bound: Mapping[int, Value], *, given: bool = False) -> Iterator[_FactCells]:
        """The facts under a predicate's name that may have these values, perhaps twice."""
        select = f"{_SELECT} AND source = 'given'" if given else _SELECT
        name = indicator.rpartition("/")[0]
        state = self._state(name)
        keys = [] if state is None else [item for item in bound.items() if self._has_place(state[0], item[0])]
        with translated(self._kb.place):
            if state is None or not keys:
                yield from self._conn.execute(select, (name,))
            else:
                number, seen = state
                # By the value that the fewest facts have: SQLite would read the list of each value to its end.
                condition, parameters = min(map(partial(self._condition, number), keys), key=self._count)
                yield from self._conn.execute(f"{select} AND rowid IN ({condition})", (name, *parameters))
                for since, more in (("rowid > ?", (seen,)), ("rowid IN (SELECT ref FROM unindexed_facts)", ())):
                    yield from self._conn.execute(f"{select} AND {since}", (name, *more))

    @staticmethod
    def _condition(number: int, key: tuple[int, Value]) -> tuple[str, list[Any]]:
        """SQL of the rowids of facts that have a value at a place, with its parameters."""
        place, value = key
        low, high = (value, value) if isinstance(value, str) else _limits(value)
        sql = "SELECT ref FROM argument_index WHERE number = ? AND place = ? AND key BETWEEN ? AND ?"
        return sql, [number, place, low, high]

    def _count(self, condition: tuple[str, list[Any]]) -> int:
        """The number of rowids, as far as it tells short lists from long ones."""
        sql, parameters = condition
        return int(self._conn.execute(f"SELECT count(*) FROM ({sql} LIMIT {FEW_FACTS})", parameters).fetchone()[0])  # noqa: S608

    def _state(self, predicate: str) -> tuple[int, int] | None:
        """The number of an indexed predicate and the rowid up to which it is indexed; None without a sound index."""
        sql = "SELECT number, ref, fact_id FROM indexed_predicates WHERE predicate = ?"
        found = self._conn.execute(sql, (predicate,)).fetchone()
        if found is None:
            return None
        number, seen, fact_id = found
        # In a copy of the file, for example after VACUUM, facts may have other rowids.
        last = self._conn.execute("SELECT id FROM facts WHERE rowid = ?", (seen,)).fetchone()
        return (number, seen) if last == (fact_id,) else None

    def _has_place(self, number: int, place: int) -> bool:
        """True if the index of a predicate has this place."""
        if 0 <= place < INDEXED_PLACES:
            return True
        sql = "SELECT 1 FROM argument_index WHERE number = ? AND place = ? AND key = '' AND ref = ?"
        return self._conn.execute(sql, (number, place, _HAS_PLACE)).fetchone() is not None

    def _exceeds(self, limit: int, where: str, parameters: tuple[object, ...]) -> bool:
        # The LIMIT inside ends the count early; a plain count would visit every fact of a large predicate.
        sql = f"SELECT count(*) FROM (SELECT 1 FROM facts WHERE {where} LIMIT {limit + 1})"  # noqa: S608  ours
        return bool(self._kb.query(sql, parameters)[0][0] > limit)

    def _add(self, indicators: Iterable[str]) -> None:
        (changed,) = self._conn.execute("SELECT count(*) FROM unindexed_facts").fetchone()
        # Every lookup reads all changed facts besides, so with many of them the index is made anew.
        if changed > FEW_FACTS:
            for table in ("indexed_predicates", "argument_index", "unindexed_facts"):
                self._conn.execute(f"DELETE FROM {table}")  # noqa: S608  ours
        widest: dict[str, int] = {}
        for indicator in indicators:
            name, _, arity = indicator.rpartition("/")
            widest[name] = max(int(arity), widest.get(name, INDEXED_PLACES))
        for name, width in widest.items():
            self._index(name, width)

    def _index(self, predicate: str, width: int) -> None:
        """Index the facts of a predicate by at least so many places."""
        state = self._state(predicate)
        if state is None:
            numbers = "SELECT number FROM indexed_predicates WHERE predicate = ?"
            self._conn.execute(f"DELETE FROM argument_index WHERE number IN ({numbers})", (predicate,))  # noqa: S608  ours
            self._conn.execute("DELETE FROM indexed_predicates WHERE predicate = ?", (predicate,))
            (number,) = self._conn.execute("SELECT coalesce(max(number), 0) + 1 FROM indexed_predicates").fetchone()
        number, seen = state or (number, 0)
        (last_place,) = self._conn.execute(
            "SELECT coalesce(max(place), 0) FROM argument_index WHERE number = ?", (number,)
        ).fetchone()
        for place in (_TYPES, *range(max(width, last_place + 1))):
            is_new = state is None or not self._has_place(number, place)
            # In key order, which SQLite appends fastest. A damaged cell has no key; whoever reads it is told.
            select = (
                f"SELECT key, ref FROM (SELECT {_KEY.format(place)} AS key, rowid AS ref FROM facts "  # noqa: S608  ours
                "WHERE predicate = ? AND rowid > ? AND json_valid(arguments)) WHERE key IS NOT NULL ORDER BY key, ref"
            )
            if place == _TYPES:
                select = "SELECT types, min(rowid) FROM facts WHERE predicate = ? AND rowid > ? GROUP BY types"
            self._conn.execute(
                f"INSERT OR IGNORE INTO argument_index SELECT ?, {place}, * FROM ({select})",  # noqa: S608  ours
                (number, predicate, 0 if is_new else seen),
            )
            if not 0 <= place < INDEXED_PLACES:
                self._conn.execute(
                    "INSERT OR IGNORE INTO argument_index VALUES (?, ?, '', ?)", (number, place, _HAS_PLACE)
                )
        last = "SELECT rowid, id FROM facts WHERE predicate = ? ORDER BY rowid DESC LIMIT 1"
        ref, fact_id = self._conn.execute(last, (predicate,)).fetchone()
        self._conn.execute(
            "INSERT OR REPLACE INTO indexed_predicates VALUES (?, ?, ?, ?)", (number, predicate, ref, fact_id)
        )


@lru_cache(maxsize=1_000)
def _names(text: str) -> tuple[str, ...]:
    """The data types of a fact. Of damaged ones, which are none here, the reader of the whole fact is told."""
    try:
        return tuple(map(str, rows.NAMES.decode(text)))
    except (ValueError, TypeError):
        return ()


def _limits(number: Value) -> list[float]:
    """The least and the greatest key that an equal number can have."""
    try:
        key = float(number)
    except OverflowError:  # of an integer; a decimal becomes infinite
        key = math.copysign(math.inf, 1 if str(number)[0] != "-" else -1)
    # Close to the greatest float, 1.8e308, SQLite may have rounded to a finite number.
    if math.isinf(key):
        # SQLite rounds less exactly than Python, so near its limit a key may be a finite float instead.
        return sorted((key, math.copysign(1.7e308, key)))
    # The second term is for zero and the smallest floats, where a relative margin vanishes.
    margin = abs(key) * _ROUNDING + 1e-300
    return [key - margin, key + margin]


def facts_at(kb: KnowledgeBase, refs: Iterable[int]) -> list[FactRecord]:
    """The facts with these rowids, in the order of storage."""
    found: list[FactRecord] = []
    for numbers in _lists(refs):
        found += kb.select(FACTS, f"WHERE facts.rowid IN ({numbers})")
    return found


def _lists(refs: Iterable[int]) -> Iterator[str]:
    """The rowids in ascending order, as lists of integers in SQL."""
    # Not parameters, of which some builds of SQLite allow no more than 999.
    waiting = sorted(refs)
    for start in range(0, len(waiting), _LISTED):
        yield ", ".join(map(str, waiting[start : start + _LISTED]))


@contextmanager
def one_state(kb: KnowledgeBase) -> Iterator[None]:
    """Read one state of the knowledge base inside the block, whoever writes meanwhile."""
    # A transaction that writes reads one state as it is.
    if kb.connection.in_transaction:
        yield
        return
    with translated(kb.place):
        # Deferred: no writer waits for it, and the first read inside fixes the state.
        kb.connection.execute("BEGIN")
        try:
            yield
        finally:
            # SQLite has ended it already where a time limit interrupts an INSERT into a temporary table.
            if kb.connection.in_transaction:
                kb.connection.execute("ROLLBACK")
