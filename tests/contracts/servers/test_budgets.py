"""Limits on calls, tokens and money hold for every request that leaves, and the ledger has what the server counts."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer, Reply
from served import (
    CLAIMS,
    RETRY_AT_ONCE,
    flat,
    found,
    is_judging,
    models_file,
    opened,
    prompt_of,
    search,
    spending,
)

import hapax

NO_LOGPROBS = frozenset({"logprobs", "systemone", "tokenize"})
PLAIN = ("--profile", "hapax", "--likelihood", "frequency", "--answer-tokens", "60")
PROBES = ("Paris", "capital")


class Billing:
    """Leaves out the log-probabilities in the first reply about each fifth claim or so, and adds up what it charges."""

    def __init__(self) -> None:
        self.tokens = self.bare = 0
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, _: int, asked: Asked) -> Any:
        prompt = prompt_of(asked)
        with self._lock:
            self._asked[prompt] += 1
            is_probe = any(word in prompt for word in PROBES)
            is_bare = is_judging(asked) and not is_probe and self._asked[prompt] == 1 and len(prompt) % 5 == 0

        def charged(body: Any) -> Any:
            if is_bare:
                for choice in body["choices"]:
                    choice.pop("logprobs", None)
            with self._lock:
                self.bare += is_bare
                self.tokens += sum(body.get("usage", {}).values())
            return body

        return charged


def priced(folder: Path, fake: FakeServer, **more: Any) -> tuple[str, ...]:
    """Options that name the server `small`, at a price of 1 for each token."""
    return "--aliases", models_file(folder, fake, price_in=1e6, price_out=1e6, **more)


def said(result: Result) -> tuple[int, float]:
    """Requests that were sent, and the cost in the message about the budget."""
    sent = re.search(r"(\d+) requests? sent in this run", flat(result))
    reached = re.search(r"so far \d+ calls, \d+ tokens, cost (\d+\.\d+)", flat(result))
    assert sent, result.output
    assert reached, result.output
    return int(sent[1]), float(reached[1])


def test_replies_that_are_asked_again_are_paid_for_within_the_limit(tmp_path: Path) -> None:
    """A server that leaves out what was asked charges each attempt: --max-cost ends the run before its sum is above, the
    ledger has the server's own sums, and a later run finishes the work."""
    with FakeServer(WORLD) as fake:
        options = (*PLAIN, *priced(tmp_path, fake))
        fake.misbehave = start = Billing()
        search(tmp_path, "openai:small", *options, "--max-calls", "6")  # which are probes
        probed = len(fake.asked)
        fake.misbehave = first = Billing()
        stopped = search(tmp_path, "openai:small", *options, "--max-cost", "300")
        calls, cost = said(stopped)
        assert stopped.exit_code == 3
        assert (len(fake.asked) - probed, first.tokens) == (calls, cost)
        assert 0 < first.tokens <= 300
        fake.misbehave = second = Billing()
        done = search(tmp_path, "openai:small", *options)
        ledger = spending(tmp_path)
        sent = len(fake.asked)
        fake.misbehave = lambda number, asked: None
        search(tmp_path, "openai:small", *options, database="whole.db")

    assert done.exit_code == 0, done.output
    assert ledger["requests"] == sent
    assert ledger["cost"] == start.tokens + first.tokens + second.tokens
    assert ledger["unusable"] == start.bare + first.bare + second.bare > 0
    assert "unusable" in invoke("model", "ledger", "--db", tmp_path / "kb.db").stdout
    assert found(tmp_path) == found(tmp_path, "whole.db")


@pytest.mark.parametrize("lacks", [NO_LOGPROBS, NO_LOGPROBS | {"n"}])
def test_votes_and_repetitions_count_as_calls(lacks: frozenset[str], tmp_path: Path) -> None:
    """A claim of ten votes in ten requests is ten calls of --max-calls, and so is a request that is sent again."""
    with FakeServer(WORLD, lacks) as fake:
        busy = (503, {}, RETRY_AT_ONCE)
        fake.misbehave = lambda number, asked: busy if number % 4 == 0 else None
        result = search(tmp_path, "openai:small", *PLAIN, *priced(tmp_path, fake), "--max-calls", "30")

        assert result.exit_code == 3, result.output
        assert said(result)[0] == len(fake.asked) <= 30


