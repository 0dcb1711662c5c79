"""Premises that never hold, and rules that say all that others say: against brute force, and worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.checking.pair_checks import (
    can_meet,
    duplicate_and_subsumed_rules,
    opposite_conclusions,
)
from hapax.grammar.checking.satisfiable import contradiction, divides_by_zero
from hapax.grammar.checking.subsumption import subsumes
from hapax.grammar.errors import Diagnostic
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Arithmetic, Comparison, Constant, Expression, Variable

HEAD = """functional born_in(Author, Year)
functional lies(Year, Year)
functional weighs(Animal, Kilograms)
type Kilograms < Number
computed is_before(Year A, Year B) := A < B
"""
ATOMS = "p(Author X, Year A, Year B, Year C) & q(Author X, Number M, Number N, Kilograms K)"


def library_of(*lines: str) -> Library:
    return parse_library([("t", "\n".join(lines))])


@pytest.mark.parametrize(
    ("items", "core"),
    [
        ("A < B & B < C & C < A", 3),
        ("N > 83 & M < 20 & N < M", 3),
        ("2 * N > 10 & N < M & M =< 5", 3),
        ("N / 2 > 5 & N < 10", 2),
        ("A =< B & A >= B & A \\= B", 3),
        ("A \\= A", 1),
        ("N * M < 0 & N * M > 5", 2),
        ('X = "Ada" & X = "Grace"', 2),
        ("is_before(Year A, Year B) & B < A", 2),
        ("not is_before(Year A, Year B) & A < B", 2),
        ("born_in(Author X, Year A) & born_in(Author X, Year B) & A < B", 3),
        ("born_in(Author X, 1815) & born_in(Author X, 1816)", 2),
        ("can_read(Author X, Year A) & cannot_read(Author X, Year A)", 2),
        ("A = B & knows(Author X, Year A) & not knows(Author X, Year B)", 3),
        ("(N + 3) / 2 > 3 & N < 3", 2),
        (
            "lies(Year A, Year C) & lies(Year B, 1815) & born_in(Author X, Year A) & born_in(Author X, Year B) & C < 9",
            5,
        ),
    ],
)
def test_contradictions_are_found_with_their_core(items: str, core: int) -> None:
    """Contradictions of every kind are found, without items that do not contribute."""
    library = library_of(HEAD, f"{ATOMS} & {items} -> r(Author X, Year A)")

    assert len(contradiction(library.rules[0].premise, library)) == core


@pytest.mark.parametrize(
    "items",
    [
        "N > 83 & N < 84",
        "A \\= B & B \\= C & A \\= C",
        "N * M < 5 & N < 0 & M < 0 & N * M > 4",
        "born_in(Author X, Year A) & born_in(Author Y, Year B) & A < B",
        "knows(Author X, Year A) & not knows(Author X, Year B)",
        "N / 0 < 3",
        "6 / N < 1 & N > 7",
        "born_in(Author X, Year A) & not born_in(Author X, Year B) & A < B",
    ],
)
def test_what_can_hold_is_left_alone(items: str) -> None:
    """Nonlinear arithmetic counts as possible."""
    library = library_of(HEAD, f"{ATOMS} & {items} -> r(Author X, Year A)")

    assert contradiction(library.rules[0].premise, library) == ()


@pytest.mark.parametrize(
    ("item", "divides"),
    [("M < 0 * N - 0", False), ("M < N / (M - N)", False), ("N / (M - M) < M", True), ("M < 1 + N / 0", True)],
)
def test_a_division_by_zero_is_found_anywhere_in_a_comparison(item: str, divides: bool) -> None:
    """A divisor that is zero whatever its variables are."""
    library = library_of(HEAD, f"{ATOMS} & {item} -> r(Author X, Year A)")

    assert divides_by_zero(library.rules[0].premise, library) is divides


YEARS = [Variable(name, "Year") for name in "ABC"]
EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(st.sampled_from(YEARS), st.integers(-2, 2).map(Constant)),
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*"), st.tuples(inner, inner)),
    max_leaves=3,
)
COMPARISONS = st.builds(Comparison, st.sampled_from(["<", "=<", ">", ">=", "=", "\\="]), EXPRESSIONS, EXPRESSIONS)


@given(st.lists(COMPARISONS, min_size=1, max_size=5))
def test_no_premise_with_a_solution_is_called_contradictory(comparisons: list[Comparison]) -> None:
    """Where counting finds values, elimination finds no contradiction."""
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
        left, right = (value(operand, values) for operand in expression.operands)
        return {"+": left + right, "-": left - right, "*": left * right}[expression.operator]
    return values[expression.name] if isinstance(expression, Variable) else int(expression.value)


def test_too_many_comparisons_are_given_up_as_possible() -> None:
    """Elimination among forty unknowns ends in time."""
    unknowns = [Variable(f"V{number}", "Number") for number in range(40)]
    shifted = zip(unknowns, unknowns[7:] + unknowns[:7], unknowns[13:] + unknowns[:13], strict=True)
    chain = [
        Comparison("<", Arithmetic("+", (first, second)), Arithmetic("*", (Constant(3), third)))
        for first, second, third in shifted
    ]

    assert contradiction(chain, Library()) == ()


TYPES = "type Cheese < Food\ntype Year < Time"
OF_YEARS = "p(Year X, Year Y) & {} -> c(Year X, Year Y)"


@pytest.mark.parametrize(
    ("general", "special", "forward", "backward"),
    [
        ("p(A X, B Y) -> c(A X, B Y)", "p(A U, B V) -> c(A U, B V)", True, True),
        ("p(A X, B Y) -> c(A X, B Y)", "q(B V) & p(A U, B V) -> c(A U, B V)", True, False),
        ("p(A X, Food Y) -> c(A X, Food Y)", "p(A X, Cheese Y) -> c(A X, Cheese Y)", True, False),
        ("p(A X, A Y) & p(A Y, A Z) -> c(A X, A Z)", "p(A X, A X) -> c(A X, A X)", True, False),
        ("p(A X, B Y) -> c(A X, B Y)", 'p(A X, "b") -> c(A X, "b")', True, False),
        ("p(A X, B Y) & not q(A X) -> c(A X, B Y)", "p(A X, B Y) & q(A X) -> c(A X, B Y)", False, False),
        ("p(A X, B Y) -> c(A X, B Y)", "p(A X, B Y) -> d(A X, B Y)", False, False),
        ("p(A X, B Y) -> c(A X, B Y)", "p(A X, C Y) -> c(A X, C Y)", False, False),
        (OF_YEARS.format("X < Y"), OF_YEARS.format("Y > X"), True, True),
        (OF_YEARS.format("X < Y"), OF_YEARS.format("X > Y"), False, False),
        (OF_YEARS.format("X = Y + 1"), OF_YEARS.format("Y + 1 = X"), True, True),
        (OF_YEARS.format("X > 3"), OF_YEARS.format("X > 5"), True, False),
        (OF_YEARS.format("X > Y"), OF_YEARS.format("X > Y + 1"), True, False),
        (OF_YEARS.format("X > 3"), OF_YEARS.format("Y > 5"), False, False),
        (OF_YEARS.format("X \\= 3"), OF_YEARS.format("X > 3"), True, False),
        (OF_YEARS.format("X < 2 * (Y + 1)"), OF_YEARS.format("X < 2 * (Y - 1)"), True, False),
        (OF_YEARS.format("X < Y * Y"), OF_YEARS.format("X < Y * Y"), True, True),
        (OF_YEARS.format("X < Y * Y"), OF_YEARS.format("X < Y * X"), False, False),
    ],
)
def test_one_rule_says_all_that_another_says(general: str, special: str, forward: bool, backward: bool) -> None:
    """Renaming, fewer premises, wider types, merged variables and weaker comparisons make a rule general."""
    library = library_of(TYPES, general, special)
    first, second = library.rules

    assert (subsumes(first, second, library), subsumes(second, first, library)) == (forward, backward)


def test_a_hard_comparison_is_given_up() -> None:
    """Subsumption is NP-complete: a pair that takes too long counts as not subsumed."""
    wheel = " & ".join(f"p(A V{i}, A V{(i + 1) % 15})" for i in range(15))
    odd = " & ".join(f"p(A W{i}, A W{j})" for i in range(9) for j in range(9) if i != j)
    library = library_of(f"{wheel} & q(A V0) -> c(A V0)", f"{odd} & r(A W0) -> c(A W0)")

    assert not subsumes(*library.rules, library)


TERMS = st.sampled_from(["Food X", "Cheese Y", "Food Z", "Year T", '"brie"', "7"])
LITERALS = st.builds(lambda name, left, right: f"{name}({left}, {right})", st.sampled_from("pqr"), TERMS, TERMS)
ITEMS = st.one_of(
    LITERALS,
    LITERALS.map("not {}".format),
    st.sampled_from(["X = Z", "Z \\= X", "T < 7", "7 > T", "T + 1 = 8", "T >= 7"]),
)
CONCLUSIONS = st.builds("{}({}, Year T)".format, st.sampled_from(["c", "can_c", "cannot_c"]), TERMS)
PREMISES = st.lists(ITEMS, min_size=1, max_size=4).map(lambda items: " & ".join(["s(Food X, Food Z, Year T)", *items]))
LIBRARIES = st.lists(st.builds("{} -> {}".format, PREMISES, CONCLUSIONS), min_size=2, max_size=8).map(
    lambda rules: library_of("type Cheese < Food", *rules)
)
Finding = tuple[str, int, tuple[int, ...]]


def findings(found: Sequence[Diagnostic]) -> list[Finding]:
    return sorted((item.code, item.place.line, tuple(place.line for place in item.related)) for item in found)


def all_pairs(library: Library) -> list[Finding]:
    """The findings of comparing every two rules; a rule that repeats an earlier one has no other finding."""
    kept: list[Rule] = []
    found: list[Finding] = []
    for rule in library.rules:
        ways = [(known, subsumes(known, rule, library), subsumes(rule, known, library)) for known in kept]
        twins = [known for known, forward, backward in ways if forward and backward]
        if twins:
            found.append(("HPX205", rule.place.line, (twins[0].place.line,)))
            continue
        kept.append(rule)
        # What never holds has a fault of its own.
        ways = [way for way in ways if not any(contradiction(part.premise, library) for part in (rule, way[0]))]
        found += [("HPX206", rule.place.line, (known.place.line,)) for known, forward, _ in ways if forward]
        found += [("HPX206", known.place.line, (rule.place.line,)) for known, _, backward in ways if backward]
    return sorted(found)


@given(LIBRARIES)
def test_the_index_finds_what_comparing_all_pairs_finds(library: Library) -> None:
    """The same duplicate and subsumed rules, and every two contrary conclusions that can meet, at the later rule."""
    contrary = [
        ("HPX207", second.place.line, (first.place.line,))
        for first, second in combinations(library.rules, 2)
        if library.opposite_of(first.conclusion.atom.predicate) == second.conclusion.atom.predicate
        and can_meet(first, second, library)
    ]

    assert findings(list(duplicate_and_subsumed_rules(library))) == all_pairs(library)
    assert findings(list(opposite_conclusions(library))) == sorted(contrary)


def test_premises_may_be_longer_than_the_stack_is_deep() -> None:
    """Two equal rules of 1,100 literals are reported as duplicates."""
    chain = " & ".join(f"p{i}(A V{i}, A V0)" for i in range(1100))
    library = library_of(f"{chain} -> c(A V0)", f"{chain} -> c(A V0)")

    assert findings(list(duplicate_and_subsumed_rules(library))) == [("HPX205", 2, (1,))]


def test_a_rule_gets_some_contraries_only() -> None:
    """Of thirty opposite rules some are reported, with a note about the rest."""
    rules = [f"likes(A X, B Y) & is_in(C Z, B Y) & has{number}(B Y) -> can_eat(A X, C Z)" for number in range(30)]
    library = library_of(*rules, "likes(A X, B Y) & is_in(C Z, B Y) -> cannot_eat(A X, C Z)")
    *contraries, note = opposite_conclusions(library)

    assert {item.code for item in contraries} == {"HPX207"}
    assert len(contraries) < 30
    assert note.code == "HPX303"
