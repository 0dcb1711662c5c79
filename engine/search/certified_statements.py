"""Promises on the precision of a search's statements, from statements that people judged.

A statement's score is the product of what its facts are worth. It only puts statements in an order: the promise comes
from the judged ones, so that false rules and facts that fail together count in full.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hapax.engine.certificates import Promise
from hapax.engine.inference.proof import By, proof_from_json
from hapax.engine.judgements import Judgements
from hapax.engine.judging_draw import DrawnLabels
from hapax.engine.search.certified_groups import (
    ScoredValue,
    certificates_of_groups,
    choose_for_groups,
    refuse_without_promise,
)
from hapax.engine.search.certifying import (
    STATEMENTS,
    UNCALIBRATED,
    Certificates,
    Grouping,
    more_labels,
    prompt_version,
    template_hashes,
)
from hapax.engine.search.score_maps import ScoreMaps
from hapax.engine.search.scored_facts import fact_claim
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Literal
from hapax.kb.records import PredicateRecord, RuleRecord, StatementRecord, content_id
from hapax.kb.store import KnowledgeBase


def statement_group(rule: str, by: Grouping) -> str:
    """The group of a rule's statements."""
    return STATEMENTS if by == "all" else f"{STATEMENTS} of {rule}"


@dataclass(frozen=True, slots=True)
class JudgedPremise:
    """A premise that a critic decided: its sentence, its predicate, and whether the critic affirmed or denied it."""

    claim: str
    indicator: str
    is_affirmed: bool


@dataclass(frozen=True)
class StatementScores:
    """Scores statements by the facts of their proofs. `critics`: NAME@REVISION of the critics of a chain, in order.

    `maps`: calibrations, if the search compares calibrated scores.
    """

    kb: KnowledgeBase
    library: Library
    critics: Sequence[str]
    maps: ScoreMaps | None = None

    def premises(self, statement: StatementRecord) -> list[JudgedPremise]:
        """The premises of a statement's proof that a critic decided, each once."""
        found: dict[JudgedPremise, None] = {}
        for part in proof_from_json(statement.proof).parts():
            if part.by in (By.FACT, By.DENIAL) and isinstance(part.goal, Literal):
                claim = fact_claim(part.goal.atom, self.library)
                found[JudgedPremise(claim, part.goal.atom.indicator, part.by is By.FACT)] = None
        return list(found)

    def worth(self, premises: Iterable[JudgedPremise]) -> dict[str, float]:
        """P(yes) by claim, calibrated if the search is; 1 for what a source states or no critic has judged."""
        indicators = {premise.claim: premise.indicator for premise in premises}
        worth = dict.fromkeys(indicators, 1.0)
        for critic in reversed(self.critics):  # the first critic of a chain decides
            judged = self.kb.assessments(indicators, "probability", critic)
            worth.update((claim, assessment.score) for claim, assessment in judged.items())
            if self.maps is not None:
                raw = {claim: assessment.score for claim, assessment in judged.items() if not assessment.basis}
                worth.update(self.maps.of_claims(self.kb, critic, raw, indicators))
        return worth

    def scores(self, statements: Iterable[StatementRecord]) -> dict[str, float]:
        """By id of a statement, the product over its premises: P(yes), or 1 - P(yes) of what was denied."""
        premises = {statement.id: self.premises(statement) for statement in statements}
        worth = self.worth(chain.from_iterable(premises.values()))
        scores = {}
        for identity, own in premises.items():
            parts = (worth[premise.claim] if premise.is_affirmed else 1.0 - worth[premise.claim] for premise in own)
            scores[identity] = math.prod(parts)
        return scores


@dataclass(frozen=True)
class StatementPromise:
    """The certificates of a search's statements, by which it keeps them. `by`: as the promise was asked."""

    certificates: Certificates
    scores: StatementScores
    by: Grouping

    def expected_share(self, rule: str) -> float:
        """The share of a rule's statements that the promise is expected to keep."""
        group = statement_group(rule, self.by)
        for record in self.certificates.records:
            if record.fact_group == group and record.threshold is not None:
                return record.accepted / record.pool
        return 0.0

    def kept(self, statements: Sequence[StatementRecord]) -> list[StatementRecord]:
        """The statements that reach the threshold of their group."""
        thresholds = {record.fact_group: record.threshold for record in self.certificates.records}
        scores = self.scores.scores(statements)
        kept = []
        for statement in statements:
            threshold = thresholds.get(statement_group(statement.rule, self.by))
            if threshold is not None and scores[statement.id] >= threshold:
                kept.append(statement)
        return kept


