"""Searches with all kinds of settings, to the last record: reports and contents are in `tests/golden/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents

from hapax.engine.certificates import Promise
from hapax.engine.explain import story_text, why, why_not
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.search.demand import DemandBudget, run_demand
from hapax.engine.search.demand_forecast import forecast_demand
from hapax.engine.search.job import SearchJob
from hapax.engine.search.oracle import Oracle
from hapax.engine.search.plan import plan_orders, plan_run
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution, FactLabel, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
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


class Events:
    """A display of progress that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values: self.lines.append(f"{name} {', '.join(map(str, values))}")


class Atlas:
    """Knows every second place by a canonical name."""

    def canonical(self, value: str, data_type: str) -> str | None:
        return f"{value.title()} ({data_type})" if len(value) % 2 else None


def job_of(
    kb: KnowledgeBase, options: dict[str, Any], budget: Budget | None = None, *, rules: str = RULES
) -> SearchJob:
    library = parse_library([("islands.rules", rules)])
    model = SimulatedModel(SimulatedWorld(library, 1, SMALL))
    names = (Atlas(),) if options.get("names") else ()
    chosen = {name: value for name, value in options.items() if name != "names"}
    settings = SearchSettings(**{"beam": 5, "calls_per_question": 2, "values_per_call": 8, **chosen})
    models = Models(model, model, model, model, names)
    return SearchJob(library, library.rules, kb, models, settings, Journal(kb, budget), Events())


def searched(job: SearchJob) -> str:
    """The report of a search: a line for each figure, each rule, each step and each event of its progress."""
    try:
        report = search(job)
    except HapaxError as refusal:
        return f"{type(refusal).__name__}: {refusal}\n{shown(job.progress)}"
    lines = [f"{name}: {json.dumps(value)}" for name, value in report.summary().items() if name != "rules"]
    for rule in report.rules:
        figures = rule.to_json()
        steps = figures.pop("account")
        lines += [json.dumps(figures), *(f"  {json.dumps(step)}" for step in steps)]
        lines += [f"  {rule.shortage(job.settings.compat)}; {rule.equal_scores}; {rule.is_small}; {rule.is_empty}"]
        lines += [f"  {end}: {text}" for end in Distribution for text in rule.examples(end)]
    return "\n".join([*lines, shown(job.progress)])


def shown(progress: Any) -> str:
    return "\n".join(progress.lines)


def planned(job: SearchJob) -> str:
    """The forecast of a search: a line for each rule, step, order and role."""
    estimate = plan_run(job.library, job.rules, job.kb, job.models, job.settings)
    lines = []
    for rule in estimate.rules:
        lines += [f"{rule.rule}: {rule.generic}; {rule.order}; {rule.statements}; {rule.scored}; {rule.skipped}"]
        lines += [f"  {step}" for step in rule.steps]
    # The time is measured.
    lines += [f"{role}: {replace(figures, seconds=None)}" for role, figures in estimate.roles.items()]
    for name, orders in plan_orders(job.library, job.rules, job.kb, job.models, job.settings).items():
        lines += [f"{name} {order.plan.order}: {order.steps}" for order in orders]
    return "\n".join(lines)


@pytest.fixture
def ports() -> Iterator[KnowledgeBase]:
    with KnowledgeBase() as kb:
        kb.add_facts(FactRecord(name, values, ("Ship", "Place"), Source.GIVEN) for name, values in GIVEN)
        yield kb


@pytest.mark.parametrize("name", SETTINGS)
def test_a_search_is_recorded_to_the_last_row(ports: KnowledgeBase, name: str) -> None:
    """Counts of gates, accounts of steps, statements, facts and verdicts of a search are those that were read over."""
    job = job_of(ports, SETTINGS[name])

    compared(f"search/{name}", f"{searched(job)}\n{contents(ports)}")


@pytest.mark.parametrize("name", ["defaults", "link", "released", "overlapping", "unranked", "uncritical", "wide"])
def test_a_search_is_forecast_alike(ports: KnowledgeBase, name: str) -> None:
    """Questions, calls, claims and texts of each step are forecast before a search, and by its answers after it."""
    before = planned(job_of(ports, SETTINGS[name]))
    search(job_of(ports, SETTINGS[name]))
    after = planned(job_of(ports, {**SETTINGS[name], "calls_per_question": 3}))

    compared(f"search/forecast_{name}", f"{before}\n\nafter the search\n{after}\n")


@pytest.mark.parametrize("limit", [0, 7, 30, 90])
@pytest.mark.parametrize("compat", [None, "released"])
def test_a_search_that_a_budget_ends_goes_on(ports: KnowledgeBase, limit: int, compat: str | None) -> None:
    """The report at the end of the budget, and that of the search that goes on, are those that were read over."""
    options = {"compat": compat, "rules_together": 2}
    first = searched(job_of(ports, options, Budget(max_calls=limit, roles=frozenset({"knowledge"}))))
    middle = contents(ports, shown=0)
    second = searched(job_of(ports, options))

    compared(f"search/budget_{compat}_{limit}", f"{first}\n{middle}\n{second}\n{contents(ports, shown=0)}")


