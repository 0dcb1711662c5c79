"""Facts in relations: one table for each predicate, with a column of tags (`kb/atoms/symbols.py`) for each argument.

A row of `_relation_N (ref, a1, .., id)` is a fact: its number, which no other fact of the file ever has, its arguments
and its identity. `ref` names a fact in derived tables. `fact_origins` has a row for each fact that is not given, or has
other data types than its relation. The view `facts` shows the facts of all predicates as text. An index by another
argument than the first is made when a question first begins there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from hapax.grammar.terms import Value
from hapax.kb import rows, schema
from hapax.kb.connection import translated
from hapax.kb.exchange.values import refusal
from hapax.kb.record_store import OpenRecords
from hapax.kb.records import FACTS, FactRecord, Source

FEW_FACTS = 2_000
"""Facts of a predicate that are read at once, because this is faster than to look some of them up."""

# Rows of one INSERT: 500 are twice as fast as one by one, more are no faster.
_ROWS = 500

Origin: TypeAlias = tuple[str | None, str | None, float | None, str | None, str | None, str | None]
"""The cells of `schema.ORIGIN`."""


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """The table of a predicate's facts. `types`: the data types, as JSON, of facts that have no others."""

    number: int
    predicate: str
    arity: int
    types: str

    @property
    def table(self) -> str:
        return f"_relation_{self.number}"

    @property
    def indicator(self) -> str:
        return f"{self.predicate}/{self.arity}"

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.indicator)

    @property
    def select(self) -> str:
        """SELECT of the facts as the view `facts` shows them, from the table under the alias `r`."""
        return schema.facts_of_relation(self.number, self.predicate, self.arity, self.types)


