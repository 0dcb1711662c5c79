"""Searches with all kinds of settings, to the last record: reports and contents are in `tests/golden/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents
from recorded_searches import SMALL, job_of, planned, searched

from hapax.engine.certificates import Promise
from hapax.engine.explain import story_text, why, why_not
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.search.demand import DemandBudget, run_demand
from hapax.engine.search.demand_forecast import forecast_demand
from hapax.engine.search.oracle import Oracle
from hapax.engine.search.plan import plan_run
from hapax.engine.search.search import search
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.errors import HapaxError
from hapax.kb.records import Distribution, FactLabel, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget, Price
from hapax.llm_oracle.pace import ServerPace
from hapax.llm_oracle.protocols import Models, Usage
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld

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
    "falling": {"fact_threshold": CriticRule.parse("start=0.9999,floor=0.2")},
}


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


class Voting(SimulatedModel):
    """A model at a server, whose verdict on a claim takes three requests."""

    pace = ServerPace(4, rpm=600.0, tpm=20_000.0, latency=0.5, speed=30.0)

    def reserved(self, claim: str) -> Usage:
        return Usage(40, 92, 3)


@pytest.mark.parametrize("likelihood", ["model", "none"])
def test_requests_of_votes_money_and_time_are_forecast_alike(ports: KnowledgeBase, likelihood: str) -> None:
    """A claim counts as often as the critic is asked about it, and each role has its price and the server's pace."""
    job = job_of(ports, {"likelihood": likelihood, "rules_together": 2})
    model = Voting(SimulatedWorld(job.library, 1, SMALL))
    plain, voting = job.models.knowledge, Models(model, model, model, model)
    prices = {model.identity.name: Price(2.0, 7.0)}
    lines = []
    for models in (voting, Models(plain, model, plain, plain), Models(model, plain, model, model)):
        for known in ({}, prices):
            estimate = plan_run(job.library, job.rules, job.kb, models, job.settings, prices=known)
            lines += [f"{role}: {figures}" for role, figures in estimate.roles.items()]
            lines.append(f"{estimate.calls} {estimate.cost}")

    compared(f"search/forecast_of_votes_{likelihood}", "\n".join(lines) + "\n")


@pytest.mark.parametrize("role", ["critic", "likelihood", "all"])
def test_a_search_whose_verdicts_a_budget_ends_goes_on(ports: KnowledgeBase, role: str) -> None:
    """Where claims or texts are not paid for any more, the report says so, and the next search judges the rest."""
    roles = frozenset(("knowledge", "critic", "likelihood", "evaluator") if role == "all" else (role,))
    lines = []
    for limit in (3, 60):
        with KnowledgeBase() as kb:
            kb.add_facts(ports.facts())
            first = searched(job_of(kb, {"rules_together": 3}, Budget(max_calls=limit, roles=roles)))
            middle = contents(kb, shown=0)
            second = searched(job_of(kb, {"rules_together": 3}))
            texts = (first, middle, second, contents(kb, shown=0))
            lines += [f"# {limit}: {' '.join(checksum(text.splitlines()) for text in texts)}"]
            lines += [line[:200] for line in first.splitlines()[:11]]
    compared(f"search/budget_of_{role}", "\n".join(lines) + "\n")


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
    """A goal's first needs, its questions, verifications and answers at each limit, and its forecast are those read over."""
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


def test_goals_are_forecast_without_a_critic(ports: KnowledgeBase, prolog: PrologSession) -> None:
    """Rounds, questions and calls of a goal before anything was asked and afterwards; no claim is judged."""
    job = job_of(ports, {"critic": False})
    theory = Theory(job.library, ports, ("owns(ann, 'Argo')", "likes(ann, vusiru)", "studies(ann, gubepo)"))
    lines: list[str] = []

    def forecast_all(title: str) -> None:
        for goal in DEMANDED:
            found = forecast_demand(theory, goal, job.models, job.settings)
            lines.append(f"{title} {goal}: {found.rounds}, {found.questions}, {found.calls}, {found.claims}")

    forecast_all("before")
    oracle = Oracle(ports, job.library, job.models, job.settings.oracle, run_id="query", journal=job.journal)
    run_demand(theory, "can_reach(ann, A)", oracle, DemandBudget(questions=3, verifications=2), session=prolog)
    forecast_all("after")

    compared("search/goals_forecast", "\n".join(lines) + "\n")


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
