"""Facts of a model that break declarations: in a search and with `query --ask` the least sure of them loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run

import hapax

BORDERS = """
oracle borders(Country, Country): "[1] borders [2]" / "[1] does not border [2]" / "does [1] border [2]?"
oracle lies_above(Country, Country): "[1] lies above [2]" / "[1] does not lie above [2]" / "does [1] lie above [2]?"
oracle feeds(Country, Country): "[1] feeds [2]" / "[1] does not feed [2]" / "does [1] feed [2]?"
irreflexive borders/2
symmetric borders/2
asymmetric lies_above/2
never feeds(Country A, Country B) & feeds(Country B, Country A)
"""
RULES = hapax.parse_rules(BORDERS)


def models(folder: Path, generate: dict[str, list[str]], critic: dict[str, float], rules: hapax.Library = RULES) -> Any:
    """A model that answers by the words of a question; the critic says .9 to all other claims."""
    script = {"generate": generate, "critic": critic, "defaults": {"critic": 0.9, "generate": [], "likelihood": -10}}
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    return hapax.open_models(f"scripted:{folder / 'script.json'}", library=rules)


def facts(kb: hapax.KnowledgeBase, predicate: str) -> set[tuple[Any, ...]]:
    return {fact.arguments for fact in kb.facts() if fact.predicate == predicate}


def test_a_country_never_borders_itself(tmp_path: Path) -> None:
    """However sure the critic is; `why-not` names the gate and the declaration."""
    asked = models(tmp_path, {"Russia borders": ["Russia", "Norway"]}, {"Russia borders Russia.": 1.0})
    with hapax.KnowledgeBase() as kb:
        answers = hapax.query("borders('Russia', X)", RULES, kb, models=asked)
        reason = str(hapax.why_not("borders('Russia', 'Russia')", RULES, kb))

        assert [row["X"] for row in answers] == ["Norway"]
        assert "irreflexive borders/2" in reason
        assert "consistency" in reason
        assert hapax.query("borders('Norway', X)", RULES, kb).rows == [("Russia",)]


@pytest.mark.parametrize(
    ("scores", "kept"),
    [((0.9, 0.95), {("b", "a")}), ((0.9, 0.86), {("a", "b")}), ((0.9, 0.9), set())],
    ids=["second", "first", "neither"],
)
def test_of_facts_that_exclude_each_other_the_surer_stays(
    tmp_path: Path, scores: tuple[float, float], kept: set[tuple[str, str]]
) -> None:
    """Facts that tie lose together, and the goal is answered by what stands in the end."""
    critic = dict(zip(("A lies above b.", "B lies above a."), scores, strict=True))
    asked = models(tmp_path, {"a lies above": ["b"], "b lies above": ["a"]}, critic)
    with hapax.KnowledgeBase() as kb:
        answers = hapax.query("member(X, [a, b]), lies_above(X, Y)", RULES, kb, models=asked)

        assert facts(kb, "lies_above") == kept
        assert set(answers.rows) == kept


def test_a_given_fact_never_loses(tmp_path: Path) -> None:
    """A model's fact that contradicts it is rejected even if the critic is sure."""
    asked = models(tmp_path, {"b lies above": ["a", "c"]}, {"B lies above a.": 1.0})
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "lies_above", [("a", "b")], RULES)

        assert hapax.query("lies_above(b, X)", RULES, kb, models=asked).rows == [("c",)]
        assert facts(kb, "lies_above") == {("a", "b"), ("b", "c")}


def test_a_fact_that_loses_while_a_goal_asks_is_no_answer(tmp_path: Path) -> None:
    """Nor is it afterwards; the withdrawal has its reason."""
    asked = models(tmp_path, {"lies above": ["b"], "b lies above": ["a"]}, {})
    with hapax.KnowledgeBase() as kb:
        goal = "lies_above(a, X), lies_above(X, a)"

        assert hapax.query(goal, RULES, kb, models=asked).rows == []
        assert hapax.query(goal, RULES, kb).rows == []


