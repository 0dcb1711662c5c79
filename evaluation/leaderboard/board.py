"""Ask models about the statements of a frozen dataset, and compare head with long tail and model with model.

Statements with the same rule and values are not independent cases, so a score is a mean over such clusters, and its
interval comes from resampling clusters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, zip_longest
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from hapax.evaluation.dataset.frozen import FrozenDataset, FrozenStatement, load_dataset
from hapax.evaluation.link.probing.asking import ProbeAnswer, ProbeMethod, ProbeSettings, open_asker, probe
from hapax.evaluation.shared.domains import DISTRIBUTION_NAMES
from hapax.evaluation.shared.estimates import (
    NOTHING,
    Estimate,
    adjusted,
    difference_of_means,
    mean,
    mean_share,
    percent,
    share,
    signed_rank_test,
)
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, Seed, Temperature
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.circularity import is_circular
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, ModelIdentity
from hapax.llm_oracle.registry import open_model, with_journal

Cluster = tuple[str, tuple[Any, ...]]
"""Rule and values."""

_LABELS = {
    "drop": "Denied statements are no part of the dataset.",
    "mark": "Denied statements count as contradictions.",
    "keep": "Denied statements count as their rules conclude: a right answer to one may be a false one.",
}
"""By the choice with which a dataset was written."""

HEAD, LONG_TAIL = Distribution.HEAD, Distribution.LONG_TAIL


@checked
@dataclass(frozen=True, slots=True)
class LeaderboardOptions:
    """Options of a leaderboard. `sample`: None: all statements."""

    models: Annotated[tuple[str, ...], Option("Model to rank (repeatable).", name="model", short="-m")] = ("embedded",)
    way: Annotated[
        Literal["critic", "text", "cot"],
        Option(
            "How to ask: for P(yes), for a reply, or for a chain of thought (after two examples) and a reply.",
            name="ask",
        ),
    ] = "critic"
    sample: Annotated[int | None, Option("Statements per distribution; 0: all.", default="0", least=0, none="0")] = None
    temperature: Temperature = 0.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        if not self.models:
            raise HapaxError(
                "A leaderboard needs a model.", Remedy("Name one or more, by {}.", Setting("options.models"))
            )


@dataclass(frozen=True, slots=True)
class ModelScore:
    """Scores of one model on a frozen dataset.

    `head`, `long_tail`: mean share of right answers; `every_head`, `every_long_tail`: share of statements all of whose
    questions were answered right (LINK, table 4). `drop`: head less long tail; `p_value`: of it, by Wilcoxon's
    signed-rank test over the `rules` with statements of both, each a pair of means. `unreadable`: share of replies off
    format or refused, which count as wrong. `circular`: the model ranked the dataset, or taught its ranker or learned
    from it. `stopped`: the message of the budget that ended the asking. `constant`: the only answer that it gave.
    """

    model: str
    revision: str
    statements: int
    head: Estimate
    long_tail: Estimate
    every_head: Estimate
    every_long_tail: Estimate
    drop: Estimate
    rules: int
    p_value: float
    unreadable: Estimate
    circular: bool
    stopped: str | None
    constant: Literal["positive", "negative"] | None = None


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Two models on the same statements of a distribution: mean difference of their shares of right answers.

    `p_value`: by Wilcoxon's signed-rank test over clusters; `adjusted`: for the number of comparisons (Benjamini and
    Hochberg 1995).
    """

    first: str
    second: str
    distribution: Distribution
    difference: Estimate
    p_value: float
    adjusted: float


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Scores of the models, the best on the long tail first, and the comparisons of each two of them."""

    dataset: FrozenDataset
    options: LeaderboardOptions
    total: int
    scores: tuple[ModelScore, ...]
    comparisons: tuple[ModelComparison, ...]

    @property
    def stopped(self) -> str | None:
        """The message of the budget that ended the asking of a model; None if all were asked in full."""
        return next((score.stopped for score in self.scores if score.stopped), None)

    @property
    def html(self) -> str:
        """The tables as a page without external resources."""
        from hapax.evaluation.leaderboard.page import result_page

        return result_page(f"Leaderboard: {self.dataset.name} {self.dataset.version}", self.to_result())

    def to_result(self) -> ExperimentResult:
        """The tables, with all figures."""
        dataset = {name: getattr(self.dataset, name) for name in ("name", "version", "checksum")}
        judged = None if self.dataset.judged is None else self.dataset.judged.to_json()
        figures = {
            "dataset": {**dataset, "statements": len(self.dataset.statements), "judged": judged},
            "asked": {"ask": self.options.way, "sample": self.options.sample, "statements": self.total},
            "models": self.scores,
            "comparisons": self.comparisons,
        }
        return ExperimentResult([self._scores(), self._comparisons()], figures, notes=tuple(self._notes()))

    def _scores(self) -> ResultTable:
        rows = []
        for score in self.scores:
            rows.append(
                (
                    # A bool repeats the mark once or not at all.
                    score.model + "*" * score.circular,
                    str(score.statements),
                    *map(percent, (score.head, score.long_tail, score.drop)),
                    _p_text(score.p_value),
                    *(f"{100 * every.value:.2f}" for every in (score.every_head, score.every_long_tail)),
                    # Without its interval, which `percent` leaves out where `low` is nan.
                    percent(replace(score.unreadable, low=math.nan)),
                )
            )
        columns = ("model", "asked", "head", "long tail", "drop", "p", "all right, head", "long tail", "unreadable")
        return ResultTable(f"{self.dataset.name} {self.dataset.version}: right answers, %", columns, rows)

    def _comparisons(self) -> ResultTable:
        rows = []
        for pair in self.comparisons:
            name = DISTRIBUTION_NAMES[pair.distribution]
            tests = (_p_text(pair.p_value), _p_text(pair.adjusted))
            rows.append((pair.first, pair.second, name, percent(pair.difference), *tests))
        columns = ("first", "second", "split", "difference, %", "p", "adjusted p")
        return ResultTable("Paired comparisons of models", columns, rows)

    def _notes(self) -> Iterator[str]:
        yield (
            f"Checksum {self.dataset.checksum}. Intervals resample clusters of one rule and values. p of a drop: "
            "Wilcoxon's signed-rank test over rules; of a comparison: over clusters, adjusted after Benjamini and "
            "Hochberg. Of the 13 questions about a statement, a constant answer is right for 6 or 7."
        )
        if self.dataset.judged is not None:
            denied = self.dataset.judged.false or self.dataset.judged.link_denied
            did = f" {_LABELS[self.dataset.judged_choice]}" if denied and self.dataset.judged_choice in _LABELS else ""
            yield f"{self.dataset.judged.sentence()}{did}"
        if any(score.circular for score in self.scores):
            yield "*: circular. The model ranked this dataset, or taught the ranker or learned from it: no evidence."
        for score in self.scores:
            if score.constant:
                yield f"{score.model} gave the {score.constant} answer to every question, which is no knowledge."
            if score.stopped:
                yield f"{score.model}: {score.stopped}"


@checked
@extras_named()
def leaderboard(
    dataset: FrozenDataset | str | Path,
    options: LeaderboardOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    kb: KnowledgeBase | None = None,
    budget: Budget | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation[Leaderboard]:
    """Ask models LINK's 13 questions about the statements of a frozen dataset; compare head with long tail by model.

    `options`: the models by their strings, the way of asking, and a sample. `opening`: options of opening the models;
    its journal, if any, has the budget. `kb`: keeps the answers, so that none is asked for twice; None: in memory.
    `progress` is called with the model, the statements done and their total. `value.html` is a page. Raises HapaxError
    for a model that cannot be asked, before any is asked. Needs the extra `evaluation`.
    """
    dataset = dataset if isinstance(dataset, FrozenDataset) else load_dataset(dataset)
    options = options or LeaderboardOptions()
    opening, journal = with_journal(kb or KnowledgeBase(), opening, budget)
    statements = _drawn(dataset, options.sample)
    way = ProbeMethod(options.way)
    role = CRITIC if way is ProbeMethod.CRITIC else KNOWLEDGE
    # A model named twice is asked once.
    names = list(dict.fromkeys(options.models))
    for name in names:
        # Only the identity: the weights of all models together may not fit into the memory.
        open_model(name, role, replace(opening, forecast=True))
    # With the distribution, because a text of both splits has one id.
    clusters = {(statement.item.statement_id, statement.item.distribution): statement for statement in statements}
    items = [statement.item for statement in statements]
    scores: dict[str, ModelScore] = {}
    answered: dict[str, dict[Distribution, dict[Cluster, float]]] = {}
    for name in names:
        model = open_model(name, role, opening)
        ask = open_asker(way, model, journal, ProbeSettings(options.temperature, options.seed))
        run = probe(items, ask, None if progress is None else partial(_report, progress, name, len(items)))
        by_statement: dict[Any, list[ProbeAnswer]] = defaultdict(list)
        for answer in run.answers:
            by_statement[answer.item.statement_id, answer.item.distribution].append(answer)
        marks = [_Mark(clusters[key], answers) for key, answers in by_statement.items()]
        answered[name] = {distribution: _by_cluster(marks, distribution) for distribution in Distribution}
        circular = any(is_circular(model.identity, ranker) for ranker in dataset.rankers)
        scores[name] = _score(name, model.identity, marks, circular, run.stopped)
    # By name where scores are equal, so that the order does not depend on the order of --model.
    ranked = sorted(scores.values(), key=lambda score: (-_known(score.long_tail.value), score.model))
    comparisons = _comparisons([score.model for score in ranked], answered)
    return Evaluation.of(Leaderboard(dataset, options, len(items), tuple(ranked), tuple(comparisons)))


def _report(progress: Callable[[str, int, int], None], name: str, total: int, done: int) -> None:
    progress(name, done, total)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The answers to all questions about a statement."""

    statement: FrozenStatement
    answers: Sequence[ProbeAnswer]

    @property
    def right(self) -> float:
        return fmean(answer.right for answer in self.answers)


