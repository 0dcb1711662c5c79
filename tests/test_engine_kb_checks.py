"""Checks of a knowledge base's content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.proof import By
from hapax.engine.inference.session import PrologSession
from hapax.engine.kb_checks import (
    check_kb,
    constants_under_two_types,
    contradictions,
    contrary_statements,
    functional_with_two_values,
)
from hapax.grammar.faults import BOTH_WAYS
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Substitution, Value
from hapax.kb.records import Distribution, FactRecord, Source, TypeFact
from hapax.kb.store import KnowledgeBase

RULES = BOTH_WAYS.example.replace("lives_in", "@name plant\nlives_in", 1).replace("\nrents", "\n@name room\nrents")


@pytest.fixture(scope="module")
def session() -> Iterator[PrologSession]:
    with PrologSession() as prolog:
        yield prolog


def library_of(text: str) -> Library:
    return parse_library([("t.rules", text)])


def fact(predicate: str, *arguments: Value, types: tuple[str, ...] = ()) -> FactRecord:
    return FactRecord(predicate, arguments, types, Source.GIVEN)


def test_what_is_derived_both_ways_is_told_with_both_proofs(fresh_kb: KnowledgeBase, session: PrologSession) -> None:
    """Given facts that make two rules conclude opposites: both proofs are shown, down to the facts."""
    fresh_kb.add_facts(
        [
            fact("lives_in", "tom", "Rome"),
            fact("grows_in", "rose", "Rome"),
            fact("grows_in", "fig", "Rome"),
            fact("rents", "tom", "attic"),
            fact("has_no_room_for", "attic", "fig"),
        ]
    )
    (finding,) = contradictions(library_of(RULES), fresh_kb, session)

    assert finding.diagnostic.code == "HPX401"
    assert 'can_plant("tom", "fig") and cannot_plant("tom", "fig") both hold' in str(finding)
    assert {proof.rule for proof in finding.proofs} == {"plant", "room"}
    assert all(child.by is By.GIVEN for proof in finding.proofs for child in proof.children)


def test_a_stated_fact_against_a_rule_is_a_contradiction_too(fresh_kb: KnowledgeBase, session: PrologSession) -> None:
    """One side may be a fact; declared opposites count like the built-in pairs."""
    library = library_of(
        "opposite eats spurns\n"
        "cooks(Person X, Dish A) & is_of(Dish A, Kind B) -> eats(Person X, Kind B)\n"
        'fact spurns("it\'s", "a \\"b\\"")'
    )
    fresh_kb.add_facts([fact("cooks", "it's", "soup"), fact("is_of", "soup", 'a "b"')])
    (finding,) = contradictions(library, fresh_kb, session)

    assert {proof.by for proof in finding.proofs} == {By.GIVEN, By.RULE}


def test_a_consistent_knowledge_base_has_no_findings(fresh_kb: KnowledgeBase, session: PrologSession) -> None:
    """Nothing is told of an empty knowledge base, or of one whose facts agree."""
    library = library_of(RULES)
    assert check_kb(library, fresh_kb, session) == ()

    fresh_kb.add_facts([fact("lives_in", "tom", "Rome"), fact("grows_in", "rose", "Rome")])
    assert check_kb(library, fresh_kb, session) == ()


def test_contrary_statements_are_told_once_with_both_proofs(fresh_kb: KnowledgeBase, session: PrologSession) -> None:
    """Statements of two rules about one plant contradict each other, whoever the generic person is called."""
    library = library_of(
        RULES.replace("Person X, Flat", "Person Y, Flat").replace("cannot_plant(Person X", "cannot_plant(Person Y")
    )
    facts = [fact("grows_in", "fig", "Rome"), fact("grows_in", "fig", "Bari"), fact("has_no_room_for", "attic", "fig")]
    kept = {"plant": [("Rome", "fig"), ("Bari", "fig")], "room": [("attic", "fig")]}
    for name, rows in kept.items():
        substitutions = [Substitution((("A", Constant(a)), ("B", Constant(b)))) for a, b in rows]
        rule = library.rule(name)
        kept_by_run = KeptSubstitutions(rule, {Distribution.HEAD: substitutions}, "run")
        fresh_kb.add_statements(derive_statements(session, library, facts, kept_by_run))
    (finding,) = contrary_statements(library, fresh_kb)

    assert finding.diagnostic.code == "HPX411"
    assert len(finding.proofs) == 2
    assert "(plant)" in str(finding)


def test_statements_whose_premises_exclude_each_other_agree(fresh_kb: KnowledgeBase, session: PrologSession) -> None:
    """Nobody lives in Rome and also not in Rome, so such statements do not contradict each other."""
    library = library_of(
        "@name a\nlives_in(Person X, City A) & has_shop(City A, Shop B) -> can_visit(Person X, Shop B)\n"
        "@name b\nleft(Person X, City A) & not lives_in(Person X, City A) & has_shop(City A, Shop B)"
        " -> cannot_visit(Person X, Shop B)"
    )
    row = {Distribution.HEAD: [Substitution((("A", Constant("Rome")), ("B", Constant("Bar"))))]}
    for rule in library.rules:
        kept = KeptSubstitutions(rule, row, "run")
        fresh_kb.add_statements(derive_statements(session, library, [fact("has_shop", "Rome", "Bar")], kept))

    assert len(fresh_kb.statements()) == 2
    assert list(contrary_statements(library, fresh_kb)) == []


def test_functional_predicates_with_two_values(fresh_kb: KnowledgeBase) -> None:
    """A tower was built once; predicates that are not functional may have many values."""
    library = library_of("functional built_in(Tower, Year)\noracle seen_in(Tower, Year)")
    fresh_kb.add_facts([fact(name, "Torre", year) for name in ("built_in", "seen_in") for year in (1900, 1901)])
    fresh_kb.add_facts([fact("built_in", "Turm", 1900)])
    # Of a predicate with the same name and other arguments, which is not declared as functional.
    fresh_kb.add_facts([fact("built_in", "Turm", place, 1900) for place in ("Ulm", "Bern")])
    fresh_kb.add_facts([fact("built_in", "Turm", "Ulm", year) for year in (1901, 1902)])
    (finding,) = functional_with_two_values(library, fresh_kb)

    assert finding.diagnostic.code == "HPX402"
    assert 'built_in("Torre", 1900), built_in("Torre", 1901)' in finding.diagnostic.message


def test_constants_under_types_that_exclude_each_other(fresh_kb: KnowledgeBase) -> None:
    """A person is no dish; unrelated types are noted once for all their constants, related ones not at all."""
    named = "oracle is_served_on(Dish, Metal)\noracle is_seen_from(Planet, Planet)"
    library = library_of(f"type Author < Person\ntype Author < Entity\ntype Cheese < Food\n{named}")
    accepted = [("Dante", "Author"), ("Dante", "Dish"), ("Dante", "Entity"), ("brie", "Cheese"), ("brie", "Food")]
    accepted += [("Mercury", "Planet"), ("Mercury", "Metal"), ("Io", "Planet"), ("Io", "Metal"), ("Io", "planet")]
    fresh_kb.add_type_facts(TypeFact(constant, data_type) for constant, data_type in accepted)
    found = [finding.diagnostic for finding in constants_under_two_types(library, fresh_kb)]

    assert [
        diagnostic.code
        for diagnostic in found
        if "Dante" in diagnostic.message and "unrelated" not in diagnostic.message
    ] == ["HPX412"]
    assert [diagnostic.message for diagnostic in found if "Metal" in diagnostic.message] == [
        '2 constants have the unrelated types Metal and Planet: "Io", "Mercury"'
    ]
    assert not any("brie" in diagnostic.message for diagnostic in found)


def test_nothing_is_said_of_types_that_no_loaded_file_names(fresh_kb: KnowledgeBase) -> None:
    """A knowledge base filled by other rules raises no alarm about types whose supertypes these rules do not tell."""
    fresh_kb.add_type_facts([TypeFact("Dante", "Person"), TypeFact("Dante", "Historical Figure")])

    assert list(constants_under_two_types(library_of("oracle wrote(Person, Book)"), fresh_kb)) == []


@pytest.mark.parametrize(("names", "told"), [("abc", '"a", "b", "c"'), ("dcba", '"a", "b", "c" ...')])
def test_three_constants_under_unrelated_types_are_named(names: str, told: str, fresh_kb: KnowledgeBase) -> None:
    """The first in the order of the alphabet; dots stand for the others."""
    library = library_of("oracle is_seen_from(Planet, Planet)\noracle is_made_of(Ring, Metal)")
    fresh_kb.add_type_facts(TypeFact(name, data_type) for name in names for data_type in ("Planet", "Metal"))
    (finding,) = constants_under_two_types(library, fresh_kb)

    assert finding.diagnostic.message.endswith(f": {told}")


def test_types_of_facts_count_as_well(fresh_kb: KnowledgeBase) -> None:
    """The type of a fact's argument counts as much as a type fact."""
    library = library_of("type Author < Person\noracle wrote(Author, Book)\noracle is_in(Spice, Dish)")
    fresh_kb.add_facts([replace(fact("wrote", "Basil", "Hexaemeron"), types=("Author", "Book"))])
    fresh_kb.add_facts([replace(fact("is_in", "Basil", "pesto"), types=("Spice", "Dish"))])

    assert [finding.diagnostic.code for finding in constants_under_two_types(library, fresh_kb)] == ["HPX412"]
