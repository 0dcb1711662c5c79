"""Statements: joined by Prolog, worded, with their proofs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hapax.engine.inference.derive import (
    KeptSubstitutions,
    derivations,
    derive_statements,
    relevant_library,
    values_in_sentence,
)
from hapax.engine.inference.program import build_program
from hapax.engine.inference.proof import By, proof_from_json, proof_text
from hapax.engine.inference.session import AnswerRow, GoalAnswers, PrologSession
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Substitution, Value
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord

ALLERGY = """
oracle is_ingredient_in(Ingredient, Dish):
  "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "is [1] an ingredient in [2]?".
given is_recalled(Ingredient).
@name allergy
is_allergic_to(Person X, Food Allergen A) & falls_under(Ingredient Z, Food Allergen A)
  & is_ingredient_in(Ingredient Z, Dish B)
  & not is_recalled(Ingredient Z) -> is_not_able_to_eat(Person X, Dish B).
"""
ROUTES = """
@generic none
@name onward
road(Place A, Place B) & reaches(Place B, Place C) & C \\= A -> serves(Place A, Place C).
road(Place A, Place B) -> reaches(Place A, Place B).
road(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C).
"""
TIME = """
computed is_before(Year A, Year B) := A < B.
@name telephone
lived_in(Historical Figure P, Year D) & was_invented_in(Thing T, Year Y) & is_before(Year D, Year Y) & L = Y - 1
  & L < 1900 -> could_not_use(Historical Figure P, Thing T, Year L).
"""


def library_of(text: str) -> Library:
    return parse_library([("f.rules", text)])


def fact(predicate: str, *values: Value, source: Source = Source.MODEL) -> FactRecord:
    return FactRecord(predicate, values, tuple("Thing" for _ in values), source, 0.9)


def kept(**bindings: Value) -> Substitution:
    return Substitution(tuple((name, Constant(value)) for name, value in bindings.items()))


def derived(
    prolog: PrologSession, text: str, rule: str, substitutions: list[Substitution], facts: list[FactRecord]
) -> list[StatementRecord]:
    library = library_of(text)
    kept = KeptSubstitutions(library.rule(rule), {Distribution.LONG_TAIL: substitutions}, "run1")
    return derive_statements(prolog, library, facts, kept)


ALLERGY_FACTS = [
    fact("falls_under", "shrimp", "shellfish"),
    fact("is_ingredient_in", "shrimp", "paella"),
    fact("falls_under", "crab", "shellfish"),
    fact("is_ingredient_in", "crab", "bisque"),
]


def test_constraints_must_hold(prolog: PrologSession) -> None:
    """Only substitutions whose constraint atoms are facts become statements; hypotheses need no fact."""
    both = [kept(A="shellfish", Z="shrimp", B="paella"), kept(A="shellfish", Z="shrimp", B="bisque")]

    (statement,) = derived(prolog, ALLERGY, "allergy", both, ALLERGY_FACTS)

    assert statement.text == "If PersonX is allergic to shellfish, then PersonX is not able to eat paella."
    assert statement.distribution is Distribution.LONG_TAIL
    assert statement.run_id == "run1"
    assert statement.ranking_text == (
        "PersonX is allergic to shellfish and shrimp falls under shellfish and shrimp is an ingredient in paella "
        "and shrimp is not recalled and PersonX is not able to eat paella"
    )


class Reordered(PrologSession):
    """A session that gives its answers in another order: Prolog's tables keep them in another one in each process."""

    order: Callable[[list[AnswerRow]], list[AnswerRow]]

    def solutions(self, *arguments: Any, **options: Any) -> GoalAnswers:
        found = super().solutions(*arguments, **options)
        return replace(found, rows=self.order(list(found.rows)))


@pytest.fixture(scope="module")
def reordered() -> Iterator[Reordered]:
    with Reordered() as session:
        yield session


def shuffled(seed: int) -> Callable[[list[AnswerRow]], list[AnswerRow]]:
    return lambda rows: random.Random(seed).sample(rows, len(rows))


