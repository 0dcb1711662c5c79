"""Checks of a knowledge base: contradictions with both proofs, functional predicates with two values, facts that break
declarations or do not fit them, constants of types that exclude each other, and rules whose statements are false.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, product

from hapax.engine.entailment.graph import PREMISE, Edge, EntailmentLimits, edges_of, entailment_faults
from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.proof import Proof, proof_from_json, proof_text
from hapax.engine.inference.theory import Theory
from hapax.engine.judgements import RULE_BAR, unsound_rules
from hapax.engine.logic.conflicts import conflicts, constrained_predicates
from hapax.engine.logic.demand import joined_names
from hapax.engine.logic.goal_rules import rule_of
from hapax.engine.logic.proofs import join_premise, large_products
from hapax.grammar.checking import faults
from hapax.grammar.checking.faults import RuleFault
from hapax.grammar.checking.pair_checks import can_meet
from hapax.grammar.data_types import OBJECT, PERSON, type_key
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Literal, Substitution, Value, Variable, grouped, is_text
from hapax.grammar.writing.words import counted, some
from hapax.kb.records import TYPE_FACTS, FactRecord, StatementRecord
from hapax.kb.store import KnowledgeBase

CONSTANTS_SHOWN = 3
"""Constants named in the note on all that were accepted under the same two types."""


@dataclass(frozen=True, slots=True)
class KbFinding:
    """A diagnostic with the proofs that show the fault: two for a contradiction, otherwise none."""

    diagnostic: Diagnostic
    proofs: tuple[Proof, ...] = ()

    def __str__(self) -> str:
        return "\n".join((str(self.diagnostic), *map(proof_text, self.proofs)))


def check_kb(library: Library, kb: KnowledgeBase, limits: EntailmentLimits | None = None) -> tuple[KbFinding, ...]:
    """Run all checks. `limits`: of entailments that count against rules."""
    limits = limits or EntailmentLimits()

    @cache
    def entailed_by(indicator: str) -> list[Edge]:
        found = edges_of(kb, PREMISE, _name(indicator), limits.at_least)
        return [edge for edge in found if edge.premise.indicator == indicator]

    return (
        *unfit_facts(library, kb),
        *contradictions(library, kb),
        *contrary_statements(library, kb),
        *functional_with_two_values(library, kb),
        *broken_declarations(library, kb),
        *constants_under_two_types(library, kb),
        *map(KbFinding, entailment_faults(library, entailed_by, limits)),
        *rules_below_the_bar(kb),
        *many_combinations(library, kb),
    )


def contradictions(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Atoms that follow from facts and rules although their opposites follow as well."""
    pairs = _opposite_predicates(library)
    if not pairs:
        return
    needed = relevant_library(library, goals=chain.from_iterable(pairs))
    source = Theory(needed, kb).source()
    for indicator, opposite_indicator in pairs:
        variables = tuple(Variable(f"A{place}", OBJECT) for place in range(int(indicator.rpartition("/")[2])))
        both = [Literal(Atom(_name(name), variables)) for name in (indicator, opposite_indicator)]
        joined = join_premise(source, needed, rule_of(both, Atom("both", variables)), [Substitution()])
        for _, values in sorted(joined.rows, key=lambda row: str(row[1].apply(both[0].atom))):
            proof, contrary = (joined.prover.item(literal.replaced(values)) for literal in both)
            message = f"{proof.goal} and {contrary.goal} both hold"
            remedy = "Retract or correct the fact or rule in one of the two proofs that is wrong"
            yield _finding(faults.BOTH_WAYS, kb, message, remedy, proof, contrary)


def _opposite_predicates(library: Library) -> list[tuple[str, str]]:
    """Pairs of indicators of known predicates that are each other's opposite, each pair once."""
    found: dict[frozenset[str], tuple[str, str]] = {}
    for signature in library.completed().signatures:
        indicator = signature.indicator
        name = library.opposite_of(_name(indicator))
        opposite = f"{name}/{indicator.rpartition('/')[2]}"
        if name is not None and opposite != indicator and library.knows(opposite):
            found.setdefault(frozenset((indicator, opposite)), (indicator, opposite))
    return list(found.values())


def _name(indicator: str) -> str:
    return indicator.rpartition("/")[0]


# Statements


@dataclass(frozen=True, slots=True)
class InstantiatedStatement:
    """A statement with its rule, in which the statement's values replace the searched variables."""

    rule: Rule
    record: StatementRecord


