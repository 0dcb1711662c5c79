"""Searches with all kinds of settings, to the last record: reports and contents are in `tests/golden/`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden_fixture import compared
from kb_contents import contents

from hapax.engine.search.job import SearchJob
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

RULES = """
type Isle < Place
oracle lies_near(Isle, Place): "[1] lies near [2]" / "[1] does not lie near [2]" / "does [1] lie near [2]?"
oracle has_harbour(Place): "[1] has a harbour" / "[1] has no harbour" / "does [1] have a harbour?"
functional was_settled_in(Isle, Year): "[1] was settled in [2]" / "[1] was not settled in [2]" / "?"
given sails(Ship, Place): "[1] sails to [2]" / "[1] does not sail to [2]" / "does [1] sail to [2]?"
computed is_early(Year Y) := Y < 1500
symmetric lies_near/2
aggregate neighbours(Isle A, Number N) := N = count(Place B: lies_near(Isle A, Place B))
@name trip
owns(Person X, Ship S) & sails(Ship S, Place B) & lies_near(Isle A, Place B) -> can_reach(Person X, Isle A)
@name stay
@most 3 per A
likes(Person X, Isle A) & lies_near(Isle A, Place B) & not has_harbour(Place B) -> must_swim_from(Person X, Place B)
@name old
studies(Person X, Isle A) & was_settled_in(Isle A, Year Y) & is_early(Year Y) -> digs_on(Person X, Isle A)
@name pair
@generic none
lies_near(Isle A, Place C) & lies_near(Isle B, Place C) & A \\= B -> shares_coast_with(Isle A, Isle B)
@name busy
visits(Person X, Isle A) & neighbours(Isle A, Number N) & N > 1 -> island_hops_from(Person X, Isle A)
@name named
knows(Person X, "Capri") & lies_near("Capri", Place B) -> has_heard_of(Person X, Place B)
"""
SMALL = SimulationSettings(entities_per_type=14, facts_per_argument=4.0)
GIVEN = [("sails", ("Argo", f"place {number}")) for number in range(3)]

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "link": {"compat": "paper"},
    "released": {"compat": "released"},
    "overlapping": {"ends": "overlapping", "measure": "paper", "keep_share": 0.5},
    "total": {"measure": "total", "keep_share": 0.2, "max_statements": 2},
    "random": {"likelihood": "random", "seed": 3},
    "unranked": {"likelihood": "none"},
    "uncritical": {"critic": False},
    "head": {"distributions": (Distribution.HEAD,), "plan": "conclusion-first"},
    "tail": {"distributions": (Distribution.LONG_TAIL,), "plan": "premise-first", "rules_together": 1},
    "narrow": {"beam": 1, "calls_per_question": 1, "values_per_call": 3},
    "wide": {"beam": None, "calls_per_question": 3},
    "strict": {"fact_threshold": CriticRule.parse("0.97"), "type_threshold": CriticRule.parse("0.9")},
    "capped": {"threshold_cap": 0.5, "temperature": 0.0},
}


def searched(kb: KnowledgeBase, options: dict[str, Any]) -> str:
    """The report of a search: a line for each figure, each rule and each step."""
    library = parse_library([("islands.rules", RULES)])
    model = SimulatedModel(SimulatedWorld(library, 1, SMALL))
    settings = SearchSettings(**{"beam": 5, "calls_per_question": 2, "values_per_call": 8, **options})
    report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model), settings))
    lines = [f"{name}: {json.dumps(value)}" for name, value in report.summary().items() if name != "rules"]
    for rule in report.rules:
        figures = rule.to_json()
        steps = figures.pop("account")
        lines += [json.dumps(figures), *(f"  {json.dumps(step)}" for step in steps)]
        lines += [f"  {rule.shortage(settings.compat)}; {rule.equal_scores}; {rule.is_small}; {rule.is_empty}"]
        lines += [f"  {end}: {text}" for end in Distribution for text in rule.examples(end)]
    return "\n".join(lines)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_search_is_recorded_to_the_last_row(name: str) -> None:
    """Counts of gates, accounts of steps, statements, facts and verdicts of a search are those that were read over."""
    with KnowledgeBase() as kb:
        kb.add_facts(FactRecord(name, values, ("Ship", "Place"), Source.GIVEN) for name, values in GIVEN)
        report = searched(kb, SETTINGS[name])

        compared(f"search_{name}", f"{report}\n{contents(kb)}")
