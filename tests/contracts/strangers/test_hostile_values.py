"""Hostile values and goals: any text of a fact comes back as it was, and what cannot be held or run is refused."""

from __future__ import annotations

import pytest

import hapax

RULES = hapax.parse_rules("given says(Person, Sentence)")
HOSTILE_TEXTS = (
    "it's",
    'say "x"',
    "back\\slash",
    "tab\tnew\nline\r",
    "a'), shell('touch /tmp/hapax_was_here'), ('b",
    ":- halt.",
    "'; DROP TABLE facts; --",
    "\u202eright to left",
    "emoji \U0001f600 and e\u0301",
    "r1l0:e4:halt",
    "% comment /* another */",
    "[]",
    "{}",
    "1876",
    "Variable",
    "x" * 1_000_000,
)


def test_hostile_texts_come_back_as_they_were() -> None:
    """A fact with any text in it is answered by a goal with the same text."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "says", [("tom", text) for text in HOSTILE_TEXTS], RULES)

        assert {row["X"] for row in hapax.query("says(tom, X)", RULES, kb)} == set(HOSTILE_TEXTS)


def test_what_prolog_cannot_hold_is_refused_or_left_out() -> None:
    """U+0000 is no part of a goal, and of answers in Prolog; half a character is refused; other facts still answer."""
    nul, half = "nul \0 inside", "half \ud800 character"
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "says", [("tom", "soup"), ("tom", nul)], RULES)
        with pytest.raises(hapax.HapaxError, match="half"):
            hapax.add_facts(kb, "says", [("tom", half)], RULES)
        for text in (nul, half):
            with pytest.raises(hapax.HapaxError):
                hapax.query(f"says(tom, '{text}')", RULES, kb)

        assert {row["X"] for row in hapax.query("says(tom, X)", RULES, kb)} == {"soup", nul}
        assert hapax.query("findall(X, says(tom, X), L)", RULES, kb)[0] == {"L": ["soup"]}


@pytest.mark.parametrize(
    "goal", ["says(tom, {deep})", "shell(ls)", "halt", "assertz(says(a, b))", "system:shell(ls)", "X = 1, X"]
)
def test_dangerous_goals_are_refused_before_they_run(goal: str) -> None:
    """Calls outside the goals' language and deep nesting are refused; the next goal is answered."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "says", [("tom", "soup")], RULES)
        with pytest.raises(hapax.RulesRejected):
            hapax.query(goal.replace("{deep}", "[" * 20_000 + "]" * 20_000), RULES, kb)

        assert len(hapax.query("says(tom, X)", RULES, kb)) == 1


@pytest.mark.parametrize("name", ["halt", "print", "member", "consult", "instance_of", "shell", "need"])
def test_predicates_named_like_prolog_s_own_are_only_facts(name: str) -> None:
    """A rule file may use a name that Prolog knows: it is then an ordinary predicate."""
    rules = hapax.parse_rules(f"given {name}(Person, Sentence)")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, name, [("tom", "x")], rules)

        assert [row["X"] for row in hapax.query(f"{name}(tom, X)", rules, kb)] == ["x"]


@pytest.mark.parametrize("name", ["write", "hapax_rule", "hapax_fact_"])
def test_names_that_are_taken_are_refused_with_a_remedy(name: str) -> None:
    """Predicates that SWI-Prolog reserves, and the program's helpers, are refused by name with a remedy."""
    rules = hapax.parse_rules(f"given {name}(Person, Sentence)")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="Rename"):
        hapax.query("X = 1", rules, kb)
