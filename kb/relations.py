"""Facts as relations of integers for bulk joins, and the results of such joins, in the knowledge base's file.

Constants are tagged integers (`kb/symbols.py`). Each predicate has a table `_relation_N (a1, .., ref)`, where `ref` is
the fact's rowid. Triggers record the facts that other commands delete or change, so `bring_up_to_date` reads only new
facts (with `kb/loading.py`). `_atoms_N (ref, a1, ..)` holds a derived predicate and `_instances_N` the instances of a
rule: its variables, and for each premise the `ref` of the fact or atom that matched it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hapax.kb import schema
from hapax.kb.changes import TableChanges
from hapax.kb.connection import obey_signals, stoppable, translated
from hapax.kb.loading import FactLoader, cells_of, columns_of, is_sayable
from hapax.kb.records import FACTS, FactRecord
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


class Relations:
    """Relations of an open knowledge base. Call the methods that write inside one `kb.transaction()`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._conn: sqlite3.Connection = kb.connection
        self.symbols, self.arithmetic = kb.symbols, kb.arithmetic
        self._check_time: Callable[[], None] = lambda: None
        self._loader = FactLoader(self._conn, self.symbols, self._loaded_relation, self.check_time)
        self._changes: TableChanges | None = None
        self._denials: dict[str, str] = {}

    # -- relations of facts

    def changes(self) -> TableChanges | None:
        """A record for the changes that `bring_up_to_date` makes; None if all or many facts are to be read."""
        seen = self._last_ref_read()
        if not seen:
            return None
        sql = "SELECT coalesce((SELECT max(rowid) FROM facts), 0), (SELECT count(*) FROM fact_changes)"
        last, changed = self._conn.execute(sql).fetchone()
        return TableChanges(self._conn) if last - seen + changed <= max(100, _MOST_CHANGED * seen) else None

    def bring_up_to_date(self, changes: TableChanges | None = None) -> int:
        """Apply the changes of `facts` since the last call; returns the number of facts read.

        The relations' changes go to `changes`. Without it, all that is derived from changed facts becomes stale.
        """
        self._changes = changes
        try:
            return self._read()
        finally:
            self._changes = None

    def _read(self) -> int:
        seen = self._last_ref_read()
        if seen is None:
            self._drop_relations()
            seen = 0
        changed = self._conn.execute("SELECT ref, predicate, arguments FROM fact_changes").fetchall()
        for ref, predicate, arguments in changed:
            self._forget(ref, predicate, arguments)
        self._conn.execute("DELETE FROM fact_changes")
        # SQLite may have given the rowid of a deleted fact to a new fact, so these rowids are read again.
        reused = json.dumps(sorted({ref for ref, _, _ in changed if ref <= seen}))
        read = self._loader.load("rowid IN (SELECT value FROM json_each(?)) AND rowid <= ?", (reused, seen))
        read += self._loader.load("rowid > ?", (seen,))
        if self._changes is not None:
            self._changes.collect()
        elif read or changed:
            self._mark_stale()
        last = self._conn.execute("SELECT rowid, id FROM facts ORDER BY rowid DESC LIMIT 1").fetchone() or (0, "")
        self._conn.execute("DELETE FROM relation_state")
        self._conn.execute("INSERT INTO relation_state (ref, fact_id) VALUES (?, ?)", last)
        return read

    @property
    def is_up_to_date(self) -> bool:
        """True if the relations contain exactly the facts in `facts`."""
        sql = "SELECT EXISTS (SELECT 1 FROM fact_changes) OR coalesce((SELECT max(rowid) FROM facts), 0) > ?"
        seen = self._last_ref_read()
        return seen is not None and not self._conn.execute(sql, (seen,)).fetchone()[0]

    def _last_ref_read(self) -> int | None:
        """Rowid up to which facts were read; None if nothing was read yet or rowids have changed since."""
        state = self._conn.execute("SELECT ref, fact_id FROM relation_state").fetchone()
        if state is None:
            return None
        ref, fact_id = state
        if not ref:
            return 0
        # A copy of the file, for example after VACUUM, may number its rows differently.
        sql = (
            "SELECT EXISTS (SELECT 1 FROM facts WHERE rowid = ? AND id = ?)"
            " OR EXISTS (SELECT 1 FROM fact_changes WHERE ref = ?)"
        )
        return ref if self._conn.execute(sql, (ref, fact_id, ref)).fetchone()[0] else None

    def _drop_relations(self) -> None:
        for (number,) in self._conn.execute("SELECT number FROM relations").fetchall():
            self._conn.execute(f"DROP TABLE IF EXISTS _relation_{number}")
        self._conn.execute("DELETE FROM relations")
        self._conn.execute("DELETE FROM fact_changes")
        self._mark_stale()

    def _mark_stale(self) -> None:
        """Mark all derivations as stale and drop derived predicates, after facts have changed."""
        self._conn.execute("UPDATE derivations SET stale = 1")
        self.drop_atoms()

    def settle(self, changes: TableChanges) -> None:
        """End the changes that `bring_up_to_date` made: the rows that are gone are deleted."""
        changes.settle()

    def _forget(self, ref: int, predicate: str, arguments: str) -> None:
        """Remove a deleted fact from its relation."""
        cells = cells_of(predicate, arguments)
        indicator = f"{predicate}/{len(cells)}"
        relation = self._relation(indicator)
        if relation is None or not is_sayable(cells):
            return
        number, shadowed = relation
        self._watch(indicator)
        if shadowed:
            # Another fact may have the same arguments in other digits (2 and 2.0), so all are read again.
            self._conn.execute(f"DELETE FROM _relation_{number}")  # noqa: S608  our number
            self._loader.load("predicate = ? AND json_array_length(arguments) = ?", (predicate, len(cells)))
            return
        where = " AND ".join(f"a{place} = ?" for place in range(1, len(cells) + 1))
        tags = self.symbols.tags(cells)
        self._conn.execute(f"DELETE FROM _relation_{number} WHERE {where} AND ref = ?", (*tags, ref))  # noqa: S608

    def _relation(self, indicator: str) -> tuple[int, bool] | None:
        sql = "SELECT number, shadowed FROM relations WHERE indicator = ?"
        found = self._conn.execute(sql, (indicator,)).fetchone()
        return (found[0], bool(found[1])) if found else None

    def _loaded_relation(self, indicator: str) -> str:
        """Table of a predicate's facts, whose changes are recorded from now on where they are asked for."""
        table = self.relation(indicator)
        self._watch(indicator)
        return table

    def _watch(self, indicator: str) -> None:
        if self._changes is not None:
            self._changes.watch(self.relation(indicator), columns_of(indicator))

    def relation(self, indicator: str) -> str:
        """Table of a predicate's facts, created empty if there is none."""
        found = self._relation(indicator)
        if found is None:
            sql = "INSERT INTO relations SELECT ?, coalesce(max(number), 0) + 1, 0 FROM relations RETURNING number"
            found = self._conn.execute(sql, (indicator,)).fetchone()
            self._conn.execute(schema.relation_table(found[0], columns_of(indicator)))
        return f"_relation_{found[0]}"

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

    def stored(self, indicator: str, *, indexed: bool) -> str | None:
        """Table of a predicate's facts, if there is one; `indexed`: only one that is indexed by each argument."""
        found = self._relation(indicator)
        if found is None:
            return None
        last = len(columns_of(indicator))
        sql = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = ?"
        if indexed and last > 1 and not self._conn.execute(sql, (f"relation_{found[0]}_by_{last}",)).fetchone()[0]:
            return None
        return f"_relation_{found[0]}"

    def are_indexed(self, indicators: Iterable[str]) -> bool:
        """True if the relations of these predicates are up to date, and indexed by each argument."""
        return self.is_up_to_date and all(self.stored(name, indexed=True) for name in indicators)

    def is_empty(self, table: str) -> bool:
        return self._conn.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None  # noqa: S608  our table

    # -- derived predicates and instances of rules

    def drop_atoms(self, kept: Collection[str] = ()) -> None:
        """Drop the derived predicates but those with these indicators."""
        for indicator, number in self._conn.execute("SELECT indicator, number FROM derived_predicates").fetchall():
            if indicator not in kept:
                self._conn.execute(f"DROP TABLE IF EXISTS _atoms_{number}")
                self._conn.execute("DELETE FROM derived_predicates WHERE number = ?", (number,))

    def retire(self, rules: Collection[str], indicators: Collection[str]) -> None:
        """Mark the derivations of other rules as stale, and drop other derived predicates, after facts have changed."""
        self._conn.execute("UPDATE derivations SET stale = 1")
        self.confirm(rules)
        self.drop_atoms(indicators)

    def confirm(self, rules: Collection[str]) -> None:
        """Mark the derivations of these rules as up to date."""
        names = json.dumps(sorted(rules))
        self._conn.execute("UPDATE derivations SET stale = 0 WHERE rule IN (SELECT value FROM json_each(?))", (names,))

    def atoms(self, indicator: str, fingerprint: str) -> str | None:
        """Table of a derived predicate, if it was derived by the rules and facts with this fingerprint."""
        sql = "SELECT number FROM derived_predicates WHERE indicator = ? AND fingerprint = ?"
        found = self._conn.execute(sql, (indicator, fingerprint)).fetchone()
        return f"_atoms_{found[0]}" if found else None

    def new_atoms(self, indicator: str, fingerprint: str) -> str:
        """Create an empty table for a derived predicate's atoms, replacing an earlier one."""
        # A table that replaces another takes over its number, so that deriving again changes no name.
        sql = "DELETE FROM derived_predicates WHERE indicator = ? RETURNING number, maintained"
        old = self._conn.execute(sql, (indicator,)).fetchone()
        if old is not None:
            self._conn.execute(f"DROP TABLE IF EXISTS _atoms_{old[0]}")
            # Filling it again would number the atoms in another order than the instances that name them.
            if old[1]:
                self._conn.execute("UPDATE derivations SET stale = 1")
        sql = (
            "INSERT INTO derived_predicates (indicator, number, fingerprint, maintained) "
            "SELECT ?, coalesce(?, max(number) + 1, 1), ?, 0 FROM derived_predicates RETURNING number"
        )
        kept = old[0] if old is not None else None
        (number,) = self._conn.execute(sql, (indicator, kept, fingerprint)).fetchone()
        self._conn.execute(schema.atoms_table(number, columns_of(indicator)))
        return f"_atoms_{number}"

    def atom_count(self, indicator: str) -> int:
        """Number of atoms of a derived predicate, 0 if there is no table of it."""
        sql = "SELECT number, atoms FROM derived_predicates WHERE indicator = ?"
        found = self._conn.execute(sql, (indicator,)).fetchone()
        if found is None:
            return 0
        number, count = found
        if count is None:
            (count,) = self._conn.execute(f"SELECT count(*) FROM _atoms_{number}").fetchone()  # noqa: S608  ours
        return int(count)

    def count_atoms(self, indicators: Iterable[str]) -> None:
        """Store how many atoms these derived predicates have."""
        sql = "UPDATE derived_predicates SET atoms = ? WHERE indicator = ?"
        self._conn.executemany(sql, [(self.atom_count(indicator), indicator) for indicator in indicators])

    def maintained(self, indicator: str, difference: int) -> None:
        """Note that a derived predicate has followed a change of facts, and how many atoms it has more."""
        sql = "UPDATE derived_predicates SET maintained = 1, atoms = ? WHERE indicator = ?"
        self._conn.execute(sql, (self.atom_count(indicator) + difference, indicator))

    def add_atoms(self, table: str, indicator: str, select: str) -> int:
        """Add the atoms of a SELECT that are missing; returns the number of new ones."""
        sql = f"INSERT OR IGNORE INTO {table} ({', '.join(columns_of(indicator))}) {select}"
        return self.run(sql)

    def add_pairs(self, table: str, first: int, seconds: Collection[int]) -> None:
        """Add the missing pairs of one constant with each of the others."""
        sql = f"INSERT OR IGNORE INTO {table} (a1, a2) SELECT ?, value FROM json_each(?)"  # noqa: S608  our table
        self._conn.execute(sql, (first, json.dumps(sorted(seconds))))

    def successors(self, table: str) -> dict[int, list[int]]:
        """Second arguments of a binary relation by first argument."""
        found: dict[int, list[int]] = {}
        for first, second in self._conn.execute(f"SELECT a1, a2 FROM {table} ORDER BY a1, a2"):  # noqa: S608  ours
            found.setdefault(first, []).append(second)
        return found

    def index(self, table: str, indicator: str) -> None:
        """Create covering indexes, so that a join can start at any argument of the table and read its `ref`."""
        columns = columns_of(indicator)
        for place in range(1, len(columns)):
            self._conn.execute(schema.if_missing(schema.rotated_index(table, columns, place)))

    def highest(self, table: str) -> int:
        """Greatest `ref` in a table of atoms, 0 if empty."""
        return int(self._conn.execute(f"SELECT coalesce(max(ref), 0) FROM {table}").fetchone()[0])  # noqa: S608

    def row_count(self, table: str) -> int:
        """Number of rows of a relation or of a table of atoms."""
        return int(self._conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608  ours

    def derivations(self) -> dict[str, StoredDerivation]:
        """Stored derivations by rule."""
        sql = "SELECT rule, number, fingerprint, statements, stale FROM derivations ORDER BY rowid"
        with translated(self.kb.place):
            derivations = [StoredDerivation(*row) for row in self._conn.execute(sql)]
        return {derivation.rule: derivation for derivation in derivations}

    def new_instances(self, rule: str, fingerprint: str, columns: Sequence[str]) -> StoredDerivation:
        """Create an empty table for a rule's instances, replacing an earlier one."""
        old = self.derivations().get(rule)
        if old is not None:
            self._conn.execute(f"DROP TABLE IF EXISTS {old.table}")
            self._conn.execute("DELETE FROM derivations WHERE rule = ?", (rule,))
        sql = (
            "INSERT INTO derivations (rule, number, fingerprint, statements, stale) "
            # A rule keeps its number; a new rule gets the next one, the first rule 1.
            "SELECT ?, coalesce(?, max(number) + 1, 1), ?, 0, 0 FROM derivations RETURNING number"
        )
        kept = old.number if old is not None else None
        (number,) = self._conn.execute(sql, (rule, kept, fingerprint)).fetchone()
        derivation = StoredDerivation(rule, number, fingerprint)
        self._conn.execute(schema.instances_table(number, columns))
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

    def before_new_instances(self, derivation: StoredDerivation) -> None:
        """Note that instances with higher numbers than now are new, though an index may have named such before."""
        last = f"(SELECT coalesce(max(id), 0) FROM {derivation.table})"  # noqa: S608  ours
        sql = f"UPDATE derivations SET indexed = min(indexed, {last}) WHERE number = ?"  # noqa: S608  ours
        self._conn.execute(sql, (derivation.number,))

    def recount(self, derivation: StoredDerivation, difference: int) -> int:
        """Note that a rule has this many instances more; returns their number."""
        return self._store_count(derivation, derivation.statements + difference)

    def _store_count(self, derivation: StoredDerivation, count: int) -> int:
        self._conn.execute("UPDATE derivations SET statements = ? WHERE rule = ?", (count, derivation.rule))
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
        self, derivation: StoredDerivation, variables: int, premises: int, given: str
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Stored instances of a rule whose premises are facts, in batches of rows.

        A row has the variables' tags, the refs of the facts, and of each fact `"fact", "fact": "ID"`, with `given` in
        place of the first word for the facts of that source.
        """
        places = range(1, premises + 1)
        source = f"CASE f{{0}}.source WHEN '{given}' THEN '{given}' ELSE 'fact' END"
        columns = [f"i.v{place}" for place in range(1, variables + 1)] + [f"i.p{place}" for place in places]
        columns += [
            f"""'"' || {source.format(place)} || '", "fact": ' || json_quote(f{place}.id)""" for place in places
        ]
        # CROSS JOIN keeps this order: SQLite reads the instances in sequence and looks each fact up by its rowid.
        joined = "".join(f" CROSS JOIN facts AS f{place} ON f{place}.rowid = i.p{place}" for place in places)
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

    def facts(self, refs: Iterable[int]) -> list[FactRecord]:
        """Facts with these refs."""
        # One JSON parameter, because SQLite limits the number of `?` in a statement.
        wanted = json.dumps(sorted(set(refs)))
        return self.kb.select(FACTS, "WHERE facts.rowid IN (SELECT value FROM json_each(?))", (wanted,))