@pytest.mark.parametrize(("limit", "most"), [("--max-tokens", 300), ("--max-cost", 300), ("--max-calls", 7)])
def test_a_limit_is_never_passed(limit: str, most: int, tmp_path: Path) -> None:
    """With many requests at a time not one too many leaves, and what came is not asked again."""
    with FakeServer(WORLD) as fake:
        options = (*PLAIN, *priced(tmp_path, fake, max_concurrency=16))
        search(tmp_path, "openai:small", *options, "--max-calls", "6")  # which are probes
        fake.asked.clear()
        fake.misbehave = billing = Billing()
        result = search(tmp_path, "openai:small", *options, limit, str(most))
        sent = {json.dumps(request.body, sort_keys=True) for request in fake.asked}
        before = len(fake.asked)
        assert result.exit_code == 3, result.output
        assert before > 0
        assert (before if limit == "--max-calls" else billing.tokens) <= most
        fake.misbehave = lambda number, asked: None
        assert search(tmp_path, "openai:small", *options).exit_code == 0
        later = {json.dumps(request.body, sort_keys=True) for request in fake.asked[before:]}

    assert len(sent & later) <= billing.bare


def test_python_limits_what_a_goal_sends() -> None:
    """`open_models(budget=...)` limits each goal, whose answers are then incomplete and say why, and each search."""
    rules, settings = hapax.parse_rules(RULES), hapax.SearchSettings(profile="hapax")
    with FakeServer(WORLD) as fake, hapax.KnowledgeBase() as kb:
        url = f"openai:tiny@{fake.url}"
        models = hapax.open_models(url, likelihood="frequency", budget=hapax.Budget(max_calls=2))
        before = len(fake.asked)
        options = hapax.QueryOptions(settings=settings)
        answers = hapax.query("uses_currency('Norway', X)", rules, kb, models=models, options=options)
        assert len(fake.asked) - before == 2
        hapax.search(rules, kb, models, settings)
        assert len(fake.asked) - before == 4

    assert not answers.complete
    assert "2" in answers.stopped


def test_a_price_is_needed_for_a_limit_on_money(tmp_path: Path) -> None:
    """Without a price --max-cost is refused with the way to give one; with --price, before its alias, it holds."""
    with FakeServer(WORLD) as fake:
        model = f"openai:tiny@{fake.url}"
        unpriced = search(tmp_path, model, *PLAIN, "--max-cost", "1")
        nothing = search(tmp_path, model, *PLAIN, "--max-calls", "0")
        assert fake.asked == []  # not even a probe
        price = ("--price", f"{model}=10000,20000")
        stopped = search(tmp_path, model, *PLAIN, "--max-cost", "3", *price)
        done = search(tmp_path, model, *PLAIN, "--max-cost", "1000", *price)
        again = search(tmp_path, model, *PLAIN, "--max-calls", "0")
        alias = priced(tmp_path, fake)
        search(tmp_path, "openai:small", *PLAIN, *alias, "--price", "openai:small=0,0", database="free.db")
    wrong = ("5", "=1,2", "openai:m=1", "openai:m=1,-2", "openai:m=nan,1", "openai:m=1,2,3")
    refused = [invoke("plan", tmp_path / "money.rules", "--price", price) for price in wrong]

    assert "--price MODEL=IN,OUT" in flat(unpriced)
    codes = [result.exit_code for result in (unpriced, nothing, stopped, done, again)]
    assert codes == [1, 3, 3, 0, 0], stopped.output
    assert spending(tmp_path, "free.db")["cost"] == 0
    assert {result.exit_code for result in refused} == {2}


def test_a_request_is_on_disk_before_it_leaves(tmp_path: Path) -> None:
    """When a server gets a request, the ledger has one more than have ended."""
    unended: list[int] = []

    def look(_: int, asked: Asked) -> None:
        if is_judging(asked) and not any(word in prompt_of(asked) for word in PROBES):
            with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
                unended.append(sum(row.perhaps for row in hapax.ledger(kb).spending))

    with FakeServer(WORLD, misbehave=look) as fake:
        options = ("--aliases", models_file(tmp_path, fake, max_concurrency=1))
        assert search(tmp_path, "openai:small", *PLAIN, *options).exit_code == 0

    assert set(unended) == {1}


