"""How likely stored statements are: head against long tail by rule, and what evaluators agree on (LINK, 3.2 and E.2).

Everything is read from the knowledge base. An evaluator whose scores it lacks is asked once, through the journal, and
its scores are kept.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from engine.gates import KEEP_SHARE, keep_count
from engine.oracle import model_name, short_model_name
from engine.report import SearchReport, SearchSettings
from evaluation.estimates import Estimate, difference_of_means, mean, rank_correlation, share, spearman
from evaluation.experiments import INSTRUCT
from evaluation.probing.items import verdicts_of
from grammar.errors import HapaxError
from kb.records import Assessment, Distribution, RunRecord, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import EVALUATOR, GoingOn, Journal, JournaledLikelihood
from llm_oracle.protocols import LikelihoodModel, LogLikelihood

KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL = "knowledge model", "critic model", "likelihood model"
"""The traits of a method that name a model; the others are named as in `SearchSettings`."""


_SEARCH, _UNKNOWN = "search", "unknown"
_NO_TRAITS = ("rules", "rules_together", "distributions", "models", "evaluator")
_MODELS = (KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL)
_SAID = (KNOWLEDGE_MODEL,)
"""What the name of an instruction tells in any case."""
_MEASURE = "log_likelihood"
_LEAST_TO_CORRELATE = 3


@dataclass(frozen=True, slots=True)
class Method:
    """Searches that differ in nothing but rules, distributions and evaluator: their statements belong together.

    So do instructions of a model. An import is a method, too. `name` tells the method from the others of the knowledge
    base.
    """

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
        """Whether no likelihood had a say in its statements, so that they can be reranked afterwards."""
        return self.is_instruction or (self.is_search and self.traits.get("likelihood") != "model")

    @property
    def wording(self) -> int:
        """Which of LINK's table 11 an instruction asked for the long tail with; 0: none."""
        return int(self.traits.get("wording", 0)) if self.is_instruction else 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One method's statements of one rule and distribution, with an evaluator's mean token log-likelihoods in nats."""

    method: str
    rule: str
    distribution: Distribution
    evaluator: str
    texts: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.scores) / len(self.scores)


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples by method, rule, distribution and evaluator; none is empty. `rules` are in the order of their library."""

    rules: tuple[str, ...]
    held: Mapping[tuple[str, str, Distribution, str], Sample]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.held.values())

    def pair(self, method: str, rule: str, evaluator: str) -> tuple[Sample, Sample] | None:
        """Head and long tail; None where one of them is missing."""
        head = self.held.get((method, rule, Distribution.HEAD, evaluator))
        long_tail = self.held.get((method, rule, Distribution.LONG_TAIL, evaluator))
        return (head, long_tail) if head and long_tail else None

    def without(self, denied: frozenset[str]) -> Samples:
        """The samples without these texts."""
        kept = (
            (one, [pair for pair in zip(one.texts, one.scores, strict=True) if pair[0] not in denied]) for one in self
        )
        fewer = (
            replace(one, texts=tuple(text for text, _ in pairs), scores=tuple(score for _, score in pairs))
            for one, pairs in kept
        )
        return self.of(self.rules, fewer)

    @classmethod
    def of(cls, rules: Sequence[str], samples: Iterable[Sample]) -> Samples:
        held = {(one.method, one.rule, one.distribution, one.evaluator): one for one in samples if one.scores}
        return cls(tuple(rules), held)


@dataclass(frozen=True, slots=True)
class Delta:
    """How much likelier a rule's head statements are than its long-tail ones, in nats a token (LINK, 3.2)."""

    method: str
    rule: str
    evaluator: str
    head: int
    long_tail: int
    delta: Estimate


@dataclass(frozen=True, slots=True)
class MeanDelta:
    """The mean of the rules' deltas, as the paper averages; the interval is over rules."""

    method: str
    evaluator: str
    delta: Estimate


