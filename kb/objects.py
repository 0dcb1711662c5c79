"""The tables, indexes, triggers and views of a file, and which of them Hapax did not make.

A trigger of another program can undo what a command writes, and a view or a calculated column can take any time and
memory when it is read. So each object is compared with the text of the SQL by which Hapax would create it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import chain

from hapax.kb import schema

# Tables that SQLite itself makes, for AUTOINCREMENT and ANALYZE.
_OF_SQLITE = frozenset({"sqlite_sequence", "sqlite_stat1", "sqlite_stat2", "sqlite_stat3", "sqlite_stat4"})

# `_relation_12`: kind and number of a table of a single predicate or rule.
_SINGLE = re.compile(r"_(relation|atoms|instances)_([1-9][0-9]{0,17})")

# `relation_12_by_3`
_ROTATED = re.compile(r"(?:relation|atoms)_[0-9]+_by_([1-9][0-9]{0,2})")

_NUMBERS = {
    "relation": "SELECT number FROM relations",
    "atoms": "SELECT number FROM derivations WHERE kind = 'predicate'",
    "instances": "SELECT number FROM derivations WHERE kind = 'rule'",
}
"""SELECTs of the numbers of each kind of table."""

# The word by which a column or a whole table is calculated; no table of Hapax has it.
_CALCULATED = re.compile(r"\b(?:AS|VIRTUAL)\b", re.IGNORECASE)

# An index that only sorts columns: `CREATE INDEX name ON table (first, second DESC)`. It changes and computes nothing.
_PLAIN_INDEX = re.compile(r"CREATE INDEX [^()]+ ON [^()]+\([^()]+\)", re.IGNORECASE)


_FORMER_TRIGGERS = frozenset(
    (
        *("fact_withdrawn", "fact_deleted", "fact_changed", "fact_numbered_again", "indexed_fact_deleted"),
        *("indexed_fact_changed", "facts_popularity_deleted", "facts_popularity_changed"),
    )
)

_VIEWS = ("facts", "derived_statements", "symbol_texts")


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """A table, index, trigger or view. `table`: the table that an index or a trigger belongs to. `sql`: its text."""

    kind: str
    name: str
    table: str
    sql: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}" + (f" on {self.table}" if self.table != self.name else "")


@dataclass(frozen=True, slots=True)
class StrangeObject:
    """An object that Hapax did not make, or not so.

    `reason`: why it is a damage; empty for an object of another program that changes no row of Hapax. `is_gone`: Hapax
    made it, and it is not there.
    """

    object: SchemaObject
    reason: str
    is_gone: bool = False

    @property
    def changes_writes(self) -> bool:
        """True if it decides what is stored when Hapax writes."""
        return bool(self.reason) and not self.is_gone and self.object.kind != "view"


def strange_objects(connection: sqlite3.Connection, views: Mapping[str, str] | None = None) -> list[StrangeObject]:
    """The objects that Hapax did not make, has made otherwise, or that are gone, of a file of this version.

    `views`: SQL of the file's own views by name; None: views are left out, as they do not decide what is stored.
    """
    made = {key: entry for key, entry in _made_once().items() if entry.name != "facts"}
    found = {(entry.kind, entry.name): entry for entry in _objects(connection)}
    recognised = _Recognised(connection, views or {})
    strange = []
    for key, entry in found.items():
        is_known = made.get(key) == entry or entry.sql in schema.FORMER_TRIGGERS or recognised(entry)
        if is_known or (views is None and entry.kind == "view"):
            continue
        strange.append(StrangeObject(entry, _reason(entry, made)))
    # What belongs to a table that is made with its first row is gone only where this table is there.
    gone = [
        entry
        for key, entry in made.items()
        if key not in found and (key not in _late() or ("table", _late()[key]) in found)
    ]
    for entry in found.values():
        match = _SINGLE.fullmatch(entry.name) if entry.kind == "table" else None
        if match is not None and match[1] == "relation" and ("index", name := f"relation_{match[2]}_by_1") not in found:
            columns = _arguments(entry.sql.count(" INTEGER NOT NULL"))
            gone.append(SchemaObject("index", name, entry.name, schema.relation_index(int(match[2]), columns)))
    return strange + [StrangeObject(entry, "Hapax made it, and it is gone", is_gone=True) for entry in gone]


def foreign_triggers(connection: sqlite3.Connection) -> list[SchemaObject]:
    """The triggers that Hapax did not make, also in a file that is not migrated yet.

    Those with the name of a trigger of the last version before 0.1.0 are dropped by the migration, whatever they do.
    """
    return [
        entry
        for entry in _objects(connection)
        if entry.kind == "trigger" and entry.sql not in schema.FORMER_TRIGGERS and entry.name not in _FORMER_TRIGGERS
    ]


def calculated_tables(connection: sqlite3.Connection) -> list[SchemaObject]:
    """Objects under the names of Hapax's tables whose rows are calculated when they are read."""
    calculated = [
        entry
        for entry in _objects(connection)
        if (entry.kind == "view" and entry.name not in _VIEWS)
        or (entry.kind == "table" and _CALCULATED.search(entry.sql))
    ]
    if not calculated:
        return []
    names = {name for kind, name in _made_once() if kind == "table"}
    return [entry for entry in calculated if entry.name in names or _SINGLE.fullmatch(entry.name)]


