"""Theta-subsumption: does one rule already say all that another one says?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from grammar.rules import Library, Rule
from grammar.terms import Arithmetic, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

MAXIMUM_TRIES = 20_000
"""Pairs of literals tried before a comparison of two rules is given up as "no": the problem is NP-complete."""

Binding: TypeAlias = Mapping[str, Term]


def subsumes(general: Rule, special: Rule, library: Library) -> bool:
    """Whether every conclusion of `special` also follows by `general`.

    So it is if the variables of `general` can be replaced such that the conclusions are equal and its premise is part
    of the special one's. A variable may be replaced only by something of its own type or of a narrower one.
    """
    return _Matcher(library).matches(general, special)


class _Matcher:
    def __init__(self, library: Library) -> None:
        self.library = library
        self.tries = 0

    def matches(self, general: Rule, special: Rule) -> bool:
        start = self._items(general.conclusion, special.conclusion, {})
        # Items with few partners first: a dead end shows early.
        shapes = [_shape(item) for item in special.premise]
        waiting = sorted(general.premise, key=lambda item: shapes.count(_shape(item)))
        return any(self._premise(waiting, special.premise, binding) for binding in start)

    def _premise(self, waiting: Sequence[BodyLiteral], special: Sequence[BodyLiteral], binding: Binding) -> bool:
        if not waiting:
            return True
        for item in special:
            self.tries += 1
            if self.tries > MAXIMUM_TRIES:
                return False
            for extended in self._items(waiting[0], item, binding):
                if self._premise(waiting[1:], special, extended):
                    return True
        return False

    def _items(self, general: BodyLiteral, special: BodyLiteral, binding: Binding) -> Iterator[Binding]:
        """The ways to make the first item equal to the second."""
        if isinstance(general, Literal) and isinstance(special, Literal):
            if _shape(general) == _shape(special):
                yield from self._terms(general.atom.arguments, special.atom.arguments, binding)
        elif isinstance(general, Comparison) and isinstance(special, Comparison):
            for left, right in _readings(special, general.operator):
                yield from self._terms((general.left, general.right), (left, right), binding)

    def _terms(
        self, general: Sequence[Expression], special: Sequence[Expression], binding: Binding
    ) -> Iterator[Binding]:
        for one, other in zip(general, special, strict=True):
            extended = self._expression(one, other, binding)
            if extended is None:
                return
            binding = extended
        yield binding

    def _expression(self, general: Expression, special: Expression, binding: Binding) -> Binding | None:
        if isinstance(general, Arithmetic):
            if not isinstance(special, Arithmetic) or general.operator != special.operator:
                return None
            return next(self._terms((general.left, general.right), (special.left, special.right), binding), None)
        if isinstance(general, Constant) or isinstance(special, Arithmetic):
            return binding if general == special else None
        known = binding.get(general.name)
        if known is not None:
            return binding if known == special else None
        return {**binding, general.name: special} if self._fits(special, general.data_type) else None

    def _fits(self, term: Term, data_type: str) -> bool:
        if isinstance(term, Variable):
            return self.library.is_subtype(term.data_type, data_type)
        return term.is_number == self.library.is_numeric(data_type)


def _shape(item: BodyLiteral) -> tuple[bool, str]:
    return (item.negated, item.atom.indicator) if isinstance(item, Literal) else (False, "comparison")


def _readings(comparison: Comparison, operator: str) -> Iterator[tuple[Expression, Expression]]:
    """The two sides as the operator reads them: `A > B` is `B < A`, and equations hold both ways round."""
    turned = {"<": ">", ">": "<", "=<": ">=", ">=": "=<"}
    if comparison.operator == operator:
        yield comparison.left, comparison.right
    if turned.get(comparison.operator, comparison.operator) == operator:
        yield comparison.right, comparison.left
