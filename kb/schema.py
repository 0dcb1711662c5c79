"""The schema of a new file: the tables of records (`records`), and those of inference and look-ups.

Foreign keys serve people who browse the file (Datasette follows them). They are not enforced: records arrive in any
order, and two files merge table by table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from hapax.kb.files import system
from hapax.kb.judgement_records import CALIBRATIONS, CERTIFICATES, DRAWN_ITEMS, JUDGING_DRAWS, LABELS, VOTES
from hapax.kb.records import (
    ASSESSMENTS,
    ATTEMPTS,
    CALLS,
    CANDIDATES,
    CONFLICTS,
    DECISIONS,
    DENIALS,
    FACTS,
    LEFT_OUT_ROWS,
    MODEL_PROFILES,
    PREDICATES,
    QUESTIONS,
    RULE_TEXTS,
    RULES,
    RUNS,
    STATEMENTS,
    TYPE_FACTS,
    WITHDRAWALS,
)
from hapax.kb.rows import TableSchema

VERSION = "m001_schema"
"""Name of the schema in the file's list of versions."""

# As sqlite-utils makes it.
_MIGRATIONS = (
    'CREATE TABLE "_sqlite_migrations" (\n   "id" INTEGER PRIMARY KEY,\n   "migration_set" TEXT,\n   "name" TEXT,\n'
    '   "applied_at" TEXT\n) STRICT',
    'CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"\n'
    '    ON "_sqlite_migrations" ("migration_set", "name")',
)


TABLES: tuple[TableSchema[Any], ...] = (
    RUNS,
    RULES,
    PREDICATES,
    TYPE_FACTS,
    QUESTIONS,
    CALLS,
    ATTEMPTS,
    CANDIDATES,
    ASSESSMENTS,
    DECISIONS,
    FACTS,
    STATEMENTS,
    VOTES,
    MODEL_PROFILES,
    RULE_TEXTS,
    DENIALS,
    CONFLICTS,
    WITHDRAWALS,
    LABELS,
    CALIBRATIONS,
    CERTIFICATES,
    JUDGING_DRAWS,
    DRAWN_ITEMS,
    LEFT_OUT_ROWS,
)
"""Every table of records, the view of facts among them, which `verify` reads."""

STATE: tuple[str, ...] = (
    # Facts: `kb/atoms/facts.py` creates a table for each predicate. `types`: the data types of facts that have no
    # others.
    "CREATE TABLE relations (number INTEGER PRIMARY KEY, predicate TEXT NOT NULL, arity INTEGER NOT NULL, "
    "types TEXT NOT NULL, UNIQUE (predicate, arity))",
    # `last`: the number of the newest change of facts; `derived`: that of the last one from which `derive` has derived.
    "CREATE TABLE fact_numbers (last INTEGER NOT NULL, derived INTEGER NOT NULL)",
    "INSERT INTO fact_numbers VALUES (0, 0)",
    # Where a fact comes from that is not given, or has other data types than its relation; by its number.
    "CREATE TABLE fact_origins (ref INTEGER PRIMARY KEY, types TEXT, source TEXT, probability REAL, "
    "candidate_id TEXT REFERENCES candidates(id), run_id TEXT REFERENCES runs(id), basis TEXT)",
    # What `derive` has stored of rules and predicates (`kind`), in tables that `kb/atoms/derived_relations.py` creates.
    # `stale`: facts have changed since. `maintained`: the atoms of a predicate have followed changes of facts. `words`:
    # the sentence of a rule in pieces. `indexed`: the last instance of a rule in `derived_ids`.
    "CREATE TABLE derivations (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, "
    "fingerprint TEXT NOT NULL, count INTEGER, stale INTEGER NOT NULL DEFAULT 0, "
    "maintained INTEGER NOT NULL DEFAULT 0, words TEXT, indexed INTEGER NOT NULL DEFAULT 0, UNIQUE (kind, name))",
    # What each stored proof rests on: facts, found by fact for withdrawals and by key for a statement that is stored
    # again. An empty `fact_id`: that something is absent, or how much there is, so that new facts can refute it; then
    # `checked` is the state of the facts when the statement was last proved, NULL if that is unknown, and `lapsed` the
    # time since when it does not hold.
    "CREATE TABLE statement_facts (key TEXT NOT NULL, fact_id TEXT NOT NULL, checked TEXT, lapsed TEXT, "
    "PRIMARY KEY (fact_id, key)) WITHOUT ROWID",
    "CREATE INDEX statement_facts_by_key ON statement_facts (key)",
)
"""Statements that create what facts and inference need beside `symbols`."""

