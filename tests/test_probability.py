"""Probabilities of answers and explanations: over a knowledge base, by goal, from Python and on the command line."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.engine.entailment.graph import Edge, store_edges
from hapax.grammar.extras import ExtraMissing
from hapax.kb.records import CalibrationRecord, Candidate, FactRecord, RunRecord, Source

pytest.importorskip("pysdd", reason="exact probabilities need the extra `probability`")

RULES = """
given edge(Thing, Thing).
given bad(Thing).
@generic none
path(X, Y) :- edge(Thing X, Thing Y)
@generic none
path(X, Z) :- edge(Thing X, Thing Y), path(Thing Y, Thing Z)
@generic none
good(X, Y) :- path(Thing X, Thing Y), not bad(Y)
@generic none
safe(X) :- edge(Thing X, Thing Y), not good(X, Y)
"""

Facts = Mapping[tuple[str, tuple[str, ...]], float]


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase(str(tmp_path / "t.db")) as opened:
        yield opened


def store(kb: hapax.KnowledgeBase, facts: Facts, **fields: str) -> None:
    kb.add_facts(
        [
            FactRecord(name, values, ("Thing",) * len(values), Source.MODEL, probability=probability, **fields)
            for (name, values), probability in facts.items()
        ]
    )


def table(answers: hapax.Answers) -> dict[tuple[object, ...], float]:
    return {tuple(row[:-1]): row[-1] for row in answers.rows}


def world(edges: set[tuple[str, ...]], bad: set[str]) -> dict[str, set[tuple[str, ...]]]:
    """The atoms of RULES in a world, by plain Python."""
    path = set(edges)
    while new := {(x, z) for x, y in edges for other, z in path if other == y} - path:
        path |= new
    good = {(x, y) for x, y in path if y not in bad}
    return {"path": path, "good": good, "safe": {(x,) for x, y in edges if (x, y) not in good}}


def by_worlds(facts: Facts) -> dict[str, dict[tuple[str, ...], float]]:
    """The probability of each atom of RULES as the sum over all worlds."""
    totals: dict[str, dict[tuple[str, ...], float]] = {"path": {}, "good": {}, "safe": {}}
    for choice in itertools.product((True, False), repeat=len(facts)):
        happens = dict(zip(facts, choice, strict=True))
        weight = math.prod(facts[fact] if true else 1 - facts[fact] for fact, true in happens.items())
        edges = {values for (name, values), true in happens.items() if true and name == "edge"}
        bad = {values[0] for (name, values), true in happens.items() if true and name == "bad"}
        for name, atoms in world(edges, bad).items():
            for atom in atoms:
                totals[name][atom] = totals[name].get(atom, 0.0) + weight
    return totals


@pytest.mark.parametrize("seed", range(6))
def test_answers_have_the_probability_of_all_their_proofs(kb: hapax.KnowledgeBase, seed: int) -> None:
    """With recursion over cyclic data and negation of facts and of conclusions, P is the sum over all worlds."""
    draw = random.Random(seed)
    pairs = draw.sample(list(itertools.permutations("abc", 2)), 5)
    facts = {("edge", pair): round(draw.uniform(0.1, 0.9), 2) for pair in pairs}
    facts |= {("bad", (name,)): round(draw.uniform(0.1, 0.9), 2) for name in draw.sample("abc", 2)}
    store(kb, facts)
    rules = hapax.parse_rules(RULES)
    expected = by_worlds(facts)

    for goal in ("path(X, Y)", "good(X, Y)", "safe(X)"):
        found = hapax.query(goal, rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions()))
        bounds = hapax.query(
            goal, rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions(method="bounds", proofs=2))
        )

        assert table(found) == pytest.approx(expected[goal.partition("(")[0]], abs=1e-9)
        assert [row[-1] for row in found.rows] == sorted((row[-1] for row in found.rows), reverse=True)
        for answer, probability in zip(bounds.rows, bounds.probabilities, strict=True):
            # An answer of probability 0 has bounds as well.
            value = expected[goal.partition("(")[0]].get(answer[:-1], 0.0)
            assert probability.lower - 1e-9 <= value <= probability.upper + 1e-9


def test_a_goal_may_negate_compare_and_choose(kb: hapax.KnowledgeBase) -> None:
    """Conjunction, disjunction, negation with a variable of its own and comparisons all have probabilities."""
    store(kb, {("edge", ("a", "b")): 0.5, ("edge", ("b", "c")): 0.4, ("bad", ("b",)): 0.3})
    rules, options = hapax.parse_rules(RULES), hapax.ProbabilityOptions()

    def asked(goal: str) -> dict[tuple[object, ...], float]:
        return table(hapax.query(goal, rules, kb, options=hapax.QueryOptions(probability=options)))

    assert asked("edge(X, Y), \\+ bad(Y)") == pytest.approx({("a", "b"): 0.35, ("b", "c"): 0.4})
    assert asked("edge(a, X), \\+ edge(X, _)") == pytest.approx({("b",): 0.3})
    assert asked("edge(X, _) ; bad(X)") == pytest.approx({("a",): 0.5, ("b",): 1 - 0.6 * 0.7})
    assert asked("edge(X, Y), X \\= a") == pytest.approx({("b", "c"): 0.4})
    assert asked("edge(a, b)") == pytest.approx({(): 0.5})
    assert asked("edge(b, a)") == {}


@pytest.mark.parametrize(
    ("goal", "part"),
    [
        ("findall(X, edge(X, _), L)", "findall/3"),
        ("edge(X, _), X \\= -a", "-/1"),
        ("edge(X, _), X \\= -(X)", "-/1"),
    ],
)
def test_parts_of_goals_without_a_probability_are_refused(kb: hapax.KnowledgeBase, goal: str, part: str) -> None:
    """A list of all answers is another one in each world, and other terms are no values; the error names the part."""
    options = hapax.QueryOptions(probability=hapax.ProbabilityOptions())
    with pytest.raises(hapax.HapaxError, match=f"^{re.escape(part)} has no probability"):
        hapax.query(goal, hapax.parse_rules(RULES), kb, options=options)


def test_a_goal_may_name_negative_numbers(kb: hapax.KnowledgeBase) -> None:
    """A sign before a number, in brackets as well, makes it the negative number of a fact."""
    store(kb, {("edge", ("a", -2)): 0.5})
    rules, options = hapax.parse_rules(RULES), hapax.QueryOptions(probability=hapax.ProbabilityOptions())

    for goal in ("edge(X, -2)", "edge(X, -(2))"):
        assert table(hapax.query(goal, rules, kb, options=options)) == pytest.approx({("a",): 0.5})


def test_given_and_assumed_facts_are_certain(kb: hapax.KnowledgeBase) -> None:
    """A given fact, an assumption and a fact of a rule file have probability 1."""
    rules = hapax.parse_rules(RULES + 'fact edge("c", "d").\n')
    hapax.add_facts(kb, "edge", [("a", "b")], rules)

    found = hapax.query(
        "path(X, Y)", rules, kb, assume="edge(b, c)", options=hapax.QueryOptions(probability=hapax.ProbabilityOptions())
    )

    assert len(found) == 6
    assert {row[-1] for row in found.rows} == {1.0}


def test_entailments_multiply_along_chains(kb: hapax.KnowledgeBase) -> None:
    """Ten entailments of .5 lead to .5 to the power of ten, and an edge that is used twice counts once."""
    for number in range(10):
        store_edges(kb, [Edge.of(f"p{number}(Thing A)", f"p{number + 1}(Thing A)", 0.5)])
    store(kb, {("p0", ("x",)): 1.0, ("p0", ("y",)): 1.0})
    rules = hapax.with_entailments(hapax.parse_rules("given p0(Thing).\n"), kb, 0.5)
    options = hapax.ProbabilityOptions()

    assert table(hapax.query("p10(X)", rules, kb, options=hapax.QueryOptions(probability=options))) == pytest.approx(
        {("x",): 0.5**10, ("y",): 0.5**10}
    )
    assert table(
        hapax.query("p1(x), p1(y)", rules, kb, options=hapax.QueryOptions(probability=options))
    ) == pytest.approx({(): 0.5})


def test_facts_of_one_reply_can_be_one_event(kb: hapax.KnowledgeBase) -> None:
    """Together, two facts of one reply hold with the smaller probability; apart, with the product."""
    candidates = [Candidate("question", value, value, "call", place) for place, value in enumerate("ab")]
    kb.add_candidates(candidates)
    for candidate, probability in zip(candidates, (0.8, 0.6), strict=True):
        store(kb, {("bad", (str(candidate.value),)): probability}, candidate_id=candidate.id)
    rules = hapax.parse_rules(RULES)

    apart = hapax.query("bad(a), bad(b)", rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions()))
    one = hapax.query(
        "bad(a), bad(b)", rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions(together="reply"))
    )

    assert table(apart) == pytest.approx({(): 0.48})
    assert table(one) == pytest.approx({(): 0.6})


@pytest.mark.parametrize("engine", ["sql", "prolog"])
def test_statements_know_facts_of_one_run_as_one_event(kb: hapax.KnowledgeBase, engine: str) -> None:
    """Together, a statement of two facts has the smaller of their probabilities, by SQL as by Prolog."""
    run = RunRecord("first", "search", {}, "run", "2026-01-01T00:00:00+00:00")
    kb.start_run(run)
    store(kb, {("edge", ("a", "b")): 0.8, ("edge", ("b", "c")): 0.6}, run_id="first")
    store(kb, {("edge", ("c", "d")): 0.5})
    rules = hapax.parse_rules(
        "given edge(Thing, Thing).\nlikes(Person P, Thing X) & edge(Thing X, Thing Y) & edge(Thing Y, Thing Z)"
        " -> likes_too(Person P, Thing Z)"
    )

    def chances(options: hapax.ProbabilityOptions) -> dict[str, float]:
        found = hapax.derive(rules, kb, engine=engine, probability=options)  # type: ignore[arg-type]
        pairs = zip(found.statements, found.probabilities, strict=True)
        return {statement.values["Y"]: chance.lower for statement, chance in pairs}

    assert chances(hapax.ProbabilityOptions()) == pytest.approx({"b": 0.48, "c": 0.3})
    assert chances(hapax.ProbabilityOptions(together="run")) == pytest.approx({"b": 0.6, "c": 0.3})


def test_a_limit_on_nodes_gives_bounds(kb: hapax.KnowledgeBase) -> None:
    """`auto` falls back to bounds, and `exact` says that the diagram is too large."""
    store(kb, {("edge", pair): 0.5 for pair in itertools.permutations("abcde", 2)})
    rules = hapax.parse_rules(RULES)

    found = hapax.query(
        "path(a, b)", rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions(nodes=200))
    )

    assert found.probabilities[0].method == "bounds"
    assert 0.5 <= found.probabilities[0].lower <= found.probabilities[0].upper <= 1
    with pytest.raises(hapax.HapaxError, match="more than 200 nodes"):
        hapax.query(
            "path(a, b)",
            rules,
            kb,
            options=hapax.QueryOptions(probability=hapax.ProbabilityOptions("exact", nodes=200)),
        )


def test_a_missing_library_is_named_with_its_extra(kb: hapax.KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pysdd an answer with two proofs needs the extra `probability`; the best proof needs nothing."""
    monkeypatch.setitem(__import__("sys").modules, "pysdd.sdd", None)
    store(kb, {("edge", ("a", "b")): 0.5, ("edge", ("a", "c")): 0.5, ("edge", ("c", "b")): 0.5})
    rules = hapax.parse_rules(RULES)

    best = hapax.query(
        "path(a, b)", rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions("best"))
    )

    assert table(best) == {(): 0.5}
    with pytest.raises(ExtraMissing, match=r"hapax-kb\[probability\]"):
        hapax.query("path(a, b)", rules, kb, options=hapax.QueryOptions(probability=hapax.ProbabilityOptions()))


