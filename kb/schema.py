"""The tables, as migrations. A released migration never changes; new ones are added below it.

Foreign keys serve people who browse the file (Datasette follows them). They are not enforced: records arrive in any
order, and two files merge table by table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlite_utils import Database, Migrations

migrations = Migrations("hapax")


@migrations()
def m001_initial(db: Database) -> None:
    """All tables of the first release."""
    _run_tables(db)
    _library_tables(db)
    _question_tables(db)
    _answer_tables(db)
    _judgement_tables(db)
    _fact_table(db)
    _statement_tables(db)


@migrations()
def m002_inference(db: Database) -> None:
    """Tables of bulk inference; `kb/relations.py` creates and drops further tables for single predicates."""
    for sql in _INFERENCE:
        db.conn.execute(sql)


_INFERENCE = (
    "CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE)",
    "CREATE TABLE relations (indicator TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, largest INTEGER NOT NULL, "
    "inexact INTEGER NOT NULL, shadowed INTEGER NOT NULL)",
    "CREATE TABLE relation_state (ref INTEGER NOT NULL, fact_id TEXT NOT NULL)",
    "CREATE TABLE fact_changes (ref INTEGER NOT NULL, predicate TEXT NOT NULL, arguments TEXT NOT NULL)",
    "CREATE TABLE derivations (rule TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, engine TEXT NOT NULL, "
    "fingerprint TEXT NOT NULL, statements INTEGER NOT NULL, stale INTEGER NOT NULL)",
    "CREATE TABLE derived_predicates (indicator TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, "
    "fingerprint TEXT NOT NULL)",
    "CREATE TRIGGER fact_deleted AFTER DELETE ON facts BEGIN "
    "INSERT INTO fact_changes VALUES (OLD.rowid, OLD.predicate, OLD.arguments); END",
    # The new rowid is noted, too, so that its fact is read again.
    "CREATE TRIGGER fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid "
    "OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments BEGIN "
    # The row is forgotten under its old content, and both rowids are read again.
    "INSERT INTO fact_changes VALUES (OLD.rowid, OLD.predicate, OLD.arguments), "
    "(NEW.rowid, OLD.predicate, OLD.arguments); END",
)


@migrations()
def m003_profiles(db: Database) -> None:
    """The prompt profile that suits each model."""
    db.table("model_profiles").create(
        {"model": str, "profile": str, "scores": str},
        pk="model",
        not_null={"profile", "scores"},
    )


@migrations()
def m004_rule_texts(db: Database) -> None:
    """The rule files that were last used on the knowledge base."""
    db.table("rule_texts").create(
        {"name": str, "text": str, "checksum": str, "command": str},
        pk="name",
        not_null={"text", "checksum", "command"},
    )


@migrations()
def m005_sources(db: Database) -> None:
    """The source on which a score rests, and the source that states a fact."""
    for table in ("assessments", "facts"):
        db.conn.execute(f"ALTER TABLE {table} ADD COLUMN basis TEXT")


@migrations()
def m006_conflicts(db: Database) -> None:
    """Atoms that a critic denied for sure, and facts that broke a declaration."""
    denials = db.table("denials").create(
        {"id": str, "predicate": str, "arguments": str, "probability": float, "run_id": str},
        pk="id",
        not_null={"predicate", "arguments", "probability"},
    )
    denials.create_index(["predicate"])
    conflicts = db.table("conflicts").create(
        {
            "id": str,
            "declaration": str,
            "facts": str,
            "lost": str,
            "reason": str,
            "run_id": str,
        },
        pk="id",
        not_null={"declaration", "facts", "lost", "reason", "run_id"},
    )
    conflicts.create_index(["run_id"])


@migrations()
def m007_attempts(db: Database) -> None:
    """Requests that left for servers, each with its outcome."""
    texts = dict.fromkeys(("id", "role", "model", "path", "started", "finished", "outcome"), str)
    counts = dict.fromkeys(("prompt_tokens", "completion_tokens"), int)
    db.table("attempts").create(
        {**texts, **counts, "cost": float},
        pk="id",
        not_null={"role", "model", "path", "started", *counts},
    ).create_index(["model"])


@migrations()
def m008_calibration(db: Database) -> None:
    """Labels of facts, what critics' scores are worth by them, and promises on the precision of facts."""
    db.table("fact_labels").create(
        {"id": str, "fact_id": str, "predicate": str, "arguments": str, "is_true": int, "source": str},
        pk="id",
        not_null={"fact_id", "predicate", "arguments", "is_true", "source"},
    ).create_index(["fact_id"])
    texts = ("method", "parameters", "sample", "sources", "metrics", "created", "checksum")
    db.table("calibrations").create({"critic": str, **dict.fromkeys(texts, str)}, pk="critic", not_null=set(texts))
    certificates = {
        **dict.fromkeys(("id", "fact_group"), str),
        **dict.fromkeys(("precision", "confidence"), float),
        **dict.fromkeys(("method", "basis"), str),
        "threshold": float,
        **dict.fromkeys(("labels", "false"), int),
        "bound": float,
        **dict.fromkeys(("accepted", "pool"), int),
        "sample": str,
        "shift": float,
        **dict.fromkeys(("reason", "created", "run_id"), str),
    }
    db.table("certificates").create(
        certificates, pk="id", not_null=set(certificates) - {"id", "threshold", "shift"}
    ).create_index(["run_id"])


