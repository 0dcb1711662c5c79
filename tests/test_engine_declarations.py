"""The meaning of declarations: facts that follow, negations that need a sure no, and conflicts with their decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.explain import story_text, why_not
from hapax.engine.inference.bulk_derivation import derive_all, read_statements
from hapax.engine.inference.conflicts import conflicts, conflicts_around, fact_text, new_conflicts, settlement
from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.inference.program import build_program
from hapax.engine.inference.proof import By, proof_from_json
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.engine.kb_checks import broken_declarations
from hapax.engine.search.gates import CONSISTENCY, gates_in_order
from hapax.engine.search.job import SearchJob
from hapax.engine.search.oracle import Oracle, OracleSettings
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.records import AtomPattern, DenialRecord, FactRecord, Question, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.prompts import conflict_question, stated_claim, without_conflict
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.scripted import ScriptedModel

Pair = tuple[str, str]
NODES = "abcd"
pairs = st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=6)


def library_of(*lines: str) -> Library:
    return parse_library([("f.rules", "\n".join(lines))])


def fact(predicate: str, *values: str, probability: float = 0.9, source: Source = Source.MODEL) -> FactRecord:
    return FactRecord(predicate, values, tuple("Node" for _ in values), source, probability)


def closure(known: set[Pair], symmetric: bool, transitive: bool) -> set[Pair]:
    """The pairs that follow, by repeated steps: the reference."""
    while True:
        more = {(b, a) for a, b in known} if symmetric else set[Pair]()
        if transitive:
            more |= {(a, d) for (a, b), (c, d) in product(known, known) if b == c}
        if more <= known:
            return known
        known = known | more


def checked_steps(steps: Sequence[dict[str, object]], edges: set[Pair]) -> None:
    """Every declared step follows from its premises, and every leaf is a fact."""
    for step in steps:
        goal = step["goal"]["arguments"] if "predicate" in step["goal"] else None  # type: ignore[index,operator]
        below = [steps[number]["goal"]["arguments"] for number in step.get("premises", ())]  # type: ignore[attr-defined,index]
        if step["by"] == "declaration" and str(step["rule"]).startswith("symmetric"):
            assert below == [goal[::-1]]
        elif step["by"] == "declaration":
            assert [below[0][0], below[1][1]] == goal
            assert below[0][1] == below[1][0]
        elif step["by"] == "fact":
            assert tuple(goal) in edges


@settings(max_examples=cases(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=pairs, blocked=pairs, declared=st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_sql_and_prolog_give_what_the_declarations_say(
    edges: set[Pair], blocked: set[Pair], declared: tuple[bool, bool, bool], prolog: PrologSession
) -> None:
    """Derived statements, queries and an independent closure agree, and each proof names declarations that hold."""
    symmetric, transitive, by_first = declared
    library = library_of(
        "given near(Node, Node)\noracle blocked(Node, Node)",
        "symmetric near/2" if symmetric else "",
        "transitive near/2" if transitive else "",
        f"closed blocked/2{' by 1' if by_first else ''}",
        "@name go\n@generic none\nnear(Node A, Node B) & not blocked(Node A, Node B) -> goes(Node A, Node B)",
    )
    near = closure(edges, symmetric, transitive)
    covered = {first for first, _ in blocked}
    expected = {pair for pair in near - blocked if not by_first or pair[0] in covered}
    with KnowledgeBase() as kb:
        kb.add_facts([*(fact("near", *pair) for pair in edges), *(fact("blocked", *pair) for pair in blocked)])
        found = {}
        for engine in ("sql", "prolog"):
            derive_all(kb, library, library.rules, engine, prolog)  # type: ignore[arg-type]
            found[engine] = list(read_statements(kb, library, library.rules[0], prolog))
        answers = run_query(Theory(library, kb), "goes(A, B)", session=prolog)

    assert {tuple(row) for row in answers.rows} == expected
    for engine, statements in found.items():
        assert {tuple(value for _, value in item.substitution) for item in statements} == expected, engine
        for statement in statements:
            checked_steps(statement.proof["steps"], edges)
    assert sorted(map(repr, found["sql"])) == sorted(map(repr, found["prolog"]))


def test_a_proof_names_the_declaration(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """A fact that follows by symmetry is proved by the declaration, from the fact that is stored."""
    library = library_of(
        "given near(Node, Node)\nsymmetric near/2",
        "@name go\n@generic none\nnear(Node A, Node B) -> goes(Node A, Node B)",
    )
    fresh_kb.add_facts([fact("near", "a", "b")])
    derive_all(fresh_kb, library, library.rules, session=prolog)

    statements = list(read_statements(fresh_kb, library, library.rules[0], prolog))
    proofs = [proof_from_json(item.proof).children[0] for item in statements]
    assert {(str(proof.goal), proof.by, proof.rule) for proof in proofs} == {
        ('near("a", "b")', By.FACT, None),
        ('near("b", "a")', By.DECLARATION, "symmetric near/2"),
    }


OPEN = (
    "oracle excludes(Diet, Food)\nfunctional colour(Food, Colour)\ngiven food(Food)",
    '@name eat\n@generic none\nfood(Food F) & not excludes("kosher", Food F) -> may_eat(Food F)',
    '@name red\n@generic none\nfood(Food F) & not colour(Food F, "green") -> is_not_green(Food F)',
)


def test_absence_denies_no_oracle_predicate(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """A negation over an oracle predicate needs a critic's sure no, or another value of a functional predicate."""
    library = library_of(*OPEN)
    fresh_kb.add_facts([fact("food", name) for name in ("shrimp", "carrot", "lime")])
    fresh_kb.add_facts([fact("colour", "carrot", "orange"), fact("colour", "lime", "green")])
    fresh_kb.add_denials([DenialRecord("excludes", ("kosher", "carrot"), 0.01)])

    answers = [
        run_query(Theory(library, fresh_kb), goal, session=prolog).rows for goal in ("may_eat(F)", "is_not_green(F)")
    ]
    report = derive_all(fresh_kb, library, library.rules, session=prolog)
    proofs = [item.proof for item in read_statements(fresh_kb, library, library.rule("eat"), prolog)]

    assert answers == [[("carrot",)], [("carrot",)]]
    assert [(rule.rule, rule.engine) for rule in report.rules] == [("eat", "prolog"), ("red", "prolog")]
    assert [step["by"] for step in proofs[0]["steps"]] == ["rule", "fact", "denial"]


