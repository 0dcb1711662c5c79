"""The benchmark of the browser's pages makes a knowledge base whose pages all open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.browsing import PATHS, main

pytestmark = pytest.mark.slow


def test_every_page_is_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each page of the list opens, and its times come out as text and as JSON."""
    main(["--statements", "300", "--db", str(tmp_path / "large.db"), "-o", str(tmp_path / "figures.json")])
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))

    assert [page["page"] for page in figures["pages"]] == list(PATHS)
    assert capsys.readouterr().out.count(" s  ") == len(PATHS)
