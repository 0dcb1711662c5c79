"""The journal asks a model nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import CallStatistics
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    ModelIdentity,
    ReplyForm,
    Usage,
)

PARAMETERS = GenerationParameters(max_tokens=10)


class CountingModel:
    """A critic and a generator; counts what reaches it."""

    identity = ModelIdentity("counting", "r1")

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return [Generation(f"1. {request.prompt}.", "stop", Usage(3, 2)) for request in requests]

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self.batches.append(list(claims))
        return [CriticScore(1 / (2 + len(claim)), Usage(5, 1)) for claim in claims]


REQUEST = GenerationRequest("prompt", ("x",), ("y",), 0)
CHANGED_REQUESTS = [
    replace(REQUEST, prompt="prompt "),
    replace(REQUEST, excluded_values=("x", "z")),
    replace(REQUEST, excluded_values=()),
    replace(REQUEST, banned_tokens_of=("z",)),
    replace(REQUEST, sample_index=1),
    replace(REQUEST, form=ReplyForm(1, "Dish")),
]
CHANGED_PARAMETERS = [
    replace(PARAMETERS, temperature=0.8),
    replace(PARAMETERS, top_p=0.9),
    replace(PARAMETERS, max_tokens=11),
    replace(PARAMETERS, seed=1),
]


@pytest.mark.parametrize("request_", CHANGED_REQUESTS)
def test_any_change_of_a_request_is_a_miss(request_: GenerationRequest) -> None:
    """Every field of a request is part of its identity."""
    generator = JournaledGenerator(CountingModel(), Journal(KnowledgeBase()))

    assert generator.call_ids([request_], PARAMETERS) != generator.call_ids([REQUEST], PARAMETERS)


def test_every_field_has_a_case() -> None:
    """A field added to a request or to the parameters needs a case above, other words for the same question do not."""
    changed = {
        name
        for base, variants in ((REQUEST, CHANGED_REQUESTS), (PARAMETERS, CHANGED_PARAMETERS))
        for variant in variants
        for name in base.__dataclass_fields__
        if getattr(base, name) != getattr(variant, name)
    }

    fields = {*GenerationRequest.__dataclass_fields__, *GenerationParameters.__dataclass_fields__}
    assert changed == fields - {"listed"}


def test_duplicates_are_sent_once(fresh_kb: KnowledgeBase) -> None:
    """Equal claims of one batch are one request and get one answer each."""
    model, journal = CountingModel(), Journal(fresh_kb)

    scores = JournaledCritic(model, journal).probabilities(["a", "bb", "a", "a"])

    assert model.batches == [["a", "bb"]]
    assert scores[0] == scores[2] == scores[3] != scores[1]
    assert journal.statistics["critic"] == CallStatistics(2, 2, 10, 2, None)


class WatchedStore(KnowledgeBase):
    """Counts what it is asked for, and lets something happen before it gives the right to ask."""

    def __init__(self, path: Path, before_asking: Callable[[], object] = lambda: None) -> None:
        super().__init__(path)
        self.looked_up: list[int] = []
        self._before_asking = before_asking

    def calls(self, request_ids: Iterable[str] | None = None) -> dict[str, CallRecord]:
        ids = list(request_ids or ())
        self.looked_up.append(len(ids))
        return super().calls(ids)

    def asking(self) -> AbstractContextManager[None]:
        self._before_asking()
        return super().asking()


def test_what_another_process_asked_meanwhile_is_not_asked_again(tmp_path: Path) -> None:
    """Between the look at the store and the right to ask, another one may have asked: then there is a second look."""
    model, second = CountingModel(), CountingModel()

    def meanwhile() -> None:
        with KnowledgeBase(tmp_path / "hapax.db") as its_own:
            JournaledCritic(second, Journal(its_own)).probabilities(["b"])

    kb = WatchedStore(tmp_path / "hapax.db", meanwhile)
    with kb:
        scores = JournaledCritic(model, Journal(kb)).probabilities(["a", "b"])

        assert (kb.looked_up, model.batches, second.batches) == ([2, 2], [["a"]], [["b"]])
        assert [score.probability for score in scores] == [1 / 3, 1 / 3]
