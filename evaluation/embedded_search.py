"""The embedded model measured by what a search over the shipped rules makes of it: truth of its facts, and delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from engine.proof import proof_from_json
from engine.report import RuleReport, SearchReport, SearchSettings
from engine.search import search
from evaluation.embedded_roles import Extent
from evaluation.estimates import Estimate, mean, share
from grammar.rules import Library
from kb.records import Distribution, FactRecord, Source, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.embedded.atlas import Atlas
from llm_oracle.protocols import LikelihoodModel, Models


@dataclass(frozen=True, slots=True)
class FactTruth:
    """Facts by the atlas. A fact about a key without a line in the atlas cannot be judged and counts as not true."""

    true: Estimate
    wrong: int
    unlisted: int


@dataclass(frozen=True, slots=True)
class DistributionTruth:
    """The facts that one distribution's statements rest on, and the statements that rest on true facts alone."""

    facts: FactTruth
    statements: Estimate


@dataclass(frozen=True, slots=True)
class RuleDelta:
    """How much likelier, in nats a token, the rule's head statements are than its long-tail ones, by two judges.

    The ranker chose them, so its own delta shows that the search works; word frequency had no part in the choice.
    """

    rule: str
    head: int
    long_tail: int
    by_ranker: float
    by_frequency: float


@dataclass(frozen=True, slots=True)
class DeltaSummary:
    """The mean of the rules' deltas, and in which share of the rules it is above 0."""

    mean: Estimate
    positive: Estimate


@dataclass(frozen=True, slots=True)
class SearchMeasurements:
    """One search over every shipped rule that the model can answer, from an empty knowledge base."""

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


def measure_search(models: Models, library: Library, atlas: Atlas, extent: Extent) -> SearchMeasurements:
    """The search as `hapax search` does it by default."""
    rules = [rule for rule in library.rules if not library.is_definition(rule)][: extent.rules]
    with KnowledgeBase() as kb:
        report = search(library, rules, kb, models, SearchSettings())
        facts = [fact for fact in kb.facts() if fact.source is Source.MODEL]
    deltas = [delta for rule in report.searched if (delta := _delta(rule, models.likelihood)) is not None]
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
    """The facts under the atlas's predicates by what the atlas says; others are no matter of its."""
    judged = [fact for fact in facts if atlas.knows(fact.predicate)]
    holding = [atlas.holds(fact.predicate, fact.arguments) for fact in judged]
    unlisted = sum(not atlas.knows_key(fact.predicate, fact.arguments) for fact in judged)
    return FactTruth(share(holding), holding.count(False) - unlisted, unlisted)


def summary(deltas: Sequence[float]) -> DeltaSummary:
    """The deltas of several rules, each rule counting once."""
    return DeltaSummary(mean(deltas), share([delta > 0 for delta in deltas]))


def _by_distribution(report: SearchReport, facts: Sequence[FactRecord], atlas: Atlas) -> dict[str, DistributionTruth]:
    by_id = {fact.id: fact for fact in facts}
    found = {}
    for distribution in Distribution:
        statements = [one for one in report.statements if one.distribution is distribution]
        behind = [_facts_behind(one, by_id) for one in statements]
        every = {fact.id: fact for several in behind for fact in several}
        sound = [all(atlas.holds(fact.predicate, fact.arguments) for fact in several) for several in behind]
        found[distribution.value] = DistributionTruth(truth(every.values(), atlas), share(sound))
    return found


def _facts_behind(statement: StatementRecord, by_id: Mapping[str, FactRecord]) -> list[FactRecord]:
    """The model's facts in the statement's proof."""
    return [by_id[number] for number in proof_from_json(statement.proof).fact_ids() if number in by_id]


def _delta(rule: RuleReport, ranker: LikelihoodModel) -> RuleDelta | None:
    """Both judges on the same statements; None where a distribution has none."""
    if rule.delta is None:
        return None
    means = {}
    for distribution in Distribution:
        scores = ranker.log_likelihoods([one.text for one in rule.statements[distribution]])
        means[distribution] = fmean(score.per_token for score in scores)
    by_ranker = means[Distribution.HEAD] - means[Distribution.LONG_TAIL]
    head, long_tail = rule.count(Distribution.HEAD), rule.count(Distribution.LONG_TAIL)
    return RuleDelta(rule.rule, head, long_tail, by_ranker, rule.delta)