def _drawn(dataset: FrozenDataset, sample: int | None) -> list[FrozenStatement]:
    """The first statements of each split, which are a fair sample; alternating, so that a run cut short has both."""
    splits = []
    for distribution in Distribution:
        splits.append([entry for entry in dataset.statements if entry.item.distribution is distribution][:sample])
    drawn: list[FrozenStatement] = []
    for pair in zip_longest(*splits):
        # The shorter split is padded with None.
        drawn += [statement for statement in pair if statement is not None]
    return drawn


def _by_cluster(marks: Sequence[_Mark], distribution: Distribution, every: bool = False) -> dict[Cluster, float]:
    """Mean share of right answers by cluster; `every`: share of statements without a wrong answer."""
    values: dict[Cluster, list[float]] = defaultdict(list)
    for mark in marks:
        if mark.statement.item.distribution is distribution:
            values[mark.statement.cluster].append(float(mark.right == 1) if every else mark.right)
    return {cluster: fmean(of_cluster) for cluster, of_cluster in values.items()}


def _score(
    name: str, identity: ModelIdentity, marks: Sequence[_Mark], circular: bool, stopped: str | None
) -> ModelScore:
    head, long_tail = _by_cluster(marks, HEAD), _by_cluster(marks, LONG_TAIL)
    every_head, every_tail = (_by_cluster(marks, distribution, every=True) for distribution in (HEAD, LONG_TAIL))
    head_of_rule, tail_of_rule = _by_rule(head), _by_rule(long_tail)
    # Paired by rule: a rule with one end only says nothing about the drop.
    rules = [rule for rule in head_of_rule if rule in tail_of_rule]
    replies = list(chain.from_iterable(mark.answers for mark in marks))
    return ModelScore(
        name,
        identity.revision,
        len(marks),
        # Clusters are the cases: each counts once, however many of its statements were asked.
        mean_share([*head.values()]),
        mean_share([*long_tail.values()]),
        mean_share([*every_head.values()]),
        mean_share([*every_tail.values()]),
        difference_of_means([*head.values()], [*long_tail.values()]) if head and long_tail else NOTHING,
        len(rules),
        signed_rank_test([head_of_rule[rule] for rule in rules], [tail_of_rule[rule] for rule in rules]),
        share([answer.verdict.positive is None for answer in replies]),
        circular,
        stopped,
        _constant(replies),
    )