@migrations()
def m009_withdrawals(db: Database) -> None:
    """Withdrawn facts, and the facts that each stored proof rests on, so that no statement outlives its facts."""
    withdrawals = db.table("withdrawals").create(
        {
            "fact_id": str,
            "predicate": str,
            "arguments": str,
            "types": str,
            "source": str,
            "reason": str,
            "author": str,
            "withdrawn": str,
            "probability": float,
            "candidate_id": str,
            "run_id": str,
            "basis": str,
            "restored": str,
        },
        pk=("fact_id", "withdrawn"),
        not_null={"predicate", "arguments", "types", "source", "reason", "author"},
    )
    withdrawals.create_index(["predicate"])
    for sql in _WITHDRAWING:
        db.conn.execute(sql)


_WITHDRAWING = (
    # By fact for withdrawals, and by key for a statement that is stored again.
    "CREATE TABLE statement_facts (key TEXT NOT NULL, fact_id TEXT NOT NULL, PRIMARY KEY (fact_id, key)) WITHOUT ROWID",
    "CREATE INDEX statement_facts_by_key ON statement_facts (key)",
    # By json_each, since a proof has one flat list of steps.
    "INSERT OR IGNORE INTO statement_facts SELECT proofs.key, json_extract(step.value, '$.fact') "
    "FROM proofs, json_each(CASE WHEN json_valid(proofs.proof) THEN proofs.proof ELSE '[]' END, '$.steps') AS step "
    "WHERE step.type = 'object' AND json_extract(step.value, '$.fact') IS NOT NULL",
    # What deletes a fact without a word, another program for example, leaves a trace as well.
    "CREATE TRIGGER fact_withdrawn AFTER DELETE ON facts "
    "WHEN NOT EXISTS (SELECT 1 FROM withdrawals WHERE fact_id = OLD.id AND restored IS NULL) BEGIN "
    "INSERT OR IGNORE INTO withdrawals (fact_id, predicate, arguments, types, source, reason, author, withdrawn, "
    "probability, candidate_id, run_id, basis) VALUES (OLD.id, OLD.predicate, OLD.arguments, OLD.types, OLD.source, "
    "'its row was deleted', 'another program', CURRENT_TIMESTAMP, OLD.probability, "
    "OLD.candidate_id, OLD.run_id, OLD.basis); END",
    # Facts that an earlier version deleted. Given facts are left out, since a rule file may state them.
    "INSERT OR IGNORE INTO withdrawals (fact_id, predicate, arguments, types, source, reason, author, withdrawn) "
    "SELECT json_extract(step.value, '$.fact'), json_extract(step.value, '$.goal.predicate'), "
    "json_extract(step.value, '$.goal.arguments'), '[]', 'model', 'an earlier version of Hapax deleted it', "
    "'another program', CURRENT_TIMESTAMP "
    "FROM proofs, json_each(CASE WHEN json_valid(proofs.proof) THEN proofs.proof ELSE '[]' END, '$.steps') AS step "
    "WHERE step.type = 'object' AND json_extract(step.value, '$.by') = 'fact' "
    "AND json_extract(step.value, '$.fact') NOT IN (SELECT id FROM facts)",
)


@migrations()
def m010_certificate_order(db: Database) -> None:
    """The last run before each certificate, so that a later change of its models is known without a clock."""
    # Certificates of earlier versions have none, and count from their own run.
    db.conn.execute("ALTER TABLE certificates ADD COLUMN after_run TEXT")


