"""Likelihood of stored statements: delta, reranking, and agreement of evaluators (LINK, 3.2, D.4, E.2).

Statements and scores are read from the knowledge base. An evaluator is asked, through the journal, only for scores that
are missing; they are stored then.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

from hapax.engine.explain import identities_of, models_of
from hapax.engine.gates.score_maps import short_model_name
from hapax.engine.judgements import Judgements
from hapax.engine.search.ranking import KEEP_SHARE, keep_count
from hapax.evaluation.shared.estimates import (
    NOTHING,
    Estimate,
    auc,
    difference_of_means,
    mean,
    mean_share,
    rank_correlation,
    share,
)
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, grouped
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

# --- methods: kinds of search, of instruction, and imports ------------------------------------------------------------

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
    """A way of making statements: a kind of search, of instruction, or an import. Its runs have the same traits."""

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
    def order(self) -> tuple[bool, bool, bool, int]:
        """Sorts complete searches before ablated ones, and these before all other methods."""
        # False sorts before True; only instructions have a wording.
        ablations = (self.traits.get("critic") is not True, self.traits.get("likelihood") != "model")
        return (not self.is_search, *ablations, self.traits.get("wording", 0))


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


def methods_by_run(runs: Sequence[RunRecord]) -> dict[str, SearchMethod]:
    """The method of each run by its id, named by the traits in which the runs of its command differ."""
    by_command: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    names: dict[str, str] = {}
    for run in runs:
        traits = _traits(run)
        by_command[run.command].append(traits)
        names |= {traits[role]: short_model_name(traits[role]) for role in _MODELS if role in traits}
    if len(set(names.values())) < len(names):  # two models share a short name
        names = {}
    differing = {command: _differing(alike) for command, alike in by_command.items()}
    methods = {}
    for run in runs:
        traits = _traits(run)
        shown = {trait: names.get(value, value) if trait in _MODELS else value for trait, value in traits.items()}
        words = {}
        for trait in differing[run.command]:
            value = shown.get(trait)
            known = _TRAIT_NAMES.get((trait, value)) if isinstance(value, str | bool) else None
            words[trait] = known or f"{trait.replace('_', ' ')} {'none' if value is None else value}"
        if run.command == INSTRUCT:
            # Always named by its model, even where there is only one.
            words.pop(KNOWLEDGE_MODEL, None)
            words = {"command": f"instruction only, {shown[KNOWLEDGE_MODEL]}", **words}
        elif run.command != _SEARCH or not words:
            words = {"command": run.command, **words}
        methods[run.id] = SearchMethod(", ".join(words.values()), traits)
    return methods


def _traits(run: RunRecord) -> dict[str, Any]:
    settings = {name: value for name, value in run.settings.items() if name not in _NO_TRAITS}
    # Of the models of a search, the fourth is the evaluator, in which runs of one method may differ.
    models = zip(_MODELS, run.settings.get("models", ()), strict=False) if run.command == _SEARCH else ()
    return {"command": run.command, **dict(models), **settings}


def _differing(traits: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the traits in which runs of one command differ."""
    differing = []
    for name in dict.fromkeys(chain.from_iterable(traits)):
        values = [run_traits.get(name) for run_traits in traits]
        # A role that the knowledge model plays in all runs: naming it as well would add nothing.
        if name in _MODELS[1:] and values == [run_traits.get(KNOWLEDGE_MODEL) for run_traits in traits]:
            continue
        # As JSON, because a setting may be a list, which no set can hold.
        if len(set(map(json.dumps, values))) > 1:
            differing.append(name)
    return differing


# --- statements and their scores --------------------------------------------------------------------------------------

