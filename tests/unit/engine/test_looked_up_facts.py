"""Facts of a large predicate that a goal asks a model about are looked up, with the results of reading them all."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.conflicts import FactConflict, conflicts, conflicts_around
from hapax.engine.inference.known_facts import KnownFacts, StoredFacts
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.kb import argument_index
from hapax.kb.argument_index import ArgumentIndex
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

RULES = """
oracle road(Place, Place)
oracle borders(Place, Place)
symmetric borders/2
transitive borders/2
oracle has(Place, Thing)
closed has/2 by 1
fact road("a", "z")
fact borders("a", "c")
"""

PREDICATES = ("road", "borders", "has")

VALUES = st.sampled_from(["a", "b", "c", "z", 1, 2, Decimal("2.5")])

FACTS = st.lists(
    st.builds(
        lambda name, first, second, source: FactRecord(name, (first, second), ("Place", "Place"), source, 0.9, "c"),
        st.sampled_from(PREDICATES),
        VALUES,
        VALUES,
        st.sampled_from([Source.GIVEN, Source.MODEL]),
    ),
    max_size=12,
)


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=cases(10),
)
@given(before=FACTS, added=FACTS, rejected=FACTS)
def test_looking_facts_up_gives_what_reading_all_gives(
    before: list[FactRecord], added: list[FactRecord], rejected: list[FactRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, truth, declared properties, closedness, and facts that come and go while the goal runs."""
    library = parse_library([("t", RULES)])
    found = []
    for looks_up in (False, True):
        with KnowledgeBase() as kb, monkeypatch.context() as patch:
            kb.add_facts(before)
            patch.setattr(argument_index, "FEW_FACTS", 0)
            ArgumentIndex(kb).prepare(f"{name}/2" for name in PREDICATES)
            known = KnownFacts(kb, library)
            known.looks_up = looks_up
            if looks_up:
                for fact in before:
                    assert isinstance(known.of(f"{fact.predicate}/2"), StoredFacts)
            seen = [answers(known)]
            known.add(added)
            patch.setattr(argument_index, "FEW_FACTS", 2_000)
            seen.append(answers(known))
            known.reject(rejected)
            seen.append(answers(known))
            found.append(seen)

    assert found[0] == found[1]


def answers(known: KnownFacts) -> list[object]:
    values: list[Value] = ["a", "b", "z", 1, Decimal("2.5")]
    found: list[object] = []
    for name in PREDICATES:
        for value in values:
            bound, free = Constant(value), Variable("V", "Place")
            found += [sorted(map(repr, known.given(Atom(name, pair), "V"))) for pair in ((bound, free), (free, bound))]
            atoms = [Atom(name, (bound, Constant(other))) for other in values]
            found += [(known.truth(atom), known.is_covered(atom)) for atom in atoms]
        found.append(sorted(map(repr, known.given(Atom(name, (Variable("V", "Place"), Variable("W", "Place"))), "V"))))
        found.append(sorted(map(repr, known.given_rows(f"{name}/2"))))
    return found


CONSTRAINED = """
oracle road(Place, Place)
oracle borders(Place, Place)
oracle has(Place, Thing)
given far(Place, Place)
type Thing < Object
asymmetric borders/2
irreflexive road/2
never road(Place A, Place B) & road(Place B, Place C) & far(Place A, Place C)
never borders(Place A, Place B) & has(Place A, Thing C) & not has(Place B, Thing C) & far(Place A, "c")
disjoint Place, Thing
road(Place A, Place B) -> near(Place A, Place B)
near(Place A, Place B) & near(Place B, Place C) -> near(Place A, Place C)
never near(Place A, Place B) & far(Place A, Place B)
fact road("c", "a")
"""

TEXTS = st.sampled_from(["a", "b", "c", "d"])

TYPED = st.lists(
    st.builds(
        lambda name, first, second, types, source: FactRecord(name, (first, second), types, source, 0.9, "c"),
        st.sampled_from((*PREDICATES, "far")),
        TEXTS,
        TEXTS,
        st.sampled_from([("Place", "Place"), ("Place", "Thing")]),
        st.sampled_from([Source.GIVEN, Source.MODEL]),
    ),
    max_size=10,
)


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=cases(12),
)
@given(before=TYPED, found=TYPED, arrived=TYPED)
def test_conflicts_of_new_facts_are_those_over_all_facts(
    before: list[FactRecord], found: list[FactRecord], arrived: list[FactRecord]
) -> None:
    """Where facts are looked up, those that come break the same declarations with the same facts."""
    library = parse_library([("t", CONSTRAINED)])
    with KnowledgeBase() as kb, pytest.MonkeyPatch.context() as patch:
        kb.add_facts(before)
        patch.setattr(argument_index, "FEW_FACTS", 0)
        known = KnownFacts(kb, library)
        known.looks_up = True
        ArgumentIndex(kb).prepare(f"{name}/2" for name in (*PREDICATES, "far"))
        known.add(found)
        # What a rule file states as well is given, and never loses.
        lost = {fact.id for fact in found[:2] if known.of(f"{fact.predicate}/2")[fact.arguments].source is Source.MODEL}
        near = conflicts_around(library, arrived, known, lost=lost)
        every = {fact.id: fact for fact in arrived if fact.id not in lost}
        for name in (*PREDICATES, "far"):
            every |= {fact.id: fact for fact in known.of_run(f"{name}/2") if fact.id not in lost}
        over_all = conflicts(kb, library, every.values())

    new = {fact.id for fact in arrived} - lost
    expected = [item for item in over_all if any(fact.id in new for fact in item.facts)]
    assert set(map(named, near)) == set(map(named, expected))


def named(item: FactConflict) -> tuple[str, str]:
    return item.declaration, item.text
