"""The journal asks a model nothing twice, keeps a budget, and loses at most the batch in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.errors import HapaxError
from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import FREE, Budget, BudgetReached, CallStatistics, Price
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.journal import BatchReport, Journal
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    ReplyForm,
    Usage,
)

PARAMETERS = GenerationParameters(max_tokens=10)


class CountingModel:
    """All roles; counts what reaches it and can break at the n-th batch."""

    def __init__(self, name: str = "counting", breaks_at: int | None = None) -> None:
        self.identity = ModelIdentity(name, "r1")
        self.batches: list[list[Any]] = []
        self._breaks_at = breaks_at

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        self._take(requests)
        return [Generation(f"1. {request.prompt}.", "stop", Usage(3, 2)) for request in requests]

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self._take(claims)
        return [CriticScore(1 / (2 + len(claim)), Usage(5, 1)) for claim in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self._take(texts)
        return [LogLikelihood(-0.1 * len(text), len(text)) for text in texts]

    def _take(self, asked: Sequence[Any]) -> None:
        if len(self.batches) == self._breaks_at:
            raise KeyboardInterrupt
        self.batches.append(list(asked))


class BrokenModel(CountingModel):
    """Gives answers that are no answers."""

    def __init__(self, answers: list[Any]) -> None:
        super().__init__()
        self._answers = answers

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return self._answers

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self._answers


def test_answers_come_from_the_journal_the_second_time(fresh_kb: KnowledgeBase) -> None:
    """The same requests give the same answers in every role, and a second run sends nothing."""
    first, second = CountingModel(), CountingModel()
    request = GenerationRequest("a", excluded_values=("x",), sample_index=1)

    answers = []
    for model in (first, second):
        journal = Journal(fresh_kb)
        answers.append(
            (
                JournaledGenerator(model, journal).generate([request], PARAMETERS),
                JournaledCritic(model, journal).probabilities(["a", "bb"]),
                JournaledLikelihood(model, journal).log_likelihoods(["a", "bb"]),
            )
        )

    assert answers[0] == answers[1]
    assert len(first.batches) == 3
    assert second.batches == []


def test_likelihood_and_evaluator_share_answers(fresh_kb: KnowledgeBase) -> None:
    """One model that ranks and judges is asked once for a text."""
    model, journal = CountingModel(), Journal(fresh_kb)

    JournaledLikelihood(model, journal).log_likelihoods(["a"])
    JournaledLikelihood(model, journal, role="evaluator").log_likelihoods(["a"])

    assert model.batches == [["a"]]
    assert journal.statistics["evaluator"] == CallStatistics(hits=1)


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


@pytest.mark.parametrize("parameters", CHANGED_PARAMETERS)
def test_any_change_of_a_parameter_is_a_miss(parameters: GenerationParameters) -> None:
    """Every sampling parameter is part of a request's identity."""
    generator = JournaledGenerator(CountingModel(), Journal(KnowledgeBase()))

    assert generator.call_ids([REQUEST], parameters) != generator.call_ids([REQUEST], PARAMETERS)


def test_every_field_has_a_case() -> None:
    """A field added to a request or to the parameters needs a case above."""
    changed = {
        name
        for base, variants in ((REQUEST, CHANGED_REQUESTS), (PARAMETERS, CHANGED_PARAMETERS))
        for variant in variants
        for name in base.__dataclass_fields__
        if getattr(base, name) != getattr(variant, name)
    }

    assert changed == {*GenerationRequest.__dataclass_fields__, *GenerationParameters.__dataclass_fields__}


requests = st.builds(
    GenerationRequest,
    st.text(max_size=5),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.integers(0, 3),
)


@given(requests, requests)
def test_equal_ids_mean_equal_requests(left: GenerationRequest, right: GenerationRequest) -> None:
    """Two requests have one identity exactly if they are equal."""
    generator = JournaledGenerator(CountingModel(), Journal(KnowledgeBase()))
    first, second = generator.call_ids([left, right], PARAMETERS)

    assert (first == second) == (left == right)


