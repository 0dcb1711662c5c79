"""Probabilities of goals and statements over facts with scores: sums over all worlds, events that go together, bounds."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import hapax
from hapax.engine.entailment.graph import Edge, store_edges
from hapax.kb.records import CALIBRATIONS, CANDIDATES, RUNS, CalibrationRecord, Candidate, FactRecord, RunRecord, Source

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


@pytest.mark.parametrize("seed", range(4))
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


def test_a_goal_may_name_negative_numbers(kb: hapax.KnowledgeBase) -> None:
    """A sign before a number, in brackets as well, makes it the negative number of a fact."""
    store(kb, {("edge", ("a", -2)): 0.5})
    rules, options = hapax.parse_rules(RULES), hapax.QueryOptions(probability=hapax.ProbabilityOptions())

    for goal in ("edge(X, -2)", "edge(X, -(2))"):
        assert table(hapax.query(goal, rules, kb, options=options)) == pytest.approx({("a",): 0.5})


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
    kb.add(CANDIDATES, candidates)
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
    kb.add(RUNS, [run])
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


def test_calibrated_scores_are_used_and_named(kb: hapax.KnowledgeBase) -> None:
    """Where the knowledge base has a calibration, facts have calibrated probabilities, and the basis names the critics."""
    kb.add(RUNS, [RunRecord("r", "search", {"models": ["k@1", "c@1"]}, "f", "2026")])
    store(kb, {("bad", ("a",)): 0.5}, run_id="r")
    rules, options = hapax.parse_rules(RULES), hapax.ProbabilityOptions()
    before = hapax.query("bad(X)", rules, kb, options=hapax.QueryOptions(probability=options))
    points = {"points": [[0.0, 1.0], [0.0, 0.4]]}
    kb.add(CALIBRATIONS, [CalibrationRecord("c@1", "isotonic", points, (), (), {}, "2026")])

    after = hapax.query("bad(X)", rules, kb, options=hapax.QueryOptions(probability=options))

    assert "no calibration" in before.basis
    assert after.basis.startswith("Calibrated scores of c@1")
    assert (table(before), table(after)) == ({("a",): 0.5}, {("a",): 0.2})


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


def store_countries(kb: hapax.KnowledgeBase) -> None:
    draw = random.Random(7)
    cities = {("lies_in", (f"city {name}", name)): round(draw.uniform(0.2, 0.9), 2) for name in "abc"}
    borders = {("border", pair): round(draw.uniform(0.2, 0.9), 2) for pair in itertools.permutations("abc", 2)}
    store(kb, cities | borders | {("closed", ("a",)): 0.25})


@pytest.mark.parametrize("method", ["exact", "bounds"])
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
