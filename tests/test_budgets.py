"""Limits on calls, tokens and money hold for every request that leaves: repeated ones, refused ones and votes."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer
from test_oracle_openai import facts, opened, searched

import hapax
from hapax.grammar.errors import HapaxError
from hapax.kb import connection as connection_module
from hapax.kb import rows
from hapax.kb.records import AttemptRecord, Outcome
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends import openai_aliases
from hapax.llm_oracle.backends.openai_probing import KNOWN_CLAIM, KNOWN_FALSEHOOD
from hapax.llm_oracle.backends.openai_transport import Limits, RetryPolicy
from hapax.llm_oracle.budget import ACCOUNT, Account, Budget, BudgetReached, CallStatistics, Ledger, Price
from hapax.llm_oracle.calls import JournaledCritic, JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CriticScore, ModelIdentity, Usage

CLAIMS = [f"Milk is in naan {number}." for number in range(40)]
NO_LOGPROBS = frozenset({"logprobs", "systemone", "tokenize"})


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of one rule; requests are repeated without a long pause."""
    monkeypatch.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.01))
    path = tmp_path / "money.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


def aliased(folder: Path, fake: FakeServer) -> tuple[str, ...]:
    """Options that name the fake server `small`, at a price of 1 for each token."""
    alias = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, "price_in": 1e6, "price_out": 1e6}
    path = folder / "models.yaml"
    path.write_text(json.dumps([alias]), encoding="utf-8")
    return "--aliases", str(path)


class Billing:
    """Leaves out the log-probabilities in four of five replies to the critic, and adds up what it charges."""

    def __init__(self) -> None:
        self.tokens = 0
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, _: int, asked: Asked) -> Any:
        name = json.dumps(asked.body, sort_keys=True)
        with self._lock:
            self._asked[name] += 1
            is_judged = bool(asked.body.get("logprobs")) and not asked.body.get("echo")
            is_probe = KNOWN_CLAIM in name or KNOWN_FALSEHOOD in name
            is_bare = is_judged and not is_probe and self._asked[name] % 5

        def charged(body: Any) -> Any:
            if is_bare:
                for choice in body["choices"]:
                    choice.pop("logprobs", None)
            with self._lock:
                self.tokens += sum(body.get("usage", {}).values())
            return body

        return charged


def said(result: Result) -> tuple[int, float]:
    """Calls and cost in the message about the budget, and the calls of the line above it, which are the same."""
    output = " ".join(result.output.split())
    reached = re.search(r"so far (\d+) calls, \d+ tokens, cost (\d+\.\d+)", output)
    sent = re.search(r"(\d+) requests? sent in this run", output)
    assert reached, output
    assert sent, output
    assert reached[1] == sent[1]
    return int(reached[1]), float(reached[2])


def test_refused_replies_are_paid_for_within_the_limit(rules: Path, tmp_path: Path) -> None:
    """A server that leaves out what was asked charges each attempt: --max-cost ends the run before its sum is above."""
    with FakeServer(WORLD) as fake:
        options = ("--evaluator", "openai:small", "--profile", "hapax", *aliased(tmp_path, fake))
        fake.misbehave = billing = Billing()
        first = searched(rules, tmp_path / "kb.db", "openai:small", *options, "--max-cost", "1500")
        calls, cost = said(first)
        assert first.exit_code == 3
        assert len(fake.asked) == calls
        assert billing.tokens == cost <= 1500

        fake.misbehave = Billing()
        second = searched(rules, tmp_path / "kb.db", "openai:small", *options)
        fake.misbehave = lambda number, asked: None
        whole = searched(rules, tmp_path / "whole.db", "openai:small", *options)
    assert (second.exit_code, whole.exit_code) == (0, 0), second.output
    assert facts(tmp_path / "kb.db") == facts(tmp_path / "whole.db")


@pytest.mark.parametrize("lacks", [NO_LOGPROBS, NO_LOGPROBS | {"n"}])
def test_votes_and_repetitions_count_as_calls(lacks: frozenset[str], rules: Path, tmp_path: Path) -> None:
    """A claim of ten votes in ten requests is ten calls of --max-calls, and so is a request that is sent again."""
    with FakeServer(WORLD, lacks) as fake:
        options = ("--evaluator", "openai:small", "--profile", "hapax", *aliased(tmp_path, fake))
        fake.misbehave = lambda number, asked: (500, {}, {}) if number % 4 == 0 else None
        result = searched(rules, tmp_path / "kb.db", "openai:small", *options, "--max-calls", "30")

        assert result.exit_code == 3, result.output
        assert said(result)[0] == len(fake.asked) <= 30


