"""Goals over large predicates: facts that are fetched by index give the answers and proofs of all facts loaded at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases
from test_bulk_inference import VALUES, fact, facts, library_of, programs

from hapax.engine.explain import prove, story_text, why, why_not
from hapax.engine.inference import fact_supply
from hapax.engine.inference.call_patterns import CallPatterns
from hapax.engine.inference.proof import By
from hapax.engine.inference.session import LimitExceeded, PrologError, PrologSession, QueryLimits
from hapax.engine.inference.theory import QueryResult, Theory, run_query
from hapax.engine.near_misses import near_misses
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Atom, Constant, Value
from hapax.kb import argument_index
from hapax.kb.argument_index import ArgumentIndex, FactRow
from hapax.kb.loading import is_sayable
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

PROGRAMS = cases(12)

ROUTES = """
given road(Place, Place).
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B).
@name further
@generic none
reaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C).
@name cut
@generic none
road(Place A, Place B) & not reaches(Place B, Place A) -> leads_away(Place A, Place B).
"""


@contextmanager
def every_fact_fetched(open_calls: bool = True) -> Iterator[None]:
    """Fetch the facts of small predicates, too, and of those called with nothing bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argument_index, "FEW_FACTS", 0)
        if open_calls:
            patch.setattr(CallPatterns, "open", frozenset())
        yield


GOALS = (
    "first({0}, Y)", "first(X, {0})", "first({0}, {1})", "second(X, X)", "deduced({0}, Y)", "deduced(X, {0})", "reached({0}, Y)",
    "reached(X, {0})", "reached({0}, {1})", "told(X, {0})", "told({0}, _)", "first({0}, Y), \\+ reached(Y, {1})",
    "aggregate_all(count, reached({0}, _), N)", "findall(Y, (first({0}, Y) ; second(Y, {0})), L)", "marked({0}), first(X, Y), X \\== Y",
    "setof(Y, X^(first(X, Y), second(Y, {0})), L)", "forall(first({0}, Y), marked(Y))", "X = {0}, first(X, Y), first(Z, Y)",
    "aggregate_all(max(N), (second({0}, N), N > 1), M)", "marked(X), first(X, Y), second(Y, Z)",
)  # fmt: skip
values = st.sampled_from([value for value in VALUES if is_sayable([value])])


@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    program=programs(),
    found=facts(),
    goals=st.lists(st.sampled_from(GOALS), min_size=4, max_size=6),
    bound=st.tuples(values, values),
)
def test_fetched_facts_give_the_answers_of_all_facts(
    program: str,
    found: list[FactRecord],
    goals: list[str],
    bound: tuple[Value, Value],
    prolog: PrologSession,
) -> None:
    """Random programs and bound goals, negation, recursion and aggregates included: equal answers either way."""
    library = library_of(program)
    with KnowledgeBase() as kb:
        kb.add_facts(found)
        theory = Theory(library, kb, ('first(a, "2")',))
        for text in goals:
            goal = text.format(*map(Constant, bound))
            if "told" in goal and not library.knows("told/2"):
                continue
            whole = answers(theory, goal, prolog)
            for open_calls in (True, False):
                with every_fact_fetched(open_calls):
                    assert answers(theory, goal, prolog) == whole


def answers(theory: Theory, goal: str, prolog: PrologSession) -> QueryResult | str:
    try:
        return run_query(theory, goal, QueryLimits(seconds=60), session=prolog)
    except PrologError as fault:
        return fault.kind


@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), found=facts(), bound=st.tuples(values, values))
def test_fetched_facts_give_the_proofs_of_all_facts(
    program: str, found: list[FactRecord], bound: tuple[Value, Value], prolog: PrologSession
) -> None:
    """Proofs of derived atoms, and explanations why there is none, are the same, to the byte."""
    library = library_of(program)
    with KnowledgeBase() as kb:
        kb.add_facts(found)
        theory = Theory(library, kb)
        for predicate in ("reached", "deduced", "first"):
            if not library.knows(f"{predicate}/2"):
                continue
            atom = Atom(predicate, tuple(map(Constant, bound)))
            whole = explained(theory, atom, prolog)
            with every_fact_fetched():
                assert explained(theory, atom, prolog) == whole


