"""Calls to workers, their order and number, and the walks ahead of a search, as texts in `tests/golden/cluster/`."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hapax.engine.cluster import running
from hapax.engine.cluster.calling import SEEDING_SECONDS, when_seeded
from hapax.engine.cluster.owner import Allowance, Opening, Owner, OwnerReply, Post, Shard
from hapax.engine.cluster.routing import (
    RoutedCritic,
    RoutedGenerator,
    RoutedLikelihood,
    RoutedPopularity,
    RoutedSpanLikelihood,
    owner_of,
    routed,
)
from hapax.engine.cluster.walking import Walking, Watched
from hapax.grammar.errors import HapaxError
from hapax.kb import system
from hapax.kb.records import CallRecord
from hapax.llm_oracle.budget import Budget, CallStatistics
from hapax.llm_oracle.measures import measures_of
from hapax.llm_oracle.protocols import (
    EVALUATOR,
    LIKELIHOOD,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
    SpannedText,
)
from hapax.llm_oracle.registry import OpeningOptions

IDENTITY = ModelIdentity("scripted/m", "1")


@dataclass
class Reply:
    """A call under way; its result is noted when it is waited for."""

    owners: Logged
    number: int
    call: int
    reply: OwnerReply

    def done(self) -> bool:
        return True

    def result(self) -> OwnerReply:
        self.owners.log.append(f"result {self.call} of worker {self.number}")
        return self.reply

    def cancel(self) -> None:
        self.owners.log.append(f"cancelled {self.call}")


@dataclass
class Logged:
    """Workers that answer each request with itself, and note what they are asked. `unseeded`: replies too early."""

    count: int
    unseeded: int = 0
    log: list[str] = field(default_factory=list)

    def begin(self, number: int, method: str, *arguments: Any) -> Reply:
        role, asked, *parameters = arguments
        call = self.calls
        self.log.append(f"call {call} to worker {number}: {method} {role}, {len(asked)} requests, {parameters}")
        self.unseeded -= 1
        reply = OwnerReply(seeded=False) if self.unseeded >= 0 else OwnerReply(tuple(asked))
        return Reply(self, number, call, reply)

    @property
    def calls(self) -> int:
        return sum(line.startswith("call ") for line in self.log)


def test_critic_of_workers_answers_in_the_order_of_the_claims() -> None:
    """Whatever worker owns a claim, its score is in the claim's place."""
    claims = [f"claim {place}" for place in range(100)]

    answers: list[Any] = list(RoutedCritic(IDENTITY, Logged(3)).probabilities(claims))
    assert answers == claims


class Counting:
    """A model that counts names; names that it does not list are unknown if `lists_names`."""

    identity = IDENTITY
    lists_names = True

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        return [1.0] * len(names)


class Spanned:
    """A model that scores texts and the names in them."""

    identity = IDENTITY

    def __init__(self, words_are_independent: bool) -> None:
        self.words_are_independent = words_are_independent

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-1.0, 1)] * len(texts)

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return self.log_likelihoods([text.text for text in texts])


class Plain:
    """A model that scores whole texts alone."""

    identity = IDENTITY

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-1.0, 1)] * len(texts)


def test_models_of_workers_have_the_abilities_of_the_opened_ones() -> None:
    """A ranker that counts, lists, scores spans or only texts gives the same measures from afar, in the texts' order."""
    texts = [f"text {place}" for place in range(70)]
    spanned = [SpannedText(text, ((0, 4),)) for text in texts]
    names = [(text,) for text in texts]
    owners = Logged(3)
    found = []
    for model in (Counting(), Spanned(True), Spanned(False), Plain()):
        models = routed(Models(Plain(), Plain(), model, model), owners)  # type: ignore[arg-type]
        for role, far in ((LIKELIHOOD, models.likelihood), (EVALUATOR, models.evaluator)):
            found.append((type(far).__name__, role, far.role, measures_of(far) == measures_of(model)))  # type: ignore[union-attr]
    rankers: list[Any] = [
        RoutedLikelihood(IDENTITY, owners, LIKELIHOOD),
        RoutedSpanLikelihood(IDENTITY, owners, EVALUATOR, True),
    ]

    assert found == [
        (name, role, role, True)
        for name in ("RoutedPopularity", "RoutedSpanLikelihood", "RoutedSpanLikelihood", "RoutedLikelihood")
        for role in (LIKELIHOOD, EVALUATOR)
    ]
    assert [ranker.log_likelihoods(texts) for ranker in rankers] == [texts, texts]
    assert rankers[1].span_log_likelihoods(spanned) == spanned
    prompts = [GenerationRequest(text) for text in texts]
    assert list(RoutedGenerator(IDENTITY, owners).generate(prompts, GenerationParameters())) == prompts
    with pytest.raises(AttributeError, match="total"):
        RoutedPopularity(IDENTITY, owners, LIKELIHOOD, True).counts(names)  # the logged workers answer with the names
    assert rankers[0].call_ids(texts) == rankers[1].call_ids(texts)  # one model in two roles is asked once
    assert not RoutedPopularity(IDENTITY, owners, LIKELIHOOD, False).lists_names


def test_fault_of_a_worker_ends_the_call() -> None:
    """The error has the number of the worker and its own words."""
    owners = Logged(2)

    with pytest.raises(HapaxError, match=r"^Worker 1: the disk is full$"):
        when_seeded(owners, 1, ("ask",), Reply(owners, 1, 0, OwnerReply(fault="the disk is full")))


