"""The tutorial: its commands, carried out in a copy of `examples/airports`, print what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from cli_fixture import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "airports"


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page, with the lines that it prints."""
    blocks = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```$", PAGE, re.MULTILINE)
    return [(command, [line for line in shown.splitlines() if line.strip()]) for command, shown in blocks]


def plain(text: str) -> str:
    """The text with single spaces, since columns are as wide as the terminal, and without the seconds that steps took."""
    return re.sub(r"\b\d+\.\d\d\b", "0.00", " ".join(text.split()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "airports")
    monkeypatch.chdir(tmp_path / "airports")
    return tmp_path / "airports"


def test_every_command_prints_what_the_page_shows(folder: Path) -> None:
    """Ten commands lead from the table to statements with proofs, a report and a dataset."""
    assert len(steps()) == 10
    for command, shown in steps():
        program, *words = shlex.split(command)
        output = plain(run(*words).output)

        assert program == "hapax"
        assert [line for line in shown if plain(line) not in output] == [], command
    assert {"air.db", "air.html", "air"} <= {path.name for path in folder.iterdir()}


def test_the_page_shows_the_files_of_the_example() -> None:
    """Rules and mapping stand on the page as they are, and the table with its first rows."""
    table = (EXAMPLE / "airports.csv").read_text("utf-8").splitlines()
    assert (EXAMPLE / "airports.rules").read_text("utf-8") in PAGE
    assert (EXAMPLE / "airports.yaml").read_text("utf-8") in PAGE
    assert "\n".join(table[:5]) in PAGE
    assert f"a table of {len(table) - 1} airports" in PAGE