def explained(theory: Theory, atom: Atom, prolog: PrologSession) -> object:
    try:
        proof = prove(theory, atom, prolog)
        return None if proof is None else proof.to_json()
    except HapaxError as fault:
        return str(fault)


@pytest.fixture
def routes(tmp_path: Path) -> Path:
    """A chain of 3,000 places that ends in a circle, and 3,000 roads elsewhere."""
    path = tmp_path / "routes.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts(fact("road", f"p{n}", f"p{n + 1}") for n in range(3_000))
        kb.add_facts([fact("road", "p3000", "p2990")])
        kb.add_facts(fact("road", f"q{n}", f"q{n * 7 % 3_000}") for n in range(3_000))
    return path


def test_a_bound_goal_reads_the_facts_that_it_reaches(
    routes: Path, prolog: PrologSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reachability from a place reads the roads from there on, of a file that is open for reading only."""
    library, read = library_of(ROUTES), []
    original = ArgumentIndex.rows
    monkeypatch.setattr(
        ArgumentIndex, "rows", lambda *call, **options: read.append(original(*call, **options)) or read[-1]
    )
    with KnowledgeBase(routes, read_only=True) as kb:
        result = run_query(Theory(library, kb), "reaches(p2950, Y)", session=prolog)
        onwards = sum(map(len, read))
        backwards = run_query(Theory(library, kb), "leads_away(X, p20)", session=prolog)

    assert [row[0] for row in result.rows] == sorted(f"p{n}" for n in range(2951, 3001))
    assert backwards.rows == [("p19",)]
    assert 0 < onwards < 200
    # A goal that reaches most places reads all roads at once after a while.
    assert len(read) < 1_200


def test_new_and_changed_facts_are_read_besides_the_index(routes: Path, prolog: PrologSession) -> None:
    """Facts that were added, deleted, changed or numbered anew since the index was made, whoever did it."""
    library = library_of(ROUTES)

    def ends(kb: KnowledgeBase) -> set[object]:
        whole = {values[1] for values in (found.arguments for found in kb.facts("road")) if values[0] == "p5"}
        answered = {row[0] for row in run_query(Theory(library, kb), "road(p5, Y)", session=prolog).rows}
        assert answered == whole
        return answered

    with KnowledgeBase(routes) as kb:
        assert ends(kb) == {"p6"}
        kb.add_facts([fact("road", "p5", "x")])
        assert ends(kb) == {"p6", "x"}
        kb.withdraw([fact("road", "p5", "p6").id], "wrong", "user")
        assert ends(kb) == {"x"}
        other_program = 'UPDATE facts SET id = ?, arguments = \'["p5","changed"]\' WHERE rowid = 9'
        kb.database.conn.execute(other_program, [fact("road", "p5", "changed").id])
        assert ends(kb) == {"x", "changed"}
        kb.withdraw([fact("road", "p1", "p2").id], "wrong", "user")
        kb.database.conn.execute("VACUUM")
        assert ends(kb) == {"x", "changed"}


NUMBERS: tuple[Value, ...] = (
    2, Decimal("2.0"), Decimal("2E0"), Decimal("0.1"), Decimal("0.10"), Decimal("2.0000000000000000001"), 2**53 + 1, 2**70,
    -(10**400), Decimal("1e999"), Decimal("1e-999"), 0, Decimal("-0.0"), "2", "2.0", '{"decimal":"2"}', "", "\u00e9",
)  # fmt: skip


def test_every_equal_number_is_looked_up(fresh_kb: KnowledgeBase) -> None:
    """Whatever its digits, size or place, a value finds all facts that have an equal one."""
    stored = [tuple(NUMBERS[(n + k) % len(NUMBERS)] for k in range(4)) for n in range(len(NUMBERS))]
    fresh_kb.add_facts(fact("size", *cells) for cells in stored)
    index = ArgumentIndex(fresh_kb)
    with every_fact_fetched():
        index.prepare(["size/4"])
    for number in NUMBERS:
        for place in range(4):
            equal = [cells for cells in stored if cells[place] == number]

            found = [cells for _, cells in index.rows("size/4", {place: number})]

            assert [cells for cells in found if cells in equal] == equal
            assert len(found) <= 6


def test_every_place_of_a_wide_predicate_is_looked_up(
    tmp_path: Path, prolog: PrologSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A goal that knows the fifth argument alone reads the facts that have it, also where the name has narrow facts."""
    library = library_of("given trip(Place, Place, Place, Place, Number).\ngiven trip(Place, Number).\n")
    read: list[int] = []
    original = ArgumentIndex.rows

    def rows(index: ArgumentIndex, *call: Any, **options: Any) -> list[FactRow]:
        found = original(index, *call, **options)
        read.append(len(found))
        return found

    with KnowledgeBase(tmp_path / "trips.db") as kb:
        kb.add_facts(fact("trip", "a", n) for n in range(2_500))
        # The narrow facts alone are indexed first.
        assert run_query(Theory(library, kb), "trip(X, 7)", session=prolog).rows == [("a",)]
        kb.add_facts(fact("trip", "a", "b", "c", f"d{n}", n) for n in range(2_500))
        monkeypatch.setattr(ArgumentIndex, "rows", rows)
        for changes in range(3):
            found = run_query(Theory(library, kb), "trip(A, B, C, D, 9)", session=prolog)
            assert found.rows == [("a", "b", "c", "d9"), *[("a", "b", "c", f"e{n}") for n in range(changes)]]
            kb.add_facts([fact("trip", "a", "b", "c", f"e{changes}", 9)])

    assert sum(read) < 20


def test_a_fact_that_prolog_cannot_hold_gives_no_type_a_value(fresh_kb: KnowledgeBase) -> None:
    """A number with a million digits is in no program, and so are the other values of its fact."""
    fresh_kb.add_facts(
        [
            FactRecord("at", ("x", 3), ("Town", "Number"), Source.MODEL),
            FactRecord("at", ("y", Decimal("1E+1000000")), ("Town", "Number"), Source.MODEL),
        ]
    )
    index = ArgumentIndex(fresh_kb)

    assert index.typed_values("at/2", bool) == {("x", "Town"), (3, "Number")}


def test_the_types_of_values_follow_the_facts(fresh_kb: KnowledgeBase) -> None:
    """The index's types of a value, and its values of a type, are those of facts that came or changed since."""
    place = FactRecord("at", ("x", "y"), ("Place", "Place"), Source.MODEL)
    town = FactRecord("at", ("t", "y"), ("Town", "Place"), Source.MODEL)
    fresh_kb.add_facts([place, FactRecord("at", ("z", "y"), (), Source.MODEL)])
    with every_fact_fetched():
        index = ArgumentIndex(fresh_kb)
        index.prepare(["at/2"])

        def seen() -> list[object]:
            types = [sorted(index.types_of("at/2", value)) for value in ("x", "t", "y", "z")]
            return [*types, *(sorted(index.typed_values("at/2", wanted.__eq__)) for wanted in ("Place", "Town"))]

        assert seen() == [["Place"], [], ["Place"], [], [("x", "Place"), ("y", "Place")], []]
        fresh_kb.add_facts([town])
        assert seen() == [["Place"], ["Town"], ["Place"], [], [("x", "Place"), ("y", "Place")], [("t", "Town")]]
        # A given fact of the same arguments replaces the types.
        fresh_kb.add_facts([replace(place, types=("Town", "Town"), source=Source.GIVEN)])
        assert seen() == [
            ["Town"],
            ["Town"],
            ["Place", "Town"],
            [],
            [("y", "Place")],
            [("t", "Town"), ("x", "Town"), ("y", "Town")],
        ]


def test_a_goal_reads_no_facts_that_only_declarations_mention(
    fresh_kb: KnowledgeBase, prolog: PrologSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts below other rules' declarations, aggregates and examples are neither read nor named in hints."""
    library = library_of(
        ROUTES + "given lies_in(Place, Place)\nnever road(Place A, Place B) & road(Place B, Place A)\n"
        'aggregate exits(Place A, Number K) := K = count(Place B: road(Place A, Place B))\n@example road("a", "b")\n'
    )
    read: list[str] = []
    whole = KnowledgeBase.facts
    monkeypatch.setattr(KnowledgeBase, "facts", lambda kb, name: read.append(name) or whole(kb, name))
    theory = Theory(library, fresh_kb)

    assert run_query(theory, "lies_in(X, Y)", session=prolog).rows == []
    assert near_misses(theory, "lies_in(X, Y)") == ["lies_in/2 has no facts."]
    assert run_query(theory, "exits(A, K)", session=prolog).rows == []
    assert dict.fromkeys(read) == dict.fromkeys(["lies_in/2", "lies_in", "exits/2", "road/2"])


def test_goals_that_fetch_end_at_their_limits(routes: Path, prolog: PrologSession) -> None:
    """A limit, a damaged fact and a goal after it: each is told, and the session answers the next goal."""
    library = library_of(ROUTES)
    with KnowledgeBase(routes) as kb:
        with pytest.raises(LimitExceeded, match="inferences"):
            run_query(Theory(library, kb), "reaches(p1, Y)", QueryLimits(inferences=2_000), session=prolog)
        kb.database.conn.execute("UPDATE facts SET arguments = '[\"p7\"' WHERE rowid = 9")
        with pytest.raises(HapaxError, match="was not written by Hapax"):
            run_query(Theory(library, kb), "road(p5, Y)", session=prolog)
        kb.database.conn.execute("DELETE FROM facts WHERE rowid = 9")
        assert run_query(Theory(library, kb), "road(p5, Y)", session=prolog).rows == [("p6",)]


def test_an_explanation_reads_few_facts(routes: Path, prolog: PrologSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """`why` and `why-not` prove over a large predicate without reading all of it."""
    theory_library = library_of(ROUTES)
    monkeypatch.setattr(
        KnowledgeBase, "facts", lambda _, name: pytest.fail("all roads are read") if name == "road/2" else []
    )
    with KnowledgeBase(routes) as kb:
        theory = Theory(theory_library, kb)
        proof = prove(theory, Atom("leads_away", (Constant("p5"), Constant("p6"))), prolog)
        failed = story_text(why_not(theory, "leads_away(p2995, p2996)", prolog))

    assert proof is not None
    assert [child.by for child in proof.children] == [By.FACT, By.NEGATION]
    assert "not reaches" in failed


def test_an_explanation_finds_predicates_that_only_facts_have(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Undeclared names are known, and so is another number of arguments than the rules have under a name."""
    fresh_kb.add_facts([fact("road", "a", "b"), fact("road", "a", "b", 3), fact("river", "a")])
    theory = Theory(library_of(ROUTES), fresh_kb)

    for atom in ("road(a, b)", "road(a, b, 3)", "river(a)"):
        assert "[fact]" in story_text(why(theory, atom, prolog))
    assert fresh_kb.fact_indicators() == ["river/1", "road/2", "road/3"]
    assert fresh_kb.fact_indicators({"road"}) == ["river/1"]
    assert [fresh_kb.fact_count("road/2", most) for most in (0, 1, 5)] == [0, 1, 1]
    with pytest.raises(HapaxError, match="river/2"):
        why(theory, "river(a, b)", prolog)


def test_a_supply_gives_only_its_predicates(routes: Path) -> None:
    """A goal's process that asks for anything else, or for a term that no fact has, gets nothing."""
    with KnowledgeBase(routes) as kb:
        ArgumentIndex(kb).prepare(["road/2"])
        supply = fact_supply.FactSupply(kb, ["road/2"])
        supply.begin()

        assert supply.rows(("road", "p5", "p6")) == "['hapax_row road'(p5, p6)].\nend.\n"
        assert supply.rows(("road", "p5", "p6")) == "end.\n"
        assert supply.rows(("secret", "p5", "p6")) == "end.\n"