def test_calibrated_scores_are_used_and_named(kb: hapax.KnowledgeBase) -> None:
    """Where the knowledge base has a calibration, facts have calibrated probabilities, and the basis names the critics."""
    kb.start_run(RunRecord("r", "search", {"models": ["k@1", "c@1"]}, "f", "2026"))
    store(kb, {("bad", ("a",)): 0.5}, run_id="r")
    rules, options = hapax.parse_rules(RULES), hapax.ProbabilityOptions()
    before = hapax.query("bad(X)", rules, kb, options=hapax.QueryOptions(probability=options))
    points = {"points": [[0.0, 1.0], [0.0, 0.4]]}
    kb.set_calibration(CalibrationRecord("c@1", "isotonic", points, (), (), {}, "2026"))

    after = hapax.query("bad(X)", rules, kb, options=hapax.QueryOptions(probability=options))

    assert "no calibration" in before.basis
    assert after.basis.startswith("Calibrated scores of c@1")
    assert (table(before), table(after)) == ({("a",): 0.5}, {("a",): 0.2})


def test_why_shows_the_proofs_with_their_probabilities(kb: hapax.KnowledgeBase) -> None:
    """The explanation begins with P, and each proof has its own, with the facts that it needs or needs absent."""
    store(kb, {("edge", ("a", "b")): 0.5, ("edge", ("b", "c")): 0.8, ("edge", ("a", "c")): 0.2, ("bad", ("b",)): 0.3})
    rules = hapax.parse_rules(RULES)

    lines = [text for _, _, text in hapax.why("path(a, c)", rules, kb, probability=hapax.ProbabilityOptions()).lines]

    assert lines[1].startswith("P 0.5200, exact.")
    assert lines[2] == 'proof 1, P 0.4000: edge("a", "b") 0.5, edge("b", "c") 0.8'
    assert lines[3] == 'proof 2, P 0.2000: edge("a", "c") 0.2'


