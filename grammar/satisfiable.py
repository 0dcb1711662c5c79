"""Premises that can never hold, by equality of terms and linear arithmetic.

Comparisons are decided by Fourier-Motzkin elimination over exact fractions, and tightened for years, which are whole.
It needs no Prolog process, so that `check` starts at once. It is sound, not complete: a product of two variables or
too many comparisons count as satisfiable, so every contradiction that it reports is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import gcd, lcm
from typing import TypeAlias

from hapax.grammar.dependencies import comparison_of
from hapax.grammar.rules import Library, PredicateKind
from hapax.grammar.terms import Arithmetic, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

MAXIMUM_ROWS = 500
"""Inequalities beyond which elimination gives up and calls them satisfiable."""

NEGATED_OPERATORS = {"<": ">=", ">=": "<", ">": "=<", "=<": ">", "=": "\\=", "\\=": "="}


def contradiction(premise: Iterable[BodyLiteral], library: Library) -> tuple[BodyLiteral, ...]:
    """Items of the premise that cannot hold together, reduced by leaving out one at a time; empty if it can hold."""
    core = tuple(premise)
    if not _clash(core, library):
        return ()
    for item in core:
        others = tuple(candidate for candidate in core if candidate is not item)
        if _clash(others, library):
            core = others
    return core


def is_zero(expression: Expression, library: Library) -> bool:
    """True if the expression is zero whatever its variables are, as `3 - 3` and `A - A`."""
    return isinstance(expression, Arithmetic | Constant) and _Inequalities(library).is_zero(expression)


def divides_by_zero(premise: Iterable[BodyLiteral], library: Library) -> bool:
    """True if a comparison of the premise divides by zero, so that it never holds."""
    for item in premise:
        if isinstance(item, Comparison) and any(
            is_zero(divisor, library) for divisor in (*divisors(item.left), *divisors(item.right))
        ):
            return True
    return False


def divisors(expression: Expression) -> Iterator[Expression]:
    """The right sides of the divisions in an expression."""
    if isinstance(expression, Arithmetic):
        yield from divisors(expression.left)
        yield from divisors(expression.right)
        if expression.operator == "/":
            yield expression.right


def _clash(items: Sequence[BodyLiteral], library: Library) -> bool:
    """True if the items cannot hold together."""
    literals = [item for item in items if isinstance(item, Literal)]
    comparisons = [item for item in items if isinstance(item, Comparison)]
    comparisons += filter(None, (_computed_comparison(literal, library) for literal in literals))
    classes = _EqualTerms(comparisons)
    # Equal keys of a functional predicate add equations, which the arithmetic below must know as well.
    functional = []
    for literal in literals:
        if not literal.negated and library.kind(literal.atom.indicator) is PredicateKind.FUNCTIONAL:
            functional.append(literal)
    comparisons += classes.close(functional)
    if _has_opposites(literals, classes, library):
        return True
    if all(map(_is_identity, comparisons)):  # the usual case, in which there is nothing to eliminate
        return classes.join_two_constants(comparisons)
    return not _Inequalities(library).can_hold(comparisons)


def _is_identity(comparison: Comparison) -> bool:
    """True for an equation of two terms, except with a decimal, which no variable of a whole type can equal."""
    return comparison.operator == "=" and not any(
        isinstance(side, Arithmetic) or (isinstance(side, Constant) and isinstance(side.value, Decimal))
        for side in (comparison.left, comparison.right)
    )


def _computed_comparison(literal: Literal, library: Library) -> Comparison | None:
    """The comparison that a literal over a computed predicate stands for, negated if the literal is."""
    comparison = comparison_of(Literal(literal.atom), library)
    if comparison is None or not literal.negated:
        return comparison
    return replace(comparison, operator=NEGATED_OPERATORS[comparison.operator])


Key: TypeAlias = tuple[str, tuple[str, ...]]


class _EqualTerms:
    """Classes of equal terms (union-find): by equations, and because a functional predicate has one value per key."""

    def __init__(self, comparisons: Iterable[Comparison]) -> None:
        self.leader: dict[str, str] = {}
        for comparison in comparisons:
            left, right = comparison.left, comparison.right
            if comparison.operator == "=" and not isinstance(left, Arithmetic) and not isinstance(right, Arithmetic):
                self._join(left, right)

    def of(self, term: Term) -> str:
        """The name of the term's class."""
        # The prefixes keep a variable A apart from the text "A"; `str` of a constant keeps texts apart from numbers.
        name = f"variable {term.name}" if isinstance(term, Variable) else f"constant {term}"
        while name in self.leader:
            name = self.leader[name]
        return name

    def _join(self, left: Term, right: Term) -> bool:
        """Merge the classes of two terms; False if they were the same class already."""
        left_class, right_class = self.of(left), self.of(right)
        if left_class != right_class:
            self.leader[left_class] = right_class
        return left_class != right_class

    def join_two_constants(self, identities: Iterable[Comparison]) -> bool:
        """True if a class has two different constants."""
        first: dict[str, Constant] = {}
        for identity in identities:
            for side in (identity.left, identity.right):
                if isinstance(side, Constant) and first.setdefault(self.of(side), side) != side:
                    return True
        return False

    def close(self, functional: Sequence[Literal]) -> list[Comparison]:
        """Join the values of functional literals with equal keys until nothing changes; the equations that follow."""
        equations: list[Comparison] = []
        grown = True
        while grown:
            grown = False
            values: dict[Key, Term] = {}
            for literal in functional:
                *key, last = literal.atom.arguments
                # The classes are looked up anew in each round, because a join may have made two keys equal.
                first = values.setdefault((literal.atom.indicator, tuple(map(self.of, key))), last)
                if self._join(first, last):
                    equations.append(Comparison("=", first, last))
                    grown = True
        return equations


