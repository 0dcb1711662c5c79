"""Knowledge bases of every version that was ever shipped open, keep what they hold, and answer."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from cli_fixture import invoke
from money_fixture import RULES
from sqlite_utils import Database, Migrations

import hapax
from hapax.grammar.errors import HapaxError
from hapax.kb import connection, schema, store
from hapax.kb.store import KnowledgeBase

OLD = sorted((Path(__file__).parent / "old_kbs").glob("*.sql"))
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture(params=OLD, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file as that version wrote it."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as database:
        database.executescript(request.param.read_text("utf-8"))
    return path


def rows(path: Path) -> Rows:
    with sqlite3.connect(path) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in names}  # noqa: S608


def test_every_version_is_kept() -> None:
    """Each migration has a file as its version wrote it, so none can be shipped without."""
    with KnowledgeBase() as kb:
        applied = [migration.name for migration in schema.migrations.applied(kb.database)]

    assert [path.stem for path in OLD] == sorted(applied)


@pytest.mark.parametrize("read_only", [False, True])
def test_an_old_file_opens_and_keeps_every_row(old: Path, read_only: bool) -> None:
    """Opened for reading or for writing, the file holds what it held, and each row is one that we understand."""
    before = rows(old)
    with KnowledgeBase(old, read_only=read_only) as kb:
        kept = [*kb.facts(), *kb.statements(), *kb.votes(), *kb.predicates()]

    after = rows(old)
    del before["_sqlite_migrations"]
    for name, old_rows in before.items():
        # A migration may append columns, and gives the tables of single predicates and rules an underscore.
        new_rows = after[name if name in after else f"_{name}"]
        width = len(old_rows[0]) if old_rows else 0
        assert sorted((row[:width] for row in new_rows), key=repr) == [row[:width] for row in old_rows]
    assert len(kept) > 20


def test_an_old_file_answers_every_reading_command(old: Path, tmp_path: Path) -> None:
    """Contents of an old version are counted, asked, explained, judged, exported and merged by this one."""
    rules = tmp_path / "money.rules"
    rules.write_text(RULES, encoding="utf-8")
    counts = json.loads(invoke("stats", "--db", old, "--json").stdout)
    answer = invoke("query", "can_pay_with('Ada', C)", "--rules", rules, "--db", old)
    statement = rows(old)["statements"][0][1]
    others = [
        invoke("why", str(statement), "--db", old),
        invoke("votes", "report", "--db", old, "--json"),
        invoke("export", "--format", "jsonl", "--db", old),
        invoke("merge", old, "--db", tmp_path / "new.db"),
        invoke("report", "--db", old, "-o", tmp_path / "page.html"),
    ]

    assert (counts["facts"], counts["statements"], counts["votes"], counts["calls"]) == (10, 6, 1, 46)
    assert "euro" in answer.stdout
    assert [(result.exit_code, result.output) for result in others if result.exit_code] == []


def test_statements_that_fall_on_opening_are_said(tmp_path: Path) -> None:
    """A file of before withdrawals, with a fact deleted below a proof: the first command says how many statements fell."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as database:
        database.executescript((OLD[0].parent / "m008_calibration.sql").read_text("utf-8"))
        proof = "SELECT json_extract(step.value, '$.fact') FROM proofs, json_each(proofs.proof, '$.steps') AS step"
        names = [name for (name,) in database.execute(f"{proof} WHERE json_extract(step.value, '$.by') = 'fact'")]
        database.execute("DELETE FROM facts WHERE id = ?", (names[0],))

    first, second = (invoke("stats", "--db", str(path)) for _ in range(2))

    assert "on facts that an earlier version of Hapax deleted" in " ".join(first.stderr.split())
    assert "earlier version" not in second.stderr


def test_new_indexes_are_said_once(old: Path) -> None:
    """A file with statements of before the indexes for lists says when it gets them, and not again."""
    with sqlite3.connect(old) as database:
        ((is_older,),) = database.execute("SELECT max(name) < 'm020' FROM _sqlite_migrations")

    first, second = (" ".join(invoke("stats", "--db", str(old)).stderr.split()) for _ in range(2))

    assert ("6 statements have indexes now" in first) == is_older
    assert "indexes" not in second


def test_what_takes_time_is_said_once(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that brings an old file up to date says so, and that derived statements get an index of their ids."""
    monkeypatch.setattr(store, "NOTICED_SECONDS", 0.0)
    with sqlite3.connect(old) as database:
        names = [name for (name,) in database.execute("SELECT name FROM _sqlite_migrations")]
        derived = "m002_inference" in names and database.execute("SELECT count(*) FROM derivations").fetchone()[0]

    first, second = (" ".join(invoke("stats", "--db", str(old)).stderr.split()) for _ in range(2))

    assert ("brought up to date with this version of Hapax, once, in 0 s." in first) == (max(names) < max(OLD).stem)
    assert ("3 derived statements get an index of their ids" in first) == bool(
        derived and "m021_derived_ids" not in names
    )
    assert "up to date" not in second
    assert "index of their ids" not in second


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """This version, had it one more migration."""
    migrations = Migrations("hapax")
    for function in (value for name, value in sorted(vars(schema).items()) if name.startswith("m0")):
        migrations()(function)

    @migrations()
    def m900_next(db: Database) -> None:
        db.table("facts").add_column("seen", str)

    monkeypatch.setattr(connection.schema, "migrations", migrations)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_migration_keeps_every_row(old: Path, read_only: bool) -> None:
    """A later schema is put under an old file's rows."""
    before = rows(old)
    KnowledgeBase(old, read_only=read_only).close()

    after = rows(old)
    assert {row[-1] for row in after["facts"]} == {None}
    width = len(before["facts"][0])
    assert sorted((row[:width] for row in after["facts"]), key=repr) == before["facts"]
    assert after["statements"] == before["statements"]


@pytest.mark.usefixtures("later")
def test_an_old_file_that_may_not_be_written_says_what_to_do(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading an old file that cannot be brought up to date tells why it is written at all, and what helps."""

    def locked(*_: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(connection, "_migrate", locked)
    with pytest.raises(
        HapaxError, match=r"an earlier version .* must be updated before it is read.*copy it to a folder"
    ) as caught:
        KnowledgeBase(old, read_only=True)

    assert str(old) in str(caught.value)


def test_the_proofs_of_an_old_file_replay(old: Path) -> None:
    """No stored proof of an earlier version is taken for a damage."""
    with KnowledgeBase(old) as kb:
        verification = hapax.verify(kb)

    assert [damage for damage in verification.damages if damage.table == "proofs"] == []


def test_an_old_file_may_lack_a_table_of_its_list(tmp_path: Path) -> None:
    """A relation that is listed and was never filled has no table: the file opens, and the other ones are kept."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as database:
        database.executescript((OLD[0].parent / "m009_withdrawals.sql").read_text("utf-8"))
        database.execute("DROP TABLE relation_1")

    answer = invoke("query", "uses_currency(Country, C)", "--db", path)

    assert answer.exit_code == 0, answer.output
    assert "_relation_2" in rows(path)
