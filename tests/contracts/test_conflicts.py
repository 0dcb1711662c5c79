"""Facts of a model that break declarations: in a search and with `query --ask` the least sure of them loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_facts_are_judged_together(tmp_path: Path) -> None:
    """The critic is asked about each fact of a conflict beside the others; what was surer alone may lose there."""
    claims = ["A feeds b.", "B feeds a."]
    answers = {"'a feeds": ["b"], "'b feeds": ["a"]}
    asked = models(tmp_path, answers, dict(zip(claims, (0.9, 0.86), strict=True)))
    with hapax.KnowledgeBase() as kb:
        hapax.query("member(X, [a, b]), feeds(X, Y)", RULES, kb, models=asked)
        questions = [str(call.request["claim"]) for call in kb.calls().values() if "claim" in call.request]
        both = [question for question in questions if all(claim in question for claim in claims)]
    assert len(both) == 2

    script = {"A feeds b.": 0.9, "B feeds a.": 0.86}
    script |= {question: 0.3 if f"Statement: {claims[0]}" in question else 0.8 for question in both}
    asked = models(tmp_path, answers, script)
    with hapax.KnowledgeBase() as kb:
        hapax.query("member(X, [a, b]), feeds(X, Y)", RULES, kb, models=asked)

        assert facts(kb, "feeds") == {("b", "a")}


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
