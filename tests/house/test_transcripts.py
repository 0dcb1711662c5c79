"""Whole sessions at the command line: every line that a command prints stands in the transcript of its scene."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from cli_fixture import invoke

SCENES = Path(__file__).parents[1] / "transcripts"
TRANSCRIPT = "transcript.txt"

CHANGING = [
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b\d+\.\d+ s\b"), "SECONDS s"),
    (re.compile(r"(?m)^(\w+ +\d+ +)\d\.\d+(?= |$)"), r"\1SECONDS"),
    (re.compile(r'(?<=seconds": )[\d.e-]+'), '"SECONDS"'),
    # The root of a knowledge base also covers the times of its rows.
    (re.compile(r"\b[0-9a-f]{64}\b"), "ROOT"),
    (re.compile(r" +$", re.M), ""),
]
"""Patterns of words that differ from run to run, and the words in their place."""


def commands(transcript: str) -> list[str]:
    """The command lines of a transcript."""
    return [line.removeprefix("$ hapax ") for line in transcript.splitlines() if line.startswith("$ hapax ")]


def played(command: str) -> str:
    """The command line with all that it prints."""
    result = invoke(*shlex.split(command))
    printed = result.output
    for pattern, word in CHANGING:
        printed = pattern.sub(word, printed)
    ending = f"[exit code {result.exit_code}]\n" if result.exit_code else ""
    return f"$ hapax {command}\n{printed}{ending}\n"


@pytest.mark.parametrize("scene", sorted(folder.name for folder in SCENES.iterdir()))
def test_a_session_prints_what_its_transcript_has(scene: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of a scene, in order, in a folder with its files, prints what it printed when it was read over."""
    transcript = SCENES / scene / TRANSCRIPT
    shutil.copytree(SCENES / scene, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(TRANSCRIPT))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    found = "".join(map(played, commands(transcript.read_text("utf-8"))))

    if os.environ.get("HAPAX_RENEW_GOLDEN"):
        transcript.write_text(found, encoding="utf-8")
    assert found == transcript.read_text("utf-8")
