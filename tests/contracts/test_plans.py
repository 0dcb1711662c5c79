"""The plan of a search: calls, claims and money before anything is asked, beside what the search then takes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cli_fixture import invoke
from search_fixture import ALLERGY, OLDER, SILENT, rules_of, scripted, searched, simulated

import hapax
from benchmarks.server import simulated_server

SETTINGS = hapax.SearchSettings(profile="hapax", beam=8, calls_per_question=2, values_per_call=15)
SAME: dict[str, Any] = {"beam": 8, "calls_per_question": 2, "values_per_call": 15}
OLD = """
@name old
owns(Person X, Tool A) & was_invented_in("telescope", Year V) & was_invented_in(Tool A, Year V) -> is_old(Person X, Tool A).
"""
BOXES = """
type Gram < Number
type Kilogram < Number
given weighs(Box, Gram)
oracle is_printed_on(Label, Box): "[1] is printed on [2]" / "[1] is not printed on [2]" / "?".
@name heavy
@generic none
weighs(Box A, Gram G) & K = G / 1000 & K > 1 -> is_heavy(Box A, Kilogram K).
"""

DISHES = """
given is_in(Cheese, Dish)
given hates(Person, Cheese): "[1] hates [2]"
@name within
@generic none
is_in(Cheese C, Dish D) -> contains(Dish D, Cheese C).
@name avoids
hates(Person X, Cheese C) & contains(Dish D, Cheese C) -> avoids(Person X, Dish D).
"""


class Reluctant:
    """A model that answers questions with one right value with 1608, and only each tenth time that one is asked."""

    def __init__(self, model: Any) -> None:
        self.identity, self._model = model.identity, model
        self._asked: Counter[str] = Counter()

    def generate(self, requests: Any, parameters: Any) -> Any:
        replies = []
        for request, reply in zip(requests, self._model.generate(requests, parameters), strict=True):
            self._asked[request.prompt] += 1
            text = "" if self._asked[request.prompt] % 10 else "1. 1608."
            replies.append(replace(reply, text=text) if "correct value" in request.prompt else reply)
        return replies


def calls(estimate: Any) -> dict[str, Any]:
    return {role: estimated.calls for role, estimated in estimate.roles.items()}


@pytest.mark.parametrize("way", [{"profile": "hapax"}, {"compat": "paper"}, {"compat": "released"}], ids=str)
@pytest.mark.parametrize("knowledge", [lambda model: model, Reluctant], ids=["ready", "reluctant"])
@pytest.mark.parametrize("text", [ALLERGY, OLDER, OLD])
def test_a_plan_asks_and_writes_nothing_and_bounds_the_search(text: str, way: dict[str, Any], knowledge: Any) -> None:
    """In each role the search sends at most the upper limit, and afterwards the same plan is free.

    A model that gives the one right value late takes every sample that a question may need.
    """
    library, kb = rules_of(text), hapax.KnowledgeBase()
    world, settings = simulated(library), hapax.SearchSettings(**SAME, **way)
    models = hapax.Models(knowledge(world.knowledge), world.critic, world.likelihood, world.evaluator)
    estimate = hapax.plan(library, kb, models, settings)
    empty = not any(hapax.stats(kb).counts.values())
    spent = hapax.search(library, kb, models, settings).report.statistics
    again = hapax.plan(library, kb, models, settings)

    assert empty
    assert 0 < estimate.calls.expected <= estimate.calls.most
    assert all(used.calls <= calls(estimate)[role].most for role, used in spent.items())
    assert {(count.expected, count.most) for role, count in calls(again).items() if role != "evaluator"} == {(0, 0)}


def test_a_plan_over_given_facts_and_equations_is_exact() -> None:
    """Where given facts and arithmetic decide every step, the plan has what the search then does."""
    rules, kb = hapax.parse_rules(BOXES), hapax.KnowledgeBase()
    hapax.add_facts(kb, "weighs", [("crate", 2000), ("bag", 900), ("trunk", 1500)], rules)
    estimate = hapax.plan(rules, kb, scripted(SILENT), SETTINGS)
    (rule,) = estimate.rules
    result = searched(rules, scripted(SILENT), kb, **SAME)

    assert [(step.variable, step.values.expected, step.values.most) for step in rule.steps] == [
        ("A", 2, 2),
        ("G", 2, 2),
        ("K", 2, 2),
    ]
    assert (rule.statements.expected, rule.statements.most) == (2, 2) == (len(result.statements),) * 2
    assert {
        (count.expected, count.most) for role, count in calls(estimate).items() if role in ("knowledge", "critic")
    } <= {(0, 0)}


def test_a_plan_knows_what_follows_from_given_facts() -> None:
    """Rows that rules derive from given facts bound a plan, not all that a goal might ever return."""
    rules, kb = hapax.parse_rules(DISHES), hapax.KnowledgeBase()
    hapax.add_facts(kb, "is_in", [("brie", "toast"), ("cheddar", "toast"), ("brie", "tart")], rules)
    (rule,) = hapax.plan(rules, kb, scripted(SILENT), SETTINGS, only=["avoids"]).rules

    assert [(step.variable, step.values.expected, step.values.most) for step in rule.steps] == [
        ("C", 2, 2),
        ("D", 3, 3),
    ]


def test_a_forecast_needs_no_server_key_or_library(tmp_path: Path) -> None:
    """An alias that states its abilities is believed; what is not stated is a range."""
    served = "model_name: m, api_base: 'http://127.0.0.1:9/v1', latency: 0.5, max_concurrency: 10"
    aliases, rules = tmp_path / "models.yaml", tmp_path / "a.rules"
    aliases.write_text(
        f"- {{model_id: big, {served}, logprobs: output, price_in: 1, price_out: 2}}\n"
        f"- {{model_id: voting, {served}, logprobs: none, rpm: 60}}\n"
        f"- {{model_id: unstated, {served}, attempts: 1}}\n",
        encoding="utf-8",
    )
    rules.write_text(ALLERGY, encoding="utf-8")
    options = (rules, "--aliases", aliases, "--db", tmp_path / "none.db", "--json", "--likelihood", "frequency")

    knowledge = json.loads(invoke("plan", *options, "-m", "openai:big").stdout)["roles"]["knowledge"]
    critic = json.loads(invoke("plan", *options, "-m", "openai:big", "--critic", "openai:voting").stdout)["roles"][
        "critic"
    ]
    unstated = json.loads(invoke("plan", *options, "-m", "openai:unstated").stdout)["roles"]["critic"]

    assert knowledge["cost"][0] > 0
    # Ten at a time, half a second each, and no faster than the rounds of the calls allow.
    assert knowledge["calls"]["expected"] * 0.05 <= knowledge["seconds"][0] <= knowledge["calls"]["expected"] * 0.5
    assert critic["seconds"][0] == critic["calls"]["expected"]  # one a second
    assert unstated["assumed"]
    assert unstated["calls"]["most"] >= 10 * unstated["calls"]["expected"]  # at most ten votes each


def test_the_plan_of_a_new_server_is_near_what_the_search_sends(tmp_path: Path) -> None:
    """Requests, tokens and money of paid roles, with claims and lists together, though the server was never asked."""
    rules, aliases = tmp_path / "allergy.rules", tmp_path / "models.yaml"
    rules.write_text(ALLERGY, "utf-8")
    with simulated_server(hapax.load_rules(rules), 7, 0.0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        alias = {"model_id": "small", "model_name": "simulated", "api_base": server.url, "price_in": 1, "price_out": 4}
        aliases.write_text(json.dumps([alias]), "utf-8")
        common = ("--likelihood", "frequency", "--db", tmp_path / "kb.db", "--beam", "30", "--json")
        options = (rules, "-m", "openai:small", "--aliases", aliases, *common)
        planned = json.loads(invoke("plan", *options).stdout)["roles"]
        assert not server.usages
        result = invoke("search", *options)
        assert result.exit_code == 0, result.output
        server.shutdown()
    spending = json.loads(invoke("model", "ledger", "--db", tmp_path / "kb.db", "--json").stdout)["spending"]

    for row in spending:
        if row["role"] in planned:
            expected = planned[row["role"]]
            tokens = row["prompt_tokens"] + row["completion_tokens"]
            figures = [
                (expected["calls"]["expected"], row["requests"]),
                (expected["tokens"]["expected"], tokens),
                (expected["cost"][0], row["cost"]),
            ]
            for figure, used in figures:
                assert used / 1.3 <= figure <= 1.3 * used, (row["role"], figures)
