"""Likelihood of stored statements: delta, reranking, and agreement of evaluators (LINK, 3.2, D.4, E.2).

Statements and scores are read from the knowledge base. An evaluator is asked, through the journal, only for scores that
are missing; they are stored then.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Any

from hapax.engine.judgements import Judgements
from hapax.engine.questions.score_maps import short_model_name
from hapax.engine.run_memory import identities_of, models_of
from hapax.engine.search.ranking import KEEP_SHARE, keep_count
from hapax.evaluation.shared.estimates import (
    Estimate,
    auc,
    difference_of_means,
    mean,
    mean_share,
    rank_correlation,
    share,
)
from hapax.evaluation.shared.stored_statements import INSTRUCT
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.records import ASSESSMENTS, RULES, Assessment, Distribution, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.critics.circularity import is_circular
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledLikelihood
from hapax.llm_oracle.protocols import EVALUATOR, LIKELIHOOD, LikelihoodModel, LogLikelihood, ModelIdentity

_Group = tuple[str, str, Distribution]
"""Method or run, rule, and distribution."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A rule's mean log-likelihood of head minus long tail, in nats per token (LINK, 3.2), with statement counts."""

    method: str
    rule: str
    evaluator: str
    head: int
    long_tail: int
    delta: Estimate


@dataclass(frozen=True, slots=True)
class MeanDelta:
    """Mean of the rules' deltas, as in the paper; all intervals are over rules.

    `auc`: mean over rules of the probability that a head statement is likelier than a long-tail one; `positive`: share
    of rules with delta above 0. `circular`: the evaluator ranked the search, or taught the ranker or learned from it.
    """

    method: str
    evaluator: str
    delta: Estimate
    auc: Estimate
    positive: Estimate
    circular: bool


@dataclass(frozen=True, slots=True)
class Reranking:
    """Mean delta of an unranked method, before and after 75 % of its finished statements are kept (D.4).

    The evaluator's scores choose the likeliest statements of the head and the least likely of the long tail.
    """

    method: str
    evaluator: str
    before: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorAgreement:
    """Agreement of two evaluators (LINK, E.2).

    `statements`: rank correlation over all distinct statements. `deltas`: rank correlation of the rules' deltas.
    `signs`: share of rules whose deltas have the same sign. `low`: of the statements in the less likely half of their
    rule for one evaluator, the share that is in this half for the other, too; chance is one half.
    """

    first: str
    second: str
    statements: Estimate
    deltas: Estimate
    signs: Estimate
    low: Estimate


@dataclass(frozen=True, slots=True)
class LikelihoodReport:
    """Results of `measure`. Figures show the first evaluator and the first method."""

    evaluators: tuple[str, ...]
    methods: tuple[SearchMethod, ...]
    samples: Samples
    deltas: tuple[Delta, ...]
    mean_deltas: tuple[MeanDelta, ...]
    agreements: tuple[EvaluatorAgreement, ...]
    denied: frozenset[str] = frozenset()
    """Texts that people judged wrong, or to have a value of a wrong type."""
    rerankings: tuple[Reranking, ...] = ()

    @property
    def headlines(self) -> list[MeanDelta]:
        """The mean deltas by method, those of independent evaluators before circular ones."""
        order = {method.name: place for place, method in enumerate(self.methods)}
        return sorted(self.mean_deltas, key=lambda mean: (order[mean.method], mean.circular))

    def short_name(self, evaluator: str) -> str:
        """The evaluator's name without its revision, unless another evaluator has the same name."""
        name = evaluator.partition("@")[0]
        namesakes = [namesake for namesake in self.evaluators if namesake.partition("@")[0] == name]
        return name if len(namesakes) <= 1 else evaluator


