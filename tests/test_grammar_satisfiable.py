"""Premises that can never hold."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.satisfiable import contradiction, divides_by_zero
from hapax.grammar.terms import Arithmetic, Comparison, Constant, Expression, Variable

HEAD = """functional born_in(Author, Year)
functional lies(Year, Year)
functional weighs(Animal, Kilograms)
type Kilograms < Number
computed is_before(Year A, Year B) := A < B
"""
ATOMS = "p(Author X, Year A, Year B, Year C) & q(Author X, Number M, Number N, Kilograms K)"


@pytest.mark.parametrize(
    ("items", "core"),
    [
        ("A < B & B < C & C < A", 3),
        ("N > 83 & N < 20", 2),
        ("N > 83 & M < 20 & N < M", 3),
        ("A < B & B < A + 1", 2),
        ("A = B + 1 & A < B", 2),
        ("2 * N > 10 & N < M & M =< 5", 3),
        ("N / 2 > 5 & N < 10", 2),
        ("A = B & A \\= B", 2),
        ("A =< B & A >= B & A \\= B", 3),
        ("A \\= A", 1),
        ("N * M < 0 & N * M > 5", 2),
        ('X = "Ada" & X = "Grace"', 2),
        ("is_before(Year A, Year B) & B < A", 2),
        ("not is_before(Year A, Year B) & A < B", 2),
        ("born_in(Author X, Year A) & born_in(Author X, Year B) & A < B", 3),
        ("born_in(Author X, 1815) & born_in(Author X, 1816)", 2),
        ("knows(Author X, Year A) & not knows(Author X, Year A)", 2),
        ("can_read(Author X, Year A) & cannot_read(Author X, Year A)", 2),
        ("A = B & knows(Author X, Year A) & not knows(Author X, Year B)", 3),
        ("(N + 3) / 2 > 3 & N < 3", 2),
        ("N / 2 < 5 & N > 10", 2),
        ("N * 2 > 10 & N < 5", 2),
        ("N * N < 0", 1),
        ("A + 1 = B & A + 2 = B", 2),
        ("A = 1815.5", 1),
        (
            "lies(Year A, Year C) & lies(Year B, 1815) & born_in(Author X, Year A) & born_in(Author X, Year B) & C < 9",
            5,
        ),
    ],
)
def test_contradictions_are_found_with_their_core(items: str, core: int) -> None:
    """Contradictions of every kind are found, without items that do not contribute."""
    library = parse_library([("t", f"{HEAD}{ATOMS} & {items} -> r(Author X, Year A)")])

    assert len(contradiction(library.rules[0].premise, library)) == core


@pytest.mark.parametrize(
    "items",
    [
        "A < B & B < C",
        "N > 83 & N < 84",
        "M < N & N < M + 1",
        "A =< B & A >= B",
        "A \\= B & B \\= C & A \\= C",
        "N * M < 5 & N < 0 & M < 0 & N * M > 4",
        'X = "Ada" & X \\= "Grace"',
        "born_in(Author X, Year A) & born_in(Author Y, Year B) & A < B",
        "knows(Author X, Year A) & not knows(Author X, Year B)",
        "N / 0 < 3",
        "2 * N > 9 & N < 5",
        "(N + 3) / 2 > 3 & N < 4",
        "6 / N < 1 & N > 7",
        "N * N < 1",
        "knows(Author X, Year A) & knows(Author X, Year B) & A < B",
        "born_in(Author X, Year A) & not born_in(Author X, Year B) & A < B",
    ],
)
def test_what_can_hold_is_left_alone(items: str) -> None:
    """Premises that can hold give no contradiction; nonlinear arithmetic counts as possible."""
    library = parse_library([("t", f"{HEAD}{ATOMS} & {items} -> r(Author X, Year A)")])

    assert contradiction(library.rules[0].premise, library) == ()


@pytest.mark.parametrize(
    ("item", "divides"),
    [
        ("M < N + 0", False),
        ("M < 0 * N - 0", False),
        ("M < N / 0", True),
        ("N / (M - M) < M", True),
        ("M < N / (M - N)", False),
        ("M < 1 + N / 0", True),
        ("M < N / 0 - 1", True),
    ],
)
def test_a_division_by_zero_is_found_anywhere_in_a_comparison(item: str, divides: bool) -> None:
    """A divisor that is zero whatever its variables are is found on both sides and in every part."""
    library = parse_library([("t", f"{HEAD}{ATOMS} & {item} -> r(Author X, Year A)")])

    assert divides_by_zero(library.rules[0].premise, library) is divides


VARIABLES = [Variable(name, "Year") for name in "ABC"]
EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(st.sampled_from(VARIABLES), st.integers(-2, 2).map(Constant)),
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*"), inner, inner),
    max_leaves=3,
)
COMPARISONS = st.builds(Comparison, st.sampled_from(["<", "=<", ">", ">=", "=", "\\="]), EXPRESSIONS, EXPRESSIONS)


@settings(deadline=None)
@given(st.lists(COMPARISONS, min_size=1, max_size=5))
def test_no_premise_with_a_solution_is_called_contradictory(comparisons: list[Comparison]) -> None:
    """Soundness: where counting finds values, elimination finds no contradiction."""
    solvable = any(
        all(holds(comparison, dict(zip("ABC", values, strict=True))) for comparison in comparisons)
        for values in product(range(-3, 4), repeat=3)
    )

    assert not (solvable and contradiction(comparisons, Library()))


def holds(comparison: Comparison, values: dict[str, int]) -> bool:
    left, right = value(comparison.left, values), value(comparison.right, values)
    return {"<": left < right, "=<": left <= right, ">": left > right, ">=": left >= right}.get(
        comparison.operator, (left == right) == (comparison.operator == "=")
    )


def value(expression: Expression, values: dict[str, int]) -> int:
    if isinstance(expression, Arithmetic):
        left, right = value(expression.left, values), value(expression.right, values)
        return {"+": left + right, "-": left - right, "*": left * right}[expression.operator]
    return values[expression.name] if isinstance(expression, Variable) else int(expression.value)


def test_too_many_comparisons_are_given_up_as_possible() -> None:
    """A premise of hundreds of comparisons is decided in time."""
    variables = [Variable(f"V{number}", "Number") for number in range(40)]
    chain = [
        Comparison("<", Arithmetic("+", first, second), Arithmetic("*", Constant(3), third))
        for first, second, third in zip(
            variables, variables[7:] + variables[:7], variables[13:] + variables[:13], strict=True
        )
    ]

    assert contradiction(chain, Library()) == ()