ORDERS = {"backwards": lambda rows: rows[::-1], "shuffled": shuffled(1), "shuffled otherwise": shuffled(2)}
MANY_WAYS = (
    ROUTES
    + "railway(Place A, Place B) -> reaches(Place A, Place B).\nroad(Place B, Place A) -> reaches(Place A, Place B).\n"
)
"""Each place is reached by roads, railways and back, so that most conclusions have several proofs of one depth."""
ROADS = [fact(kind, *pair) for kind in ("road", "railway") for pair in ("ab", "bd", "ac", "cd", "de", "ea", "bc")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("text", [ROUTES, MANY_WAYS])
def test_proofs_do_not_depend_on_the_order_of_answers(
    prolog: PrologSession, reordered: Reordered, text: str, order: str
) -> None:
    """Of equally deep proofs the same one is kept, and open statements come in the same order, in every process."""
    reordered.order = ORDERS[order]
    open_end = [kept(A="a"), kept(A="d"), kept()]

    usual = derived(prolog, text, "onward", open_end, ROADS)

    assert derived(reordered, text, "onward", open_end, ROADS) == usual
    assert len(usual) > 20


@pytest.mark.parametrize("order", ORDERS)
def test_derivations_do_not_depend_on_the_order_of_answers(
    prolog: PrologSession, reordered: Reordered, order: str
) -> None:
    """The rule instances behind an atom come by conclusion, in one order, whatever Prolog's was."""
    reordered.order = ORDERS[order]
    library = relevant_library(library_of(MANY_WAYS), goals=["reaches/2"])
    for session in (prolog, reordered):
        session.load(build_program(library, ROADS))
    goal = "Roots = [reaches(a, e), reaches(d, b)]"

    usual, unusual = (list(derivations(session, library, goal).items()) for session in (prolog, reordered))

    assert usual == unusual
    assert max(len(instances) for _, instances in usual) > 2


def test_the_proof_names_its_facts(prolog: PrologSession) -> None:
    """Hypotheses are assumed, constraints are facts with their ids, negation says what was not provable."""
    (statement,) = derived(prolog, ALLERGY, "allergy", [kept(A="shellfish", Z="shrimp", B="paella")], ALLERGY_FACTS)

    proof = proof_from_json(statement.proof)

    assert [child.by for child in proof.children] == [By.ASSUMPTION, By.FACT, By.FACT, By.NEGATION]
    assert proof.fact_ids() == (ALLERGY_FACTS[0].id, ALLERGY_FACTS[1].id)
    assert 'is_recalled("shrimp") was not provable' in proof_text(proof)


def test_negation_excludes(prolog: PrologSession) -> None:
    """A negated constraint that is provable stops the statement."""
    facts = [*ALLERGY_FACTS, fact("is_recalled", "shrimp", source=Source.GIVEN)]

    assert derived(prolog, ALLERGY, "allergy", [kept(A="shellfish", Z="shrimp", B="paella")], facts) == []


def test_open_variables_are_joined(prolog: PrologSession) -> None:
    """A substitution that leaves variables open gets every value that fits."""
    statements = derived(prolog, ALLERGY, "allergy", [kept(A="shellfish")], ALLERGY_FACTS)

    assert sorted(statement.conclusion for statement in statements) == [
        "PersonX is not able to eat bisque",
        "PersonX is not able to eat paella",
    ]


def test_each_distribution_has_its_statements(prolog: PrologSession) -> None:
    """A substitution kept for both distributions gives a statement in each."""
    library = library_of(ALLERGY)
    both = kept(A="shellfish", Z="shrimp", B="paella")

    rows = KeptSubstitutions(library.rule("allergy"), {Distribution.HEAD: [both], Distribution.LONG_TAIL: [both]}, "r")
    statements = derive_statements(prolog, library, ALLERGY_FACTS, rows)

    assert [statement.distribution for statement in statements] == [Distribution.HEAD, Distribution.LONG_TAIL]


def test_nothing_kept_asks_nothing(prolog: PrologSession) -> None:
    """No substitutions, no statements."""
    assert derived(prolog, ALLERGY, "allergy", [], ALLERGY_FACTS) == []


def test_recursion_on_a_cycle_has_a_proof(prolog: PrologSession) -> None:
    """A derived premise over cyclic data is proved by its rules down to facts, never by itself."""
    facts = [fact("road", "a", "b"), fact("road", "b", "c"), fact("road", "c", "a")]

    statements = derived(prolog, ROUTES, "onward", [kept(A="a", B="b", C=end) for end in "abc"], facts)

    assert [dict(statement.substitution)["C"] for statement in statements] == ["b", "c"]
    proof = proof_from_json(statements[0].proof)
    assert set(proof.fact_ids()) == {record.id for record in facts}
    assert len(proof.parts()) < 12


def test_long_chains_are_proved(prolog: PrologSession) -> None:
    """A derivation of hundreds of steps is found and stays flat."""
    facts = [fact("road", f"n{i}", f"n{i + 1}") for i in range(300)]

    (statement,) = derived(prolog, ROUTES, "onward", [kept(A="n0", B="n1", C="n300")], facts)

    assert len(proof_from_json(statement.proof).fact_ids()) == 300


def test_computed_and_assigned_values(prolog: PrologSession) -> None:
    """Computed predicates and comparisons are arithmetic; an equation gives a variable its value."""
    facts = [fact("was_invented_in", "telephone", 1876), fact("was_invented_in", "internet", 1969)]

    things = [kept(D=1800, T="telephone", Y=1876), kept(D=1800, T="internet", Y=1969)]

    statements = derived(prolog, TIME, "telephone", things, facts)

    assert [dict(statement.substitution)["L"] for statement in statements] == [1875]
    by = [child.by for child in proof_from_json(statements[0].proof).children]
    assert by == [By.ASSUMPTION, By.FACT, By.COMPUTED, By.COMPUTED, By.COMPUTED]


def test_values_that_look_like_slots_are_only_values(prolog: PrologSession) -> None:
    """A value cannot fill another variable's place in a sentence."""
    facts = [fact("falls_under", "[B]", "[1]"), fact("is_ingredient_in", "[B]", "{A}")]

    (statement,) = derived(prolog, ALLERGY, "allergy", [kept(A="[1]", Z="[B]", B="{A}")], facts)

    assert statement.text == "If PersonX is allergic to [1], then PersonX is not able to eat {A}."


def test_only_what_matters_is_loaded() -> None:
    """The part of a library that a rule reaches keeps its rules, signatures and facts, and no others."""
    library = library_of(ROUTES + ALLERGY + 'fact road("x", "y").')

    part = relevant_library(library, library.rule("onward"))

    assert {rule.conclusion.atom.predicate for rule in part.rules} == {"reaches"}
    assert part.facts == library.facts
    assert not part.knows("is_ingredient_in/2")


def test_many_statements_leave_in_bulk(prolog: PrologSession) -> None:
    """Five thousand statements come with one join, in the order of the search, each with its own proof."""
    facts = [fact("falls_under", f"i{n % 50}", f"a{n % 5}") for n in range(50)]
    facts += [fact("is_ingredient_in", f"i{n % 50}", f"d{n}") for n in range(5000)]
    substitutions = [kept(A=f"a{n % 5}", Z=f"i{n % 50}", B=f"d{n}") for n in range(5000)]

    statements = derived(prolog, ALLERGY, "allergy", substitutions, facts)

    assert [dict(statement.substitution)["B"] for statement in statements] == [f"d{n}" for n in range(5000)]
    assert len({statement.id for statement in statements}) == 5000


def test_a_full_stop_before_a_value_is_no_part_of_the_value() -> None:
    """Only the last full stop of a sentence may be left out when a statement is looked up by its text."""
    words = '"[1] pays ca.[2]" / "[1] does not pay ca.[2]" / "does [1] pay ca.[2]?"'
    rules = f"given pays(Person, Price): {words}\ngiven is_rich(Person)\n@generic none\n"
    library = parse_library([("a.rules", f"{rules}pays(Person X, Price P) & P > 3 -> is_rich(Person X)")])
    (rule,) = library.rules
    found = values_in_sentence(rule, library, "If ann pays ca.5, then ann is rich")

    assert [{name: constant.value for name, constant in reading.items()} for reading in found] == [
        {"X": "ann", "P": "5"},
        {"X": "ann", "P": 5},
    ]
