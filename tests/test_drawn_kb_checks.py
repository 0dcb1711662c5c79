"""Checks of drawn facts, rules and declarations against each other, by golden files in `tests/golden/`."""

from __future__ import annotations

import random

import pytest
from golden_fixture import compared
from kb_contents import checksum

from hapax.engine.entailment.checks import EntailmentLimits, entailment_faults
from hapax.engine.entailment.graph import Edge
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.session import PrologSession
from hapax.engine.judgements import SOUNDNESS_QUESTION
from hapax.engine.kb_checks import check_kb
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Substitution
from hapax.kb.records import DenialRecord, Distribution, FactRecord, Source, VoteRecord
from hapax.kb.store import KnowledgeBase

KNOWN = """
type Cook < Person
oracle likes(Person, Dish): "[1] likes [2]" / "[1] does not like [2]" / "does [1] like [2]?"
oracle avoids(Person, Dish)
opposite likes avoids
functional was_born_in(Person, Year) within 1
functional lives_in(Person, City)
given serves(City, Dish)
given cooked(Cook, Dish)
"""
DECLARATIONS = (
    "asymmetric teaches/2", "irreflexive teaches/2", "symmetric marries/2", "asymmetric marries/2", "transitive teaches/2",
    "closed serves/2", "closed likes/2 by 1", "disjoint Cook, City", "disjoint Person, Dish",
    "never likes(Person A, Dish B) & cooked(Cook A, Dish B)", "never was_born_in(Person A, Year B) & B > 1995",
    "never teaches(Person A, Person B) & was_born_in(Person A, Year C) & was_born_in(Person B, Year D) & C > D",
    "never lives_in(Person A, City B) & not serves(City B, Dish C) & likes(Person A, Dish C)",
)  # fmt: skip
RULES = (
    "lives_in(Person X, City A) & serves(City A, Dish B) -> likes(Person X, Dish B)",
    "cooked(Cook A, Dish B) -> avoids(Cook A, Dish B)",
    "marries(Person A, Person B) & likes(Person A, Dish C) -> likes(Person B, Dish C)",
    "teaches(Person A, Person B) & cooked(Cook B, Dish C) -> cooked(Person A, Dish C)",
    "was_born_in(Person A, Year B) & B < 1980 -> is_old(Person A)",
    "likes(Person A, Dish B) & cooked(Cook A, Dish B) -> eats(Person A, Dish B)",
)
ENTAILED = (
    ("likes(Person A, Dish B)", "eats(Person A, Dish B)"), ("eats(Person A, Dish B)", "likes(Person A, Dish B)"),
    ("cooked(Cook A, Dish B)", "likes(Cook A, Dish B)"), ("avoids(Person A, Dish B)", "likes(Person A, Dish B)"),
    ("marries(Person A, Person B)", "teaches(Person B, Person A)"), ("eats(Person A, Dish B)", "avoids(Person A, Dish B)"),
)  # fmt: skip
ARGUMENTS = {
    "likes": ("Person", "Dish"), "avoids": ("Person", "Dish"), "was_born_in": ("Person", "Year"),
    "lives_in": ("Person", "City"), "serves": ("City", "Dish"), "cooked": ("Cook", "Dish"),
    "teaches": ("Person", "Person"), "marries": ("Person", "Person"),
}  # fmt: skip
VALUES = {
    "Person": ("ann", "bob", "Rome"), "Cook": ("ann", "cid", "soup"), "Dish": ("soup", "pie"), "City": ("Rome", "Oslo"),
    "Year": (1975, 1976, 1999, "long ago"),
}  # fmt: skip


def drawn_library(chance: random.Random) -> Library:
    declared = [line for line in DECLARATIONS if chance.random() < 0.35]
    rules = [f"@generic none\n{rule}" for rule in RULES if chance.random() < 0.5]
    return parse_library([("f.rules", "\n".join((KNOWN, *declared, *rules)))])


def fill(kb: KnowledgeBase, library: Library, chance: random.Random, prolog: PrologSession) -> None:
    """Facts about few things, denials of some, and statements with the votes of readers."""
    facts = []
    for _ in range(chance.randrange(4, 16)):
        name = chance.choice(sorted(ARGUMENTS))
        types = ARGUMENTS[name]
        source = chance.choice((Source.GIVEN, Source.MODEL))
        facts.append(FactRecord(name, tuple(chance.choice(VALUES[part]) for part in types), types, source, 0.9))
    kb.add_facts(facts)
    kb.add_denials([DenialRecord("likes", (chance.choice(VALUES["Person"]), "pie"), 0.03)])
    for rule in library.rules:
        row = [Constant(chance.choice(VALUES[variable.data_type])) for variable in rule.searched]
        names = [variable.name for variable in rule.searched]
        kept = KeptSubstitutions(rule, {Distribution.HEAD: [Substitution(tuple(zip(names, row, strict=True)))]}, "run")
        kb.add_statements(derive_statements(prolog, library, kb.facts(), kept))
    kb.add_votes(
        VoteRecord(found.id, SOUNDNESS_QUESTION, voter, chance.choice(("yes", "rule", "fact")))
        for found in kb.statements()
        for voter in ("ann", "bob")
    )


@pytest.mark.parametrize("part", range(3))
def test_drawn_knowledge_is_checked_as_before(part: int, prolog: PrologSession) -> None:
    """The findings about facts, statements, rules and entailments, with their proofs, are those that were read over."""
    lines = []
    for seed in range(part * 25, part * 25 + 25):
        chance = random.Random(f"checks {seed}")
        library = drawn_library(chance)
        with KnowledgeBase() as kb:
            fill(kb, library, chance, prolog)
            found = "\n".join(map(str, check_kb(library, kb, prolog))).splitlines()
        edges = [Edge.of(*pair, chance.choice([0.5, 0.7, 0.9]), library) for pair in ENTAILED if chance.random() < 0.6]
        limits = EntailmentLimits(chance.choice([0.3, 0.6, 0.8]), chance.choice([None, 0.0, 0.3]))
        found += map(str, entailment_faults(library, edges, limits))
        lines += [f"{seed}: {len(found)} lines, {checksum(found)}", *(f"  {line[:170]}" for line in found[:6])]
    compared(f"kb_checks/{part}", "\n".join(lines) + "\n")