SCHEMA: tuple[str, ...] = (
    *_MIGRATIONS,
    *(sql for table in TABLES if not table.is_late for sql in table.sql),
    "CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE)",
    *STATE,
)
"""Statements that create the objects that every file has, as SQLite keeps their texts."""

LATE: dict[str, tuple[str, ...]] = {
    **{table.name: tuple(table.sql) for table in TABLES if table.is_late},
    # Facts that were deleted since `derive` has derived from them.
    "gone_facts": (
        "CREATE TABLE gone_facts (relation INTEGER NOT NULL, ref INTEGER NOT NULL, tags TEXT NOT NULL, "
        "PRIMARY KEY (relation, ref)) WITHOUT ROWID",
    ),
    "derived_ids": (
        "CREATE TABLE derived_ids (id TEXT NOT NULL, number INTEGER NOT NULL, instance INTEGER NOT NULL, "
        "PRIMARY KEY (id, number, instance)) WITHOUT ROWID",
        "CREATE INDEX derived_ids_by_instance ON derived_ids (number, instance)",
    ),
}
"""Statements that create a table with its first row, by name."""

FACTS_STATE = "(SELECT last FROM fact_numbers) || ' ' || (SELECT count(*) FROM withdrawals)"
"""SQL for a text that differs after every change of the facts."""


_STEPS = (
    "FROM statements, json_each(CASE WHEN json_valid(proof) THEN proof ELSE '[]' END, '$.steps') AS step "
    "WHERE step.type = 'object'"
)

INDEX_PROOFS = (
    "INSERT OR IGNORE INTO statement_facts (key, fact_id) SELECT statements.key, json_extract(step.value, '$.fact') "
    f"{_STEPS} AND json_extract(step.value, '$.fact') IS NOT NULL",
    f"INSERT OR IGNORE INTO statement_facts (key, fact_id, checked) SELECT statements.key, '', {FACTS_STATE} "
    f"{_STEPS} AND (json_extract(step.value, '$.by') = 'negation' "
    "OR json_extract(step.value, '$.rule') LIKE 'aggregate %')",
)
"""SQL that stores on which facts proofs rest, and which say that something is absent or how much there is."""

RELATIONS = "SELECT number, predicate, arity, types FROM relations"
"""SELECT of the relations of facts."""

ORIGIN = ("types", "source", "probability", "candidate_id", "run_id", "basis")
"""Columns of where a fact comes from, each NULL for a given fact with its relation's types."""

GIVEN = "ref NOT IN (SELECT ref FROM fact_origins WHERE source IS NOT NULL)"
"""SQL condition on rows of a relation: the fact is given."""

_TERMS = 200


def create(connection: sqlite3.Connection) -> None:
    """Create everything in an empty database, inside the caller's transaction if there is one."""
    for sql in SCHEMA:
        connection.execute(sql)
    connection.execute(facts_view(connection))
    row = ("hapax", VERSION, system.now().isoformat())
    connection.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, ?)", row)


# -- tables of single predicates and rules, which `kb/atoms/derived_relations.py` creates


def relation_table(number: int, columns: Sequence[str]) -> str:
    """SQL of the table of a predicate's facts, of which `relation_index` keeps each once."""
    return f"CREATE TABLE _relation_{number} (ref INTEGER PRIMARY KEY, {_defined(columns)}, id BLOB NOT NULL)"


def relation_index(number: int, columns: Sequence[str]) -> str:
    """SQL of the index by which a relation has no two facts with the same arguments."""
    return f"CREATE UNIQUE INDEX relation_{number}_by_1 ON _relation_{number} ({', '.join(columns)})"


