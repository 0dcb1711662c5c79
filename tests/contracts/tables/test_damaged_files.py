"""Files that are damaged, of another version, or that nobody may open."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from money_fixture import RULES, copied

import hapax

# --- damaged ----------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[3]
OWNS = hapax.parse_rules("given owns(Person, Thing)\n")
PROOFS = """\
symmetric borders/2.
closed borders/2.
oracle borders(Country, Country): "[1] borders [2]" / "[1] does not border [2]" / "does [1] border [2]?".
oracle has_area(Country, Number): "[1] has an area of [2] km2" / "[1] has no area of [2] km2" / "has [1] an area of [2]?".
given is_closed(Country): "[1] is closed" / "[1] is open" / "is [1] closed?".
aggregate neighbours(Country X, Number N) := N = count(Country Y: borders(X, Y)).
@generic none
can_drive(Country A, Country B) :- borders(Country A, Country B) & has_area(Country B, Number N) & N > 5.

@name drive
visits(Person X, Country A) & can_drive(Country A, Country B) & neighbours(Country A, Number K) & K > 0
-> might_see(Person X, Country B) unless is_closed(Country B)
"""


def change(path: Path, sql: str, *values: object) -> None:
    """Change rows behind Hapax's back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql, values).rowcount != 0


def relation(path: Path, predicate: str) -> str:
    """The table of a predicate's facts."""
    with closing(sqlite3.connect(path)) as connection:
        ((number,),) = connection.execute("SELECT number FROM relations WHERE predicate = ?", (predicate,))
    return f"_relation_{number}"


def damages(path: Path, *options: object) -> list[dict[str, Any]]:
    """The damages that `verify` lists; its exit code says whether there is anything."""
    result = invoke("kb", "verify", "--db", path, *options, "--json")
    found = json.loads(result.stdout)["damages"]
    assert result.exit_code == (1 if found else 0)
    return found  # type: ignore[no-any-return]


@pytest.fixture
def changed(database: Path) -> Path:
    """The same, with the currency of Norway replaced by arsenic."""
    change(database, "UPDATE symbols SET symbol = replace(symbol, 'Norwegian krone', 'arsenic')")
    return database


