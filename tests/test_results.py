"""The page of results with a real model: all parts, resumed, with what is missing named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.results.__main__ import main

pytestmark = pytest.mark.slow

PAIRS = (
    ("(kills.1,kills.2) aspirin::medicine pain::thing", "(relieves.1,relieves.2) aspirin::medicine pain::thing", True),
    ("(relieves.1,relieves.2) aspirin::medicine pain::thing", "(kills.1,kills.2) aspirin::medicine pain::thing", False),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with two directional pairs and without Winograd schemas."""
    folder = tmp_path / "data" / "levyholt" / "entgraph"
    folder.mkdir(parents=True)
    lines = ["\t".join(map(str, pair)) for pair in PAIRS]
    (folder / "dev_dir_rels.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path / "data"


@pytest.mark.embedded
def test_a_run_writes_every_part_and_goes_on_where_it_was(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run measures all parts and names the data it lacks; the same run again measures nothing that is stored."""
    page = tmp_path / "docs" / "results.md"
    words = ["--model", "embedded", "--share", "0.01", "--data", data, "--folder", tmp_path / "run", "--page", page]
    monkeypatch.setattr(sys, "argv", ["results", *map(str, words)])

    main()
    first, text = capsys.readouterr().err, page.read_text("utf-8")
    page.unlink()
    main()
    again = capsys.readouterr().err

    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(titles) == 6
    assert "| atlas, raw |" in text
    assert "Not measured: cr_wsc/wsc_273_annotated_final.csv is not in the folder that --data names." in text
    assert "do not quote these figures" in text
    assert (page.parent / "results" / "figure-3.svg").exists()
    assert "Critic of facts" in first
    assert "Critic of facts" not in again
    assert page.read_text("utf-8") == text


def test_results_of_another_model_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder keeps the results of one model; another model is refused with the remedy."""
    (tmp_path / "settings.json").write_text('{"model": "embedded", "share": 1.0}\n', "utf-8")
    monkeypatch.setattr(sys, "argv", ["results", "--model", "frequency", "--folder", str(tmp_path)])

    with pytest.raises(SystemExit, match=r"holds the results of .*embedded.*Name another --folder, or delete this one"):
        main()
