"""Searches over given facts: what no model is needed for is tested before anything is ranked or cut."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from cli_fixture import invoke
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from random_cases import cases
from search_fixture import SILENT, scripted, searched, sentences

import hapax

THIN_AIR = """
given flies_to(Person, Airport): "[1] flies to [2]" / "[1] does not fly to [2]" / "does [1] fly to [2]?"
given lies_at(Airport, Elevation): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?"
given may_feel_dizzy_at(Person, Airport): "[1] may feel dizzy at [2]" / "[1] cannot feel dizzy at [2]" / "may [1]?"
type Elevation < Number
@name thin_air
flies_to(Person X, Airport A) & lies_at(Airport A, Elevation E) & E > 8000 -> may_feel_dizzy_at(Person X, Airport A)
"""
MONEY = """
type Elevation < Number
oracle is_flown_by(Airport, Airline): "[1] is flown by [2]" / "[1] is not flown by [2]" / "is [1] flown by [2]?"
given lies_at(Airport, Elevation): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2]?"
given closed(Airport): "[1] is closed" / "[1] is not closed" / "is [1] closed?"
given works_at(Person, Airport): "[1] works at [2]" / "[1] does not work at [2]" / "does [1] work at [2]?"
given knows_pilots_of(Person, Airline): "[1] knows pilots of [2]" / "[1] knows no pilots of [2]" / "does [1] know [2]?"
@name pilots
works_at(Person X, Airport A) & is_flown_by(Airport A, Airline B) & lies_at(Airport A, Elevation E) & E > 10
  & not closed(Airport A) -> knows_pilots_of(Person X, Airline B)
