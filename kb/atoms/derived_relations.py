"""Derived predicates and instances of rules, in tables beside the facts' relations (`kb/atoms/facts.py`).

Constants are tagged integers (`kb/atoms/symbols.py`). `_atoms_N (ref, a1, ..)` holds a derived predicate and
`_instances_N` the instances of a rule: its variables, and for each premise the `ref` of the fact or atom that matched
it.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

from hapax.grammar.terms import Value
from hapax.kb import schema
from hapax.kb.atoms.changes import TableChanges
from hapax.kb.atoms.derived_statements import UP_TO_DATE
from hapax.kb.atoms.facts import columns_of
from hapax.kb.atoms.symbols import MISSING_TAG
from hapax.kb.connection import obey_signals, stoppable, translated
from hapax.kb.store import KnowledgeBase

BATCH = 20_000
"""Rows in memory at a time."""

# Rows of text in memory at a time, which fit into the processor's cache.
_LINES = 1_000

# Of more facts, by share of those read before, new and deleted ones are not followed: deriving anew is then no slower.
_MOST_CHANGED = 0.1


@dataclass(frozen=True, slots=True)
class StoredDerivation:
    """Stored result of a rule's last bulk derivation."""

    rule: str
    number: int
    fingerprint: str
    statements: int = 0
    stale: int = 0
    """1 if facts have changed since."""

    @property
    def table(self) -> str:
        return f"_instances_{self.number}"


class TaggedRows(Sequence[tuple[Value, ...]]):
    """Rows of values, kept as their tags, eight bytes each: the values are read, in batches, when they are asked for.

    The knowledge base must be open then. Raises HapaxError if it is not.
    """

    def __init__(self, kb: KnowledgeBase, width: int, rows: Iterable[Sequence[int]]) -> None:
        """`width`: columns of a row."""
        self._kb, self._width = kb, width
        self._count, self._tags = 0, array("q")
        for row in rows:
            self._count += 1
            self._tags.extend(row)
        # Those of calculated values that are stored nowhere.
        self._calculated = kb.symbols.values({tag for tag in self._tags if tag < 0 and not tag & 1})

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> tuple[Value, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Value, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Value, ...] | list[tuple[Value, ...]]:
        if isinstance(place, slice):
            return self._read(range(self._count)[place])
        return self._read([range(self._count)[place]])[0]

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        for first in range(0, self._count, BATCH):
            yield from self._read(range(first, min(first + BATCH, self._count)))

    def _read(self, places: Sequence[int]) -> list[tuple[Value, ...]]:
        rows = [self._tags[place * self._width : (place + 1) * self._width] for place in places]
        with translated(self._kb.place):
            values = self._kb.symbols.values(tag for row in rows for tag in row if tag not in self._calculated)
        values |= self._calculated
        return [tuple(map(values.__getitem__, row)) for row in rows]


