"""Premises that can never hold, by equality of terms and linear arithmetic.

Comparisons are decided by Fourier-Motzkin elimination over exact fractions. It needs no Prolog process, so that `check`
starts at once. It is sound, not complete: a product of two variables, whole numbers or too many comparisons count as
satisfiable, so every contradiction that it reports is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from hapax.grammar.data_types import NUMBER, OBJECT
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.rules import Library, comparison_of
from hapax.grammar.terms import Arithmetic, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable
from hapax.grammar.values.moments import moment_of

MAXIMUM_ROWS = 500
"""Inequalities beyond which elimination gives up and calls them satisfiable."""

_NEGATED = {"<": ">=", ">=": "<", ">": "=<", "=<": ">", "=": "\\=", "\\=": "="}


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
    return _Inequalities(library).linear(expression) == {}


def never_holds(premise: Sequence[BodyLiteral], library: Library) -> bool:
    """True if no values satisfy the premise: its items exclude each other, or a comparison divides by zero."""
    return divides_by_zero(premise, library) or bool(contradiction(premise, library))


def divides_by_zero(premise: Iterable[BodyLiteral], library: Library) -> bool:
    """True if a comparison of the premise divides by zero, so that it never holds."""
    comparisons = (item for item in premise if isinstance(item, Comparison))
    return any(is_zero(divisor, library) for item in comparisons for divisor in divisors(item))


def divisors(expression: Expression | Comparison) -> Iterator[Expression]:
    """The right sides of the divisions in an expression or comparison."""
    if isinstance(expression, Arithmetic | Comparison):
        parts = expression.sides if isinstance(expression, Comparison) else expression.operands
        for part in parts:
            yield from divisors(part)
        if expression.operator in ("/", "//", "mod"):
            yield parts[1]


def _clash(items: Sequence[BodyLiteral], library: Library) -> bool:
    """True if the items cannot hold together."""
    literals = [item for item in items if isinstance(item, Literal)]
    comparisons = [item for item in items if isinstance(item, Comparison)]
    for literal in literals:
        # A literal over a computed predicate stands for a comparison.
        if (comparison := comparison_of(Literal(literal.atom), library)) is not None:
            comparisons.append(denied(comparison) if literal.negated else comparison)
    classes = _EqualTerms(comparisons)
    # Equal keys of a functional predicate add equations, which the arithmetic below must know as well.
    positive = (literal for literal in literals if not literal.negated)
    functional = [item for item in positive if library.kind(item.atom.indicator) is PredicateKind.FUNCTIONAL]
    comparisons += classes.close(functional)
    return _has_opposites(literals, classes, library) or not _Inequalities(library).can_hold(comparisons)


def denied(comparison: Comparison) -> Comparison:
    """The comparison that holds where this one does not."""
    return replace(comparison, operator=_NEGATED[comparison.operator])


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
    keys: dict[bool, set[Key]] = {True: set(), False: set()}
    for literal in literals:
        keys[literal.negated].add((literal.atom.predicate, tuple(map(classes.of, literal.atom.arguments))))
    contrary = ((library.opposite_of(predicate) or "", terms) for predicate, terms in keys[False])
    return not keys[False].isdisjoint((*keys[True], *contrary))


# Arithmetic

Linear: TypeAlias = dict[str, Fraction]
"""A sum of weighted variables, without weights of zero; the constant is the weight of ""."""


@dataclass(frozen=True, slots=True)
class _Row:
    """`sum < 0` if strict, else `sum =< 0`."""

    sum: Linear
    strict: bool

    @property
    def weights(self) -> Linear:
        """The sum without its constant."""
        return {name: weight for name, weight in self.sum.items() if name}

    @property
    def is_false(self) -> bool:
        constant = self.sum.get("", 0)
        return self.sum.keys() <= {""} and (constant > 0 or (self.strict and constant == 0))


class _Inequalities:
    """Comparisons as rows of linear inequalities."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.texts: dict[str, Fraction] = {}  # the numbers that stand for texts

    def can_hold(self, comparisons: Sequence[Comparison]) -> bool:
        rows: list[_Row] = []
        unequal: list[Linear] = []
        for comparison in comparisons:
            # The order of texts is not one of numbers.
            if comparison.operator not in ("=", "\\=") and any(map(_is_plain_text, comparison.sides)):
                continue
            left, right = map(self.linear, comparison.sides)
            difference = _sum(left, right, Fraction(-1))
            if comparison.operator == "\\=":
                unequal.append(difference)
            if comparison.operator in ("<", "=<", "="):
                rows.append(_Row(difference, comparison.operator == "<"))
            if comparison.operator in (">", ">=", "="):
                rows.append(_Row(_negative(difference), comparison.operator == ">"))
        # Rows describe a convex set, so it satisfies all `\\=` at once if it satisfies each of them.
        return _feasible(rows) and all(
            _feasible([*rows, _Row(side, True)]) or _feasible([*rows, _Row(_negative(side), True)]) for side in unequal
        )

    def linear(self, expression: Expression) -> Linear:
        """The expression as a sum. What is not linear becomes a new variable, which can have any value."""
        if isinstance(expression, Variable):
            return {expression.name: Fraction(1)}
        if isinstance(expression, Constant):
            number = self._number(expression)
            return {"": number} if number else {}
        if expression.operator not in ("+", "-", "*", "/") or not self._is_numeric(expression):
            return {f"({expression})": Fraction(1)}
        left, right = map(self.linear, expression.operands)
        if expression.operator in "+-":
            return _sum(left, right, Fraction(1 if expression.operator == "+" else -1))
        if expression.operator == "*" and left.keys() <= {""}:
            left, right = right, left  # a constant factor on the left
        if right.keys() <= {""} and (right or expression.operator == "*"):
            factor = right.get("", Fraction(0))
            return _sum({}, left, factor if expression.operator == "*" else 1 / factor)
        return {f"({expression})": Fraction(1)}

    def _number(self, constant: Constant) -> Fraction:
        """The number that stands for a constant."""
        if not isinstance(constant.value, str):
            return Fraction(constant.value)
        if moment := moment_of(constant.value):
            return Fraction(moment.seconds)
        # Texts become numbers too large for a rule file, because only their equality counts.
        return self.texts.setdefault(constant.value, Fraction(10**400 + len(self.texts)))

    def _is_numeric(self, expression: Expression) -> bool:
        """False for a calculation with dates and times, of which those of day go round midnight."""
        if isinstance(expression, Variable):
            return self.library.kind_of(expression.data_type) in (NUMBER, OBJECT)
        if isinstance(expression, Constant):
            return expression.is_number
        return all(map(self._is_numeric, expression.operands))


