"""Checks of recursion: rules that go on calculating new numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from hapax.grammar.dependencies import replaced_expression
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.faults import Check, RuleFault, check
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Arithmetic, Comparison, Constant, Expression, Literal, Variable, variable_names

COUNTS_FOR_EVER: Final = RuleFault.warning(
    "HPX221", "recursion that counts for ever",
    "given starts_at(Place, Number)\n@generic none\n"
    "starts_at(Place A, Number N) -> is_reached_at(Place A, Number N)\n@generic none\n"
    "is_reached_at(Place A, Number N) & M = N + 1 -> is_reached_at(Place A, Number M)",
)  # fmt: skip

_UP, _DOWN = "<", ">"


@check(COUNTS_FOR_EVER)
def recursion_that_counts_for_ever(library: Library) -> Iterator[Diagnostic]:
    """Recursive rules that conclude a number calculated from that of their premise, without a limit of either."""
    users = _users(library)
    for rule in library.rules:
        comparisons = list(_comparisons(rule, library))
        assignments = chain.from_iterable(_assignments(comparison) for comparison, _ in comparisons)
        calculated = {target.name for target, _ in assignments}
        if calculated.isdisjoint(variable.name for variable in rule.conclusion.variables):
            continue
        resting = _resting_on(rule.conclusion.atom.indicator, users)
        own = [item for item in rule.literals if not item.negated and item.atom.indicator in resting]
        if not own:
            continue
        others = [item for item in rule.literals if not item.negated and item not in own]
        # Facts are finite: a number that another literal must contain as well cannot grow for ever.
        limited = variable_names(item for item in others if not _is_computed(item, library))
        counted = variable_names(own) - limited
        concluded = variable_names([rule.conclusion]) - limited - variable_names(own)
        for _ in comparisons:  # an equation may calculate from what another one has calculated
            for comparison, place in comparisons:
                for target, source in _assignments(comparison):
                    if target.name in counted | limited or not _names(source) & counted:
                        continue
                    if not _is_limited(target, source, comparisons):
                        counted.add(target.name)
                        if target.name in concluded:
                            yield _counts(rule, target, source, place)


def _users(library: Library) -> dict[str, set[str]]:
    """By indicator, the predicates that a rule concludes from it."""
    users: dict[str, set[str]] = {}
    for rule in library.rules:
        for literal in rule.literals:
            users.setdefault(literal.atom.indicator, set()).add(rule.conclusion.atom.indicator)
    return users


def _resting_on(indicator: str, users: dict[str, set[str]]) -> set[str]:
    """The predicate and all that rules conclude from it, directly or not."""
    found, waiting = {indicator}, [indicator]
    while waiting:
        new = users.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def _counts(rule: Rule, target: Variable, source: Arithmetic, place: Place | None) -> Diagnostic:
    name = rule.conclusion.atom.predicate
    limit = f"{target.name} {'>' if _direction(source) == _DOWN else '<'} 100"
    return COUNTS_FOR_EVER.at(
        rule.at(place),
        f"rule {rule.name} may count for ever: {target.name} = {source} makes a further {name} of each, "
        f"and nothing limits {target.name}",
        f'Add a limit to the premise, such as "{limit}"',
    )


def _is_computed(literal: Literal, library: Library) -> bool:
    return library.signature(literal.atom.indicator).kind is PredicateKind.COMPUTED


def _comparisons(rule: Rule, library: Library) -> Iterator[tuple[Comparison, Place | None]]:
    """The comparisons of the premise, those that its computed predicates stand for included."""
    for item in rule.premise:
        if isinstance(item, Comparison):
            yield item, item.place
        elif isinstance(item, Literal) and not item.negated:
            signature = library.signature(item.atom.indicator)
            if signature.definition is not None and len(signature.parameters) == len(item.atom.arguments):
                names = (parameter.name for parameter in signature.parameters)
                terms = dict(zip(names, item.atom.arguments, strict=True))
                definition = signature.definition
                left, right = replaced_expression(definition.left, terms), replaced_expression(definition.right, terms)
                yield Comparison(definition.operator, left, right), item.atom.place


def _assignments(comparison: Comparison) -> Iterator[tuple[Variable, Arithmetic]]:
    """The calculations that the comparison equates with a variable."""
    if comparison.operator == "=":
        for target, source in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
            if isinstance(target, Variable) and isinstance(source, Arithmetic):
                yield target, source


def _names(expression: Expression) -> set[str]:
    return {variable.name for variable in Comparison("=", expression, expression).variables}


def _is_limited(target: Variable, source: Arithmetic, comparisons: list[tuple[Comparison, Place | None]]) -> bool:
    """True if a comparison limits the number or what it is calculated from, in the direction in which it goes."""
    names, direction = {target.name, *_names(source)}, _direction(source)
    for comparison, _ in comparisons:
        if comparison.operator == "=":
            sides = (comparison.left, comparison.right)
            if any(isinstance(side, Constant) for side in sides) and any(_names(side) & names for side in sides):
                return True
        elif comparison.operator != "\\=":
            rising = comparison.operator in ("<", "=<")
            small, large = (comparison.left, comparison.right) if rising else (comparison.right, comparison.left)
            # Without a known direction, a limit on either side is taken to be enough.
            if (direction != _DOWN and _names(small) & names) or (direction != _UP and _names(large) & names):
                return True
    return False


def _direction(source: Arithmetic) -> str:
    """The direction in which a sum or difference with a written number goes; empty for other calculations."""
    step = source.right if isinstance(source.right, Constant) else source.left
    if source.operator not in ("+", "-") or not isinstance(step, Constant) or isinstance(step.value, str):
        return ""
    if source.operator == "-" and step is source.left:
        return ""
    return _UP if (step.value > 0) == (source.operator == "+") else _DOWN


RECURSION_CHECKS: tuple[Check, ...] = (recursion_that_counts_for_ever,)