def facts_of_relation(number: int, predicate: str, arity: int, types: str) -> str:
    """SELECT of a predicate's facts as text, with their numbers last."""
    cells = [_cell(f"r.a{place}") for place in range(1, arity + 1)]
    return (
        f"SELECT lower(hex(r.id)) AS id, {literal(predicate)} AS predicate, "  # noqa: S608  ours
        f"'[' || {_joined(cells)} || ']' AS arguments, coalesce(o.types, {literal(types)}) AS types, "
        "coalesce(o.source, 'given') AS source, o.probability, o.candidate_id, o.run_id, o.basis, r.ref "
        f"FROM _relation_{number} AS r LEFT JOIN fact_origins AS o ON o.ref = r.ref"
    )


def facts_view(connection: sqlite3.Connection) -> str:
    """SQL of the view of all facts."""
    selects = [facts_of_relation(*row) for row in connection.execute(f"{RELATIONS} ORDER BY number")]
    if not selects:
        # A table of its columns that is empty.
        names = ("id", "predicate", "arguments", "types", "source", *ORIGIN[2:], "ref")
        selects = [f"SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE 0"]
    return f"CREATE VIEW facts AS {union(selects)}"


def union(selects: Sequence[str]) -> str:
    """All rows of SELECTs, in parts: SQLite allows 500 terms in a compound SELECT."""
    parts = [" UNION ALL ".join(selects[start : start + _TERMS]) for start in range(0, len(selects), _TERMS)]
    return parts[0] if len(parts) == 1 else " UNION ALL ".join(f"SELECT * FROM ({part})" for part in parts)  # noqa: S608


def literal(text: str) -> str:
    """The text as SQL."""
    quoted = "'" + text.replace("'", "''") + "'"
    # SQLite's parser ends at NUL.
    return "(" + quoted.replace("\0", "' || char(0) || '") + ")" if "\0" in text else quoted


def _cell(column: str) -> str:
    """SQL for the JSON text of a tag: a whole number, or its symbol."""
    symbol = f"(SELECT s.symbol FROM symbols AS s WHERE s.id = {column})"  # noqa: S608  ours
    return f"CASE {column} & 1 WHEN 1 THEN {column} >> 1 ELSE {symbol} END"


def _joined(cells: Sequence[str]) -> str:
    """SQL of cells with commas between them, in halves: SQLite limits the depth of an expression."""
    if len(cells) == 1:
        return cells[0]
    half = len(cells) // 2
    return f"({_joined(cells[:half])} || ',' || {_joined(cells[half:])})"


def atoms_table(number: int, columns: Sequence[str]) -> str:
    """SQL of the table of a derived predicate's atoms."""
    return f"CREATE TABLE _atoms_{number} (ref INTEGER PRIMARY KEY, {_defined(columns)}, UNIQUE ({', '.join(columns)}))"


def instances_table(number: int, columns: Sequence[str]) -> str:
    """SQL of the table of a rule's instances."""
    defined = ", ".join(["id INTEGER PRIMARY KEY", *(f"{column} INTEGER" for column in columns)])
    return f"CREATE TABLE _instances_{number} ({defined})"


def rotated_index(table: str, columns: Sequence[str], place: int) -> str:
    """SQL of the covering index by which a join starts at the argument at `place`, counted from 0."""
    # `ref` is the rowid, which every index contains anyway.
    rotated = ", ".join((columns[place], *columns[:place], *columns[place + 1 :]))
    return f"CREATE INDEX {table.removeprefix('_')}_by_{place + 1} ON {table} ({rotated})"


def premises_index(table: str, columns: Sequence[str]) -> str:
    """SQL of the index of a rule's instances by their first premises, by which a change of facts finds them."""
    return f"CREATE INDEX {table.removeprefix('_')}_by_premises ON {table} ({', '.join(columns)})"


def _defined(columns: Iterable[str]) -> str:
    return ", ".join(f"{column} INTEGER NOT NULL" for column in columns)


def if_missing(sql: str) -> str:
    """A statement of ours that creates an index, which does nothing if there is one of this name."""
    return sql.replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS ", 1)