"""
CROWDED = [(f"Airport {number}", 9000) for number in range(900)]
"""As many high airports as no beam keeps."""


def base(rules: hapax.Library, path: Path | None = None, **facts: list[tuple[Any, ...]]) -> hapax.KnowledgeBase:
    """A knowledge base of given facts."""
    kb = hapax.KnowledgeBase(path) if path else hapax.KnowledgeBase()
    for predicate, given_rows in facts.items():
        hapax.add_facts(kb, predicate, given_rows, rules)
    return kb


def test_a_comparison_is_tested_before_the_beam_cuts() -> None:
    """A search finds all 61 of 2,000 airports that lie above 8,000 feet, and the plan foresees them, although a beam keeps 200."""
    rules = hapax.parse_rules(THIN_AIR)
    airports = [(f"Airport {n}", 8001 + n if n % 32 == 7 and n < 1952 else n) for n in range(2000)]
    kb, models = base(rules, lies_at=airports), scripted(SILENT)
    (rule,) = hapax.plan(rules, kb, models, hapax.SearchSettings(profile="hapax")).rules
    result = searched(rules, models, kb, beam=200)

    assert result.report.rules[0].pool == 61
    assert [(step.variable, step.values.expected) for step in rule.steps] == [("A", 61), ("E", 61)]


def test_a_model_is_asked_about_the_values_that_given_facts_allow_alone() -> None:
    """Comparisons and negations over given facts come first, and no type of a given value is ever judged."""
    rules = hapax.parse_rules(MONEY)
    kb = base(rules, lies_at=[("Low", 5), ("High", 20), ("Old", 30)], closed=[("Old",)])
    models = scripted(
        {
            "generate": {"'High is flown by [B]'": ["Air One"]},
            "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []},
        }
    )
    result = searched(rules, models, kb)

    assert sentences(result) == {"If PersonX works at High, then PersonX knows pilots of Air One."}
    assert all("High" in prompt for prompt in models.knowledge.prompts)
    assert not any("airport" in claim.casefold() for claim in models.critic.claims)


RULES_OF_NEAR = (
    "near(Node A, Node B) -> reaches(Node A, Node B)",
    'near(Node A, "b") -> reaches(Node A, "b")',
    "start(Node A) & near(Node A, Node B) & near(Node B, Node C) -> reaches(Node A, Node C)",
    "start(Node A) & near(Node B, Node A) & not start(Node B) -> reaches(Node A, Node B)",
    "near(Node A, Node A) & start(Node A) -> reaches(Node A, Node A)",
    "near(Node A, Node B) & near(Node C, Node D) & A \\= C & D = B -> reaches(Node A, Node C)",
)
NODES = st.sampled_from(("a", "b", "c", "d", 2, Decimal("2.0")))
CHAIN = list(pairwise("abcdefg"))


@settings(max_examples=cases(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chosen=st.lists(st.sampled_from(RULES_OF_NEAR), min_size=1, max_size=3, unique=True),
    near=st.lists(st.tuples(NODES, NODES), min_size=1, max_size=7),
    start=st.lists(st.tuples(NODES), min_size=1, max_size=3),
    declared=st.sets(st.sampled_from(("symmetric", "transitive"))),
    kind=st.sampled_from(("given", "oracle")),
)
@example(list(RULES_OF_NEAR[:1]), CHAIN, [("a",)], {"transitive"}, "given")
@example(list(RULES_OF_NEAR[:1]), CHAIN[::-1], [("a",)], {"transitive"}, "oracle")
@example(list(RULES_OF_NEAR[:1]), CHAIN, [("a",)], {"symmetric", "transitive"}, "given")
def test_a_search_without_a_beam_finds_what_derive_finds(
    chosen: list[str], near: list[Any], start: list[Any], declared: set[str], kind: str
) -> None:
    """Of constants, repeated variables, negation, comparison, declarations and long chains: equal statements.

    A silent model adds nothing to the given facts of a predicate that models may be asked about; of others none is asked.
    """
    lines = [f'{kind} near(Node, Node): "[1] is near [2]" / "[1] is not near [2]" / "is [1] near [2]?".']
    lines += ["given start(Node)", *(f"{declaration} near/2" for declaration in sorted(declared))]
    lines += [f"@name r{number}\n@generic none\n{rule}" for number, rule in enumerate(chosen)]
    rules = hapax.parse_rules("\n".join(lines))
    models = scripted(SILENT)
    kb = base(rules, near=near, start=start)
    derived = {(item.rule, item.text) for item in hapax.derive(rules, kb).statements}
    result = searched(rules, models, kb, beam=None)

    assert {(item.rule, item.text) for item in result.statements} == derived
    assert kind == "oracle" or (models.knowledge.prompts, models.critic.claims) == ([], [])


def test_what_a_beam_cuts_is_said_where_people_read_it(tmp_path: Path) -> None:
    """The closing output says how many of a step were kept; `--beam all` cuts and ranks nothing."""
    rules, path = tmp_path / "thin.rules", tmp_path / "thin.db"
    rules.write_text(THIN_AIR, "utf-8")
    library = hapax.load_rules(rules)
    base(library, path, lies_at=CROWDED).close()
    command = ("search", rules, "--db", path, "-m", "simulated", "--no-progress")
    cut = invoke(*command)
    whole = invoke(*command, "--beam", "all")

    assert "900 values ranked, 400 kept (head 200, long tail 200)" in cut.output
    assert "values ranked" not in whole.output
    assert "900 head and 900 long-tail statements" in whole.output


THIRDS = """
given size(Thing, Number).
oracle seen(Thing, Number): "[1] is seen at [2]" / "[1] is not seen at [2]" / "is [1] seen at [2]?".
@name third
@generic none
size(Thing X, Number N) & Number K = N / 3 & K * 3 = N -> third_of(Thing X, Number K).
@name again
@generic none
third_of(Thing X, Number K) & Number M = K * 6 & M > 1 -> double_of(Thing X, Number M).
@name pairs
@generic none
third_of(Thing X, Number K) & third_of(Thing Y, Number K) & X \\= Y -> same(Thing X, Thing Y).
@name sighting
@generic none
size(Thing X, Number N) & Number K = N / 3 & seen(Thing X, Number K) -> is_sighted(Thing X).
fact size("a", 1).
fact size("b", 2).
fact size("c", 3).
fact size("d", 1).
fact size("e", 0.4).
"""


def test_thirds_are_exact_in_search_derive_and_query() -> None:
    """A number without a decimal form that ends is calculated with, joined and concluded alike, and never asked about."""
    rules, kb, models = hapax.parse_rules(THIRDS), hapax.KnowledgeBase(), scripted(SILENT)
    derived = {(item.rule, item.text) for item in hapax.derive(rules, kb).statements}
    found = searched(rules, models, kb, beam=None).statements
    answers = hapax.query("third_of(X, K), Y is K * 3", rules, kb)

    assert {(item.rule, item.text) for item in found} == derived
    assert sorted(rule for rule, _ in derived) == ["again"] * 4 + ["pairs"] * 2
    assert {row["Y"] for row in answers} == {1, 2, 3, Decimal("0.4")}
    assert not any("seen at" in prompt for prompt in models.knowledge.prompts)
