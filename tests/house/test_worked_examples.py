"""The worked examples of docs/architecture.md: carried out in a copy of the repository, they do what the page says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api", "commands", "rules", "hapax")

WORLD = """
oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?".
given eats(Person, Food): "[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?".
given may_eat(Person, Dish): "[1] may eat [2]" / "[1] may not eat [2]" / "may [1] eat [2]?".
@name may
eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)
"""
LONG = (
    " & ".join(f"has_part(Thing A, Part {letter})" for letter in "BCDEFGHIJKLM") + " -> is_complex(Thing A, Part B)\n"
)


@dataclass(frozen=True)
class Example:
    """A section of the page: new files, edits as (path, diff), and commands with words of their output."""

    title: str
    new_files: dict[str, str]
    edits: list[tuple[str, str]]
    commands: list[tuple[str, list[str]]]


def examples() -> list[Example]:
    _, _, section = PAGE.partition("## Three changes, worked out")
    found = []
    for part in section.split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        new_files = dict(re.findall(r"New file `([^`]+)`:\n\n```python\n(.*?)```", text, re.DOTALL))
        edits = re.findall(r"In `([^`]+)`:\n\n```diff\n(.*?)```", text, re.DOTALL)
        commands: list[tuple[str, list[str]]] = []
        for line in "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL)).splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
        found.append(Example(title, new_files, edits, commands))
    return found


def edited(text: str, diff: str) -> str:
    """The text after one hunk: the lines with a blank or minus, found once, become those with a blank or plus."""
    lines = diff.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if line[:1] != "+")
    after = "".join(line[1:] + "\n" for line in lines if line[:1] != "-")
    assert text.count(before) == 1, f"the page shows lines that are not there, or not once:\n{before}"
    return text.replace(before, after)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the program, with small rule files to try it on."""
    for room in ROOMS:
        # With the bytecode, which Python takes for the unchanged files; compiling takes longer than the commands.
        shutil.copytree(ROOT / room, tmp_path / room, symlinks=True, ignore=shutil.ignore_patterns("*.pyc.*"))
    for name in ("cli.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "world.rules").write_text(WORLD, "utf-8")
    (tmp_path / "long.rules").write_text(LONG, "utf-8")
    return tmp_path


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_a_worked_example_does_what_it_says(example: Example, copy: Path) -> None:
    """The files of the example, changed as the page shows, make its commands print what it shows."""
    for path, text in example.new_files.items():
        (copy / path).write_text(text, "utf-8")
    for path, diff in example.edits:
        (copy / path).write_text(edited((copy / path).read_text("utf-8"), diff), "utf-8")

    for command, expected in example.commands:
        words = [sys.executable, *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed = " ".join((done.stdout + done.stderr).split())
        assert [line for line in expected if line not in printed] == []
