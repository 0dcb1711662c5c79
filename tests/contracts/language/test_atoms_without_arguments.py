"""Predicates without arguments, as programs of Soufflé, ProbLog and clingo have them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import run

import hapax

WEATHER = """
given windy
raining.
cold().
wet :- raining.
cold & \\+ wet -> dry
happy(ann) :- wet, not dry.
(windy | cold) & happy(X) -> stays(X)
p(a, b). p(b, c).
p(A, B) & (A, b) < (B, c) & cold -> q(A)
aggregate pairs(Number N) := N = count(X: p(X, Y) & cold)
p(X, Y) & X \\= Y -> has_pairs
happy(X) & not dry -> glad
"""


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("wet", [()]),
        ("wet()", [()]),
        ("raining, happy(X)", [("ann",)]),
        ("dry", []),
        ("not dry", [()]),
        ("windy", []),
        ("stays(X)", [("ann",)]),
        ("q(X)", [("a",), ("b",)]),
        ("pairs(N)", [(2,)]),
        ("has_pairs & glad", [()]),
        ("findall(X, (p(X, _), cold), L)", [(["a", "b"],)]),
        ("forall(p(X, _), cold)", [()]),
    ],
)
def test_they_are_facts_premises_conclusions_and_goals(
    goal: str, rows: list[tuple[object, ...]], tmp_path: Path
) -> None:
    """With parentheses or without; from rules and from what is derived."""
    program = hapax.program(WEATHER)
    rules = hapax.parse_rules(WEATHER)
    with hapax.KnowledgeBase(tmp_path / "weather.db") as kb:
        hapax.derive(rules, kb)
        derived = hapax.query(goal, rules, kb)

    assert [tuple(row) for row in program.query(goal).rows] == rows
    assert [tuple(row) for row in derived.rows] == rows


def test_they_are_proved_and_assumed() -> None:
    """`why`, `why-not` and `assume` name them as goals do."""
    program = hapax.program(WEATHER)

    assert str(program.why("wet")).splitlines() == ["wet()  [by rule rule1]", "  raining()  [given]"]
    assert "wet() holds, but the rule requires that it does not" in str(program.why_not("dry"))
    assert program.query("stays(X), windy", assume="windy").rows == [("ann",)]


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` has nothing to say, and statements are exported with their proofs."""
    monkeypatch.chdir(tmp_path)
    Path("weather.rules").write_text(WEATHER, "utf-8")

    assert run("check", "weather.rules").stdout == ""
    assert run("query", "glad", "weather.rules").stdout.strip() == "true"
    run("derive", "weather.rules", "--db", "weather.db")
    assert '"predicate": "has_pairs", "arguments": []' in run("export", "--statements", "--db", "weather.db").stdout
    run("kb", "verify", "--db", "weather.db")


def test_rules_are_written_and_read_again() -> None:
    """As rules and as Prolog; SQL has no table without columns, and a table of facts no row without cells."""
    rules = hapax.parse_rules("raining. wet :- raining.")

    assert hapax.parse_rules(hapax.compile_rules(rules, "rules")).rules == rules.rules
    assert "wet :-\n    raining." in hapax.compile_rules(rules)
    with pytest.raises(hapax.HapaxError, match="a table without columns"):
        hapax.compile_rules(rules, "duckdb")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="has no arguments"):
        hapax.add_facts(kb, "raining", [()], rules)


def test_words_of_other_meanings_stay() -> None:
    """A text as an argument, a word that names no predicate, and words without an arrow between them."""
    assert hapax.program("p(raining). p(X) -> q(X, wet)").query("q(X, Y)").rows == [("raining", "wet")]
    with pytest.raises(hapax.HapaxError, match="sunny is no predicate"):
        hapax.program("p(a).").query("sunny")
    with pytest.raises(hapax.HapaxError, match="HPX028"):
        hapax.parse_rules("it is raining -> wet")


def test_true_and_false_are_items() -> None:
    """Of a premise, of a case and of a negation, and of goals; a rule of `true` alone is a fact."""
    program = hapax.program(
        "q(1; 5). r(X) :- q(X), true. s(X) :- q(X), (X > 3 ; fail). t(X) :- q(X), not false. u(2) :- true."
    )
    found = {goal: program.query(goal).rows for goal in ("r(X)", "s(X)", "t(X)", "u(X)", "q(X), true", "q(X), fail")}

    assert found == {
        "r(X)": [(1,), (5,)], "s(X)": [(5,)], "t(X)": [(1,), (5,)], "u(X)": [(2,)], "q(X), true": [(1,), (5,)],
        "q(X), fail": [],
    }  # fmt: skip


def test_ranges_and_pools_have_an_end() -> None:
    """More than ten thousand numbers, ends that are no numbers, and pools in premises are refused with a code."""
    for text, code in {
        "p(1..100000).": "HPX085",
        "q(1..200, 1..200).": "HPX085",
        "p(a..b).": "HPX086",
        "p(X) & X > 1..3 -> q(X)": "HPX087",
        "given p(1..3)": "HPX088",
        "p(X) -> q(a; b)": "HPX088",
    }.items():
        with pytest.raises(hapax.RulesRejected, match=code):
            hapax.parse_rules(text)
