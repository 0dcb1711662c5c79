"""Theta-subsumption between rules."""

from __future__ import annotations

import pytest

from hapax.grammar.parser import parse_library
from hapax.grammar.subsumption import TRIES_OF_AN_ENTAILMENT, Matcher, subsumes

TYPES = "type Cheese < Food\ntype Year < Time\n"


@pytest.mark.parametrize(
    ("general", "special", "forward", "backward"),
    [
        ("p(A X, B Y) -> c(A X, B Y)", "p(A U, B V) -> c(A U, B V)", True, True),
        ("p(A X, B Y) -> c(A X, B Y)", "q(B V) & p(A U, B V) -> c(A U, B V)", True, False),
        ("p(A X, Food Y) -> c(A X, Food Y)", "p(A X, Cheese Y) -> c(A X, Cheese Y)", True, False),
        ("p(A X, A Y) & p(A Y, A Z) -> c(A X, A Z)", "p(A X, A X) -> c(A X, A X)", True, False),
        ("p(A X, B Y) -> c(A X, B Y)", 'p(A X, "b") -> c(A X, "b")', True, False),
        ("p(A X, B Y) & q(A X, B Z) -> c(A X, B Y)", "p(A X, B Y) & q(A X, B Y) -> c(A X, B Y)", True, False),
        (
            "p(Year X, Year Y) & X < Y -> c(Year X, Year Y)",
            "p(Year X, Year Y) & Y > X -> c(Year X, Year Y)",
            True,
            True,
        ),
        (
            "p(Year X, Year Y) & X < Y -> c(Year X, Year Y)",
            "p(Year X, Year Y) & X > Y -> c(Year X, Year Y)",
            False,
            False,
        ),
        (
            "p(Year X, Year Y) & X = Y + 1 -> c(Year X, Year Y)",
            "p(Year X, Year Y) & Y + 1 = X -> c(Year X, Year Y)",
            True,
            True,
        ),
        ("p(A X, B Y) & not q(A X) -> c(A X, B Y)", "p(A X, B Y) & q(A X) -> c(A X, B Y)", False, False),
        ("p(A X, B Y) -> c(A X, B Y)", "p(A X, B Y) -> d(A X, B Y)", False, False),
        ("p(A X, B Y) -> c(A X, B Y)", "p(A X, C Y) -> c(A X, C Y)", False, False),
    ],
)
def test_one_rule_says_all_that_another_says(general: str, special: str, forward: bool, backward: bool) -> None:
    """Renaming, fewer premises, wider types and merged variables make a rule general; signs and operators must agree."""
    library = parse_library([("t", f"{TYPES}{general}\n{special}")])
    first, second = library.rules

    assert (subsumes(first, second, library), subsumes(second, first, library)) == (forward, backward)


@pytest.mark.parametrize(
    ("general", "special", "forward", "backward"),
    [
        ("N > 3", "N > 5", True, False),
        ("N >= 3", "N = 5", True, False),
        ("N > 2", "N >= 3", True, True),
        ("N > M", "N > M + 1", True, False),
        ("N > 3", "M > 5", False, False),
        ("N \\= 3", "N > 3", True, False),
    ],
)
def test_a_weaker_comparison_makes_a_rule_more_general(
    general: str, special: str, forward: bool, backward: bool
) -> None:
    """A rule subsumes another whose comparisons imply its own; years are whole, so `> 2` is `>= 3`."""
    text = "".join(f"p(A X, Year N) & q(A X, Year M) & {item} -> c(A X)\n" for item in (general, special))
    first, second = parse_library([("t", text)]).rules

    library = parse_library([("t", text)])
    assert (subsumes(first, second, library), subsumes(second, first, library)) == (forward, backward)


def test_a_hard_comparison_is_given_up() -> None:
    """Subsumption is NP-complete: a pair that takes too long counts as not subsumed."""
    wheel = " & ".join(f"p(A V{i}, A V{(i + 1) % 15})" for i in range(15))
    odd = " & ".join(f"p(A W{i}, A W{j})" for i in range(9) for j in range(9) if i != j)
    library = parse_library([("t", f"{wheel} & q(A V0) -> c(A V0)\n{odd} & r(A W0) -> c(A W0)")])
    first, second = library.rules

    assert not subsumes(first, second, library)


SUMS = "p(Year X, Year Y) & X < {} -> c(Year X, Year Y)"


@pytest.mark.parametrize(
    ("general", "special", "is_general"),
    [
        ("Y + 1", "Y + 1", True),
        ("Y + 1", "Y - 1", True),
        ("Y - 1", "Y + 1", False),
        ("Y + 1", "Y + 2", False),
        ("Y + 1", "X + 1", False),
        ("Y + 1", "Y", True),
        ("Y", "Y + 1", False),
        ("2 * (Y + 1)", "2 * (Y + 1)", True),
        ("2 * (Y + 1)", "2 * (Y - 1)", True),
        ("Y * Y", "Y * Y", True),
        ("Y * Y", "Y / Y", False),
        ("Y * Y", "Y * X", False),
    ],
)
def test_arithmetic_has_to_say_as_much(general: str, special: str, is_general: bool) -> None:
    """A limit is as general as another that lies below it for all values; what is not linear has to be the same."""
    library = parse_library([("t", f"{TYPES}{SUMS.format(general)}\n{SUMS.format(special)}")])
    first, second = library.rules

    assert subsumes(first, second, library) is is_general


def test_an_entailed_comparison_needs_its_tries() -> None:
    """The comparison is given up while fewer tries are left than it takes, and decided from then on."""
    text = "@generic none\np(A X, Number N) & N > {} -> c(A X)\n"
    library = parse_library([("t", text.format(3) + text.format(5))])
    general, special = library.rules

    decided = [
        tries
        for tries in range(TRIES_OF_AN_ENTAILMENT, TRIES_OF_AN_ENTAILMENT + 9)
        if Matcher(library, tries).subsumes(general, special)
    ]
    # One try for each conclusion, literal and comparison of the same form, and one to be left over.
    assert decided == list(range(TRIES_OF_AN_ENTAILMENT + 4, TRIES_OF_AN_ENTAILMENT + 9))
