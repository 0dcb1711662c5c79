"""Limits of a search on a cluster hold for every request of every worker, repeated ones included."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cluster_fixture import Threads
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer

import hapax
from hapax.engine.cluster.owner import Allowance, Opening, Owner, Post
from hapax.engine.cluster.running import Spread, search_spread
from hapax.engine.search.job import SearchJob
from hapax.engine.search.report import SearchReport
from hapax.engine.search.settings import SearchSettings
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends import openai_aliases
from hapax.llm_oracle.backends.openai_transport import RetryPolicy
from hapax.llm_oracle.budget import Budget, CallStatistics, Price
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.registry import OpeningOptions


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.01))


class Unusable:
    """Spoils every third reply, and adds up what all of them charge."""

    def __init__(self) -> None:
        self.tokens = 0

    def __call__(self, number: int, _: Asked) -> Any:
        def charged(body: Any) -> Any:
            self.tokens += sum(body.get("usage", {}).values())
            return {**body, "choices": []} if number % 3 == 0 else body

        return charged


class OnePrice(dict[str, Price]):
    """The same price for each model."""

    def get(self, *_: object) -> Price:  # type: ignore[override]
        return Price(1e6, 1e6)


def opening_at(fake: FakeServer, folder: Path) -> Opening:
    entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, "logprobs": "none", "completion": False}
    (folder / "models.yaml").write_text(json.dumps([entry]), encoding="utf-8")
    return Opening("openai:small", None, "frequency", "frequency", OpeningOptions(aliases=folder / "models.yaml"))


def spread_search(folder: Path, opening: Opening, budget: Budget | None = None) -> SearchReport:
    """A search on two workers, at a price of 1 for a token."""
    library = hapax.parse_rules(RULES)
    with KnowledgeBase(folder / "kb.db") as kb:
        journal = Journal(kb, budget)
        journal.prices = OnePrice()
        models = opening.open(journal, 1)
        job = SearchJob(library, library.rules, kb, models, SearchSettings(profile="hapax"), journal)
        return search_spread(job, Spread(Threads(2), opening, folder / "shards"))[0]


@pytest.mark.parametrize("budget", [Budget(max_calls=25), Budget(max_tokens=1500), Budget(max_cost=1500.0)])
def test_no_worker_sends_more_than_is_left(tmp_path: Path, budget: Budget) -> None:
    """A server that charges for unusable replies never charges more than the limit, and the ledger agrees with it."""
    with FakeServer(WORLD) as fake:
        opening = opening_at(fake, tmp_path)
        fake.misbehave = first = Unusable()
        report = spread_search(tmp_path, opening, budget)
        sent, used = len(fake.asked), first.tokens
        fake.misbehave = second = Unusable()
        whole = spread_search(tmp_path, opening)
        charged = used + second.tokens
        with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
            spending = hapax.ledger(kb).spending
        count = len(fake.asked)

    assert (report.status, whole.status) == ("budget", "done")
    assert sum(statistics.calls for statistics in report.statistics.values()) >= sent - 2  # probes are no calls
    assert budget.exceeded(CallStatistics(sent, 0, used, 0, float(used))) is None
    assert sent > 10
    assert sum(row.requests for row in spending) == count
    assert sum(row.prompt_tokens + row.completion_tokens for row in spending) == charged
    assert sum(row.unusable for row in spending) > 3


def test_a_worker_that_died_has_used_a_part_of_its_allowance(tmp_path: Path) -> None:
    """Attempts of its ledger that were not reported count in the allowance of the call that is repeated."""
    with FakeServer(WORLD) as fake:
        opening, post = opening_at(fake, tmp_path), Post(0, 1, tmp_path / "shards", "run")
        claims = [f"Milk is in naan {number}." for number in range(8)]
        allowance = Allowance(Budget(max_calls=8), None, CallStatistics(0, 0, 0, 0, None))
        owner = Owner(post, opening)
        post.folder.mkdir()
        owner.finish_seeding()
        owner.ask("critic", claims[:2])
        died = len(fake.asked)
        reply = Owner(post, opening).ask_within(allowance, "critic", claims)

    assert reply.spent is not None
    assert reply.spent.reached == ("calls", 8 - died)
    assert len(fake.asked) == reply.spent.used.calls == reply.spent.ledger.calls <= 8
    assert 2 <= sum(answer is not None for answer in reply.answers) < len(claims)
