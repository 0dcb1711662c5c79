"""The benchmark of imports measures both ways with the same table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.imports import by_hapax, by_sqlite, main, write_table
from hapax.kb.store import KnowledgeBase

pytestmark = pytest.mark.slow


def test_both_ways_store_every_row(tmp_path: Path) -> None:
    """Each of the compared ways stores the same rows, so that their times can be compared."""
    table = tmp_path / "t.csv"
    write_table(table, 300)
    by_sqlite(table, tmp_path / "plain.db")
    by_hapax(table, tmp_path / "hapax.db")

    with KnowledgeBase(tmp_path / "hapax.db") as kb:
        assert kb.fact_counts() == {"lies_at/2": 300}


def test_the_ratio_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seconds, memory and the ratio come out as text and as JSON."""
    main(["--rows", "300", "-o", str(tmp_path / "figures.json")])
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))

    assert figures["rows"] == 300
    assert f"ratio: {figures['ratio']:.2f}" in capsys.readouterr().out
