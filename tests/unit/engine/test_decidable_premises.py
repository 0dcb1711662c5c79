"""The premises that need no model are tested as soon as their variables have values, and each once."""

from __future__ import annotations

import random
import re

import pytest

import hapax
from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.search.decidable import DecidableFacts, Lookups, PartTest, open_parts
from hapax.kb.store import KnowledgeBase

JOINS = """
given holds(Number, Number)
given links(Number, Number, Number)
computed doubles(Number X, Number Y) := Y = 2 * X
@name joined
@generic none
{premise} -> found(Number A)
"""
PREMISES = [
    "holds(A, B) & holds(B, C) & C > A",
    "holds(A, B) & not holds(B, A)",
    "holds(A, B) & C = A + B & holds(C, D) & D != 2",
    "holds(A, B) & Number C = B + 1 & D = C * 2 & holds(B, D)",
    "links(A, B, B) & not links(B, A, 1)",
    "links(A, B, C) & doubles(B, C)",
    "links(A, B, C) & not doubles(B, C) & holds(C, B)",
    "holds(A, A) & A > 1",
    "links(A, 2, B) & holds(B, 3)",
]
REACHES = """
given holds(Number, Number)
@name reaching
holds(Number A, Number B) -> reaches(Number A, Number B)
@name through
@generic none
reaches(Number A, Number B) -> found(Number A)
"""


@pytest.mark.parametrize("premise", PREMISES)
def test_each_form_of_a_premise_passes_where_a_goal_holds(premise: str) -> None:
    """Over drawn facts some of the five values pass and others do not."""
    passed = set()
    for seed in range(3):
        chance = random.Random(seed)
        pairs = list({(chance.randrange(5), chance.randrange(5)) for _ in range(9)})
        triples = list({(chance.randrange(5), chance.randrange(5), chance.randrange(5)) for _ in range(14)})
        passed |= {(number, is_passing) for number, is_passing in assert_agreement(premise, pairs, triples)}

    assert {is_passing for _, is_passing in passed} == {True, False}


def assert_agreement(
    premise: str, pairs: list[tuple[int, ...]], triples: list[tuple[int, ...]]
) -> list[tuple[int, bool]]:
    """Fail unless a goal finds exactly the values that pass. Returns each value with its verdict."""
    library = hapax.parse_rules(JOINS.format(premise=re.sub(r"([(]|, )(?=[A-D])", r"\1Number ", premise)))
    with KnowledgeBase() as kb:
        hapax.add_facts(kb, "holds", pairs, library)
        hapax.add_facts(kb, "links", triples, library)
        facts = DecidableFacts(KnownFacts(kb, library), library, lambda _: None)
        tests = [PartTest(part, facts, library) for part in open_parts(library.rule("joined"), ["A"], facts, library)]
        derived = hapax.query("found(X)", library, kb).rows

        passing = [number for number in range(5) if all(test.passes({"A": number}, Lookups()) for test in tests)]
    assert [(number,) for number in passing] == [tuple(row) for row in derived]
    return [(number, number in passing) for number in range(5)]


def test_a_part_without_lookups_left_passes() -> None:
    """A test that would look up too many rows decides nothing, and each answer that it has is kept."""
    library = hapax.parse_rules(JOINS.format(premise="holds(Number A, Number B) & holds(Number B, Number C) & C > 9"))
    with KnowledgeBase() as kb:
        hapax.add_facts(kb, "holds", [(1, number) for number in range(2, 8)] + [(2, 3)], library)
        facts = DecidableFacts(KnownFacts(kb, library), library, lambda _: None)
        (part,) = open_parts(library.rule("joined"), ["A"], facts, library)

        enough, few = Lookups(), Lookups(4)
        assert not PartTest(part, facts, library).passes({"A": 1}, enough)
        limited = PartTest(part, facts, library)
        assert limited.passes({"A": 1}, few)
        assert few.left <= 0
        assert limited.passes({"A": 1}, Lookups())  # as before
        assert not PartTest(part, facts, library).passes({"A": 9}, Lookups(2))


def test_a_table_that_is_too_large_is_no_table() -> None:
    """A predicate whose rows cannot all be derived has no values and no size, and its premises are left to later steps."""
    library = hapax.parse_rules(REACHES)
    literal = library.rule("through").literals[0]
    with KnowledgeBase() as kb:
        facts = DecidableFacts(KnownFacts(kb, library), library, lambda _: None)

        assert facts.needs_no_model(literal)
        assert not facts.is_tabled(literal)
        assert (facts.values(literal, literal.atom, "B"), list(facts.rows(literal, (), ())), facts.size(literal)) == (
            [],
            [],
            0,
        )