def test_name_and_revision_are_part_of_the_identity(fresh_kb: KnowledgeBase) -> None:
    """Another model, or another revision of one, is asked anew."""
    ids = set()
    for identity in (ModelIdentity("m", "1"), ModelIdentity("m", "2"), ModelIdentity("n", "1")):
        model = CountingModel()
        model.identity = identity
        ids.update(JournaledCritic(model, Journal(fresh_kb)).call_ids(["a"]))

    assert len(ids) == 3


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


def test_nothing_is_looked_up_twice_where_nobody_else_writes(tmp_path: Path) -> None:
    """One look at the store says what it lacks, however much this process has just written itself."""
    model, kb = CountingModel(), WatchedStore(tmp_path / "hapax.db")
    with kb:
        critic = JournaledCritic(model, Journal(kb))
        critic.probabilities(["a", "b"])
        critic.probabilities(["b", "c"])

        assert (kb.looked_up, model.batches) == ([2, 2], [["a", "b"], ["c"]])


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


def test_batches_have_the_size_asked_for_and_are_reported(fresh_kb: KnowledgeBase) -> None:
    """Misses go out in batches; a progress bar hears of hits and of every batch."""
    reports: list[BatchReport] = []
    model = CountingModel()
    critic = JournaledCritic(model, Journal(fresh_kb, on_batch=reports.append), batch_size=2)

    critic.probabilities(["a"])
    critic.probabilities(["a", "b", "c", "d"])

    assert [len(batch) for batch in model.batches] == [1, 2, 1]
    assert [(report.sent, report.hits) for report in reports] == [(1, 0), (0, 1), (2, 0), (1, 0)]


def test_interruption_loses_the_batch_in_flight_only(fresh_kb: KnowledgeBase) -> None:
    """Every answer before a break is in the journal, so that the next run sends only the rest."""
    claims = [f"claim {number}" for number in range(10)]
    with pytest.raises(KeyboardInterrupt):
        JournaledCritic(CountingModel(breaks_at=2), Journal(fresh_kb), batch_size=3).probabilities(claims)

    model = CountingModel()
    JournaledCritic(model, Journal(fresh_kb), batch_size=3).probabilities(claims)

    assert [claim for batch in model.batches for claim in batch] == claims[6:]


def test_budget_of_calls_sends_what_it_allows(fresh_kb: KnowledgeBase) -> None:
    """The budget stops before the call beyond it, with what was answered in the exception and in the journal."""
    model = CountingModel()
    journal = Journal(fresh_kb, Budget(max_calls=5))

    with pytest.raises(BudgetReached, match="the limit of 5 on calls; so far 5 calls") as stopped:
        JournaledCritic(model, journal, batch_size=2).probabilities([f"{number}" for number in range(8)])

    assert stopped.value.limit == "calls"
    assert stopped.value.used.calls == 5
    assert [answer is None for answer in stopped.value.answers] == [False] * 5 + [True] * 3
    assert isinstance(stopped.value.answers[0], CriticScore)
    assert len(fresh_kb.calls()) == 5


def test_answers_of_the_journal_are_free(fresh_kb: KnowledgeBase) -> None:
    """A budget of no calls at all still answers what is known."""
    JournaledCritic(CountingModel(), Journal(fresh_kb)).probabilities(["a"])

    assert JournaledCritic(CountingModel(), Journal(fresh_kb, Budget(max_calls=0))).probabilities(["a"])


def test_budget_of_tokens_is_reserved_and_settled(fresh_kb: KnowledgeBase) -> None:
    """A request reserves its longest answer, and only what it really took counts afterwards."""
    journal = Journal(fresh_kb, Budget(max_tokens=25))
    generator = JournaledGenerator(CountingModel(), journal, batch_size=1)

    generator.generate([GenerationRequest("a"), GenerationRequest("b"), GenerationRequest("c")], PARAMETERS)
    with pytest.raises(BudgetReached, match="the limit of 25 on tokens"):
        generator.generate([GenerationRequest("d")], PARAMETERS)

    assert journal.total.tokens == 15


