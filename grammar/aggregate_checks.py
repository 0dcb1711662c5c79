"""Checks of aggregates: their functions, variables and types, and the predicates that they count.

Each check stands below the faults that it finds. A new check is a fault, a function and a line in AGGREGATE_CHECKS.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from hapax.grammar.closedness import Closedness
from hapax.grammar.declarations import AGGREGATE_FUNCTIONS, AggregateDeclaration
from hapax.grammar.dependencies import comparison_of, negative_cycles
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.faults import Check, RuleFault, check
from hapax.grammar.prolog_text import assignment, definition_of, evaluation_order
from hapax.grammar.rules import ASKED_KINDS, Library, literals_of
from hapax.grammar.terms import Comparison, Literal, variable_names

UNKNOWN_FUNCTION: Final = RuleFault.error(
    "HPX127", "unknown aggregate",
    "given is_in(Ingredient, Dish)\n"
    "aggregate dishes_with(Ingredient Z, Number K) := K = counts(Dish D: is_in(Ingredient Z, Dish D))",
)  # fmt: skip


@check(UNKNOWN_FUNCTION, even_if_incomplete=True)
def unknown_functions(library: Library) -> Iterator[Diagnostic]:
    """Aggregates by another function than the five, or by another sign than an equation."""
    for item in library.aggregates:
        if item.function not in AGGREGATE_FUNCTIONS:
            near = get_close_matches(item.function, AGGREGATE_FUNCTIONS, 1)
            yield UNKNOWN_FUNCTION.at(
                item.place,
                f'"{item.function}" is not an aggregate',
                f"Did you mean {near[0]}?" if near else f"Write K = and one of {', '.join(AGGREGATE_FUNCTIONS)}",
            )


UNBOUND_IN_AGGREGATE: Final = RuleFault.error(
    "HPX128", "aggregate with an unbound variable",
    "given is_in(Ingredient, Dish)\n"
    "aggregate dishes_of(Person X, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
)  # fmt: skip


@check(UNBOUND_IN_AGGREGATE, even_if_incomplete=True)
def unbound_in_aggregates(library: Library) -> Iterator[Diagnostic]:
    """Variables of the group, the counted ones and those of tests to which the premise gives no value; and a result
    that is not a variable of the atom alone.
    """
    for item in library.aggregates:
        if item.function in AGGREGATE_FUNCTIONS and not item.is_evaluable:
            yield UNBOUND_IN_AGGREGATE.at(
                _place(item, item.result),
                f"the result {item.result} of an aggregate is a variable of {item.atom.predicate}(...) alone",
                f"Write {item.result} among the arguments of {item.atom.predicate}, and nowhere in the premise",
            )
        bound = _bound(item, library)
        used = variable_names(item.premise).union(v.name for v in (*item.group, *item.counted))
        # The aggregate gives the result its value; a premise that uses it was reported above.
        for name in sorted(used - bound - {item.result}):
            yield UNBOUND_IN_AGGREGATE.at(
                _place(item, name),
                f"nothing in the premise of the aggregate gives {name} a value",
                f"Add a literal with {name} to the premise",
            )


def _place(item: AggregateDeclaration, name: str) -> Place:
    """The range of a variable in the aggregate's atom, else that of the declaration."""
    place = item.atom.place_of(name) if name in variable_names([item.atom]) else None
    return place or item.place


def _bound(item: AggregateDeclaration, library: Library) -> set[str]:
    """Names of the variables to which the premise gives values, in its order of evaluation."""
    bound: set[str] = set()
    for part in evaluation_order(item.premise, library):
        if isinstance(part, Literal) and not part.negated and definition_of(part, library) is None:
            bound |= variable_names([part])
            continue
        # A computed predicate gives a value if its definition is an equation; a negation gives none.
        comparison = part if isinstance(part, Comparison) else comparison_of(part, library)
        target = None if comparison is None else assignment(comparison, bound)
        if target is not None:
            bound.add(target)
    return bound


