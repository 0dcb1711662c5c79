"""Theta-subsumption: rules whose conclusions all follow from another, more general rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from hapax.grammar.rules import Library, Rule
from hapax.grammar.satisfiable import NEGATED_OPERATORS, contradiction
from hapax.grammar.terms import Arithmetic, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

MAXIMUM_TRIES = 20_000
"""Pairs of literals tried before the comparison of two rules is given up: the problem is NP-complete."""

MAXIMUM_TRIES_OF_ALL = 10_000_000
"""The limit for all rules of a library together: about ten seconds."""

TRIES_OF_AN_ENTAILMENT = 200
"""Tries that deciding whether comparisons imply another one is counted as, by its time."""

Features: TypeAlias = frozenset[Hashable]


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
        self._binding: dict[str, Term] = {}

    def subsumes(self, general: Rule, special: Rule) -> bool | None:
        """Like `subsumes`, but None if the comparison was given up, after MAXIMUM_TRIES or because none are left."""
        if _shape(general.conclusion) != _shape(special.conclusion):
            return False
        for _ in self._matches(general.premise, special, (general.conclusion, special.conclusion)):
            return True
        return None if self.gave_up else False

    def bindings(self, premise: Sequence[BodyLiteral], special: Rule) -> Iterator[Mapping[str, Term]]:
        """Each way in which the premise of another rule holds where that of `special` does. It may be given up, too."""
        for _ in self._matches(premise, special):
            yield dict(self._binding)

    def _matches(
        self, premise: Sequence[BodyLiteral], special: Rule, first: tuple[BodyLiteral, BodyLiteral] | None = None
    ) -> Iterator[None]:
        """Bind the variables of a premise in each way that makes its items those of `special`; `first`: a pair to
        make equal before them.
        """
        # `left` counts down over all comparisons; this one ends at `_stop`.
        self._stop = max(0, self.left - MAXIMUM_TRIES)
        self._binding = {}
        partners: dict[Hashable, list[BodyLiteral]] = {_shape(item): [] for item in premise}
        for item in special.premise:
            partners.setdefault(_shape(item), []).append(item)
        # Comparisons come last, when literals have bound their variables; before them items with few partners, so that
        # a dead end shows early.
        waiting = sorted(premise, key=lambda item: (isinstance(item, Comparison), len(partners[_shape(item)])))
        self.gave_up = False
        # A loop, not a recursion: a premise may have more literals than Python has frames.
        ways = [self._ways(first[0], [first[1]]) if first else iter((True,))]
        while ways and self.left > self._stop:
            if next(ways[-1], None) is None:
                # A dead end: the item before this one tries its next partner.
                ways.pop()
            # There is a way for the first pair and for each item: the match is complete.
            elif len(ways) > len(waiting):
                yield
            else:
                item = waiting[len(ways) - 1]
                if isinstance(item, Comparison) and all(variable.name in self._binding for variable in item.variables):
                    ways.append(self._implied(item, partners[_shape(item)], special))
                else:
                    ways.append(self._ways(item, partners[_shape(item)]))
        # A search that came to its own end has no way left.
        self.gave_up = bool(ways)

    def _ways(self, general: BodyLiteral, partners: Sequence[BodyLiteral]) -> Iterator[bool]:
        """Make the item equal to each partner in turn; the variables bound for one are freed before the next."""
        for special in partners:
            self.left -= 1
            if self.left <= self._stop:
                return
            for general_terms, special_terms in _term_pairs(general, special):
                bound = self._bound(general_terms, special_terms)
                if bound is not None:
                    # The bindings hold until the caller asks for the next way.
                    yield True
                    self._free(bound)

    def _implied(self, general: Comparison, partners: Sequence[BodyLiteral], special: Rule) -> Iterator[bool]:
        """One way if the comparison, whose variables are all bound, is one of the partners or follows from the rule."""
        if next(self._ways(general, partners), False):
            yield True
            return
        self.left -= TRIES_OF_AN_ENTAILMENT
        if self.left > self._stop:
            bound = general.replaced(self._binding)
            denial = replace(bound, operator=NEGATED_OPERATORS[bound.operator])
            if contradiction((*special.premise, denial), self.library):
                yield True

    def _bound(self, general: Sequence[Expression], special: Sequence[Expression]) -> list[str] | None:
        """Names of the variables that were bound to make the terms equal; None, and none bound, if they differ."""
        bound: list[str] = []
        if all(self._is_equal(left, right, bound) for left, right in zip(general, special, strict=True)):
            return bound
        self._free(bound)
        return None

    def _free(self, bound: Sequence[str]) -> None:
        for name in bound:
            del self._binding[name]

    def _is_equal(self, general: Expression, special: Expression, bound: list[str]) -> bool:
        """True if the expressions match. Variables bound on the way are appended to `bound`, even if they do not."""
        if isinstance(general, Arithmetic):
            return (
                isinstance(special, Arithmetic)
                and general.operator == special.operator
                and self._is_equal(general.left, special.left, bound)
                and self._is_equal(general.right, special.right, bound)
            )
        if isinstance(general, Constant) or isinstance(special, Arithmetic):
            return general == special
        bound_term = self._binding.get(general.name)
        if bound_term is not None:
            return bound_term == special
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
"""Operators for exchanged sides."""


def _shape(item: BodyLiteral) -> Hashable:
    """A key that two items share if they can be made equal: sign and indicator, or the operator in either direction."""
    if isinstance(item, Literal):
        return (item.negated, item.atom.indicator)
    # The same sign for `<` and `>`, so that `A > B` finds `B < A`.
    return min(item.operator, TURNED.get(item.operator, item.operator))


def _term_pairs(
    general: BodyLiteral, special: BodyLiteral
) -> Iterator[tuple[Sequence[Expression], Sequence[Expression]]]:
    """The lists of terms that must match for two items of one shape to be equal; comparisons may have two."""
    if isinstance(general, Literal) and isinstance(special, Literal):
        yield general.atom.arguments, special.atom.arguments
    elif isinstance(general, Comparison) and isinstance(special, Comparison):
        sides = (general.left, general.right)
        if special.operator == general.operator:
            yield sides, (special.left, special.right)
        # `A > B` is `B < A`, and an equation holds in both directions.
        if TURNED.get(special.operator, special.operator) == general.operator:
            yield sides, (special.right, special.left)
