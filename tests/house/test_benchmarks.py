"""Each benchmark runs from end to end at a tiny size, beside the peers that are installed. Nothing is timed."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_prints_its_figures_and_writes_them(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every work has a figure of Hapax, in the table and in the file."""
    main([name, "--size", "tiny", "--turns", "1", "-o", str(tmp_path / "figures.json")])

    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))["figures"]
    assert {figure["work"] for figure in figures} == {figure["work"] for figure in figures if figure["by"] == "hapax"}
    assert all(figure["value"] is not None for figure in figures)
    assert "hapax" in capsys.readouterr().out