def is_of_one_predicate(name: str) -> bool:
    """True for the name of a table of a single predicate or rule."""
    return _SINGLE.fullmatch(name) is not None


def _objects(connection: sqlite3.Connection) -> Iterator[SchemaObject]:
    """All objects but those that SQLite makes by itself."""
    for kind, name, table, sql in connection.execute("SELECT type, name, tbl_name, sql FROM main.sqlite_master"):
        # A constraint's index has no text.
        if not ((sql is None and kind == "index") or (kind == "table" and name in _OF_SQLITE)):
            yield SchemaObject(str(kind), str(name), str(table), str(sql))


@cache
def _made_once() -> Mapping[tuple[str, str], SchemaObject]:
    """The objects that files of this version have, by kind and name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.create(connection)
        for sql in chain.from_iterable(schema.LATE.values()):
            connection.execute(sql)
        return {(entry.kind, entry.name): entry for entry in _objects(connection)}


@cache
def _late() -> Mapping[tuple[str, str], str]:
    """The table with which each object is made that not every file has, by kind and name."""
    found = {}
    for key, entry in _made_once().items():
        for table, statements in schema.LATE.items():
            if entry.sql in statements:
                found[key] = table
    return found


def _reason(entry: SchemaObject, made: Mapping[tuple[str, str], SchemaObject]) -> str:
    """Why a strange object is a damage; empty if it is none."""
    names = {name for _, name in made}
    if entry.name in names or entry.name in _VIEWS or _SINGLE.fullmatch(entry.name):
        return "it is not as Hapax makes it"
    if entry.kind == "trigger":
        return "Hapax did not make it, and it changes what is stored"
    is_ours = entry.table in names or _SINGLE.fullmatch(entry.table)
    if entry.kind == "index" and is_ours and not _PLAIN_INDEX.fullmatch(entry.sql):
        return "Hapax did not make it, and it may refuse rows"
    return ""


class _Recognised:
    """True for an object that `derive` or a look-up has made in this file."""

    def __init__(self, connection: sqlite3.Connection, views: Mapping[str, str]) -> None:
        self._views = views
        self._numbers = {
            kind: {number for (number,) in connection.execute(select)} for kind, select in _NUMBERS.items()
        }

    def __call__(self, entry: SchemaObject) -> bool:
        if entry.kind == "view":
            return self._views.get(entry.name) == entry.sql
        match = _SINGLE.fullmatch(entry.table)
        if match is None or int(match[2]) not in self._numbers[match[1]]:
            return False
        if entry.kind == "table":
            return entry.sql == _single_table(match[1], int(match[2]), entry.sql)
        return entry.kind == "index" and entry.sql == _single_index(match[1], entry)


def _single_table(kind: str, number: int, sql: str) -> str:
    """The text that Hapax gives to a table with as many columns as this one."""
    if kind == "instances":
        return schema.instances_table(number, re.findall(r"\b([vp][1-9][0-9]*) INTEGER\b", sql))
    columns = _arguments(sql.count(" INTEGER NOT NULL"))
    return schema.relation_table(number, columns) if kind == "relation" else schema.atoms_table(number, columns)


def _single_index(kind: str, entry: SchemaObject) -> str:
    """The text that Hapax gives to an index with as many columns as this one."""
    listed = entry.sql.count(",") + 1
    if kind == "instances":
        return schema.premises_index(entry.table, [f"p{place}" for place in range(1, min(listed, 2) + 1)])
    match = _ROTATED.fullmatch(entry.name)
    columns = _arguments(listed)
    if kind == "relation" and match is not None and match[1] == "1":
        return schema.relation_index(int(entry.table.rpartition("_")[2]), columns)
    # Other indexes begin at the second argument.
    if match is None or not 1 < int(match[1]) <= len(columns):
        return ""
    return schema.rotated_index(entry.table, columns, int(match[1]) - 1)


def _arguments(count: int) -> list[str]:
    return [f"a{place}" for place in range(1, count + 1)]
