"""Checks of single rules: their variables, their logic and the values they compare.

Each check stands below the faults that it finds. A new check is a fault, a function and a line in RULE_CHECKS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from hapax.grammar.attributes import GenericBy
from hapax.grammar.dependencies import negative_cycles, unreachable_variables
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.faults import Check, RuleFault, check
from hapax.grammar.predicate_checks import misfits, rules_of_right_arity
from hapax.grammar.prolog_text import is_numeric
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.satisfiable import contradiction, divisors, is_zero
from hapax.grammar.terms import (
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    expression_text,
    item_place,
    variable_names,
)

UNBOUND_CONCLUSION: Final = RuleFault.error(
    "HPX101", "unbound head variable",
    "eats(Person X, Food A) & is_of(Food A, Ingredient Z) & is_in(Ingredient Z, Dish B) -> can_eat(Person P, Dish B)",
)  # fmt: skip


@check(UNBOUND_CONCLUSION, even_if_incomplete=True)
def unbound_conclusion_variable(library: Library) -> Iterator[Diagnostic]:
    """Variables of the conclusion that the premise never mentions: the rule would hold for every value."""
    for rule in rules_of_right_arity(library):
        for variable in rule.unbound:
            near = _namesake(rule, variable, library)
            yield UNBOUND_CONCLUSION.at(
                rule.at(rule.conclusion.atom.place_of(variable.name)),
                f"unbound head variable: {variable} is in the conclusion of rule {rule.name} but not in its premise",
                f"Did you mean {near}?" if near else f"Add a literal with {variable} to the premise",
            )


def _namesake(rule: Rule, missing: Variable, library: Library) -> Variable | None:
    """A premise variable of a fitting type that the conclusion does not use: most likely the intended one."""
    used = variable_names([rule.conclusion])
    for variable in rule.variables:
        if variable.name not in used and library.most_specific((variable.data_type, missing.data_type)):
            return variable
    return None


TWO_TYPES: Final = RuleFault.error(
    "HPX102", "variable with two unrelated types",
    "eats(Person X, Food A) & is_in(Ingredient Z, Animal A) -> knows_taste_of(Person X, Ingredient Z)",
)  # fmt: skip


@check(TWO_TYPES, even_if_incomplete=True)
def variable_with_two_types(library: Library) -> Iterator[Diagnostic]:
    """Types of one variable that are not subtypes of one another."""
    for rule in library.written_rules:
        types: dict[str, dict[str, Place]] = {}
        for name, data_type, place in _types_of_variables(rule, library):
            types.setdefault(name, {}).setdefault(data_type, place)
        for name, used in types.items():
            if library.most_specific(tuple(used)) is None:
                first, second, *_ = used
                yield TWO_TYPES.at(
                    used[second],
                    f"{name} has the unrelated types {' and '.join(used)} in rule {rule.name}",
                    f'Use two variables, or declare "type {first} < {second}"',
                    used[first],
                )


def _types_of_variables(rule: Rule, library: Library) -> Iterator[tuple[str, str, Place]]:
    """Variable name, data type and place of each use, without types that the declaration of their own atom rejects."""
    for atom in rule.atoms:
        # `uses_of_predicates` reports the rejected ones.
        rejecting = library.signature(atom.indicator).declared
        rejected = [position for position, _, _ in misfits(atom, library)] if rejecting else []
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and position not in rejected:
                place = atom.argument_places[position] if atom.argument_places else atom.place
                yield term.name, term.data_type, rule.at(place)
    for comparison in rule.comparisons:
        if comparison.typed and isinstance(comparison.left, Variable):
            yield comparison.left.name, comparison.left.data_type, rule.at(comparison.place)


UNCONNECTED: Final = RuleFault.error(
    "HPX103", "disconnected premise",
    "eats(Person X, Food A) & flows_through(River R, City B) -> can_visit(Person X, City B)",
)  # fmt: skip


@check(UNCONNECTED, even_if_incomplete=True)
def unconnected_premise(library: Library) -> Iterator[Diagnostic]:
    """Parts of a premise that share no variable: a second, unrelated rule."""
    for rule in rules_of_right_arity(library):
        groups = _connected_variables(rule)
        # A variable without a value is most often a misprint of the link; `unreachable_variable` reports it.
        if len(groups) > 1 and not unreachable_variables(rule, library):
            parts = " and ".join("{" + ", ".join(sorted(group)) + "}" for group in groups)
            yield UNCONNECTED.at(
                rule.place,
                f"the premise of rule {rule.name} falls into parts that share no variable: {parts}",
                "Add a literal that connects them, or remove one of them",
            )


def _connected_variables(rule: Rule) -> list[set[str]]:
    """Names of the premise's variables, grouped so that literals join only variables of one group."""
    groups: list[set[str]] = []
    for item in rule.premise:  # each item merges the groups that it touches
        joined = variable_names([item])
        if joined:
            touching = [group for group in groups if group & joined]
            groups = [group for group in groups if not group & joined] + [joined.union(*touching)]
    return groups


