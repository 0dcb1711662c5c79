"""A model that takes any number of requests at once is kept busy, and each of its answers is on the disk at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_fake import Asked, FakeServer
from test_oracle_openai import opened

from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget, BudgetReached
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    ModelIdentity,
    Stream,
    Usage,
)

CLAIMS = [f"claim {number}" for number in range(10)]


class Streamer:
    """Answers the last first, two at a time; `used` tokens each, and what the store holds is noted before each group."""

    def __init__(self, kb: KnowledgeBase | None = None, used: Sequence[int] = (), breaks_at: int | None = None) -> None:
        self.identity = ModelIdentity("streamer")
        self.streams: list[list[str]] = []
        self.held: list[int] = []
        self._kb = kb
        self._used = dict(zip(CLAIMS, used, strict=False))
        self._breaks_at = breaks_at

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        raise AssertionError("it streams")

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        raise AssertionError("it streams")

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]:
        self.streams.append(list(asked))
        left = [(place, self._answer(request, bool(parameters))) for place, request in enumerate(asked)]
        while left:
            if self._kb:
                self.held.append(len(self._kb.calls()))
            if len(left) == self._breaks_at:
                raise KeyboardInterrupt
            yield [left.pop() for _ in range(min(2, len(left)))]

    def _answer(self, request: Any, listed: bool) -> Any:
        if listed:
            return Generation(f"1. {request.prompt}.", "stop", Usage(0, self._used.get(request.prompt, 1)))
        return CriticScore(1 / (1 + int(request.split()[1])))


def test_a_stream_answers_in_order_and_is_kept_as_it_comes(fresh_kb: KnowledgeBase) -> None:
    """All misses go out at once; each group is in the journal before the next one is waited for."""
    model = Streamer(fresh_kb)

    scores = JournaledCritic(model, Journal(fresh_kb), batch_size=3).probabilities(CLAIMS)

    assert model.streams == [CLAIMS]
    assert model.held == [0, 2, 4, 6, 8]
    assert [score.probability for score in scores] == [1 / (1 + number) for number in range(10)]


def test_an_interrupted_stream_loses_what_is_in_flight_only(fresh_kb: KnowledgeBase) -> None:
    """Answers that came before the break are never asked for again."""
    with pytest.raises(KeyboardInterrupt):
        JournaledCritic(Streamer(breaks_at=4), Journal(fresh_kb)).probabilities(CLAIMS)
    model = Streamer()
    JournaledCritic(model, Journal(fresh_kb)).probabilities(CLAIMS)

    assert model.streams == [CLAIMS[:4]]


@given(limit=st.integers(0, 80), used=st.lists(st.integers(0, 10), min_size=10, max_size=10))
def test_a_stream_keeps_the_budget_as_single_requests_do(limit: int, used: list[int]) -> None:
    """With as many tokens in flight as the budget has left, the same requests are answered as one by one."""
    parameters = GenerationParameters(max_tokens=10)
    requests = [GenerationRequest(claim) for claim in CLAIMS]

    def answered(at_once: bool) -> tuple[list[bool], int]:
        with KnowledgeBase() as kb:
            journal = Journal(kb, Budget(max_tokens=limit))
            generator = JournaledGenerator(Streamer(used=used), journal)
            asked = [requests] if at_once else [[request] for request in requests]
            came: list[bool] = []
            for some in asked:
                try:
                    came += [True for _ in generator.generate(some, parameters)]
                except BudgetReached as reached:
                    came += [answer is not None for answer in reached.answers]
                    break
            return [*came, *[False] * (len(requests) - len(came))], journal.total.tokens

    together, alone = answered(True), answered(False)

    assert together == alone
    assert together[1] <= limit


def test_one_slow_answer_holds_up_no_other(fresh_kb: KnowledgeBase) -> None:
    """A server that takes its time over one claim is asked all the others meanwhile."""
    others = threading.Event()

    def misbehave(number: int, asked: Asked) -> None:
        if "slowly" in str(asked.body):
            assert others.wait(30)
        elif "claim 299" in str(asked.body):
            others.set()

    claims = ["slowly", *(f"claim {number}" for number in range(300))]
    with FakeServer() as fake:
        critic = opened(fake).critic()
        fake.misbehave = misbehave
        scores = JournaledCritic(critic, Journal(fresh_kb), batch_size=8).probabilities(claims)

    assert len(scores) == len(claims)
    assert others.is_set()


def test_a_stream_may_be_left() -> None:
    """Requests in flight are given up, and the same model goes on answering."""
    left = threading.Event()

    def misbehave(number: int, asked: Asked) -> None:
        if "later" in str(asked.body):
            left.wait(30)

    with FakeServer() as fake:
        critic = opened(fake).critic()
        fake.misbehave = misbehave
        stream = critic.stream(["first", "later"])
        first = next(answer for group in stream for answer in group)
        stream.close()  # type: ignore[attr-defined]  # it is a generator
        again = critic.probabilities(["first"])
        left.set()

    assert first[0] == 0
    assert again == [first[1]]