_MEASURE = "log_likelihood"
"""Name of the measure under which assessments are stored."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One method's statements of one rule and distribution, with an evaluator's mean token log-likelihoods in nats.

    `scored`: scores and texts in ascending order; never empty.
    """

    method: str
    rule: str
    distribution: Distribution
    evaluator: str
    scored: tuple[tuple[float, str], ...]

    @property
    def scores(self) -> tuple[float, ...]:
        return tuple(score for score, _ in self.scored)

    @property
    def mean(self) -> float:
        return math.fsum(self.scores) / len(self.scored)

    @property
    def reranked(self) -> Sample:
        """The statements that reranking keeps: 75 %, the likeliest of the head, the least likely of the tail (D.4)."""
        sign = -1.0 if self.distribution is Distribution.HEAD else 1.0
        ranked = sorted(self.scored, key=lambda entry: (sign * entry[0], entry[1]))
        return replace(self, scored=tuple(ranked[: keep_count(len(ranked), KEEP_SHARE, len(ranked))]))

    def without(self, texts: Container[str]) -> Sample:
        """The statements of other texts than these; possibly none."""
        return replace(self, scored=tuple(entry for entry in self.scored if entry[1] not in texts))


SamplePair = tuple[Sample, Sample]
"""Head and long tail of one rule."""


def pairs_of(samples: Iterable[Sample], method: str, evaluator: str) -> dict[str, SamplePair]:
    """Head and long tail of a method by rule, for the rules that have both."""
    by_rule: dict[str, dict[Distribution, Sample]] = defaultdict(dict)
    for sample in samples:
        if (sample.method, sample.evaluator) == (method, evaluator):
            by_rule[sample.rule][sample.distribution] = sample
    return {
        rule: (ends[Distribution.HEAD], ends[Distribution.LONG_TAIL]) for rule, ends in by_rule.items() if len(ends) > 1
    }


def statements_of(kb: KnowledgeBase, rules: Sequence[str]) -> list[StatementRecord]:
    """The statements of these rules, all without any. Raises HapaxError for a rule without statements."""
    statements: list[StatementRecord] = []
    for rule in rules or (None,):
        found = list(kb.statements(rule=rule))
        if not found:
            missing = "no statements" if rule is None else f"no statement of {rule}"
            raise HapaxError(f"{kb.place} has {missing}.", Remedy("Run {} first.", Operation("search")))
        statements += found
    return statements


def _latest(
    runs: Sequence[RunRecord], methods: Mapping[str, SearchMethod], statements: Sequence[StatementRecord]
) -> dict[tuple[str, str, Distribution], list[StatementRecord]]:
    """Statements by method, rule and distribution, each group from the last run that wrote some or found none."""
    by_run = grouped(statements, lambda statement: (statement.run_id, statement.rule, statement.distribution))
    # Ordered, so that texts are asked in the same order on each call.
    parts = dict.fromkeys((rule, distribution) for _, rule, distribution in by_run)
    latest: dict[tuple[str, str, Distribution], list[StatementRecord]] = {}
    for run, (rule, distribution) in product(runs, parts):
        # A rule is "cut" by a budget and "skipped" if the model lacks its predicates: it may still have statements.
        unfinished = (*run.summary.get("cut", ()), *run.summary.get("skipped", ()))
        written = by_run.get((run.id, rule, distribution), [])
        searched = rule in run.settings.get("rules", ()) and distribution in run.settings.get("distributions", ())
        # A completed search without statements replaces those of an earlier one: they are no longer found.
        if written or (searched and run.status == "done" and rule not in unfinished):
            # Runs come in the order of their starts, so the last one wins.
            latest[methods[run.id].name, rule, distribution] = written
    return latest


