"""Goals over generated facts, as a person types them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hapax.engine.inference.session import LimitExceeded, PrologSession, PrologTerm, QueryLimits
from hapax.engine.inference.theory import QueryResult, Theory, parse_atom, run_query
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Value
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

RULES = """
oracle is_ingredient_in(Ingredient, Dish).
functional was_invented_in(Thing, Year).
@name allergy
is_allergic_to(Person X, Food Allergen A) & falls_under(Ingredient Z, Food Allergen A)
  & is_ingredient_in(Ingredient Z, Dish B)
  -> is_not_able_to_eat(Person X, Dish B).
oracle borders(Place, Place).
borders(Place A, Place B) -> reaches(Place A, Place B).
borders(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C).
"""
FACTS: list[tuple[Value, ...]] = [
    ("is_ingredient_in", "shrimp", "paella"),
    ("is_ingredient_in", "saffron", "paella"),
    ("is_ingredient_in", "crab", "bisque"),
    ("falls_under", "shrimp", "shellfish"),
    ("falls_under", "crab", "shellfish"),
    ("was_invented_in", "telephone", 1876),
    ("was_invented_in", "wheel", -3500),
    ("borders", "a", "b"),
    ("borders", "b", "c"),
    ("borders", "c", "a"),
]


@pytest.fixture(scope="module")
def library() -> Library:
    return parse_library([("f.rules", RULES)])


@pytest.fixture
def kb(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    fresh_kb.add_facts(
        FactRecord(str(name), values, tuple("Thing" for _ in values), Source.MODEL)
        for name, *rest in FACTS
        for values in [tuple(rest)]
    )
    return fresh_kb


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("is_ingredient_in(X, paella)", [("saffron",), ("shrimp",)]),
        ("is_ingredient_in(X, paella), falls_under(X, A)", [("shrimp", "shellfish")]),
        ("is_ingredient_in(X, paella) ; is_ingredient_in(X, bisque)", [("crab",), ("saffron",), ("shrimp",)]),
        ("is_ingredient_in(X, paella), \\+ falls_under(X, _)", [("saffron",)]),
        ("is_ingredient_in(X, paella), not falls_under(X, _)", [("saffron",)]),
        ("findall(X, is_ingredient_in(X, paella), L)", [(PrologTerm("[]", ("shrimp", "saffron")),)]),
        ("aggregate_all(count, is_ingredient_in(_, _), N)", [(3,)]),
        ("aggregate_all(max(Y, T), was_invented_in(T, Y), M)", [(PrologTerm("max", (1876, "telephone")),)]),
        ("aggregate_all(min(Y), was_invented_in(_, Y), M)", [(-3500,)]),
        ("aggregate_all(sum(Y), was_invented_in(_, Y), S)", [(-1624,)]),
        ("setof(X, D^is_ingredient_in(X, D), L)", [(PrologTerm("[]", ("crab", "saffron", "shrimp")),)]),
        ("bagof(X, is_ingredient_in(X, D), L)", [
            ("bisque", PrologTerm("[]", ("crab",))), ("paella", PrologTerm("[]", ("shrimp", "saffron")))]),
        ("was_invented_in(telephone, Y), D is Y - 1800, D > 50", [(1876, 76)]),
        ("was_invented_in(T, Y), Y < 0", [("wheel", -3500)]),
        ("was_invented_in(T, Y), (Y < 0 -> E = before ; E = after)", [("telephone", 1876, "after"), ("wheel", -3500, "before")]),
        ("once(is_ingredient_in(X, paella))", [("shrimp",)]),
        ("falls_under(tofu, A) -> B = 1 ; B = 2 ; B = 3", [(PrologTerm("_"), 2), (PrologTerm("_"), 3)]),
        ("was_invented_in(T, -3500)", [("wheel",)]),
        ("reaches(a, X)", [("a",), ("b",), ("c",)]),
        ("forall(falls_under(X, shellfish), is_ingredient_in(X, _))", [()]),
        ("member(X, [1, b, \"C d\"])", [(1,), ("C d",), ("b",)]),
        ("is_ingredient_in(chalk, X)", []),
        ("is_not_able_to_eat(X, Y)", []),
    ],
)  # fmt: skip
def test_goals(
    prolog: PrologSession, library: Library, kb: KnowledgeBase, goal: str, rows: list[tuple[object, ...]]
) -> None:
    """Conjunction, disjunction, negation, collecting, aggregates, arithmetic and recursion give Prolog's answers."""
    found = run_query(Theory(library, kb), goal, session=prolog).rows

    assert sorted(found, key=str) == sorted(rows, key=str)


