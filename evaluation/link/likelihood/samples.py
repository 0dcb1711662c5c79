"""Methods of making statements, and samples of stored statements with an evaluator's scores."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hapax.engine.search.ranking import KEEP_SHARE, keep_count
from hapax.engine.search.score_maps import short_model_name
from hapax.evaluation.shared.stored_statements import INSTRUCT
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import ASSESSMENTS, Assessment, Distribution, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.calls import JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import EVALUATOR, LikelihoodModel, LogLikelihood

KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL = "knowledge model", "critic model", "likelihood model"
"""Traits that name a model; the other traits are named as in `SearchSettings`."""

_MODELS = (KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL)
_SEARCH, _UNKNOWN = "search", "unknown"

# Settings in which runs of one method may differ. "models" is replaced by one trait for each role.
_NO_TRAITS = ("rules", "rules_together", "distributions", "models", "evaluator", "taught_by")

_TRAIT_NAMES = {
    ("critic", True): "with critic",
    ("critic", False): "without critic",
    ("likelihood", "model"): "ranked",
    ("likelihood", "random"): "drawn at random",
    ("released", True): "the released prompt",
    ("released", False): "the paper's prompt",
    ("bias", True): "with logit bias",
    ("bias", False): "without logit bias",
}


@dataclass(frozen=True, slots=True)
class SearchMethod:
    """A way of making statements: a kind of search, of instruction, or an import."""

    name: str
    traits: Mapping[str, Any]

    @property
    def is_search(self) -> bool:
        return bool(self.traits["command"] == _SEARCH)

    @property
    def is_instruction(self) -> bool:
        return bool(self.traits["command"] == INSTRUCT)

    @property
    def is_unranked(self) -> bool:
        """True if no likelihood chose its statements, so that they can be reranked afterwards."""
        return self.is_instruction or (self.is_search and self.traits.get("likelihood") != "model")

    @property
    def wording(self) -> int:
        """Number in LINK's table 11 of the wording that asks for the long tail; 0 if none does."""
        return int(self.traits.get("wording", 0)) if self.is_instruction else 0


def methods_by_run(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> dict[str, str]:
    """Name of the method by run id, for the runs of these statements."""
    return method_names(runs_of(kb, statements))


def runs_of(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> list[RunRecord]:
    """The runs of the statements and other runs of the same methods, in the order of their last start."""
    stored = {run.id: run for run in kb.runs()}
    run_ids = dict.fromkeys(statement.run_id for statement in statements)
    # Statements of merged knowledge bases can name runs that are not stored; they count as the oldest.
    unknown = [RunRecord(run_id, _UNKNOWN, {}, run_id, "") for run_id in run_ids if run_id not in stored]
    traits = [_traits(run) for run in stored.values() if run.id in run_ids]
    # A later search of a method that found nothing supersedes the statements of an earlier one.
    same_methods = [run for run in stored.values() if _traits(run) in traits]
    return [*unknown, *sorted(same_methods, key=lambda run: run.started)]


def method_names(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Name of the method by run id: the traits in which searches, or instructions, differ; all traits of an import."""
    traits = _with_short_names({run.id: _traits(run) for run in runs})
    differing = {}
    for command in (_SEARCH, INSTRUCT):
        differing[command] = _differing([traits[run.id] for run in runs if run.command == command])
    # Imports have no entry in `differing` and are named by all their traits.
    return {run.id: _name(traits[run.id], differing.get(run.command)) for run in runs}


def ordered_methods(names: Mapping[str, str], runs: Sequence[RunRecord]) -> tuple[SearchMethod, ...]:
    """The methods of runs, by their names by run id: complete searches first, then ablated ones, then all others."""
    traits = {names[run.id]: _traits(run) for run in runs}
    # Runs of one method share a name, and the last of them gives the traits.
    methods = [SearchMethod(name, traits[name]) for name in traits]

    def order(method: SearchMethod) -> tuple[bool, bool, bool, int]:
        # False sorts before True; the sort is stable, so equal methods stay in the order of their runs.
        return (
            method.traits.get("command") != _SEARCH,
            method.traits.get("critic") is not True,
            method.traits.get("likelihood") != "model",
            method.wording,
        )

    return tuple(sorted(methods, key=order))


def _traits(run: RunRecord) -> dict[str, Any]:
    settings = {name: value for name, value in run.settings.items() if name not in _NO_TRAITS}
    if run.command != _SEARCH:
        return {"command": run.command, **settings}
    # A fourth model is stored, too: the evaluator, in which runs of one method may differ.
    models = dict(zip(_MODELS, run.settings.get("models", ()), strict=False))
    return {"command": _SEARCH, **models, **settings}


def _with_short_names(traits: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The traits with short names of models, unless two models share a short name."""
    models: set[str] = set()
    for run_traits in traits.values():
        models.update(run_traits[role] for role in _MODELS if isinstance(run_traits.get(role), str))
    counts = Counter(map(short_model_name, models))
    names = {name: name if counts[short_model_name(name)] > 1 else short_model_name(name) for name in models}
    shortened = {}
    for run_id, run_traits in traits.items():
        roles = {role: names.get(run_traits[role], run_traits[role]) for role in _MODELS if role in run_traits}
        shortened[run_id] = {**run_traits, **roles}
    return shortened


def _differing(traits: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the traits in which runs differ."""
    names = dict.fromkeys(chain.from_iterable(traits))
    differing = []
    for name in names:
        # A role that the knowledge model plays in all runs: naming it as well would add nothing.
        if name in {CRITIC_MODEL, LIKELIHOOD_MODEL}:
            is_other = [run_traits.get(name) != run_traits.get(KNOWLEDGE_MODEL) for run_traits in traits]
            if not any(is_other):
                continue
        # As JSON, because a setting may be a list, which no set can hold.
        if len({json.dumps(run_traits.get(name)) for run_traits in traits}) > 1:
            differing.append(name)
    return differing


def _name(traits: Mapping[str, Any], differing: Sequence[str] | None) -> str:
    if differing is None:
        return " ".join(map(str, traits.values()))
    if traits["command"] == INSTRUCT:
        # Always named by its model, even where there is only one.
        words = [_trait_text(trait, traits.get(trait)) for trait in differing if trait != KNOWLEDGE_MODEL]
        return ", ".join([f"instruction only, {traits[KNOWLEDGE_MODEL]}", *words])
    return ", ".join(_trait_text(trait, traits.get(trait)) for trait in differing) or _SEARCH


def _trait_text(trait: str, value: Any) -> str:
    name = _TRAIT_NAMES.get((trait, value)) if isinstance(value, str | bool) else None
    return name or f"{trait.replace('_', ' ')} {'none' if value is None else value}"


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
