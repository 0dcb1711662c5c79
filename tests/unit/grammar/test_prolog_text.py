"""Prolog text, read back by the real SWI-Prolog."""

from __future__ import annotations

import subprocess
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.prolog_text import clause_text, prolog_atom, prolog_value
from hapax.grammar.rules import Library


def library_of(text: str) -> Library:
    return parse_library([("test.rules", text)])


def swipl(program: str, goal: str, folder: Path) -> str:
    """The output of the goal over the program; a warning or error while loading fails the test."""
    path = folder / "program.pl"
    path.write_text(program, encoding="utf-8")
    begin = f"set_stream(user_output, encoding(utf8)), use_module('{path}'), {goal}"
    command = ["swipl", "-q", "-g", begin, "-t", "halt"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stderr == ""
    return done.stdout


HOSTILE = [
    *("'", "\\", "a'), halt, p('", "é→🙂", "\n\r\t", "\x01\x7f\u2028\ufeff", "[]", "{}", "Upper", "_x", "", "dynamic"),
    *("is", "a b", "%", "/* */", "\\x41\\", "x" * 100_000, "ﷺ", "\ufffe", "\U0010ffff", "~w", "0'a", ":-"),
    "end_of_file",
]


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=50, max_size=50))
def test_texts_come_back_from_prolog_character_by_character(tmp_path: Path, drawn: list[str]) -> None:
    """Prolog sees the same code points, of hostile texts and of any others."""
    texts = [*HOSTILE, *drawn]
    program = ":- encoding(utf8).\n:- module(m, [t/1]).\n" + "\n".join(f"t({prolog_value(text)})." for text in texts)
    printed = swipl(program + "\n", "forall(t(T), (atom(T), atom_codes(T, C), print(C), nl))", tmp_path)

    assert printed.splitlines() == ["[" + ",".join(str(ord(character)) for character in text) + "]" for text in texts]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_prolog_cannot_hold_is_refused(text: str) -> None:
    """NUL and lone surrogates are an error that names them."""
    with pytest.raises(HapaxError, match="U\\+"):
        prolog_atom(text)


@given(st.integers() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_numbers_are_exact(value: int | Decimal) -> None:
    """A number written for Prolog is the same number; a whole one has no denominator."""
    written = prolog_value(value)

    assert Fraction(written.replace("r", "/")) == value
    assert value != int(value) or "r" not in written


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999")])
def test_numbers_without_an_exact_form_are_refused(value: Decimal) -> None:
    """NaN and numbers that would fill memory are errors."""
    with pytest.raises(HapaxError, match="exact"):
        prolog_value(value)


def test_tests_come_after_what_binds_their_variables() -> None:
    """Comparisons and negations follow their literals; a computed equation stands before those that need its result."""
    library = library_of(
        "computed later(Year A, Year B) := A > B\n"
        "computed sum_of(Number A, Number B, Number C) := C = A + B\n"
        "not q(Person X) & A \\= 3 & C = A + 1 & later(C, B) & p(Person X, Year A) & p(Person Y, Year B) -> r(X, Year C)\n"
        "later(C, B) & sum_of(A, 1, C) & p(Person X, Year A) & p(Person Y, Year B) -> s(X, Year C)"
    )

    assert [clause_text(rule, library) for rule in library.rules] == [
        "r(X, C) :-\n    p(X, A),\n    \\+ q(X),\n    number(A), A =\\= 3,\n    number(A), C is (A + 1),\n"
        "    p(Y, B),\n    later(C, B).",
        "s(X, C) :-\n    p(X, A),\n    sum_of(A, 1, C),\n    p(Y, B),\n    later(C, B).",
    ]
