"""Likelihood of stored statements: delta, reranking, and agreement of evaluators (LINK, 3.2, D.4, E.2).

Statements and scores are read from the knowledge base. An evaluator is asked, through the journal, only for scores that
are missing; they are stored then.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

from hapax.engine.judgements import Judgements
from hapax.engine.run_memory import identities_of, models_of
from hapax.evaluation.link.likelihood.samples import (
    LIKELIHOOD_MODEL,
    Samples,
    SearchMethod,
    ask_scores,
    method_names,
    ordered_methods,
    reranked,
    runs_of,
    sample_of,
    stored_scores,
)
from hapax.evaluation.shared.estimates import (
    Estimate,
    auc,
    cohens_d,
    difference_of_means,
    mean,
    mean_share,
    rank_correlation,
    share,
    signed_rank_test,
    spearman,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.records import RULES, Distribution, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.circularity import is_circular
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import EVALUATOR, LIKELIHOOD, LikelihoodModel, ModelIdentity

_LEAST_TO_CORRELATE = 3
"""Statements of a rule below which its rank correlation is left out: with two, it is 1 or -1."""

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

    `auc`: mean over rules of the probability that a head statement is likelier than a long-tail one; `effect`: mean of
    Cohen's d; `positive`: share of rules with delta above 0; `p_value`: of the deltas, by the signed-rank test.
    `circular`: the evaluator ranked the search, or taught the ranker or learned from it.
    """

    method: str
    evaluator: str
    delta: Estimate
    auc: Estimate
    effect: Estimate
    positive: Estimate
    p_value: float
    circular: bool


@dataclass(frozen=True, slots=True)
class Reranking:
    """Mean delta of an unranked method, before and after 75 % of its finished statements are kept (D.4).

    `reranker`: whose scores choose the likeliest statements of the head and the least likely of the long tail.
    """

    method: str
    evaluator: str
    reranker: str
    before: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class EvaluatorAgreement:
    """Agreement of two evaluators (LINK, E.2).

    `statements`: rank correlation over all distinct statements. `within_rules`: mean over rules of the correlation
    within a rule, because the rules' wording alone makes statements differ. `deltas`: rank correlation of the rules'
    deltas. `signs`: share of rules whose deltas have the same sign. `low`: of the statements in the less likely half of
    their rule for one evaluator, the share that is in this half for the other, too; chance is one half.
    """

    first: str
    second: str
    statements: Estimate
    within_rules: Estimate
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

    @property
    def own_rankers(self) -> tuple[str, ...]:
        """Evaluators that also ranked a search, and so measure it by its own yardstick."""
        ranked = [method for method in self.methods if method.traits.get("likelihood") == "model"]
        rankers = {method.traits.get(LIKELIHOOD_MODEL) for method in ranked}
        return tuple(name for name in self.evaluators if name in rankers)

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
    reranker: LikelihoodModel | None = None,
) -> LikelihoodReport:
    """Measure the statements of a knowledge base; of each method and rule, those of the latest run.

    `evaluators` are asked for missing scores; without any, all evaluators count that scored all of the statements.
    `rules`: only these; without any, all. `reranker`: ranks finished statements; without one, each evaluator does, as
    in the paper. Raises HapaxError where there is nothing to measure.
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
    # Asked last: a budget that ends here has at least paid for the evaluators' scores, which are stored.
    ranks = ask_scores(kb, [reranker], texts, journal) if reranker else {}
    return replace(
        report,
        denied=frozenset(statement.text for statement in latest if judged.of(statement.id).is_wrong),
        rerankings=tuple(_rerankings(report, ranks)),
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
            values, heads, tails = [], [], []
            pairs = samples.pairs(method.name, evaluator)
            for rule, (head, long_tail) in pairs.items():
                difference = difference_of_means(head.scores, long_tail.scores)
                sizes = len(head.scores), len(long_tail.scores)
                deltas.append(Delta(method.name, rule, evaluator, *sizes, difference))
                values.append(difference.value)
                heads.append(head.mean)
                tails.append(long_tail.mean)
            # The AUC depends on the order of scores alone, so it compares evaluators of different scales.
            areas = [auc(head.scores, long_tail.scores) for head, long_tail in pairs.values()]
            effects = [cohens_d(head.scores, long_tail.scores) for head, long_tail in pairs.values()]
            means.append(
                MeanDelta(
                    method.name,
                    evaluator,
                    mean(values),
                    mean_share(areas),
                    mean([effect for effect in effects if not math.isnan(effect)]),
                    share([value > 0 for value in values]),
                    signed_rank_test(heads, tails),
                    (method.name, evaluator) in circular,
                )
            )
    agreements = [_agreement(first, second, samples, deltas) for first, second in combinations(evaluators, 2)]
    return LikelihoodReport(evaluators, methods, samples, tuple(deltas), tuple(means), tuple(agreements))


def _rerankings(report: LikelihoodReport, ranks: Mapping[str, Mapping[str, float]]) -> Iterator[Reranking]:
    """`ranks`: the reranker's name and its scores by text; if empty, every evaluator reranks."""
    for method in report.methods:
        if not method.is_unranked:
            continue
        for evaluator in report.evaluators:
            # None: the sample's own scores, so that the evaluator reranks, as in the paper.
            reranker, scores = next(iter(ranks.items()), (evaluator, None))
            before, after = [], []
            for head, long_tail in report.samples.pairs(method.name, evaluator).values():
                before.append(head.mean - long_tail.mean)
                after.append(reranked(head, scores).mean - reranked(long_tail, scores).mean)
            if before:
                yield Reranking(method.name, evaluator, reranker, mean(before), mean(after))


def _agreement(first: str, second: str, samples: Samples, deltas: Sequence[Delta]) -> EvaluatorAgreement:
    by_rule: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for sample in samples:
        # Methods may share a statement; by its text, it counts once.
        by_rule[sample.rule][sample.evaluator].update(zip(sample.texts, sample.scores, strict=True))
    score_pairs, correlations, low = [], [], []
    for scores in by_rule.values():
        pairs = [(score, scores[second][text]) for text, score in scores[first].items() if text in scores[second]]
        score_pairs += pairs
        # Correlated within each rule, then averaged: rules differ in wording, which all evaluators see alike.
        if len(pairs) >= _LEAST_TO_CORRELATE:
            correlations.append(spearman(*zip(*pairs, strict=True)))
        shared = [text for text in scores[first] if text in scores[second]]
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
        mean([value for value in correlations if not math.isnan(value)]),
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
