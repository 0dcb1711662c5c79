"""Checks of declared properties, closedness, disjoint types and constraints, and of the rules that break them.

Each check stands below the faults that it finds. A new check is a fault, a function and a line in DECLARATION_CHECKS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from hapax.grammar.arithmetic import holds
from hapax.grammar.declarations import ClosedDeclaration, Constraint, Property, PropertyDeclaration
from hapax.grammar.errors import Diagnostic
from hapax.grammar.faults import Check, RuleFault, check
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.satisfiable import contradiction
from hapax.grammar.subsumption import Matcher, subsumes
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Term,
    item_place,
    variable_names,
)

_BROKEN = Literal(Atom("broken", ()))
"""Conclusion that makes a rule of a constraint, so that rules can be compared with it."""

UNBOUND_IN_CONSTRAINT: Final = RuleFault.error(
    "HPX118", "constraint with an unbound variable",
    "oracle owns(Person, Pet)\nnever owns(Person X, Pet A) & not is_tame(Pet B)",
)  # fmt: skip


@check(UNBOUND_IN_CONSTRAINT, even_if_incomplete=True)
def unbound_in_constraint(library: Library) -> Iterator[Diagnostic]:
    """Variables of a constraint's negated literals and comparisons that no positive literal binds."""
    for constraint in library.constraints:
        positive = [item for item in constraint.premise if isinstance(item, Literal) and not item.negated]
        bound = variable_names(positive)
        for name in sorted(variable_names(constraint.premise) - bound):
            using = [item for item in constraint.premise if name in variable_names((item,))]
            yield UNBOUND_IN_CONSTRAINT.at(
                item_place(using[0]) or constraint.place,
                f"{name} in the constraint is not in a literal without a negation",
                f"Add a premise about {name}",
            )


EXCLUDING_PROPERTIES: Final = RuleFault.error(
    "HPX119", "properties that exclude each other",
    "oracle borders(Country, Country)\nsymmetric borders/2\nasymmetric borders/2",
)  # fmt: skip


@check(EXCLUDING_PROPERTIES, even_if_incomplete=True)
def excluding_properties(library: Library) -> Iterator[Diagnostic]:
    """Predicates that are declared symmetric and asymmetric."""
    for item in library.properties:
        if item.property is Property.ASYMMETRIC and library.has_property(item.indicator, Property.SYMMETRIC):
            yield EXCLUDING_PROPERTIES.at(
                item.place,
                f"{item.indicator} is declared symmetric and asymmetric, so that no fact of it is possible",
                "Remove one of the declarations",
            )


MISPLACED_PROPERTY: Final = RuleFault.error(
    "HPX120", "property of a predicate without two arguments of one type",
    "oracle gives(Person, Present, Person)\nsymmetric gives/3",
)  # fmt: skip
UNKNOWN_PREDICATE: Final = RuleFault.warning(
    "HPX214", "declaration of an unknown predicate", "oracle borders(Country, Country)\nclosed boarders/2"
)


@check(MISPLACED_PROPERTY, UNKNOWN_PREDICATE)
def misplaced_declarations(library: Library) -> Iterator[Diagnostic]:
    """Properties of predicates that cannot have them, and declarations of predicates that nothing else mentions."""
    for item in library.declarations:
        if not isinstance(item, PropertyDeclaration | ClosedDeclaration):
            continue
        if not library.knows(item.indicator):
            yield UNKNOWN_PREDICATE.at(
                item.place,
                f"{item.indicator} is declared {_keyword(item)}, but no rule or declaration mentions it",
                "Correct the name or the number of arguments, or remove the line",
            )
        elif isinstance(item, PropertyDeclaration) and not _joins_one_type(item, library):
            yield MISPLACED_PROPERTY.at(
                item.place,
                f"{item.indicator} cannot be {item.property}: it does not have two arguments of one type",
                "Remove the line",
            )