@dataclass(frozen=True)
class DistinctStatements:
    """The statements of rules that stand, those that read the same once.

    `records`: by the smallest id of those with one text; `rows`: that id, by the id of each; `ends`: where they occur.
    """

    records: Mapping[str, StatementRecord]
    rows: Mapping[str, str]
    ends: Mapping[str, set[str]]

    @classmethod
    def of(cls, kb: KnowledgeBase, rules: Container[str]) -> DistinctStatements:
        """The certified statements of a knowledge base."""
        stored = [record for record in kb.statements() if record.rule in rules]
        first: dict[str, str] = {}
        for record in stored:
            # The smallest id, so that the order of the records decides nothing.
            first[record.text] = min(record.id, first.get(record.text, record.id))
        rows = {record.id: first[record.text] for record in stored}
        ends: dict[str, set[str]] = {}
        for record in stored:
            ends.setdefault(rows[record.id], set()).add(record.distribution.value)
        return cls({record.id: record for record in stored if rows[record.id] == record.id}, rows, ends)

    def truths(self, kb: KnowledgeBase) -> dict[str, bool]:
        """Truth of the statements that people judged, other ones included; those on which they tie are left out."""
        found = Judgements.stored(kb)
        truths = {}
        for identity in {*found.texts, *self.records}:
            judgement = found.of(identity)
            if judgement.is_true is not None and judgement.in_shares:
                truths[identity] = judgement.is_true
        return truths


class StatementCertifier:
    """Certifies the statements that a knowledge base's searches derived, each text once.

    `facts`: the promise on the facts of the same search, which removes statements before this one counts them.
    """

    def __init__(self, scores: StatementScores, facts: Certificates | None = None) -> None:
        self._scores, self._kb = scores, scores.kb
        self._rules = {rule.name: RuleRecord.of(rule).text for rule in scores.library.rules}
        distinct = DistinctStatements.of(scores.kb, self._rules)
        self._ends, records = distinct.ends, distinct.records
        if facts is not None:
            records = self._passing(records, facts)
        self._records = records
        self._values = scores.scores(records.values())
        self._truths = distinct.truths(scores.kb)
        self._drawn = DrawnLabels.stored(scores.kb, "soundness", ",".join(scores.critics))

    def _passing(self, records: Mapping[str, StatementRecord], facts: Certificates) -> dict[str, StatementRecord]:
        """The statements whose premises reach the thresholds of the promise on facts."""
        premises = {identity: self._scores.premises(record) for identity, record in records.items()}
        worth = self._scores.worth(chain.from_iterable(premises.values()))

        def passes(premise: JudgedPremise) -> bool:
            if premise.is_affirmed:
                return worth[premise.claim] >= facts.threshold(premise.indicator)
            return worth[premise.claim] <= facts.denial_limit()

        return {identity: record for identity, record in records.items() if all(map(passes, premises[identity]))}

    def certify(self, promise: Promise, by: Grouping = "all") -> StatementPromise:
        """A threshold, or a reason why there is none, for each group. Raises HapaxError if nothing can be promised."""
        if not self._records:
            raise HapaxError(
                f"{self._kb.place}: nothing is promised yet, for it has no such statement of these rules.",
                Remedy(
                    "Search without {} first, judge statements by `hapax votes next 100 statements`, and "
                    "run this again.",
                    Setting("settings.statement_promise"),
                ),
            )
        groups: dict[str, list[ScoredValue]] = {}
        for identity, record in self._records.items():
            groups.setdefault(statement_group(record.rule, by), []).append(self._value(identity))
        choices = choose_for_groups(groups, promise, self._drawn.reach)
        refuse_without_promise(
            choices,
            promise,
            more_labels("settings.statement_promise"),
        )
        records = certificates_of_groups(groups, choices, promise, lambda group: self._basis(group, by))
        return StatementPromise(Certificates(tuple(records)), self._scores, by)

    def _value(self, identity: str) -> ScoredValue:
        draw, weight = self._drawn.of(identity)
        ends = tuple(sorted(self._ends[identity]))
        truth = self._truths.get(identity)
        return ScoredValue(identity, self._values[identity], truth, ends, draw, weight)

    def _basis(self, group: str, by: Grouping) -> dict[str, Any]:
        names = {record.rule for record in self._records.values() if statement_group(record.rule, by) == group}
        maps = self._scores.maps
        critics = self._scores.critics
        predicates = map(PredicateRecord.of, self._scores.library.completed().signatures)
        return {
            "critic": critics[-1],
            "calibration": None if maps is None else maps.checksums.get(critics[-1], UNCALIBRATED),
            "prompt": prompt_version(),
            "templates": template_hashes(predicates),
            "rules": {name: content_id("rule", self._rules[name]) for name in sorted(names)},
        }
