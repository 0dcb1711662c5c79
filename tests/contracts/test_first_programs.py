"""A file of facts and rules, from the command line and in Python, without a knowledge base and without declarations."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax

FAMILY = """
parent(ann, bob).
parent(bob, carol).
ancestor(X, Y) :- parent(X, Y).
ancestor(X, Z) :- parent(X, Y), ancestor(Y, Z).
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the file of the family."""
    monkeypatch.chdir(tmp_path)
    Path("family.rules").write_text(FAMILY, "utf-8")
    return tmp_path


def test_a_goal_needs_no_knowledge_base(folder: Path) -> None:
    """Facts and rules of the file suffice, nothing is written, and `check` has nothing to say."""
    asked = invoke("query", "ancestor(ann, X)", "family.rules")

    assert asked.stdout.split() == ["X", "bob", "carol"]
    assert invoke("check", "family.rules").stdout == ""
    assert [path.name for path in folder.iterdir()] == ["family.rules"]


def test_a_named_knowledge_base_keeps_what_is_derived() -> None:
    """By `query` and by `derive`; later goals need no rules."""
    invoke("query", "ancestor(ann, X)", "family.rules", "--db", "asked.db")
    invoke("derive", "family.rules", "--db", "derived.db")

    for database in ("asked.db", "derived.db"):
        assert invoke("query", "ancestor(X, carol)", "--db", database).stdout.split() == ["X", "ann", "bob"]


def test_proofs_need_no_knowledge_base_either() -> None:
    """`why` draws the proof, `why-not` says what is missing; names that are no verbs make no sentences."""
    why = invoke("why", "ancestor(ann, carol)", "family.rules").stdout
    why_not = invoke("why-not", "ancestor(carol, ann)", "family.rules").stdout

    assert why.splitlines()[:2] == [
        'ancestor("ann", "carol")  [by rule rule2]',
        '  parent("ann", "bob")  [given]',
    ]
    assert 'nothing makes parent("carol", "ann") hold' in why_not


def test_a_sentence_is_made_of_a_name_that_is_one() -> None:
    """`is_parent_of` reads as a sentence."""
    program = hapax.program("is_parent_of(ann, bob). is_parent_of(X, Y) -> is_child_of(Y, X)")

    assert "bob is a child of ann" in str(program.why("is_child_of(bob, ann)"))


def test_a_program_is_asked_in_python() -> None:
    """As a text, without a file."""
    program = hapax.program(FAMILY)

    assert program.query("ancestor(ann, X)").rows == [("bob",), ("carol",)]
    assert "by rule rule1" in str(program.why("ancestor(ann, bob)"))
    assert "does not hold" in str(program.why_not("ancestor(bob, ann)"))


@pytest.mark.parametrize(
    ("goal", "notes"),
    [
        ("plays_at(Ajax, S)", ["Ajax is a variable here; the stored name is written 'Ajax'."]),
        ("plays_at('Ajax', S)", []),
        ("plays_at(X, S)", []),
        ("plays_at(Ajax, S) & plays_at(Ajax, T)", []),
    ],
)
def test_a_variable_that_is_spelt_like_a_value_is_noted(goal: str, notes: list[str]) -> None:
    """In facts of the rules and in stored ones, if the word occurs once."""
    facts = 'plays_at("Ajax", arena). plays_at("X", park).'
    stored, rules = hapax.KnowledgeBase(), hapax.parse_rules("given plays_at(Club, Ground)")
    hapax.add_facts(stored, "plays_at", [("Ajax", "arena"), ("X", "park")], rules)

    assert hapax.program(facts).query(goal).notes == notes
    assert hapax.query(goal, rules, stored).notes == notes


def test_answers_are_sorted_limited_and_written() -> None:
    """The limit counts behind the order."""
    Path("trips.rules").write_text("trip(a, 5). trip(b, 70). trip(c, 9). trip(d, 'n/a').", "utf-8")
    printed = invoke("query", "trip(I, T)", "trips.rules", "--sort=-T", "--limit", "2", "--csv").stdout
    invoke("query", "trip(I, T) & T < 60", "trips.rules", "--sort", "T", "-o", "short.csv")
    invoke("query", "trip(I, T) & T < 60", "trips.rules", "-o", "short.json")
    refused = invoke("query", "trip(I, T)", "trips.rules", "--sort", "Z")

    assert printed.splitlines() == ["I,T", "d,n/a", "b,70"]
    with Path("short.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["I", "T"], ["a", "5"], ["c", "9"]]
    assert json.loads(Path("short.json").read_text("utf-8"))["answers"] == [{"I": "a", "T": 5}, {"I": "c", "T": 9}]
    assert refused.exit_code == 1
    assert "Sort by I or T" in refused.output


def test_warnings_about_searches_come_with_searches_alone() -> None:
    """A rule over a table needs no third variable, no `@generic` and no sentences; one that a model serves does."""
    rule = "delayed(Flight F, Minutes D) & D > 60 -> is_late(Flight F)"
    table = "type Minutes < Number\ngiven delayed(Flight, Minutes)\nderived is_late(Flight)\n"
    asked = "type Minutes < Number\noracle delayed(Flight, Minutes)\n"

    assert hapax.check_rules(hapax.parse_rules(table + rule)) == ()
    codes = {found.code for found in hapax.check_rules(hapax.parse_rules(asked + rule))}
    assert {"HPX105", "HPX201", "HPX202"} <= codes
    assert not any(found.severity == "error" for found in hapax.check_rules(hapax.parse_rules(asked + rule)))


def test_a_file_asks_goals(tmp_path: Path) -> None:
    """`query` answers them in order, with the options of a goal; a file without one is an error of usage."""
    text = "parent(ann, bob). parent(bob, carl).\nold(X) :- parent(X, _).\n?- old(X).\n?- findall(X, old(X), L),\n  length(L, N)."
    asking, silent = tmp_path / "asking.rules", tmp_path / "silent.rules"
    asking.write_text(text, "utf-8")
    silent.write_text("parent(ann, bob).", "utf-8")
    found = invoke("query", str(asking), "--json").stdout.splitlines()

    assert [json.loads(line)["answers"] for line in found] == [
        [{"X": "ann"}, {"X": "bob"}],
        [{"L": ["ann", "bob"], "N": 2}],
    ]
    assert invoke("query", str(silent)).exit_code == 2
    assert invoke("query", str(asking), "-o", str(tmp_path / "out.csv")).exit_code == 2
    assert "?- old(X)" in invoke("rules", "compile", str(asking), "--to", "rules").stdout
