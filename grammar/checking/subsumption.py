"""Theta-subsumption: rules whose conclusions all follow from another, more general rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from hapax.grammar.checking.satisfiable import contradiction, denied
from hapax.grammar.data_types import OBJECT
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    MISSING,
    Arithmetic,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    variable_names,
)

MAXIMUM_TRIES = 20_000
"""Pairs of literals tried before the comparison of two rules is given up: the problem is NP-complete."""

MAXIMUM_TRIES_OF_ALL = 10_000_000
"""The limit for all rules of a library together: about ten seconds."""

TRIES_OF_AN_ENTAILMENT = 200
"""Tries that deciding whether comparisons imply another one is counted as, by its time."""

Features: TypeAlias = frozenset[Hashable]

Binding: TypeAlias = Mapping[str, Term]
"""Terms in the place of variables, by name."""


def subsumes(general: Rule, special: Rule, library: Library) -> bool:
    """True if every conclusion of `special` also follows from `general`; False too if the comparison was given up.

    It does if the variables of `general` can be replaced so that the conclusions are equal, its literals are those of
    `special`, and its comparisons follow from the premise of `special`, as `N > 3` from `N > 5`. A variable is replaced
    only by a term of its type or of a subtype.
    """
    return bool(Matcher(library).subsumes(general, special))


def features(rule: Rule) -> Features:
    """Properties that every rule has that this one subsumes: predicates with their signs, and constants by position.

    Comparisons are none: another comparison may imply them.
    """
    properties: set[Hashable] = set()
    for literal in (rule.conclusion, *rule.literals):
        shape = _shape(literal)
        properties.add(shape)
        constants = ((at, term) for at, term in enumerate(literal.atom.arguments) if isinstance(term, Constant))
        properties.update((shape, *constant) for constant in constants)
    return frozenset(properties)


class Matcher:
    """Compares rules of one library. `left`: pairs of literals that may still be tried in all its comparisons."""

    def __init__(self, library: Library, tries: int = MAXIMUM_TRIES_OF_ALL) -> None:
        self.library = library
        self.left = tries
        self.gave_up = False
        """True if the last comparison ended because its tries were used up."""
        self._stop = 0

    def subsumes(self, general: Rule, special: Rule) -> bool | None:
        """Like `subsumes`, but None if the comparison was given up, after MAXIMUM_TRIES or because none are left."""
        if _shape(general.conclusion) != _shape(special.conclusion):
            return False
        for start in self._equal(general.conclusion, special.conclusion, {}):
            for _ in self.bindings(general.premise, special, start):
                return True
            return None if self.gave_up else False
        return False

    def bindings(
        self, premise: Sequence[BodyLiteral], special: Rule, start: Binding | None = None
    ) -> Iterator[Binding]:
        """Each way in which the premise of another rule holds where that of `special` does. It may be given up, too.

        `start`: the terms of variables that have one already.
        """
        # `left` counts down over all comparisons; this one ends at `_stop`.
        self._stop = max(0, self.left - MAXIMUM_TRIES)
        partners: dict[Hashable, list[BodyLiteral]] = {_shape(item): [] for item in premise}
        for item in special.premise:
            partners.setdefault(_shape(item), []).append(item)
        # Comparisons come last, when literals have bound their variables; before them items with few partners, so that
        # a dead end shows early.
        waiting = sorted(premise, key=lambda item: (isinstance(item, Comparison), len(partners[_shape(item)])))
        # A loop, not a recursion: a premise may have more literals than Python has frames.
        ways = [iter([start or {}])]
        while ways and self.left > self._stop:
            binding = next(ways[-1], None)
            if binding is None:
                ways.pop()  # a dead end: the item before this one tries its next partner
            elif len(ways) > len(waiting):
                yield binding
            else:
                item = waiting[len(ways) - 1]
                ways.append(self._ways(item, partners[_shape(item)], binding, special))
        # A search that came to its own end has no way left.
        self.gave_up = bool(ways)

    def _ways(
        self, general: BodyLiteral, partners: Sequence[BodyLiteral], binding: Binding, special: Rule
    ) -> Iterator[Binding]:
        """The binding with what makes the item equal to each partner in turn.

        A comparison whose variables are bound has one way at most: it is a partner, or it follows from the rule.
        """
        is_test = isinstance(general, Comparison) and variable_names([general]) <= binding.keys()
        for partner in partners:
            self.left -= 1
            if self.left <= self._stop:
                return
            for extended in self._equal(general, partner, binding):
                yield extended
                if is_test:
                    return
        if is_test and isinstance(general, Comparison):
            self.left -= TRIES_OF_AN_ENTAILMENT
            denial = denied(general.replaced(binding))
            if self.left > self._stop and contradiction((*special.premise, denial), self.library):
                yield binding

    def _equal(self, general: BodyLiteral, special: BodyLiteral, binding: Binding) -> Iterator[Binding]:
        """The binding with the terms that make two items of one shape equal; comparisons may have two ways."""
        for pairs in _term_pairs(general, special):
            extended = dict(binding)
            if all(self._bind(left, right, extended) for left, right in pairs):
                yield extended

    def _bind(self, general: Expression, special: Expression, binding: dict[str, Term]) -> bool:
        """True if the expressions can be made equal; adds the terms that the variables of the first need."""
        if isinstance(general, Arithmetic):
            return (
                isinstance(special, Arithmetic)
                and general.operator == special.operator
                and len(general.operands) == len(special.operands)
                and all(self._bind(*pair, binding) for pair in zip(general.operands, special.operands, strict=True))
            )
        if isinstance(general, Constant) or isinstance(special, Arithmetic):
            return general == special
        if general.name in binding:
            return binding[general.name] == special
        binding[general.name] = special
        may_be_missing = special.is_anonymous if isinstance(special, Variable) else special.value is MISSING
        if may_be_missing and not general.is_anonymous:
            return False
        return self._fits(special, general.data_type)

    def _fits(self, term: Term, data_type: str) -> bool:
        if isinstance(term, Variable):
            return self.library.is_subtype(term.data_type, data_type)
        if not term.is_number:
            return not self.library.is_numeric(data_type)
        # A type below no kind, such as that of a variable without one, takes numbers and texts.
        return self.library.may_be_numeric(data_type) or self.library.kind_of(data_type) == OBJECT


TURNED = {"<": ">", ">": "<", "=<": ">=", ">=": "=<"}
"""Operators for exchanged sides."""


def _shape(item: BodyLiteral) -> Hashable:
    """A key that two items share if they can be made equal: sign and indicator, or the operator in either direction."""
    if isinstance(item, Literal):
        return (item.negated, item.atom.indicator)
    # The same sign for `<` and `>`, so that `A > B` finds `B < A`.
    return min(item.operator, TURNED.get(item.operator, item.operator))


def _term_pairs(general: BodyLiteral, special: BodyLiteral) -> Iterator[Iterable[tuple[Expression, Expression]]]:
    """The pairs of terms that must match for two items of one shape to be equal; comparisons may have two ways."""
    if isinstance(general, Literal) and isinstance(special, Literal):
        yield zip(general.atom.arguments, special.atom.arguments, strict=True)
    elif isinstance(general, Comparison) and isinstance(special, Comparison):
        if special.operator == general.operator:
            yield (general.left, special.left), (general.right, special.right)
        # `A > B` is `B < A`, and an equation holds in both directions.
        if TURNED.get(special.operator, special.operator) == general.operator:
            yield (general.left, special.right), (general.right, special.left)