def _is_plain_text(side: Expression) -> bool:
    """True for a text that is not a date, a time or a duration."""
    return isinstance(side, Constant) and isinstance(side.value, str) and moment_of(side.value) is None


def _sum(left: Linear, right: Linear, factor: Fraction) -> Linear:
    """left + factor * right, without the variables that cancel out."""
    total = dict(left)
    for name, weight in right.items():
        total[name] = total.get(name, Fraction(0)) + factor * weight
    return {name: weight for name, weight in total.items() if weight}


def _negative(linear: Linear) -> Linear:
    return _sum({}, linear, Fraction(-1))


def _feasible(rows: Iterable[_Row]) -> bool:
    """Fourier-Motzkin: variables are eliminated one by one until constants decide."""
    remaining = _sharpest(rows)
    while not any(row.is_false for row in remaining):
        names = set[str]().union(*(row.sum for row in remaining)) - {""}
        if not names or len(remaining) > MAXIMUM_ROWS:
            return True
        # The name makes the choice deterministic.
        cheapest = min((_growth(remaining, name), name) for name in names)[1]
        remaining = _sharpest(_eliminated(remaining, cheapest))
    return False


def _growth(rows: Sequence[_Row], name: str) -> int:
    """Growth of the rows by the elimination of a variable: one for each pair that bounds it, less these rows."""
    above = sum(row.sum.get(name, 0) > 0 for row in rows)
    below = sum(row.sum.get(name, 0) < 0 for row in rows)
    return above * below - above - below


def _eliminated(rows: Sequence[_Row], name: str) -> Iterator[_Row]:
    """The rows without the variable, and the sum of every pair of rows that bound it from above and from below."""
    yield from (row for row in rows if name not in row.sum)
    above = [row for row in rows if row.sum.get(name, 0) > 0]
    below = [row for row in rows if row.sum.get(name, 0) < 0]
    for upper, lower in product(above, below):
        # Scaled so that the variable cancels out.
        scaled = _sum({}, upper.sum, -lower.sum[name])
        yield _Row(_sum(scaled, lower.sum, upper.sum[name]), upper.strict or lower.strict)


def _sharpest(rows: Iterable[_Row]) -> list[_Row]:
    """The scaled rows; of rows with the same weights the tightest."""
    best: dict[tuple[tuple[str, Fraction], ...], _Row] = {}
    for row in rows:
        scaled = _scaled(row)
        # Sorted, because equal sums may have been built in different orders.
        key = tuple(sorted(scaled.weights.items()))
        tightest = best.setdefault(key, scaled)
        if (scaled.sum.get("", 0), scaled.strict) > (tightest.sum.get("", 0), tightest.strict):
            best[key] = scaled
    return list(best.values())


def _scaled(row: _Row) -> _Row:
    """The row with a first weight of 1 or -1, so that rows with proportional weights are seen to be about the same."""
    weights = sorted(row.weights.items())
    return _Row(_sum({}, row.sum, 1 / abs(weights[0][1])), row.strict) if weights else row