AGGREGATE_OF_TEXTS: Final = RuleFault.error(
    "HPX129", "aggregate of texts",
    "given is_in(Ingredient, Dish)\n"
    "aggregate dishes_with(Ingredient Z, Number K) := K = sum(Dish D: is_in(Ingredient Z, Dish D))",
)  # fmt: skip


@check(AGGREGATE_OF_TEXTS, even_if_incomplete=True)
def aggregates_of_texts(library: Library) -> Iterator[Diagnostic]:
    """Sums and the like of values that are not numbers, and results that are declared as texts."""
    for item in library.aggregates:
        results = [variable for variable in item.atom.variables if variable.name == item.result]
        # `count`, the first of the functions, takes values of any type; the others calculate with the first variable.
        values = list(item.counted[:1]) if item.function in AGGREGATE_FUNCTIONS[1:] else []
        for variable in (*values, *results):
            if not library.is_numeric(variable.data_type):
                yield AGGREGATE_OF_TEXTS.at(
                    _place(item, variable.name),
                    f"{variable} is not a number, so that it is neither value nor result of {item.function}",
                    f'Write "Number {variable.name}", or declare "type {variable.data_type} < Number"',
                )


AGGREGATE_OF_ITSELF: Final = RuleFault.error(
    "HPX130", "aggregate that depends on itself",
    "given sells(Town, Town)\n"
    "aggregate size(Town A, Number K) := K = count(Town B: sells(Town A, Town B) & size(Town B, Number N))",
)  # fmt: skip


@check(AGGREGATE_OF_ITSELF)
def aggregates_of_themselves(library: Library) -> Iterator[Diagnostic]:
    """Aggregates whose premise depends on their own atoms, so that they have no value."""
    # With the closure rules: a cycle may run over a predicate that is declared symmetric or transitive.
    for cycle in negative_cycles(library.with_closure()):
        for item in library.aggregates:
            if item.atom.indicator in cycle:
                yield AGGREGATE_OF_ITSELF.at(
                    item.place,
                    f"the aggregate {item.atom.indicator} depends on itself: {' <- '.join(cycle)}",
                    "Remove the aggregate from the cycle",
                )
                break


AGGREGATE_OF_OPEN: Final = RuleFault.error(
    "HPX131", "aggregate over an open predicate",
    "oracle is_in(Ingredient, Dish)\n"
    "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
)  # fmt: skip


@check(AGGREGATE_OF_OPEN)
def aggregates_over_open_predicates(library: Library) -> Iterator[Diagnostic]:
    """Aggregates over predicates of which a model supplies facts: never all there are, so that no count is true."""
    for item in library.aggregates:
        for indicator in _open_below(item, library):
            yield AGGREGATE_OF_OPEN.at(
                item.place,
                f"the aggregate {item.atom.indicator} rests on {indicator}, of which a model supplies facts, "
                "never all there are",
                f'Declare the predicate as given, or "closed {indicator}" if all its facts are known',
            )


def _open_below(item: AggregateDeclaration, library: Library) -> Iterator[str]:
    """Indicators of the predicates below an aggregate that a model may be asked for and that are not closed."""
    rules = library.with_closure().concluding
    waiting = [literal.atom.indicator for literal in literals_of(rules.get(item.atom.indicator, ()))]
    seen: set[str] = set()
    while waiting:
        indicator = waiting.pop(0)
        if indicator in seen:
            continue
        seen.add(indicator)
        signature = library.signature(indicator)
        # An undeclared predicate that rules conclude comes from these alone, and no model is asked for it.
        is_asked = signature.kind in ASKED_KINDS and (signature.declared or indicator not in library.derived)
        if is_asked and library.closedness(indicator) is not Closedness.CLOSED:
            yield indicator
        waiting += [literal.atom.indicator for literal in literals_of(rules.get(indicator, ()))]


AGGREGATE_CHECKS: tuple[Check, ...] = (
    unknown_functions,
    unbound_in_aggregates,
    aggregates_of_texts,
    aggregates_of_themselves,
    aggregates_over_open_predicates,
)