def test_searches_of_a_knowledge_base_with_answers_are_recorded(ports: KnowledgeBase) -> None:
    """A second search asks only what is new, names change its values, and a promise needs labels."""
    told = [searched(job_of(ports, {})), searched(job_of(ports, {"calls_per_question": 3, "values_per_call": 9}))]
    told += [searched(job_of(ports, {"names": True})), searched(job_of(ports, {"promise": Promise(0.8, 0.8)}))]
    facts = [fact for fact in ports.facts() if fact.source is Source.MODEL]
    labels = [FactLabel(fact.predicate, fact.arguments, place % 7 > 0, "people") for place, fact in enumerate(facts)]
    ports.add_labels(labels)
    told += [searched(job_of(ports, {"promise": Promise(0.6, 0.6)}))]
    told += [searched(job_of(ports, {"promise": Promise(0.6, 0.6), "certify_by": "predicate"}))]
    told += [searched(job_of(ports, {"calibrated": True})), contents(ports, shown=1)]

    compared("search/answered", "\n\n".join(told))


DEMANDED = [
    "lies_near(A, B)", "can_reach(ann, A)", "must_swim_from(ann, B)", "digs_on(X, A)", "shares_coast_with(A, B)",
    "was_settled_in(A, Y), is_early(Y)", "has_harbour(B), \\+ sails(S, B)", "\\+ has_harbour('place 0')", "sails(S, P)",
    "lies_near(A, 'place 0')", "findall(B, has_harbour(B), L)",
]  # fmt: skip


@pytest.mark.parametrize("goal", DEMANDED, ids=range(len(DEMANDED)))
def test_goals_ask_what_they_need(ports: KnowledgeBase, goal: str, prolog: PrologSession) -> None:
    """What each goal needs first, what it asks, verifies and answers at each limit, and its forecast are those read over."""
    job = job_of(ports, {"values_per_call": 4, "calls_per_question": 1})
    assumed = ("owns(ann, 'Argo')", "likes(ann, vusiru)", "studies(ann, gubepo)")
    told = []
    for budget in (
        DemandBudget(rounds=0),
        DemandBudget(rounds=1),
        DemandBudget(questions=3),
        DemandBudget(verifications=2),
        DemandBudget(),
    ):
        theory = Theory(job.library, ports, assumed)
        forecast = forecast_demand(theory, goal, job.models, job.settings)
        told += [f"# {goal}, {budget.rounds}, {budget.questions}, {budget.verifications}"]
        told += [f"{forecast.rounds}, {forecast.questions}, {forecast.calls}, {forecast.claims}, {forecast.first}"]
        oracle = Oracle(ports, job.library, job.models, job.settings.oracle, run_id="query", journal=job.journal)
        found = run_demand(theory, goal, oracle, budget, session=prolog)
        told += [f"{found.result.columns} {found.result.rows[:20]} {found.result.truncated}"]
        told += [f"{found.rounds} rounds, {found.withheld}, {found.complete}, {found.stopped}"]
        told += [f"  asked {question.patterns} {question.data_type}" for question in found.asked]
        told += [f"  verified {atom}" for atom in found.verified] + [f"  missing {found.missing}"]
    told.append(contents(ports, shown=0))

    compared(f"search/demand_{DEMANDED.index(goal)}", "\n".join(told))


CONCLUDED = ("digs_on", "can_reach", "island_hops_from", "must_swim_from")


TOLD = {"defaults": 18, "link": 18, "overlapping": 18}
"""Stories of a search that are shown whole; of the others and of other searches the file has checksums."""


@pytest.mark.parametrize(
    "name", [*TOLD, "released", "total", "random", "unranked", "uncritical", "head", "tail", "narrow", "wide"]
)
def test_the_stories_of_a_search_are_told_alike(ports: KnowledgeBase, name: str, prolog: PrologSession) -> None:
    """Statements with the gates that they passed, and values with the steps that cut them, have these stories."""
    job = job_of(ports, SETTINGS[name])
    search(job)
    theory = Theory(job.library, ports)
    statements = sorted(ports.statements(), key=lambda statement: statement.id)
    told = [story_text(why(theory, statement.id, prolog)) for statement in statements[:6]]
    isles = sorted({fact.arguments[0] for fact in ports.facts() if fact.predicate in ("was_settled_in", "lies_near")})
    atoms = [f'{predicate}("PersonX", "{isle}")' for isle in isles[:3] for predicate in CONCLUDED]
    for text in atoms:
        try:
            told.append(story_text(why_not(theory, text, prolog)))
        except HapaxError as refusal:
            told.append(str(refusal))

    shown = TOLD.get(name, 0)
    lines = [*told[:shown], *(f"{checksum(story.splitlines())} {story[:200]}" for story in told[shown:])]
    compared(f"search/stories_of_{name}", "\n\n".join(lines) + "\n")