class FactRelations:
    """The relations of an open knowledge base. Call the methods that write inside a transaction."""

    def __init__(self, kb: OpenRecords) -> None:
        self._kb, self._conn, self._symbols = kb, kb.connection, kb.symbols
        self._found: dict[str, StoredRelation] = {}

    # -- relations

    def all(self) -> list[StoredRelation]:
        """The relations in the order in which they were made."""
        return [StoredRelation(*row) for row in self._kb.sql(f"{schema.RELATIONS} ORDER BY number")]

    def named(self, predicate: str) -> list[StoredRelation]:
        """The relations of a predicate by name (`is_spicy`) or indicator (`is_spicy/1`)."""
        name, _, arity = predicate.rpartition("/") if "/" in predicate else (predicate, "", "")
        if refusal(name):
            return []
        found = self._kb.sql(f"{schema.RELATIONS} WHERE predicate = ? ORDER BY arity", (name,))
        return [StoredRelation(*row) for row in found if not arity or str(row[2]) == arity]

    def get(self, indicator: str) -> StoredRelation | None:
        """The relation of a predicate by indicator; None if it never had facts."""
        relation = self._found.get(indicator) or next(iter(self.named(indicator)), None)
        # A relation is for ever, unless the transaction that makes it is undone.
        if relation is not None and not self._conn.in_transaction:
            self._found[indicator] = relation
        return relation

    def table(self, indicator: str) -> str:
        """The table of a predicate's facts; an empty temporary one for a predicate that never had any."""
        relation = self.get(indicator)
        if relation is not None:
            return relation.table
        columns = columns_of(indicator)
        name, cells = f"no_facts_{len(columns)}", ("ref", *columns, "id")
        self._conn.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({', '.join(cells)})")
        return f"temp.{name}"

    def made(self, wanted: Mapping[str, str], *, indexed: bool = True) -> dict[str, StoredRelation]:
        """The relations of these predicates, new ones included. `wanted`: the data types, as JSON, by indicator.

        `indexed`: new ones get their index at once; otherwise call `index_new` when they are filled.
        """
        found: dict[str, StoredRelation] = {}
        new = False
        for indicator, types in wanted.items():
            relation = self.get(indicator)
            if relation is None:
                predicate, _, arity = indicator.rpartition("/")
                sql = "INSERT INTO relations (predicate, arity, types) VALUES (?, ?, ?) RETURNING number"
                ((number,),) = self._kb.sql(sql, (predicate, int(arity), types))
                relation, new = StoredRelation(number, predicate, int(arity), types), True
                self._conn.execute(schema.relation_table(number, relation.columns))
                if indexed:
                    self._conn.execute(schema.relation_index(number, relation.columns))
            found[indicator] = relation
        if new:
            self._conn.execute("DROP VIEW facts")
            self._conn.execute(schema.facts_view(self._conn))
        return found

    def index_new(self, relation: StoredRelation) -> list[int]:
        """Index a relation that was filled without an index; returns the numbers of repeated facts, which are deleted.

        Of equal facts the first stays.
        """
        index = schema.relation_index(relation.number, relation.columns)
        try:
            self._conn.execute(index)
        except sqlite3.IntegrityError:
            firsts = f"SELECT min(ref) FROM {relation.table} GROUP BY {', '.join(relation.columns)}"  # noqa: S608  ours
            sql = f"SELECT ref FROM {relation.table} WHERE ref NOT IN ({firsts})"  # noqa: S608  ours
            repeated = [ref for (ref,) in self._conn.execute(sql)]
            self.delete(relation, repeated)
            self._conn.execute(index)
            return repeated
        return []

    # -- adding

    def add(self, facts: Iterable[FactRecord]) -> int:
        """Store facts; of two with the same arguments the better one stays. Returns the number of changes."""
        facts = list(facts)
        return self.add_numbered(zip(self.new_refs(len(facts)), facts, strict=True))

    def add_numbered(self, facts: Iterable[tuple[int, FactRecord]]) -> int:
        """The same under numbers that no fact has, in ascending order."""
        by_indicator: dict[str, list[tuple[int, FactRecord]]] = {}
        for ref, fact in facts:
            by_indicator.setdefault(fact.indicator, []).append((ref, fact))
        types = {name: str(rows.NAMES.encode(group[0][1].types)) for name, group in by_indicator.items()}
        return sum(self._add(relation, by_indicator[name]) for name, relation in self.made(types).items())

    def _add(self, relation: StoredRelation, facts: Sequence[tuple[int, FactRecord]]) -> int:
        changes = 0
        for begin in range(0, len(facts), _ROWS):
            refs, batch = zip(*facts[begin : begin + _ROWS], strict=True)
            stored = [dict(zip(FACTS.all_columns, FACTS.row(fact), strict=True)) for fact in batch]
            origins = [_origin(row, relation) for row in stored]
            tags = list(map(self._symbols.tags, zip(*(fact.arguments for fact in batch), strict=True)))
            known = self.insert(relation, refs, tags, [bytes.fromhex(str(row["id"])) for row in stored], origins)
            changes += len(batch) - len(known)
            for place in known:
                found = self.find(relation, [column[place] for column in tags])
                changes += found is not None and self.improve(relation, found[0], origins[place])
        return changes

    def new_refs(self, count: int) -> range:
        """Numbers for so many new facts, or for other changes of facts."""
        sql = "UPDATE fact_numbers SET last = last + ? RETURNING last"
        ((last,),) = self._kb.sql(sql, (count,))
        return range(last - count + 1, last + 1)

    def insert(
        self,
        relation: StoredRelation,
        refs: Sequence[int],
        tags: Sequence[Sequence[int]],
        ids: Sequence[bytes],
        origins: Sequence[Origin] = (),
    ) -> list[int]:
        """Insert facts, and return the places of those whose arguments some fact has already.

        `tags`: of the arguments, a column for each. `origins`: none for given facts of the relation's types.
        """
        into = f"{relation.table} ({', '.join(('ref', *relation.columns, 'id'))})"
        marks = f"({', '.join('?' * (len(tags) + 2))})"
        lines = list(zip(refs, *tags, ids, strict=True))
        # SQLite limits the parameters of a statement, so that few wide facts go into one.
        most = self._conn.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // (len(tags) + 2)
        inserted = 0
        for begin in range(0, len(lines), most):
            part = lines[begin : begin + most]
            sql = f"INSERT INTO {into} VALUES {', '.join([marks] * len(part))} ON CONFLICT DO NOTHING"  # noqa: S608  ours
            inserted += self._conn.execute(sql, list(chain.from_iterable(part))).rowcount
        known: list[int] = []
        if inserted != len(lines):
            sql = f"SELECT ref FROM {relation.table} WHERE ref BETWEEN ? AND ?"  # noqa: S608  ours
            present = {ref for (ref,) in self._conn.execute(sql, (refs[0], refs[-1]))}
            known = [place for place, ref in enumerate(refs) if ref not in present]
        gone = set(known)
        for place, origin in enumerate(origins):
            if place not in gone:
                self._set_origin(refs[place], origin)
        return known

    def _set_origin(self, ref: int, origin: Origin) -> None:
        if any(cell is not None for cell in origin):
            sql = f"INSERT OR REPLACE INTO fact_origins (ref, {', '.join(schema.ORIGIN)}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
            self._conn.execute(sql, (ref, *origin))
        else:
            self._conn.execute("DELETE FROM fact_origins WHERE ref = ?", (ref,))

    def find(self, relation: StoredRelation, tags: Sequence[int]) -> tuple[int, str | None] | None:
        """The number and the source, None for a given one, of the fact with these arguments; None without it."""
        source = "(SELECT source FROM fact_origins AS o WHERE o.ref = r.ref)"
        sql = f"SELECT ref, {source} FROM {relation.table} AS r WHERE {_equal(relation.columns)}"  # noqa: S608  ours
        found: tuple[int, str | None] | None = self._conn.execute(sql, tags).fetchone()
        return found

    def improve(self, relation: StoredRelation, ref: int, origin: Origin) -> bool:
        """Give a fact another origin, if that is better; False otherwise."""
        sql = f"SELECT {', '.join(schema.ORIGIN)} FROM fact_origins WHERE ref = ?"  # noqa: S608  ours
        stored = self._conn.execute(sql, (ref,)).fetchone() or [None] * len(schema.ORIGIN)
        if not _is_better(origin, stored, relation):
            return False
        self._set_origin(ref, origin)
        return True

    # -- removing

    def remove(self, facts: Iterable[FactRecord]) -> int:
        """Delete facts, and return how many were there. What is derived from them follows by `gone_facts`."""
        count, gone = 0, []
        ((derived,),) = self._kb.sql("SELECT derived FROM fact_numbers")
        for fact in facts:
            relation = self.get(fact.indicator)
            tags = self._known_tags(fact.arguments)
            if relation is None or tags is None:
                continue
            sql = f"SELECT ref FROM {relation.table} WHERE {_equal(relation.columns)}"  # noqa: S608  ours
            for (ref,) in self._conn.execute(sql, tags).fetchall():
                count += 1
                self.delete(relation, [ref])
                # A newer one was never joined.
                if ref <= derived:
                    gone.append((relation.number, ref, json.dumps(tags)))
        if gone:
            self._kb.make("gone_facts")
            self._kb.write("INSERT INTO gone_facts (relation, ref, tags) VALUES (?, ?, ?)", gone)
            self.new_refs(len(gone))
        return count

    def delete(self, relation: StoredRelation, refs: Iterable[int]) -> None:
        """Delete facts by their numbers."""
        for table in (relation.table, "fact_origins"):
            self._conn.executemany(f"DELETE FROM {table} WHERE ref = ?", ((ref,) for ref in refs))  # noqa: S608  ours

    # -- reading

    def records(
        self, relation: StoredRelation, condition: str = "", parameters: Sequence[object] = ()
    ) -> Iterator[tuple[int, FactRecord]]:
        """Facts of a relation with their numbers, in the order of storage. `condition`: on the table `r`."""
        sql = f"{relation.select} {condition} ORDER BY r.ref"
        with translated(self._kb.place):
            for *cells, ref in self._conn.execute(sql, parameters):
                for record in self._kb.read_rows(FACTS, [tuple(cells)]):
                    yield ref, record

    def at(self, indicator: str, bound: Mapping[int, Value], *, given: bool = False) -> Iterator[FactRecord]:
        """A predicate's facts that have these values at these places, counted from 0; `given`: the given ones."""
        relation, tags = self.get(indicator), self._known_tags(list(bound.values()))
        if relation is None or tags is None:
            return
        conditions = [f"r.a{place + 1} = ?" for place in bound] + (["o.source IS NULL"] if given else [])
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        yield from (fact for _, fact in self.records(relation, where, tags))

    def with_any(self, indicator: str, values: Collection[Value]) -> Iterator[FactRecord]:
        """A predicate's facts that have one of these values at any place."""
        relation = self.get(indicator)
        if relation is not None:
            yield from (fact for _, fact in self.records(relation, *self._any(relation, values)))

    def refs_with(self, values: Collection[Value]) -> list[int]:
        """Numbers of the facts of all predicates that have one of these values at any place."""
        refs: list[int] = []
        for relation in self.all():
            where, wanted = self._any(relation, values)
            refs += [ref for (ref,) in self._kb.sql(f"SELECT ref FROM {relation.table} AS r {where}", wanted)]  # noqa: S608
        return refs

    def _any(self, relation: StoredRelation, values: Collection[Value]) -> tuple[str, tuple[str]]:
        """Condition on a relation, with its parameter, that one of these values stands at any place."""
        wanted = json.dumps([tag for tag in self._symbols.known(list(values)) if tag is not None])
        places = (f"r.{column} IN (SELECT value FROM json_each(?1))" for column in relation.columns)  # noqa: S608  ours
        return f"WHERE {' OR '.join(places)}", (wanted,)

    def types_of(self, indicator: str, value: Value) -> set[str]:
        """The data types that a predicate's facts give to a value."""
        relation, tags = self.get(indicator), self._known_tags([value])
        found: set[str] = set()
        if relation is not None and tags is not None:
            for place, column in enumerate(relation.columns):
                for text in self._types(relation, f"WHERE r.{column} = ?", tags):
                    found.update(_names(text)[place : place + 1])
        return found

    def typed_values(self, indicator: str, is_wanted: Callable[[str], bool]) -> set[tuple[Value, str]]:
        """The values to which a predicate's facts give a wanted data type, with the type.

        All facts are read if any gives such a type, and none otherwise.
        """
        found: set[tuple[Value, str]] = set()
        relation = self.get(indicator)
        if relation is None:
            return found
        if any(map(is_wanted, chain.from_iterable(map(_names, self._types(relation))))):
            for _, fact in self.records(relation):
                # Imported facts may have no types.
                pairs = zip(fact.arguments, fact.types, strict=False)
                found.update((value, data_type) for value, data_type in pairs if is_wanted(data_type))
        return found

    def _types(self, relation: StoredRelation, condition: str = "", parameters: Sequence[object] = ()) -> list[str]:
        """The lists of data types that facts of a relation have, as JSON. `condition`: on the table `r`."""
        own = "(SELECT o.types FROM fact_origins AS o WHERE o.ref = r.ref)"
        sql = f"SELECT DISTINCT coalesce({own}, ?) FROM {relation.table} AS r {condition}"  # noqa: S608  ours
        return [text for (text,) in self._kb.sql(sql, (relation.types, *parameters))]

    def by_ref(self, indicator: str, refs: Iterable[int]) -> list[tuple[int, FactRecord]]:
        """Facts of a predicate by their numbers, with these."""
        relation = self.get(indicator)
        if relation is None:
            return []
        # One parameter, because SQLite limits the number of `?` in a statement.
        wanted = json.dumps(sorted(set(refs)))
        return list(self.records(relation, "WHERE r.ref IN (SELECT value FROM json_each(?))", (wanted,)))

    def by_id(self, identities: Collection[str]) -> list[FactRecord]:
        """The stored facts among these identities, in the order of storage."""
        wanted = []
        for identity in set(identities):
            try:
                wanted.append(bytes.fromhex(identity))
            except ValueError:
                continue  # no fact has it
        found: list[tuple[int, FactRecord]] = []
        for begin in range(0, len(wanted), _ROWS):
            part = wanted[begin : begin + _ROWS]
            where = f"WHERE r.id IN ({', '.join('?' * len(part))})"
            for relation in self.all():
                found += self.records(relation, where, part)
        return [fact for _, fact in sorted(found, key=lambda pair: pair[0])]

    def count(self, relation: StoredRelation, at_most: int | None = None) -> int:
        """Number of a relation's facts, counted up to `at_most`."""
        source = f"(SELECT 1 FROM {relation.table} LIMIT {at_most})" if at_most is not None else relation.table  # noqa: S608
        return int(self._kb.sql(f"SELECT count(*) FROM {source}")[0][0])  # noqa: S608  ours

    def is_large(self, indicator: str) -> bool:
        """True if the predicate's facts are many, so that some are looked up sooner than all are read."""
        relation = self.get(indicator)
        return relation is not None and self.count(relation, FEW_FACTS + 1) > FEW_FACTS

    def lacks_index(self, indicator: str) -> bool:
        """True if the facts of a large predicate cannot be looked up by each of their arguments."""
        relation = self.get(indicator)
        if relation is None or relation.arity == 1:
            return False
        sql = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name GLOB ?"
        ((indexes,),) = self._kb.sql(sql, (f"relation_{relation.number}_by_*",))
        return int(indexes) < relation.arity and self.is_large(indicator)

    def index(self, indicators: Iterable[str]) -> None:
        """Index the facts of predicates by each argument, so that a question may begin anywhere."""
        for indicator in indicators:
            if relation := self.get(indicator):
                for place in range(1, relation.arity):
                    self._conn.execute(schema.if_missing(schema.rotated_index(relation.table, relation.columns, place)))

    def _known_tags(self, values: Sequence[Value]) -> list[int] | None:
        """The tags of values, as far as they occur in the file; None if one does not."""
        tags = self._symbols.known(values)
        return None if any(tag is None for tag in tags) else [tag for tag in tags if tag is not None]