# --- changed rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("why", "uses_currency('Norway', 'arsenic')"),
        ("export", "-o", "-"),
        ("data", "dataset", "dataset", "--in-both", "keep"),
        ("data", "merge", "kb.db", "--db", "other.db"),
        ("kb", "backup", "copy.db"),
    ],
)
def test_a_changed_fact_is_served_by_no_command(
    changed: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with exit code 1, names the row and its content, and writes nothing; rows that it does not use may be so."""
    monkeypatch.chdir(changed.parent)
    result = invoke(*words, *(() if "--db" in words else ("--db", changed)))

    assert result.exit_code == 1, result.output
    assert "arsenic" in result.stderr
    assert "arsenic" not in result.stdout
    assert not {"report.html", "dataset", "copy.db"} & {path.name for path in changed.parent.iterdir()}
    assert [(damage["table"], "arsenic" in damage["content"]) for damage in damages(changed)] == [("facts", True)]
    assert "Oslo" in run("query", "is_a_city_in(X, 'Norway')", "--db", changed).stdout


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (
            "statements SET substitution = replace(substitution, 'krone', 'arsenic')",
            ("data", "dataset", "out", "--in-both", "keep"),
        ),
        ("statements SET substitution = 'null'", ("report", "-o", "page.html")),
        ("statements SET log_likelihood = 9e999", ("report", "-o", "page.html")),
        ("fact_origins SET probability = 9e999", ("data", "dataset", "out", "--in-both", "keep")),
        ("fact_origins SET probability = -0.1", ("export", "-o", "-")),
        ("assessments SET score = 9e999", ("why", "uses_currency('Norway', 'Norwegian krone')")),
    ],
)
def test_an_impossible_cell_is_told(
    database: Path, update: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed values, infinite scores, impossible probabilities and lists that are none end a command; `verify` lists them."""
    change(database, f"UPDATE {update.format(relation(database, 'uses_currency'))}")
    monkeypatch.chdir(database.parent)
    result = invoke(*words, "--db", database)

    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert damages(database)


@pytest.mark.parametrize(
    ("change_by", "is_conflict"), [(0.0, False), (1e-9, False), (1e-4, True), (0.05, True), (0.5, True)]
)
def test_a_merge_reports_scores_that_differ(
    database: Path, tmp_path: Path, change_by: float, is_conflict: bool
) -> None:
    """Each score that the files have twice is reported with both values, unless they differ in their last digits only."""
    other = copied(database, tmp_path / "other.db")
    change(other, "UPDATE assessments SET score = score - ? WHERE score > 0.9", change_by)
    with closing(sqlite3.connect(database)) as connection:
        ((changed,),) = connection.execute("SELECT count(*) FROM assessments WHERE score > 0.9")
    report = json.loads(run("data", "merge", other, "--db", database, "--json").stdout)

    kinds = [conflict["kind"] for conflict in report["conflicts"]]
    assert kinds == ["assessments"] * (changed if is_conflict else 0)
    assert all(len(set(conflict["verdicts"])) == 2 for conflict in report["conflicts"])


def test_flipped_bits_in_the_schema_are_told(searched: Path, tmp_path: Path) -> None:
    """Whatever they hit, the file is read or refused by an error of Hapax."""
    content = searched.read_bytes()
    places = [match.start() for match in re.finditer(b"CREATE ", content)]
    path, refused = tmp_path / "kb.db", 0
    for seed in range(40):
        stream = random.Random(seed)
        flipped = bytearray(content)
        flipped[stream.choice(places) + stream.randrange(-20, 80)] ^= 1 << stream.choice((2, 7))
        path.write_bytes(flipped)
        try:
            with hapax.KnowledgeBase(path, read_only=True) as kb:
                hapax.stats(kb)
        except hapax.HapaxError:
            refused += 1

    assert refused > 20


def test_a_broken_index_and_a_missing_reference_are_named(database: Path, tmp_path: Path) -> None:
    """SQLite's own check is part of `verify`; a candidate that was deleted shows in the facts that rest on it."""
    missing = copied(database, tmp_path / "missing.db")
    change(missing, "DELETE FROM candidates")
    with closing(sqlite3.connect(database)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'idx_statements_rule'")
        ((rule,),) = connection.execute("SELECT min(rule) FROM statements")
        ((size,),) = connection.execute("PRAGMA page_size")
    with database.open("r+b") as stream:
        stream.seek((page - 1) * size)
        content = stream.read(size)
        stream.seek((page - 1) * size)
        stream.write(content.replace(rule.encode(), rule.upper().encode(), 1))

    assert {damage["table"] for damage in damages(database)} == {"SQLite"}
    assert {damage["table"] for damage in damages(missing)} == {"facts"}


# --- stored proofs ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Statements whose proofs have facts, rules, declarations, aggregates, comparisons and exceptions."""
    folder = tmp_path_factory.mktemp("proofs")
    (folder / "drive.rules").write_text(PROOFS, "utf-8")
    options = ("-m", "simulated", "--values", 4, "--beam", 4, "--no-progress", "--db", folder / "kb.db")
    run("search", folder / "drive.rules", *options)
    return folder / "kb.db"


@pytest.fixture
def proved(proofs: Path, tmp_path: Path) -> Path:
    """A copy of `proofs`."""
    return copied(proofs, tmp_path / "kb.db")


@pytest.mark.parametrize(
    ("before", "after", "is_damage"),
    [
        ('"by":"fact"', '"by":"given"', False),  # who states a fact may change later
        ('"by":"fact"', '"by":"computed"', True),
        ('"predicate":"might_see"', '"predicate":"must_see"', True),
        ('"operator":">"', '"operator":"<"', True),
        ('"fact":"', '"fact":"0', True),
        ('"by":"assumption"', '"by":"fact"', True),
        ('"rule":"drive"', '"rule":"fly"', True),
        ('{"steps":', '{"step":', True),
    ],
)
def test_a_changed_step_of_a_proof_is_named(proved: Path, before: str, after: str, is_damage: bool) -> None:
    """A proof that was altered is listed with its statement, and the others are not."""
    with closing(sqlite3.connect(proved)) as connection:
        key, proof = connection.execute("SELECT key, proof FROM statements WHERE instr(proof, ?)", (before,)).fetchone()
        select = "SELECT id, conclusion FROM statements WHERE key = ?"
        identity, conclusion = connection.execute(select, (key,)).fetchone()
    change(proved, "UPDATE statements SET proof = ? WHERE key = ?", proof.replace(before, after, 1), key)
    found = damages(proved)

    assert [(damage["table"], damage["row"]) for damage in found] == [("statements", identity)] * is_damage
    assert all(conclusion in damage["content"] and damage["reason"] for damage in found)


def test_stored_proofs_replay_also_after_their_rule_was_rewritten(proved: Path) -> None:
    """Those of each kind are found as a search stored them; of a rule with another premise they meet the facts alone."""
    result = json.loads(run("kb", "verify", "--db", proved, "--json").stdout)
    with closing(sqlite3.connect(proved)) as connection:
        text = "".join(proof for (proof,) in connection.execute("SELECT proof FROM statements"))
    rules = proved.with_name("other.rules")
    rules.write_text(PROOFS.replace("has_area(Country B, Number N) & N > 5", "is_closed(Country B)"), "utf-8")
    with hapax.KnowledgeBase(proved) as kb:
        hapax.keep_rules(kb, rules)
        rewritten = hapax.verify(kb)

    assert (result["clean"], result["damages"], result["rewritten"]) == (True, [], [])
    assert all(f'"by":"{by}"' in text for by in ("fact", "rule", "declaration", "computed", "negation", "assumption"))
    assert rewritten.is_clean
    assert rewritten.rewritten


def test_what_a_proof_lacks_is_named(proved: Path, tmp_path: Path) -> None:
    """A fact that is gone without a withdrawal; not a fact that was withdrawn."""
    gone = copied(proved, tmp_path / "gone.db")
    with hapax.KnowledgeBase(proved) as kb:
        (rested,) = kb.sql("SELECT fact_id FROM statement_facts WHERE fact_id <> '' LIMIT 1")
        kb.withdraw(kb.facts_by_id(rested).values(), "", "user")
    with closing(sqlite3.connect(gone)) as connection, connection:
        select = "SELECT fact_id, count(*) FROM statement_facts WHERE fact_id <> '' GROUP BY fact_id ORDER BY 2 LIMIT 1"
        fact, statements = connection.execute(select).fetchone()
        for (number,) in connection.execute("SELECT number FROM relations").fetchall():
            connection.execute(f"DELETE FROM _relation_{number} WHERE id = ?", (bytes.fromhex(fact),))  # noqa: S608

    assert [damage for damage in damages(proved) if damage["table"] == "statements"] == []
    assert len([damage for damage in damages(gone) if damage["table"] == "statements"]) == statements


# --- backups ----------------------------------------------------------------------------------------------------------


def owning(path: Path, *things: str) -> Path:
    with hapax.KnowledgeBase(path) as kb:
        hapax.add_facts(kb, "owns", [("Ann", thing) for thing in things], OWNS)
    return path


def things(path: Path) -> set[str]:
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        return {str(fact.arguments[1]) for fact in kb.facts()}


def test_a_backup_taken_beside_a_writer_is_whole(tmp_path: Path) -> None:
    """While another connection goes on writing, the copy has a beginning of what was written, is one file, and verifies."""
    database = owning(tmp_path / "kb.db", "thing 0")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set() or number < 5:
            number += 1
            owning(database, f"thing {number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        hapax.backup(database, tmp_path / "copy.db")
    finally:
        stop.set()
        writer.join()

    copied_things = things(tmp_path / "copy.db")
    assert copied_things == {f"thing {number}" for number in range(len(copied_things))} != set()
    assert damages(tmp_path / "copy.db") == []
    assert not list(tmp_path.glob("copy.db-*"))


def test_a_restored_backup_keeps_what_was_there(tmp_path: Path) -> None:
    """Restoring keeps each earlier file beside it by number, byte for byte if SQLite cannot read it, and leaves the backup."""
    database, copy = owning(tmp_path / "kb.db", "mill"), tmp_path / "copy.db"
    hapax.backup(database, copy)
    owning(database, "crane")
    first = hapax.restore_backup(copy, database)
    database.write_bytes(b"no database")
    second = hapax.restore_backup(copy, database)

    assert first is not None
    assert second is not None
    assert things(first) == {"mill", "crane"}
    assert second.read_bytes() == b"no database"
    assert things(database) == things(copy) == {"mill"}
    assert hapax.restore_backup(copy, tmp_path / "new.db") is None


def test_a_damaged_backup_restores_nothing(tmp_path: Path) -> None:
    """A backup with a changed row is refused, and so are one that is not there and a folder that is none."""
    database = owning(tmp_path / "kb.db", "mill")
    hapax.backup(database, tmp_path / "copy.db")
    change(tmp_path / "copy.db", "UPDATE symbols SET symbol = replace(symbol, 'mill', 'farm')")
    owning(database, "crane")

    for copy in ("copy.db", "none.db"):
        with pytest.raises(hapax.HapaxError, match=copy):
            hapax.restore_backup(tmp_path / copy, database)
    with pytest.raises(hapax.HapaxError, match="nowhere"):
        hapax.backup(database, tmp_path / "nowhere" / "copy.db")
    assert things(database) == {"mill", "crane"}


@contextmanager
def asking(database: Path) -> Any:
    """Another process that asks models for the file."""
    code = f"import hapax, sys\nwith hapax.KnowledgeBase({str(database)!r}) as kb, kb.asking():\n print(1, flush=True)\n sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            with suppress(OSError):
                process.communicate("")


@pytest.mark.slow
def test_a_file_for_which_models_are_asked_is_not_replaced(tmp_path: Path) -> None:
    """Restoring waits for a process that asks models for the file, and then says so."""
    database = owning(tmp_path / "kb.db", "mill")
    shutil.copy(owning(tmp_path / "copy.db", "crane"), tmp_path / "backup.db")
    with asking(database), pytest.raises(hapax.HapaxError, match="another process"):
        hapax.restore_backup(tmp_path / "backup.db", database)

    assert things(database) == {"mill"}


# --- opening ----------------------------------------------------------------------------------------------------------


CITIES = hapax.parse_rules("given is_old(City)\n")
Rows = dict[str, list[tuple[object, ...]]]


def add(path: Path, *cities: str) -> Path:
    with hapax.KnowledgeBase(path) as kb:
        hapax.add_facts(kb, "is_old", [(city,) for city in cities], CITIES)
    return path


def cities(path: Path) -> list[object]:
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        return sorted(fact.arguments[0] for fact in kb.facts())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}  # noqa: S608


def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    """Readers need not wait, and what was committed survives a power cut, whatever signs the name has."""
    with hapax.KnowledgeBase(tmp_path / "odd ?#% name.db") as kb:
        assert kb.sql("PRAGMA journal_mode") == [("wal",)]
        assert kb.sql("PRAGMA synchronous") == [(2,)]
    assert names(tmp_path) == ["odd ?#% name.db"]


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_knowledge_base_is_refused(tmp_path: Path, read_only: bool) -> None:
    """Texts, folders, pipes, devices, links in a circle and other programs' databases are named, and left as they are."""
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("no database at all" * 100, "utf-8")
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE notes (body)")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = text.read_bytes(), other.read_bytes()

    for path in (text, other, tmp_path, tmp_path / "pipe", tmp_path / "loop", tmp_path / "no" / "x.db"):
        with pytest.raises(hapax.HapaxError) as caught:
            hapax.KnowledgeBase(path, read_only=read_only)
        assert str(path) in str(caught.value)
    with pytest.raises(hapax.HapaxError, match="device"):
        hapax.KnowledgeBase("/dev/null", read_only=read_only)
    assert (text.read_bytes(), other.read_bytes()) == before


@pytest.mark.parametrize("added", [True, False])
def test_a_file_of_another_version_is_left_alone(tmp_path: Path, added: bool) -> None:
    """Of a later or an earlier version: the error names what the file knows, and how to take its facts along."""
    path = add(tmp_path / "kb.db", "Ur")
    with closing(sqlite3.connect(path)) as database, database:
        if not added:
            database.execute("DELETE FROM _sqlite_migrations")
        database.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('hapax', 'm999_later', '')"
        )
    before = rows(path)
    for read_only in (False, True):
        with pytest.raises(hapax.HapaxError, match=r"m999_later.*Update Hapax, or export"):
            hapax.KnowledgeBase(path, read_only=read_only)
    assert rows(path) == before


def test_reading_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    """A file that is not there is not made, writing is refused, and nothing stays beside a file that was read or merged."""
    path = tmp_path / "kb.db"
    with pytest.raises(hapax.HapaxError, match="no such knowledge base"):
        hapax.KnowledgeBase(path, read_only=True)
    assert names(tmp_path) == []

    add(path, "Ur")
    with hapax.KnowledgeBase(path, read_only=True) as kb, pytest.raises(hapax.HapaxError, match="may not be written"):
        hapax.add_facts(kb, "is_old", [("Troy",)], CITIES)
    with hapax.KnowledgeBase(add(tmp_path / "other.db", "Troy")) as kb:
        hapax.merge(kb, path)
    assert names(tmp_path) == ["kb.db", "other.db"]
    assert (cities(path), cities(tmp_path / "other.db")) == (["Ur"], ["Troy", "Ur"])


def test_a_reader_sees_what_was_there_before_and_leaves_a_writer_alone(tmp_path: Path) -> None:
    """In the middle of a transaction, and beside the log of a writer that was killed, which a reader keeps."""
    with hapax.KnowledgeBase(tmp_path / "a.db") as writer:
        hapax.add_facts(writer, "is_old", [("Ur",)], CITIES)
        with writer.transaction():
            hapax.add_facts(writer, "is_old", [("Troy",)], CITIES)
            assert cities(tmp_path / "a.db") == ["Ur"]
        assert cities(tmp_path / "a.db") == ["Troy", "Ur"]
        for ending in ("", "-wal"):
            (tmp_path / f"b.db{ending}").write_bytes((tmp_path / f"a.db{ending}").read_bytes())
    log = (tmp_path / "b.db-wal").read_bytes()

    assert cities(tmp_path / "b.db") == ["Troy", "Ur"]
    assert (tmp_path / "b.db-wal").read_bytes() == log


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_can_be_read(tmp_path: Path) -> None:
    """A knowledge base on a read-only medium opens for reading; for writing, the message says what to do."""
    path = add(tmp_path / "kb.db", "Ur")
    for place in (path, tmp_path):
        place.chmod(place.stat().st_mode & 0o555)
    try:
        assert cities(path) == ["Ur"]
        for name in ("kb.db", "new.db"):
            with pytest.raises(hapax.HapaxError, match=r"may not be written|cannot be opened or created"):
                add(tmp_path / name, "Troy")
    finally:
        tmp_path.chmod(0o755)


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    add(path.with_name("other.db"), "Ur").replace(path)


@pytest.mark.parametrize("move", [delete, rename, replace])
def test_a_file_that_is_moved_away_ends_a_search_with_every_answer_safe(
    tmp_path: Path, move: Callable[[Path], None]
) -> None:
    """A file renamed, deleted or replaced under a run ends it with an error, and a copy beside it has all answers."""
    library, path = hapax.parse_rules(RULES), tmp_path / "run.db"
    models = hapax.open_models("simulated:3", library=library)
    moved: list[set[str]] = []
    with hapax.KnowledgeBase(path) as kb:

        def progress(_: hapax.Progress) -> None:
            if len(kb.calls()) > 4 and not moved:
                moved.append(set(kb.calls()))
                move(path)

        with pytest.raises(hapax.HapaxError, match="renamed, deleted or replaced"):
            hapax.search(library, kb, models, progress=progress)

    (copy,) = tmp_path.glob("run-rescued-*.db")
    with hapax.KnowledgeBase(copy) as rescued:
        assert moved[0] <= rescued.calls().keys()


# --- standard streams and places of output ----------------------------------------------------------------------------


def ended(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line of Hapax, run by a shell."""
    variables = {**os.environ, **environment, "HAPAX_DB": "kb.db", "PYTHONPATH": str(Path(__file__).parents[3])}
    line = f"'{sys.executable}' -m hapax.cli {command}"
    return subprocess.run(line, shell=True, check=False, capture_output=True, env=variables, cwd=folder)  # noqa: S602


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(tmp_path: Path, closed: str) -> None:
    """The command does its work as with /dev/null in their place, and writes nothing else into its file."""
    path = add(tmp_path / "kb.db", "Ur")
    result = ended(f"data stats {closed}", tmp_path)

    assert result.returncode == 0
    assert b"Traceback" not in result.stderr
    with hapax.KnowledgeBase(path) as kb:
        assert hapax.verify(kb).is_clean


def test_narrow_output_shows_escapes_and_refuses_exports(tmp_path: Path) -> None:
    """Signs that the encoding of stdout lacks are escapes in answers, those of JSON in JSON; an export is never changed."""
    add(tmp_path / "kb.db", "Łódź 😀")
    (tmp_path / "old.rules").write_text("given is_old(City)\n", "utf-8")
    shown = ended("query 'is_old(X)' --rules old.rules", tmp_path, PYTHONIOENCODING="latin-1")
    found = ended("query 'is_old(X)' --rules old.rules --json", tmp_path, PYTHONIOENCODING="latin-1")
    exported = ended("export -o -", tmp_path, PYTHONIOENCODING="latin-1")

    assert shown.returncode == 0, shown.stderr
    assert b"\\u0141\xf3d\\u017a \\U0001f600" in shown.stdout
    assert json.loads(found.stdout)["answers"] == [{"X": "Łódź 😀"}]
    assert exported.returncode == 1
    assert b"PYTHONIOENCODING=utf-8" in exported.stderr
    assert b"Traceback" not in exported.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("export", "-o"),
        ("data", "dataset"),
    ],
)
def test_links_in_a_circle_are_no_place_for_output(tmp_path: Path, command: tuple[str, ...]) -> None:
    """They are named like any other place that cannot be written."""
    add(tmp_path / "kb.db", "Ur")
    (tmp_path / "loop").symlink_to("loop")
    result = invoke(*command, tmp_path / "loop", "--db", tmp_path / "kb.db")

    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "loop" in result.stderr


def test_a_new_file_has_few_tables_and_the_page_tells_of_each(tmp_path: Path) -> None:
    """It has at most twenty tables and views, each of which the page on the knowledge base describes."""
    path = tmp_path / "kb.db"
    hapax.KnowledgeBase(path).close()
    with closing(sqlite3.connect(path)) as connection:
        found = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        }
    page = (Path(__file__).parents[3] / "docs" / "reference" / "knowledge-base.md").read_text("utf-8")

    assert len(found) <= 20
    assert sorted(name for name in found if f"`{name}`" not in page) == []