TAUTOLOGY: Final = RuleFault.warning(
    "HPX104", "tautology",
    "likes(Person X, Dish B) & is_in(Ingredient Z, Dish B) -> likes(Person X, Dish B)",
)  # fmt: skip


@check(TAUTOLOGY, even_if_incomplete=True)
def tautology(library: Library) -> Iterator[Diagnostic]:
    """Conclusions that the premise already states; paper, section 2.2."""
    for rule in library.rules:
        for literal in _restated(rule, library):
            yield TAUTOLOGY.at(
                rule.at(rule.conclusion.atom.place),
                f"rule {rule.name} is a tautology: its premise already states {literal}",
                "Conclude something that the premise does not state",
                rule.at(literal.atom.place),
            )


def _restated(rule: Rule, library: Library) -> Iterator[Literal]:
    """The literals of the premise that state the conclusion."""
    conclusion = rule.conclusion.atom
    for literal in rule.literals:
        # `not cannot_eat(X, A)` states what `can_eat(X, A)` concludes.
        opposite = library.opposite_of(literal.atom.predicate) if literal.negated else literal.atom.predicate
        same_arguments = _untyped(literal.atom.arguments) == _untyped(conclusion.arguments)
        if same_arguments and opposite == conclusion.predicate:
            yield literal


def adds_nothing(rule: Rule, library: Library) -> bool:
    """True if the rule concludes nothing new from any facts: a tautology, or a premise that can never hold."""
    if contradiction(rule.premise, library) or any(not literal.negated for literal in _restated(rule, library)):
        return True
    sides = chain.from_iterable((comparison.left, comparison.right) for comparison in rule.comparisons)
    return any(is_zero(divisor, library) for divisor in chain.from_iterable(map(divisors, sides)))


def _untyped(terms: tuple[Term, ...]) -> list[str]:
    return [str(term) if isinstance(term, Constant) else term.name for term in terms]


FEW_VARIABLES: Final = RuleFault.error(
    "HPX105", "fewer than three variables",
    "allergic_to(Person X, Allergen A) -> reacts_badly_to(Person X, Allergen A)",
)  # fmt: skip


@check(FEW_VARIABLES)
def fewer_than_three_variables(library: Library) -> Iterator[Diagnostic]:
    """Rules of two variables, which leave nothing to reason about; paper, section 2.2.

    Definitions are exempt: rules that other rules use, and rules without a generic variable.
    """
    for rule in rules_of_right_arity(library):
        is_definition = not rule.generic or rule.conclusion.atom.indicator in library.in_premises
        if len(rule.variables) < 3 and not is_definition:
            yield FEW_VARIABLES.at(
                rule.place,
                f"rule {rule.name} has fewer than three variables, so it can only restate its premise",
                "Add the literal from which the conclusion follows, or write @generic none if it defines a predicate",
            )


BY_POSITION: Final = RuleFault.note(
    "HPX302", "inferred generic variable",
    "has_room_for(Room B, Furniture C) & is_smaller_than(Furniture A, Furniture C) -> can_fit_in(Furniture A, Room B)",
)  # fmt: skip


