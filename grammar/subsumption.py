"""Theta-subsumption: does one rule already say all that another one says?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from grammar.rules import Library, Rule
from grammar.terms import Arithmetic, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

MAXIMUM_TRIES = 20_000
"""Pairs of literals tried before a comparison of two rules is given up as "no": the problem is NP-complete."""

MAXIMUM_TRIES_OF_ALL = 10_000_000
"""The same for all rules of a library together: about ten seconds."""

Features: TypeAlias = frozenset[Hashable]


def subsumes(general: Rule, special: Rule, library: Library) -> bool:
    """Whether every conclusion of `special` also follows by `general`.

    So it is if the variables of `general` can be replaced such that the conclusions are equal and its premise is part
    of the special one's. A variable may be replaced only by something of its own type or of a narrower one.
    """
    return bool(Matcher(library).subsumes(general, special))


def features(rule: Rule) -> Features:
    """What every rule that this one subsumes has, too: its predicates, signs and constants, each where it stands."""
    return frozenset(feature for item in (rule.conclusion, *rule.premise) for feature in _features(item))


class Matcher:
    """Compares rules of one library. `left`: pairs of literals that may still be tried, in all comparisons together."""

    def __init__(self, library: Library, tries: int = MAXIMUM_TRIES_OF_ALL) -> None:
        self.library = library
        self.left = tries
        self._stop = 0
        self._binding: dict[str, Term] = {}

    def subsumes(self, general: Rule, special: Rule) -> bool | None:
        """As `subsumes`; None where it was given up, after `MAXIMUM_TRIES` or because none are left."""
        self._stop = max(0, self.left - MAXIMUM_TRIES)
        self._binding = {}
        if _shape(general.conclusion) != _shape(special.conclusion):
            return False
        partners: dict[Hashable, list[BodyLiteral]] = {_shape(item): [] for item in general.premise}
        for item in special.premise:
            partners.setdefault(_shape(item), []).append(item)
        # Items with few partners first: a dead end shows early.
        waiting = sorted(general.premise, key=lambda item: len(partners[_shape(item)]))
        # A loop, not a recursion: a premise may have more literals than Python has frames.
        ways = [self._ways(general.conclusion, [special.conclusion])]
        while ways and self.left > self._stop:
            if next(ways[-1], None) is None:
                ways.pop()
            elif len(ways) > len(waiting):
                return True
            else:
                item = waiting[len(ways) - 1]
                ways.append(self._ways(item, partners[_shape(item)]))
        return None if ways else False

    def _ways(self, general: BodyLiteral, partners: Sequence[BodyLiteral]) -> Iterator[bool]:
        """Makes the item equal to each partner in turn; the variables bound for it are free again afterwards."""
        for special in partners:
            self.left -= 1
            if self.left <= self._stop:
                return
            for sides, others in _sides(general, special):
                bound = self._bound(sides, others)
                if bound is not None:
                    yield True
                    self._free(bound)

    def _bound(self, general: Sequence[Expression], special: Sequence[Expression]) -> list[str] | None:
        """The variables that must be bound now to make the terms equal; None, and nothing bound, where they differ."""
        bound: list[str] = []
        if all(self._is_equal(one, other, bound) for one, other in zip(general, special, strict=True)):
            return bound
        self._free(bound)
        return None

    def _free(self, bound: Sequence[str]) -> None:
        for name in bound:
            del self._binding[name]

    def _is_equal(self, general: Expression, special: Expression, bound: list[str]) -> bool:
        if isinstance(general, Arithmetic):
            return (
                isinstance(special, Arithmetic)
                and general.operator == special.operator
                and self._is_equal(general.left, special.left, bound)
                and self._is_equal(general.right, special.right, bound)
            )
        if isinstance(general, Constant) or isinstance(special, Arithmetic):
            return general == special
        known = self._binding.get(general.name)
        if known is not None:
            return known == special
        if not self._fits(special, general.data_type):
            return False
        self._binding[general.name] = special
        bound.append(general.name)
        return True

    def _fits(self, term: Term, data_type: str) -> bool:
        if isinstance(term, Variable):
            return self.library.is_subtype(term.data_type, data_type)
        return term.is_number == self.library.is_numeric(data_type)


TURNED = {"<": ">", ">": "<", "=<": ">=", ">=": "=<"}


def _shape(item: BodyLiteral) -> Hashable:
    """What two items share that can be made equal: sign and predicate, or the operator, whichever way round."""
    if isinstance(item, Literal):
        return (item.negated, item.atom.indicator)
    return min(item.operator, TURNED.get(item.operator, item.operator))


def _features(item: BodyLiteral) -> Iterator[Hashable]:
    shape = _shape(item)
    yield shape
    if isinstance(item, Literal):
        for position, term in enumerate(item.atom.arguments):
            if isinstance(term, Constant):
                yield (shape, position, term)
    else:
        for constant in (*_constants(item.left), *_constants(item.right)):
            yield (shape, constant)


def _constants(expression: Expression) -> Iterator[Constant]:
    if isinstance(expression, Arithmetic):
        yield from _constants(expression.left)
        yield from _constants(expression.right)
    elif isinstance(expression, Constant):
        yield expression


def _sides(general: BodyLiteral, special: BodyLiteral) -> Iterator[tuple[Sequence[Expression], Sequence[Expression]]]:
    """Terms that must be equal for two items of one shape to be equal; for comparisons there may be two ways."""
    if isinstance(general, Literal) and isinstance(special, Literal):
        yield general.atom.arguments, special.atom.arguments
    elif isinstance(general, Comparison) and isinstance(special, Comparison):
        for left, right in _readings(special, general.operator):
            yield (general.left, general.right), (left, right)


def _readings(comparison: Comparison, operator: str) -> Iterator[tuple[Expression, Expression]]:
    """The two sides as the operator reads them: `A > B` is `B < A`, and equations hold both ways round."""
    if comparison.operator == operator:
        yield comparison.left, comparison.right
    if TURNED.get(comparison.operator, comparison.operator) == operator:
        yield comparison.right, comparison.left
