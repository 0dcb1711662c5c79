"""Opening the file: what may be opened, and how the others are told."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from hapax.grammar.errors import HapaxError
from hapax.kb import argument_index, connection, schema
from hapax.kb.argument_index import ArgumentIndex, facts_at, scores_at
from hapax.kb.attempts import AttemptLog
from hapax.kb.merge import merge
from hapax.kb.records import AttemptRecord, CallRecord, FactRecord, RunRecord, Source
from hapax.kb.store import KnowledgeBase

FACT = FactRecord("is_old", ("Ur",), (), Source.GIVEN)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_in_wal_and_forces_every_commit(tmp_path):
    """Readers need not wait, and what was committed survives a power cut."""
    with KnowledgeBase(tmp_path / "odd ?#% name.db") as kb:
        assert kb.database.journal_mode == "wal"
        assert kb.database.execute("PRAGMA synchronous").fetchone() == (2,)
        assert "odd ?#% name.db" in names(tmp_path)


def test_what_is_no_knowledge_base_is_told(tmp_path):
    """A text file, a folder, a missing folder and another program's database are refused, and left as they are."""
    text, database_file = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("no database at all" * 100, encoding="utf-8")
    with sqlite3.connect(database_file) as database:
        database.execute("CREATE TABLE notes (body)")
    before = [text.read_bytes(), database_file.read_bytes()]
    for path, message in (
        (text, "the file is not an SQLite database"),
        (tmp_path, "this is a folder"),
        (Path(":memory:"), "this is no file"),
        (tmp_path / "no" / "x.db", "its folder does not exist"),
        (database_file, "belongs to another program"),
    ):
        for read_only in (False, True):
            with pytest.raises(HapaxError, match=message) as caught:
                KnowledgeBase(path, read_only=read_only)
            assert str(path) in str(caught.value)

    assert [text.read_bytes(), database_file.read_bytes()] == before


def test_a_later_schema_is_refused(tmp_path):
    """A file written by a later version is not touched; the message says to update."""
    path = tmp_path / "hapax.db"
    with KnowledgeBase(path) as kb:
        kb.database.table("_sqlite_migrations").insert(
            {"migration_set": "hapax", "name": "m999_later", "applied_at": ""}
        )
    for read_only in (False, True):
        with pytest.raises(HapaxError, match=r"m999_later.*Update Hapax"):
            KnowledgeBase(path, read_only=read_only)


def test_a_file_that_computes_its_tables_is_refused(tmp_path):
    """A view in a table's place, which may never end, is not read: neither opened nor merged."""
    path = tmp_path / "strange.db"
    with KnowledgeBase(path) as kb:
        kb.database.execute("DROP TABLE facts")
        kb.database.execute(
            "CREATE VIEW facts AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id FROM n) SELECT * FROM n"
        )
    for read_only in (False, True):
        with pytest.raises(HapaxError, match="rows of facts are calculated"):
            KnowledgeBase(path, read_only=read_only)
    with KnowledgeBase() as kb, pytest.raises(HapaxError, match="rows of facts are calculated"):
        merge(kb, path)


@pytest.mark.parametrize("read_only", [False, True])
def test_an_older_schema_is_migrated_when_opened(tmp_path, monkeypatch, read_only):
    """Data of an earlier version is kept and new tables appear, even when the file is opened for reading only."""
    path = tmp_path / "hapax.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts([FACT])
    later = Migrations("hapax")
    for name in sorted(name for name in vars(schema) if name.startswith("m0")):
        later()(getattr(schema, name))

    @later()
    def m900_notes(db: Database) -> None:
        db.table("notes").create({"id": int})

    monkeypatch.setattr(connection.schema, "migrations", later)
    with KnowledgeBase(path, read_only=read_only) as kb:
        assert kb.facts() == [FACT]
        assert "notes" in kb.database.table_names()


