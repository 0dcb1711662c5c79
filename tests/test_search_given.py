"""Searches over given facts: what no model is needed for is tested before anything is ranked or cut."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from test_bulk_inference import facts, programs

from hapax.engine.inference.bulk_derivation import derive_all, read_statements
from hapax.engine.inference.session import PrologSession
from hapax.engine.search.job import SearchJob
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.scripted import ScriptedModel

THIN_AIR = """
given flies_to(Person, Airport): "[1] flies to [2]" / "[1] does not fly to [2]" / "does [1] fly to [2]?"
given lies_at(Airport, Elevation): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?"
given may_feel_dizzy_at(Person, Airport): "[1] may feel dizzy at [2]" / "[1] cannot feel dizzy at [2]" / "may [1]?"
type Elevation < Number
@name thin_air
flies_to(Person X, Airport A) & lies_at(Airport A, Elevation E) & E > 8000 -> may_feel_dizzy_at(Person X, Airport A)
"""
AIRPORTS, HIGH = 7836, 61


def airports() -> list[FactRecord]:
    """As many airports as a public list has, of which 61 lie above 8,000 feet."""
    facts = []
    for number in range(AIRPORTS):
        # The high ones lie between the others, so that neither end of a ranking has all of them.
        is_high = number % (AIRPORTS // HIGH) == 7 and number // (AIRPORTS // HIGH) < HIGH
        elevation = 8001 + number if is_high else number % 8000
        facts.append(FactRecord("lies_at", (f"Airport {number}", elevation), ("Airport", "Elevation"), Source.GIVEN))
    return facts


def silent_model() -> ScriptedModel:
    """A model that proposes nothing, denies everything and finds all texts equally likely."""
    return ScriptedModel({"generate": {}, "defaults": {"critic": 0.0, "likelihood": -10.0, "generate": []}})


def searched(rules: str, rows: list[FactRecord], **chosen: object) -> tuple[SearchReport, ScriptedModel]:
    """The report of a search of all rules, and the model that it asked."""
    library = parse_library([("given.rules", rules)])
    model = silent_model()
    kb = KnowledgeBase()
    kb.add_facts(rows)
    models = Models(model, model, model, model)
    return search(SearchJob(library, library.rules, kb, models, SearchSettings(**chosen))), model  # type: ignore[arg-type]


def statements(report: SearchReport) -> set[str]:
    return {statement.text for statement in report.statements}


def test_a_comparison_is_tested_before_the_beam_cuts() -> None:
    """A search finds all 61 of 7,836 airports that lie above 8,000 feet, although its beam keeps 200."""
    report, _ = searched(THIN_AIR, airports())

    assert len(statements(report)) == HIGH


PROGRAMS = int(os.environ.get("HAPAX_TEST_PROGRAMS", "40"))
"""Random programs that are compared; HAPAX_TEST_PROGRAMS=1000 compares more."""


@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), rows=facts())
def test_a_search_without_a_beam_finds_what_derive_finds(
    program: str, rows: list[FactRecord], prolog: PrologSession
) -> None:
    """Constants, repeated variables, negation, comparisons, arithmetic, definitions and recursion: equal statements."""
    library = parse_library([("random.rules", program)])
    named = [library.rule("told"), library.rule("r2")]
    model = silent_model()
    with KnowledgeBase() as kb:
        kb.add_facts(replace(row, source=Source.GIVEN) for row in rows)
        derive_all(kb, library, named, session=prolog)
        derived = {rule.name: {(item.id, item.text) for item in read_statements(kb, library, rule, prolog)} for rule in named}
        chosen = SearchSettings(beam=None, distributions=(Distribution.HEAD,))
        # A process for each program would take most of the time.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hapax.engine.search.search.PrologSession", lambda: nullcontext(prolog))
            report = search(SearchJob(library, named, kb, Models(model, model, model, model), chosen))

    found = {rule.rule: {(item.id, item.text) for item in rule.statements[Distribution.HEAD]} for rule in report.rules}
    assert found == derived
    assert not model.prompts
    assert not model.claims
