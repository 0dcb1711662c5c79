"""Goals that users type for `query`: premises in which predicates of Prolog may stand beside those of the rules.

Prolog never reads a goal as it was typed: `parsing/goal_reader.py` checks it, and only `writing/prolog_text.py` writes
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from hapax.grammar.parsing.declarations import Item, Negation
from hapax.grammar.terms import (
    Comparison,
    Constant,
    Expression,
    Literal,
    Variable,
    expression_names,
    expression_variables,
)

GOAL_PLACE = "<goal>"
"""The name of a goal's text in diagnostics."""

BUILT_INS: dict[str, str] = {
    "findall/3": "dgd",
    "aggregate_all/3": "agd",
    "setof/3": "dqd",
    "bagof/3": "dqd",
    "forall/2": "gg",
    "once/1": "g",
    "member/2": "dd",
    "length/2": "ln",
    "between/3": "iii",
    "sort/2": "ld",
    "msort/2": "ld",
    "sum_list/2": "ld",
    "max_list/2": "ld",
    "min_list/2": "ld",
    "nth1/3": "nld",
    ",": "g",
    ";": "g",
    "->/2": "gg",
    "\\+/1": "g",
    "is/2": "de",
    "=/2": "dd",
    "\\=/2": "dd",
    "==/2": "dd",
    "\\==/2": "dd",
    "</2": "vv",
    "=</2": "vv",
    ">/2": "vv",
    ">=/2": "vv",
    "=:=/2": "vv",
    "=\\=/2": "vv",
}
"""Predicates that a goal may call besides the library's, with a letter per argument: d for data, g for a goal, q for a
goal that may be quantified (`V^p(V)`), e for an arithmetic expression, v for one or a text, a for an aggregate, l for a
list, i for a whole number, n for one from 0 on. `,` and `;` take any number of goals."""

TAKE_GOALS = frozenset(name.partition("/")[0] for name, kinds in BUILT_INS.items() if {"g", "q"} & set(kinds))
"""Names of the built-in predicates with goals among their arguments."""

AGGREGATES = {"sum/1": "e", "max/1": "e", "min/1": "e", "bag/1": "d", "set/1": "d", "max/2": "ed", "min/2": "ed"}
"""First arguments of aggregate_all/3 besides `count`, with letters as in BUILT_INS."""


@dataclass(frozen=True, slots=True)
class Either:
    """`A ; B`."""

    ways: tuple[GoalPremise, ...]


@dataclass(frozen=True, slots=True)
class PrologCall:
    """A call of a built-in predicate, or `C -> T`, or `V^G`. An argument that is a goal is the items of this.

    In its other arguments lists and records are operations, too, by the signs of `syntax.py` or their names.
    """

    name: str
    arguments: tuple[Expression | GoalPremise, ...]

    @property
    def indicator(self) -> str:
        return f"{self.name}/{len(self.arguments)}"


GoalItem: TypeAlias = Item | Either | PrologCall
GoalPremise: TypeAlias = tuple[GoalItem, ...]
"""Items of a goal that hold together."""


@dataclass(frozen=True, slots=True)
class Goal:
    """An allowed goal. `columns`: the variables that a solution binds, in the order of the text, without `_Name`."""

    premise: GoalPremise
    columns: tuple[Variable, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(variable.name for variable in self.columns)

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The calls of predicates of the rules, also those inside of other items."""
        return tuple(item for item in every_item(self.premise) if isinstance(item, Literal))

    @property
    def called(self) -> tuple[str, ...]:
        """Indicators of the predicates of the rules that the goal calls, in order of occurrence."""
        return tuple(dict.fromkeys(literal.atom.indicator for literal in self.literals))

    @property
    def has_constants(self) -> bool:
        """True if a call of the goal names a value."""
        return any(isinstance(term, Constant) for literal in self.literals for term in literal.atom.arguments)


def inner_premises(item: GoalItem) -> tuple[GoalPremise, ...]:
    """The goals directly inside of an item."""
    match item:
        case Negation(premise):
            return (premise,)
        case Either(ways):
            return ways
        case PrologCall(_, arguments):
            return tuple(argument for argument in arguments if isinstance(argument, tuple))
    return ()


def terms_of(item: GoalItem) -> tuple[Expression, ...]:
    """The arguments and sides of an item that are no goals."""
    match item:
        case Literal(atom):
            return atom.arguments
        case Comparison():
            return item.sides
        case PrologCall(_, arguments):
            return tuple(argument for argument in arguments if not isinstance(argument, tuple))
    return ()


def every_item(premise: GoalPremise) -> Iterator[GoalItem]:
    """The items of a goal and those inside of them."""
    for item in premise:
        yield item
        yield from chain.from_iterable(map(every_item, inner_premises(item)))


def variables_of(premise: GoalPremise) -> Iterator[Variable]:
    """The variables of a goal at each of their places."""
    for item in every_item(premise):
        yield from chain.from_iterable(map(expression_variables, terms_of(item)))


def answered(premise: GoalPremise) -> Iterator[Variable]:
    """The variables that a solution can bind: not those in findall, forall or a negation, or before `^`."""
    for item in premise:
        inner: tuple[GoalPremise, ...] = inner_premises(item)
        terms = terms_of(item)
        match item:
            case Negation() | PrologCall("forall"):
                continue
            case PrologCall("findall" | "aggregate_all"):
                inner, terms = (), terms[1:]
            case PrologCall("setof" | "bagof"):
                # Free variables of the goal are bound, except those of the template and those before `^`.
                hidden, (quantified,) = expression_names(terms[0]), inner
                while isinstance(quantified[0], PrologCall) and quantified[0].name == "^":
                    hidden |= expression_names(*terms_of(quantified[0]))
                    (quantified,) = inner_premises(quantified[0])
                yield from (variable for variable in answered(quantified) if variable.name not in hidden)
                inner, terms = (), terms[1:]
        yield from chain.from_iterable(map(expression_variables, terms))
        yield from chain.from_iterable(map(answered, inner))
