"""Checks of single rules: their variables, their logic and the values they compare.

A check declares its faults in its decorator and gets them as arguments. A new check is a function and a line in
RULE_CHECKS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from hapax.grammar.checking.faults import Check, RuleFault, check
from hapax.grammar.checking.predicate_checks import misfits, rules_of_right_arity
from hapax.grammar.checking.satisfiable import contradiction, divisors, is_zero, never_holds
from hapax.grammar.data_types import NUMBER, OBJECT
from hapax.grammar.dependencies import cycle_text, negative_cycles, unreachable_variables
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.parsing.declarations import GenericBy
from hapax.grammar.parsing.shorthand import is_empty_collection
from hapax.grammar.rules import Library, Rule, comparison_of
from hapax.grammar.terms import (
    MISSING,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Variable,
    expression_names,
    expression_text,
    item_place,
    variable_names,
)
from hapax.grammar.values.moments import DURATION, MOMENTS, WRITTEN, is_written
from hapax.grammar.writing.prolog_text import is_numeric, type_of
from hapax.grammar.writing.texts import is_variable_word


@check(
    RuleFault.error(
        "HPX101", "unbound head variable",
        "eats(Person X, Food A) & is_of(Food A, Ingredient Z) & is_in(Ingredient Z, Dish B)"
        " -> can_eat(Person P, Dish B)",
        "eats(Person X, Food A) & is_of(Food A, Ingredient Z) & is_in(Ingredient Z, Dish B)"
        " -> can_eat(Person X, Dish B)",
    ),
)  # fmt: skip
def unbound_conclusion_variable(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Variables of the conclusion that the premise never mentions: the rule would hold for every value."""
    for rule in rules_of_right_arity(library):
        used = variable_names([rule.conclusion])
        unused = [variable for variable in rule.variables if variable.name not in used]
        for variable in rule.unbound:
            # A premise variable of a fitting type that the conclusion does not use is most likely the intended one.
            fitting = (known for known in unused if library.most_specific((known.data_type, variable.data_type)))
            near = next(fitting, None)
            yield fault.at(
                rule.at(rule.conclusion.atom.place_of(variable.name)),
                f"unbound head variable: {variable} is in the conclusion of rule {rule.name} but not in its premise",
                f"Did you mean {near}?" if near else f"Add a literal with {variable} to the premise",
            )