def test_a_failed_migration_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    """A migration that fails half way is undone."""
    broken = Migrations("hapax")
    for name in sorted(name for name in vars(schema) if name.startswith("m0")):
        broken()(getattr(schema, name))

    @broken()
    def m900_broken(db: Database) -> None:
        db.table("notes").create({"id": int})
        db.execute("SELECT * FROM nowhere")

    path = tmp_path / "hapax.db"
    with monkeypatch.context() as patch:
        patch.setattr(connection.schema, "migrations", broken)
        with pytest.raises(HapaxError, match="SQLite says: no such table: nowhere"):
            KnowledgeBase(path)
    with KnowledgeBase(path) as kb:
        assert "notes" not in kb.database.table_names()


def test_reading_needs_a_file_and_cannot_write(tmp_path):
    """Reading only creates nothing, and writing through it is an expected error."""
    path = tmp_path / "hapax.db"
    with pytest.raises(HapaxError, match="there is no such knowledge base"):
        KnowledgeBase(path, read_only=True)
    assert names(tmp_path) == []

    KnowledgeBase(path).close()
    with KnowledgeBase(path, read_only=True) as kb, pytest.raises(HapaxError, match="may not be written"):
        kb.add_facts([FACT])


def test_a_reader_does_not_wait_for_a_writer(tmp_path):
    """While one process is in the middle of writing, others open and read what was there before."""
    path = tmp_path / "hapax.db"
    with KnowledgeBase(path) as writer:
        writer.record_calls([CallRecord("r1", "knowledge", "m", {}, {})])
        with writer.transaction():
            writer.add_facts([FACT])
            with KnowledgeBase(path, read_only=True) as reader:
                assert reader.call("r1") is not None
                assert reader.facts() == []
        with KnowledgeBase(path, read_only=True) as reader:
            assert reader.facts() == [FACT]


