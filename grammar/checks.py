"""The static checks of a library, each a function of its own; `faults.py` lists what they can find.

The order of CHECKS decides nothing: diagnostics come sorted by place. Checks of single rules stand here, those of
predicates in `predicate_checks.py`, those of pairs of rules in `rule_pairs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from grammar import faults
from grammar.dependencies import negative_cycles, unreachable_variables
from grammar.errors import Diagnostic
from grammar.predicate_checks import PREDICATE_CHECKS, counted_rules, misfits
from grammar.rule_pairs import duplicate_and_subsumed_rules, opposite_conclusions
from grammar.rules import GenericBy, Library, Place, PredicateKind, Rule
from grammar.satisfiable import contradiction
from grammar.terms import Arithmetic, Comparison, Constant, Expression, Variable

if TYPE_CHECKING:
    from grammar.parser import Read

Check: TypeAlias = Callable[[Library], Iterable[Diagnostic]]


def check_library(library: Library) -> tuple[Diagnostic, ...]:
    """Everything the checks find, by file, line and column."""
    return _found(CHECKS, library)


def check_read(read: Read) -> tuple[Diagnostic, ...]:
    """The faults of reading and what the checks find in the rest, as far as what could not be read cannot mend it."""
    checks: dict[str, tuple[Check, ...]] = {"nothing": CHECKS, "rules": CHECKS_OF_RULES_ALONE, "declarations": ()}
    return _sorted([*read.faults, *_found(checks[read.lacks], read.library)])


def _found(checks: Iterable[Check], library: Library) -> tuple[Diagnostic, ...]:
    return _sorted(diagnostic for check in checks for diagnostic in check(library))


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    places = dict.fromkeys(diagnostics)
    return tuple(sorted(places, key=lambda one: (one.place.file, one.place.line, one.place.column, one.code)))


def unbound_conclusion_variable(library: Library) -> Iterator[Diagnostic]:
    """A conclusion about something that the premise never mentions holds for everything."""
    for rule in counted_rules(library):
        for variable in rule.unbound:
            near = _namesake(rule, variable, library)
            yield faults.UNBOUND_CONCLUSION.at(
                rule.place,
                f"unbound head variable: {variable} of the conclusion is not in the premise of rule {rule.name}",
                f"Did you mean {near}?" if near else f"Say something about {variable} in the premise",
            )


def _namesake(rule: Rule, missing: Variable, library: Library) -> Variable | None:
    """A variable of the premise that fits and that the conclusion does not use: most likely the one that was meant."""
    used = {variable.name for variable in rule.conclusion.variables}
    for variable in rule.variables:
        if variable.name not in used and library.most_specific((variable.data_type, missing.data_type)):
            return variable
    return None


def variable_with_two_types(library: Library) -> Iterator[Diagnostic]:
    """Types used for one variable must lie on one line of subtypes. A type that its own atom rejects is told there."""
    for rule in library.rules:
        types: dict[str, dict[str, None]] = {}
        for name, data_type in _types_of_variables(rule, library):
            types.setdefault(name, {})[data_type] = None
        for name, used in types.items():
            if library.most_specific(tuple(used)) is None:
                first, second, *_ = used
                yield faults.TWO_TYPES.at(
                    rule.place,
                    f"{name} has the unrelated types {' and '.join(used)} in rule {rule.name}",
                    f'Use two variables, or declare the types: "type {first} < {second}"',
                )


def _types_of_variables(rule: Rule, library: Library) -> Iterator[tuple[str, str]]:
    for atom in rule.atoms:
        rejecting = library.signature(atom.indicator).declared
        rejected = [position for position, _, _ in misfits(atom, library)] if rejecting else []
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and position not in rejected:
                yield term.name, term.data_type


def unconnected_premise(library: Library) -> Iterator[Diagnostic]:
    """Every literal of a premise must be linked to the others by variables; else it is a second, unrelated rule.

    A variable that nothing gives a value to is most often a misprint of the link, and told as such.
    """
    for rule in counted_rules(library):
        groups = _groups(rule)
        if len(groups) > 1 and not unreachable_variables(rule, library):
            parts = " and ".join("{" + ", ".join(sorted(group)) + "}" for group in groups)
            yield faults.UNCONNECTED.at(
                rule.place,
                f"the premise of rule {rule.name} falls into parts that share no variable: {parts}",
                "Add a literal that relates them, or take one part out",
            )


def _groups(rule: Rule) -> list[set[str]]:
    """The variables of the premise, those together that literals join."""
    groups: list[set[str]] = []
    for item in rule.premise:
        joined = {variable.name for variable in item.variables}
        if joined:
            touching = [group for group in groups if group & joined]
            groups = [group for group in groups if not group & joined] + [joined.union(*touching)]
    return groups


def tautology(library: Library) -> Iterator[Diagnostic]:
    """A conclusion that already stands in the premise; paper, section 2.2."""
    for rule in library.rules:
        conclusion = rule.conclusion.atom
        names = [str(term) if isinstance(term, Constant) else term.name for term in conclusion.arguments]
        for literal in rule.literals:
            told = [str(term) if isinstance(term, Constant) else term.name for term in literal.atom.arguments]
            opposite = library.opposite_of(literal.atom.predicate) if literal.negated else literal.atom.predicate
            if told == names and opposite == conclusion.predicate:
                yield faults.TAUTOLOGY.at(
                    rule.place,
                    f"rule {rule.name} is a tautology: its premise already says {literal}",
                    "Conclude something that the premise does not say",
                )


def fewer_than_three_variables(library: Library) -> Iterator[Diagnostic]:
    """Two variables leave nothing to reason about; paper, section 2.2. Definitions that other rules use are exempt."""
    for rule in counted_rules(library):
        is_definition = not rule.generic or rule.conclusion.atom.indicator in library.in_premises
        if len(rule.variables) < 3 and not is_definition:
            yield faults.FEW_VARIABLES.at(
                rule.place,
                f"rule {rule.name} has fewer than three variables: it can only restate its premise",
                "Add the link that makes the conclusion follow, or write @generic none if the rule defines a predicate",
            )


def generic_by_position(library: Library) -> Iterator[Diagnostic]:
    """Whom a rule speaks about is plain where it concludes about a person; elsewhere it is said what was inferred."""
    for rule in counted_rules(library):
        inferred = rule.generic_by in (GenericBy.POSITION, GenericBy.NOTHING)
        if inferred and not rule.unbound and rule.conclusion.atom.indicator not in library.in_premises:
            names = ", ".join(variable.name for variable in rule.conclusion.variables)
            taken = f"{rule.spoken_of} is taken as generic" if rule.generic else "no variable is taken as generic"
            yield faults.BY_POSITION.at(
                rule.place,
                f"rule {rule.name} concludes about no person and has no @generic: {taken}",
                f"Say with @generic what its statements speak about: {names} or none",
            )


def premise_that_never_holds(library: Library) -> Iterator[Diagnostic]:
    """Comparisons, a literal with its negation, or two values of a functional predicate that exclude each other."""
    for rule in library.rules:
        core = contradiction(rule.premise, library)
        if core:
            yield faults.NEVER.at(
                rule.place,
                f"the premise of rule {rule.name} can never hold: {' & '.join(map(str, core))}",
                "Take out or turn round one of these",
            )


def unstratified_negation(library: Library) -> Iterator[Diagnostic]:
    """A predicate that rests on its own negation has no truth value."""
    cycles = negative_cycles(library)
    cycle_of = {name: cycle for cycle in cycles for name in cycle}
    rules: dict[tuple[str, ...], list[Rule]] = {cycle: [] for cycle in cycles}
    for rule in library.rules:
        if cycle := cycle_of.get(rule.conclusion.atom.indicator):
            rules[cycle].append(rule)
    for cycle, concluding in rules.items():
        yield faults.UNSTRATIFIED.at(
            concluding[0].place,
            f"{cycle[0]} rests on its own negation: {' <- '.join(cycle)}",
            "Take the negation out of the circle",
            *(rule.place for rule in concluding[1:]),
        )


def unreachable_variable(library: Library) -> Iterator[Diagnostic]:
    """No order of search can bind a variable that only comparisons and computed predicates hold."""
    for rule in counted_rules(library):
        denied = {variable.name for literal in rule.literals if literal.negated for variable in literal.variables}
        for variable in unreachable_variables(rule, library):
            if variable.name not in denied:
                yield faults.UNREACHABLE.at(
                    rule.place,
                    f"nothing gives a value to {variable} in rule {rule.name}: arithmetic only compares it",
                    f"Add a literal that can be asked for {variable.name}, or an equation ({variable.name} = A + 1)",
                )


def unsafe_negation(library: Library) -> Iterator[Diagnostic]:
    """Negation as failure tests values; it never finds any."""
    for rule in counted_rules(library):
        unreachable = {variable.name for variable in unreachable_variables(rule, library)}
        positive = {variable.name for item in rule.literals if not item.negated for variable in item.variables}
        told = set(rule.generic) - positive
        for literal in rule.literals:
            for variable in literal.variables if literal.negated else ():
                if variable.name in unreachable | told:
                    yield faults.UNSAFE_NEGATION.at(
                        rule.place,
                        f"{variable} stands in rule {rule.name} only in the negated literal: {literal}",
                        f"Add a positive literal that says which {variable.data_type} is meant",
                    )


def comparison_of_texts(library: Library) -> Iterator[Diagnostic]:
    """`<` and arithmetic need numbers, and a number never equals a text."""
    for comparison, place, owner in _comparisons(library):
        for side in (comparison.left, comparison.right):
            for part, operator in _operands(side, comparison.operator):
                if operator not in ("=", "\\=") and not _is_number(part, library):
                    yield faults.ORDER_OF_TEXTS.at(
                        place,
                        f'{part} is no number, so "{operator}" in "{comparison}" of {owner} means nothing',
                        _number_remedy(part),
                    )
        if comparison.operator in ("=", "\\=") and _is_mixed(comparison, library):
            yield faults.NUMBER_AND_TEXT.at(
                place, f'"{comparison}" of {owner} compares a number with a text', "Compare values of one kind"
            )


def _number_remedy(part: Variable | Constant) -> str:
    if isinstance(part, Constant):
        return "Write the number without quotes"
    return f'If its values are numbers, declare "type {part.data_type} < Number"'


def _comparisons(library: Library) -> Iterator[tuple[Comparison, Place, str]]:
    for rule in library.rules:
        for comparison in rule.comparisons:
            yield comparison, rule.place, f"rule {rule.name}"
    for signature in library.signatures:
        if signature.definition is not None:
            yield signature.definition, signature.place, f"the computed predicate {signature.name}"


def _operands(expression: Expression, operator: str) -> Iterator[tuple[Variable | Constant, str]]:
    """The leaves of an expression with the operator that each is put to."""
    if isinstance(expression, Arithmetic):
        yield from _operands(expression.left, expression.operator)
        yield from _operands(expression.right, expression.operator)
    else:
        yield expression, operator


def _is_number(part: Expression, library: Library) -> bool:
    if isinstance(part, Variable):
        return library.is_numeric(part.data_type)
    return isinstance(part, Arithmetic) or part.is_number


def _is_mixed(comparison: Comparison, library: Library) -> bool:
    """Whether one side is a number and the other cannot be one. A Time may be a Year, which is a number."""
    sides = (comparison.left, comparison.right)
    return any(_is_number(one, library) and not _may_be_number(other, library) for one, other in (sides, sides[::-1]))


def _may_be_number(part: Expression, library: Library) -> bool:
    return library.may_be_numeric(part.data_type) if isinstance(part, Variable) else _is_number(part, library)


def constant_of_wrong_kind(library: Library) -> Iterator[Diagnostic]:
    """A text where a number belongs, or a number where a text belongs."""
    atoms = [(atom, rule.place, f" of rule {rule.name}") for rule in library.rules for atom in rule.atoms]
    atoms += [(fact, library.signature(fact.indicator).place, ", a fact") for fact in library.facts]
    for atom, place, owner in atoms:
        signature = library.signature(atom.indicator)
        for term, data_type in zip(atom.arguments, signature.argument_types, strict=True):
            if isinstance(term, Constant) and not _suits(term, data_type, library):
                yield faults.NUMBER_AND_TEXT.at(
                    place,
                    f"{term} in {atom}{owner} is a {'number' if term.is_number else 'text'}, but {data_type} "
                    f"is a type of {'texts' if term.is_number else 'numbers'}",
                    "Quote texts, and leave numbers without quotes",
                )


def _suits(constant: Constant, data_type: str, library: Library) -> bool:
    return library.may_be_numeric(data_type) if constant.is_number else not library.is_numeric(data_type)


def computed_predicate_concluded(library: Library) -> Iterator[Diagnostic]:
    """Arithmetic decides a computed predicate; nothing else may."""
    concluded = [(rule.conclusion.atom, rule.place) for rule in library.rules]
    concluded += [(fact, library.signature(fact.indicator).place) for fact in library.facts]
    for atom, place in concluded:
        if library.signature(atom.indicator).kind is PredicateKind.COMPUTED:
            yield faults.COMPUTED_CONCLUDED.at(
                place,
                f"{atom} is concluded or stated, but {atom.predicate} is computed",
                "Take it out, or declare the predicate given",
            )


CHECKS: tuple[Check, ...] = (
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
    constant_of_wrong_kind,
    computed_predicate_concluded,
    *PREDICATE_CHECKS,
    duplicate_and_subsumed_rules,
    opposite_conclusions,
)

CHECKS_OF_RULES_ALONE: tuple[Check, ...] = (
    unbound_conclusion_variable,
    variable_with_two_types,
    unconnected_premise,
    tautology,
    premise_that_never_holds,
    unreachable_variable,
    comparison_of_texts,
    computed_predicate_concluded,
    duplicate_and_subsumed_rules,
    opposite_conclusions,
)
"""What they find in some rules, no other rule takes back."""