@migrations()
def m011_maintenance(db: Database) -> None:
    """Counts of derived atoms, which tables of them have followed changes of facts, and facts with a used rowid.

    The tables of single predicates and rules get an underscore, so that Datasette leaves them out of its lists.
    """
    for sql in _MAINTENANCE:
        db.conn.execute(sql)
    present = set(db.table_names())
    kinds = (("relation", "relations"), ("atoms", "derived_predicates"), ("instances", "derivations"))
    for prefix, table in kinds:
        for (number,) in db.conn.execute(f"SELECT number FROM {table}").fetchall():  # noqa: S608  ours
            name = f"{prefix}_{number}"
            if name in present:
                db.conn.execute(f"ALTER TABLE {name} RENAME TO _{name}")


_MAINTENANCE = (
    "ALTER TABLE derived_predicates ADD COLUMN atoms INTEGER",
    "ALTER TABLE derived_predicates ADD COLUMN maintained INTEGER NOT NULL DEFAULT 0",
    # After the last facts were deleted, SQLite numbers new ones from the greatest rowid that is left.
    "CREATE TRIGGER fact_numbered_again AFTER INSERT ON facts "
    "WHEN NEW.rowid <= (SELECT max(ref) FROM relation_state) BEGIN "
    "INSERT INTO fact_changes VALUES (NEW.rowid, NEW.predicate, NEW.arguments); END",
)


@migrations()
def m012_argument_index(db: Database) -> None:
    """Facts by argument, which `kb/argument_index.py` fills for the predicates that goals ask about.

    A trigger may call no JSON function, since the file may come from a stranger; so it only notes what has changed.
    """
    for sql in _ARGUMENT_INDEX:
        db.conn.execute(sql)


_ARGUMENT_INDEX = (
    "CREATE TABLE indexed_predicates (number INTEGER PRIMARY KEY, predicate TEXT NOT NULL UNIQUE, "
    "ref INTEGER NOT NULL, fact_id TEXT NOT NULL)",
    "CREATE TABLE argument_index (number INTEGER NOT NULL, place INTEGER NOT NULL, key NOT NULL, "
    "ref INTEGER NOT NULL, PRIMARY KEY (number, place, key, ref)) WITHOUT ROWID",
    "CREATE TABLE unindexed_facts (ref INTEGER PRIMARY KEY)",
    "CREATE TRIGGER indexed_fact_deleted AFTER DELETE ON facts BEGIN "
    "INSERT OR IGNORE INTO unindexed_facts VALUES (OLD.rowid); END",
    "CREATE TRIGGER indexed_fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid "
    "OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments BEGIN "
    "INSERT OR IGNORE INTO unindexed_facts VALUES (OLD.rowid), (NEW.rowid); END",
)


@migrations()
def m017_revisable_statements(db: Database) -> None:
    """Statements whose proofs say that something is absent or how much there is, so that new facts can refute them.

    `checked`: the state of the facts when the statement was last proved; NULL if that is unknown. `lapsed`: since when
    it does not hold; NULL while it does.
    """
    for sql in _REVISABLE:
        db.conn.execute(sql)


_REVISABLE = (
    "CREATE TABLE revisable_statements (key TEXT PRIMARY KEY, checked TEXT, lapsed TEXT) WITHOUT ROWID",
    "INSERT OR IGNORE INTO revisable_statements (key) SELECT proofs.key "
    "FROM proofs, json_each(CASE WHEN json_valid(proofs.proof) THEN proofs.proof ELSE '[]' END, '$.steps') AS step "
    "WHERE step.type = 'object' AND (json_extract(step.value, '$.by') = 'negation' "
    "OR json_extract(step.value, '$.rule') LIKE 'aggregate %')",
)


@migrations()
def m018_judging_draws(db: Database) -> None:
    """The draws by which `votes next` chooses items with their chances, and labels of certificates by end."""
    db.conn.execute("ALTER TABLE certificates ADD COLUMN ends TEXT")
    db.table("judging_draws").create(
        {"kind": str, "salt": str, "settings": str, "reach": float, "created": str},
        pk="kind",
        not_null={"salt", "settings", "reach", "created"},
    )
    db.table("drawn_items").create(
        {"salt": str, "item_id": str, "score": float, "weight": float, "draw": float},
        pk=("salt", "item_id"),
        not_null={"score", "weight", "draw"},
    )


@migrations()
def m019_derived_words(db: Database) -> None:
    """The sentences of rules in pieces, by which the view `derived_statements` words what `derive` concluded."""
    db.conn.execute("ALTER TABLE derivations ADD COLUMN words TEXT")


