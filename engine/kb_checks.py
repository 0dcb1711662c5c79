"""Checks of what a knowledge base holds: contradictions with both proofs, functional predicates with two values, and
constants under types that exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

from engine.derive import FactIndex, Prover, derivations, relevant_library
from engine.entailment import edges
from engine.entailment_checks import entailment_faults
from engine.program import build_program
from engine.proof import Proof, instantiated, proof_from_json, proof_text
from engine.session import PrologSession
from grammar import faults
from grammar.errors import Diagnostic
from grammar.faults import Fault
from grammar.prolog_text import prolog_atom
from grammar.rule_pairs import can_meet
from grammar.rules import PERSON, Library, Place, PredicateKind, Rule, type_key
from grammar.terms import Atom, Constant, Literal, Substitution, Value
from grammar.words import counted
from kb import KnowledgeBase
from kb.records import StatementRecord

SHOWN = 3
"""Constants named in a note that stands for all that lie under one pair of types."""


@dataclass(frozen=True, slots=True)
class KbFinding:
    """What is wrong, and the proofs that show it: two for a contradiction, else none."""

    diagnostic: Diagnostic
    proofs: tuple[Proof, ...] = ()

    def __str__(self) -> str:
        return "\n".join((str(self.diagnostic), *map(proof_text, self.proofs)))


def check_kb(library: Library, kb: KnowledgeBase, session: PrologSession) -> tuple[KbFinding, ...]:
    """Everything the checks find; `session` gets another program loaded."""
    return (
        *contradictions(library, kb, session),
        *contrary_statements(library, kb),
        *functional_with_two_values(library, kb),
        *constants_under_two_types(library, kb),
        *(KbFinding(one) for one in entailment_faults(library, edges(kb), session)),
    )


def contradictions(library: Library, kb: KnowledgeBase, session: PrologSession) -> Iterator[KbFinding]:
    """Atoms that facts and rules make true together with their opposites, as Prolog pairs them."""
    pairs = _opposite_predicates(library)
    if not pairs:
        return
    needed = relevant_library(library, goals=[indicator for pair in pairs for indicator in pair])
    known = FactIndex(needed, kb.facts())
    session.load(build_program(needed, known.records))
    for one, other in pairs:
        found = derivations(session, needed, _both(one, other))
        prover = Prover(needed, known, found)
        predicate, opposite = _name(one), _name(other)
        heads = {*found, *(Atom(record.predicate, _constants(record.arguments)) for record in kb.facts(predicate))}
        for atom in sorted((head for head in heads if head.predicate == predicate), key=str):
            proof, contrary = prover.atom(atom), prover.atom(replace(atom, predicate=opposite))
            if proof is not None and contrary is not None:
                message = f"{atom} and {contrary.goal} both hold"
                remedy = "One of the facts or rules in the two proofs is wrong: retract or correct it"
                yield _finding(faults.BOTH_WAYS, kb, message, remedy, proof, contrary)


def _opposite_predicates(library: Library) -> list[tuple[str, str]]:
    """Pairs of indicators of known predicates that are each other's opposite, each pair once."""
    known = [signature.indicator for signature in library.completed().signatures]
    found: dict[frozenset[str], tuple[str, str]] = {}
    for indicator in known:
        opposite = library.opposite_of(_name(indicator))
        other = f"{opposite}/{indicator.rpartition('/')[2]}"
        if opposite is not None and other != indicator and library.knows(other):
            found.setdefault(frozenset((indicator, other)), (indicator, other))
    return list(found.values())


def _name(indicator: str) -> str:
    return indicator.rpartition("/")[0]


def _both(one: str, other: str) -> str:
    """A Prolog goal: Roots are the atoms of both predicates whose arguments make both true."""
    variables = ", ".join(f"A{number}" for number in range(int(one.rpartition("/")[2])))
    atoms = ", ".join(f"{prolog_atom(_name(indicator))}({variables})" for indicator in (one, other))
    return f"findall(Root, ({atoms}, lists:member(Root, [{atoms}])), Roots)"


def _constants(values: Iterable[Value]) -> tuple[Constant, ...]:
    return tuple(Constant(value) for value in values)


# Statements

Row: TypeAlias = tuple[Rule, StatementRecord]