def test_only_a_sure_no_denies_what_a_model_is_asked(tmp_path: Path) -> None:
    """A critic's denial, or another value of a functional predicate, lets `not` hold; an absent fact does not."""
    rules = hapax.parse_rules("""
oracle excludes(Diet, Food): "[1] excludes [2]" / "[1] does not exclude [2]" / "does [1] exclude [2]?"
given is_food(Food)
@generic none
is_food(Food F) & not excludes("kosher", Food F) -> may_eat(Food F)
""")
    asked = models(
        tmp_path, {"kosher excludes": ["shrimp", "carrot"]}, {"Kosher excludes carrot.": 0.01, "Kosher excludes shrimp.": 0.95}, rules
    )  # fmt: skip
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_food", [("shrimp",), ("carrot",), ("lime",)], rules)
        before = hapax.query("may_eat(F)", rules, kb).rows
        hapax.derive(rules, kb)
        hapax.query("excludes(kosher, F)", rules, kb, models=asked)

        assert before == []
        assert hapax.query("may_eat(F)", rules, kb).rows == [("carrot",)]
        assert [statement.text for statement in hapax.derive(rules, kb).statements] == [
            "If carrot is food, then carrot may eat."
        ]


SAME_AS_RULES = """
given lies_in(City, Country)
given is_in_union(Country, Union)
given same_as(Country, Country)
functional has_population(Country, Number): "[1] has [2] millions"
@generic none
lies_in(City A, Country C) & lies_in(City B, C) & A \\= B -> are_in_one_country(A, B)
@generic none
lies_in(City A, Country C) & not is_in_union(C, "EU") -> is_outside(A)
@generic none
lies_in(City A, "France") -> is_french(A)
aggregate cities(Country C, Number N) := N = count(City A: lies_in(A, C))
aggregate countries(Number N) := N = count(Country C: lies_in(City A, C))
never lies_in(City A, Country C) & is_in_union(C, A)
"""
CITIES = [("lyon", "France"), ("nice", "French Republic"), ("paris", "FR"), ("bern", "Switzerland")]
SAME = [("France", "French Republic"), ("FR", "French Republic")]


@pytest.fixture(params=["asked", "derived"])
def program(request: pytest.FixtureRequest) -> hapax.Program:
    """The rules with facts, whose statements are derived or not."""
    rules, kb = hapax.parse_rules(SAME_AS_RULES), hapax.KnowledgeBase()
    hapax.add_facts(kb, "lies_in", CITIES, rules)
    hapax.add_facts(kb, "is_in_union", [("French Republic", "EU")], rules)
    hapax.add_facts(kb, "same_as", SAME, rules)
    if request.param == "derived":
        hapax.derive(rules, kb)
    return hapax.Program(rules, kb)


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("are_in_one_country(lyon, B)", {("nice",), ("paris",)}),
        ("is_outside(A)", {("bern",)}),
        ("is_french(A)", {("lyon",), ("nice",), ("paris",)}),
        ("cities(C, N)", {("FR", 3), ("Switzerland", 1)}),
        ("cities('France', N)", {(3,)}),
        ("countries(N)", {(2,)}),
        ("lies_in(A, 'French Republic')", {("lyon",), ("nice",), ("paris",)}),
        ("findall(A, lies_in(A, 'France'), L), length(L, N)", {(("lyon", "nice", "paris"), 3)}),
        ("same_as('FR', X)", {("FR",), ("France",), ("French Republic",)}),
        ("lies_in(nice, C), same_as(C, X), X \\= C", {("FR", "France"), ("FR", "French Republic")}),
        ("same_as('France', 'FR'), not same_as('France', 'Switzerland')", {()}),
    ],
)
def test_rules_and_goals_see_one_thing(program: hapax.Program, goal: str, rows: set[tuple[object, ...]]) -> None:
    """Joins, negation, constants, counts, lists; the name that they see is the first of all."""
    found = program.query(goal)

    assert {tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row) for row in found.rows} == rows


