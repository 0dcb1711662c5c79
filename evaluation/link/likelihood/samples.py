"""Samples of stored statements with an evaluator's scores, by method, rule and distribution."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from hapax.engine.search.ranking import KEEP_SHARE, keep_count
from hapax.engine.search.report import SearchReport
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import ASSESSMENTS, Assessment, Distribution, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.calls import JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import EVALUATOR, LikelihoodModel, LogLikelihood

_MEASURE = "log_likelihood"
"""Name of the measure under which assessments are stored."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One method's statements of one rule and distribution, with an evaluator's mean token log-likelihoods in nats.

    The statements are in ascending order of their scores.
    """

    method: str
    rule: str
    distribution: Distribution
    evaluator: str
    texts: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.scores) / len(self.scores)


SampleKey = tuple[str, str, Distribution, str]
"""Method, rule, distribution and evaluator of a sample."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples by method, rule, distribution and evaluator; none is empty. `rules` are in the order of their library."""

    rules: tuple[str, ...]
    by_key: Mapping[SampleKey, Sample]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.by_key.values())

    def pair(self, method: str, rule: str, evaluator: str) -> tuple[Sample, Sample] | None:
        """Head and long tail of a method and rule; None if either is missing."""
        head = self.by_key.get((method, rule, Distribution.HEAD, evaluator))
        long_tail = self.by_key.get((method, rule, Distribution.LONG_TAIL, evaluator))
        return (head, long_tail) if head and long_tail else None

    def pairs(self, method: str, evaluator: str) -> dict[str, tuple[Sample, Sample]]:
        """Head and long tail of a method by rule, for the rules that have both."""
        pairs = {}
        for rule in self.rules:
            if pair := self.pair(method, rule, evaluator):
                pairs[rule] = pair
        return pairs

    def without(self, texts: frozenset[str]) -> Samples:
        """The samples without the statements of these texts."""
        samples = []
        for sample in self:
            # By place, because texts and scores are parallel.
            places = [place for place, text in enumerate(sample.texts) if text not in texts]
            samples.append(_selection(sample, places))
        return self.of(self.rules, samples)

    @classmethod
    def of(cls, rules: Sequence[str], samples: Iterable[Sample]) -> Samples:
        """Collect the samples that have a statement."""
        by_key: dict[SampleKey, Sample] = {}
        for sample in samples:
            if sample.scores:
                by_key[sample.method, sample.rule, sample.distribution, sample.evaluator] = sample
        return cls(tuple(rules), by_key)


def search_samples(reports: Mapping[str, SearchReport], evaluator: str) -> Samples:
    """The samples of searches by method name, with the scores of the evaluator that they ran with."""
    searched = chain.from_iterable(report.searched for report in reports.values())
    rules = dict.fromkeys(rule.rule for rule in searched)
    samples = []
    for method, report in reports.items():
        for rule in report.searched:
            for distribution, statements in rule.statements.items():
                scores = {}
                for statement in statements:
                    if statement.log_likelihood is not None:
                        scores[statement.text] = statement.log_likelihood
                samples.append(sample_of((method, rule.rule, distribution, evaluator), statements, scores))
    return Samples.of(tuple(rules), samples)


def sample_of(key: SampleKey, statements: Iterable[StatementRecord], scores: Mapping[str, float]) -> Sample:
    """The statements that have a finite score, in ascending order; `scores` are by text."""
    scored = [(scores[statement.text], statement.text) for statement in statements if statement.text in scores]
    # Ties by text, so that equal scores do not depend on the order of rows.
    finite = sorted((score, text) for score, text in scored if math.isfinite(score))
    return Sample(*key, tuple(text for _, text in finite), tuple(score for score, _ in finite))


def reranked(sample: Sample, scores: Mapping[str, float] | None = None) -> Sample:
    """The statements that reranking keeps: 75 %, the likeliest of the head, the least likely of the long tail (D.4).

    `scores`: those of the reranker, by text; None: the sample's own.
    """
    # Ascending by sign * score: the likeliest of the head first, the least likely of the long tail.
    sign = -1.0 if sample.distribution is Distribution.HEAD else 1.0
    ranks = scores or dict(zip(sample.texts, sample.scores, strict=True))

    def order(place: int) -> tuple[float, str]:
        text = sample.texts[place]
        # A text that the reranker has not scored ranks by the sample's own score.
        return sign * ranks.get(text, sample.scores[place]), text

    places = sorted(range(len(sample.texts)), key=order)
    return _selection(sample, places[: keep_count(len(places), KEEP_SHARE, len(places))])


def _selection(sample: Sample, places: Sequence[int]) -> Sample:
    """The statements at these places of the sample."""
    texts = tuple(sample.texts[place] for place in places)
    return replace(sample, texts=texts, scores=tuple(sample.scores[place] for place in places))


def ask_scores(
    kb: KnowledgeBase, evaluators: Sequence[LikelihoodModel], texts: Sequence[str], journal: Journal
) -> dict[str, dict[str, float]]:
    """The evaluators' scores by evaluator and text; missing ones are asked for and stored."""
    scores: dict[str, dict[str, float]] = {}
    deferrals = DeferralCollector()
    for model in evaluators:
        name = model.identity.title
        stored = kb.assessments(texts, _MEASURE, name)
        missing = [text for text in texts if text not in stored]
        with deferrals:
            answers = JournaledLikelihood(model, journal, role=EVALUATOR).log_likelihoods(missing)
        if deferrals.first is not None:
            # Requests were put off to a queue: the other evaluators only add theirs, and `raise_first` raises below.
            continue
        new = []
        for text, answer in zip(missing, answers, strict=True):
            new.append(Assessment(text, _MEASURE, name, answer.total, answer.token_count))
        # Stored evaluator by evaluator: a budget that ends at the next one loses none of these.
        kb.add(ASSESSMENTS, new)
        scores[name] = _scores_by_text([*stored.values(), *new])
    deferrals.raise_first()
    return scores


def stored_scores(kb: KnowledgeBase, runs: Sequence[RunRecord], texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """The scores of every evaluator that scored all texts, that of the latest run first."""
    assessors = kb.assessors(_MEASURE)
    latest: list[str] = []
    for run in reversed(runs):
        # Searches store the models of all four roles in order; instructions and imports name the evaluator alone.
        evaluators = run.settings.get("models", ())[3:] or [run.settings.get("evaluator")]
        latest += [name for name in evaluators if name in assessors]
    scores: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys([*latest, *assessors]):
        stored = kb.assessments(texts, _MEASURE, name)
        # Scores of a part of the statements would compare methods by different samples.
        if len(stored) == len(texts):
            scores[name] = _scores_by_text(stored.values())
    if not scores:
        raise HapaxError(
            f"{kb.place}: no evaluator has scored all {len(texts)} statements.",
            Remedy(
                "Name one with {}, such as frequency; missing scores are then asked for and stored.",
                Setting("options.evaluators"),
            ),
        )
    return scores


def _scores_by_text(assessments: Iterable[Assessment]) -> dict[str, float]:
    scores = {}
    for assessment in assessments:
        scores[assessment.text] = LogLikelihood(assessment.score, assessment.token_count).per_token
    return scores