def _has_opposites(literals: Sequence[Literal], classes: _EqualTerms, library: Library) -> bool:
    """True if a literal stands beside its negation, or its opposite, over equal terms."""
    positive: set[Key] = set()
    negated: set[Key] = set()
    for literal in literals:
        terms = tuple(map(classes.of, literal.atom.arguments))
        (negated if literal.negated else positive).add((literal.atom.predicate, terms))
    for predicate, terms in positive:
        opposite = library.opposite_of(predicate)
        if (predicate, terms) in negated or (opposite and (opposite, terms) in positive):
            return True
    return False


# Arithmetic


@dataclass(frozen=True, slots=True)
class _Inequality:
    """`sum(weight * variable) + constant < 0` if strict, else `=< 0`."""

    weights: Mapping[str, Fraction]
    constant: Fraction
    strict: bool

    @property
    def is_false(self) -> bool:
        return not self.weights and (self.constant > 0 or (self.strict and self.constant == 0))


class _Inequalities:
    """Comparisons as rows of linear inequalities. `whole` are the variables whose values are integers."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.texts: dict[str, Fraction] = {}  # the numbers that stand for texts
        self.whole: set[str] = set()
        self.squares: set[str] = set()  # the variables that stand for squares

    def can_hold(self, comparisons: Sequence[Comparison]) -> bool:
        rows: list[_Inequality] = []
        unequal: list[Comparison] = []
        for comparison in comparisons:
            if comparison.operator == "\\=":
                unequal.append(comparison)
            else:
                rows += self._rows(comparison.operator, comparison.left, comparison.right)
        # No square is below zero.
        rows += [_Inequality({name: Fraction(-1)}, Fraction(0), False) for name in sorted(self.squares)]
        if not _feasible(rows, self.whole):
            return False
        # Rows describe a convex set, so it satisfies all `\\=` at once if it satisfies each of them.
        for comparison in unequal:
            below = self._rows("<", comparison.left, comparison.right)
            above = self._rows(">", comparison.left, comparison.right)
            if not (_feasible([*rows, *below], self.whole) or _feasible([*rows, *above], self.whole)):
                return False
        return True

    def is_zero(self, expression: Expression) -> bool:
        weights, constant = self._linear(expression)
        return not weights and constant == 0

    def _rows(self, operator: str, left: Expression, right: Expression) -> list[_Inequality]:
        if operator in (">", ">="):
            left, right = right, left
        # left - right < 0, =< 0 or, as two rows, = 0
        weights, constant = self._sum(self._linear(left), self._linear(right), Fraction(-1))
        # `<` and `>` are strict; neither `=<`, `>=` nor `=` is part of this text.
        row = _Inequality(weights, constant, operator in "<>")
        if operator != "=":
            return [row]
        return [row, _Inequality({name: -weight for name, weight in weights.items()}, -constant, False)]

    def _linear(self, expression: Expression) -> tuple[dict[str, Fraction], Fraction]:
        """The expression as weights of variables and a constant."""
        if isinstance(expression, Variable):
            if self.library.is_subtype(expression.data_type, "Year"):
                self.whole.add(expression.name)
            return {expression.name: Fraction(1)}, Fraction(0)
        if isinstance(expression, Arithmetic):
            return self._operation(expression)
        if isinstance(expression.value, str):
            # Texts become numbers too large for a rule file, because only their equality counts.
            return {}, self.texts.setdefault(expression.value, Fraction(10**400 + len(self.texts)))
        return {}, Fraction(expression.value)

    def _operation(self, expression: Arithmetic) -> tuple[dict[str, Fraction], Fraction]:
        left, right = self._linear(expression.left), self._linear(expression.right)
        if expression.operator in "+-":
            return self._sum(left, right, Fraction(1 if expression.operator == "+" else -1))
        if expression.operator == "*" and not left[0]:
            left, right = right, left  # a constant factor on the left
        if right[0] or (expression.operator == "/" and not right[1]):
            # Not linear: a new variable, which can have any value.
            name = f"({expression})"
            if expression.operator == "*" and left == right:
                self.squares.add(name)
            return {name: Fraction(1)}, Fraction(0)
        factor = right[1] if expression.operator == "*" else 1 / right[1]
        return {name: weight * factor for name, weight in left[0].items() if factor}, left[1] * factor

    @staticmethod
    def _sum(
        left: tuple[dict[str, Fraction], Fraction], right: tuple[dict[str, Fraction], Fraction], sign: Fraction
    ) -> tuple[dict[str, Fraction], Fraction]:
        """left + sign * right, without the variables that cancel out."""
        total = dict(left[0])
        for name, weight in right[0].items():
            total[name] = total.get(name, Fraction(0)) + sign * weight
        return {name: weight for name, weight in total.items() if weight}, left[1] + sign * right[1]


def _feasible(rows: Iterable[_Inequality], whole: set[str]) -> bool:
    """Fourier-Motzkin: variables are eliminated one by one until constants decide."""
    remaining = _sharpest(rows, whole)
    while True:
        if any(row.is_false for row in remaining):
            return False
        names = set[str]().union(*(row.weights for row in remaining))
        if not names or len(remaining) > MAXIMUM_ROWS:
            return True
        growth = {}
        for name in names:
            above = sum(row.weights.get(name, 0) > 0 for row in remaining)
            below = sum(row.weights.get(name, 0) < 0 for row in remaining)
            # Elimination replaces the rows that bound the variable by one for each pair of them.
            growth[name] = above * below - above - below
        # The variable that adds the fewest rows; the name makes the choice deterministic.
        cheapest = min(names, key=lambda name: (growth[name], name))
        remaining = _sharpest(_eliminated(remaining, cheapest), whole)


def _eliminated(rows: Sequence[_Inequality], name: str) -> list[_Inequality]:
    """The rows without the variable, and the sum of every pair of rows that bound it from above and from below."""
    unbounded = [row for row in rows if name not in row.weights]
    above = [row for row in rows if row.weights.get(name, 0) > 0]
    below = [row for row in rows if row.weights.get(name, 0) < 0]
    return unbounded + [_without(name, upper, lower) for upper, lower in product(above, below)]


def _without(name: str, above: _Inequality, below: _Inequality) -> _Inequality:
    """The two rows added, each scaled so that the variable cancels out."""
    above_factor, below_factor = -below.weights[name], above.weights[name]
    weights: dict[str, Fraction] = {}
    for variable in above.weights.keys() | below.weights.keys():
        weight = above_factor * above.weights.get(variable, 0) + below_factor * below.weights.get(variable, 0)
        if weight and variable != name:
            weights[variable] = weight
    constant = above_factor * above.constant + below_factor * below.constant
    return _Inequality(weights, constant, above.strict or below.strict)


def _sharpest(rows: Iterable[_Inequality], whole: set[str]) -> list[_Inequality]:
    """The rows in lowest terms; of rows with the same weights the tightest."""
    best: dict[tuple[tuple[str, Fraction], ...], _Inequality] = {}
    for row in rows:
        scaled = _scaled(row, whole)
        # Sorted, because equal sums may have been built in different orders.
        key = tuple(sorted(scaled.weights.items()))
        tightest = best.get(key)
        if tightest is None or (scaled.constant, scaled.strict) > (tightest.constant, tightest.strict):
            best[key] = scaled
    return list(best.values())


def _scaled(row: _Inequality, whole: set[str]) -> _Inequality:
    """The row with integer weights without a common factor, tightened if all its variables are whole.

    Over whole values `sum < c` is then `sum =< ceiling(c) - 1`.
    """
    if not row.weights:
        return row
    weights = row.weights.values()
    # First without denominators, then without the common factor.
    factor = Fraction(lcm(*(weight.denominator for weight in weights)), 1)
    factor /= gcd(*(int(weight * factor) for weight in weights))
    scaled = {name: weight * factor for name, weight in row.weights.items()}
    constant = row.constant * factor
    if not row.weights.keys() <= whole:
        return _Inequality(scaled, constant, row.strict)
    # sum + c < 0 becomes sum + floor(c) + 1 =< 0, and sum + c =< 0 becomes sum + ceiling(c) =< 0.
    sharpened = constant.__floor__() + 1 if row.strict else constant.__ceil__()
    return _Inequality(scaled, Fraction(sharpened), False)