def test_the_proof_shows_facts_as_written_and_why_the_names_are_one(program: hapax.Program) -> None:
    """Each equality by the facts that state it, also where it takes two."""
    proof = str(program.why('are_in_one_country("lyon", "paris")'))

    assert 'lies_in("lyon", "France")  [given]' in proof
    assert 'same_as("France", "FR")  [by declaration transitive same_as/2]' in proof
    assert 'same_as("FR", "French Republic")  [given]' in proof
    assert 'lies_in("lyon", "French Republic")  [by declaration same_as/2]' in str(
        program.why('lies_in("lyon", "French Republic")')
    )
    assert 'is_in_union("French Republic", "EU")  [given]' in str(program.why_not('is_outside("paris")'))


def test_a_withdrawn_equality_is_undone(program: hapax.Program) -> None:
    """With what followed from it."""
    hapax.retract(["same_as('FR', 'French Republic')"], program.rules, program.kb, reason="another state")

    assert set(program.query("cities(C, N)").rows) == {("FR", 1), ("France", 2), ("Switzerland", 1)}
    assert set(program.query("is_outside(A)").rows) == {("bern",), ("paris",)}
    hapax.derive(program.rules, program.kb)
    assert set(program.query("is_outside(A)").rows) == {("bern",), ("paris",)}


def test_an_equality_that_comes_later_counts(program: hapax.Program) -> None:
    """Stored conclusions of before do not."""
    hapax.add_facts(program.kb, "same_as", [("Switzerland", "FR")], program.rules)

    assert set(program.query("cities(C, N)").rows) == {("FR", 4)}
    assert "bern" in {row["B"] for row in program.query("are_in_one_country(lyon, B)")}


def test_an_assumed_equality_counts_for_one_goal(program: hapax.Program) -> None:
    """And the next goal is asked without it."""
    assert program.query("countries(N)", assume="same_as('Switzerland', 'FR')").rows == [(1,)]
    assert program.query("countries(N)").rows == [(2,)]


def test_declarations_see_one_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values of a functional predicate, a text of disjoint types and a forbidden premise, under two names each."""
    monkeypatch.chdir(tmp_path)
    Path("lands.rules").write_text(SAME_AS_RULES + "given flows_in(River, Country)\ndisjoint River, Country\n", "utf-8")
    with hapax.KnowledgeBase("lands.db") as kb:
        rules = hapax.load_rules("lands.rules")
        hapax.add_facts(kb, "has_population", [("France", 68), ("FR", 67)], rules)
        hapax.add_facts(kb, "flows_in", [("Gallia", "Switzerland")], rules)
        hapax.add_facts(kb, "lies_in", [("Rome", "FR")], rules)
        hapax.add_facts(kb, "is_in_union", [("French Republic", "Rome")], rules)
        assert "HPX402" not in invoke("check", "lands.rules", "--db", "lands.db").stdout
        # With all rules, the rows would be refused.
        declared = hapax.parse_rules("given same_as(Country, Country)")
        hapax.add_facts(kb, "same_as", [*SAME, ("Gallia", "FR")], declared)

    checked = invoke("check", "lands.rules", "--db", "lands.db").stdout

    assert 'has 2 values: has_population("FR", 67), has_population("France", 68)' in checked
    assert '"disjoint River, Country"' in checked
    assert '"never lies_in' in checked


def test_statements_are_exported_and_verified_with_their_equalities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proof on disk names the facts as they are written."""
    monkeypatch.chdir(tmp_path)
    Path("lands.rules").write_text(SAME_AS_RULES.replace("C)\n@", "C) & same_as(C, D) & lies_in(E, D)\n@"), "utf-8")
    with hapax.KnowledgeBase("lands.db") as kb:
        rules = hapax.load_rules("lands.rules")
        hapax.add_facts(kb, "lies_in", CITIES, rules)
        hapax.add_facts(kb, "same_as", SAME, rules)
    invoke("derive", "lands.rules", "--db", "lands.db")

    exported = invoke("export", "--statements", "--db", "lands.db", "--rules", "lands.rules").stdout

    assert '"arguments": ["lyon", "France"]}, "by": "given"' in exported
    assert '"arguments": ["lyon", "FR"]}, "by": "given"' not in exported
    assert '"rule": "transitive same_as/2"' in exported
    run("kb", "verify", "--db", "lands.db")