def test_worker_tells_what_it_is(tmp_path: Path) -> None:
    """Before it is seeded it answers nothing; its process and the newest revision that it has met are asked for."""
    post = Post(0, 1, tmp_path / "shards", "run")
    script = tmp_path / "script.json"
    script.write_text("{}")
    owner = Owner(post, Opening(f"scripted:{script}", None, None, "frequency", OpeningOptions()))
    allowance = Allowance(Budget(max_calls=2), None, CallStatistics(0, 0, 0, 0, None))

    assert owner.process() == os.getpid()
    assert owner.ask("critic", ["A claim."]) == OwnerReply(seeded=False)
    assert owner.ask_within(allowance, "critic", ["A claim."]) == OwnerReply(seeded=False)
    post.folder.mkdir()
    owner.finish_seeding()
    assert "no answer" in owner.ask_within(allowance, "critic", ["A claim."]).fault
    shard = Shard(post)
    assert shard.newest_revision("tiny") is None
    shard.record_calls([CallRecord("1", "critic", "tiny@7", {"claim": "A claim."}, {"probability": 1.0})])
    assert shard.newest_revision("tiny") == "7"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds slept; a clock that only sleeping moves."""
    slept: list[float] = []
    monkeypatch.setattr(system, "sleep", slept.append)
    monkeypatch.setattr(system, "monotonic", lambda: sum(slept))
    return slept


def test_worker_without_its_answers_is_asked_again_after_pauses(pauses: list[float]) -> None:
    """The same question is asked until the worker is seeded, with a pause before each repetition."""
    owners = Logged(1, unseeded=3)
    question = ("ask", "critic", ["claim"])

    assert when_seeded(owners, 0, question, owners.begin(0, *question)).answers == ("claim",)
    assert pauses == [0.2] * 3
    assert owners.calls == 4


def test_worker_that_is_never_seeded_ends_the_search(pauses: list[float]) -> None:
    """After ten minutes the search ends with the remedy, and not before."""
    owners = Logged(1, unseeded=10_000)
    question = ("ask", "critic", ["claim"])

    with pytest.raises(HapaxError, match=r"did not receive the known answers in 600 s\. Run the same command again"):
        when_seeded(owners, 0, question, owners.begin(0, *question))
    assert SEEDING_SECONDS <= sum(pauses) < SEEDING_SECONDS + 0.4


def test_owner_is_the_remainder_of_the_id() -> None:
    """An id in hexadecimal digits is divided by the number of workers."""
    assert [owner_of(text, 3) for text in ("0", "1", "a", "ff", "100")] == [0, 1, 1, 0, 1]


@dataclass
class Walk:
    """A walk that ends when it is told to, with a fault or none."""

    names: Sequence[str]
    fault: str | HapaxError | None = None

    def done(self) -> bool:
        return self.fault is not None

    def result(self) -> str:
        assert self.fault is not None
        if isinstance(self.fault, HapaxError):
            raise self.fault
        return self.fault

    def cancel(self) -> None:
        self.fault = "cancelled"


@dataclass
class Walkers:
    """Begins walks, which then end as a test says."""

    count: int
    walks: list[Walk] = field(default_factory=list)

    def begin(self, names: Sequence[str]) -> Walk:
        self.walks.append(Walk(names))
        return self.walks[-1]


def test_answers_are_gathered_while_the_search_runs_and_once_more_at_its_end() -> None:
    """Walks go on beside the block, answers come in before it ends, and an error of the block leaves none behind."""
    early = threading.Event()
    calls: Counter[str] = Counter()

    def gather() -> None:
        calls["gather"] += 1
        early.set()

    walking = SimpleNamespace(advance=lambda: calls.update(["advance"]), end=lambda: calls.update(["end"]))
    gathering = SimpleNamespace(gather=gather)

    def interrupted(thread: ThreadPoolExecutor) -> None:
        with running._beside(thread, gathering, walking):  # type: ignore[arg-type]
            assert early.wait(20.0)
            calls["before"] = calls["gather"]
            raise KeyError("block")

    with ThreadPoolExecutor(1) as thread, pytest.raises(KeyError, match="block"):
        interrupted(thread)
    assert calls["advance"] >= calls["before"] >= 1
    assert calls["gather"] > calls["before"]
    assert calls["end"] == 1


def test_a_watched_search_tells_its_display_everything() -> None:
    """Beginnings, expectations, advances and pauses arrive as they are; the walks learn which rules are searched."""
    told: list[tuple[object, ...]] = []

    class Display:
        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *figures: told.append((name, *figures))

    walkers = Walkers(1)
    walking = Walking(["one", "two", "three"], 1, walkers)
    watched = Watched(Display(), walking)  # type: ignore[arg-type]
    watched.started(2, 9)
    watched.searching(["one", "two"], 4)
    watched.expecting(3)
    watched.advanced(1, 2, 3, 4)
    watched.paused(True)

    assert told == [
        ("started", 2, 9), ("searching", ["one", "two"], 4), ("expecting", 3), ("advanced", 1, 2, 3, 4), ("paused", True),
    ]  # fmt: skip
    walking.advance()
    assert [list(walk.names) for walk in walkers.walks] == [["three"]]