@check(
    RuleFault.error(
        "HPX102", "variable with two unrelated types",
        "eats(Person X, Food A) & is_in(Ingredient Z, Animal A) -> knows_taste_of(Person X, Ingredient Z)",
        "eats(Person X, Food A) & is_in(Ingredient Z, Food A) -> knows_taste_of(Person X, Ingredient Z)",
    ),
)  # fmt: skip
def variable_with_two_types(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Types of one variable that are not subtypes of one another."""
    for rule in library.written_rules:
        # Of each variable the types of its uses with their first places.
        types: dict[str, dict[str, Place]] = {}
        for variable, place in _typed_uses(rule, library):
            types.setdefault(variable.name, {}).setdefault(variable.data_type, rule.at(place))
        for name, used in types.items():
            if library.most_specific(tuple(used)) is None:
                first, second, *_ = used
                yield fault.at(
                    used[second],
                    f"{name} has the unrelated types {' and '.join(used)} in rule {rule.name}",
                    f'Use two variables, or declare "type {first} < {second}"',
                    used[first],
                )


def _typed_uses(rule: Rule, library: Library) -> Iterator[tuple[Variable, Place | None]]:
    """The uses of variables with their places, without those that the declaration of an atom rejects."""
    for atom in rule.atoms:
        # `uses_of_predicates` reports the rejected ones.
        is_declared = library.signature(atom.indicator).declared
        rejected = [position for position, _, _ in misfits(atom, library)] if is_declared else []
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and position not in rejected:
                yield term, atom.place_at(position)
    for comparison in rule.comparisons:
        if comparison.typed and isinstance(comparison.left, Variable):
            yield comparison.left, comparison.place


@check(
    RuleFault.warning(
        "HPX103", "disconnected premise",
        "eats(Person X, Food A) & flows_through(River R, City B) -> can_visit(Person X, City B)",
        "eats(Person X, Food A) & is_sold_in(Food A, City B) & flows_through(River R, City B)\n"
        "  -> can_visit(Person X, City B)",
    ),
)  # fmt: skip
def unconnected_premise(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Parts of a premise to search that share no variable: a second, unrelated rule."""
    for rule in rules_of_right_arity(library):
        groups = _connected_variables(rule) if library.is_searched(rule) else []
        # A variable without a value is most often a misprint of the link; `unreachable_variable` reports it.
        if len(groups) > 1 and not unreachable_variables(rule, library):
            parts = " and ".join("{" + ", ".join(sorted(group)) + "}" for group in groups)
            yield fault.at(
                rule.place,
                f"the premise of rule {rule.name} falls into parts that share no variable: {parts}",
                "Add a literal that connects them, or remove one of them",
            )


def _connected_variables(rule: Rule) -> list[set[str]]:
    """Names of the premise's variables, grouped so that literals join only variables of one group."""
    groups: list[set[str]] = []
    # A rule over facts may combine everything that reaches its conclusion.
    connecting = rule.premise if rule.generic else (*rule.premise, rule.conclusion)
    for joined in filter(None, (variable_names([item]) for item in connecting)):  # each merges the groups it touches
        apart = [group for group in groups if group.isdisjoint(joined)]
        groups = [*apart, joined.union(*(group for group in groups if group not in apart))]
    return groups


@check(
    RuleFault.warning(
        "HPX104", "tautology",
        "likes(Person X, Dish B) & is_in(Ingredient Z, Dish B) -> likes(Person X, Dish B)",
        "likes(Person X, Ingredient Z) & is_in(Ingredient Z, Dish B) -> may_like(Person X, Dish B)",
    ),
)  # fmt: skip
def tautology(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Conclusions that the premise already states; paper, section 2.2."""
    for rule in library.rules:
        for literal in _restated(rule, library):
            yield fault.at(
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
        if opposite is not None and replace(literal.atom, predicate=opposite).untyped == conclusion.untyped:
            yield literal


def adds_nothing(rule: Rule, library: Library) -> bool:
    """True if the rule concludes nothing new from any facts: a tautology, or a premise that can never hold."""
    is_restated = any(not literal.negated for literal in _restated(rule, library))
    return is_restated or never_holds(rule.premise, library)


@check(
    RuleFault.warning(
        "HPX105", "fewer than three variables",
        "allergic_to(Person X, Allergen A) -> reacts_badly_to(Person X, Allergen A)",
        "allergic_to(Person X, Allergen A) & is_in(Allergen A, Dish B) -> reacts_badly_to(Person X, Dish B)",
    ),
)  # fmt: skip
def fewer_than_three_variables(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Rules to search of two variables, which leave nothing to reason about; paper, section 2.2.

    Definitions are exempt: rules that other rules use, and rules without a generic variable.
    """
    for rule in rules_of_right_arity(library):
        if len(rule.variables) < 3 and rule.generic and rule.conclusion.atom.indicator not in library.in_premises:
            asked = (item.atom for item in rule.literals if library.is_asked(item.atom.indicator))
            premises = ", ".join(f"{atom.predicate}(...)" for atom in asked)
            yield fault.at(
                rule.place,
                f"rule {rule.name} has fewer than three variables, so statements of a search restate its premise",
                f"Add the literal from which the conclusion follows; if you have the facts of {premises}, declare "
                f'that as "given"',
            )


@check(
    RuleFault.note(
        "HPX302", "inferred generic variable",
        "has_room_for(Room B, Furniture C) & is_smaller_than(Furniture A, Furniture C)"
        " -> can_fit_in(Furniture A, Room B)",
        "@generic A\n"
        "has_room_for(Room B, Furniture C) & is_smaller_than(Furniture A, Furniture C)"
        " -> can_fit_in(Furniture A, Room B)",
    ),
)  # fmt: skip
def generic_by_position(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Rules whose generic variable was inferred although they conclude about no person: the guess may be wrong."""
    for rule in rules_of_right_arity(library):
        inferred = rule.generic_by in (GenericBy.POSITION, GenericBy.NOTHING)
        if inferred and not rule.unbound and rule.conclusion.atom.indicator not in library.in_premises:
            names = ", ".join(variable.name for variable in rule.conclusion.variables)
            generic = rule.generic_text if rule.generic else "no variable"
            yield fault.at(
                rule.place,
                f"rule {rule.name} has no person in its conclusion and no @generic, so {generic} counts as its subject",
                f"Choose with @generic what its statements are about: {names} or none",
            )


@check(
    RuleFault.warning(
        "HPX108", "premise that can never hold",
        "lived(Person X, Year A) & built(Tower B, Year C) & A < C & C < A -> saw(Person X, Tower B)",
        "lived(Person X, Year A) & built(Tower B, Year C) & C < A -> saw(Person X, Tower B)",
    ),
)  # fmt: skip
def premise_that_never_holds(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Premises with items that exclude each other: comparisons, a literal and its negation, or two values of a
    functional predicate.
    """
    for rule in library.written_rules:
        core = contradiction(rule.premise, library)
        if core and not any(map(is_empty_collection, rule.literals)):
            first, *others = (rule.at(item_place(item)) for item in core)
            yield fault.at(
                first,
                f"the premise of rule {rule.name} can never hold: {' & '.join(map(str, core))}",
                "Remove or reverse one of these",
                *others,
            )


@check(
    RuleFault.error(
        "HPX109", "predicate that depends on its own negation",
        "likes(Person X, Dish A) & is_like(Dish A, Dish B) & not may_eat(Person X, Dish A)"
        " -> may_eat(Person X, Dish B)",
        "likes(Person X, Dish A) & is_like(Dish A, Dish B) & not hates(Person X, Dish A) -> may_eat(Person X, Dish B)",
    ),
)  # fmt: skip
def unstratified_negation(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Predicates that depend on their own negation and so have no truth value."""
    clauses = chain.from_iterable(rule.exceptions for rule in library.rules)
    exceptions = {clause.atom.indicator: f'"{clause}"' for clause in clauses}
    # `aggregates_of_themselves` reports the cycles over aggregates.
    for cycle in filter(library.aggregated.isdisjoint, negative_cycles(library.with_closure())):
        first, *others = (rule for rule in library.rules if rule.conclusion.atom.indicator in cycle)
        # Begun at a predicate that the rules name; an exception is named by its text.
        begin = next((place for place, name in enumerate(cycle) if name not in exceptions), 0)
        turned = (*cycle[begin:-1], *cycle[:begin], cycle[begin])
        named = [exceptions.get(name, name) for name in turned]
        yield fault.at(
            first.place,
            f"{named[0]} depends on its own negation: {cycle_text(named)}",
            "Remove the negation from the cycle",
            *(rule.place for rule in others),
        )


@check(
    RuleFault.error(
        "HPX110", "variable without a source of values",
        "computed is_before(Year A, Year B) := A < B\n"
        "fought_in(Person X, War A) & ended_in(War A, Year E) & is_before(Year E, Year Y)"
        " -> could_see(Person X, Year Y)",
        "fought_in(Person X, War A) & ended_in(War A, Year E) & built(Tower B, Year Y) & E < Y\n"
        "  -> could_see(Person X, Tower B)",
    ),
)  # fmt: skip
def unreachable_variable(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Variables that no order of search can bind, because only comparisons and computed predicates contain them."""
    evaluated = library.with_identity()
    for rule in rules_of_right_arity(library):
        # Those of negated literals are `unsafe_negation`'s.
        denied = variable_names(literal for literal in rule.literals if literal.negated)
        for variable in unreachable_variables(rule, evaluated):
            if variable.name not in denied:
                using = next(item for item in rule.premise if variable.name in variable_names([item]))
                place = using.place if isinstance(using, Comparison) else using.atom.place_of(variable.name)
                yield fault.at(
                    rule.at(place),
                    f"nothing gives {variable} a value in rule {rule.name}; arithmetic only compares it",
                    f"Add a literal that can be asked for {variable.name}, or an equation ({variable.name} = A + 1)",
                )


@check(
    RuleFault.error(
        "HPX111", "negated literal with an unbound variable",
        "eats(Person X, Dish A) & is_in(Herb Z, Dish A) & not spoils(Spice S, Dish A) -> may_eat(Person X, Herb Z)",
        "eats(Person X, Dish A) & is_in(Herb Z, Dish A) & grows_with(Spice S, Herb Z) & not spoils(Spice S, Dish A)\n"
        "  -> may_eat(Person X, Herb Z)",
    ),
)  # fmt: skip
def unsafe_negation(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Variables that only negated literals contain: negation as failure tests values, it never finds any."""
    for rule in rules_of_right_arity(library):
        positive = variable_names(literal for literal in rule.literals if not literal.negated)
        unbound = {variable.name for variable in unreachable_variables(rule, library)}
        unbound |= set(rule.generic) - positive
        for literal in rule.literals:
            for variable in literal.variables:
                if literal.negated and variable.name in unbound:
                    yield fault.at(
                        rule.at(literal.atom.place_of(variable.name)),
                        f"{variable} occurs in rule {rule.name} only in the negated literal {literal}",
                        f"Add a positive literal about {variable.name}, or write _ if its value does not matter",
                    )


OTHER_KIND: Final = RuleFault.error(
    "HPX113", "value of another kind",
    "lived(Person X, Year A) & built(Tower B, Year C) & A = B -> saw(Person X, Tower B)",
    "lived(Person X, Year A) & built(Tower B, Year C) & A = C -> saw(Person X, Tower B)",
)  # fmt: skip


@check(
    RuleFault.error(
        "HPX112", "arithmetic of texts",
        "given has_nickname(Person, Text)\n"
        "has_nickname(Person X, Text A) & is_son_of(Person Y, Person X) & A * 2 > 7 -> is_famous(Person Y)",
        "given has_age(Person, Age)\n"
        "has_age(Person X, Age A) & is_son_of(Person Y, Person X) & A * 2 > 7 -> is_famous(Person Y)",
    ),
)  # fmt: skip
def arithmetic_of_texts(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Texts in arithmetic, and numbers that are added to dates."""
    for comparison, place, owner in _comparisons(library):
        calculations = list(chain.from_iterable(map(_calculations, comparison.sides)))
        for calculation, operand in ((part, operand) for part in calculations for operand in part.operands):
            taken = _TAKEN.get(calculation.operator)
            is_leaf = taken is not None and not isinstance(operand, Arithmetic)
            if is_leaf and library.kind_of(type_of(operand, library)) not in (*(taken or ()), OBJECT):
                remedy = "Write the number without quotes"
                if isinstance(operand, Variable):
                    remedy = f'If its values are numbers, give it the type Number, or declare it: "type T < {NUMBER}"'
                use = f'"{calculation.operator}" in "{comparison}" of {owner}'
                yield fault.at(place, f"{operand} is not a number, so {use} has no meaning", remedy)
        for calculation in calculations:
            kinds = [library.kind_of(type_of(operand, library)) for operand in calculation.operands]
            moments = [WRITTEN[kind][0] for kind in kinds if kind in WRITTEN and calculation.operator in ("+", "-")]
            for number in calculation.operands if moments else ():
                if isinstance(number, Constant) and number.is_number:
                    problem = f'"{expression_text(calculation)}" of {owner} takes a number to {moments[0]}'
                    yield fault.at(place, problem, f"Give the number a unit, such as {number} days")


@check(OTHER_KIND)
def comparison_of_texts(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Comparisons of a number and a text, and of a date and another text."""
    for comparison, place, owner in _comparisons(library):
        if _is_mixed(comparison, library):
            kinds = [library.kind_of(type_of(side, library)) for side in comparison.sides]
            compared = next((WRITTEN[kind][0] for kind in kinds if kind in WRITTEN), "a text")
            words = [side.value for side in comparison.sides if isinstance(side, Constant) and not side.is_number]
            is_word = any(isinstance(word, str) and is_variable_word(word[:1].upper() + word[1:]) for word in words)
            plain = f"Compare values of one kind{'; a variable begins with a capital letter' if is_word else ''}"
            if not words and compared == "a text":
                plain = f'{plain}: number(replace(T, " kg", "")) is the number of "12 kg"'
            remedy = _OF_NUMBERS.get(compared, plain)
            for side in comparison.sides:
                # A date without quotation marks is read as a difference.
                if date := _BARE_DATE.fullmatch(expression_text(side)):
                    year, month, day = date.groups()
                    remedy = f'Write the date in quotation marks: "{year}-{month:0>2}-{day:0>2}"'
            yield fault.at(place, f'"{comparison}" of {owner} compares a number with {compared}', remedy)
        for text, kind in _no_moments(comparison, library):
            meaning, example = WRITTEN[kind]
            problem = f'{text} in "{comparison}" of {owner} is compared with {meaning}, but is not {meaning}'
            yield fault.at(place, problem, f'Write it as "{example}"')


_BARE_DATE = re.compile(r"(\d{4}) - (\d\d?) - (\d\d?)")

_OF_NUMBERS = {
    "a date": 'Write the date as "2012-12-01", or compare its year, such as year(D)',
    "a date-time": 'Write the date-time as "2012-12-01T08:30:00", or compare its year, such as year(D)',
    "a duration": "Write the duration as 30 days, or compare its number of days, such as days(D)",
}
"""Remedies for what is compared with a number."""


def _calculations(expression: Expression) -> Iterator[Arithmetic]:
    """The calculations in an expression, inner ones first."""
    if isinstance(expression, Arithmetic):
        yield from chain.from_iterable(map(_calculations, expression.operands))
        yield expression


def _no_moments(comparison: Comparison, library: Library) -> Iterator[tuple[Constant, str]]:
    """Written texts that are compared with dates or durations and are none, with that kind."""
    for text, expression in (comparison.sides, reversed(comparison.sides)):
        kind = library.kind_of(type_of(expression, library))
        is_other_text = isinstance(text, Constant) and not text.is_number and not isinstance(expression, Constant)
        if isinstance(text, Constant) and is_other_text and kind in WRITTEN and not is_written(text.value, kind):
            yield text, kind


_TAKEN = {
    **dict.fromkeys(("+", "-"), (NUMBER, *MOMENTS)),
    **dict.fromkeys(("*", "/"), (NUMBER, DURATION)),
    **dict.fromkeys(("//", "mod", "**", "abs", "floor", "round"), (NUMBER,)),
}
"""The kinds of values that an operation or function takes, where it does not take all."""


@check(
    RuleFault.warning(
        "HPX125", "division by zero",
        "lived(Person X, Year A) & built(Tower B, Year C) & A / (C - C) > 1 -> saw(Person X, Tower B)",
        "lived(Person X, Year A) & built(Tower B, Year C) & A / C > 1 -> saw(Person X, Tower B)",
    ),
)  # fmt: skip
def division_by_zero(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Divisors that are zero whatever their variables are: a comparison with one has no value and never holds."""
    for comparison, place, owner in _comparisons(library):
        for divisor in divisors(comparison):
            if is_zero(divisor, library):
                text = expression_text(divisor)
                zero = "zero" if isinstance(divisor, Constant) else f"{text}, which is always zero"
                yield fault.at(
                    place,
                    f'"{comparison}" of {owner} divides by {zero}, so it never holds',
                    "Correct the divisor",
                )


def _comparisons(library: Library) -> Iterator[tuple[Comparison, Place, str]]:
    """Every comparison with the place and the name of its rule, constraint or computed predicate."""
    for rule in library.rules:
        yield from ((item, rule.at(item.place), f"rule {rule.name}") for item in rule.comparisons)
    for constraint in library.constraints:
        for item in constraint.premise:
            if isinstance(item, Comparison):
                yield item, item.place or constraint.place, "the constraint"
    for signature in library.signatures:
        if definition := signature.definition:
            yield definition, definition.place or signature.place, f"the computed predicate {signature.name}"


def _is_mixed(comparison: Comparison, library: Library) -> bool:
    """One side is a number and the other cannot be one. A Time may be a Year, which is a number."""
    numbers = [side for side in comparison.sides if is_numeric(side, library)]
    if len(numbers) != 1:
        return False
    (text,) = (side for side in comparison.sides if side is not numbers[0])
    kind = type_of(text, library)
    # What a type holds that no declaration puts below another is decided by its values, but two variables are joined.
    is_joined = comparison.operator in ("=", "\\=") and all(isinstance(side, Variable) for side in comparison.sides)
    return not library.may_be_numeric(kind) and (is_joined or library.kind_of(kind) != OBJECT)


@check(OTHER_KIND)
def constant_of_wrong_kind(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Texts where the argument's type is numeric, numbers where it is not, and no dates where it is Date."""
    for atom, user, owner in _owned_atoms(library):
        signature = library.signature(atom.indicator)
        for position, (term, data_type) in enumerate(zip(atom.arguments, signature.argument_types, strict=True)):
            if not isinstance(term, Constant) or term.value is MISSING:
                continue
            # A type like Time, which has the subtype Year, takes both, and so does one below no kind, like Minutes.
            is_open = library.kind_of(data_type) == OBJECT and not library.is_person(data_type)
            takes_numbers = is_open or library.may_be_numeric(data_type)
            fits = takes_numbers if term.is_number else not library.is_numeric(data_type)
            kind, members = ("number", "texts") if term.is_number else ("text", "numbers")
            problem = f"{term} in {atom}{owner} is a {kind}, but {data_type} is a type of {members}"
            remedy = "Quote texts, and write numbers without quotes"
            if (moment := library.kind_of(data_type)) in WRITTEN:
                fits = is_written(term.value, moment)
                meaning, example = WRITTEN[moment]
                problem = f"{term} is not {meaning}, but is used as the type {data_type} in {atom}{owner}"
                remedy = f'Write it as "{example}"'
            if not fits:
                place = atom.place_at(position)
                yield fault.at(user.at(place) if user is not None else place or signature.place, problem, remedy)


def _owned_atoms(library: Library) -> Iterator[tuple[Atom, Rule | None, str]]:
    """Every atom with its rule, and with words for that or for the statement that it is."""
    for rule in library.rules:
        yield from ((atom, rule, f" of rule {rule.name}") for atom in rule.atoms)
    yield from ((fact, None, ", a fact") for fact in library.facts)
    yield from ((atom, None, ", an example") for atom in library.examples)


_UP, _DOWN = "<", ">"


@check(
    RuleFault.warning(
        "HPX221", "recursion that counts for ever",
        "given starts_at(Place, Number)\n@generic none\n"
        "starts_at(Place A, Number N) -> is_reached_at(Place A, Number N)\n@generic none\n"
        "is_reached_at(Place A, Number N) & M = N + 1 -> is_reached_at(Place A, Number M)",
        "given starts_at(Place, Number)\n"
        "@generic none\n"
        "starts_at(Place A, Number N) -> is_reached_at(Place A, Number N)\n"
        "@generic none\n"
        "is_reached_at(Place A, Number N) & M = N + 1 & M < 100 -> is_reached_at(Place A, Number M)",
    ),
)  # fmt: skip
def recursion_that_counts_for_ever(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Recursive rules that conclude a number calculated from that of their premise, without a limit of either."""
    for rule in library.rules:
        parts = (
            (item if isinstance(item, Comparison) else comparison_of(item, library), item) for item in rule.premise
        )
        comparisons = [(comparison, item_place(item)) for comparison, item in parts if comparison is not None]
        assignments = list(chain.from_iterable(comparison.equations for comparison, _ in comparisons))
        if {target.name for target, _ in assignments}.isdisjoint(variable_names([rule.conclusion])):
            continue
        resting = library.resting_on([rule.conclusion.atom.indicator])
        positive = [item for item in rule.literals if not item.negated]
        own = variable_names(item for item in positive if item.atom.indicator in resting)
        # Facts are finite: a number that another literal must contain as well cannot grow for ever.
        others = [item for item in positive if item.atom.indicator not in resting]
        limited = variable_names(item for item in others if comparison_of(item, library) is None)
        concluded = variable_names([rule.conclusion]) - limited - own
        # A counter with a limit ends the recursion, whatever else is calculated beside.
        counting = (
            _is_limited(target, source, comparisons)
            for target, source in assignments
            if isinstance(source, Arithmetic) and target.name in concluded
            if _direction(source) and not expression_names(source).isdisjoint(own)
        )
        if any(counting):
            continue
        for target, source, place in _counters(comparisons, own - limited, limited):
            if target.name in concluded:
                name, sign = rule.conclusion.atom.predicate, ">" if _direction(source) == _DOWN else "<"
                yield fault.at(
                    rule.at(place),
                    f"rule {rule.name} may count for ever: {target.name} = {source} makes a further {name} of each, "
                    f"and nothing limits {target.name}",
                    f'Add a limit to the premise, such as "{target.name} {sign} 100"',
                )


def _counters(
    comparisons: list[tuple[Comparison, Place | None]], counted: set[str], limited: set[str]
) -> Iterator[tuple[Variable, Arithmetic, Place | None]]:
    """The calculations of a number without a limit from one that is `counted`, directly or by another calculation."""
    for _ in comparisons:  # an equation may calculate from what another one has calculated
        for comparison, place in comparisons:
            for target, source in comparison.equations:
                if not isinstance(source, Arithmetic):
                    continue
                is_new = target.name not in counted | limited and bool(expression_names(source) & counted)
                if is_new and not _is_limited(target, source, comparisons):
                    counted.add(target.name)
                    yield target, source, place


def _is_limited(target: Variable, source: Arithmetic, comparisons: list[tuple[Comparison, Place | None]]) -> bool:
    """True if a comparison limits the number or what it is calculated from, in the direction in which it goes."""
    names, direction = {target.name, *expression_names(source)}, _direction(source)
    for comparison, _ in comparisons:
        sides = comparison.sides
        small, large = sides if comparison.operator in ("<", "=<") else reversed(sides)
        is_above, is_below = (not names.isdisjoint(expression_names(side)) for side in (small, large))
        # Without a known direction, a limit on either side is taken to be enough.
        if comparison.operator == "=":
            is_limit = (is_above or is_below) and any(isinstance(side, Constant) for side in sides)
        else:
            is_limit = (direction != _DOWN and is_above) or (direction != _UP and is_below)
        if is_limit and comparison.operator != "\\=":
            return True
    return False


def _direction(source: Arithmetic) -> str:
    """The direction in which a sum or difference with a written number goes; empty for other calculations."""
    if source.operator not in ("+", "-"):
        return ""
    first, second = source.operands
    step = second if isinstance(second, Constant) or source.operator == "-" else first
    if not isinstance(step, Constant) or isinstance(step.value, str):
        return ""
    return _UP if (step.value > 0) == (source.operator == "+") else _DOWN


@check(
    RuleFault.note(
        "HPX223", "closure that joins itself",
        "given borders(Place, Place)\n@generic none\nborders(Place A, Place B) -> is_linked_to(Place A, Place B)\n"
        "@generic none\n"
        "is_linked_to(Place A, Place B) & is_linked_to(Place B, Place C) -> is_linked_to(Place A, Place C)",
        "given borders(Place, Place)\n@generic none\nborders(Place A, Place B) -> is_linked_to(Place A, Place B)\n"
        "@generic none\n"
        "borders(Place A, Place B) & is_linked_to(Place B, Place C) -> is_linked_to(Place A, Place C)",
    ),
)  # fmt: skip
def closures_that_join_themselves(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Transitive rules over two atoms of the predicate that they conclude."""
    for rule in library.rules:
        if not rule.joins_itself or rule.by_declaration or rule.generic:
            continue
        closed = rule.conclusion.atom
        steps = [item.atoms[0] for item in library.concluding[closed.indicator] if len(item.premise) == 1]
        types = {atom: library.signature(atom.indicator).argument_types for atom in steps or [closed]}
        # First steps from landmark to city and from city to country form no long chain.
        chaining = [atom for atom, of in types.items() if library.most_specific((of[0], of[-1])) is not None]
        if chaining:
            step = chaining[0].indicator if steps else "the predicate of its first step"
            yield fault.at(
                rule.place,
                f"rule {rule.name} joins {closed.indicator} with itself: over a chain of n facts it has n^3/6 "
                "statements, and with one recursive atom n^2/2",
                f"Write {step} in place of the first {closed.indicator}",
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
    arithmetic_of_texts,
    comparison_of_texts,
    division_by_zero,
    constant_of_wrong_kind,
    recursion_that_counts_for_ever,
    closures_that_join_themselves,
)

CERTAIN_CHECKS: tuple[Check, ...] = (
    unbound_conclusion_variable,
    tautology,
    premise_that_never_holds,
    unreachable_variable,
    division_by_zero,
)
"""Those whose findings hold whatever the statements say that could not be read."""
