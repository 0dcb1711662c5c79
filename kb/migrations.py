"""Migrations that bring files of earlier schemas to the newest one, applied by sqlite-utils.

Imported only for a file that needs it: sqlite-utils imports pandas, which takes longer than a command.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from hapax.kb import objects, schema
from hapax.kb.records import TABLES

migrations = Migrations("hapax")

_NARROWER = {
    "relations": "indicator, number, shadowed",
    "derivations": "rule, number, fingerprint, statements, stale, words, indexed",
}
"""The columns of tables that have lost some."""


@migrations()
def m001_schema(db: Database) -> None:
    """Convert a file of the last version before 0.1.0: make the tables anew that have other columns now."""
    # Other tables, triggers and views refer to the new tables by the old names.
    db.conn.execute("PRAGMA legacy_alter_table = ON")
    for table in TABLES:
        sql = table.sql[0]
        name, columns = table.name, ", ".join(table.all_columns)
        if db.conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone() == (sql,):
            continue
        db.conn.execute(sql.replace(f'"{name}"', f'"new_{name}"', 1))
        # Indexes and derived tables name facts and statements by their row numbers.
        db.conn.execute(f"INSERT INTO new_{name} (rowid, {columns}) SELECT rowid, {columns} FROM {name}")  # noqa: S608  ours
        db.conn.execute(f"DROP TABLE {name}")
        db.conn.execute(f"ALTER TABLE new_{name} RENAME TO {name}")
    for sql in schema.SCHEMA:
        name = sql.split()[2]
        if name in _NARROWER:
            columns = _NARROWER[name]
            db.conn.execute(f"ALTER TABLE {name} RENAME TO old_{name}")
            db.conn.execute(sql)
            db.conn.execute(f"INSERT INTO {name} (rowid, {columns}) SELECT rowid, {columns} FROM old_{name}")  # noqa: S608
            db.conn.execute(f"DROP TABLE old_{name}")
    db.conn.execute("PRAGMA legacy_alter_table = OFF")
    db.conn.execute("DROP TABLE question_patterns")
    for strange in objects.strange_objects(db.conn):
        if strange.is_gone:  # an index or a trigger that was dropped with its table, or a new one
            db.conn.execute(strange.object.sql)
    db.conn.execute("DELETE FROM _sqlite_migrations WHERE migration_set = 'hapax'")
