"""Facts of a large predicate that a goal asks a model about are looked up, with the results of reading them all."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.search.known_facts import KnownFacts, StoredFacts
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
            ArgumentIndex(kb).prepare(PREDICATES)
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


def test_only_the_facts_that_a_goal_asks_about_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is looked up without reading the facts of its predicate."""
    library = parse_library([("t", RULES)])
    with KnowledgeBase() as kb:
        kb.add_facts(FactRecord("road", (f"p{n}", f"p{n + 1}"), ("Place", "Place"), Source.GIVEN) for n in range(3_000))
        ArgumentIndex(kb).prepare(["road"])
        known = KnownFacts(kb, library)
        known.looks_up = True
        monkeypatch.setattr(KnowledgeBase, "facts", lambda *_: pytest.fail("all facts were read"))

        assert known.given(Atom("road", (Constant("p7"), Variable("V", "Place"))), "V") == ["p8"]
        assert known.truth(Atom("road", (Constant("p7"), Constant("p8")))) == 1.0
        assert known.truth(Atom("road", (Constant("p7"), Constant("p9")))) is None