def _keyword(item: PropertyDeclaration | ClosedDeclaration) -> str:
    return str(item.property) if isinstance(item, PropertyDeclaration) else "closed"


def _joins_one_type(item: PropertyDeclaration, library: Library) -> bool:
    """True if a value may stand at both arguments of the predicate."""
    types = library.signature(item.indicator).argument_types
    return len(types) == 2 and library.most_specific(types) is not None


OVERLAPPING_TYPES: Final = RuleFault.error(
    "HPX121", "disjoint types that overlap", "type Tomato < Fruit\ntype Tomato < Vegetable\ndisjoint Fruit, Vegetable"
)


@check(OVERLAPPING_TYPES, even_if_incomplete=True)
def overlapping_types(library: Library) -> Iterator[Diagnostic]:
    """Types declared disjoint of which one contains the other, or a third type is below both."""
    declared = dict.fromkeys(chain.from_iterable(library.subtypes))
    for item in library.disjoint_types:
        for data_type in (item.first, item.second, *declared):
            if library.is_subtype(data_type, item.first) and library.is_subtype(data_type, item.second):
                yield OVERLAPPING_TYPES.at(
                    item.place,
                    f"{item.first} and {item.second} are declared disjoint, but {data_type} is of both types",
                    "Remove the declaration, or one of the subtypes",
                )
                break


BREAKING_RULE: Final = RuleFault.error(
    "HPX122", "rule that breaks a declaration",
    "irreflexive borders/2\n"
    "is_in(City B, Country A) & lives_in(Person X, Country A) & borders(Country A, Country A)\n"
    "  -> likes(Person X, City B)",
)  # fmt: skip
BREAKING_FACTS: Final = RuleFault.error(
    "HPX123", "stated facts that break a declaration",
    'given is_parent_of(Person, Person)\nasymmetric is_parent_of/2\n'
    'fact is_parent_of("Ann", "Bob")\nfact is_parent_of("Bob", "Ann")',
)  # fmt: skip


@check(BREAKING_RULE, BREAKING_FACTS, even_if_incomplete=True)
def broken_declarations(library: Library) -> Iterator[Diagnostic]:
    """Rules whose premise, or premise and conclusion, are what a constraint forbids; stated facts that break one."""
    stated = _as_rule(tuple(Literal(fact) for fact in library.facts))
    for constraint in library.constraints:
        forbidden = _as_rule(constraint.premise)
        if _is_broken(constraint, stated, library):
            yield BREAKING_FACTS.at(
                constraint.place, f'the stated facts break "{constraint.origin}"', "Remove a fact, or the declaration"
            )
        for rule in library.rules:
            if subsumes(forbidden, _as_rule(rule.premise), library):
                part = "its premise"
            elif subsumes(forbidden, _as_rule((*rule.premise, rule.conclusion)), library):
                part = "its premise and its conclusion together"
            else:
                continue
            yield BREAKING_RULE.at(
                rule.place,
                f'rule {rule.name} breaks "{constraint.origin}": {part} cannot hold',
                "Correct the rule, or remove the declaration",
                constraint.place,
            )
    for item in library.disjoint_types:
        of_first, of_second = (_stated_texts(library, data_type) for data_type in (item.first, item.second))
        for text in filter(of_second.__contains__, of_first):
            facts = dict.fromkeys((of_first[text], of_second[text]))
            verb = "breaks" if len(facts) == 1 else "break"
            yield BREAKING_FACTS.at(
                item.place,
                f'{" and ".join(map(str, facts))} {verb} "{item}"',
                "Remove a fact, or the declaration",
                *(fact.place for fact in facts if fact.place is not None),
            )


