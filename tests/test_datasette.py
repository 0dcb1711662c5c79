"""Metadata for Datasette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from cli_fixture import EVERY_END, run
from money_fixture import RULES, WORLD

import hapax
from hapax.kb import rows
from hapax.kb.metadata import DESCRIPTIONS


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search of a small world and a derivation, which makes inner tables."""
    folder = tmp_path_factory.mktemp("datasette")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency")
    run("search", folder / "money.rules", *models, "--db", folder / "money.db", "--no-progress", *EVERY_END)
    run("derive", folder / "money.rules", "--db", folder / "money.db")
    return folder / "money.db"


def test_every_table_for_readers_is_described() -> None:
    """Each table of records, and that of values, has a description; there is none for another table."""
    assert {*DESCRIPTIONS} == {table.name for table in rows.TABLES}


def test_the_command_describes_the_file(database: Path, tmp_path: Path) -> None:
    """The metadata names the file; facets, labels and orders are columns; inner tables are hidden."""
    run("datasette", "-o", tmp_path / "metadata.json", "--db", database)
    metadata = json.loads((tmp_path / "metadata.json").read_text("utf-8"))
    described = metadata["databases"]["money"]
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        assert metadata == hapax.datasette_metadata(database)
        assert set(kb.database.table_names()) == set(described["tables"])
        for name, table in described["tables"].items():
            columns = {column.name for column in kb.database[name].columns}
            used = {*table.get("facets", ()), table.get("label_column"), table.get("sort_desc")} - {None}
            assert used <= columns, name
    hidden = {name for name, table in described["tables"].items() if table.get("hidden")}
    assert {"_sqlite_migrations", "symbols", "statement_facts"} <= hidden


def test_the_queries_have_sentences(database: Path) -> None:
    """Every query runs, and those of statements, facts and near misses show the words of the small world."""
    queries = hapax.datasette_metadata(database)["databases"]["money"]["queries"]
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        shown = {}
        for name, query in queries.items():
            shown[name] = str(kb.database.conn.execute(query["sql"], {"word": "KRONE"}).fetchall())

    assert "then PersonX can pay with the Norwegian krone." in shown["statements_in_words"]
    assert "Norwegian krone" in shown["statements_with_word"]
    assert "euro" not in shown["statements_with_word"]
    assert "Norway uses the Norwegian krone" in shown["facts_in_words"]
    assert "euro" in shown["nearly_accepted"]
    assert "currency" in shown["rules_in_numbers"]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_datasette_shows_the_pages(database: Path, loop: asyncio.AbstractEventLoop) -> None:
    """Datasette itself lists the described tables, hides the inner ones, and answers the queries."""
    app = pytest.importorskip("datasette.app", reason="datasette is not installed")
    shown = app.Datasette([str(database)], metadata=hapax.datasette_metadata(database))

    def answered(path: str) -> dict:
        return loop.run_until_complete(shown.client.get(path)).json()

    listed = answered("/money.json")
    assert {table["name"] for table in listed["tables"] if not table["hidden"]} == {*DESCRIPTIONS}
    assert "rule" in answered("/money/statements.json")["facet_results"]
    word = urlencode({"word": "krone"})
    assert answered(f"/money/statements_with_word.json?{word}")["rows"]
