"""Premises with "or" as the conjunctions that they stand for, and negated conjunctions as exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from hapax.grammar.errors import Place
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.declarations import ExceptionClause
from hapax.grammar.terms import BodyLiteral, Literal, variable_names

MOST_BRANCHES = 100
"""Rules that one rule with "or" may stand for."""


def branches(premise: syntax.RawPremise) -> list[syntax.RawPremise]:
    """The conjunctions of which one must hold, MOST_BRANCHES and one at the most.

    They have no alternatives, and no comparison of several columns at once; their negations are of such conjunctions.
    Raises ValueError for a comparison with more columns on one side.
    """
    found: list[syntax.RawPremise] = [()]
    for item in premise:
        pairs = product(found, _ways(item))
        found = [(*before, *way) for before, way in pairs][: MOST_BRANCHES + 1]
    return found


def _ways(item: syntax.RawItem) -> list[syntax.RawPremise]:
    """The conjunctions for one item."""
    match item:
        case syntax.RawAlternatives(alternatives):
            return [way for alternative in alternatives for way in branches(alternative)]
        case syntax.RawNegation(premise):
            # None of the conjunctions holds.
            return [tuple(replace(item, premise=way) for way in branches(premise))]
        case syntax.RawLiteral(atom, True) if any(_is_anonymous(argument) for argument in atom.arguments):
            return [(syntax.RawNegation((replace(item, negated=False),), at=item.at),)]
        case syntax.RawColumns():
            return _of_columns(item)
        case _:
            return [(item,)]


def _is_anonymous(argument: syntax.RawArgument) -> bool:
    if isinstance(argument, syntax.RawNamed):
        # The columns that it does not name are anonymous.
        return True
    return isinstance(argument, syntax.RawWords) and argument.words[-1] == "_"


def _of_columns(item: syntax.RawColumns) -> list[syntax.RawPremise]:
    """`(A, B) < (C, D)` by columns: A < C, or A = C and B < D."""
    operator = syntax.COMPARISONS.get(item.operator, item.operator)
    pairs = list(zip(item.left, item.right, strict=True))
    single = [syntax.RawComparison(left, operator, right, at=item.at) for left, right in pairs]
    if operator == "=":
        return [tuple(single)]
    if operator == "\\=":
        return [(comparison,) for comparison in single]
    ways: list[syntax.RawPremise] = []
    for place, comparison in enumerate(single):
        equal = [replace(before, operator="=") for before in single[:place]]
        strict = operator if place == len(single) - 1 else operator.strip("=")
        ways.append((*equal, replace(comparison, operator=strict)))
    return ways


def plain_items(premise: syntax.RawPremise) -> Iterator[syntax.RawLiteral | syntax.RawComparison]:
    """The literals and comparisons of a conjunction, in order, those inside of its negations among them."""
    for item in premise:
        if isinstance(item, syntax.RawNegation):
            yield from plain_items(item.premise)
        elif isinstance(item, syntax.RawLiteral | syntax.RawComparison):
            yield item


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated conjunction whose variables are settled, before it becomes an exception of its rule."""

    premise: tuple[Item, ...]
    place: Place


Item: TypeAlias = BodyLiteral | Negation


def settled(
    premise: Sequence[Item], outer: tuple[BodyLiteral, ...] = ()
) -> tuple[tuple[BodyLiteral, ...], tuple[ExceptionClause, ...]]:
    """The premise with an atom in place of each negated conjunction, and the exceptions that these stand for.

    `outer`: the premise around this one. The negation of a single atom over bound variables stays as it is.
    """
    base = (*outer, *(item for item in premise if not isinstance(item, Negation)))
    items: list[BodyLiteral] = []
    clauses: dict[ExceptionClause, None] = {}
    for item in premise:
        if not isinstance(item, Negation):
            items.append(item)
            continue
        stated, inner = settled(item.premise, base)
        (first, *others) = stated
        is_bound = variable_names(stated) <= variable_names(base)
        if isinstance(first, Literal) and not first.negated and not others and is_bound:
            items.append(Literal(first.atom, negated=True))
            continue
        clause = ExceptionClause.of(base, stated, item.place, in_premise=True, inner=inner)
        clauses[clause] = None
        items.append(clause.literal)
    return tuple(items), tuple(clauses)