@check(BY_POSITION)
def generic_by_position(library: Library) -> Iterator[Diagnostic]:
    """Rules whose generic variable was inferred although they conclude about no person: the guess may be wrong."""
    for rule in rules_of_right_arity(library):
        inferred = rule.generic_by in (GenericBy.POSITION, GenericBy.NOTHING)
        if inferred and not rule.unbound and rule.conclusion.atom.indicator not in library.in_premises:
            names = ", ".join(variable.name for variable in rule.conclusion.variables)
            generic = rule.generic_text if rule.generic else "no variable"
            yield BY_POSITION.at(
                rule.place,
                f"rule {rule.name} has no person in its conclusion and no @generic, so {generic} is taken as generic",
                f"Choose with @generic what its statements are about: {names} or none",
            )


NEVER: Final = RuleFault.warning(
    "HPX108", "premise that can never hold",
    "lived(Person X, Year A) & built(Tower B, Year C) & A < C & C < A -> saw(Person X, Tower B)",
)  # fmt: skip


@check(NEVER, even_if_incomplete=True)
def premise_that_never_holds(library: Library) -> Iterator[Diagnostic]:
    """Premises with items that exclude each other: comparisons, a literal and its negation, or two values of a
    functional predicate.
    """
    for rule in library.written_rules:
        core = contradiction(rule.premise, library)
        if core:
            first, *others = (rule.at(item_place(item)) for item in core)
            yield NEVER.at(
                first,
                f"the premise of rule {rule.name} can never hold: {' & '.join(map(str, core))}",
                "Remove or reverse one of these",
                *others,
            )


UNSTRATIFIED: Final = RuleFault.error(
    "HPX109", "predicate that depends on its own negation",
    "likes(Person X, Dish A) & is_like(Dish A, Dish B) & not may_eat(Person X, Dish A) -> may_eat(Person X, Dish B)",
)  # fmt: skip


def _named_cycle(cycle: Sequence[str], library: Library) -> list[str]:
    """The indicators of a cycle, which begins and ends with one; exceptions are named by their text."""
    exceptions = {}
    for rule in library.rules:
        for clause in rule.exceptions:
            exceptions[clause.atom.indicator] = f'"unless {" & ".join(map(str, clause.stated))}"'
    members = list(cycle[:-1])
    # Begin at a predicate that the rules name.
    first = next((place for place, name in enumerate(members) if name not in exceptions), 0)
    turned = [*members[first:], *members[:first]]
    return [exceptions.get(name, name) for name in (*turned, turned[0])]


@check(UNSTRATIFIED)
def unstratified_negation(library: Library) -> Iterator[Diagnostic]:
    """Predicates that depend on their own negation and so have no truth value."""
    whole = library.with_closure()
    # `aggregates_of_themselves` reports the cycles over aggregates.
    cycles = [cycle for cycle in negative_cycles(whole) if not library.aggregated.intersection(cycle)]
    cycle_of: dict[str, tuple[str, ...]] = {}
    for members in cycles:
        cycle_of |= dict.fromkeys(members, members)
    rules: dict[tuple[str, ...], list[Rule]] = {cycle: [] for cycle in cycles}
    for rule in library.rules:
        if cycle := cycle_of.get(rule.conclusion.atom.indicator):
            rules[cycle].append(rule)
    for cycle, concluding in rules.items():
        named = _named_cycle(cycle, library)
        yield UNSTRATIFIED.at(
            concluding[0].place,
            f"{named[0]} depends on its own negation: {' <- '.join(named)}",
            "Remove the negation from the cycle",
            *(rule.place for rule in concluding[1:]),
        )


UNREACHABLE: Final = RuleFault.error(
    "HPX110", "variable without a source of values",
    "computed is_before(Year A, Year B) := A < B\n"
    "fought_in(Person X, War A) & ended_in(War A, Year E) & is_before(Year E, Year Y) -> could_see(Person X, Year Y)",
)  # fmt: skip


@check(UNREACHABLE, even_if_incomplete=True)
def unreachable_variable(library: Library) -> Iterator[Diagnostic]:
    """Variables that no order of search can bind, because only comparisons and computed predicates contain them."""
    for rule in rules_of_right_arity(library):
        # Those of negated literals are `unsafe_negation`'s.
        denied = variable_names(literal for literal in rule.literals if literal.negated)
        for variable in unreachable_variables(rule, library):
            if variable.name not in denied:
                using = [item for item in rule.premise if variable in item.variables]
                yield UNREACHABLE.at(
                    _place_of_use(rule, using, variable),
                    f"nothing gives {variable} a value in rule {rule.name}; arithmetic only compares it",
                    f"Add a literal that can be asked for {variable.name}, or an equation ({variable.name} = A + 1)",
                )


