"""Facts as relations of whole numbers, for joins in bulk, and what such joins derived, in the knowledge base's file.

Constants are tagged integers (`kb/symbols.py`). Each predicate has a table `relation_N (a1, .., ref)`, `ref` being the
fact's rowid; triggers note what other commands delete or change, so `bring_up_to_date` has `kb/loading.py` read what is
new and nothing else. `atoms_N (ref, a1, ..)` holds a derived predicate and `instances_N` the instances of a rule: its
variables, and for each premise the `ref` of the fact or atom below it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from grammar.errors import HapaxError
from grammar.terms import Value
from kb import rows
from kb.connection import translated
from kb.loading import cells_of, columns_of, insert_columns, is_sayable, load_facts
from kb.records import FactRecord
from kb.symbols import Extent, Symbols

if TYPE_CHECKING:
    from kb.store import KnowledgeBase


BATCH = 20_000
"""Rows that are held in memory at a time."""

_STEPS = 200_000
"""Steps of SQLite's machine, some milliseconds, after which it lets Python look for signals."""


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


class Relations:
    """The relations of an open knowledge base. Everything that writes belongs into one `kb.transaction()`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._conn: sqlite3.Connection = kb.database.conn
        self.symbols = Symbols(self._conn)

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
        read = load_facts(self, self._conn, "rowid IN (SELECT value FROM json_each(?)) AND rowid <= ?", (again, seen))
        read += load_facts(self, self._conn, "rowid > ?", (seen,))
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
        cells = cells_of(predicate, arguments)
        relation = self._relation(f"{predicate}/{len(cells)}")
        if relation is None or not is_sayable(cells):
            return
        number, shadowed = relation
        if shadowed:
            self._conn.execute(f"DELETE FROM relation_{number}")  # noqa: S608  our number
            load_facts(self, self._conn, "predicate = ? AND json_array_length(arguments) = ?", (predicate, len(cells)))
            return
        where = " AND ".join(f"a{place} = ?" for place in range(1, len(cells) + 1))
        tags = self.symbols.tags(cells)
        self._conn.execute(f"DELETE FROM relation_{number} WHERE {where} AND ref = ?", (*tags, ref))  # noqa: S608

    def _relation(self, indicator: str) -> tuple[int, bool] | None:
        sql = "SELECT number, shadowed FROM relations WHERE indicator = ?"
        found = self._conn.execute(sql, (indicator,)).fetchone()
        return (found[0], bool(found[1])) if found else None

    def relation(self, indicator: str) -> str:
        """The table of a predicate's facts, an empty one if there are none."""
        found = self._relation(indicator)
        if found is None:
            sql = (
                "INSERT INTO relations SELECT ?, coalesce(max(number), 0) + 1, 0, 0, 0 FROM relations RETURNING number"
            )
            found = self._conn.execute(sql, (indicator,)).fetchone()
            columns = columns_of(indicator)
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
        columns = columns_of(indicator)
        defined = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
        self._conn.execute(
            f"CREATE TABLE atoms_{number} (ref INTEGER PRIMARY KEY, {defined}, UNIQUE ({', '.join(columns)}))"
        )
        return f"atoms_{number}"

    def add_atoms(self, table: str, indicator: str, select: str) -> int:
        """Add the atoms of a SELECT that are not there yet; gives how many were new."""
        sql = f"INSERT OR IGNORE INTO {table} ({', '.join(columns_of(indicator))}) {select}"
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

    def index(self, table: str, indicator: str) -> None:
        """So that a join can begin at any argument of this predicate's table, and has the `ref` at hand there."""
        columns = columns_of(indicator)
        held = () if table.startswith("atoms_") else ("ref",)  # of atoms it is the rowid, which every index holds
        for place in range(1, len(columns)):
            rotated = ", ".join((columns[place], *columns[:place], *columns[place + 1 :], *held))
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

    def fill_rows(self, derivation: Derivation, found: Iterable[Sequence[Value | None]]) -> int:
        """Store rows of values as a rule's instances; None is a variable without a value."""
        waiting, count = iter(found), 0
        while batch := list(islice(waiting, BATCH)):
            numbers: list[None] = [None] * len(batch)
            insert_columns(self._conn, derivation.table, [numbers, *map(self._tags, zip(*batch, strict=True))])
            count += len(batch)
        return self._counted(derivation, count)

    def _tags(self, column: Sequence[Value | None]) -> list[int | None]:
        tags = iter(self.symbols.tags([cell for cell in column if cell is not None]))
        return [None if cell is None else next(tags) for cell in column]

    def _counted(self, derivation: Derivation, count: int) -> int:
        self._conn.execute("UPDATE derivations SET statements = ? WHERE rule = ?", (count, derivation.rule))
        return count

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within it Ctrl-C and SIGTERM end a long statement: what their handlers raise is raised from the block."""
        raised: list[BaseException] = []
        self._conn.set_progress_handler(_looking(raised).__next__, _STEPS)
        try:
            yield
        except (sqlite3.Error, HapaxError):
            if raised:
                raise raised[0] from None
            raise
        finally:
            self._conn.set_progress_handler(None, 0)

    # -- reading

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reading inside sees one state of the file, whoever writes meanwhile. It can be interrupted."""
        with translated(self._kb.place):
            self._conn.execute("BEGIN")
            try:
                with self.interruptible():
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


def _looking(raised: list[BaseException]) -> Iterator[int]:
    """What SQLite calls while it works: 0 has it go on, 1 stops it, after a signal's handler has raised.

    A generator, since Python runs handlers where a function begins or goes on, and SQLite drops what a function raises:
    this one goes on inside its `try`.
    """
    while True:
        try:
            yield int(bool(raised))
        except GeneratorExit:
            return
        except BaseException as error:  # noqa: BLE001  it is raised from `interruptible`
            raised.append(error)