@migrations()
def m020_statement_orders(db: Database) -> None:
    """Indexes by which pages list a million statements by likelihood, end and sentence without reading all of them."""
    for sql in _ORDERS:
        db.conn.execute(sql)


_ORDERS = (
    "CREATE INDEX statements_by_likelihood ON statements (log_likelihood)",
    "CREATE INDEX statements_by_rule ON statements (rule, log_likelihood)",
    "CREATE INDEX statements_by_end ON statements (distribution, log_likelihood)",
    "CREATE INDEX statements_by_premise ON statements (premise)",
)


@migrations()
def m021_derived_ids(db: Database) -> None:
    """The ids of the statements that `derive` concluded, for looking them up; `kb/derived_ids.py` fills the table."""
    db.conn.execute(
        "CREATE TABLE derived_ids (id TEXT NOT NULL, number INTEGER NOT NULL, instance INTEGER NOT NULL, "
        "PRIMARY KEY (id, number, instance)) WITHOUT ROWID"
    )
    db.conn.execute("CREATE INDEX derived_ids_by_instance ON derived_ids (number, instance)")
    # The last instance of a rule that is in the index.
    db.conn.execute("ALTER TABLE derivations ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0")


@migrations()
def m022_popularity(db: Database) -> None:
    """Frequencies of the values of statements and facts, for lists in their order; `kb/popularity.py` fills the tables.

    A row that another program changes is measured again with all that follow, since rows are measured in their order.
    """
    for sql in _POPULARITY:
        db.conn.execute(sql)


def _popularity(table: str, cell: str) -> tuple[str, ...]:
    ranks = f"{table}_popularity"
    return (
        f"CREATE TABLE {ranks} (row INTEGER PRIMARY KEY, frequency REAL)",
        f"CREATE INDEX {ranks}_by_frequency ON {ranks} (frequency)",
        f"CREATE TRIGGER {ranks}_deleted AFTER DELETE ON {table} BEGIN DELETE FROM {ranks} WHERE row = OLD.rowid; END",  # noqa: S608  ours
        f"CREATE TRIGGER {ranks}_changed AFTER UPDATE OF {cell} ON {table} BEGIN "  # noqa: S608  ours
        f"DELETE FROM {ranks} WHERE row >= OLD.rowid; END",
    )


_POPULARITY = (*_popularity("statements", "substitution"), *_popularity("facts", "arguments"))


@migrations()
def m023_changed_types(db: Database) -> None:
    """A fact whose data types change is noted like one whose arguments change: the index of facts has its types."""
    for sql in _CHANGED_TYPES:
        db.conn.execute(sql)


_CHANGED_TYPES = (
    "DROP TRIGGER indexed_fact_changed",
    "CREATE TRIGGER indexed_fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid "
    "OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments OR OLD.types <> NEW.types BEGIN "
    # Not OR IGNORE: inside a trigger the conflict clause of the statement that fires it would hold instead.
    "INSERT INTO unindexed_facts SELECT ref FROM (SELECT OLD.rowid AS ref UNION SELECT NEW.rowid) "
    "WHERE ref NOT IN (SELECT ref FROM unindexed_facts); END",
)

TRIGGERS = frozenset(
    sql
    for migration in (_INFERENCE, _WITHDRAWING, _MAINTENANCE, _ARGUMENT_INDEX, _POPULARITY, _CHANGED_TYPES)
    for sql in migration
    if sql.startswith("CREATE TRIGGER")
)
"""Every trigger of this version and of earlier ones, as SQLite keeps its text."""


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


# The tables of m001 stay as they were released; later columns and tables come with later migrations.
def _run_tables(db: Database) -> None:
    db.table("runs").create(
        {
            "id": str,
            "command": str,
            "settings": str,
            "fingerprint": str,
            "started": str,
            "finished": str,
            "status": str,
            "summary": str,
        },
        pk="id",
        not_null={"command", "settings", "fingerprint", "started", "status", "summary"},
    ).create_index(["fingerprint"])


def _library_tables(db: Database) -> None:
    db.table("rules").create(
        {"name": str, "text": str, "domain": str, "principle": str, "polarity": str}, pk="name", not_null={"text"}
    )
    db.table("predicates").create(
        {
            "indicator": str,
            "name": str,
            "argument_types": str,
            "kind": str,
            "affirmative": str,
            "negated": str,
            "question": str,
        },
        pk="indicator",
        not_null={"name", "argument_types", "kind"},
    )
    db.table("constants").create({"constant_id": str, "constant": str}, pk="constant_id", not_null={"constant"})
    db.table("type_facts").create(
        {"constant_id": str, "data_type": str, "probability": float},
        pk=("constant_id", "data_type"),
        foreign_keys=[("constant_id", "constants", "constant_id")],
    ).create_index(["data_type"])