@dataclass(frozen=True, slots=True)
class Reranking:
    """Mean delta of what no likelihood ranked, as it is and after 75 % of the finished statements are kept (D.4).

    `reranker`: whose scores chose the likeliest for the head and the least likely for the long tail.
    """

    method: str
    evaluator: str
    reranker: str
    before: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two evaluators say the same (LINK, E.2).

    `statements`: rank correlation over all distinct statements. `within_rules`: the same inside each rule, averaged
    over rules, because the wording of rules alone makes statements differ. `deltas`: rank correlation of the rules'
    deltas. `signs`: share of rules whose deltas have the same sign.
    """

    one: str
    other: str
    statements: Estimate
    within_rules: Estimate
    deltas: Estimate
    signs: Estimate


@dataclass(frozen=True, slots=True)
class LikelihoodReport:
    """What `measure` found. The first evaluator and the first method are those that figures show."""

    evaluators: tuple[str, ...]
    methods: tuple[Method, ...]
    samples: Samples
    deltas: tuple[Delta, ...]
    mean_deltas: tuple[MeanDelta, ...]
    agreements: tuple[Agreement, ...]
    denied: frozenset[str] = frozenset()
    """The statements that people judged wrong, or to have a value of a wrong type."""
    rerankings: tuple[Reranking, ...] = ()

    @property
    def own_rankers(self) -> tuple[str, ...]:
        """Evaluators that also ranked a search: they measure it by its own yardstick."""
        rankers = {one.traits.get(LIKELIHOOD_MODEL) for one in self.methods if one.traits.get("likelihood") == "model"}
        return tuple(one for one in self.evaluators if one in rankers)

    def shown(self, evaluator: str) -> str:
        """The evaluator's name without its revision, where that tells it from the others."""
        name = evaluator.partition("@")[0]
        same = [one for one in self.evaluators if one.partition("@")[0] == name]
        return name if len(same) <= 1 else evaluator

    def to_json(self) -> dict[str, Any]:
        """All figures; null where there was nothing to measure."""
        return {
            "evaluators": list(self.evaluators),
            "own_rankers": list(self.own_rankers),
            "methods": [{"name": one.name, **one.traits} for one in self.methods],
            "deltas": [_json(one) for one in self.deltas],
            "mean_deltas": [_json(one) for one in self.mean_deltas],
            "rerankings": [_json(one) for one in self.rerankings],
            "agreements": [_json(one) for one in self.agreements],
        }


def measure(
    kb: KnowledgeBase,
    evaluators: Sequence[LikelihoodModel] = (),
    rules: Sequence[str] = (),
    journal: Journal | None = None,
    reranker: LikelihoodModel | None = None,
) -> LikelihoodReport:
    """Measure the statements of a knowledge base; of those of one method the latest search of a rule counts.

    `evaluators`: asked for what is not stored; without any, all whose scores of these statements are stored. `rules`:
    only these; without any, all. `reranker`: who ranks finished statements; without one, each evaluator, as in the
    paper. Raises HapaxError where there is nothing to measure.
    """
    journal = journal or Journal(kb)
    statements = _statements(kb, rules)
    runs = _runs(kb, statements)
    methods = _methods(runs)
    groups = _latest(runs, methods, statements)
    texts = list(dict.fromkeys(one.text for several in groups.values() for one in several))
    scores = _asked(kb, evaluators, texts, journal) if evaluators else _stored(kb, runs, texts)
    order = {one.name: place for place, one in enumerate(kb.rules())}
    names = sorted({rule for _, rule, _ in groups}, key=lambda name: (order.get(name, len(order)), name))
    samples = Samples.of(
        names,
        (
            Sample(
                method,
                rule,
                distribution,
                evaluator,
                *_scored(groups[method, rule, distribution], scores[evaluator]),
            )
            for evaluator in scores
            for method in dict.fromkeys(methods.values())
            for rule in names
            for distribution in Distribution
            if (method, rule, distribution) in groups
        ),
    )
    verdicts = verdicts_of(kb.votes())
    wrong = verdicts.contradicted | verdicts.wrong_type
    denied = frozenset(one.text for several in groups.values() for one in several if one.id in wrong)
    report = _report(tuple(scores), _in_order(methods, runs), samples)
    by = _asked(kb, [reranker], texts, journal) if reranker else {}
    return replace(report, denied=denied, rerankings=tuple(_rerankings(report, by)))


def samples_of(reports: Mapping[str, SearchReport], evaluator: str) -> Samples:
    """The samples of searches by the name of their method, scored by the evaluator that they ran with."""
    rules = dict.fromkeys(rule.rule for report in reports.values() for rule in report.searched)
    return Samples.of(
        tuple(rules),
        (
            Sample(method, rule.rule, distribution, evaluator, *_scored(statements, _own_scores(statements)))
            for method, report in reports.items()
            for rule in report.searched
            for distribution, statements in rule.statements.items()
        ),
    )