def contrary_statements(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Statements with opposite conclusions about the same things whose hypotheses can hold together.

    One pair is reported for each conclusion and pair of rules; other pairs differ only in their premises.
    """
    names = {rule.name for rule in library.rules}
    # Statements of rules that are not loaded cannot be checked.
    known = (record for record in kb.statements() if record.rule in names)
    statements = (InstantiatedStatement(_instance(library.rule(record.rule), record), record) for record in known)
    by_conclusion = grouped(statements, lambda item: _without_names(item.rule))
    for conclusion, group in by_conclusion.items():
        opposite = library.opposite_of(conclusion.predicate)
        # The pair of predicates comes up twice; the alphabetically first one reports it.
        if opposite is None or opposite < conclusion.predicate:
            continue
        contraries = by_conclusion.get(replace(conclusion, predicate=opposite), [])
        for statement, contrary in _first_meetings(group, contraries, library):
            yield _finding(
                faults.CONTRARY_STATEMENTS,
                kb,
                f'"{statement.text}" ({statement.rule}) and "{contrary.text}" ({contrary.rule}) contradict each '
                "other where both premises hold",
                "Add a condition to one rule that excludes the other, or retract the fact that is wrong",
                proof_from_json(statement.proof),
                proof_from_json(contrary.proof),
            )


def _instance(rule: Rule, statement: StatementRecord) -> Rule:
    """The rule with the statement's values in place of the searched variables."""
    values = {name: Constant(value) for name, value in statement.substitution}
    premise = tuple(item.replaced(values) for item in rule.premise)
    return replace(rule, premise=premise, conclusion=rule.conclusion.replaced(values))


def _without_names(rule: Rule) -> Atom:
    """The conclusion with one name for all generic variables, so that Person X of a rule equals Person A of another."""
    # No value of a statement contains NUL.
    arguments = (
        term if isinstance(term, Constant) else Constant("\0generic") for term in rule.conclusion.atom.arguments
    )
    return replace(rule.conclusion.atom, arguments=tuple(arguments))


def _first_meetings(
    statements: Sequence[InstantiatedStatement], contraries: Sequence[InstantiatedStatement], library: Library
) -> Iterator[tuple[StatementRecord, StatementRecord]]:
    """For each pair of rules the first two statements whose premises can hold together."""
    found: set[tuple[str, str]] = set()
    for statement, contrary in product(statements, contraries):
        pair = (statement.record.rule, contrary.record.rule)
        if pair not in found and can_meet(statement.rule, contrary.rule, library):
            found.add(pair)
            yield statement.record, contrary.record


def rules_below_the_bar(kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Rules with too many statements that readers found false (`evaluate soundness`)."""
    for counts in unsound_rules(kb):
        reasons = ", ".join(f"{answer} {count}" for answer, count in sorted(counts.reasons.items()))
        message = (
            f"{counts.sound} of {counted(counts.judged, 'judged statement')} of rule {counts.rule} are true, less than "
            f"{RULE_BAR:.0%} ({reasons})"
        )
        yield _finding(faults.UNSOUND, kb, message, 'Correct the rule, or withdraw it: @withdrawn "reason"')


def many_combinations(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Rules that join parts of a premise which share no variable over many facts."""
    for found in large_products(library.rules, library, kb):
        if found.is_concluded:
            remedy = "Leave it if every combination is meant"
            yield _finding(faults.MANY_COMBINATIONS, kb, str(found), remedy)
        else:
            remedy = "Add a premise that connects them, or take one of them into a rule of its own"
            yield _finding(faults.PRODUCT, kb, str(found), remedy)


# Facts and types


def unfit_facts(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Facts with another number of arguments than their predicate has in the rules, and those with a text where the
    rules have a number. The first never answer a goal, and the second end a comparison with an error.
    """
    arguments = {signature.indicator: signature.argument_types for signature in library.completed().signatures}
    names = {_name(indicator) for indicator in arguments}
    numeric: dict[str, list[int]] = {}
    for indicator, types in arguments.items():
        numeric[indicator] = [place for place, data_type in enumerate(types) if library.is_numeric(data_type)]
    for indicator in sorted(kb.fact_counts()):
        name = _name(indicator)
        # Facts are read only where there is something to find: an unknown arity, or an argument that must be a number.
        if name not in names or not (indicator not in arguments or numeric[indicator]):
            continue
        facts = [fact for fact in kb.facts(name) if f"{name}/{len(fact.arguments)}" == indicator]
        if indicator not in arguments:
            declared = " and ".join(sorted(indicator for indicator in arguments if _name(indicator) == name))
            message = f"{_facts_text(facts)} of {indicator}, but the rules have {declared}"
            yield _finding(faults.UNFIT_FACTS, kb, message, _MEND_FACTS)
            continue
        for place in numeric[indicator]:
            if texts := [fact for fact in facts if is_text(fact.arguments[place])]:
                data_type = arguments[indicator][place]
                verb = "has" if len(texts) == 1 else "have"
                message = (
                    f"{_facts_text(texts)} {verb} a text as argument {place + 1}, where the rules have {data_type}"
                )
                yield _finding(faults.UNFIT_FACTS, kb, f"{message}, a number", _MEND_FACTS)


_MEND_FACTS = Remedy(
    "Export the facts, and import them with these rules and {} into a new knowledge base", Setting("skip_faulty")
)


def _facts_text(facts: Sequence[FactRecord]) -> str:
    """The number of facts and the first of them: `4 facts (p("a"), p("b"), p("c") and 1 more)`."""
    return f"{counted(len(facts), 'fact')} ({some((fact.text for fact in facts), CONSTANTS_SHOWN)})"


def functional_with_two_values(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Facts of functional predicates that differ only in the last argument, and facts with the same declared key."""
    names = joined_names(Theory(library, kb).source(), library)
    for signature in library.completed().signatures:
        for places, words in signature.keys:
            groups: dict[tuple[Value, ...], dict[tuple[Value, ...], FactRecord]] = {}
            for fact in kb.facts(signature.indicator):
                seen = tuple(map(names.name, fact.arguments))
                groups.setdefault(tuple(seen[place] for place in places), {})[seen] = fact
            tolerance = signature.tolerance
            for found in groups.values():
                agree = tolerance is not None and tolerance.covers_all([seen[-1] for seen in found])
                if len(found) > 1 and not agree:
                    atoms = ", ".join(sorted(fact.text for fact in found.values()))
                    message = f"{signature.name} {words}, but has {len(found)} values: {atoms}"
                    yield _finding(faults.TWO_VALUES, kb, message, "Retract all but the right one")


def broken_declarations(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Facts that a declaration or constraint forbids, alone or together, with the proofs of what is forbidden."""
    facts = list(chain.from_iterable(map(kb.facts, sorted(constrained_predicates(library)))))
    for conflict in conflicts(kb, library, facts, kb.denials()):
        verb = "breaks" if len(conflict.facts) == 1 else "break"
        message = f'{conflict.text} {verb} "{conflict.declaration}"'
        remedy = "Retract or correct a fact that is wrong, or remove the declaration"
        # Of a fact that breaks a declaration with itself, two proofs may be one.
        yield _finding(faults.BROKEN_DECLARATION, kb, message, remedy, *dict.fromkeys(conflict.proofs))


def constants_under_two_types(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Constants accepted under types that exclude each other, and notes on those accepted under unrelated types.

    A type of persons excludes one of objects, and a type of numbers one of texts. A type that no loaded file mentions
    may be a subtype of any other, so it is never reported.
    """
    mentioned = _mentioned_types(library)
    together: dict[tuple[str, str], list[Value]] = {}
    for constant, types in _types_of_constants(kb).items():
        for pair in combinations(sorted(types), 2):
            if mentioned.issuperset(map(type_key, pair)) and library.most_specific(pair) is None:
                together.setdefault(pair, []).append(constant)
    for (first, second), constants in sorted(together.items()):
        if _exclude_each_other(first, second, library):
            for constant in constants:
                message = f"{Constant(constant)} was accepted as {first} and as {second}, which exclude each other"
                yield _finding(faults.DISJOINT_TYPES, kb, message, "Retract the facts about the wrong one")
        else:
            count = counted(len(constants), "constant has", "constants have")
            named = some((str(Constant(constant)) for constant in sorted(constants, key=str)), CONSTANTS_SHOWN)
            message = f"{count} the unrelated types {first} and {second}: {named}"
            yield _finding(faults.UNRELATED_TYPES, kb, message, "Check whether one name means two things")


def _mentioned_types(library: Library) -> set[str]:
    """The keys of the types that the loaded files mention."""
    variables = chain.from_iterable(rule.variables for rule in library.rules)
    arguments = chain.from_iterable(signature.argument_types for signature in library.signatures)
    subtypes = chain.from_iterable(library.subtypes)
    return set(map(type_key, chain((variable.data_type for variable in variables), arguments, subtypes)))


def _types_of_constants(kb: KnowledgeBase) -> dict[Value, set[str]]:
    """The types under which texts were accepted, in one spelling. Numbers fit every numeric type and are left out."""
    spelling: dict[str, str] = {}
    types: defaultdict[Value, set[str]] = defaultdict(set)
    accepted = ((fact.constant, fact.data_type) for fact in kb.select(TYPE_FACTS))
    # Imported facts may have no types.
    of_facts = chain.from_iterable(zip(fact.arguments, fact.types, strict=False) for fact in kb.facts())
    for constant, data_type in chain(accepted, of_facts):
        if is_text(constant):
            types[constant].add(spelling.setdefault(type_key(data_type), data_type))
    return types


def _exclude_each_other(first: str, second: str, library: Library) -> bool:
    def excludes(left: str, right: str) -> bool:
        person = library.is_person(left) and not library.is_person(right) and not library.is_subtype(PERSON, right)
        return person or (library.is_numeric(left) and not library.may_be_numeric(right))

    return excludes(first, second) or excludes(second, first)


def _finding(fault: RuleFault, kb: KnowledgeBase, message: str, remedy: Remedy | str, *proofs: Proof) -> KbFinding:
    return KbFinding(fault.at(Place(kb.place), message, str(remedy)), proofs)