def contrary_statements(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Statements with opposite conclusions about the same things whose hypotheses can hold together.

    One pair is told for each conclusion and pair of rules; the others differ in their premises alone.
    """
    by_conclusion: dict[str, dict[Atom, list[Row]]] = {}
    for statement in kb.statements():
        if any(rule.name == statement.rule for rule in library.rules):
            rule = _instance(library.rule(statement.rule), statement)
            key = _without_names(rule)
            by_conclusion.setdefault(key.predicate, {}).setdefault(key, []).append((rule, statement))
    for predicate, conclusions in by_conclusion.items():
        opposite = library.opposite_of(predicate)
        if opposite is None or (opposite < predicate and opposite in by_conclusion):
            continue
        for key, rows in conclusions.items():
            others = by_conclusion.get(opposite, {}).get(replace(key, predicate=opposite), [])
            yield from (_contrary(kb, *pair) for pair in _first_meetings(rows, others, library))


def _instance(rule: Rule, statement: StatementRecord) -> Rule:
    """The rule with the statement's values in place of the searched variables."""
    values = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
    premise = tuple(instantiated(item, values) for item in rule.premise)
    return replace(rule, premise=premise, conclusion=Literal(values.apply(rule.conclusion.atom)))


def _without_names(rule: Rule) -> Atom:
    """The conclusion with all generic variables alike, so that Person X of one rule meets Person A of another."""
    arguments = (
        term if isinstance(term, Constant) else Constant("\0generic") for term in rule.conclusion.atom.arguments
    )
    return replace(rule.conclusion.atom, arguments=tuple(arguments))


def _first_meetings(
    rows: Sequence[Row], others: Sequence[Row], library: Library
) -> Iterator[tuple[StatementRecord, StatementRecord]]:
    told: set[tuple[str, str]] = set()
    for (rule, statement), (other_rule, other) in ((one, another) for one in rows for another in others):
        pair = (statement.rule, other.rule)
        if pair not in told and can_meet(rule, other_rule, library):
            told.add(pair)
            yield statement, other


def _contrary(kb: KnowledgeBase, one: StatementRecord, other: StatementRecord) -> KbFinding:
    return _finding(
        faults.CONTRARY_STATEMENTS,
        kb,
        f'"{one.text}" ({one.rule}) and "{other.text}" ({other.rule}) contradict each other where both premises hold',
        "Add to one rule what keeps them apart, or retract the fact that is wrong",
        proof_from_json(one.proof),
        proof_from_json(other.proof),
    )


# Facts and types


def functional_with_two_values(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """A functional predicate has one right last argument for the rest."""
    for signature in library.completed().signatures:
        if signature.kind is not PredicateKind.FUNCTIONAL:
            continue
        values: dict[tuple[Value, ...], list[Value]] = {}
        for fact in kb.facts(signature.name):
            if len(fact.arguments) == len(signature.argument_types):
                values.setdefault(fact.arguments[:-1], []).append(fact.arguments[-1])
        for key, several in values.items():
            if len(several) > 1:
                atoms = [str(Atom(signature.name, _constants((*key, value)))) for value in several]
                message = f"{signature.name} is functional, but has {len(several)} values: {', '.join(sorted(atoms))}"
                yield _finding(faults.TWO_VALUES, kb, message, "Retract all but the right one")


def constants_under_two_types(library: Library, kb: KnowledgeBase) -> Iterator[KbFinding]:
    """Constants accepted under types that exclude each other, and a note of those under unrelated ones.

    Types exclude each other if one is of persons and the other of objects, or one of numbers and the other of texts.
    A type that no loaded file speaks of may lie below any other, so nothing is said of it.
    """
    spoken = _types_spoken_of(library)
    together: dict[tuple[str, str], list[Value]] = {}
    for constant, types in _types_of_constants(kb).items():
        for pair in combinations(sorted(types), 2):
            if spoken.issuperset(map(type_key, pair)) and library.most_specific(pair) is None:
                together.setdefault(pair, []).append(constant)
    for (one, other), constants in sorted(together.items()):
        if _exclude_each_other(one, other, library):
            for constant in constants:
                message = f"{Constant(constant)} was accepted as {one} and as {other}, which exclude each other"
                yield _finding(faults.DISJOINT_TYPES, kb, message, "Retract the facts that mean the wrong one")
        else:
            several = counted(len(constants), "constant lies", "constants lie")
            message = f"{several} under the unrelated types {one} and {other}: {_some(constants)}"
            yield _finding(faults.UNRELATED_TYPES, kb, message, "Look whether one name means two things")


def _types_spoken_of(library: Library) -> set[str]:
    """The keys of the types that the loaded files name."""
    named = {variable.data_type for rule in library.rules for variable in rule.variables}
    named.update(data_type for one in library.signatures for data_type in one.argument_types)
    named.update(data_type for pair in library.subtypes for data_type in pair)
    return set(map(type_key, named))


def _types_of_constants(kb: KnowledgeBase) -> dict[Value, set[str]]:
    """Texts with the types they were accepted under, one spelling for each type. A number is of any numeric type."""
    spelling: dict[str, str] = {}
    types: dict[Value, set[str]] = {}
    accepted = [(fact.constant, fact.data_type) for fact in kb.type_facts()]
    accepted += [pair for fact in kb.facts() for pair in zip(fact.arguments, fact.types, strict=False)]
    for constant, data_type in accepted:
        if isinstance(constant, str):
            types.setdefault(constant, set()).add(spelling.setdefault(type_key(data_type), data_type))
    return types


def _exclude_each_other(one: str, other: str, library: Library) -> bool:
    def excludes(first: str, second: str) -> bool:
        person = library.is_person(first) and not library.is_person(second) and not library.is_subtype(PERSON, second)
        return person or (library.is_numeric(first) and not library.may_be_numeric(second))

    return excludes(one, other) or excludes(other, one)


def _some(constants: Sequence[Value]) -> str:
    named = ", ".join(str(Constant(constant)) for constant in sorted(constants, key=str)[:SHOWN])
    return named + (" ..." if len(constants) > SHOWN else "")


def _finding(fault: Fault, kb: KnowledgeBase, message: str, remedy: str, *proofs: Proof) -> KbFinding:
    return KbFinding(fault.at(Place(kb.place), message, remedy), proofs)
