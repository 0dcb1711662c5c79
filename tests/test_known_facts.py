"""Facts of a large predicate that a goal asks a model about are looked up, with the results of reading them all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.conflicts import FactConflict, conflicts, conflicts_around
from hapax.engine.inference.known_facts import FactClosure, FactTable, KnownFacts, StoredFacts
from hapax.engine.inference.session import PrologSession
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.kb import argument_index
from hapax.kb.argument_index import ArgumentIndex, FactRow
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


def test_a_variable_given_twice_has_the_values_that_the_predicate_joins_with_themselves(
    fresh_kb: KnowledgeBase,
) -> None:
    """In a transitive predicate these are the values on a circle, and no others."""
    library = parse_library([("t", "oracle leads_to(Place, Place)\ntransitive leads_to/2")])
    rows = [("a", "b"), ("b", "a"), ("b", "c"), ("d", "d")]
    fresh_kb.add_facts(FactRecord("leads_to", row, ("Place", "Place"), Source.GIVEN) for row in rows)
    place = Variable("X", "Place")

    assert sorted(KnownFacts(fresh_kb, library).given(Atom("leads_to", (place, place)), "X"), key=str) == [
        "a",
        "b",
        "d",
    ]


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
        ArgumentIndex(kb).prepare(["road/2"])
        known = KnownFacts(kb, library)
        known.looks_up = True
        monkeypatch.setattr(KnowledgeBase, "facts", lambda *_: pytest.fail("all facts were read"))

        assert known.given(Atom("road", (Constant("p7"), Variable("V", "Place"))), "V") == ["p8"]
        assert known.truth(Atom("road", (Constant("p7"), Constant("p8")))) == 1.0
        assert known.truth(Atom("road", (Constant("p7"), Constant("p9")))) is None


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
    before: list[FactRecord], found: list[FactRecord], arrived: list[FactRecord], prolog: PrologSession
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
        near = conflicts_around(prolog, library, arrived, known, lost=lost)
        every = {fact.id: fact for fact in arrived if fact.id not in lost}
        for name in (*PREDICATES, "far"):
            every |= {fact.id: fact for fact in known.of_run(f"{name}/2") if fact.id not in lost}
        over_all = conflicts(prolog, library, every.values())

    new = {fact.id for fact in arrived} - lost
    expected = [item for item in over_all if any(fact.id in new for fact in item.facts)]
    assert set(map(named, near)) == set(map(named, expected))


def test_facts_that_break_two_declarations_are_one_conflict(
    prolog: PrologSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one of the facts is looked up for one declaration, and is a fact of the rules for the other."""
    library = parse_library([("t", CONSTRAINED)])
    monkeypatch.setattr(argument_index, "FEW_FACTS", 0)
    with KnowledgeBase() as kb:
        kb.add_facts([FactRecord("road", ("a", "a"), ("Place", "Place"), Source.GIVEN)])
        known = KnownFacts(kb, library)
        known.looks_up = True
        ArgumentIndex(kb).prepare(["road/2", "far/2"])
        arrived = [
            FactRecord(name, arguments, ("Place", "Place"), Source.GIVEN)
            for name, arguments in [("road", ("d", "c")), ("far", ("d", "a"))]
        ]

        found = conflicts_around(prolog, library, arrived, known)

    assert [item.text for item in found] == ['far("d", "a") and road("c", "a") and road("d", "c")']


def named(item: FactConflict) -> tuple[str, str]:
    return item.declaration, item.text


