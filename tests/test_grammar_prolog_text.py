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
from hapax.grammar.prolog_text import SYSTEM_NAMES, clause_text, program_text, prolog_atom, prolog_value
from hapax.grammar.rules import Library


def read(text: str) -> Library:
    return parse_library([("test.rules", text)])


def swipl(program: str, goal: str, folder: Path) -> str:
    """The output of the goal over the program; a warning or error while loading fails the test."""
    path = folder / "program.pl"
    path.write_text(program, encoding="utf-8")
    command = [
        "swipl",
        "-q",
        "-g",
        f"set_stream(user_output, encoding(utf8)), use_module('{path}'), {goal}",
        "-t",
        "halt",
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stderr == ""
    return done.stdout


HOSTILE = [
    "'",
    "\\",
    "a'), halt, p('",
    "é→🙂",
    "\n\r\t",
    "\x01\x7f\u2028\ufeff",
    "[]",
    "{}",
    "Upper",
    "_x",
    "",
    "dynamic",
    "is",
    "a b",
    "%",
    "/* */",
    "\\x41\\",
    "x" * 100_000,
    "ﷺ",
    "\ufffe",
    "\U0010ffff",
    "~w",
    "0'a",
    ":-",
    "end_of_file",
]


def test_texts_come_back_from_prolog_character_by_character(tmp_path: Path) -> None:
    """Quoting holds for hostile texts: Prolog sees the same code points."""
    facts = "\n".join(f"t({prolog_value(text)})." for text in HOSTILE)
    program = f":- encoding(utf8).\n:- module(m, [t/1]).\n{facts}\n"
    printed = swipl(program, "forall(t(T), (atom(T), atom_codes(T, C), print(C), nl))", tmp_path)

    assert printed.splitlines() == ["[" + ",".join(str(ord(character)) for character in text) + "]" for text in HOSTILE]


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=50, max_size=50))
def test_any_batch_of_texts_comes_back(tmp_path: Path, texts: list[str]) -> None:
    """Quoting holds for any Unicode text."""
    program = ":- encoding(utf8).\n:- module(m, [t/1]).\n" + "\n".join(f"t({prolog_value(text)})." for text in texts)
    printed = swipl(program + "\n", "forall(t(T), (atom(T), atom_codes(T, C), print(C), nl))", tmp_path)

    assert printed.splitlines() == ["[" + ",".join(str(ord(character)) for character in text) + "]" for text in texts]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_prolog_cannot_hold_is_refused(text: str) -> None:
    """NUL and lone surrogates are an error that names them."""
    with pytest.raises(HapaxError, match="U\\+"):
        prolog_atom(text)


@pytest.mark.parametrize("value", [0, -3, 10**40, Decimal("1.5"), Decimal("-0.001"), Decimal("2.0"), Decimal("1e20")])
def test_numbers_are_exact(value: int | Decimal) -> None:
    """A number written for Prolog reads back as the same number."""
    assert Fraction(prolog_value(value).replace("r", "/")) == value


def test_a_whole_number_has_no_denominator() -> None:
    """A whole number with a point is written as an integer."""
    assert prolog_value(Decimal("2.0")) == "2"


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999")])
def test_numbers_without_an_exact_form_are_refused(value: Decimal) -> None:
    """NaN and numbers that would fill memory are errors."""
    with pytest.raises(HapaxError, match="exact"):
        prolog_value(value)


def test_tests_come_after_what_binds_their_variables() -> None:
    """Comparisons, negations and computed predicates follow the literals that bind their variables."""
    library = read(
        "computed later(Year A, Year B) := A > B\n"
        "not q(Person X) & A \\= 3 & C = A + 1 & later(C, B) & p(Person X, Year A) & p(Person Y, Year B)"
        " -> r(X, Year C)"
    )

    assert clause_text(library.rules[0], library) == (
        "r(X, C) :-\n    p(X, A),\n    \\+ q(X),\n    number(A), A =\\= 3,\n    number(A), C is (A + 1),\n"
        "    p(Y, B),\n    later(C, B)."
    )


def test_a_computed_predicate_comes_as_soon_as_it_can_give_its_value() -> None:
    """A computed equation follows the literal that binds its last input, before those that need its result."""
    library = read(
        "computed sum_of(Number A, Number B, Number C) := C = A + B\n"
        "computed above(Number A, Number B) := A > B\n"
        "above(C, B) & sum_of(A, 1, C) & p(Person X, Number A) & p(Person Y, Number B) -> r(X, Number C)"
    )

    assert clause_text(library.rules[0], library) == (
        "r(X, C) :-\n    p(X, A),\n    sum_of(A, 1, C),\n    p(Y, B),\n    above(C, B)."
    )


PROGRAM = """
computed ratio_over_two(Year A, Year B) := A / B > 2
computed sum_of(Number A, Number B, Number C) := C = A + B
fact weighs("a", 1.5)
fact weighs("b", 3)
fact weighs("c", 0)
fact weighs("d", "heavy")
fact link("x", "y")
fact link("y", "x")
weighs(Thing A, Number W) & weighs(Thing B, Number V) & V = W * 2 -> twice(B, A)
weighs(Thing A, Number W) & weighs(Thing B, Number V) & sum_of(W, W, V) & A \\= B -> double(B, A)
weighs(Thing A, Number W) & weighs(Thing B, Number V) & W / V < 1 & not link(A, B) -> lighter(A, B)
link(Town A, Town B) -> path(A, B)
path(Town A, Town B) & link(Town B, Town C) -> path(A, C)
"""


def test_a_program_loads_without_warning_and_computes(tmp_path: Path) -> None:
    """Exact arithmetic, recursion and negation work; division by zero and arithmetic on texts are false."""
    goal = "forall(member(G, [twice(X, Y), double(X, Y), lighter(X, Y), path(X, Y)]), (setof(X-Y, G, L), print(L), nl))"
    printed = swipl(program_text(read(PROGRAM)), goal, tmp_path)

    assert printed.splitlines() == ["[b-a,c-c]", "[b-a]", "[a-b,c-a,c-b]", "[x-x,x-y,y-x,y-y]"]


def test_names_that_prolog_keeps_are_refused() -> None:
    """A predicate that SWI-Prolog does not let a module define is an error with a remedy."""
    assert "write/1" in SYSTEM_NAMES
    with pytest.raises(HapaxError, match="Rename"):
        program_text(read("write(Person X) -> p(Person X)"))