class Relations:
    """The tables of inference of an open knowledge base. Call the methods that write inside one `kb.transaction()`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._conn: sqlite3.Connection = kb.connection
        self.symbols, self.arithmetic = kb.symbols, kb.arithmetic
        self._check_time: Callable[[], None] = lambda: None
        self._denials: dict[str, str] = {}

    # -- changes of facts

    def changes(self) -> TableChanges | None:
        """A record for the changes of facts since the last derivation; None if all or many facts are new or gone."""
        last, derived = self._numbers()
        if not derived:
            return None
        return TableChanges(self._conn) if last - derived <= max(100, _MOST_CHANGED * derived) else None

    def bring_up_to_date(self, changes: TableChanges | None = None) -> int:
        """Derive from the facts as they are from now on; returns the number of new facts.

        The changes of facts since go to `changes`. Without it, all that is derived from changed facts becomes stale.
        """
        last, derived = self._numbers()
        gone: dict[int, list[tuple[int, ...]]] = {}
        if self.kb.has("gone_facts"):
            for number, ref, tags in self._conn.execute("DELETE FROM gone_facts RETURNING relation, ref, tags"):
                gone.setdefault(number, []).append((*json.loads(tags), ref))
        new = 0
        for relation in self.kb.relations.all():
            sql = f"SELECT count(*) FROM {relation.table} WHERE ref > ?"  # noqa: S608  ours
            (count,) = self._conn.execute(sql, (derived,)).fetchone()
            new += count
            if changes is not None and (count or relation.number in gone):
                changes.follow(relation.table, relation.columns, gone.get(relation.number, ()), derived)
        if changes is None and (new or gone):
            self._mark_stale()
        self._conn.execute("UPDATE fact_numbers SET derived = ?", (last,))
        return new

    @property
    def is_up_to_date(self) -> bool:
        """True if the last derivation was from the facts as they are."""
        return bool(self._conn.execute(f"SELECT {UP_TO_DATE}").fetchone()[0])

    def _numbers(self) -> tuple[int, int]:
        last, derived = self._conn.execute("SELECT last, derived FROM fact_numbers").fetchone()
        return last, derived

    def _mark_stale(self) -> None:
        """Mark all derivations as stale and drop derived predicates, after facts have changed."""
        self._conn.execute("UPDATE derivations SET stale = 1 WHERE kind = 'rule'")
        self.drop_atoms()

    def settle(self, changes: TableChanges) -> None:
        """End the changes that `bring_up_to_date` made: the rows that are gone are deleted."""
        changes.settle()

    def denials(self, indicator: str) -> str:
        """Temporary table of the atoms of a predicate that are known to be false."""
        if indicator not in self._denials:
            name = f"denied_{len(self._denials)}"
            columns = columns_of(indicator)
            self._conn.execute(f"DROP TABLE IF EXISTS temp.{name}")
            self._conn.execute(f"CREATE TEMP TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({', '.join(columns)}))")
            denied = [self.symbols.tags(item.arguments) for item in self.kb.denials(indicator)]
            marks = ", ".join("?" * len(columns))
            self._conn.executemany(f"INSERT OR IGNORE INTO temp.{name} VALUES ({marks})", denied)  # noqa: S608  ours
            self._denials[indicator] = f"temp.{name}"
        return self._denials[indicator]

    def relation(self, indicator: str) -> str:
        """The table of a predicate's facts."""
        return self.kb.relations.table(indicator)

    def is_empty(self, table: str) -> bool:
        return self._conn.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None  # noqa: S608  our table

    # -- derived predicates and instances of rules

    def drop_atoms(self, kept: Collection[str] = ()) -> None:
        """Drop the derived predicates but those with these indicators."""
        found = self._conn.execute("SELECT name, number FROM derivations WHERE kind = 'predicate'").fetchall()
        for indicator, number in found:
            if indicator not in kept:
                self._conn.execute(f"DROP TABLE IF EXISTS _atoms_{number}")
                self._conn.execute("DELETE FROM derivations WHERE number = ?", (number,))

    def retire(self, rules: Collection[str], indicators: Collection[str]) -> None:
        """Mark the derivations of other rules as stale, and drop other derived predicates, after facts have changed."""
        self._conn.execute("UPDATE derivations SET stale = 1 WHERE kind = 'rule'")
        self.confirm(rules)
        self.drop_atoms(indicators)

    def confirm(self, rules: Collection[str]) -> None:
        """Mark the derivations of these rules as up to date."""
        sql = "UPDATE derivations SET stale = 0 WHERE kind = 'rule' AND name = ?"
        self._conn.executemany(sql, [(name,) for name in rules])

    def atoms(self, indicator: str, fingerprint: str) -> str | None:
        """Table of a derived predicate, if it was derived by the rules and facts with this fingerprint."""
        sql = "SELECT number FROM derivations WHERE kind = 'predicate' AND name = ? AND fingerprint = ?"
        found = self._conn.execute(sql, (indicator, fingerprint)).fetchone()
        return f"_atoms_{found[0]}" if found else None

    def new_atoms(self, indicator: str, fingerprint: str) -> str:
        """Create an empty table for a derived predicate's atoms, replacing an earlier one."""
        sql = "SELECT number FROM derivations WHERE kind = 'predicate' AND name = ? AND maintained"
        # Filling it again would number the atoms in another order than the instances that name them.
        if self._conn.execute(sql, (indicator,)).fetchone():
            self._conn.execute("UPDATE derivations SET stale = 1 WHERE kind = 'rule'")
        number = self._new("predicate", indicator, fingerprint)
        self._conn.execute(f"DROP TABLE IF EXISTS _atoms_{number}")
        self._conn.execute(schema.atoms_table(number, columns_of(indicator)))
        return f"_atoms_{number}"

    def _new(self, kind: str, name: str, fingerprint: str) -> int:
        """The number of what is derived now of a rule or predicate: that of an earlier derivation, if there is one."""
        sql = (
            "INSERT INTO derivations (kind, name, fingerprint) VALUES (?, ?, ?) ON CONFLICT (kind, name) DO UPDATE "
            "SET fingerprint = excluded.fingerprint, count = NULL, stale = 0, maintained = 0, words = NULL, "
            "indexed = 0 RETURNING number"
        )
        return int(self._conn.execute(sql, (kind, name, fingerprint)).fetchone()[0])

    def atom_count(self, indicator: str) -> int:
        """Number of atoms of a derived predicate, 0 if there is no table of it."""
        sql = "SELECT number, count FROM derivations WHERE kind = 'predicate' AND name = ?"
        found = self._conn.execute(sql, (indicator,)).fetchone()
        if found is None:
            return 0
        number, count = found
        if count is None:
            (count,) = self._conn.execute(f"SELECT count(*) FROM _atoms_{number}").fetchone()  # noqa: S608  ours
        return int(count)

    def count_atoms(self, indicators: Iterable[str]) -> None:
        """Store how many atoms these derived predicates have."""
        sql = "UPDATE derivations SET count = ? WHERE kind = 'predicate' AND name = ?"
        self._conn.executemany(sql, [(self.atom_count(indicator), indicator) for indicator in indicators])

    def maintained(self, indicator: str, difference: int) -> None:
        """Note that a derived predicate has followed a change of facts, and how many atoms it has more."""
        sql = "UPDATE derivations SET maintained = 1, count = ? WHERE kind = 'predicate' AND name = ?"
        self._conn.execute(sql, (self.atom_count(indicator) + difference, indicator))

    def add_pairs(self, table: str, first: int, seconds: Collection[int]) -> None:
        """Add the missing pairs of one constant with each of the others."""
        sql = f"INSERT OR IGNORE INTO {table} (a1, a2) SELECT ?, value FROM json_each(?)"  # noqa: S608  our table
        self._conn.execute(sql, (first, json.dumps(sorted(seconds))))

    def successors(self, table: str) -> dict[int, list[int]]:
        """Second arguments of a binary relation by first argument, without rows with an empty cell."""
        found: dict[int, list[int]] = {}
        sql = f"SELECT a1, a2 FROM {table} WHERE {MISSING_TAG} NOT IN (a1, a2) ORDER BY a1, a2"  # noqa: S608  ours
        for first, second in self._conn.execute(sql):
            found.setdefault(first, []).append(second)
        return found

    def index(self, table: str, indicator: str, places: Iterable[int] | None = None) -> None:
        """Create covering indexes, so that a join can start at these arguments and read `ref`; None: at any.

        The first argument needs none.
        """
        columns = columns_of(indicator)
        wanted = range(1, len(columns)) if places is None else sorted({place - 1 for place in places} - {0})
        for place in wanted if not table.startswith("temp.") else ():
            self._conn.execute(schema.if_missing(schema.rotated_index(table, columns, place)))

    def highest(self, table: str) -> int:
        """Greatest `ref` in a table of atoms, 0 if empty."""
        return int(self._conn.execute(f"SELECT coalesce(max(ref), 0) FROM {table}").fetchone()[0])  # noqa: S608

    def row_count(self, table: str) -> int:
        """Number of rows of a relation or of a table of atoms."""
        return int(self._conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608  ours

    def derivations(self) -> dict[str, StoredDerivation]:
        """Stored derivations by rule."""
        sql = (
            "SELECT name, number, fingerprint, coalesce(count, 0), stale FROM derivations "
            "WHERE kind = 'rule' ORDER BY number"
        )
        with translated(self.kb.place):
            derivations = [StoredDerivation(*row) for row in self._conn.execute(sql)]
        return {derivation.rule: derivation for derivation in derivations}

    def new_instances(self, rule: str, fingerprint: str, columns: Sequence[str]) -> StoredDerivation:
        """Create an empty table for a rule's instances, replacing an earlier one."""
        derivation = StoredDerivation(rule, self._new("rule", rule, fingerprint), fingerprint)
        self._conn.execute(f"DROP TABLE IF EXISTS {derivation.table}")
        self._conn.execute(schema.instances_table(derivation.number, columns))
        return derivation

    def index_premises(self, derivation: StoredDerivation, premises: int) -> None:
        """Index a rule's instances by their first premises, by which a change of facts finds them."""
        if premises:
            columns = [f"p{place}" for place in range(1, min(premises, 2) + 1)]
            self._conn.execute(schema.if_missing(schema.premises_index(derivation.table, columns)))

    def fill(self, derivation: StoredDerivation, select: str) -> int:
        """Store the rows of a SELECT, whose first column is NULL, as a rule's instances."""
        return self._store_count(derivation, self.run(f"INSERT INTO {derivation.table} {select}"))

    def run(self, sql: str) -> int:
        """Run a statement of ours, which may calculate numbers; returns the number of changed rows."""
        with self.arithmetic.faults():
            count = self._conn.execute(sql).rowcount
        self.symbols.store_made()
        return count

    def insert(self, table: str, rows: Iterable[Sequence[int]]) -> None:
        """Insert rows of two columns."""
        self._conn.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # noqa: S608  ours

    def before_new_instances(self, derivation: StoredDerivation) -> None:
        """Note that instances with higher numbers than now are new, though an index may have named such before."""
        last = f"(SELECT coalesce(max(id), 0) FROM {derivation.table})"  # noqa: S608  ours
        sql = f"UPDATE derivations SET indexed = min(indexed, {last}) WHERE number = ?"  # noqa: S608  ours
        self._conn.execute(sql, (derivation.number,))

    def recount(self, derivation: StoredDerivation, difference: int) -> int:
        """Note that a rule has this many instances more; returns their number."""
        return self._store_count(derivation, derivation.statements + difference)

    def _store_count(self, derivation: StoredDerivation, count: int) -> int:
        self._conn.execute("UPDATE derivations SET count = ? WHERE number = ?", (count, derivation.number))
        return count

    def check_time(self) -> None:
        """Raise an error if the time is up, see `interruptible`."""
        self._check_time()

    @contextmanager
    def interruptible(self, check_time: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM end a long SQL statement: exceptions of their handlers leave the block.

        So do those of `check_time`, which is called every few milliseconds.
        """
        self._check_time = check_time
        obey_signals(self._conn, check_time)
        try:
            with stoppable():
                yield
        finally:
            obey_signals(self._conn)
            self._check_time = lambda: None

    # -- reading

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the file inside the block, whoever writes meanwhile. It can be interrupted."""
        with translated(self.kb.place):
            self._conn.execute("BEGIN")
            try:
                with self.interruptible():
                    yield
            finally:
                # Tables that were computed inside, as for an export, do not stay.
                self._conn.execute("ROLLBACK")
                self.symbols.forget()

    def batches(self, derivation: StoredDerivation) -> Iterator[list[tuple[Any, ...]]]:
        """Stored instances of a rule in batches of rows: number, the variables' tags, the premises' refs."""
        cursor = self._conn.execute(f"SELECT * FROM {derivation.table} ORDER BY id")  # noqa: S608  ours
        while batch := cursor.fetchmany(BATCH):
            yield batch

    def instance(self, derivation: StoredDerivation, number: int) -> list[tuple[Any, ...]]:
        """The row of one stored instance of a rule, as in `batches`; none if it is gone."""
        return self._conn.execute(f"SELECT * FROM {derivation.table} WHERE id = ?", (number,)).fetchall()  # noqa: S608

    def proved_batches(
        self, derivation: StoredDerivation, variables: Sequence[int], tables: Sequence[str]
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Stored instances of a rule whose premises are facts, in batches of rows.

        A row has the tags of variables, by number, and of each fact `"fact", "fact": "ID"`, with `given` in place of
        the first word for given facts.
        """
        columns = [f"i.v{place}" for place in variables]
        stated = "(SELECT source FROM fact_origins WHERE ref = f{0}.ref) IS NULL"
        for place in range(1, len(tables) + 1):
            source = f"iif({stated.format(place)}, 'given', 'fact')"
            columns.append(f"""'"' || {source} || '", "fact": "' || lower(hex(f{place}.id)) || '"'""")
        # CROSS JOIN keeps this order: SQLite reads the instances in sequence and looks each fact up by its number.
        joined = "".join(
            f" CROSS JOIN {table} AS f{place} ON f{place}.ref = i.p{place}" for place, table in enumerate(tables, 1)
        )
        cursor = self._conn.execute(
            f"SELECT {', '.join(columns) or '1'} FROM {derivation.table} AS i{joined} ORDER BY i.id"  # noqa: S608  ours
        )
        while batch := cursor.fetchmany(_LINES):
            yield batch

    def rows(self, select: str, parameters: Sequence[int] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a SELECT of ours. Numbers that it calculates are stored once all rows are read."""
        with self.arithmetic.faults():
            cursor = self._conn.execute(select, parameters)
        while True:
            # Not around `yield`: meanwhile other code runs, whose exceptions are none of ours.
            with self.arithmetic.faults():
                batch = cursor.fetchmany(_LINES)
            if not batch:
                break
            yield from batch
        self.symbols.store_made()

    def wanted(self, name: str, refs: Iterable[int]) -> str:
        """Create a temporary table of refs for a join; returns its name."""
        self._conn.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} (ref INTEGER PRIMARY KEY)")
        self._conn.execute(f"DELETE FROM temp.{name}")  # noqa: S608  ours
        self._conn.executemany(f"INSERT INTO temp.{name} VALUES (?)", ((ref,) for ref in refs))  # noqa: S608
        return f"temp.{name}"
