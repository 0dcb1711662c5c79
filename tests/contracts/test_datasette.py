"""Metadata for Datasette: every query runs, and Datasette itself shows the described tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from cli_fixture import run

import hapax


def test_the_metadata_describe_the_file(database: Path, searched: Path) -> None:
    """Facets, labels and orders are columns, inner tables are hidden, and every query runs and shows sentences."""
    run("derive", searched.with_name("money.rules"), "--db", database)
    described = hapax.datasette_metadata(database)["databases"]["kb"]
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
