"""Migrations that bring files of earlier schemas to the newest one, applied by sqlite-utils.

Imported only for a file that needs it: sqlite-utils imports pandas, which takes longer than a command.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from sqlite_utils import Database, Migrations

from hapax.kb import objects, schema
from hapax.kb.atoms.facts import FactRelations
from hapax.kb.exchange import values
from hapax.kb.files import system
from hapax.kb.open_records import OpenRecords
from hapax.kb.records import FACTS, WITHDRAWALS, FactRecord, Withdrawal
from hapax.kb.rows import OnConflict
from hapax.kb.schema import TABLES

migrations = Migrations("hapax")

# Facts of one batch.
_BATCH = 10_000

_SOURCES = {
    "statements": "statements JOIN proofs USING (key)",
    "type_facts": "type_facts JOIN constants USING (constant_id)",
}
"""Tables that lay in two before."""


@migrations()
def m001_schema(db: Database) -> None:
    """Convert a file of the last version before 0.1.0: facts become relations, and what was derived is forgotten."""
    conn = db.conn
    # Other tables, triggers and views refer to the new tables by the old names.
    conn.execute("PRAGMA legacy_alter_table = ON")
    _forget_derived(conn)
    conn.execute("ALTER TABLE facts RENAME TO old_facts")
    for sql in schema.STATE:
        conn.execute(sql)
    for table in TABLES:
        if not table.sql:
            continue
        sql = table.sql[0]
        name, columns = table.name, ", ".join(table.all_columns)
        source = _SOURCES.get(name, name)
        stored = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        if stored == (sql,) or (stored is None and source == name):
            continue  # one that is as it was, or a table of a later version
        conn.execute(sql.replace(f'"{name}"', f'"new_{name}"', 1))
        # Other tables name statements by their row numbers.
        conn.execute(f"INSERT INTO new_{name} (rowid, {columns}) SELECT {name}.rowid, {columns} FROM {source}")  # noqa: S608
        conn.execute(f"DROP TABLE {name}")
        conn.execute(f"ALTER TABLE new_{name} RENAME TO {name}")
    conn.execute("PRAGMA legacy_alter_table = OFF")
    for strange in objects.strange_objects(conn):
        if strange.is_gone:  # an index that was dropped with its table
            conn.execute(strange.object.sql)
    conn.execute(schema.facts_view(conn))
    _add_facts(OpenRecords(conn, "the file"))
    for sql in schema.INDEX_PROOFS:
        conn.execute(sql)
    revised = "SELECT checked, lapsed FROM revisable_statements AS revisable WHERE revisable.key = statement_facts.key"
    conn.execute(f"UPDATE statement_facts SET (checked, lapsed) = ({revised}) WHERE fact_id = ''")  # noqa: S608  ours
    for name in ("old_facts", "proofs", "constants", "revisable_statements"):
        conn.execute(f"DROP TABLE {name}")
    conn.execute("DELETE FROM _sqlite_migrations WHERE migration_set = 'hapax'")


def _forget_derived(conn: sqlite3.Connection) -> None:
    """Drop the tables of inference, the views that read them and the triggers that follow facts."""
    for kind in ("trigger", "view"):
        for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,)).fetchall():
            conn.execute(f'DROP {kind} "{name}"')
    made = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '_*_[0-9]*'"
    names = [name for (name,) in conn.execute(made) if objects.is_of_one_predicate(name)]
    earlier = ("relation_state", "fact_changes", "indexed_predicates", "argument_index", "unindexed_facts")
    again = ("relations", "derivations", "derived_predicates", "derived_ids", "facts_popularity")
    for name in (*names, *earlier, *again, "question_patterns", "statements_popularity", "statement_facts"):
        conn.execute(f"DROP TABLE IF EXISTS {name}")


def _add_facts(records: OpenRecords) -> None:
    """Store the facts of the earlier table. Those that no fact can be any more are withdrawn, with the reason."""
    relations = FactRelations(records)
    now = system.now().isoformat(timespec="microseconds")
    columns = ", ".join(("rowid", *FACTS.columns))
    cursor = records.connection.execute(f"SELECT {columns} FROM old_facts ORDER BY rowid")  # noqa: S608  ours
    records.sql("UPDATE fact_numbers SET last = (SELECT coalesce(max(rowid), 0) FROM old_facts)")
    while batch := cursor.fetchmany(_BATCH):
        facts = list(_facts(batch))
        refused = [(fact, reason) for _, fact in facts if (reason := _refusal(fact))]
        relations.add_numbered((ref, fact) for ref, fact in facts if not _refusal(fact))
        for fact, reason in refused:
            row = WITHDRAWALS.row(Withdrawal.of(fact, reason, "conversion", now))
            records.connection.execute(WITHDRAWALS.insert(OnConflict.KEEP), row)


def _facts(batch: list[tuple[Any, ...]]) -> Iterator[tuple[int, FactRecord]]:
    for ref, *cells in batch:
        pairs = zip(FACTS.columns.values(), cells, strict=True)
        decoded: list[Any] = [None if cell is None else codec.decode(cell) for codec, cell in pairs]
        yield ref, FactRecord(*decoded)


def _refusal(fact: FactRecord) -> str:
    """Why no new fact could have the arguments; empty if one could."""
    return next(filter(None, map(values.fact_refusal, fact.arguments)), "")
