"""Probabilities of goals and statements over facts with scores: sums over all worlds, events that go together, bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import hapax
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


def asked(goal: str, rules: Any, kb: hapax.KnowledgeBase, *method: str, **options: Any) -> hapax.Answers:
    """The answers to a goal with their probabilities."""
    chosen = hapax.ProbabilityOptions(*method, **options)  # type: ignore[arg-type]
    return hapax.query(goal, rules, kb, options=hapax.QueryOptions(probability=chosen))


def test_facts_of_one_reply_can_be_one_event(kb: hapax.KnowledgeBase) -> None:
    """Together, two facts of one reply hold with the smaller probability; apart, with the product."""
    candidates = [Candidate("question", value, value, "call", place) for place, value in enumerate("ab")]
    kb.add(CANDIDATES, candidates)
    for candidate, probability in zip(candidates, (0.8, 0.6), strict=True):
        store(kb, {("bad", (str(candidate.value),)): probability}, candidate_id=candidate.id)
    rules = hapax.parse_rules(RULES)

    assert table(asked("bad(a), bad(b)", rules, kb)) == pytest.approx({(): 0.48})
    assert table(asked("bad(a), bad(b)", rules, kb, together="reply")) == pytest.approx({(): 0.6})


def test_statements_know_facts_of_one_run_as_one_event(kb: hapax.KnowledgeBase) -> None:
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
        found = hapax.derive(rules, kb, probability=options)
        pairs = zip(found.statements, found.probabilities, strict=True)
        return {statement.values["Y"]: chance.lower for statement, chance in pairs}

    assert chances(hapax.ProbabilityOptions()) == pytest.approx({"b": 0.48, "c": 0.3})
    assert chances(hapax.ProbabilityOptions(together="run")) == pytest.approx({"b": 0.6, "c": 0.3})


def test_a_limit_on_nodes_gives_bounds(kb: hapax.KnowledgeBase) -> None:
    """`auto` falls back to bounds, and `exact` says that the diagram is too large."""
    store(kb, {("edge", pair): 0.5 for pair in itertools.permutations("abcde", 2)})
    rules = hapax.parse_rules(RULES)
    found = asked("path(a, b)", rules, kb, nodes=200)

    assert found.probabilities[0].method == "bounds"
    assert 0.5 <= found.probabilities[0].lower <= found.probabilities[0].upper <= 1
    with pytest.raises(hapax.HapaxError, match="more than 200 nodes"):
        asked("path(a, b)", rules, kb, "exact", nodes=200)


def test_calibrated_scores_are_used_and_named(kb: hapax.KnowledgeBase) -> None:
    """Where the knowledge base has a calibration, facts have calibrated probabilities, and the basis names the critics."""
    kb.add(RUNS, [RunRecord("r", "search", {"models": ["k@1", "c@1"]}, "f", "2026")])
    store(kb, {("bad", ("a",)): 0.5}, run_id="r")
    before = asked("bad(X)", hapax.parse_rules(RULES), kb)
    points = {"points": [[0.0, 1.0], [0.0, 0.4]]}
    kb.add(CALIBRATIONS, [CalibrationRecord("c@1", "isotonic", points, (), (), {}, "2026")])
    after = asked("bad(X)", hapax.parse_rules(RULES), kb)

    assert "no calibration" in before.basis
    assert after.basis.startswith("Calibrated scores of c@1")
    assert (table(before), table(after)) == ({("a",): 0.5}, {("a",): 0.2})


def test_a_fact_that_no_critic_judged_is_certain(kb: hapax.KnowledgeBase) -> None:
    """As after a search without a critic: goals and derived statements take such a fact as it stands."""
    rules = hapax.parse_rules(
        f"{RULES}likes(Person P, Thing X) & edge(Thing X, Thing Y) & edge(Thing Y, Thing Z) -> likes_too(Person P, Thing Z)"
    )
    kb.add_facts([FactRecord("edge", ends, ("Thing", "Thing"), Source.MODEL) for ends in (("a", "b"), ("b", "c"))])
    derived = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions())

    assert table(asked("path(a, X)", rules, kb)) == {("b",): 1.0, ("c",): 1.0}
    assert [probability.lower for probability in derived.probabilities] == [1.0]