def _question_tables(db: Database) -> None:
    db.table("questions").create(
        {
            "id": str,
            "patterns": str,
            "data_type": str,
            "functional": int,
            "calls": int,
            "calls_without_acceptance": int,
            "exhausted": int,
        },
        pk="id",
        not_null={"patterns", "data_type", "functional", "calls", "calls_without_acceptance", "exhausted"},
    )
    db.table("question_patterns").create(
        {"question_id": str, "position": int, "predicate": str, "pattern_key": str},
        pk=("question_id", "position"),
        not_null={"predicate", "pattern_key"},
        foreign_keys=[("question_id", "questions", "id")],
    ).create_index(["pattern_key"])


def _answer_tables(db: Database) -> None:
    db.table("calls").create(
        {
            "request_id": str,
            "role": str,
            "model": str,
            "request": str,
            "response": str,
            "prompt_tokens": int,
            "completion_tokens": int,
            "cost": float,
            "created": str,
        },
        pk="request_id",
        not_null={"role", "model", "request", "response", "prompt_tokens", "completion_tokens", "created"},
    )
    db.table("candidates").create(
        {
            "id": str,
            "question_id": str,
            "value": str,
            "raw": str,
            "call_id": str,
            "position": int,
            "rejected_by_parser": str,
        },
        pk="id",
        not_null={"question_id", "value", "raw", "call_id", "position"},
        foreign_keys=[("question_id", "questions", "id"), ("call_id", "calls", "request_id")],
    ).create_index(["question_id"])


def _judgement_tables(db: Database) -> None:
    db.table("assessments").create(
        {
            "id": str,
            "text": str,
            "measure": str,
            "model": str,
            "score": float,
            "token_count": int,
            "call_id": str,
        },
        pk="id",
        not_null={"text", "measure", "model", "score", "token_count"},
        foreign_keys=[("call_id", "calls", "request_id")],
    )
    decisions = db.table("decisions").create(
        {
            "id": str,
            "run_id": str,
            "gate": str,
            "subject": str,
            "accepted": int,
            "score": float,
            "threshold": float,
            "reason": str,
            "rule": str,
            "distribution": str,
            "step": int,
            "assessment_ids": str,
        },
        pk="id",
        not_null={"run_id", "gate", "subject", "accepted", "reason", "assessment_ids"},
        foreign_keys=[("run_id", "runs", "id"), ("rule", "rules", "name")],
    )
    decisions.create_index(["subject"])
    decisions.create_index(["run_id", "gate"])


def _fact_table(db: Database) -> None:
    facts = db.table("facts").create(
        {
            "id": str,
            "predicate": str,
            "arguments": str,
            "types": str,
            "source": str,
            "probability": float,
            "candidate_id": str,
            "run_id": str,
        },
        pk="id",
        not_null={"predicate", "arguments", "types", "source"},
        foreign_keys=[("candidate_id", "candidates", "id"), ("run_id", "runs", "id")],
    )
    facts.create_index(["predicate"])
    facts.create_index(["candidate_id"])


def _statement_tables(db: Database) -> None:
    statements = db.table("statements").create(
        {
            "key": str,
            "id": str,
            "rule": str,
            "distribution": str,
            "run_id": str,
            "substitution": str,
            "premise": str,
            "conclusion": str,
            "ranking_text": str,
            "log_likelihood": float,
        },
        pk="key",
        not_null={"id", "rule", "distribution", "run_id", "substitution", "premise", "conclusion", "ranking_text"},
        foreign_keys=[("rule", "rules", "name"), ("run_id", "runs", "id")],
    )
    statements.create_index(["id"])
    statements.create_index(["run_id", "rule"])
    statements.create_index(["rule"])
    db.table("proofs").create(
        {"key": str, "proof": str}, pk="key", not_null={"proof"}, foreign_keys=[("key", "statements", "key")]
    )
    db.table("votes").create(
        {"id": str, "statement_id": str, "question": str, "voter": str, "answer": str, "comment": str},
        pk="id",
        not_null={"statement_id", "question", "voter", "answer", "comment"},
    ).create_index(["statement_id"])