UNSAFE_NEGATION: Final = RuleFault.error(
    "HPX111", "negated literal with an unbound variable",
    "eats(Person X, Dish A) & is_in(Herb Z, Dish A) & not spoils(Spice S, Dish A) -> may_eat(Person X, Herb Z)",
)  # fmt: skip


@check(UNSAFE_NEGATION)
def unsafe_negation(library: Library) -> Iterator[Diagnostic]:
    """Variables that only negated literals contain: negation as failure tests values, it never finds any."""
    for rule in rules_of_right_arity(library):
        positive = variable_names(literal for literal in rule.literals if not literal.negated)
        unbound = {variable.name for variable in unreachable_variables(rule, library)}
        unbound |= set(rule.generic) - positive
        for literal in rule.literals:
            for variable in literal.variables if literal.negated else ():
                if variable.name in unbound:
                    yield UNSAFE_NEGATION.at(
                        rule.at(literal.atom.place_of(variable.name)),
                        f"{variable} occurs in rule {rule.name} only in the negated literal {literal}",
                        f"Add a positive literal that determines the {variable.data_type}",
                    )


ORDER_OF_TEXTS: Final = RuleFault.error(
    "HPX112", "order or arithmetic of texts",
    "likes(Person X, Dish A) & is_like(Dish A, Dish B) & A < B -> may_eat(Person X, Dish B)",
)  # fmt: skip
NUMBER_AND_TEXT: Final = RuleFault.error(
    "HPX113", "number and text mixed",
    "lived(Person X, Year A) & built(Tower B, Year C) & A = B -> saw(Person X, Tower B)",
)  # fmt: skip


@check(ORDER_OF_TEXTS, NUMBER_AND_TEXT, even_if_incomplete=True)
def comparison_of_texts(library: Library) -> Iterator[Diagnostic]:
    """Texts in arithmetic or under `<`, and equations between a number and a text."""
    for comparison, place, owner in _comparisons(library):
        for side in (comparison.left, comparison.right):
            for operand, operator in _operands(side, comparison.operator):
                if operator not in ("=", "\\=") and not is_numeric(operand, library):
                    yield ORDER_OF_TEXTS.at(
                        place,
                        f'{operand} is not a number, so "{operator}" in "{comparison}" of {owner} has no meaning',
                        _number_remedy(operand),
                    )
        if comparison.operator in ("=", "\\=") and _is_mixed(comparison, library):
            yield NUMBER_AND_TEXT.at(
                place, f'"{comparison}" of {owner} compares a number with a text', "Compare values of one kind"
            )


DIVISION_BY_ZERO: Final = RuleFault.warning(
    "HPX125", "division by zero",
    "lived(Person X, Year A) & built(Tower B, Year C) & A / (C - C) > 1 -> saw(Person X, Tower B)",
)  # fmt: skip


@check(DIVISION_BY_ZERO, even_if_incomplete=True)
def division_by_zero(library: Library) -> Iterator[Diagnostic]:
    """Divisors that are zero whatever their variables are: a comparison with one has no value and never holds."""
    for comparison, place, owner in _comparisons(library):
        for divisor in (*divisors(comparison.left), *divisors(comparison.right)):
            if is_zero(divisor, library):
                is_constant = isinstance(divisor, Constant)
                zero = "zero" if is_constant else f"{expression_text(divisor)}, which is always zero"
                yield DIVISION_BY_ZERO.at(
                    place,
                    f'"{comparison}" of {owner} divides by {zero}, so it never holds',
                    "Correct the divisor",
                )


def _place_of_use(rule: Rule, using: Sequence[BodyLiteral], variable: Variable) -> Place:
    """The place of the variable in the first item that uses it."""
    for item in using:
        return rule.at(item.place if isinstance(item, Comparison) else item.atom.place_of(variable.name))
    return rule.at(rule.conclusion.atom.place_of(variable.name))


