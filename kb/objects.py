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
    single, needed = _of_single(connection, found)
    strange = []
    for key, entry in found.items():
        is_known = made.get(key) == entry or entry.sql in single
        if entry.kind == "view":
            is_known = views is None or views.get(entry.name) == entry.sql
        if not is_known:
            strange.append(StrangeObject(entry, _reason(entry, made)))
    # What belongs to a table that is made with its first row is gone only where this table is there.
    gone = [
        entry
        for key, entry in made.items()
        if key not in found and (key not in _late() or ("table", _late()[key]) in found)
    ]
    gone += [entry for entry in needed if (entry.kind, entry.name) not in found]
    return strange + [StrangeObject(entry, "Hapax made it, and it is gone", is_gone=True) for entry in gone]


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


def _of_single(
    connection: sqlite3.Connection, found: Mapping[tuple[str, str], SchemaObject]
) -> tuple[set[str], list[SchemaObject]]:
    """SQL that `derive`, an import or a look-up runs for the single predicates and rules of a file.

    Also the indexes without which equal facts could be stored twice.
    """
    made, needed = set[str](), []
    for kind, select in _NUMBERS.items():
        for (number,) in connection.execute(select):
            table = found.get(("table", f"_{kind}_{number}"))
            if table is None:
                continue
            if kind == "instances":
                made.add(schema.instances_table(number, re.findall(r"\b([vp][1-9][0-9]*) INTEGER\b", table.sql)))
                made |= {schema.premises_index(table.name, names) for names in (["p1"], ["p1", "p2"])}
                continue
            columns = [f"a{place}" for place in range(1, table.sql.count(" INTEGER NOT NULL") + 1)]
            places = [at for at in range(1, len(columns)) if ("index", f"{kind}_{number}_by_{at + 1}") in found]
            made |= {schema.rotated_index(table.name, columns, place) for place in places}
            if kind == "atoms":
                made.add(schema.atoms_table(number, columns))
            else:
                index = schema.relation_index(number, columns)
                made |= {schema.relation_table(number, columns), index}
                needed.append(SchemaObject("index", f"relation_{number}_by_1", table.name, index))
    return made, needed
