"""The benchmarks of rules and of starting: what is generated is what they say, and what they measure is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import startup
from benchmarks.libraries import SHAPES, library_text
from benchmarks.rules import STAGES, main
from hapax import cli
from hapax.grammar.checks import check_library
from hapax.grammar.errors import Severity
from hapax.grammar.parser import parse_library

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shape", SHAPES)
def test_generated_rules_are_distinct_and_without_errors(shape: str) -> None:
    """So many rules as asked for, each a rule that `check` accepts, and the same text for the same seed."""
    text = library_text(shape, 20, seed=3)
    library = parse_library([("t", text)])

    assert len(library.rules) == 20
    assert [finding for finding in check_library(library) if finding.severity is Severity.ERROR] == []
    assert text == library_text(shape, 20, seed=3) != library_text(shape, 20, seed=4)


def test_each_stage_is_measured_at_each_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command prints the time for each rule and writes all figures with the machine's description."""
    written = tmp_path / "rules.json"

    assert main(["--rules", "20", "--shape", "duplicates", "-o", str(written)]) == 0

    figures = json.loads(written.read_text("utf-8"))
    (shape,) = figures["shapes"]
    assert [measured["rules"] for measured in shape["measured"]] == [1, 2, 20]
    assert all(set(measured["seconds"]) == set(STAGES) for measured in shape["measured"])
    assert shape["measured"][-1]["findings"] == 18
    assert set(shape["growth"]) == set(STAGES)
    assert figures["machine"]["cores"]
    assert "duplicates" in capsys.readouterr().out


def test_starting_is_measured_beside_a_bare_interpreter(tmp_path: Path) -> None:
    """Help and a real run of a command, each with its ratio and with the libraries that its process imports."""
    written = tmp_path / "startup.json"

    assert startup.main(["--turns", "1", "--only", "check", "-o", str(written)]) == 0

    starts = {start["command"]: start for start in json.loads(written.read_text("utf-8"))["measured"]}
    assert list(starts) == ["check --help", "check one.rules"]
    assert all(start["seconds"] > 0 and start["ratio"] > 0 for start in starts.values())
    assert starts["check one.rules"]["imports"] == ["lark", "rich"]


def test_no_help_imports_a_heavy_library() -> None:
    """The help of every command, also of those that train or plot, is there without any library but click and rich."""
    code = f"""
import sys, cli
from click.testing import CliRunner
for words in {list(startup.leaves(cli.main))}:
    assert CliRunner().invoke(cli.main, [*words, "--help"]).exit_code == 0, words
print([name for name in {set(startup.LIBRARIES) - {"rich"}} if name in sys.modules])
"""
    folder = Path(cli.__file__).parent
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=folder)

    assert ended.stdout == "[]\n", ended.stderr