def _stated_texts(library: Library, data_type: str) -> dict[str, Atom]:
    """The texts that stated facts have under a type or its subtypes, each with the first such fact."""
    found: dict[str, Atom] = {}
    for fact in library.facts:
        types = library.signature(fact.indicator).argument_types
        for term, argument_type in zip(fact.arguments, types, strict=True):
            # Numbers are left out: a year and a height may be the same number.
            is_text = isinstance(term, Constant) and isinstance(term.value, str)
            if is_text and library.is_subtype(argument_type, data_type):
                found.setdefault(str(term), fact)
    return found


def _is_broken(constraint: Constraint, stated: Rule, library: Library) -> bool:
    """True if the premise of `stated`, which are facts, has what the constraint forbids."""
    literals = [item for item in constraint.premise if isinstance(item, Literal)]
    comparisons = [item for item in constraint.premise if isinstance(item, Comparison)]
    # Facts have no variables, so that the comparisons are calculated rather than deduced from all facts together.
    for binding in Matcher(library).bindings(literals, stated):
        values = {name: term.value for name, term in binding.items() if isinstance(term, Constant)}
        if all(variable_names([item]) <= values.keys() and holds(item, values) for item in comparisons):
            return True
    return False


def _as_rule(premise: tuple[BodyLiteral, ...]) -> Rule:
    return Rule("", premise, _BROKEN)


IDLE_CONSTRAINT: Final = RuleFault.warning(
    "HPX215", "constraint that nothing can break",
    "never was_born_in(Person X, Year A) & died_in(Person X, Year B) & A < B & B < A",
)  # fmt: skip


@check(IDLE_CONSTRAINT, even_if_incomplete=True)
def idle_constraints(library: Library) -> Iterator[Diagnostic]:
    """Constraints whose premises already exclude each other, by comparisons, negation or a functional predicate."""
    for item in library.declarations:
        if isinstance(item, Constraint) and (core := contradiction(item.premise, library)):
            first, *others = (item_place(part) or item.place for part in core)
            yield IDLE_CONSTRAINT.at(
                first,
                f"nothing can break the constraint: {' & '.join(map(str, core))} never holds",
                "Correct one of these, or remove the constraint",
                *others,
            )


CONTRARY_FACTS: Final = RuleFault.error(
    "HPX124", "stated facts that contradict each other",
    'functional was_built_in(Tower, Year)\nfact was_built_in("Eiffel Tower", 1887)\n'
    'fact was_built_in("Eiffel Tower", 1889)',
)  # fmt: skip


@check(CONTRARY_FACTS, even_if_incomplete=True)
def contrary_facts(library: Library) -> Iterator[Diagnostic]:
    """Two values of a functional predicate, and both of two opposites, stated as facts."""
    values: dict[tuple[str, tuple[Term, ...]], Atom] = {}
    stated: dict[Atom, Atom] = {}
    for fact in library.facts:
        stated.setdefault(fact, fact)  # the first of two equal facts
    for fact in stated:
        signature = library.signature(fact.indicator)
        if signature.kind is PredicateKind.FUNCTIONAL:
            key = (fact.indicator, fact.arguments[:-1])
            first = values.setdefault(key, fact)
            if first != fact:
                yield CONTRARY_FACTS.at(
                    fact.place or signature.place,
                    f"{fact.predicate} is functional, but two of its values are stated: {first} and {fact}",
                    "Remove one of the facts",
                    first.place or signature.place,
                )
        opposite = library.opposite_of(fact.predicate)
        # Of a pair only the fact with the earlier name reports it.
        contrary = stated.get(replace(fact, predicate=opposite)) if opposite and fact.predicate < opposite else None
        if contrary is not None:
            yield CONTRARY_FACTS.at(
                fact.place or signature.place,
                f"{fact.predicate} and {opposite} are opposites, but both are stated: {fact}",
                "Remove one of the facts",
                contrary.place or signature.place,
            )


DECLARATION_CHECKS: tuple[Check, ...] = (
    unbound_in_constraint,
    excluding_properties,
    misplaced_declarations,
    overlapping_types,
    broken_declarations,
    idle_constraints,
    contrary_facts,
)
