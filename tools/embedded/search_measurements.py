"""Measure the embedded model in a search over the shipped rules: the truth of its facts, and the delta of rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from hapax.engine.inference.proof import proof_from_json
from hapax.engine.search.report import RuleReport, SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob
from hapax.evaluation.shared.estimates import Estimate, mean, share
from hapax.grammar.rules import Library
from hapax.kb.records import Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.embedded.atlas import Atlas
from hapax.llm_oracle.protocols import LikelihoodModel, Models
from tools.embedded.score_measurements import CardSize


@dataclass(frozen=True, slots=True)
class FactTruth:
    """Facts judged by the atlas. A fact about a key that the atlas does not list counts as not true."""

    true: Estimate
    wrong: int
    unlisted: int


@dataclass(frozen=True, slots=True)
class DistributionTruth:
    """The facts in the proofs of a distribution's statements, and the share of statements with only true facts."""

    facts: FactTruth
    statements: Estimate


@dataclass(frozen=True, slots=True)
class RuleDelta:
    """Mean log-likelihood per token (nats) of a rule's head statements minus that of its long tail, by two judges.

    The model chose the statements by another measure, how common it finds the names; word frequency had no part in the
    choice.
    """

    rule: str
    head: int
    long_tail: int
    by_ranker: float
    by_frequency: float


@dataclass(frozen=True, slots=True)
class DeltaSummary:
    """The mean of the rules' deltas, and the share of rules with a positive delta."""

    mean: Estimate
    positive: Estimate


@dataclass(frozen=True, slots=True)
class SearchMeasurements:
    """The results of a search over all shipped rules that the model can answer, from an empty knowledge base."""

    rules: int
    skipped: int
    calls: int
    accepted: FactTruth
    by_distribution: dict[str, DistributionTruth]
    deltas: tuple[RuleDelta, ...]
    """Rules with statements in both distributions."""
    without_delta: tuple[str, ...]
    by_ranker: DeltaSummary
    by_frequency: DeltaSummary


def measure_search(models: Models, library: Library, atlas: Atlas, extent: CardSize) -> SearchMeasurements:
    """Run a search with the default settings of `hapax search`, and measure it."""
    rules = [rule for rule in library.rules if not library.is_definition(rule) and rule.withdrawn is None][
        : extent.rules
    ]
    with KnowledgeBase() as kb:
        report = search(SearchJob(library, rules, kb, models))
        facts = [fact for fact in kb.facts() if fact.source is Source.MODEL]
    deltas = []
    for rule in report.searched:
        delta = _delta(rule, models.likelihood)
        if delta is not None:
            deltas.append(delta)
    found = {delta.rule for delta in deltas}
    return SearchMeasurements(
        len(report.searched),
        len(report.skipped),
        sum(rule.calls for rule in report.rules),
        truth(facts, atlas),
        _by_distribution(report, facts, atlas),
        tuple(deltas),
        tuple(rule.rule for rule in report.searched if rule.rule not in found),
        summary([delta.by_ranker for delta in deltas]),
        summary([delta.by_frequency for delta in deltas]),
    )


def truth(facts: Iterable[FactRecord], atlas: Atlas) -> FactTruth:
    """The truth of the facts by the atlas. Facts with predicates that the atlas does not have are ignored."""
    judged = [fact for fact in facts if atlas.knows(fact.predicate)]
    holding = [atlas.holds(fact.predicate, fact.arguments) for fact in judged]
    unlisted = sum(not atlas.knows_key(fact.predicate, fact.arguments) for fact in judged)
    # Facts about unlisted keys do not hold either, but the atlas cannot call them wrong.
    return FactTruth(share(holding), holding.count(False) - unlisted, unlisted)


def summary(deltas: Sequence[float]) -> DeltaSummary:
    """The deltas of rules, each rule counting once."""
    return DeltaSummary(mean(deltas), share([delta > 0 for delta in deltas]))


def _by_distribution(report: SearchReport, facts: Sequence[FactRecord], atlas: Atlas) -> dict[str, DistributionTruth]:
    by_id = {fact.id: fact for fact in facts}
    found = {}
    for distribution in Distribution:
        statements = [statement for statement in report.statements if statement.distribution is distribution]
        used: dict[str, FactRecord] = {}
        sound = []
        for statement in statements:
            # A proof also has given facts, which are not the model's.
            ids = [number for number in proof_from_json(statement.proof).fact_ids() if number in by_id]
            proof_facts = {number: by_id[number] for number in ids}
            used |= proof_facts
            sound.append(all(atlas.holds(fact.predicate, fact.arguments) for fact in proof_facts.values()))
        found[distribution.value] = DistributionTruth(truth(used.values(), atlas), share(sound))
    return found


def _delta(rule: RuleReport, ranker: LikelihoodModel) -> RuleDelta | None:
    """The delta of a rule by both judges; None if a distribution has no statements."""
    if rule.delta is None:
        return None
    means = {}
    for distribution in Distribution:
        scores = ranker.log_likelihoods([statement.text for statement in rule.statements[distribution]])
        means[distribution] = fmean(score.per_token for score in scores)
    by_ranker = means[Distribution.HEAD] - means[Distribution.LONG_TAIL]
    head, long_tail = rule.count(Distribution.HEAD), rule.count(Distribution.LONG_TAIL)
    return RuleDelta(rule.rule, head, long_tail, by_ranker, rule.delta)
