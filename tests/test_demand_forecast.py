"""The forecast of what a goal would ask models, beside what it then asks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from openai_fake import FakeServer

import hapax
from hapax.api.agent_tools import AgentTools, AskingModels
from hapax.engine.search.demand_forecast import DemandForecast
from hapax.engine.search.plan import RoleEstimate
from hapax.kb.store import KnowledgeBase

RULES = """
oracle lies_in(City X, Country Y):
    "[X] lies in [Y]".
oracle uses(Country X, Currency Y):
    "[X] uses the [Y]".
"""
SCRIPT = {"defaults": {"generate": ["Norway", "Peru"], "critic": 0.95}}
GOAL = "lies_in('Oslo', C), uses(C, Currency)"


@pytest.fixture
def tools(tmp_path: Path) -> AgentTools:
    (tmp_path / "my.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    KnowledgeBase(tmp_path / "kb.db").close()
    models = hapax.open_models(f"scripted:{tmp_path / 'script.json'}")
    asking = AskingModels(models, hapax.Budget(max_calls=500))
    return AgentTools(tmp_path / "kb.db", [tmp_path / "my.rules"], asking=asking)


def test_rounds_after_the_first_are_forecast(tools: AgentTools) -> None:
    """A goal whose second atom waits for the first one's values has two rounds, and a run stays within the limits."""
    forecast = tools.forecast(GOAL)
    tools.ask(GOAL)
    used = tools._used.calls
    whole = forecast.whole

    assert len(forecast.questions) == 1
    assert whole.rounds == 2
    assert 1 < whole.questions.expected < whole.questions.most
    assert forecast.calls < whole.calls.expected < whole.calls.most
    assert used <= whole.calls.most + whole.claims.most


def test_a_forecast_writes_nothing(tools: AgentTools, tmp_path: Path) -> None:
    """Invented values are in no table afterwards, and no model was called."""
    tools.forecast(GOAL)

    assert tools._used.calls == 0
    with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        assert {name: count for name, count in kb.row_counts().items() if count} == {}


def test_one_question_has_one_round(tools: AgentTools) -> None:
    """A goal of one atom raises no further question, so its limits are those of the question itself."""
    whole = tools.forecast("lies_in('Oslo', C)").whole

    assert whole.rounds == 1
    assert (whole.questions.most, whole.calls.most) == (1, 4)
    assert whole.claims.most == 4 * 50 * 2


def test_what_is_known_is_not_forecast(tools: AgentTools) -> None:
    """After the models have answered, there is nothing left to pay for."""
    tools.ask(GOAL)
    whole = tools.forecast(GOAL).whole

    assert (whole.rounds, whole.calls.expected, whole.claims.expected, whole.cost) == (0, 0, 0, (0.0, 0.0))


def test_money_is_forecast_by_the_prices_of_the_models(tools: AgentTools, tmp_path: Path) -> None:
    """The cost is that of the expected calls at the alias's prices, and without a price it is unknown."""
    with FakeServer() as fake:
        alias = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, "price_in": 2, "price_out": 8}
        (tmp_path / "models.yaml").write_text(json.dumps([alias]), "utf-8")
        models = hapax.open_models("openai:small", "embedded", "embedded", aliases=tmp_path / "models.yaml")
        asking = AskingModels(models, hapax.Budget(max_cost=1.0))
        opened = len(fake.asked)
        priced = AgentTools(tmp_path / "kb.db", [tmp_path / "my.rules"], asking=asking).forecast(GOAL).whole
        assert len(fake.asked) == opened
    knowledge = priced.estimate.roles["knowledge"]

    assert priced.cost is not None
    expected, most = priced.cost
    assert 0 < expected < most
    # Tokens cost between 2 and 8 a million.
    assert 2 * knowledge.tokens.expected < expected * 1e6 < 8 * knowledge.tokens.expected
    assert replace(priced, estimate=replace(priced.estimate, roles=unpriced(priced))).cost is None


def unpriced(forecast: DemandForecast) -> dict[str, RoleEstimate]:
    """The roles without prices."""
    return {name: replace(role, cost=None) for name, role in forecast.estimate.roles.items()}