def _comparisons(library: Library) -> Iterator[tuple[Comparison, Place, str]]:
    """Every comparison with the place and the name of its rule, constraint or computed predicate."""
    for rule in library.rules:
        for comparison in rule.comparisons:
            yield comparison, rule.at(comparison.place), f"rule {rule.name}"
    for constraint in library.constraints:
        for item in constraint.premise:
            if isinstance(item, Comparison):
                yield item, item.place or constraint.place, "the constraint"
    for signature in library.signatures:
        if signature.definition is not None:
            yield (
                signature.definition,
                signature.definition.place or signature.place,
                f"the computed predicate {signature.name}",
            )


def _operands(expression: Expression, operator: str) -> Iterator[tuple[Variable | Constant, str]]:
    """The leaves of an expression, each with the operator that is applied to it."""
    if isinstance(expression, Arithmetic):
        yield from _operands(expression.left, expression.operator)
        yield from _operands(expression.right, expression.operator)
    else:
        yield expression, operator


def _number_remedy(operand: Variable | Constant) -> str:
    if isinstance(operand, Constant):
        return "Write the number without quotes"
    return f'If its values are numbers, declare "type {operand.data_type} < Number"'


def _is_mixed(comparison: Comparison, library: Library) -> bool:
    """One side is a number and the other cannot be one. A Time may be a Year, which is a number."""
    left, right = comparison.left, comparison.right
    if is_numeric(left, library):
        return not _may_be_number(right, library)
    return is_numeric(right, library) and not _may_be_number(left, library)


def _may_be_number(expression: Expression, library: Library) -> bool:
    if isinstance(expression, Variable):
        return library.may_be_numeric(expression.data_type)
    return is_numeric(expression, library)


@check(NUMBER_AND_TEXT)
def constant_of_wrong_kind(library: Library) -> Iterator[Diagnostic]:
    """Texts where the argument's type is numeric, and numbers where it is not."""
    atoms: list[tuple[Atom, Rule | None, str]] = []
    for rule in library.rules:
        atoms += [(atom, rule, f" of rule {rule.name}") for atom in rule.atoms]
    atoms += [(fact, None, ", a fact") for fact in library.facts]
    atoms += [(atom, None, ", an example") for atom in library.examples]
    for atom, user, owner in atoms:
        signature = library.signature(atom.indicator)
        for position, (term, data_type) in enumerate(zip(atom.arguments, signature.argument_types, strict=True)):
            if not isinstance(term, Constant):
                continue
            # A type like Time, which has the subtype Year, takes both.
            fits = library.may_be_numeric(data_type) if term.is_number else not library.is_numeric(data_type)
            if not fits:
                place = atom.argument_places[position] if atom.argument_places else atom.place
                yield NUMBER_AND_TEXT.at(
                    user.at(place) if user is not None else place or signature.place,
                    f"{term} in {atom}{owner} is a {'number' if term.is_number else 'text'}, but {data_type} "
                    f"is a type of {'texts' if term.is_number else 'numbers'}",
                    "Quote texts, and write numbers without quotes",
                )


COMPUTED_CONCLUDED: Final = RuleFault.error(
    "HPX114", "computed predicate as a conclusion or fact",
    "computed is_before(Year A, Year B) := A < B\nfact is_before(1815, 1876)",
)  # fmt: skip


@check(COMPUTED_CONCLUDED, even_if_incomplete=True)
def computed_predicate_concluded(library: Library) -> Iterator[Diagnostic]:
    """Conclusions and facts over computed predicates, which only arithmetic decides."""
    concluded = [(rule.conclusion.atom, rule.at(rule.conclusion.atom.place)) for rule in library.rules]
    concluded += [(fact, fact.place or library.signature(fact.indicator).place) for fact in library.facts]
    for atom, place in concluded:
        if library.signature(atom.indicator).kind is PredicateKind.COMPUTED:
            yield COMPUTED_CONCLUDED.at(
                place,
                f"{atom} is concluded or stated, but {atom.predicate} is computed",
                "Remove it, or declare the predicate as given",
            )


RULE_CHECKS: tuple[Check, ...] = (
    unbound_conclusion_variable,
    variable_with_two_types,
    unconnected_premise,
    tautology,
    fewer_than_three_variables,
    generic_by_position,
    premise_that_never_holds,
    unstratified_negation,
    unreachable_variable,
    unsafe_negation,
    comparison_of_texts,
    division_by_zero,
    constant_of_wrong_kind,
    computed_predicate_concluded,
)