def _asked_scores(
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
        # After a deferral to a queue, the other evaluators only add their requests, and `raise_first` raises below.
        if deferrals.first is None:
            new = []
            for text, answer in zip(missing, answers, strict=True):
                new.append(Assessment(text, _MEASURE, name, answer.total, answer.token_count))
            # Stored evaluator by evaluator: a budget that ends at the next one loses none of these.
            kb.add(ASSESSMENTS, new)
            scores[name] = _by_text([*stored.values(), *new])
    deferrals.raise_first()
    return scores


def _stored_scores(kb: KnowledgeBase, runs: Sequence[RunRecord], texts: Sequence[str]) -> dict[str, dict[str, float]]:
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
            scores[name] = _by_text(stored.values())
    if not scores:
        raise HapaxError(
            f"{kb.place}: no evaluator has scored all {len(texts)} statements.",
            Remedy(
                "Name one with {}, such as frequency; missing scores are then asked for and stored.",
                Setting("options.evaluators"),
            ),
        )
    return scores


def _by_text(assessments: Iterable[Assessment]) -> dict[str, float]:
    """Finite scores per token, by text."""
    scores = {}
    for assessment in assessments:
        score = LogLikelihood(assessment.score, assessment.token_count).per_token
        if math.isfinite(score):
            scores[assessment.text] = score
    return scores


# --- measures ---------------------------------------------------------------------------------------------------------


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
    `reranked`: of a method that no likelihood ranked, the mean delta of the 75 % of its statements that the evaluator's
    scores choose (D.4).
    """

    method: str
    evaluator: str
    delta: Estimate
    auc: Estimate
    positive: Estimate
    circular: bool
    reranked: Estimate = NOTHING


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


PAPER_DELTAS = (
    "LINK's paper, on 200 rules and with InstructGPT as evaluator: mean delta 0.48 for LINK, -0.14 for ChatGPT and "
    "-0.02 for GPT-4 by instruction only. Its models, rules and evaluator differ from these."
)
"""Section 3.2, for comparison."""


@dataclass(frozen=True, slots=True)
class LikelihoodReport:
    """Results of `measure`. Figures show the first evaluator and the first method.

    `denied`: texts that people judged wrong, or to have a value of a wrong type. `written`: the files of each figure;
    `unavailable`: why other figures could not be drawn.
    """

    evaluators: tuple[str, ...]
    methods: tuple[SearchMethod, ...]
    samples: tuple[Sample, ...]
    deltas: tuple[Delta, ...]
    mean_deltas: tuple[MeanDelta, ...]
    agreements: tuple[EvaluatorAgreement, ...]
    denied: frozenset[str] = frozenset()
    written: Mapping[int, tuple[Path, ...]] = field(default_factory=dict)
    unavailable: Mapping[int, str] = field(default_factory=dict)

    def evaluation(self) -> Evaluation[LikelihoodReport]:
        """Tables of deltas, rerankings and agreement, with all measures as figures."""
        rerankings = []
        for found in self.mean_deltas:
            if found.reranked.count:
                names = {"method": found.method, "evaluator": found.evaluator}
                rerankings.append({**names, "before": found.delta, "after": found.reranked})
        figures = {
            "evaluators": self.evaluators,
            "methods": [{"name": method.name, **method.traits} for method in self.methods],
            "deltas": self.deltas,
            "mean_deltas": self.mean_deltas,
            "rerankings": rerankings,
            "agreements": self.agreements,
            "figures": {str(number): list(map(str, paths)) for number, paths in self.written.items()},
            "lacking": {str(number): reason for number, reason in self.unavailable.items()},
        }
        return Evaluation(self, self.tables(), figures, notes=tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        circular = [found.circular for found in self.mean_deltas]
        if any(circular):
            yield (
                "*: circular. The evaluator ranked the search, or taught the ranker or learned from it: no evidence of "
                "a long tail."
            )
        if circular and all(circular):
            yield (
                f"No evaluator is independent of the ranker. Name one by {Setting('options.evaluators')}, such as "
                "smollm2."
            )
        if any(method.is_instruction for method in self.methods):
            yield PAPER_DELTAS
        yield from self.unavailable.values()

    def short_name(self, evaluator: str) -> str:
        """The evaluator's name without its revision, unless another evaluator has the same name."""
        names = [name.partition("@")[0] for name in self.evaluators]
        name = evaluator.partition("@")[0]
        return name if names.count(name) <= 1 else evaluator

    def tables(self) -> list[ResultTable]:
        """Deltas, their means with the independent evaluators first, rerankings, and agreement; none that is empty."""
        place = ("rule", "method") if len(self.methods) > 1 else ("rule",)
        by_rule: dict[tuple[str, ...], dict[str, Delta]] = defaultdict(dict)
        for delta in self.deltas:
            by_rule[(delta.rule, delta.method)[: len(place)]][delta.evaluator] = delta
        of_rules, of_means, reranked, agreements = [], [], [], []
        for names, by_evaluator in by_rule.items():
            # All evaluators score the same statements, apart from a few without a finite score.
            sizes = next(iter(by_evaluator.values()))
            deltas = [by_evaluator[name].delta if name in by_evaluator else NOTHING for name in self.evaluators]
            of_rules.append((*names, sizes.head, sizes.long_tail, *deltas))
        order = [method.name for method in self.methods]
        for mean_delta in sorted(self.mean_deltas, key=lambda mean: (order.index(mean.method), mean.circular)):
            name = self.short_name(mean_delta.evaluator)
            count = mean_delta.positive.count
            # Without a rule that has both ends there is no share.
            positive = f"{round(mean_delta.positive.value * count) if count else 0} of {count}"
            marked = name + "*" * mean_delta.circular
            of_means.append((mean_delta.method, marked, mean_delta.delta, mean_delta.auc, positive))
            if mean_delta.reranked.count:
                reranked.append((mean_delta.method, name, mean_delta.delta, mean_delta.reranked))
        for pair in self.agreements:
            judges = f"{self.short_name(pair.first)} and {self.short_name(pair.second)}"
            agreements.append((judges, pair.statements, pair.deltas, pair.signs, pair.low, pair.signs.count))
        of_place = (*place, "head", "long tail", *map(self.short_name, self.evaluators))
        tables = [
            ResultTable("Delta by rule, in nats per token (LINK, figure 3)", of_place, of_rules),
            ResultTable("Mean delta over rules", ("method", "evaluator", "delta", "AUC", "delta > 0"), of_means),
            ResultTable(
                "Mean delta when finished statements are reranked (LINK, D.4)",
                ("method", "evaluator", "delta", "delta of the reranked 75 %"),
                reranked,
            ),
            ResultTable(
                "Agreement: rank correlations, and the share of rules (LINK, E.2)",
                ("evaluators", "statements", "deltas", "same sign of delta", "low for both", "rules"),
                agreements,
            ),
        ]
        return [*tables[:2], *(table for table in tables[2:] if table.rows)]


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
    statements = statements_of(kb, rules)
    runs = runs_of(kb, statements)
    methods = methods_by_run(runs)
    groups = _latest(runs, methods, statements)
    latest = list(chain.from_iterable(groups.values()))
    # Methods may share texts; each is scored once.
    texts = list(dict.fromkeys(statement.text for statement in latest))
    if evaluators:
        scores = _asked_scores(kb, evaluators, texts, journal or Journal(kb))
    else:
        scores = _stored_scores(kb, runs, texts)
    # In the order of the library; rules that it does not hold come last, by name.
    order = {rule.name: place for place, rule in enumerate(kb.select(RULES))}
    rule_names = sorted({rule for _, rule, _ in groups}, key=lambda name: (order.get(name, len(order)), name))
    by_name = {method.name: method for method in methods.values()}
    samples = []
    for (evaluator, by_text), key in product(scores.items(), product(by_name, rule_names, Distribution)):
        scored = [(by_text[record.text], record.text) for record in groups.get(key, ()) if record.text in by_text]
        if scored:
            # Ties by text, so that equal scores do not depend on the order of rows.
            samples.append(Sample(*key, evaluator, tuple(sorted(scored))))
    judged = Judgements.stored(kb)
    denied = frozenset(statement.text for statement in latest if judged.of(statement.id).is_wrong)
    present = {sample.method for sample in samples}
    shown = sorted((method for name, method in by_name.items() if name in present), key=lambda method: method.order)
    circular = _circular(scores, runs, methods, evaluators)
    deltas, means = _deltas(tuple(shown), tuple(scores), samples, circular)
    agreements = [_agreement(first, second, samples, deltas) for first, second in combinations(scores, 2)]
    return LikelihoodReport(
        tuple(scores), tuple(shown), tuple(samples), tuple(deltas), tuple(means), tuple(agreements), denied
    )


def _circular(
    names: Iterable[str],
    runs: Sequence[RunRecord],
    methods: Mapping[str, SearchMethod],
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
            pairs.add((methods[run.id].name, name))
    return pairs


def _deltas(
    methods: Sequence[SearchMethod],
    evaluators: Sequence[str],
    samples: Sequence[Sample],
    circular: Container[tuple[str, str]],
) -> tuple[list[Delta], list[MeanDelta]]:
    """The deltas of each method and evaluator by rule, and their means."""
    deltas: list[Delta] = []
    means: list[MeanDelta] = []
    for method, evaluator in product(methods, evaluators):
        values, areas, reranked = [], [], []
        for rule, (head, long_tail) in pairs_of(samples, method.name, evaluator).items():
            difference = difference_of_means(head.scores, long_tail.scores)
            sizes = len(head.scored), len(long_tail.scored)
            deltas.append(Delta(method.name, rule, evaluator, *sizes, difference))
            values.append(difference.value)
            # The AUC depends on the order of scores alone, so it compares evaluators of different scales.
            areas.append(auc(head.scores, long_tail.scores))
            reranked.append(head.reranked.mean - long_tail.reranked.mean)
        positive = share([value > 0 for value in values])
        is_circular_judge = (method.name, evaluator) in circular
        afterwards = mean(reranked) if method.is_unranked else NOTHING
        figures = (mean(values), mean_share(areas), positive, is_circular_judge, afterwards)
        means.append(MeanDelta(method.name, evaluator, *figures))
    return deltas, means


def _agreement(first: str, second: str, samples: Sequence[Sample], deltas: Sequence[Delta]) -> EvaluatorAgreement:
    by_rule: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for sample in samples:
        # Methods may share a statement; by its text, it counts once.
        by_rule[sample.rule][sample.evaluator].update({text: score for score, text in sample.scored})
    score_pairs, low = [], []
    for scores in by_rule.values():
        shared = [text for text in scores[first] if text in scores[second]]
        score_pairs += [(scores[first][text], scores[second][text]) for text in shared]
        low += [text in _less_likely(shared, scores[second]) for text in _less_likely(shared, scores[first])]
    of_second = {(delta.method, delta.rule): delta.delta.value for delta in deltas if delta.evaluator == second}
    delta_pairs = []
    for delta in deltas:
        if delta.evaluator == first and (delta.method, delta.rule) in of_second:
            delta_pairs.append((delta.delta.value, of_second[delta.method, delta.rule]))
    # Two deltas of 0 agree.
    signs = share([(left > 0) - (left < 0) == (right > 0) - (right < 0) for left, right in delta_pairs])
    return EvaluatorAgreement(first, second, _correlation(score_pairs), _correlation(delta_pairs), signs, share(low))


def _less_likely(texts: Sequence[str], scores: Mapping[str, float]) -> set[str]:
    """The less likely half of the texts, without the middle one of an odd number."""
    return set(sorted(texts, key=lambda text: (scores[text], text))[: len(texts) // 2])


def _correlation(pairs: Sequence[tuple[float, float]]) -> Estimate:
    return rank_correlation([first for first, _ in pairs], [second for _, second in pairs])