LOANS = """
same_as("George Orwell", "Eric Blair").
loan(1, ivo, "Eric Blair"). loan(2, bob, "George Orwell").
loan(I, M, "George Orwell") -> reads(M).
loan(I, M, A) -> wrote(A, I).
wrote("George Orwell", I) -> is_old(I).
"""


def test_statements_of_a_rule_that_has_another_name_have_proofs(tmp_path: Path) -> None:
    """A rule may have any name of an entity, of which the base sees the first."""
    rules, database = tmp_path / "loans.rules", tmp_path / "loans.db"
    rules.write_text(LOANS, "utf-8")
    run("derive", rules, "--db", database)

    exported = run("export", "--statements", "--db", database).stdout

    assert [exported.count(f'"conclusion": "{who}') for who in ("ivo", "bob", "1", "2")] == [1, 1, 1, 1]


RECURSIVE = """
is_led_by(a, p). is_led_by(b, q). is_led_by(p, z). is_led_by(q, z). is_kind(a).
is_led_by(A, X) & is_led_by(B, X) & A \\= B -> same_as(A, B)
"""


def test_rules_conclude_equality_over_equality() -> None:
    """As p and q are led by one, a and b are, too, and each is the other."""
    program = hapax.program(RECURSIVE)

    assert set(program.query("same_as(a, X)").rows) == {("a",), ("b",)}
    assert program.query("is_kind(b)").holds
    proof = str(program.why("is_kind(b)"))
    assert 'same_as("a", "b")  [by rule rule1]' in proof
    assert 'same_as("q", "p")  [by rule rule1]' in proof or 'same_as("p", "q")  [by rule rule1]' in proof


@pytest.mark.parametrize(
    ("premise", "cause"),
    [
        ("p(A, X) & p(B, X) & not differs(A, B)", "differs/2"),
        ("p(A, X) & p(B, X) & count_of(A, 2)", "aggregate"),
        ("p(A, X) & p(B, Y) & X \\= Y", "same_as/2 <- same_as/2"),
        ("q(A) & q(B)", "q/1"),
    ],
)
def test_equality_that_depends_on_what_it_joins_is_refused(premise: str, cause: str) -> None:
    """A negation, an aggregate or an inequality below it has no value before the names are known."""
    program = hapax.program(
        "p(a, b). p(c, b). differs(a, c). r(a)."
        "\naggregate count_of(A, Number N) := N = count(X: p(A, X))"
        f"\np(A, X) & not r(X) -> q(A)\n{premise} -> same_as(A, B)"
    )

    with pytest.raises(hapax.HapaxError, match=cause) as refused:
        program.query("p(a, X)")

    assert "as every predicate has the names that same_as/2 joins" in str(refused.value)


def test_what_same_as_cannot_do_is_said() -> None:
    """Numbers, a premise that would list names, probabilities, and programs for other engines."""
    rules = hapax.parse_rules("given same_as(Town, Town)\ngiven p(Town)\n@generic none\np(A) -> q(A)")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "p", [("a",), ("b",)], rules)
        hapax.add_facts(kb, "same_as", [("a", "b")], rules)
        options = hapax.QueryOptions(probability=hapax.ProbabilityOptions())
        with pytest.raises(hapax.HapaxError, match="no probability follows from joined names"):
            hapax.query("q(X)", rules, kb, options=options)
    with pytest.raises(hapax.HapaxError, match="which no prolog program does"):
        hapax.compile_rules(rules)
    with pytest.raises(hapax.HapaxError, match=r"same_as\(1, 2\) is about a number"):
        hapax.program("same_as(1, 2). p(1).").query("p(X)")
    assert "nothing gives A a value" in str(hapax.check_rules(hapax.parse_rules("same_as(A, B) -> alias(A, B)")))
