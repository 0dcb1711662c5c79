"""The language's page is made from the grammar and the tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_fixture import invoke

from hapax.commands.console import RULES_REJECTED
from hapax.grammar.checks import FAULTS
from hapax.grammar.faults import KB_FAULTS, MODEL_FAULTS
from hapax.grammar.hints import FORM_HINTS, GOAL_HINTS, UNREADABLE
from hapax.grammar.parser import parse_library
from hapax.grammar.reference import language_page

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
SECTIONS = re.findall(
    r"^#### (HPX\d{3}) ([^\n]+)\n\n(?:[^`\n][^\n]*\n\n)?```\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL
)


def test_the_page_is_what_the_module_makes() -> None:
    """The page is up to date; otherwise run `make docs`."""
    assert language_page() == PAGE


def test_the_module_prints_the_page() -> None:
    """The command that makes the page writes it to standard output."""
    printed = subprocess.run(
        [sys.executable, "-m", "hapax.grammar.reference"], cwd=ROOT, capture_output=True, check=True
    ).stdout

    assert printed.decode() == PAGE


def test_every_code_in_the_sources_is_on_the_page_once_with_an_example() -> None:
    """The page explains every code in the sources, and no others."""
    sources = [
        path
        for path in ROOT.rglob("*.p[yl]")
        if not any(part == "tests" or part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]
    written = {code for path in sources for code in re.findall(r"HPX\d{3}", path.read_text(encoding="utf-8"))}

    assert [code for code, _, _ in SECTIONS] == sorted(written)


def test_every_entry_of_the_tables_is_on_the_page() -> None:
    """The page has a section for each kind of fault, with its name and its example, long ones shortened."""
    entries = {
        **{entry.code: (entry.label, entry.examples[0]) for entry in (*FORM_HINTS, *GOAL_HINTS)},
        **{
            fault.code: (f"{fault.name} ({fault.severity})", fault.example)
            for fault in (*FAULTS, *KB_FAULTS, *MODEL_FAULTS)
        },
    }
    shown = {code: (name, example.removesuffix("...").strip()) for code, name, example in SECTIONS}

    assert shown.keys() == entries.keys()
    assert all(shown[code][0] == name for code, (name, _) in entries.items())
    assert all(example.startswith(shown[code][1]) for code, (_, example) in entries.items())


@pytest.mark.parametrize("command", UNREADABLE.examples)
def test_the_example_of_an_unreadable_file_is_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that stands for HPX060 is refused with that code and no other."""
    monkeypatch.chdir(tmp_path)
    result = invoke(*command.split()[1:])

    assert result.exit_code == RULES_REJECTED
    assert re.findall(r"HPX\d{3}", result.output) == [UNREADABLE.code]


def test_the_tour_parses() -> None:
    """The example at the top of the page is a rule file."""
    example = re.findall(r"```\n(.*?)```", language_page(), re.DOTALL)[0]

    assert len(parse_library([("tour", example)]).rules) == 2