def _constant(replies: Sequence[ProbeAnswer]) -> Literal["positive", "negative"] | None:
    """The answer to all questions, if there is but one; replies off format aside."""
    given = {answer.verdict.positive for answer in replies} - {None}
    # With a single right answer to all questions, a constant answer may well be knowledge.
    if len(given) != 1 or len({answer.label for answer in replies}) == 1:
        return None
    return "positive" if True in given else "negative"


def _by_rule(by_cluster: Mapping[Cluster, float]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for (rule, _), value in by_cluster.items():
        values[rule].append(value)
    return {rule: fmean(of_rule) for rule, of_rule in values.items()}


def _comparisons(
    names: Sequence[str], answered: Mapping[str, Mapping[Distribution, Mapping[Cluster, float]]]
) -> list[ModelComparison]:
    """Each two models on the clusters that both were asked about."""
    pairs = []
    for first, second in combinations(names, 2):
        for distribution in Distribution:
            left, right = answered[first][distribution], answered[second][distribution]
            clusters = [cluster for cluster in left if cluster in right]
            # Both models saw the same cluster, so the difference is taken before the mean.
            difference = mean([left[cluster] - right[cluster] for cluster in clusters])
            p_value = signed_rank_test(
                [left[cluster] for cluster in clusters], [right[cluster] for cluster in clusters]
            )
            pairs.append((first, second, distribution, difference, p_value))
    # Over all comparisons of all models and both splits together.
    by_number = adjusted([p_value for *_, p_value in pairs])
    return [ModelComparison(*pair, value) for pair, value in zip(pairs, by_number, strict=True)]


def _known(value: float) -> float:
    """The value, or 0 for nan, which has no place in an order."""
    return 0.0 if math.isnan(value) else value


def _p_text(value: float) -> str:
    if math.isnan(value):
        return "n/a"
    return "<.001" if value < 0.001 else f"{value:.3f}"