def test_two_writers_do_not_wait_for_ever(tmp_path, monkeypatch):
    """A writer that another one keeps out too long is told so."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    path = tmp_path / "hapax.db"
    with KnowledgeBase(path) as writer, KnowledgeBase(path) as second:
        with writer.transaction():
            writer.add_facts([FACT])
            with pytest.raises(HapaxError, match="another process has been writing"):
                second.start_run(RunRecord("r", "search", {}, "f", "now"))
        assert second.facts() == [FACT]


@pytest.fixture
def read_only_folder(tmp_path):
    """A folder that may not be written, if this user knows such a thing."""
    folder = tmp_path / "locked"
    folder.mkdir()
    with KnowledgeBase(folder / "hapax.db") as kb:
        kb.add_facts([FACT])
    for path in (folder / "hapax.db", folder):
        path.chmod(path.stat().st_mode & 0o555)
    yield folder
    folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_can_be_read(read_only_folder):
    """A knowledge base on a read-only medium opens for reading; for writing, the message says what to do."""
    with KnowledgeBase(read_only_folder / "hapax.db", read_only=True) as kb:
        assert kb.facts() == [FACT]
    with pytest.raises(HapaxError, match="cannot be opened or created"):
        KnowledgeBase(read_only_folder / "new.db")
    with pytest.raises(HapaxError, match="may not be written"), KnowledgeBase(read_only_folder / "hapax.db") as kb:
        kb.add_facts([FACT])


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which even root cannot create files")
def test_a_folder_in_which_nothing_can_be_created_is_told():
    """A file that cannot be created is an expected error with a remedy."""
    with pytest.raises(HapaxError, match=r"cannot be opened or created .*Allow writing"):
        KnowledgeBase("/proc/hapax.db")


def test_without_the_index_of_the_wal_the_file_is_read_as_it_is(tmp_path, monkeypatch):
    """When SQLite cannot write beside the file and no WAL is there, the file is complete and read as immutable."""
    path = tmp_path / "hapax.db"
    KnowledgeBase(path).close()
    connect = connection._connected

    def unwritable(uri: str) -> Database:
        if "mode=ro" in uri:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(uri)

    monkeypatch.setattr(connection, "_connected", unwritable)
    with KnowledgeBase(path, read_only=True) as kb:
        assert kb.facts() == []
    (tmp_path / "hapax.db-wal").touch()
    with pytest.raises(HapaxError, match="cannot be opened"):
        KnowledgeBase(path, read_only=True)


def test_a_reader_leaves_nothing_beside_the_file(tmp_path):
    """The WAL and its index that reading makes go with the last reader, merging included."""
    here, there = tmp_path / "here.db", tmp_path / "other.db"
    for path in (here, there):
        with KnowledgeBase(path) as kb:
            kb.add_facts([FACT])
    with KnowledgeBase(here, read_only=True) as first:
        with KnowledgeBase(here, read_only=True) as second:
            assert list(second.facts("is_old")) == list(first.facts("is_old"))
        assert list(first.facts("is_old"))
    with KnowledgeBase(here) as kb:
        merge(kb, there)

    assert names(tmp_path) == ["here.db", "other.db"]


def test_a_reader_leaves_a_writer_alone(tmp_path):
    """While somebody else has the file open, and what a killed writer left, nothing is taken away."""
    with KnowledgeBase(tmp_path / "a.db") as writer:
        writer.add_facts([FACT])
        with KnowledgeBase(tmp_path / "a.db", read_only=True) as reader:
            assert len(list(reader.facts("is_old"))) == 1
        writer.add_facts([FactRecord("is_old", ("Uruk",), (), Source.GIVEN)])
        left = (tmp_path / "a.db-wal").read_bytes()
        (tmp_path / "b.db").write_bytes((tmp_path / "a.db").read_bytes())
        (tmp_path / "b.db-wal").write_bytes(left)
    with KnowledgeBase(tmp_path / "b.db", read_only=True) as reader:
        assert len(list(reader.facts("is_old"))) == 2

    assert (tmp_path / "b.db-wal").read_bytes() == left


def record(kb: KnowledgeBase, number: int) -> None:
    kb.record_calls([CallRecord(f"r{number}", "critic", "tiny", {}, {"p": 1})])


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    with KnowledgeBase(other) as kb:
        kb.add_facts([FACT])
    other.replace(path)


@pytest.mark.parametrize("move", [delete, rename, replace])
def test_a_file_that_is_moved_away_stops_the_writer_with_every_answer_safe(tmp_path, move):
    """A file renamed, deleted or replaced under a run ends it; a copy beside it has all answers, the last one too."""
    path = tmp_path / "run.db"
    kb = KnowledgeBase(path)
    record(kb, 1)
    move(path)
    with pytest.raises(HapaxError, match="renamed, deleted or replaced"):
        record(kb, 2)
    with pytest.raises(HapaxError, match="renamed, deleted or replaced"):
        record(kb, 3)
    kb.close()

    (copy,) = tmp_path.glob("run-rescued-*.db")
    with KnowledgeBase(copy) as rescued:
        assert sorted(rescued.calls()) == ["r1", "r2", "r3"]


def test_pipes_devices_and_loops_are_no_knowledge_base(tmp_path):
    """A named pipe, a device and a symbolic link to itself are refused at once."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, message in (
        (tmp_path / "pipe", "pipe, socket or device"),
        (Path("/dev/null"), "pipe, socket or device"),
        (tmp_path / "loop", "cannot be followed|cannot be opened"),
    ):
        for read_only in (False, True):
            with pytest.raises(HapaxError, match=message):
                KnowledgeBase(path, read_only=read_only)


