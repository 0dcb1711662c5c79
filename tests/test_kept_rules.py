"""A knowledge base keeps the rules that were used on it, so that later commands need not name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run

import hapax

RULES = """
type Feet < Number
given lies_at(Airport, Feet): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?"
given flies_to(Person, Airport): "[1] flies to [2]" / "[1] does not fly to [2]" / "does [1] fly to [2]?"
given needs_oxygen(Person, Airport): "[1] needs oxygen at [2]" / "[1] needs no oxygen at [2]" / "does [1] need oxygen at [2]?"
@name thin
flies_to(Person P, Airport A) & lies_at(Airport A, Feet E) & E > 8000 -> needs_oxygen(Person P, Airport A)
"""
FACTS = "lies_at,La Paz,13325\nlies_at,Quito,7874\nlies_at,Schiphol,-11\n"


@pytest.fixture
def air(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with rules and a knowledge base of facts, on which no rules were used yet."""
    monkeypatch.chdir(tmp_path)
    Path("air.rules").write_text(RULES, encoding="utf-8")
    Path("facts.csv").write_text(FACTS, encoding="utf-8")
    run("import", "facts.csv", "--db", "air.db")
    return tmp_path


GOAL = ("query", "needs_oxygen(tom, A)", "--assume", "flies_to(tom, 'La Paz')", "--db", "air.db", "--json")


@pytest.mark.usefixtures("air")
def test_no_command_needs_the_rules_again() -> None:
    """After derive with rules, goals, explanations, further derivations and checks use the same rules."""
    run("derive", "air.rules", "--db", "air.db")
    Path("air.rules").unlink()

    assert "La Paz" in run(*GOAL).stdout
    assert "13325" in run("why", "needs_oxygen(tom, 'La Paz')", *GOAL[2:4], "--db", "air.db").stdout
    assert (
        "7874 > 8000"
        in run("why-not", "needs_oxygen(tom, 'Quito')", "--assume", "flies_to(tom, 'Quito')", "--db", "air.db").stdout
    )
    derived = json.loads(run("derive", "--db", "air.db", "--json").stdout)
    assert [(rule["rule"], rule["statements"]) for rule in derived["rules"]] == [("thin", 1)]
    assert "1 rule," in run("check", "--db", "air.db").stderr


@pytest.mark.usefixtures("air")
def test_other_rules_replace_the_kept_ones_and_a_line_says_so() -> None:
    """A changed file is pointed out until it is named again; then its new text is kept, or that of another file."""
    run("derive", "--rules", "air.rules", "--db", "air.db")
    Path("air.rules").write_text(RULES.replace("8000", "7000"), encoding="utf-8")

    before = run("derive", "--db", "air.db")
    named = run("derive", "--rules", "air.rules", "--db", "air.db")
    again = run("derive", "--rules", "air.rules", "--db", "air.db")
    Path("other.rules").write_text(RULES.replace("thin", "high"), encoding="utf-8")
    other = run("derive", "other.rules", "--db", "air.db")

    assert (
        "air.rules has changed; air.db keeps its earlier text. Use the new one with --rules air.rules." in before.stderr
    )
    assert "The knowledge base now keeps a new text of air.rules." in named.stderr
    assert "now keeps" not in again.stderr
    assert "The knowledge base now keeps other.rules instead of air.rules." in other.stderr


@pytest.mark.usefixtures("air")
def test_a_reading_command_keeps_nothing() -> None:
    """Rules named for one goal are for this goal alone."""
    run(*GOAL, "--rules", "air.rules")

    with hapax.KnowledgeBase("air.db", read_only=True) as kb:
        assert hapax.kept_rules(kb) is None


@pytest.mark.usefixtures("air")
def test_a_goal_of_other_rules_is_told_which_are_kept() -> None:
    """An unknown predicate's error names the kept files, since `--rules` of an earlier command may have replaced others."""
    run("derive", "air.rules", "--db", "air.db")

    refused = run("query", "flows_through('Okavango', Country)", "--db", "air.db", code=1)

    assert "air.db keeps the rules of air.rules; `--rules shipped` names those of Hapax." in " ".join(
        refused.output.split()
    )


@pytest.mark.usefixtures("air")
def test_faulty_rules_are_not_kept() -> None:
    """Rules that are rejected leave the kept ones as they were."""
    run("derive", "air.rules", "--db", "air.db")
    Path("faulty.rules").write_text("p(X) q(X) -> r(", encoding="utf-8")

    with hapax.KnowledgeBase("air.db") as kb:
        for path in ("faulty.rules", "missing.rules"):
            with pytest.raises(hapax.RulesRejected):
                hapax.keep_rules(kb, path)
        assert [record.name for record in kb.rule_texts()] == ["air.rules"]


@pytest.mark.usefixtures("air")
def test_shipped_rules_are_kept_by_name() -> None:
    """The shipped rules come with Hapax, so a knowledge base keeps only that they were used."""
    with hapax.KnowledgeBase("air.db") as kb:
        hapax.keep_rules(kb, "air.rules")
        kept = hapax.keep_rules(kb, "shipped", "air.rules")
        library = hapax.kept_rules(kb)
        texts = {record.name: len(record.text) for record in kb.rule_texts()}

    assert kept.names == ("shipped", "air.rules")
    assert library is not None
    assert len(library.rules) == len(hapax.load_rules("shipped", "air.rules").rules)
    assert texts == {"shipped": 0, "air.rules": len(RULES)}


@pytest.mark.usefixtures("air")
def test_merging_brings_the_rules_along() -> None:
    """A merged knowledge base keeps the rules of both."""
    run("derive", "air.rules", "--db", "air.db")
    run("merge", "air.db", "--db", "new.db")

    with hapax.KnowledgeBase("new.db") as kb:
        assert [record.name for record in kb.rule_texts()] == ["air.rules"]
