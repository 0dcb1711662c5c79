"""Diagnostics as `check` prints them: one golden file for each code, and ranges that hold what they mark."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.text import Text

from hapax.cli import main
from hapax.commands.console import visible
from hapax.commands.excerpts import Excerpts
from hapax.grammar.checks import FAULTS, check_read
from hapax.grammar.errors import Diagnostic, GoalRejected
from hapax.grammar.faults import KB_FAULTS, MODEL_FAULTS
from hapax.grammar.hints import FORM_HINTS, GOAL_HINTS, TOO_MANY, UNREADABLE
from hapax.grammar.parser import parse_goal, parse_library, read_texts

GOLDEN = Path(__file__).parent / "golden"
"""Renewed by HAPAX_RENEW_GOLDEN=1; read the differences before they are committed."""

FILE = "example.rules"
WITHOUT = {
    UNREADABLE.code: "needs a file that cannot be read",
    **{fault.code: "needs the facts of a knowledge base" for fault in KB_FAULTS},
    **{fault.code: "needs a model's judgement" for fault in MODEL_FAULTS},
}
"""Codes without a golden file, and the reason."""

RULES = {
    **{entry.code: entry.examples[0] for entry in FORM_HINTS if entry.code not in WITHOUT},
    **{fault.code: fault.example for fault in FAULTS},
}
GOALS = {entry.code: entry.examples[0] for entry in GOAL_HINTS}


def printed(diagnostics: list[Diagnostic], sources: dict[str, str]) -> str:
    """Messages and marked lines without colours."""
    excerpts = Excerpts(visible, sources)
    lines: list[str] = []
    for diagnostic in diagnostics:
        lines += [str(diagnostic), *(Text.from_markup(line).plain for line in excerpts.of(diagnostic))]
    return "\n".join(lines) + "\n"


def compared(code: str, text: str) -> None:
    path = GOLDEN / f"{code}.txt"
    if os.environ.get("HAPAX_RENEW_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("code", RULES)
def test_the_fault_of_a_rule_file_is_printed_as_in_its_golden_file(code: str) -> None:
    """Place, fact, remedy and the marked lines of the example of each code."""
    example = RULES[code]
    found = [diagnostic for diagnostic in check_read(read_texts([(FILE, example)])) if diagnostic.code == code]

    compared(code, printed(found, {FILE: example}))


@pytest.mark.parametrize("code", GOALS)
def test_the_fault_of_a_goal_is_printed_as_in_its_golden_file(code: str) -> None:
    """A goal is marked like a rule, although it stands in no file."""
    with pytest.raises(GoalRejected) as rejected:
        parse_goal(GOALS[code], parse_library([(FILE, 'fact p("a")')]))

    compared(code, printed(list(rejected.value.diagnostics), rejected.value.texts))


def test_every_code_has_a_golden_file_or_a_reason() -> None:
    """A new code cannot be forgotten, and no golden file outlives its code."""
    codes = {entry.code for entry in (*FORM_HINTS, *GOAL_HINTS, *FAULTS, *KB_FAULTS, *MODEL_FAULTS)}

    assert {path.stem for path in GOLDEN.glob("*.txt")} == codes - WITHOUT.keys()


@pytest.mark.parametrize("code", sorted(RULES.keys() - {TOO_MANY.code}))
def test_a_range_lies_within_its_line(code: str) -> None:
    """Every diagnostic of a rule file marks at least one character that is there."""
    example = RULES[code]
    lines = example.split("\n")
    for diagnostic in check_read(read_texts([(FILE, example)])):
        for place in (diagnostic.place, *diagnostic.related):
            end_line, end_column = place.end_line, place.end_column
            assert end_line is not None
            assert end_column is not None
            assert (place.line, place.column) < (end_line, end_column)
            assert end_column <= len(lines[end_line - 1]) + 1


@pytest.mark.parametrize(
    ("rules", "code", "marked"),
    [
        ("p(T X, U A) & q(U A, V B) -> r(Person P, V B)", "HPX101", "Person P"),
        ('given age(Person, Age)\nfact age("Ann", "old")', "HPX113", '"old"'),
        ("p(T X, U A) & q(U A, V B) & A + (1 - B) < 3 -> r(T X, V B)", "HPX112", "A + (1 - B) < 3"),
        ('oracle p(T, U): "[1] a" / "[1] is an [2]" / "is [1] a [2]?"', "HPX203", None),
        ('fact p("a\\q")', "HPX054", '"a\\q"'),
    ],
)
def test_the_word_at_fault_is_marked(rules: str, code: str, marked: str | None) -> None:
    """A range ends with the literal, argument or text at fault, not with its rule."""
    found = next(fault for fault in check_read(read_texts([(FILE, rules)])) if fault.code == code)
    place, line = found.place, rules.split("\n")[found.place.line - 1]
    assert place.end_column is not None

    assert line[place.column - 1 : place.end_column - 1] == (marked or "oracle p(T, U)")


def test_wide_and_unprintable_characters_keep_the_marks_in_place() -> None:
    """Marks stand below their word behind characters of two columns, tabs and escaped controls."""
    text = 'fact p("\u6f22\u202e",\t"a\\q")'
    found = [fault for fault in check_read(read_texts([(FILE, text)])) if fault.code == "HPX054"]
    _, source, marks = printed(found, {FILE: text}).splitlines()

    assert source.endswith('fact p("\u6f22\\u202e", "a\\q")')
    assert marks.index("^") == source.index('"a') + 1  # the Chinese character takes two columns


def test_check_prints_the_line_and_json_has_the_range(tmp_path: Path) -> None:
    """`check` marks the literal without colours in a pipe; its JSON has the range, and the place as before."""
    path = tmp_path / "my.rules"
    path.write_text("p(T X, U A) & q(U A, V B) -> r(Person P, V B)\n", encoding="utf-8")
    text = CliRunner().invoke(main, ["check", str(path)]).stdout
    (error,) = [
        fault for fault in json.loads(CliRunner().invoke(main, ["check", str(path), "--json"]).stdout)
        if fault["severity"] == "error"
    ]  # fmt: skip

    assert "\n1 | p(T X, U A) & q(U A, V B) -> r(Person P, V B)\n  |                                ^^^^^^^^\n" in text
    assert "\x1b" not in text
    assert error["place"] == f"{path}:1:32"
    assert (error["line"], error["column"], error["end_line"], error["end_column"]) == (1, 32, 1, 40)