def test_budget_of_money_uses_the_price_table(fresh_kb: KnowledgeBase) -> None:
    """Money is reserved at the model's price per million tokens."""
    prices = {"counting": Price(prompt=1_000_000.0, completion=0.0)}
    journal = Journal(fresh_kb, Budget(max_cost=6.0), prices)
    critic = JournaledCritic(CountingModel(), journal)

    critic.probabilities(["a"])
    with pytest.raises(BudgetReached, match="the limit of 6 on cost"):
        critic.probabilities(["cccccc"])

    assert journal.total.cost == pytest.approx(5.0)
    assert [call.cost for call in fresh_kb.calls().values()] == [5.0]


def test_unknown_price_is_unknown_and_never_zero(fresh_kb: KnowledgeBase) -> None:
    """Without a price the cost is None; a limit on cost is refused, since it could not be kept."""
    journal = Journal(fresh_kb, prices={"other": FREE})
    JournaledCritic(CountingModel("other"), journal).probabilities(["a"])

    assert journal.total.cost == 0.0

    JournaledCritic(CountingModel(), journal).probabilities(["a"])

    assert journal.total.cost is None
    with pytest.raises(HapaxError, match="price of counting is unknown"):
        JournaledCritic(CountingModel(), Journal(fresh_kb, Budget(max_cost=1.0))).probabilities(["new"])


def test_budget_can_count_one_role_alone(fresh_kb: KnowledgeBase) -> None:
    """A limit on calls can mean the knowledge model's calls."""
    journal = Journal(fresh_kb, Budget(max_calls=1, roles=frozenset({"knowledge"})))
    JournaledCritic(CountingModel(), journal).probabilities(["a", "b", "c"])
    generator = JournaledGenerator(CountingModel(), journal)

    generator.generate([GenerationRequest("a")], PARAMETERS)
    with pytest.raises(BudgetReached):
        generator.generate([GenerationRequest("b")], PARAMETERS)


@pytest.mark.parametrize("answers", [[], [CriticScore(1.5)], [CriticScore(float("nan"))]])
def test_broken_critic_is_named(fresh_kb: KnowledgeBase, answers: list[CriticScore]) -> None:
    """Missing answers and impossible probabilities are refused and not journaled."""
    with pytest.raises(HapaxError, match="counting gave"):
        JournaledCritic(BrokenModel(answers), Journal(fresh_kb)).probabilities(["a"])

    assert fresh_kb.calls() == {}


def test_infinite_likelihood_is_refused(fresh_kb: KnowledgeBase) -> None:
    """A log-likelihood that is no finite number is no score."""
    with pytest.raises(HapaxError, match="-inf"):
        JournaledLikelihood(BrokenModel([LogLikelihood(float("-inf"), 1)]), Journal(fresh_kb)).log_likelihoods(["a"])


def test_broken_unicode_in_a_reply_is_stored(fresh_kb: KnowledgeBase) -> None:
    """A lone surrogate in a reply neither stops the run nor makes first and second answer differ."""

    class Surrogates(CountingModel):
        def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
            return [Generation("1. a\ud800\x00'\"b.")]

    generator = JournaledGenerator(Surrogates(), Journal(fresh_kb))
    first = generator.generate([REQUEST], PARAMETERS)

    assert first == generator.generate([REQUEST], PARAMETERS) == [Generation("1. a?\x00'\"b.")]


def test_nothing_asked_is_nothing_answered(fresh_kb: KnowledgeBase) -> None:
    """An empty input touches neither model nor journal."""
    assert JournaledCritic(BrokenModel([CriticScore(0.5)]), Journal(fresh_kb)).probabilities([]) == []