def columns_of(indicator: str) -> tuple[str, ...]:
    """`a1, a2, ...`, the argument columns in every table of a predicate; of one without arguments a column of zeros."""
    return tuple(f"a{place}" for place in range(1, max(1, int(indicator.rpartition("/")[2])) + 1))


def _names(text: str) -> tuple[str, ...]:
    return tuple(map(str, rows.NAMES.decode(text)))


def _equal(columns: Sequence[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in columns)


def _origin(row: dict[str, Any], relation: StoredRelation) -> Origin:
    """The cells of a fact's origin; None for a given fact, and for the types that the relation has."""
    source = None if row["source"] == Source.GIVEN else row["source"]
    types = None if row["types"] == relation.types else row["types"]
    return types, source, row["probability"], row["candidate_id"], row["run_id"], row["basis"]


def _is_better(new: Sequence[Any], old: Sequence[Any], relation: StoredRelation) -> bool:
    """True if a new origin is greater in the table's order than the old one: a given fact's before a model's."""
    after, before = (dict(zip(schema.ORIGIN, cells, strict=True)) for cells in (new, old))
    for cells in (after, before):
        cells["types"] = cells["types"] or relation.types
    for column in (*FACTS.preferred, "basis"):
        name = column.lstrip("-")
        first, second = (before, after) if column.startswith("-") else (after, before)
        if first[name] != second[name]:
            # NULL loses, as in `TableSchema`.
            return second[name] is None or (first[name] is not None and first[name] > second[name])
    return False


@contextmanager
def one_state(kb: OpenRecords) -> Iterator[None]:
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
            # A limit of time that ended a statement may have ended the transaction as well.
            if kb.connection.in_transaction:
                kb.connection.execute("ROLLBACK")
