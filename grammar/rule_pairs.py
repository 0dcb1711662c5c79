"""Checks of two rules against each other: the same twice, one inside the other, and one against the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from grammar import faults
from grammar.errors import Diagnostic
from grammar.rules import Library, Rule
from grammar.satisfiable import contradiction
from grammar.subsumption import subsumes
from grammar.terms import Arithmetic, Atom, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable


def duplicate_and_subsumed_rules(library: Library) -> Iterator[Diagnostic]:
    """Rules that are equal up to renaming, and rules whose every conclusion another rule draws from less."""
    for first, second in _pairs(library.rules):
        forward, backward = subsumes(first, second, library), subsumes(second, first, library)
        if forward and backward:
            yield faults.DUPLICATE.at(
                second.place,
                f"rule {second.name} says the same as rule {first.name}",
                "Take one of them out",
                first.place,
            )
        elif forward or backward:
            general, special = (first, second) if forward else (second, first)
            yield faults.SUBSUMED.at(
                special.place,
                f"all that rule {special.name} concludes follows by rule {general.name} already, which asks for less",
                f"Take rule {special.name} out, or add to the premise of rule {general.name} what it lacks",
                general.place,
            )


def _pairs(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Pairs with one concluded predicate, in order."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.conclusion.atom.indicator, []).append(rule)
    for group in groups.values():
        yield from combinations(group, 2)


def opposite_conclusions(library: Library) -> Iterator[Diagnostic]:
    """Two rules that conclude a thing and its contrary of the same values, and nothing excludes that both apply."""
    for first, second in combinations(library.rules, 2):
        opposite = library.opposite_of(first.conclusion.atom.predicate)
        if opposite == second.conclusion.atom.predicate and can_meet(first, second, library):
            yield faults.OPPOSED.at(
                second.place,
                f"rule {second.name} concludes {opposite}, and rule {first.name} the contrary, "
                f"{first.conclusion.atom.predicate}, under premises that can hold together",
                "Add to one premise what keeps them apart",
                first.place,
            )


def can_meet(first: Rule, second: Rule, library: Library) -> bool:
    """Whether both rules can apply to the same arguments of their conclusions."""
    other = _renamed_apart(second)
    pairs = list(zip(first.conclusion.atom.arguments, other.conclusion.atom.arguments, strict=False))
    if len(first.conclusion.atom.arguments) != len(other.conclusion.atom.arguments):
        return False
    if not all(_overlap(one, another, library) for one, another in pairs):
        return False
    equations = [Comparison("=", one, another) for one, another in pairs]
    return not contradiction((*first.premise, *other.premise, *equations), library)


def _overlap(one: Term, other: Term, library: Library) -> bool:
    """Whether a value can be both. Unrelated types are taken to have no common values."""
    if isinstance(one, Variable) and isinstance(other, Variable):
        return library.most_specific((one.data_type, other.data_type)) is not None
    return True


def _renamed_apart(rule: Rule) -> Rule:
    """The rule with variables that no file can write, so that they meet those of another rule only where equated."""
    premise = tuple(_primed(item) for item in rule.premise)
    return replace(rule, premise=premise, conclusion=Literal(_primed_atom(rule.conclusion.atom)))


def _primed(item: BodyLiteral) -> BodyLiteral:
    if isinstance(item, Literal):
        return Literal(_primed_atom(item.atom), item.negated)
    return Comparison(item.operator, _primed_expression(item.left), _primed_expression(item.right))


def _primed_atom(atom: Atom) -> Atom:
    return Atom(atom.predicate, tuple(_primed_term(term) for term in atom.arguments))


def _primed_term(term: Term) -> Term:
    return term if isinstance(term, Constant) else Variable(f"{term.name}'", term.data_type)


def _primed_expression(expression: Expression) -> Expression:
    if isinstance(expression, Arithmetic):
        return Arithmetic(
            expression.operator, _primed_expression(expression.left), _primed_expression(expression.right)
        )
    return _primed_term(expression)