def measure(
    kb: KnowledgeBase,
    evaluators: Sequence[LikelihoodModel] = (),
    rules: Sequence[str] = (),
    journal: Journal | None = None,
) -> LikelihoodReport:
    """Measure the statements of a knowledge base; of each method and rule, those of the latest run.

    `evaluators` are asked for missing scores; without any, all evaluators count that scored all of the statements.
    `rules`: only these; without any, all. Raises HapaxError where there is nothing to measure.
    """
    journal = journal or Journal(kb)
    statements = _statements(kb, rules)
    runs = runs_of(kb, statements)
    methods = method_names(runs)
    groups = _latest(runs, methods, statements)
    # In the order of the library; rules that it does not hold come last, by name.
    order = {rule.name: place for place, rule in enumerate(kb.select(RULES))}
    rule_names = sorted({rule for _, rule, _ in groups}, key=lambda name: (order.get(name, len(order)), name))
    latest = list(chain.from_iterable(groups.values()))
    # Methods may share texts; each is scored once.
    texts = list(dict.fromkeys(statement.text for statement in latest))
    scores = ask_scores(kb, evaluators, texts, journal) if evaluators else stored_scores(kb, runs, texts)
    samples = []
    for evaluator, by_text in scores.items():
        for method, rule, distribution in product(dict.fromkeys(methods.values()), rule_names, Distribution):
            group = groups.get((method, rule, distribution), [])
            samples.append(sample_of((method, rule, distribution, evaluator), group, by_text))
    judged = Judgements.stored(kb)
    circular = _circular(scores, runs, methods, evaluators)
    report = _report(tuple(scores), ordered_methods(methods, runs), Samples.of(rule_names, samples), circular)
    return replace(
        report,
        denied=frozenset(statement.text for statement in latest if judged.of(statement.id).is_wrong),
        rerankings=tuple(_rerankings(report)),
    )


def latest_statements(kb: KnowledgeBase, rules: Sequence[str] = ()) -> list[StatementRecord]:
    """Of each method, rule and distribution, the statements of the latest run. Raises HapaxError without any."""
    statements = _statements(kb, rules)
    runs = runs_of(kb, statements)
    return list(chain.from_iterable(_latest(runs, method_names(runs), statements).values()))


def _statements(kb: KnowledgeBase, rules: Sequence[str]) -> list[StatementRecord]:
    statements: list[StatementRecord] = []
    for rule in rules:
        statements += kb.statements(rule=rule)
    if not rules:
        statements = list(kb.statements())
    missing = sorted(set(rules) - {statement.rule for statement in statements})
    if missing:
        raise HapaxError(
            f"{kb.place} has no statement of {', '.join(missing)}.", Remedy("Run {} for it first.", Operation("search"))
        )
    if not statements:
        raise HapaxError(f"{kb.place} has no statements.", Remedy("Run {} first.", Operation("search")))
    return statements


def _latest(
    runs: Sequence[RunRecord], methods: Mapping[str, str], statements: Sequence[StatementRecord]
) -> dict[_Group, list[StatementRecord]]:
    """Statements by method, rule and distribution, each group from the last run that wrote some or found none."""
    by_run: dict[_Group, list[StatementRecord]] = defaultdict(list)
    for statement in statements:
        by_run[statement.run_id, statement.rule, statement.distribution].append(statement)
    # Ordered, so that texts are asked in the same order on each call.
    parts = dict.fromkeys((rule, distribution) for _, rule, distribution in by_run)
    latest: dict[_Group, list[StatementRecord]] = {}
    for run in runs:
        # A rule is "cut" by a budget and "skipped" if the model lacks its predicates: it may still have statements.
        unfinished = (*run.summary.get("cut", ()), *run.summary.get("skipped", ()))
        for rule, distribution in parts:
            written = by_run.get((run.id, rule, distribution), [])
            searched = rule in run.settings.get("rules", ()) and distribution in run.settings.get("distributions", ())
            completed = searched and run.status == "done" and rule not in unfinished
            # A completed search without statements replaces those of an earlier one: they are no longer found.
            if written or completed:
                # Runs come in the order of their starts, so the last one wins.
                latest[methods[run.id], rule, distribution] = written
    return {group: written for group, written in latest.items() if written}


def _circular(
    names: Iterable[str],
    runs: Sequence[RunRecord],
    methods: Mapping[str, str],
    evaluators: Sequence[LikelihoodModel],
) -> set[tuple[str, str]]:
    """Pairs of a method and an evaluator that is not an independent judge of it."""
    identities = {model.identity.title: model.identity for model in evaluators}
    for run in runs:
        recorded, full_name = identities_of(run).get(EVALUATOR), models_of(run).get(EVALUATOR)
        if recorded is not None and full_name is not None:
            # The identity of an opened model goes before the recorded one.
            identities.setdefault(full_name, recorded)
    pairs = set()
    for name, run in product(names, runs):
        # Of an evaluator known by stored scores alone, only the name can be compared.
        judge = identities.get(name, ModelIdentity(name.partition("@")[0]))
        ranker = identities_of(run).get(LIKELIHOOD)
        if ranker is not None and is_circular(judge, ranker):
            pairs.add((methods[run.id], name))
    return pairs