def reranked(sample: Sample, by: Mapping[str, float] | None = None) -> Sample:
    """What ranking finished statements keeps: the likeliest 75 % for the head, else the least likely (D.4).

    `by`: the scores that rank, by text; without any, the sample's own.
    """
    sign = -1.0 if sample.distribution is Distribution.HEAD else 1.0
    ranks = by or dict(zip(sample.texts, sample.scores, strict=True))
    order = sorted(
        zip(sample.scores, sample.texts, strict=True), key=lambda pair: (sign * ranks.get(pair[1], pair[0]), pair[1])
    )
    best = order[: keep_count(len(order), KEEP_SHARE, len(order))]
    return replace(sample, scores=tuple(score for score, _ in best), texts=tuple(text for _, text in best))


# -- which statements belong together


def methods_by_run(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> dict[str, str]:
    """The name of its method for the id of every run that the statements are of."""
    return _methods(_runs(kb, statements))


def _statements(kb: KnowledgeBase, rules: Sequence[str]) -> list[StatementRecord]:
    found = [one for name in rules for one in kb.statements(rule=name)] if rules else kb.statements()
    missing = sorted(set(rules) - {one.rule for one in found})
    if missing:
        raise HapaxError(f"{kb.place} has no statement of {', '.join(missing)}. Run `hapax search` for it first.")
    if not found:
        raise HapaxError(f"{kb.place} has no statements. Run `hapax search` first.")
    return found


def _runs(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> list[RunRecord]:
    """Searches and imports with statements, and searches of the same methods without, in the order of their last start.

    One that only statements name counts as old.
    """
    known = {one.id: one for one in kb.runs()}
    named = dict.fromkeys(one.run_id for one in statements)
    old = [RunRecord(run_id, _UNKNOWN, {}, run_id, "") for run_id in named if run_id not in known]
    told = [_traits(one) for one in known.values() if one.id in named]
    relevant = [one for one in known.values() if _traits(one) in told]
    return [*old, *sorted(relevant, key=lambda one: one.started)]


def _traits(run: RunRecord) -> dict[str, Any]:
    told = {name: value for name, value in run.settings.items() if name not in _NO_TRAITS}
    if run.command != _SEARCH:
        return {"command": run.command, **told}
    settings = {name: value for name, value in SearchSettings().to_json().items() if name not in _NO_TRAITS}
    models = dict(zip((KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL), run.settings.get("models", ()), strict=False))
    return {"command": _SEARCH, **models, **settings, **told}


def _methods(runs: Sequence[RunRecord]) -> dict[str, str]:
    """The name of its method by run id: what tells the searches apart, or all that is known of an import."""
    traits = _with_short_names({run.id: _traits(run) for run in runs})
    differing = {
        command: _differing([traits[run.id] for run in runs if run.command == command])
        for command in (_SEARCH, INSTRUCT)
    }
    return {run.id: _name(traits[run.id], differing.get(run.command)) for run in runs}


def _with_short_names(traits: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Traits whose models have short names, as far as these tell them apart."""
    models = {one[trait] for one in traits.values() for trait in _MODELS if isinstance(one.get(trait), str)}
    counts = Counter(map(short_model_name, models))
    shown = {name: name if counts[short_model_name(name)] > 1 else short_model_name(name) for name in models}
    return {
        run_id: {trait: shown.get(value, value) if trait in _MODELS else value for trait, value in one.items()}
        for run_id, one in traits.items()
    }


def _differing(traits: Sequence[Mapping[str, Any]]) -> list[str]:
    """The traits that tell methods of one kind apart."""
    return [
        trait
        for trait in dict.fromkeys(trait for one in traits for trait in one)
        if len({json.dumps(one.get(trait)) for one in traits}) > 1 and not _follows(trait, traits)
    ]


def _name(traits: Mapping[str, Any], differing: Sequence[str] | None) -> str:
    """A method's name by what tells it from others of its kind; of an import all that is known."""
    if differing is None:
        return " ".join(map(str, traits.values()))
    told = [
        _told(trait, traits.get(trait)) for trait in differing if traits["command"] != INSTRUCT or trait not in _SAID
    ]
    if traits["command"] == INSTRUCT:
        told.insert(0, f"instruction only, {traits[KNOWLEDGE_MODEL]}")
    return ", ".join(told) or _SEARCH


def _follows(trait: str, traits: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the model of this role is always the knowledge model, so that it need not be named."""
    return trait in {CRITIC_MODEL, LIKELIHOOD_MODEL} and all(
        one.get(trait) == one.get(KNOWLEDGE_MODEL) for one in traits
    )


def _told(trait: str, value: Any) -> str:
    words = {
        ("critic", True): "with critic",
        ("critic", False): "without critic",
        ("likelihood", "model"): "ranked",
        ("likelihood", "random"): "drawn at random",
        ("likelihood", "none"): "not ranked",
        ("released", True): "the released prompt",
        ("released", False): "the paper's prompt",
        ("bias", True): "with logit bias",
        ("bias", False): "without logit bias",
    }
    told = words.get((trait, value))
    return told or f"{trait.replace('_', ' ')} {'none' if value is None else value}"


def _in_order(methods: Mapping[str, str], runs: Sequence[RunRecord]) -> tuple[Method, ...]:
    """Whole searches before ablated ones, then the others; wordings by number, else as they were started."""
    found = [Method(name, traits) for name, traits in {methods[run.id]: _traits(run) for run in runs}.items()]
    wanted = (("command", _SEARCH), ("critic", True), ("likelihood", "model"))
    return tuple(
        sorted(found, key=lambda one: (*(one.traits.get(trait) != value for trait, value in wanted), one.wording))
    )


def _latest(
    runs: Sequence[RunRecord], methods: Mapping[str, str], statements: Sequence[StatementRecord]
) -> dict[tuple[str, str, Distribution], list[StatementRecord]]:
    """Statements by method, rule and distribution, each from the latest search that has some or found none."""
    by_run: dict[tuple[str, str, Distribution], list[StatementRecord]] = defaultdict(list)
    for one in statements:
        by_run[one.run_id, one.rule, one.distribution].append(one)
    wanted = {(rule, distribution) for _, rule, distribution in by_run}
    found: dict[tuple[str, str, Distribution], list[StatementRecord]] = {}
    for run in runs:
        for rule, distribution in wanted:
            held = by_run.get((run.id, rule, distribution), [])
            if held or _completed(run, rule, distribution):
                found[methods[run.id], rule, distribution] = held
    return {key: several for key, several in found.items() if several}


def _completed(run: RunRecord, rule: str, distribution: Distribution) -> bool:
    """Whether the search of the rule came to its end."""
    unfinished = (*run.summary.get("cut", ()), *run.summary.get("skipped", ()))
    searched = rule in run.settings.get("rules", ()) and distribution.value in run.settings.get("distributions", ())
    return searched and run.status == "done" and rule not in unfinished


# -- scores


def _asked(
    kb: KnowledgeBase, evaluators: Sequence[LikelihoodModel], texts: Sequence[str], journal: Journal
) -> dict[str, dict[str, float]]:
    """The evaluators' scores by evaluator and text; those that are missing are asked for and kept."""
    scores: dict[str, dict[str, float]] = {}
    going_on = GoingOn()
    for model in evaluators:
        name = model_name(model)
        known = kb.assessments(texts, _MEASURE, name)
        missing = [text for text in texts if text not in known]
        with going_on:
            answers = JournaledLikelihood(model, journal, role=EVALUATOR).log_likelihoods(missing)
        if going_on.first is not None:
            continue
        new = [
            Assessment(text, _MEASURE, name, answer.total, answer.token_count)
            for text, answer in zip(missing, answers, strict=True)
        ]
        kb.add_assessments(new)
        scores[name] = _by_text([*known.values(), *new])
    going_on.settle()
    return scores


def _stored(kb: KnowledgeBase, runs: Sequence[RunRecord], texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """The scores of all evaluators that scored every text, that of the latest search first."""
    assessors = kb.assessors(_MEASURE)
    latest = [name for run in reversed(runs) for name in _evaluators(run)]
    scores: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys([*(one for one in latest if one in assessors), *assessors]):
        known = kb.assessments(texts, _MEASURE, name)
        if len(known) == len(texts):
            scores[name] = _by_text(known.values())
    if not scores:
        raise HapaxError(
            f"{kb.place}: no evaluator has scored all {len(texts)} statements. "
            f"Name one with --evaluator, such as `--evaluator frequency`; what is missing is then asked for and kept."
        )
    return scores


def _evaluators(run: RunRecord) -> Sequence[str]:
    """Who measured the statements of a run."""
    return run.settings.get("models", ())[3:] or [one for one in [run.settings.get("evaluator")] if one]


def _by_text(assessments: Iterable[Assessment]) -> dict[str, float]:
    return {one.text: LogLikelihood(one.score, one.token_count).per_token for one in assessments}


def _own_scores(statements: Iterable[StatementRecord]) -> dict[str, float]:
    return {one.text: one.log_likelihood for one in statements if one.log_likelihood is not None}


def _scored(
    statements: Iterable[StatementRecord], scores: Mapping[str, float]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Texts and finite scores of the statements, the least likely first."""
    found = sorted((score, one.text) for one in statements if (score := scores.get(one.text)) is not None)
    kept = [(text, score) for score, text in found if math.isfinite(score)]
    return tuple(text for text, _ in kept), tuple(score for _, score in kept)


# -- figures


def _report(evaluators: tuple[str, ...], methods: tuple[Method, ...], samples: Samples) -> LikelihoodReport:
    present = {one.method for one in samples}
    methods = tuple(one for one in methods if one.name in present)
    deltas = tuple(
        _delta(*pair)
        for one in methods
        for evaluator in evaluators
        for rule in samples.rules
        if (pair := samples.pair(one.name, rule, evaluator))
    )
    means = tuple(
        MeanDelta(
            one.name,
            evaluator,
            mean([each.delta.value for each in deltas if (each.method, each.evaluator) == (one.name, evaluator)]),
        )
        for one in methods
        for evaluator in evaluators
    )
    agreements = tuple(_agreement(one, other, samples, deltas) for one, other in combinations(evaluators, 2))
    return LikelihoodReport(evaluators, methods, samples, deltas, means, agreements)


def _rerankings(report: LikelihoodReport, by: Mapping[str, Mapping[str, float]]) -> Iterator[Reranking]:
    """`by`: the reranker's name and its scores; empty where every evaluator reranks."""
    for method in report.methods:
        for evaluator in report.evaluators if method.is_unranked else ():
            name, scores = next(iter(by.items()), (evaluator, None))
            found = (report.samples.pair(method.name, rule, evaluator) for rule in report.samples.rules)
            pairs = [pair for pair in found if pair]
            if pairs:
                after = [reranked(head, scores).mean - reranked(long_tail, scores).mean for head, long_tail in pairs]
                before = [head.mean - long_tail.mean for head, long_tail in pairs]
                yield Reranking(method.name, evaluator, name, mean(before), mean(after))


def _delta(head: Sample, long_tail: Sample) -> Delta:
    difference = difference_of_means(head.scores, long_tail.scores)
    return Delta(head.method, head.rule, head.evaluator, len(head.scores), len(long_tail.scores), difference)


def _agreement(one: str, other: str, samples: Samples, deltas: Sequence[Delta]) -> Agreement:
    by_rule: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for sample in samples:
        by_rule[sample.rule][sample.evaluator].update(zip(sample.texts, sample.scores, strict=True))
    pairs = {
        rule: [(scores[one][text], scores[other][text]) for text in scores[one] if text in scores[other]]
        for rule, scores in by_rule.items()
    }
    within = [
        spearman(*zip(*several, strict=True)) for several in pairs.values() if len(several) >= _LEAST_TO_CORRELATE
    ]
    delta_of = {(each.method, each.rule, each.evaluator): each.delta.value for each in deltas}
    both = [
        (value, delta_of[method, rule, other])
        for (method, rule, evaluator), value in delta_of.items()
        if evaluator == one and (method, rule, other) in delta_of
    ]
    return Agreement(
        one,
        other,
        _correlation([pair for several in pairs.values() for pair in several]),
        mean([each for each in within if not math.isnan(each)]),
        _correlation(both),
        share([_sign(first) == _sign(second) for first, second in both]),
    )


def _correlation(pairs: Sequence[tuple[float, float]]) -> Estimate:
    return rank_correlation([first for first, _ in pairs], [second for _, second in pairs])


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _json(record: Any) -> dict[str, Any]:
    """A record's fields; an estimate's numbers stand for it, null where they are none."""
    return {
        name: {part: _number(number) for part, number in value.items()} if isinstance(value, dict) else value
        for name, value in asdict(record).items()
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
