"""Can the items of a premise hold together? Exact for linear arithmetic over rationals, and sharper over whole years.

Numbers are decided by Fourier-Motzkin elimination, which needs no Prolog process, so that `check` starts at once. What
it cannot judge (a product of two variables, too many comparisons) counts as possible: a contradiction told is real.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import TypeAlias

from grammar.dependencies import comparison_of
from grammar.rules import Library, PredicateKind
from grammar.terms import Arithmetic, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

MAXIMUM_ROWS = 500
"""Inequalities beyond which elimination gives up."""

NEGATED_OPERATORS = {"<": ">=", ">=": "<", ">": "=<", "=<": ">", "=": "\\=", "\\=": "="}


def contradiction(premise: Iterable[BodyLiteral], library: Library) -> tuple[BodyLiteral, ...]:
    """Items that cannot all hold, as few as leaving out one by one finds; empty where the premise can hold."""
    core = tuple(premise)
    if not _clash(core, library):
        return ()
    for item in core:
        rest = tuple(other for other in core if other is not item)
        if _clash(rest, library):
            core = rest
    return core


def _clash(items: Sequence[BodyLiteral], library: Library) -> bool:
    literals = [item for item in items if isinstance(item, Literal)]
    comparisons = [item for item in items if isinstance(item, Comparison)]
    comparisons += [found for literal in literals if (found := _meaning(literal, library))]
    classes = _Classes(comparisons)
    comparisons += classes.close(_functional(literals, library))
    if _contrary(literals, classes, library):
        return True
    if all(map(_is_identity, comparisons)):  # most often so, and then there is nothing to eliminate
        return classes.hold_two_constants(comparisons)
    return not _Numbers(library).can_hold(comparisons)


def _is_identity(comparison: Comparison) -> bool:
    """Whether it equates terms; a number that is not whole needs a look at the type of what it is equated with."""
    return comparison.operator == "=" and not any(
        isinstance(side, Arithmetic) or (isinstance(side, Constant) and isinstance(side.value, Decimal))
        for side in (comparison.left, comparison.right)
    )


def _meaning(literal: Literal, library: Library) -> Comparison | None:
    """The comparison that a computed literal stands for, turned round where the literal is negated."""
    found = comparison_of(Literal(literal.atom), library)
    if found is None or not literal.negated:
        return found
    return Comparison(NEGATED_OPERATORS[found.operator], found.left, found.right)


def _functional(literals: Iterable[Literal], library: Library) -> list[Literal]:
    return [
        literal
        for literal in literals
        if not literal.negated
        and library.knows(literal.atom.indicator)
        and library.signature(literal.atom.indicator).kind is PredicateKind.FUNCTIONAL
    ]


Key: TypeAlias = tuple[str, tuple[str, ...]]


class _Classes:
    """Which terms are one and the same: by equations, and because a functional predicate has one value for a key."""

    def __init__(self, comparisons: Iterable[Comparison]) -> None:
        self.leader: dict[str, str] = {}
        for one in comparisons:
            if one.operator == "=" and not isinstance(one.left, Arithmetic) and not isinstance(one.right, Arithmetic):
                self._join(one.left, one.right)

    def of(self, term: Term) -> str:
        name = _name(term)
        while name in self.leader:
            name = self.leader[name]
        return name

    def _join(self, left: Term, right: Term) -> bool:
        one, other = self.of(left), self.of(right)
        if one != other:
            self.leader[one] = other
        return one != other

    def hold_two_constants(self, identities: Iterable[Comparison]) -> bool:
        """Whether two different constants are made one."""
        first: dict[str, Constant] = {}
        terms = (side for one in identities for side in (one.left, one.right))
        constants = (term for term in terms if isinstance(term, Constant))
        return any(first.setdefault(self.of(constant), constant) != constant for constant in constants)

    def close(self, functional: Sequence[Literal]) -> list[Comparison]:
        """The equations that follow from one value for each key, until no more do."""
        found: list[Comparison] = []
        grown = True
        while grown:
            grown = False
            values: dict[Key, Term] = {}
            for literal in functional:
                *key, last = literal.atom.arguments
                first = values.setdefault((literal.atom.indicator, tuple(map(self.of, key))), last)
                if self._join(first, last):
                    found.append(Comparison("=", first, last))
                    grown = True
        return found


def _name(term: Term) -> str:
    """A name that tells variables, texts and numbers apart."""
    return f"variable {term.name}" if isinstance(term, Variable) else f"constant {term}"


def _contrary(literals: Sequence[Literal], classes: _Classes, library: Library) -> bool:
    """Whether a literal meets its negation, or its opposite, over the same terms."""
    said = {(one.negated, one.atom.predicate, tuple(map(classes.of, one.atom.arguments))) for one in literals}
    for negated, predicate, terms in said:
        opposite = library.opposite_of(predicate)
        if not negated and ((True, predicate, terms) in said or (opposite and (False, opposite, terms) in said)):
            return True
    return False


# Arithmetic


@dataclass(frozen=True, slots=True)
class _Row:
    """`sum of weight * variable + constant < 0` (`strict`) or `=< 0`."""

    weights: Mapping[str, Fraction]
    constant: Fraction
    strict: bool

    @property
    def is_false(self) -> bool:
        return not self.weights and (self.constant > 0 or (self.strict and self.constant == 0))


class _Numbers:
    """Comparisons as rows. Texts become numbers that no file can write, because only their equality counts."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.texts: dict[str, Fraction] = {}
        self.whole: set[str] = set()

    def can_hold(self, comparisons: Sequence[Comparison]) -> bool:
        rows: list[_Row] = []
        unequal: list[Comparison] = []
        for one in comparisons:
            if one.operator == "\\=":
                unequal.append(one)
            else:
                rows += self._rows(one.operator, one.left, one.right)
        if not _feasible(rows, self.whole):
            return False
        # Rows describe a convex set, so it meets all inequations at once if it meets each of them.
        return all(
            any(_feasible([*rows, *self._rows(operator, one.left, one.right)], self.whole) for operator in "<>")
            for one in unequal
        )

    def _rows(self, operator: str, left: Expression, right: Expression) -> list[_Row]:
        if operator in (">", ">="):
            left, right = right, left
        weights, constant = self._difference(self._linear(left), self._linear(right), Fraction(-1))
        row = _Row(weights, constant, operator in "<>")
        if operator != "=":
            return [row]
        return [row, _Row({name: -weight for name, weight in weights.items()}, -constant, False)]

    def _linear(self, expression: Expression) -> tuple[dict[str, Fraction], Fraction]:
        if isinstance(expression, Variable):
            if self.library.is_subtype(expression.data_type, "Year"):
                self.whole.add(expression.name)
            return {expression.name: Fraction(1)}, Fraction(0)
        if isinstance(expression, Constant):
            return {}, self._number(expression)
        return self._operation(expression)

    def _number(self, constant: Constant) -> Fraction:
        if isinstance(constant.value, str):
            return self.texts.setdefault(constant.value, Fraction(10**400 + len(self.texts)))
        return Fraction(constant.value)

    def _operation(self, expression: Arithmetic) -> tuple[dict[str, Fraction], Fraction]:
        left, right = self._linear(expression.left), self._linear(expression.right)
        if expression.operator in "+-":
            return self._difference(left, right, Fraction(1 if expression.operator == "+" else -1))
        if expression.operator == "*" and not left[0]:
            left, right = right, left
        if right[0] or (expression.operator == "/" and not right[1]):
            return {f"({expression})": Fraction(1)}, Fraction(0)  # not linear: a value of which nothing is known
        factor = right[1] if expression.operator == "*" else 1 / right[1]
        return {name: weight * factor for name, weight in left[0].items() if factor}, left[1] * factor

    @staticmethod
    def _difference(
        left: tuple[dict[str, Fraction], Fraction], right: tuple[dict[str, Fraction], Fraction], sign: Fraction
    ) -> tuple[dict[str, Fraction], Fraction]:
        """left + sign * right, without the variables that cancel out."""
        total = dict(left[0])
        for name, weight in right[0].items():
            total[name] = total.get(name, Fraction(0)) + sign * weight
        return {name: weight for name, weight in total.items() if weight}, left[1] + sign * right[1]


