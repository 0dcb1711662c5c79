"""A row that another program changed is named by every command that would use it."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from browser_fixture import browsing
from cli_fixture import EVERY_END, invoke, run
from money_fixture import RULES, WORLD

from hapax.api.browser.app import Browser
from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search, with the atom of a fact about Norway changed to arsenic."""
    folder = tmp_path_factory.mktemp("changed")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency")
    run("search", folder / "money.rules", *models, "--db", folder / "kb.db", "--no-progress", *EVERY_END)
    return folder / "kb.db"


@pytest.fixture
def changed(searched: Path, tmp_path: Path) -> Path:
    """The same, with the currency of Norway replaced by arsenic."""
    path = tmp_path / "kb.db"
    shutil.copy(searched, path)
    execute(path, "UPDATE facts SET arguments = replace(arguments, 'Norwegian krone', 'arsenic')")
    return path


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount > 0


@pytest.mark.parametrize(
    "words",
    [
        ("query", "uses_currency('Norway', X)"),
        ("query", "uses_currency(X, Y)"),
        ("why", "uses_currency('Norway', 'arsenic')"),
        ("export", "-o", "-"),
        ("report", "-o", "report.html"),
        ("dataset", "dataset", "--in-both", "keep"),
        ("derive",),
    ],
)
def test_a_changed_fact_is_told_by_name(changed: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with exit code 1, and names the row, its content and the remedy; nothing serves it."""
    monkeypatch.chdir(changed.parent)
    result = invoke(*words, "--db", changed)

    assert result.exit_code == 1, result.output
    assert "arsenic" in result.stderr
    assert "hapax verify" in result.stderr
    assert "arsenic" not in result.stdout
    assert not (changed.parent / "report.html").exists()
    assert not (changed.parent / "dataset").exists()


def test_a_changed_statement_is_told_by_name(searched: Path, tmp_path: Path) -> None:
    """Values in a statement belong to its identity, too."""
    path = tmp_path / "kb.db"
    shutil.copy(searched, path)
    execute(path, "UPDATE statements SET substitution = replace(substitution, 'Norwegian krone', 'arsenic')")
    result = invoke("dataset", tmp_path / "dataset", "--in-both", "keep", "--db", path)

    assert result.exit_code == 1, result.output
    assert "arsenic" in result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("statements SET substitution = 'null'", ("report", "-o", "page.html")),
        ("statements SET log_likelihood = 9e999", ("report", "-o", "page.html")),
        ("facts SET probability = 9e999", ("dataset", "dataset", "--in-both", "keep")),
        ("facts SET probability = -0.1", ("export", "-o", "-")),
        ("assessments SET score = 9e999", ("why", "uses_currency('Norway', 'Norwegian krone')")),
    ],
)
def test_an_impossible_cell_is_told(
    searched: Path, tmp_path: Path, change: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Infinite scores, impossible probabilities and lists that are none end a command, and `verify` lists them."""
    path = tmp_path / "kb.db"
    shutil.copy(searched, path)
    execute(path, f"UPDATE {change}")
    monkeypatch.chdir(tmp_path)
    result = invoke(*words, "--db", path)

    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert "was not written by Hapax" in result.stderr
    assert invoke("verify", "--db", path).exit_code == 1


def test_flipped_bits_in_the_schema_are_told(searched: Path, tmp_path: Path) -> None:
    """Whatever they hit, the file is read or refused in a line."""
    content = searched.read_bytes()
    places = [match.start() for match in re.finditer(b"CREATE ", content)]
    path, refused = tmp_path / "kb.db", 0
    for seed in range(40):
        stream = random.Random(seed)
        flipped = bytearray(content)
        flipped[stream.choice(places) + stream.randrange(-20, 80)] ^= 1 << stream.choice((2, 7))
        path.write_bytes(flipped)
        try:
            with KnowledgeBase(path, read_only=True) as kb:
                kb.counts()
        except HapaxError:
            refused += 1

    assert refused > 20


def test_the_browser_names_a_changed_fact(changed: Path) -> None:
    """Pages that show it say so."""
    with browsing(Browser(changed)) as client:
        text = client.get("/entity?name=Norway").text

    assert "was not written by Hapax" in text


def test_rows_that_are_not_used_do_not_matter(changed: Path) -> None:
    """A query about other facts is answered: only rows that a command uses are checked."""
    result = run("query", "is_a_city_in(X, 'Norway')", "--db", changed)

    assert "Oslo" in result.stdout