def test_denials_that_no_goal_can_use_are_no_clauses(fresh_kb: KnowledgeBase) -> None:
    """Only denials of open predicates that Prolog can hold are in the program."""
    library = library_of(*OPEN)
    fresh_kb.add_denials(
        DenialRecord(name, values, 0.01)
        for name, values in (
            ("excludes", ("kosher", "carrot")),
            ("excludes", ("kosher", "nul \0")),
            ("food", ("chalk",)),
            ("eats", ("ann", "chalk")),
        )
    )
    program = build_program(library, [], denied=fresh_kb.denials())

    clauses = [line for line in program.splitlines() if re.search("carrot|chalk|nul ", line)]
    assert clauses == ["'hapax_denied excludes'(kosher, carrot)."]


def test_a_new_denial_makes_derived_statements_old(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Statements that a denial may add to are derived again before they are read."""
    library = library_of(*OPEN)
    fresh_kb.add_facts([fact("food", "carrot")])
    derive_all(fresh_kb, library, library.rules, session=prolog)
    fresh_kb.add_denials([DenialRecord("excludes", ("kosher", "carrot"), 0.01)])

    with pytest.raises(HapaxError, match="have changed"):
        list(read_statements(fresh_kb, library, library.rule("eat"), prolog))


def found_conflicts(prolog: PrologSession, library: Library, *facts: FactRecord) -> list[tuple[str, list[str]]]:
    return [(item.declaration, list(map(fact_text, item.facts))) for item in conflicts(prolog, library, facts)]


def test_each_declaration_opens_its_conflicts(prolog: PrologSession) -> None:
    """Conflicts name the declaration and the smallest set of facts, down to those behind derived ones."""
    library = library_of(
        "oracle near(Node, Node)\nirreflexive near/2\noracle above(Node, Node)\nasymmetric above/2\ntransitive above/2",
        "oracle born(Node, Year)\noracle died(Node, Year)",
        "never born(Node N, Year A) & died(Node N, Year B) & B < A",
        "disjoint Node, Year Name",
    )
    facts = [
        fact("near", "a", "a"), fact("near", "a", "b"), fact("above", "a", "b"), fact("above", "b", "c"),
        fact("above", "c", "a"), FactRecord("born", ("a", 1900), ("Node", "Year"), Source.MODEL, 0.9),
        FactRecord("died", ("a", 1850), ("Node", "Year"), Source.MODEL, 0.9),
        FactRecord("died", ("b", 1850), ("Node", "Year"), Source.MODEL, 0.9),
        FactRecord("called", ("a",), ("Year Name",), Source.MODEL, 0.9),
    ]  # fmt: skip

    found = found_conflicts(prolog, library, *facts)
    by_declaration = dict(found)
    assert by_declaration["irreflexive near/2"] == ['near("a", "a")']
    assert by_declaration["asymmetric above/2"] == ['above("a", "b")', 'above("b", "c")', 'above("c", "a")']
    assert by_declaration["never born(Node N, Year A) & died(Node N, Year B) & B < A"] == [
        *('born("a", 1900)', 'died("a", 1850)')
    ]
    assert 'called("a")' in by_declaration["disjoint Node, Year Name"]
    assert [len(names) for _, names in found] == sorted(len(names) for _, names in found)


def test_facts_without_types_have_those_that_are_declared(prolog: PrologSession, fresh_kb: KnowledgeBase) -> None:
    """Facts of rule files, and those imported before there were rules, break disjoint types like all others."""
    library = library_of(
        "disjoint Animal, Plant\ngiven lives_in(Animal, Place)\ngiven grows_in(Plant, Place)",
        'fact lives_in("rose", "Oslo")',
    )
    imported = FactRecord("lives_in", ("ivy", "Oslo"), (), Source.GIVEN)
    arriving = [FactRecord("grows_in", (name, "Oslo"), (), Source.GIVEN) for name in ("rose", "ivy", "oak")]
    expected = [f'grows_in("{name}", "Oslo") and lives_in("{name}", "Oslo")' for name in ("ivy", "rose")]
    fresh_kb.add_facts([imported])

    assert [item.text for item in new_conflicts(fresh_kb, library, arriving, prolog)] == expected

    known = KnownFacts(fresh_kb, library)
    assert [item.text for item in conflicts_around(prolog, library, arriving, known)] == expected


@pytest.mark.parametrize(
    ("scores", "given", "lost"),
    [
        ((0.9, 0.6), False, ['above("b", "a")']),
        ((0.6, 0.9), False, ['above("a", "b")']),
        ((0.9, 0.9), False, ['above("a", "b")', 'above("b", "a")']),
        ((0.1, 0.9), True, ['above("b", "a")']),
    ],
)
def test_the_least_sure_loses(scores: tuple[float, float], given: bool, lost: list[str], prolog: PrologSession) -> None:
    """Of the facts of a conflict the one with the lowest P(yes) loses, ties together, a given fact never."""
    library = library_of("oracle above(Node, Node)\nasymmetric above/2")
    first = fact("above", "a", "b", probability=scores[0], source=Source.GIVEN if given else Source.MODEL)
    second = fact("above", "b", "a", probability=scores[1])

    (conflict,) = conflicts(prolog, library, [first, second])
    assert list(map(fact_text, settlement(conflict, {}).lost)) == lost


# --- the consistency gate of a search ---------------------------------------------------------------------------------

BORDERS = """
oracle borders(Country, Country): "[1] borders [2]" / "[1] does not border [2]" / "does [1] border [2]?".
oracle lies_above(Country, Country): "[1] lies above [2]" / "[1] does not lie above [2]" / "does [1] lie above [2]?".
oracle feeds(Country, Country): "[1] feeds [2]" / "[1] does not feed [2]" / "does [1] feed [2]?".
irreflexive borders/2
symmetric borders/2
asymmetric lies_above/2
never feeds(Country A, Country B) & feeds(Country B, Country A)
@name trip
lives_in(Person X, Country A) & borders(Country A, Country B) -> can_walk_to(Person X, Country B).
@name climb
lives_in(Person X, Country A) & lies_above(Country B, Country A) -> must_climb_to(Person X, Country B).
@name food
lives_in(Person X, Country A) & feeds(Country B, Country A) -> eats_food_of(Person X, Country B).
"""


IRREGULAR = ("irr", "sym", "asy", "nev")
"""Beginnings of the lines of declarations in BORDERS."""


def asked_about(
    answers: dict[str, list[str]], scores: dict[str, float], kb: KnowledgeBase, rules: str = BORDERS, **settings: object
) -> Oracle:
    """An oracle whose model answers questions by their words; the critic says .9 to all other claims."""
    script = {"generate": answers, "critic": scores, "likelihood": {}, "defaults": {"critic": 0.9, "likelihood": -10}}
    model = ScriptedModel(script)
    library = parse_library([("f.rules", rules)])
    return Oracle(kb, library, Models(model, model, model, model), OracleSettings(**settings), "run")  # type: ignore[arg-type]


def question(predicate: str, first: str | None, second: str | None) -> Question:
    return Question((AtomPattern(predicate, (first, second)),), "Country")


def test_a_country_never_borders_itself(fresh_kb: KnowledgeBase) -> None:
    """A reflexive fact of an irreflexive predicate is rejected by the consistency gate, however sure the critic is."""
    oracle = asked_about({"[B]": ["Russia", "Norway"]}, {"Russia borders Russia.": 1.0}, fresh_kb)
    asked = question("borders", "Russia", None)

    assert oracle.answer([asked]) == {asked: ["Norway"]}
    (conflict,) = fresh_kb.conflicts("run")
    assert (conflict.declaration, conflict.lost) == ("irreflexive borders/2", ('borders("Russia", "Russia")',))
    rejected = [item for item in fresh_kb.decisions(run_id="run") if item.gate == "consistency"]
    assert [(item.accepted, item.reason) for item in rejected] == [(False, 'it breaks "irreflexive borders/2" alone')]
    library = parse_library([("f.rules", BORDERS)])
    told = story_text(why_not(Theory(library, fresh_kb), 'borders("Russia", "Russia")'))
    assert 'consistency gate: rejected: it breaks "irreflexive borders/2" alone' in told


@pytest.mark.parametrize(("score", "kept"), [(0.95, ("b", "a")), (0.86, ("a", "b"))])
def test_a_later_fact_retracts_a_less_sure_one(score: float, kept: Pair, fresh_kb: KnowledgeBase) -> None:
    """Of two facts that exclude each other the surer one stays, whichever came first."""
    oracle = asked_about(
        {"a lies above": ["b"], "b lies above": ["a"]}, {"A lies above b.": 0.9, "B lies above a.": score}, fresh_kb
    )
    first, second = question("lies_above", "a", None), question("lies_above", "b", None)

    assert oracle.answer([first]) == {first: ["b"]}
    oracle.answer([second])
    assert [item.arguments for item in fresh_kb.facts("lies_above")] == [kept]


@pytest.mark.parametrize(
    ("predicate", "declaration"),
    [
        ("lies_above", "asymmetric lies_above/2"),
        ("feeds", "never feeds(Country A, Country B) & feeds(Country B, Country A)"),
    ],
)
def test_the_question_about_a_conflict_is_its_own(
    predicate: str, declaration: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """Facts that were surer alone lose if the critic is less sure of them beside those that they contradict."""
    words = predicate.replace("_", " ")
    claims = [f"A {words} b.", f"B {words} a."]
    scores = dict(zip(claims, (0.9, 0.86), strict=True))
    scores |= {conflict_question(claim, claims): score for claim, score in zip(claims, (0.3, 0.8), strict=True)}
    oracle = asked_about({f"a {words}": ["b"], f"b {words}": ["a"]}, scores, fresh_kb)
    oracle.consistency.session = prolog
    asked = [question(predicate, name, None) for name in ("a", "b")]

    assert oracle.answer(asked) == {asked[0]: [], asked[1]: ["a"]}
    (conflict,) = fresh_kb.conflicts("run")
    assert (conflict.declaration, conflict.lost) == (declaration, (f'{predicate}("a", "b")',))
    assert "P(true) 0.300 is the lowest" in conflict.reason
    assert [stated_claim(text) for text in map(without_conflict, scores)] == [*claims, *claims]


def test_a_conflict_that_another_settles_is_not_asked_about(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Of conflicts that share a fact the smallest is judged first, and its loser settles the larger ones unasked."""
    round_trip = "never feeds(Country A, Country B) & feeds(Country B, Country C) & feeds(Country C, Country A)"
    smaller = ["A feeds b.", "B feeds a."]
    scores = {"C feeds a.": 0.9, conflict_question(smaller[0], smaller): 0.2}
    answers = {"a feeds": ["b"], "b feeds": ["a", "c"], "c feeds": ["a"]}
    oracle = asked_about(answers, scores, fresh_kb, rules=f"{BORDERS}{round_trip}\n")
    oracle.consistency.session = prolog
    asked = [question("feeds", name, None) for name in "abc"]

    assert oracle.answer(asked) == {asked[0]: [], asked[1]: ["a", "c"], asked[2]: ["a"]}
    judged = [str(call.request["claim"]) for call in fresh_kb.calls().values() if "claim" in call.request]
    together = [claim for claim in judged if without_conflict(claim) != claim]
    assert sorted(together) == sorted(conflict_question(claim, smaller) for claim in smaller)


def test_a_given_fact_never_loses(fresh_kb: KnowledgeBase) -> None:
    """A model's fact that contradicts a given one is rejected even if the critic is sure of it."""
    fresh_kb.add_facts([fact("lies_above", "a", "b", source=Source.GIVEN)])
    oracle = asked_about({"b lies above": ["a", "c"]}, {"B lies above a.": 1.0}, fresh_kb)
    asked = question("lies_above", "b", None)

    assert oracle.answer([asked]) == {asked: ["c"]}


def test_compat_has_no_consistency_gate() -> None:
    """LINK's two behaviours know no declarations."""
    assert [CONSISTENCY in gates_in_order(compat) for compat in (None, "paper", "released")] == [True, False, False]


@pytest.mark.parametrize(
    ("compat", "declared", "counted"), [(None, True, True), (None, False, False), ("paper", True, False)]
)
def test_a_report_counts_conflicts_where_facts_can_have_some(
    compat: str | None, declared: bool, counted: bool, fresh_kb: KnowledgeBase
) -> None:
    """Without a declaration that facts can break, or without the gate, a search has no number of conflicts, not even 0."""
    rules = BORDERS if declared else "".join(line + "\n" for line in BORDERS.splitlines() if line[:3] not in IRREGULAR)
    model = ScriptedModel({"defaults": {"critic": 0.9, "likelihood": -10, "generate": ["Norway", "Peru"]}})
    library = parse_library([("f.rules", rules)])
    chosen = SearchSettings(compat=compat)  # type: ignore[arg-type]
    report = search(SearchJob(library, library.rules, fresh_kb, Models(model, model, model, model), chosen))

    assert (report.conflicts is not None) == counted


def test_why_not_names_the_unknown_fact(fresh_kb: KnowledgeBase) -> None:
    """A negation that fails because its atom is unknown says so, with both remedies."""
    library = library_of(*OPEN)
    fresh_kb.add_facts([fact("food", "shrimp")])
    told = story_text(why_not(Theory(library, fresh_kb), "may_eat(shrimp)"))

    assert 'excludes("kosher", "shrimp") is unknown: no critic denied it' in told
    assert "closed excludes/2" in told


def test_conflicts_of_stored_and_of_new_facts_are_listed(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """`check --db` lists the conflicts of an old knowledge base; an import asks only for those that it would bring."""
    library = parse_library([("f.rules", BORDERS)])
    fresh_kb.add_facts([fact("borders", "Russia", "Russia"), fact("lies_above", "a", "b")])
    findings = list(broken_declarations(library, fresh_kb, prolog))
    arriving = new_conflicts(fresh_kb, library, [fact("lies_above", "b", "a"), fact("borders", "a", "b")], prolog)

    assert [item.diagnostic.code for item in findings] == ["HPX403"]
    assert 'borders("Russia", "Russia") breaks "irreflexive borders/2"' in str(findings[0])
    assert [item.text for item in arriving] == ['lies_above("a", "b") and lies_above("b", "a")']


def test_a_fact_that_loses_while_a_goal_asks_is_no_answer(fresh_kb: KnowledgeBase) -> None:
    """The answers of `query --ask` rest on the facts that stand in the end, not on those that a later round refuted."""
    model = ScriptedModel({"defaults": {"critic": 0.9, "likelihood": -10, "generate": ["b"]}})
    library = parse_library([("f.rules", BORDERS)])
    models = Models(model, model, model, model)
    goal = "lies_above(a, X), lies_above(X, a)"

    asked = hapax.query(goal, library, fresh_kb, models=models)
    lost = hapax.query(goal, library, fresh_kb)

    assert (asked.rows, lost.rows) == ([], [])
    assert [item.reason for item in fresh_kb.withdrawals()]