def _feasible(rows: Iterable[_Row], whole: set[str]) -> bool:
    """Fourier-Motzkin: variables are eliminated one by one, and what is left must hold among constants."""
    left = _sharpest(rows, whole)
    while True:
        if any(row.is_false for row in left):
            return False
        names = {name for row in left for name in row.weights}
        if not names or len(left) > MAXIMUM_ROWS:
            return True
        left = _sharpest(_eliminated(left, min(names, key=lambda name: (_growth(left, name), name))), whole)


def _growth(rows: Sequence[_Row], name: str) -> int:
    above = sum(row.weights.get(name, 0) > 0 for row in rows)
    below = sum(row.weights.get(name, 0) < 0 for row in rows)
    return above * below - above - below


def _eliminated(rows: Sequence[_Row], name: str) -> list[_Row]:
    kept = [row for row in rows if name not in row.weights]
    above = [row for row in rows if row.weights.get(name, 0) > 0]
    below = [row for row in rows if row.weights.get(name, 0) < 0]
    return kept + [_sum(one, other, name) for one in above for other in below]


def _sum(above: _Row, below: _Row, name: str) -> _Row:
    """The two rows added, each scaled so that the variable cancels out."""
    by, to = -below.weights[name], above.weights[name]
    weights = {
        other: weight
        for other in above.weights.keys() | below.weights.keys()
        if other != name and (weight := by * above.weights.get(other, 0) + to * below.weights.get(other, 0))
    }
    return _Row(weights, by * above.constant + to * below.constant, above.strict or below.strict)


def _sharpest(rows: Iterable[_Row], whole: set[str]) -> list[_Row]:
    """Each row in lowest terms, and of rows with the same weights the one that says most."""
    best: dict[tuple[tuple[str, Fraction], ...], _Row] = {}
    for row in rows:
        scaled = _scaled(row, whole)
        key = tuple(sorted(scaled.weights.items()))
        known = best.get(key)
        if known is None or (scaled.constant, scaled.strict) > (known.constant, known.strict):
            best[key] = scaled
    return list(best.values())


def _scaled(row: _Row, whole: set[str]) -> _Row:
    """Weights become integers without a common factor; over whole values `sum < c` is then `sum =< ceiling(c) - 1`."""
    if not row.weights:
        return row
    weights = row.weights.values()
    factor = Fraction(lcm(*(weight.denominator for weight in weights)), 1)
    factor /= gcd(*(int(weight * factor) for weight in weights))
    scaled = {name: weight * factor for name, weight in row.weights.items()}
    constant = row.constant * factor
    if not row.weights.keys() <= whole:
        return _Row(scaled, constant, row.strict)
    sharpened = constant.__floor__() + 1 if row.strict else constant.__ceil__()
    return _Row(scaled, Fraction(sharpened), False)