@pytest.mark.parametrize("most", [1, 7, 23])
def test_many_at_a_time_stay_within_the_limit_and_are_kept(most: int, fresh_kb: KnowledgeBase) -> None:
    """With 16 requests at a time not one too many leaves, and every answer that came is in the journal."""
    with FakeServer(WORLD) as fake:
        model = opened(fake, limits=Limits(16)).critic()
        before = len(fake.asked)
        fake.misbehave = lambda number, asked: (500, {}, {}) if number % 3 == 0 else None
        critic = JournaledCritic(model, Journal(fresh_kb, Budget(max_calls=most)))
        with pytest.raises(BudgetReached) as reached:
            critic.probabilities(CLAIMS)
        sent = fake.asked[before:]
        good = sum(number % 3 != 0 for number in range(before + 1, before + 1 + len(sent)))

    assert len(sent) == most == reached.value.used.calls
    assert len(fresh_kb.calls()) == good == sum(answer is not None for answer in reached.value.answers)


def test_a_reply_that_never_came_counts_as_much_as_it_may_have_cost(fresh_kb: KnowledgeBase) -> None:
    """A lost reply is charged at its most, an error at nothing; a request that did not leave is no call."""
    with FakeServer(WORLD) as fake:
        model = opened(fake, RetryPolicy(attempts=2, first_pause=0.0, timeout=0.5)).critic()
        prices = {model.identity.name: Price(0.0, 1e6)}
        before = len(fake.asked)
        fake.misbehave = lambda number, asked: "hang" if number == before + 1 else None
        journal = Journal(fresh_kb, prices=prices)
        JournaledCritic(model, journal).probabilities(CLAIMS[:1])
        assert journal.total.calls == 2
        assert journal.total.completion_tokens == 1 + 1  # the most of the lost one, and the answer

        journal = Journal(fresh_kb, prices=prices)
        fake.misbehave = lambda number, asked: (503, {}, {}) if number == before + 3 else None
        JournaledCritic(model, journal).probabilities(CLAIMS[1:2])
        assert (journal.total.calls, journal.total.completion_tokens) == (2, 1)
    journal = Journal(fresh_kb)
    with pytest.raises(Exception, match="gave no usable reply"):
        JournaledCritic(model, journal).probabilities(CLAIMS[2:3])
    assert journal.total.calls == 0


def test_an_answer_without_a_request_is_no_call(fresh_kb: KnowledgeBase) -> None:
    """An empty text is scored without a request, and counts as none."""
    with FakeServer(WORLD) as fake:
        likelihood = opened(fake).likelihood()
        journal = Journal(fresh_kb)
        JournaledLikelihood(likelihood, journal).log_likelihoods(["", "Paris is in France."])

    assert journal.total.calls == 1


class Several:
    """A plug-in's critic that takes three requests for each claim and counts them in the journal's account."""

    def __init__(self, identity: Any) -> None:
        self.identity = identity

    def probabilities(self, claims: Sequence[str]) -> list[Any]:
        account = ACCOUNT.get()
        assert account is not None
        account.is_metered = True
        for _ in range(3 * len(claims)):
            reservation = account.reserve(Usage(10, 1))
            assert reservation is not None
            reservation.settle(Usage(4, 1))
        return [CriticScore(0.9) for _ in claims]


def test_a_model_of_another_package_counts_its_own_requests(fresh_kb: KnowledgeBase) -> None:
    """The account of the journal is open to every backend."""
    journal = Journal(fresh_kb, Budget(max_calls=7))
    critic = JournaledCritic(Several(ModelIdentity("several")), journal, batch_size=1)

    with pytest.raises(BudgetReached, match="so far 7 calls, 35 tokens"):
        critic.probabilities(CLAIMS)

    assert len(fresh_kb.calls()) == 2


def test_a_reservation_waits_for_those_under_way() -> None:
    """Tokens that were reserved and not used are free again once the request has ended."""
    ledger = Ledger(Budget(max_tokens=100))
    account = Account(ledger, "critic", None)

    first = account.reserve(Usage(0, 80))
    assert first is not None
    assert account.reserve(Usage(0, 80)) is None
    first.settle(Usage(0, 10))
    second = account.reserve(Usage(0, 80))
    assert second is not None
    second.settle(None)

    assert ledger.used == CallStatistics(1, 0, 0, 10, None)
    with pytest.raises(BudgetReached):
        account.reserve(Usage(0, 91))
    with pytest.raises(BudgetReached):  # smaller ones do not overtake
        account.reserve(Usage(0, 1))