def test_a_signal_ends_a_wait_for_the_lock(tmp_path):
    """While another process writes, a signal's exception leaves the wait; SQLite alone would hold it for a minute."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                record(kb, 1)
        finally:
            signal.signal(signal.SIGALRM, before)
        other.execute("ROLLBACK")
        record(kb, 2)
        assert list(kb.calls()) == ["r2"]


def test_a_new_file_that_others_open_gets_its_wal_after_pauses(monkeypatch):
    """SQLite does not wait for this lock: it is tried again after short pauses, and other errors are raised at once."""
    pauses, faults = [], []

    class Connection:
        def execute(self, sql):
            assert sql == "PRAGMA journal_mode = WAL"
            if faults:
                raise sqlite3.OperationalError(faults.pop())

    monkeypatch.setattr(connection.system, "sleep", pauses.append)
    connection._use_wal(Connection())
    assert pauses == []
    faults = ["database is locked"] * 3
    connection._use_wal(Connection())
    assert pauses == [0.02] * 3
    faults = ["database is locked"] * connection._WAL_ATTEMPTS
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        connection._use_wal(Connection())
    assert len(pauses) == 3 + connection._WAL_ATTEMPTS - 1
    faults = ["disk I/O error"]
    with pytest.raises(sqlite3.OperationalError, match="disk"):
        connection._use_wal(Connection())
    assert len(pauses) == 3 + connection._WAL_ATTEMPTS - 1


def test_a_log_of_attempts_without_its_file_tells_who_waits(tmp_path):
    """An attempt that cannot be written fails for its sender; the next one is written once the file is there."""
    path = tmp_path / "none" / "kb.db"
    attempt = AttemptRecord("1", "critic", "tiny@1", "chat/completions", "2026-01-01")
    log = AttemptLog(path)

    assert isinstance(log.write(attempt).exception(), Exception)
    path.parent.mkdir()
    KnowledgeBase(path).close()
    assert log.write(attempt).exception() is None
    log.close()
    assert "was closed, so nothing is sent" in str(log.write(attempt).exception())
    with KnowledgeBase(path) as kb:
        assert len(kb.attempts()) == 1

    kept = AttemptLog(None)
    assert kept.write(attempt).exception() is None
    assert (kept.taken(), kept.taken()) == ([attempt], [])
    kept.close()


def test_a_large_predicate_is_indexed_later_where_a_writer_is_at_work(tmp_path, monkeypatch):
    """A reader gives up at once, without an error, and finds its rows all the same."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts([FactRecord("is_old", (f"city {number}",), (), Source.GIVEN) for number in range(5)])
    monkeypatch.setattr(argument_index, "FEW_FACTS", 2)
    with KnowledgeBase(path) as writer, KnowledgeBase(path, read_only=True) as reader:
        index = ArgumentIndex(reader)
        with writer.transaction():
            index.prepare(["is_old/1"])
            assert not index.is_ready("is_old/1")
            assert ("city 3",) in [row[1] for row in index.rows("is_old/1", {0: "city 3"})]
        index.prepare(["is_old/1"])
        assert index.is_ready("is_old/1")
        assert [row[1] for row in index.rows("is_old/1", {0: "city 3"})] == [("city 3",)]


@pytest.mark.parametrize("listed", [1, 2, 3, 10])
def test_facts_by_number_are_read_in_lists_of_any_length(listed, fresh_kb, monkeypatch):
    """All facts with the numbers come, in the order of storage, and their scores by number."""
    facts = [FactRecord("is_old", (f"city {n}",), ("City",), Source.MODEL, n / 10) for n in range(6)]
    fresh_kb.add_facts(facts)
    monkeypatch.setattr(argument_index, "_LISTED", listed)

    assert facts_at(fresh_kb, [6, 1, 4, 3, 2]) == [facts[n] for n in (0, 1, 2, 3, 5)]
    scores = scores_at(fresh_kb, {5, 2, 6})
    assert {ref: (fact.arguments, fact.probability) for ref, fact in scores.items()} == {
        2: (("",), 0.1), 5: (("",), 0.4), 6: (("",), 0.5),
    }  # fmt: skip


@pytest.mark.parametrize("cell", ["{", "5", "null", "x"])
def test_a_damaged_cell_of_types_gives_its_fact_no_type(cell, fresh_kb):
    """The index goes on with the sound facts; who reads the damaged one whole is told."""
    fresh_kb.add_facts([FactRecord("is_old", (name,), ("City",), Source.GIVEN) for name in ("Ur", "Troy")])
    fresh_kb.database.conn.execute("UPDATE facts SET types = ? WHERE rowid = 1", (cell,))

    index = ArgumentIndex(fresh_kb)
    assert [index.types_of("is_old/1", name) for name in ("Ur", "Troy")] == [set(), {"City"}]
    assert index.typed_values("is_old/1", bool) == {("Troy", "City")}
    with pytest.raises(HapaxError, match="was not written by Hapax"):
        fresh_kb.facts()