def test_why_gives_a_searched_statement_the_probability_of_its_facts(tmp_path: Path) -> None:
    """A statement has the probability of what its rule needs; its hypothesis about Person X is assumed."""
    (tmp_path / "w.rules").write_text(
        'oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?".\n'
        "given eats(Person, Food).\ngiven may_eat(Person, Dish).\n"
        "@name may\neats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n",
        "utf-8",
    )
    place = ["--db", str(tmp_path / "w.db"), "-m", "simulated", "--no-progress"]
    assert invoke("search", str(tmp_path / "w.rules"), *place).exit_code == 0

    with hapax.KnowledgeBase(tmp_path / "w.db") as kb:
        statement = next(iter(kb.statements()))
        fact = next(fact for fact in kb.facts("is_in/2") if fact.id in hapax.Statement(statement).proof.fact_ids())
        rules = hapax.load_rules(tmp_path / "w.rules")
        lines = [t for _, _, t in hapax.why(statement.id, rules, kb, probability=hapax.ProbabilityOptions()).lines]

    assert lines[1].startswith(f"P {fact.probability:.4f}, exact.")


def test_the_command_ranks_and_filters(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`query --probability` prints the most probable answers first, and --at-least leaves out the others."""
    store(kb, {("edge", ("a", "b")): 0.5, ("edge", ("b", "c")): 0.8, ("edge", ("a", "c")): 0.95})
    (tmp_path / "t.rules").write_text(RULES, "utf-8")
    place = ["--rules", str(tmp_path / "t.rules"), "--db", str(tmp_path / "t.db")]

    shown = invoke("query", "path(a, X)", "--probability", *place)
    filtered = invoke("query", "path(a, X)", "--probability", "--at-least", "0.9", "--json", *place)
    refused = invoke("query", "path(a, X)", "--at-least", "0.9", *place)

    assert shown.stdout.split() == ["X", "probability", "c", "0.9700", "b", "0.5000"]
    assert "no calibration" in shown.stderr
    assert json.loads(filtered.stdout)["answers"] == [
        {"X": "c", "probability": pytest.approx(0.97), "at_most": pytest.approx(0.97), "method": "exact"}
    ]
    assert refused.exit_code == 2
    assert "--at-least needs --probability" in refused.stderr


STATEMENTS = """
given works_in(Person, City).
given lies_in(City, Country).
given border(Country, Country).
given closed(Country).
@generic none
near(X, Y) :- border(Country X, Country Y)
@generic none
near(X, Z) :- border(Country X, Country Y), near(Country Y, Country Z)
@name direct
works_in(Person X, City A) & lies_in(City A, Country B) -> may_visit(Person X, Country B)
@name wide
works_in(Person X, City A) & lies_in(City A, Country B) & near(Country B, Country C) -> may_see(Person X, Country C)
"""
NEGATION = """
@name open_border
works_in(Person X, City A) & lies_in(City A, Country B) & not closed(Country B) -> may_stay(Person X, Country B)
"""


def store_countries(kb: hapax.KnowledgeBase) -> None:
    draw = random.Random(7)
    cities = {("lies_in", (f"city {name}", name)): round(draw.uniform(0.2, 0.9), 2) for name in "abc"}
    borders = {("border", pair): round(draw.uniform(0.2, 0.9), 2) for pair in itertools.permutations("abc", 2)}
    store(kb, cities | borders | {("closed", ("a",)): 0.25})


@pytest.mark.parametrize("method", ["exact", "bounds", "best"])
def test_statements_have_the_same_probabilities_in_sql_and_prolog(kb: hapax.KnowledgeBase, method: str) -> None:
    """For facts alone and over recursion the two engines agree, and goals give the same numbers."""
    store_countries(kb)
    rules = hapax.parse_rules(STATEMENTS)
    options = hapax.ProbabilityOptions(method=method)  # type: ignore[arg-type]

    found = {}
    for engine in ("sql", "prolog"):
        derivation = hapax.derive(rules, kb, engine=engine, probability=options)  # type: ignore[arg-type]
        pairs = zip(derivation.statements, derivation.probabilities, strict=True)
        found[engine] = {statement.text: (chance.lower, chance.upper) for statement, chance in pairs}
    goal = hapax.query(
        "lies_in(A, a), near(a, b)", rules, kb, options=hapax.QueryOptions(probability=options)
    ).probabilities[0]

    assert found["sql"].keys() == found["prolog"].keys()
    for text, numbers in found["sql"].items():
        assert numbers == pytest.approx(found["prolog"][text], abs=1e-9)
    wide = [numbers for text, numbers in found["sql"].items() if "city a" in text and text.endswith("see b.")]
    assert wide == [pytest.approx((goal.lower, goal.upper), abs=1e-9)]


def test_derived_statements_are_ranked_and_filtered(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """Statements, also those under a negation, come the most probable first, and a file has their probabilities."""
    store_countries(kb)
    rules = hapax.parse_rules(STATEMENTS + NEGATION)
    lies_in = {fact.arguments[1]: fact.probability for fact in kb.facts("lies_in/2")}

    derivation = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions(at_least=0.3))
    values = [probability.lower for probability in derivation.probabilities]
    count = derivation.write(tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    stays = [line for line in lines if line["rule"] == "open_border"]

    assert values == sorted(values, reverse=True)
    assert min(values) >= 0.3
    assert [line["probability"] for line in lines] == values
    assert count == len(values) == len(derivation.statements)
    # closed(a) is stored, so that where every fact holds no statement speaks of country a.
    assert {line["substitution"]["B"]: line["probability"] for line in stays} == pytest.approx(
        {name: value for name, value in lies_in.items() if name != "a" and value is not None and value >= 0.3}
    )


def test_the_derive_command_prints_what_is_expected_to_be_true(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """The table has the sum of the probabilities of each rule, and JSON the same number."""
    store_countries(kb)
    (tmp_path / "t.rules").write_text(STATEMENTS, "utf-8")
    place = [str(tmp_path / "t.rules"), "--db", str(tmp_path / "t.db")]
    total = math.fsum(fact.probability or 0.0 for fact in kb.facts("lies_in/2"))

    table_text = invoke("derive", "--probability", "--rule", "direct", *place)
    as_json = invoke("derive", "--probability", "--rule", "direct", "--json", *place)

    assert f"{total:.1f}" in table_text.stdout
    assert "no calibration" in table_text.stderr
    assert json.loads(as_json.stdout)["rules"][0]["expected"] == pytest.approx(total)


def test_the_example_of_the_page_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files and commands of docs/probabilities.md give the outputs that it shows."""
    page = (Path(__file__).parent.parent / "docs" / "probabilities.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"`([\w.]+)`:\n\n```\n(.*?)```", page, re.DOTALL):
        Path(name).write_text(text, "utf-8")
    sessions = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    steps = [step for session in sessions for step in session.split("$ hapax ")[1:]]

    for step in steps:
        command, _, shown = step.partition("\n")
        result = invoke(*shlex.split(command))

        assert result.exit_code == 0, result.output
        assert [line.rstrip() for line in shown.splitlines() if line] == [
            line.rstrip() for line in (result.stdout + result.stderr).splitlines()
        ], command
    assert len(steps) >= 4


@pytest.mark.parametrize("engine", ["sql", "prolog"])
def test_a_fact_that_no_critic_judged_is_certain(kb: hapax.KnowledgeBase, engine: str) -> None:
    """As after a search without a critic: goals and derived statements take such a fact as it stands."""
    rules = hapax.parse_rules(
        f"{RULES}likes(Person P, Thing X) & edge(Thing X, Thing Y) & edge(Thing Y, Thing Z) -> likes_too(Person P, Thing Z)"
    )
    kb.add_facts([FactRecord("edge", ends, ("Thing", "Thing"), Source.MODEL) for ends in (("a", "b"), ("b", "c"))])
    options = hapax.ProbabilityOptions()
    found = hapax.query("path(a, X)", rules, kb, options=hapax.QueryOptions(probability=options))
    derived = hapax.derive(rules, kb, engine=engine, probability=options)  # type: ignore[arg-type]

    assert table(found) == {("b",): 1.0, ("c",): 1.0}
    assert [probability.lower for probability in derived.probabilities] == [1.0]
