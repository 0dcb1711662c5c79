"""Standard streams that are closed, or too narrow for the text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        (tmp_path / "old.rules").write_text("given is_old(City)\n", "utf-8")
        kb.add_facts([FactRecord("is_old", ("Łódź 😀",), ("City",), Source.GIVEN)])
    return path


def ended(command: str, database: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line of Hapax, run by a shell."""
    line = f"'{sys.executable}' -m hapax.cli {command}"
    variables = {**os.environ, **environment, "HAPAX_DB": str(database)}
    return subprocess.run(line, shell=True, check=False, capture_output=True, env=variables)  # noqa: S602  ours


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(database: Path, closed: str) -> None:
    """The command does its work as with /dev/null in their place, and writes nothing else into its file."""
    result = ended(f"stats {closed}", database)

    assert result.returncode == 0
    assert b"Traceback" not in result.stderr
    assert ended("verify", database).returncode == 0


def test_narrow_output_shows_escapes(database: Path) -> None:
    """Signs that the encoding of stdout lacks are printed as escapes of JSON."""
    result = ended(
        f"query 'is_old(X)' --rules '{database.with_name('old.rules')}'", database, PYTHONIOENCODING="latin-1"
    )

    assert result.returncode == 0, result.stderr
    assert b"\\u0141\xf3d\\u017a \\ud83d\\ude00" in result.stdout


def test_exports_are_never_changed(database: Path) -> None:
    """An export that stdout's encoding cannot hold is an error with a remedy."""
    result = ended("export -o -", database, PYTHONIOENCODING="latin-1")

    assert result.returncode == 1
    assert b"Set PYTHONIOENCODING=utf-8" in result.stderr
    assert b"Traceback" not in result.stderr


def test_a_symlink_loop_is_no_place_for_output(database: Path, tmp_path: Path) -> None:
    """It is told like any other place that cannot be written."""
    (tmp_path / "loop").symlink_to("loop")
    result = ended(f"export -o '{tmp_path / 'loop'}'", database)

    assert result.returncode == 1
    assert b"cannot be followed" in result.stderr


def test_a_symlink_loop_is_no_place_for_a_dataset(database: Path, tmp_path: Path) -> None:
    """Nor for a folder of files."""
    (tmp_path / "loop").symlink_to("loop")
    result = ended(f"dataset '{tmp_path / 'loop'}'", database)

    assert result.returncode == 1
    assert b"Symlink loop" in result.stderr
    assert b"Traceback" not in result.stderr
