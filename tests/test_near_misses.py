"""The near misses that `query` names for a goal without an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.engine import near_misses

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?"
given sails(Person, River).
given dreads(Person, Country).
given has_length(River, Length).
@generic none
flows_through(River R, Country C) & sails(Person P, River R) -> passes(Person P, Country C)
@generic none
passes(Person P, Country C) & dreads(Person P, Country C) -> trembles(Person P)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Rules, and a knowledge base with facts about two rivers, one with a length, and a sailor."""
    (tmp_path / "world.rules").write_text(RULES, "utf-8")
    rules = hapax.load_rules(tmp_path / "world.rules")
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.add_facts(kb, "flows_through", [("Okavango", "Botswana"), ("Côte d'Or", "France")], rules)
        hapax.add_facts(kb, "sails", [("tom", "Okavango")], rules)
        hapax.add_facts(kb, "has_length", [("Okavango", 1600)], rules)
    return tmp_path


@pytest.mark.parametrize(
    ("goal", "line"),
    [
        ("flows_through(okavango, Country)", "No fact has okavango. Did you mean 'Okavango'?"),
        ("flows_through('Cote dOr', Country)", "Did you mean 'Côte d\\'Or'?"),
        ("flows_through(xyzzy, Country)", "No name in the facts is like it."),
        ("has_length(okavango, Length)", "Did you mean 'Okavango'?"),  # a number is no name
        ("trembles(tom)", "dreads/2 has no facts."),
        ("has_length(okavango, 1700)", "Did you mean 'Okavango'?"),
        ("passes('Tom ', Country)", "Did you mean tom?"),
    ],
)
def test_no_answer_says_what_is_near(place: Path, goal: str, line: str) -> None:
    """Another spelling of a name, and predicates without facts on which the goal depends, rules included."""
    result = invoke("query", goal, "--rules", place / "world.rules", "--db", place / "kb.db")

    assert result.exit_code == 0
    assert line in result.stderr


def test_a_number_of_the_goal_is_no_misspelt_name(place: Path) -> None:
    """Only texts are compared with the names of the facts."""
    rules = hapax.load_rules(place / "world.rules")

    with hapax.KnowledgeBase(place / "kb.db") as kb:
        assert hapax.near_misses("has_length('Okavango', 1700)", rules, kb) == []


def test_names_are_not_compared_among_too_many_facts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All facts of the goal's predicates count; those without facts are still named."""
    rules = hapax.load_rules(place / "world.rules")

    with hapax.KnowledgeBase(place / "kb.db") as kb:
        monkeypatch.setattr(near_misses, "MOST_FACTS", 3)
        assert len(hapax.near_misses("passes('Tom ', Country)", rules, kb)) == 1
        monkeypatch.setattr(near_misses, "MOST_FACTS", 2)
        assert hapax.near_misses("passes('Tom ', Country)", rules, kb) == []
        assert hapax.near_misses("trembles(tim)", rules, kb) == ["dreads/2 has no facts."]


def test_an_answer_has_no_such_lines(place: Path) -> None:
    """A goal that holds needs no hint, and an assumption counts as a fact."""
    known = ("--rules", place / "world.rules", "--db", place / "kb.db")
    rules = hapax.load_rules(place / "world.rules")

    assert invoke("query", "passes(tom, Country)", *known).stderr == ""
    with hapax.KnowledgeBase(place / "kb.db") as kb:
        assert hapax.near_misses("trembles(tom)", rules, kb, assume="dreads(tom, 'Chad')") == []
        assert hapax.query("trembles(tom)", rules, kb, assume="dreads(tom, 'Botswana')").holds
