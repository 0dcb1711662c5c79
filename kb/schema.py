"""The schema of a new file: the tables of records (`records`), and those of inference and look-ups.

Foreign keys serve people who browse the file (Datasette follows them). They are not enforced: records arrive in any
order, and two files merge table by table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from hapax.kb import system
from hapax.kb.records import TABLES

VERSION = "m001_schema"
"""Name of the newest schema in the file's list of migrations; `migrations` brings older files to it."""

# As sqlite-utils makes it.
_MIGRATIONS = (
    'CREATE TABLE "_sqlite_migrations" (\n   "id" INTEGER PRIMARY KEY,\n   "migration_set" TEXT,\n   "name" TEXT,\n'
    '   "applied_at" TEXT\n) STRICT',
    'CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"\n'
    '    ON "_sqlite_migrations" ("migration_set", "name")',
)


def _popularity(table: str, cell: str) -> tuple[str, ...]:
    """Frequencies of the values of a table's rows, for lists in their order; `kb/popularity.py` fills it.

    A row that another program changes is measured again with all that follow, since rows are measured in their order.
    """
    ranks = f"{table}_popularity"
    return (
        f"CREATE TABLE {ranks} (row INTEGER PRIMARY KEY, frequency REAL)",
        f"CREATE INDEX {ranks}_by_frequency ON {ranks} (frequency)",
        f"CREATE TRIGGER {ranks}_deleted AFTER DELETE ON {table} BEGIN DELETE FROM {ranks} WHERE row = OLD.rowid; END",  # noqa: S608  ours
        f"CREATE TRIGGER {ranks}_changed AFTER UPDATE OF {cell} ON {table} BEGIN "  # noqa: S608  ours
        f"DELETE FROM {ranks} WHERE row >= OLD.rowid; END",
    )


SCHEMA: tuple[str, ...] = (
    *_MIGRATIONS,
    *(sql for table in TABLES for sql in table.sql),
    # The facts on which each stored proof rests: by fact for withdrawals, by key for a statement that is stored again.
    "CREATE TABLE statement_facts (key TEXT NOT NULL, fact_id TEXT NOT NULL, PRIMARY KEY (fact_id, key)) WITHOUT ROWID",
    "CREATE INDEX statement_facts_by_key ON statement_facts (key)",
    # What deletes a fact without a word, another program for example, leaves a trace as well.
    "CREATE TRIGGER fact_withdrawn AFTER DELETE ON facts "
    "WHEN NOT EXISTS (SELECT 1 FROM withdrawals WHERE fact_id = OLD.id AND restored IS NULL) BEGIN "
    "INSERT OR IGNORE INTO withdrawals (fact_id, predicate, arguments, types, source, reason, author, withdrawn, "
    "probability, candidate_id, run_id, basis) VALUES (OLD.id, OLD.predicate, OLD.arguments, OLD.types, OLD.source, "
    "'its row was deleted', 'another program', CURRENT_TIMESTAMP, OLD.probability, "
    "OLD.candidate_id, OLD.run_id, OLD.basis); END",
    # Statements whose proofs say that something is absent or how much there is, so that new facts can refute them.
    # `checked`: the state of the facts when the statement was last proved; NULL if that is unknown. `lapsed`: since
    # when it does not hold; NULL while it does.
    "CREATE TABLE revisable_statements (key TEXT PRIMARY KEY, checked TEXT, lapsed TEXT) WITHOUT ROWID",
    # Inference; `kb/relations.py` creates further tables for single predicates and rules.
    "CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE)",
    "CREATE TABLE relations (indicator TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, shadowed INTEGER NOT NULL)",
    "CREATE TABLE relation_state (ref INTEGER NOT NULL, fact_id TEXT NOT NULL)",
    "CREATE TABLE fact_changes (ref INTEGER NOT NULL, predicate TEXT NOT NULL, arguments TEXT NOT NULL)",
    # `words`: the sentence of the rule in pieces; `indexed`: the last instance in `derived_ids`.
    "CREATE TABLE derivations (rule TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, "
    "fingerprint TEXT NOT NULL, statements INTEGER NOT NULL, stale INTEGER NOT NULL, words TEXT, "
    "indexed INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE derived_predicates (indicator TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, "
    "fingerprint TEXT NOT NULL, atoms INTEGER, maintained INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE derived_ids (id TEXT NOT NULL, number INTEGER NOT NULL, instance INTEGER NOT NULL, "
    "PRIMARY KEY (id, number, instance)) WITHOUT ROWID",
    "CREATE INDEX derived_ids_by_instance ON derived_ids (number, instance)",
    "CREATE TRIGGER fact_deleted AFTER DELETE ON facts BEGIN "
    "INSERT INTO fact_changes VALUES (OLD.rowid, OLD.predicate, OLD.arguments); END",
    # The row is forgotten under its old content, and both rowids are read again.
    "CREATE TRIGGER fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid "
    "OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments BEGIN "
    "INSERT INTO fact_changes VALUES (OLD.rowid, OLD.predicate, OLD.arguments), "
    "(NEW.rowid, OLD.predicate, OLD.arguments); END",
    # After the last facts were deleted, SQLite numbers new ones from the greatest rowid that is left.
    "CREATE TRIGGER fact_numbered_again AFTER INSERT ON facts "
    "WHEN NEW.rowid <= (SELECT max(ref) FROM relation_state) BEGIN "
    "INSERT INTO fact_changes VALUES (NEW.rowid, NEW.predicate, NEW.arguments); END",
    # Facts by argument, which `kb/argument_index.py` fills for the predicates that goals ask about. A trigger may call
    # no JSON function, since the file may come from a stranger; so it only notes what has changed.
    "CREATE TABLE indexed_predicates (number INTEGER PRIMARY KEY, predicate TEXT NOT NULL UNIQUE, "
    "ref INTEGER NOT NULL, fact_id TEXT NOT NULL)",
    "CREATE TABLE argument_index (number INTEGER NOT NULL, place INTEGER NOT NULL, key NOT NULL, "
    "ref INTEGER NOT NULL, PRIMARY KEY (number, place, key, ref)) WITHOUT ROWID",
    "CREATE TABLE unindexed_facts (ref INTEGER PRIMARY KEY)",
    "CREATE TRIGGER indexed_fact_deleted AFTER DELETE ON facts BEGIN "
    "INSERT OR IGNORE INTO unindexed_facts VALUES (OLD.rowid); END",
    "CREATE TRIGGER indexed_fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid "
    "OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments OR OLD.types <> NEW.types BEGIN "
    # Not OR IGNORE: inside a trigger the conflict clause of the statement that fires it would hold instead.
    "INSERT INTO unindexed_facts SELECT ref FROM (SELECT OLD.rowid AS ref UNION SELECT NEW.rowid) "
    "WHERE ref NOT IN (SELECT ref FROM unindexed_facts); END",
    *_popularity("statements", "substitution"),
    *_popularity("facts", "arguments"),
)
"""Statements that create the objects that every file has, as SQLite keeps their texts."""

