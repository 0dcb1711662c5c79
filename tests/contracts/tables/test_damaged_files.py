"""Damages and changes from outside: `verify` names them, no command serves them, backups have none."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from worlds import copied

import hapax

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
