"""Metadata for Datasette: every query runs, and Datasette itself shows the described tables."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_fixture import EVERY_END, run
from money_fixture import RULES, WORLD

import hapax


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


def test_the_metadata_describe_the_file(database: Path) -> None:
    """Facets, labels and orders are columns, inner tables are hidden, and every query runs and shows sentences."""
    described = hapax.datasette_metadata(database)["databases"]["money"]
    shown = {}
    with closing(sqlite3.connect(database)) as connection:
        for name, table in described["tables"].items():
            columns = {column for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")}
            used = {*table.get("facets", ()), table.get("label_column"), table.get("sort_desc")} - {None}
            assert used <= columns, name
        for name, query in described["queries"].items():
            shown[name] = str(connection.execute(query["sql"], {"word": "KRONE"}).fetchall())

    assert {"_sqlite_migrations", "symbols"} <= {
        name for name, table in described["tables"].items() if table.get("hidden")
    }
    assert "then PersonX can pay with the Norwegian krone." in shown["statements_in_words"]
    assert "Norwegian krone" in shown["statements_with_word"]
    assert "euro" not in shown["statements_with_word"]
    assert "Norway uses the Norwegian krone" in shown["facts_in_words"]
    assert "euro" in shown["nearly_accepted"]