def _report(
    evaluators: tuple[str, ...],
    methods: tuple[SearchMethod, ...],
    samples: Samples,
    circular: Container[tuple[str, str]],
) -> LikelihoodReport:
    # Methods none of whose statements has a finite score are not reported.
    present = {sample.method for sample in samples}
    methods = tuple(method for method in methods if method.name in present)
    deltas: list[Delta] = []
    means: list[MeanDelta] = []
    for method in methods:
        for evaluator in evaluators:
            values = []
            pairs = samples.pairs(method.name, evaluator)
            for rule, (head, long_tail) in pairs.items():
                difference = difference_of_means(head.scores, long_tail.scores)
                sizes = len(head.scores), len(long_tail.scores)
                deltas.append(Delta(method.name, rule, evaluator, *sizes, difference))
                values.append(difference.value)
            # The AUC depends on the order of scores alone, so it compares evaluators of different scales.
            areas = [auc(head.scores, long_tail.scores) for head, long_tail in pairs.values()]
            means.append(
                MeanDelta(
                    method.name,
                    evaluator,
                    mean(values),
                    mean_share(areas),
                    share([value > 0 for value in values]),
                    (method.name, evaluator) in circular,
                )
            )
    agreements = [_agreement(first, second, samples, deltas) for first, second in combinations(evaluators, 2)]
    return LikelihoodReport(evaluators, methods, samples, tuple(deltas), tuple(means), tuple(agreements))


def _rerankings(report: LikelihoodReport) -> Iterator[Reranking]:
    for method in report.methods:
        if not method.is_unranked:
            continue
        for evaluator in report.evaluators:
            before, after = [], []
            for head, long_tail in report.samples.pairs(method.name, evaluator).values():
                before.append(head.mean - long_tail.mean)
                after.append(reranked(head).mean - reranked(long_tail).mean)
            if before:
                yield Reranking(method.name, evaluator, mean(before), mean(after))


def _agreement(first: str, second: str, samples: Samples, deltas: Sequence[Delta]) -> EvaluatorAgreement:
    by_rule: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for sample in samples:
        # Methods may share a statement; by its text, it counts once.
        by_rule[sample.rule][sample.evaluator].update(zip(sample.texts, sample.scores, strict=True))
    score_pairs, low = [], []
    for scores in by_rule.values():
        shared = [text for text in scores[first] if text in scores[second]]
        score_pairs += [(scores[first][text], scores[second][text]) for text in shared]
        low += [text in _less_likely(shared, scores[second]) for text in _less_likely(shared, scores[first])]
    by_place = {(delta.method, delta.rule, delta.evaluator): delta.delta.value for delta in deltas}
    delta_pairs = []
    for (method, rule, evaluator), value in by_place.items():
        if evaluator == first and (method, rule, second) in by_place:
            delta_pairs.append((value, by_place[method, rule, second]))
    return EvaluatorAgreement(
        first,
        second,
        _correlation(score_pairs),
        _correlation(delta_pairs),
        # Two deltas of 0 agree.
        share([_sign(delta) == _sign(second_delta) for delta, second_delta in delta_pairs]),
        share(low),
    )


def _less_likely(texts: Sequence[str], scores: Mapping[str, float]) -> set[str]:
    """The less likely half of the texts, without the middle one of an odd number."""
    return set(sorted(texts, key=lambda text: (scores[text], text))[: len(texts) // 2])


def _correlation(pairs: Sequence[tuple[float, float]]) -> Estimate:
    return rank_correlation([first for first, _ in pairs], [second for _, second in pairs])


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


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


def reranked(sample: Sample) -> Sample:
    """The statements that reranking keeps: 75 %, the likeliest of the head, the least likely of the long tail (D.4)."""
    # Ascending by sign * score: the likeliest of the head first, the least likely of the long tail.
    sign = -1.0 if sample.distribution is Distribution.HEAD else 1.0
    places = sorted(range(len(sample.texts)), key=lambda place: (sign * sample.scores[place], sample.texts[place]))
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