def test_a_lost_reply_is_perhaps_billed(tmp_path: Path) -> None:
    """A time-out counts at the most that its request can use, marked as perhaps billed; an error reply at nothing."""
    kinds: list[str | Reply] = ["hang", (503, {}, RETRY_AT_ONCE)]

    def misbehave(number: int, asked: Asked) -> str | Reply | None:
        return kinds.pop(0) if kinds and "Norway uses" in prompt_of(asked) and is_judging(asked) else None

    with FakeServer(WORLD, misbehave=misbehave) as fake:
        options = ("--aliases", models_file(tmp_path, fake, timeout=0.5, price_in=0, price_out=1e6))
        assert search(tmp_path, "openai:small", *PLAIN, *options).exit_code == 0
        rows = json.loads(invoke("model", "ledger", "--db", tmp_path / "kb.db", "--json").stdout)["spending"]
        until = invoke("model", "ledger", "--db", tmp_path / "kb.db", "--until", "2000-01-01", "--json")

    critic = next(row for row in rows if row["role"] == "critic")
    assert kinds == []
    assert (critic["perhaps"], critic["requests"] - critic["answered"]) == (1, 2)
    # Each reply has one token, and a lost one counts at the most.
    assert critic["completion_tokens"] == critic["answered"] + critic["perhaps"]
    assert json.loads(until.stdout)["spending"] == []


# A file that another process locks


def test_a_kill_behind_a_lock_costs_what_is_in_flight_at_most(tmp_path: Path) -> None:
    """Another process locks the file amid a run, and the run is killed: all but `max_concurrency` answers are kept."""
    most, database = 4, tmp_path / "kb.db"
    hapax.KnowledgeBase(database).close()
    (tmp_path / "money.rules").write_text(RULES, "utf-8")
    other = sqlite3.connect(database, isolation_level=None, check_same_thread=False, timeout=10)
    asked: Counter[str] = Counter()

    def lock_at_the_tenth(_: int, request: Asked) -> None:
        asked[json.dumps(request.body, sort_keys=True)] += 1
        if asked.total() == 10:
            other.execute("BEGIN IMMEDIATE")

    with FakeServer(WORLD) as fake:
        fake.misbehave = lock_at_the_tenth
        given = ("-m", "openai:small", "--aliases", models_file(tmp_path, fake, max_concurrency=most), *PLAIN)
        words = ("search", str(tmp_path / "money.rules"), *given, "--db", str(database), "--no-progress", *EVERY_END)
        process = subprocess.Popen([sys.executable, "-m", "hapax.cli", *words])
        beside = database.with_name(f"{database.name}-answers")
        while not beside.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        other.execute("ROLLBACK")
        other.close()
        before = asked.total()
        done = invoke(*words)
        search(tmp_path, "openai:small", *given[2:], database="whole.db")

    assert done.exit_code == 0, done.output
    assert before >= 10
    assert sum(count > 2 for count in asked.values()) <= most  # all were asked once for the whole one
    assert not beside.exists()
    assert found(tmp_path) == found(tmp_path, "whole.db")


def test_nothing_is_sent_that_cannot_be_written_down(tmp_path: Path) -> None:
    """While another process locks the file no request leaves, so that no answers pile up in memory."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        assert search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN, "--max-calls", "12").exit_code == 3
        before = len(fake.asked)
        line = [sys.executable, "-m", "hapax.cli", "search", str(tmp_path / "money.rules"), "--db", str(database)]
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            process = subprocess.Popen([*line, "-m", f"openai:tiny@{fake.url}", *PLAIN], stderr=subprocess.PIPE)
            with pytest.raises(subprocess.TimeoutExpired):
                process.communicate(timeout=4)
            process.kill()
            process.communicate()
            assert len(fake.asked) == before
            other.execute("ROLLBACK")
        assert search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN).exit_code == 0
        assert len(fake.asked) > before


def test_votes_on_claims_that_are_not_stored_are_bounded_like_answers(tmp_path: Path) -> None:
    """One vote of each claim is refused for a while: other votes on claims without their tenth stay within the limit."""
    most = 12
    answered: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    open_votes: list[int] = []
    first: dict[str, int] = {}

    def one_vote_fails(_: int, request: Asked) -> Reply | None:
        claim = next((claim for claim in CLAIMS if claim in prompt_of(request)), None)
        if claim is None:
            return None
        if request.body["seed"] == first.setdefault(claim, request.body["seed"]) and refused[claim] < 3:
            refused[claim] += 1
            return 503, {"error": "down"}, RETRY_AT_ONCE
        answered[claim] += 1
        open_votes.append(sum(count for count in answered.values() if count < 10))
        return None

    with FakeServer(WORLD, NO_LOGPROBS | {"n", "claims"}) as fake:
        models = opened(fake, tmp_path, max_concurrency=most)
        fake.misbehave = one_vote_fails
        models.critic.probabilities(CLAIMS)

    assert answered == dict.fromkeys(CLAIMS, 10)
    assert max(open_votes) <= most