def test_assumptions_reason_about_a_person(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Assumptions about a person take part in all rules, and are stored nowhere."""
    before = kb.counts()

    result = run_query(
        Theory(library, kb, ("is_allergic_to(tom, shellfish)",)), "is_not_able_to_eat(tom, X)", session=prolog
    )

    assert result == QueryResult(("X",), [("bisque",), ("paella",)])
    assert kb.counts() == before


def test_who_is_a_question_too(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Generic variables are ordinary variables in goals."""
    theory = Theory(library, kb, ("is_allergic_to(tom, shellfish)", "is_allergic_to('Ann B', saffron)"))

    assert run_query(theory, "is_not_able_to_eat(X, paella)", session=prolog).rows == [("tom",)]


def test_a_query_of_its_own_session(library: Library, kb: KnowledgeBase) -> None:
    """Without a session the query starts and ends its own."""
    assert run_query(Theory(library, kb), "falls_under(crab, shellfish)").holds


@pytest.mark.parametrize(
    "assumption",
    ["is_allergic_to(tom, X)", "is_allergic_to(tom, a), true", "is_unheard_of(tom)", "3", "X", "", "\\+ reaches(a, b)"],
)
def test_faulty_assumptions_are_told(library: Library, assumption: str) -> None:
    """An assumption is one ground atom of a known predicate; everything else is refused with a reason."""
    with pytest.raises(HapaxError):
        parse_atom(assumption, library)


def test_atoms_may_hold_negative_numbers(library: Library) -> None:
    """A year before our era is a number in an atom."""
    assert parse_atom("was_invented_in(wheel, -3500)", library).arguments[1] == Constant(-3500)


def test_powers_are_exact(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """`**` of decimals is exact, and its exponent is written in digits, so that no goal makes a number beyond memory."""
    result = run_query(Theory(library, kb), "K is 1.1 ** 3, 2 ** 10 =:= 1024, L is 10 ** 30", session=prolog)

    assert result.rows == [(Decimal("1.331"), 10**30)]
    for goal in ("K is 2 ** 1001", "K is 2 ** -1", "X = 3, K is 2 ** X", "K is 2 ** 2 ** 2", "K is 2 ** 0.5"):
        with pytest.raises(RulesRejected, match="exponent from 0 to 1000"):
            run_query(Theory(library, kb), goal, session=prolog)


@pytest.mark.parametrize(
    "goal", ["shell(ls)", "call(halt)", "system:halt", "is_unheard_of(X)", "assertz(a)", "is_ingredient_in("]
)
def test_other_goals_are_refused(prolog: PrologSession, library: Library, kb: KnowledgeBase, goal: str) -> None:
    """The grammar and its allow-list refuse a goal before Prolog sees it."""
    with pytest.raises(RulesRejected):
        run_query(Theory(library, kb), goal, session=prolog)


def test_limits_say_what_raises_them(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A goal over its limits ends with the option that raises it; answers over theirs are cut."""
    with pytest.raises(LimitExceeded, match="--inferences"):
        run_query(
            Theory(library, kb),
            "between(1, 100000000, X), X < 0",
            limits=QueryLimits(inferences=10_000),
            session=prolog,
        )
    assert run_query(Theory(library, kb), "between(1, 9, X)", limits=QueryLimits(answers=5), session=prolog).truncated


def test_answers_come_in_order(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Rows are sorted, numbers first, so that the same goal prints the same table each time."""
    assert run_query(Theory(library, kb), "member(X, [b, 3, a, 2.5])", session=prolog).rows[1:] == [
        (3,),
        ("a",),
        ("b",),
    ]


def test_facts_of_rule_files_count(prolog: PrologSession, fresh_kb: KnowledgeBase) -> None:
    """`fact` lines are answered like stored facts."""
    library = parse_library([("f.rules", 'given was_born_in(Person, Year).\nfact was_born_in("Ada", 1815).')])

    assert run_query(Theory(library, fresh_kb), 'was_born_in("Ada", Y)', session=prolog).rows == [(1815,)]