def test_the_ledger_has_what_the_server_counts(rules: Path, tmp_path: Path) -> None:
    """Requests and tokens of the ledger are those that left and were charged, over two runs and their refused replies."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        options = ("--evaluator", "openai:small", "--profile", "hapax", *aliased(tmp_path, fake))
        fake.misbehave = first = Billing()
        assert searched(rules, database, "openai:small", *options, "--max-cost", "1500").exit_code == 3
        fake.misbehave = second = Billing()
        assert searched(rules, database, "openai:small", *options).exit_code == 0
    listed = json.loads(invoke("ledger", "--db", database, "--json").stdout)["spending"]

    assert sum(row["requests"] for row in listed) == len(fake.asked)
    assert sum(row["cost"] for row in listed) == first.tokens + second.tokens
    assert sum(row["unusable"] for row in listed) > 0
    assert "unusable" in invoke("ledger", "--db", database).stdout


def test_a_request_is_on_disk_before_it_leaves(tmp_path: Path) -> None:
    """When a server gets a request, the file has it, at the most that it can use and without an outcome."""
    open_attempts: list[int] = []

    def look(_: int, __: Asked) -> None:
        with closing(sqlite3.connect(tmp_path / "kb.db")) as connection:
            sql = "SELECT completion_tokens FROM attempts WHERE outcome IS NULL"
            open_attempts.extend(most for (most,) in connection.execute(sql))

    with FakeServer(WORLD) as fake, KnowledgeBase(tmp_path / "kb.db") as kb:
        model = opened(fake, limits=Limits(1)).critic()
        fake.misbehave = look
        JournaledCritic(model, Journal(kb)).probabilities(CLAIMS[:3])
        outcomes = [attempt.outcome for attempt in kb.attempts()]

    assert open_attempts == [1, 1, 1]
    assert outcomes == ["answered"] * 3


def test_nothing_is_sent_that_cannot_be_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process locks the file no request leaves, so that no answers pile up in memory."""
    monkeypatch.setattr(connection_module, "BUSY_SECONDS", 0.2)
    with FakeServer(WORLD) as fake, KnowledgeBase(tmp_path / "kb.db") as kb:
        critic = JournaledCritic(opened(fake).critic(), Journal(kb))
        before = len(fake.asked)
        with closing(sqlite3.connect(tmp_path / "kb.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(HapaxError, match="another process has been writing"):
                critic.probabilities(CLAIMS)
            other.execute("ROLLBACK")

        assert len(fake.asked) == before
        assert len(critic.probabilities(CLAIMS)) == len(CLAIMS)


def test_a_lost_reply_is_perhaps_billed(fresh_kb: KnowledgeBase) -> None:
    """A time-out counts at the most that its request can use, marked as perhaps billed, in a file in memory, too."""
    with FakeServer(WORLD) as fake:
        model = opened(fake, RetryPolicy(attempts=2, first_pause=0.0, timeout=0.5)).critic()
        before = len(fake.asked)
        fake.misbehave = lambda number, asked: "hang" if number == before + 1 else None
        JournaledCritic(model, Journal(fresh_kb)).probabilities(CLAIMS[:1])

    (row,) = hapax.ledger(fresh_kb).spending
    assert (row.requests, row.answered, row.perhaps, row.perhaps_completion_tokens) == (2, 1, 1, 1)
    assert row.cost is None
    assert hapax.ledger(fresh_kb, until="2000").spending == []


def test_a_providers_export_is_compared(tmp_path: Path) -> None:
    """Figures within the ledger's range agree; one beyond it is named, with exit code 1."""
    database = tmp_path / "kb.db"
    with KnowledgeBase(database) as kb:
        started = "2026-11-23T08:00:00+00:00"
        answered = AttemptRecord("a", "critic", "openai/host/gpt", "x", started, started, Outcome.ANSWERED, 10, 2, 0.5)
        lost = AttemptRecord("b", "critic", "openai/host/gpt", "x", started, started, Outcome.LOST, 20, 5, 1.0)
        error = AttemptRecord("c", "critic", "openai/host/gpt", "x", started, started, Outcome.ERROR, cost=0.0)
        kb.add(rows.ATTEMPTS, [answered, lost, error])
    export = tmp_path / "usage.csv"
    header = "model,num_model_requests,input_tokens,output_tokens\n"
    export.write_text(f"{header}gpt-2026-01-01,1,10,2\ngpt-2026-01-01,1,20,0\nother,9,9,9\n", "utf-8")
    good = invoke("ledger", "--db", database, "--reconcile", export, "--json")
    export.write_text(f"{header}gpt-2026-01-01,3,10,2\n", "utf-8")
    bad = invoke("ledger", "--db", database, "--reconcile", export)
    export.write_text("name,sum\n", "utf-8")
    foreign = invoke("ledger", "--db", database, "--reconcile", export)

    compared = json.loads(good.stdout)
    assert (good.exit_code, compared["agrees"], compared["unknown_models"]) == (0, True, ["other"])
    assert [row["most"] for row in compared["comparisons"]] == [2, 30, 7, 1.5]
    assert bad.exit_code == 1
    assert "no" in bad.stdout.split()
    assert foreign.exit_code == 1
    assert "no column of models" in " ".join(foreign.output.split())
