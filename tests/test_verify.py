"""`hapax verify`: a knowledge base that was changed or damaged from outside says so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.kb.records import AtomPattern, CallRecord, Candidate, FactRecord, Question, Source
from hapax.kb.store import KnowledgeBase

QUESTION = Question((AtomPattern("is_in", (None, "paella")),), "Ingredient")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file with a fact, its candidate and its question."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        kb.add_questions([QUESTION])
        candidate = Candidate(QUESTION.id, "saffron", "saffron", "call", 0, None)
        kb.add_candidates([candidate])
        types = ("Ingredient", "Dish")
        kb.add_facts([FactRecord("is_in", ("saffron", "paella"), types, Source.MODEL, 0.9, candidate.id)])
        kb.record_calls([CallRecord("call", "knowledge", "tiny", {}, {})])
    return path


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def test_an_untouched_file_is_clean(database: Path) -> None:
    """Nothing is listed for a file as Hapax wrote it."""
    result = invoke("verify", "--db", database)

    assert (result.exit_code, result.stdout.partition(" ")[2]) == (0, "rows checked, none damaged.\n")


def test_a_changed_row_is_named(database: Path) -> None:
    """A fact whose value was changed is listed with its table, key and content; others are not."""
    change(database, """UPDATE facts SET arguments = '["arsenic","paella"]'""")
    result = invoke("verify", "--db", database, "--json")
    (damage,) = json.loads(result.stdout)["damages"]

    assert result.exit_code == 1
    assert damage["table"] == "facts"
    assert "arsenic" in damage["content"]
    assert "arsenic" in invoke("verify", "--db", database).stdout


def test_a_reference_to_a_missing_row_is_named(database: Path) -> None:
    """A deleted candidate shows in the fact that rests on it."""
    change(database, "DELETE FROM candidates")
    with KnowledgeBase(database, read_only=True) as kb:
        verification = hapax.verify(kb)

    assert [(damage.table, "candidates" in damage.reason) for damage in verification.damages] == [("facts", True)]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """An index that does not fit its table is found by SQLite's own check."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts([FactRecord("is_old", (f"city {number}",), ("City",), Source.GIVEN) for number in range(20)])
        page = kb.query("SELECT rootpage FROM sqlite_master WHERE name = 'idx_facts_predicate'")[0][0]
        size = kb.query("PRAGMA page_size")[0][0]
    with path.open("r+b") as stream:
        stream.seek((page - 1) * size)
        content = stream.read(size)
        stream.seek((page - 1) * size)
        stream.write(content.replace(b"is_old", b"is_odd", 1))
    result = invoke("verify", "--db", path, "--json")

    assert result.exit_code == 1, result.output
    assert {damage["table"] for damage in json.loads(result.stdout)["damages"]} == {"SQLite"}