TRIGGERS = frozenset(sql for sql in SCHEMA if sql.startswith("CREATE TRIGGER"))


def create(connection: sqlite3.Connection) -> None:
    """Create everything in an empty database, inside the caller's transaction if there is one."""
    for sql in SCHEMA:
        connection.execute(sql)
    row = ("hapax", VERSION, system.now().isoformat())
    connection.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, ?)", row)


# -- tables of single predicates and rules, which `kb/relations.py` creates


def relation_table(number: int, columns: Sequence[str]) -> str:
    """SQL of the table of a predicate's facts."""
    # Without a rowid the table is the index of its key: nothing is stored or looked up twice.
    defined = _defined((*columns, "ref"))
    return f"CREATE TABLE _relation_{number} ({defined}, PRIMARY KEY ({', '.join(columns)})) WITHOUT ROWID"


def atoms_table(number: int, columns: Sequence[str]) -> str:
    """SQL of the table of a derived predicate's atoms."""
    return f"CREATE TABLE _atoms_{number} (ref INTEGER PRIMARY KEY, {_defined(columns)}, UNIQUE ({', '.join(columns)}))"


def instances_table(number: int, columns: Sequence[str]) -> str:
    """SQL of the table of a rule's instances."""
    defined = ", ".join(["id INTEGER PRIMARY KEY", *(f"{column} INTEGER" for column in columns)])
    return f"CREATE TABLE _instances_{number} ({defined})"


def rotated_index(table: str, columns: Sequence[str], place: int) -> str:
    """SQL of the covering index by which a join starts at the argument at `place`, from 1, and reads the `ref`."""
    # In tables of atoms `ref` is the rowid, which every index contains anyway.
    covered = () if table.startswith("_atoms_") else ("ref",)
    rotated = ", ".join((columns[place], *columns[:place], *columns[place + 1 :], *covered))
    return f"CREATE INDEX {table.removeprefix('_')}_by_{place + 1} ON {table} ({rotated})"


def premises_index(table: str, columns: Sequence[str]) -> str:
    """SQL of the index of a rule's instances by their first premises, by which a change of facts finds them."""
    return f"CREATE INDEX {table.removeprefix('_')}_by_premises ON {table} ({', '.join(columns)})"


def _defined(columns: Iterable[str]) -> str:
    return ", ".join(f"{column} INTEGER NOT NULL" for column in columns)


# -- indexes of entailments, which `engine/entailment/lookup.py` creates

ENTAILS = "entails"
"""Predicate of the facts that are entailments, `entails(PREMISE, HYPOTHESIS, SCORE)`."""

# The name before the bracket, with `went to(` read as `went_to(`. By functions of texts, because SQLite calls no others
# in an index. `rows.VALUES` writes the arguments as `["P","Q",SCORE]`.
ENTAILMENT_NAMES = tuple(
    f"replace(trim(substr({text}, 1, instr({text}, '(') - 1)), ' ', '_')"
    for text in ("substr(arguments, 3)", "substr(arguments, instr(arguments, '\",\"') + 3)")
)
"""SQL for the predicates of the premise and the hypothesis of an entailment."""

ENTAILMENT_INDEXES = tuple(
    f"CREATE INDEX entails_by_{name} ON facts ({text}) WHERE predicate = '{ENTAILS}'"
    for name, text in zip(("premise", "hypothesis"), ENTAILMENT_NAMES, strict=True)
)


def if_missing(sql: str) -> str:
    """A statement of ours that creates an index, which does nothing if there is one of this name."""
    return sql.replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS ", 1)
