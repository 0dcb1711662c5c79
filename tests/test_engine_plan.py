"""What a run would cost, before anything is asked."""

import pytest
from test_engine_search import ALLERGY, OLDER, SMALL, library_of

from engine.plan import Range, plan_run
from engine.report import SearchSettings
from engine.search import search
from kb.store import KnowledgeBase
from llm_oracle.calls import Price
from llm_oracle.protocols import ModelIdentity, Models
from llm_oracle.simulated import SimulatedModel, SimulatedWorld

SETTINGS = SearchSettings(beam=8, calls_per_question=2, values_per_call=15)


class Counting(SimulatedModel):
    """A simulated model that may not be asked."""

    asked = 0

    def generate(self, requests, parameters):
        self.asked += len(requests)
        return super().generate(requests, parameters)

    def probabilities(self, claims):
        self.asked += len(claims)
        return super().probabilities(claims)

    def log_likelihoods(self, texts):
        self.asked += len(texts)
        return super().log_likelihoods(texts)


def prepared(*texts):
    library = library_of(*texts)
    model = Counting(SimulatedWorld(library, 1, SMALL))
    return library, model, Models(model, model, model, model)


def test_planning_asks_nothing_and_writes_nothing():
    """No model is called, and the store stays as it was."""
    library, model, models = prepared(ALLERGY, OLDER)
    with KnowledgeBase() as kb:
        estimate = plan_run(library, library.rules, kb, models, SETTINGS)

        assert not any(kb.counts().values())
    assert model.asked == 0
    assert [one.rule for one in estimate.rules] == ["allergy", "older_tool"]
    assert 0 < estimate.calls.expected <= estimate.calls.most


@pytest.mark.parametrize("text", [ALLERGY, OLDER])
def test_a_run_stays_below_the_upper_bound(text):
    """What a search then sends is no more than the most that was foretold, in each role."""
    library, _, models = prepared(text)
    with KnowledgeBase() as kb:
        estimate = plan_run(library, library.rules, kb, models, SETTINGS)
        report = search(library, library.rules, kb, models, SETTINGS)

    for role, spent in report.statistics.items():
        assert spent.calls <= estimate.roles[role].calls.most, role


def test_what_the_journal_knows_is_not_counted():
    """After the run, the same run costs nothing more."""
    library, model, models = prepared(ALLERGY)
    with KnowledgeBase() as kb:
        report = search(library, library.rules, kb, models, SETTINGS)
        asked = model.asked
        estimate = plan_run(library, library.rules, kb, models, SETTINGS)

    assert model.asked == asked
    assert estimate.calls.expected == 0
    assert estimate.rules[0].known == report.rules[0].questions


def test_money_needs_every_price():
    """Cost follows the price table; one unknown price makes the whole unknown, not zero."""
    library, model, models = prepared(ALLERGY)
    name = model.identity.name
    with KnowledgeBase() as kb:
        priced = plan_run(library, library.rules, kb, models, SETTINGS, prices={name: Price(1.0, 2.0)})
        unpriced = plan_run(library, library.rules, kb, models, SETTINGS)

    assert priced.cost is not None
    assert 0 < priced.cost[0] <= priced.cost[1]
    assert unpriced.cost is None


def test_a_rule_that_would_be_skipped_costs_nothing():
    """It is listed with its reason."""
    library, model, models = prepared(ALLERGY)
    model.identity = ModelIdentity("limited", "1", knows=())
    with KnowledgeBase() as kb:
        estimate = plan_run(library, library.rules, kb, models, SETTINGS)

    assert estimate.rules[0].skipped.model == "limited"
    assert estimate.calls == Range()