def test_a_declaration_reads_the_facts_that_can_break_it(
    prolog: PrologSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand roads the gate of consistency reads those that a new road may break a declaration with."""
    library = parse_library([("t", CONSTRAINED.partition("disjoint")[0])])
    read: list[int] = []
    original = ArgumentIndex.rows

    def rows(index: ArgumentIndex, *call: Any, **options: Any) -> list[FactRow]:
        found = original(index, *call, **options)
        read.append(len(found))
        return found

    with KnowledgeBase() as kb:
        kb.add_facts(FactRecord("road", (f"p{n}", f"p{n + 1}"), ("Place", "Place"), Source.GIVEN) for n in range(3_000))
        kb.add_facts([FactRecord("far", ("p7", "p9"), ("Place", "Place"), Source.GIVEN)])
        ArgumentIndex(kb).prepare(["road/2"])
        kb.withdraw([FactRecord("road", ("p7", "p8"), (), Source.GIVEN).id], "closed", "author")
        known = KnownFacts(kb, library)
        known.looks_up = True
        whole = KnowledgeBase.facts
        monkeypatch.setattr(
            KnowledgeBase,
            "facts",
            lambda kb, name: pytest.fail("all roads are read") if name == "road/2" else whole(kb, name),
        )
        monkeypatch.setattr(ArgumentIndex, "rows", rows)
        new = FactRecord("road", ("p7", "p8"), ("Place", "Place"), Source.MODEL, 0.9, "c")
        (conflict,) = conflicts_around(prolog, library, [new], known)

    assert conflict.text == 'far("p7", "p9") and road("p7", "p8") and road("p8", "p9")'
    assert sum(read) < 20


def test_an_atom_that_declarations_conclude_from_given_facts_is_true(fresh_kb: KnowledgeBase) -> None:
    """Given facts, what follows from them by declarations, withdrawals and reflexive atoms need no model."""
    library = parse_library([("t.rules", RULES + "irreflexive road/2\ngiven owns(Person, Thing)\n")])
    fresh_kb.add_facts(
        FactRecord(name, pair, ("Place", "Place"), Source.GIVEN)
        for name, pair in (("borders", ("c", "d")), ("road", ("a", "b")), ("owns", ("ann", "loom")))
    )
    fresh_kb.withdraw((fact.id for fact in fresh_kb.facts("road")), "closed", "user")
    known = KnownFacts(fresh_kb, library)
    truths = {
        ("borders", "c", "d"): 1.0,
        ("borders", "d", "a"): 1.0,
        ("borders", "d", "e"): None,
        ("road", "a", "b"): 0.0,
        ("road", "b", "b"): 0.0,
        ("road", "b", "c"): None,
        ("owns", "ann", "loom"): 1.0,
        ("owns", "ann", "ship"): 0.0,
    }

    for (name, *values), truth in truths.items():
        assert known.truth(Atom(name, tuple(map(Constant, values)))) == truth, (name, values)


X, Y = Variable("X", "T"), Variable("Y", "T")
ROWS: list[tuple[Value, ...]] = [("a", "b"), ("b", "c"), ("c", "c"), ("d", 1), (1, "e")]


def seen(*terms: Variable | Value) -> Atom:
    return Atom("p", tuple(term if isinstance(term, Variable) else Constant(term) for term in terms))


@pytest.mark.parametrize(
    ("symmetric", "transitive", "atom", "name", "expected"),
    [
        (False, False, seen("a", Y), "Y", ["b"]),
        (False, False, seen(X, "b"), "X", ["a"]),
        (False, False, seen(X, Y), "X", ["a", "b", "c", "d", 1]),
        (False, False, seen(X, Y), "Y", ["b", "c", 1, "e"]),
        (False, False, seen(X, X), "X", ["c"]),
        (False, False, seen("e", Y), "Y", []),
        (True, False, seen("b", Y), "Y", ["a", "c"]),
        (True, False, seen(X, "e"), "X", [1]),
        (False, True, seen("a", Y), "Y", ["b", "c"]),
        (False, True, seen(X, "c"), "X", ["a", "b", "c"]),
        (False, True, seen("d", Y), "Y", [1, "e"]),
        (True, True, seen("a", Y), "Y", ["a", "b", "c"]),
        (True, True, seen(X, X), "X", ["a", "b", "c", "d", 1, "e"]),
    ],
)
def test_the_closure_of_rows_gives_the_values_at_either_place(
    symmetric: bool, transitive: bool, atom: Atom, name: str, expected: list[Value]
) -> None:
    """Values follow by symmetry and transitivity from both sides, and rows hold exactly where their values are given.

    Rows in memory and facts that are looked up in a knowledge base give the same.
    """
    first, second = atom.arguments
    with KnowledgeBase() as kb:
        kb.add_facts(FactRecord("p", row, (), Source.GIVEN) for row in ROWS)
        ArgumentIndex(kb).prepare(["p/2"])
        for rows in (ROWS, StoredFacts(kb, "p/2", {}, given=False)):
            closure = FactClosure(rows, symmetric=symmetric, transitive=transitive)

            assert sorted(closure.values(atom, name), key=str) == sorted(expected, key=str)
            if isinstance(first, Constant) and isinstance(second, Variable):
                names = ["a", "b", "c", "d", "e", 1]
                assert {value for value in names if closure.holds((first.value, value))} == set(expected)


def test_a_table_of_facts_gives_rows_and_values_by_its_places() -> None:
    """Rows are found by values at any places; values are those at the place of a variable."""
    table = FactTable([("a", "b", 1), ("a", "c", 2), ("b", "b", 1), ("c", "c", 3)])

    assert len(table) == 4
    assert list(table.rows((), ())) == [("a", "b", 1), ("a", "c", 2), ("b", "b", 1), ("c", "c", 3)]
    assert list(table.rows((0,), ("a",))) == [("a", "b", 1), ("a", "c", 2)]
    assert list(table.rows((1, 2), ("b", 1))) == [("a", "b", 1), ("b", "b", 1)]
    assert list(table.rows((2,), (9,))) == []
    assert table.values(seen("a", Y, X), "X") == [1, 2]
    assert table.values(seen("a", Y, X), "Y") == ["b", "c"]
    assert table.values(seen(X, X, Y), "X") == ["b", "c"]
    assert table.values(seen(X, "b", 1), "X") == ["a", "b"]
