"""Searches of a simulated world and their figures as texts, which tests compare with `tests/golden/`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hapax.engine.search.job import SearchJob
from hapax.engine.search.plan import plan_orders, plan_run
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution
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
