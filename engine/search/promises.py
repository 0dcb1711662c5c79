"""Promises on the precision of a search's facts and statements, from those of its knowledge base that people judged.

A statement's score is the product of what its facts are worth. It only puts statements in an order: the promise comes
from the judged ones, so that false rules and facts that fail together count in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hapax.engine.certificates import (
    METHOD,
    JudgedScore,
    LabelDraw,
    Promise,
    ThresholdChoice,
    choose_threshold,
    score_shift,
    upper_bound,
)
from hapax.engine.inference.proof import By, proof_from_json
from hapax.engine.judgements import DrawnLabels, Judgements
from hapax.engine.questions.score_maps import (
    ProposedAtom,
    ScoreMaps,
    denied_atoms,
    ends_of_facts,
    fact_truths,
    proposed_atoms,
    short_model_name,
    stored_scores,
)
from hapax.engine.search.settings import Grouping, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Literal
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.records import (
    CALIBRATIONS,
    CertificateRecord,
    PredicateRecord,
    RuleRecord,
    StatementRecord,
    content_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.questions.prompts import critic_prompt, fact_claim

ALL_FACTS = "all facts"
"""Group of a promise on all facts together."""

DENIALS = "denials"
"""Group of a promise on what the critic denies for sure, which negations of open predicates need."""

STATEMENTS = "statements"
"""First word of the groups of promises on statements."""

BELOW_CERTAIN = 1.0 - 1e-9
"""Largest score of a model, so that a threshold of 1 lets only what a source states pass."""

UNPROMISED = 1.0
"""Threshold of facts about which nothing is promised."""

UNCALIBRATED = "uncalibrated"
"""Calibration of a critic without one, in a search that uses calibrations."""


# --- thresholds and certificates of groups ----------------------------------------------------------------------------

MUCH_SHIFT = 0.1
"""Distance of the shift from 0.5, and of a label's chance at an end from the average, that is reported as much."""

NO_END = "neither end"
"""Values that no statement of head or long tail rests on."""


@dataclass(frozen=True, slots=True)
class ScoredValue:
    """A proposed fact or a statement with its score. `truth`: its label; None: it has none.

    `ends`: head, long tail or both, where it occurs. `draw`, `weight`: by which `hapax votes next` chose it, if it did;
    see `LabelDraw`.
    """

    id: str
    score: float
    truth: bool | None
    ends: Collection[str] = ()
    draw: float | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class LabelledPool:
    """Values with their scores, the labels of some, and what chose these. `setting`: asks for the promise on them.

    `basis`: the critic, its calibration and the wordings on which their scores rest.
    """

    scores: Mapping[str, float]
    truths: Mapping[str, bool]
    ends: Mapping[str, Collection[str]]
    drawn: DrawnLabels
    setting: str
    basis: Mapping[str, Any]

    def value(self, identity: str, *, is_denial: bool = False) -> ScoredValue:
        """The value, or its denial, which is true if the value is false."""
        score, truth = self.scores[identity], self.truths.get(identity)
        if is_denial:
            score, truth = 1.0 - score, None if truth is None else not truth
        return ScoredValue(identity, score, truth, self.ends.get(identity, ()), *self.drawn.of(identity))

    def certified(
        self, groups: Mapping[str, Collection[str]], promise: Promise, basis: Callable[[str], Mapping[str, Any]]
    ) -> Certificates:
        """A certificate for each group of ids, or a record of the reason why there is none; all hold at once.

        `basis`: what the basis of a group has beside. Raises HapaxError if nothing but denials can be promised.
        """
        records, reasons = [], []
        for group, identities in sorted(groups.items()):
            values = [self.value(identity, is_denial=group == DENIALS) for identity in identities]
            judged = [JudgedScore(value.score, value.truth, value.draw) for value in values if value.truth is not None]
            reach = self.drawn.reach
            draw = None if reach is None else LabelDraw(reach, [value.weight for value in values])
            choice = choose_threshold(judged, [value.score for value in values], promise, len(groups), draw)
            records.append(_certificate(group, values, choice, promise, {**self.basis, **basis(group)}))
            if group != DENIALS and choice.threshold is None:
                reasons.append(f"{group}: {records[-1].reason}")
        # Without a promise on denials a search can go on: then nothing counts as denied.
        if len(reasons) == len(groups.keys() - {DENIALS}):
            listed = "\n".join(reasons[:10])
            raise HapaxError(
                f"Nothing can be promised: that {promise}.\n{listed}\n",
                Remedy(
                    "Label more by `hapax votes next` or {}, ask for less with {} and {}, or choose another critic.",
                    Operation("calibrate"),
                    Setting(self.setting),
                    Setting("settings.promise.confidence"),
                ),
            )
        return Certificates(tuple(records))


def _certificate(
    group: str, values: Sequence[ScoredValue], choice: ThresholdChoice, promise: Promise, basis: Mapping[str, Any]
) -> CertificateRecord:
    # Sorted: the identity of the sample must not depend on the order of the values.
    sample = sorted((value.id, value.score, value.truth) for value in values if value.truth is not None)
    others = [value.score for value in values if value.truth is None]
    return CertificateRecord(
        group,
        promise.precision,
        promise.confidence,
        METHOD,
        basis,
        choice.threshold,
        choice.labels,
        choice.false,
        choice.bound,
        choice.accepted,
        choice.pool,
        content_id("sample", [list(row) for row in sample]),
        score_shift([score for _, score, _ in sample], others),
        "" if choice.threshold is not None else describe(choice.reason, choice.more_labels),
        system.now().isoformat(timespec="seconds"),
        ends=ends_of(values, choice, promise),
    )


def ends_of(values: Sequence[ScoredValue], choice: ThresholdChoice, promise: Promise) -> dict[str, dict[str, Any]]:
    """By end the counts of a group: its values, those accepted, their labels, and how the labels' scores differ.

    `bound`: on the share of false values that this end has among the accepted, by its own labels alone.
    """
    threshold = choice.threshold
    by_end: dict[str, list[ScoredValue]] = {}
    for value in values:
        # A value at both ends counts at each of them.
        for end in value.ends or (NO_END,):
            by_end.setdefault(end, []).append(value)
    counts: dict[str, dict[str, Any]] = {}
    for end, members in sorted(by_end.items()):
        accepted = [value for value in members if threshold is not None and value.score >= threshold]
        labels = [value.truth for value in accepted if value.truth is not None]
        false = len(labels) - sum(labels)
        labelled = [value.score for value in members if value.truth is not None]
        counts[end] = {
            "pool": len(members),
            "labelled": len(labelled),
            "accepted": len(accepted),
            "labels": len(labels),
            "false": false,
            "bound": round(upper_bound(false, len(labels), len(accepted), promise.confidence), 4),
            "shift": score_shift(labelled, [value.score for value in members if value.truth is None]),
        }
    return counts


def end_lines(ends: Mapping[str, Mapping[str, Any]]) -> str:
    """The counts of each end in words, with the ends that lack labels. Empty where there is only one end."""
    known = {end: counts for end, counts in ends.items() if counts["accepted"]}
    if len(known) < 2:
        return ""
    parts = []
    for end, counts in known.items():
        text = f"{end.replace('_', ' ')}: {counts['accepted']} accepted, {counted(counts['labels'], 'label')}"
        text += f", {counts['false']} false, bound {counts['bound']:.3f}" if counts["labels"] else ""
        if counts["shift"] is not None and abs(counts["shift"] - 0.5) > MUCH_SHIFT:
            text += f", labels differ in score (AUC {counts['shift']:.2f})"
        parts.append(text)
    text = f" By end: {'; '.join(parts)}."
    lacking = _underlabelled(known)
    if lacking:
        text += (
            f" {' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} a smaller part of the labels than of "
            "the accepted: the promise leans on the other labels. Label more of it."
        )
    return text


def _underlabelled(ends: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Ends whose part of the labels is much smaller than their part of the accepted."""
    accepted = sum(counts["accepted"] for counts in ends.values())
    labels = sum(counts["labels"] for counts in ends.values())
    return [
        end.replace("_", " ")
        for end, counts in ends.items()
        if labels and counts["accepted"] / accepted - counts["labels"] / labels > MUCH_SHIFT
    ]


def describe(reason: str, more_labels: int | None) -> str:
    """The reason why nothing is promised, and what would help."""
    if more_labels is None:
        return f"{reason}; by these labels no number of further ones would do."
    return f"{reason}; about {counted(more_labels, 'more label')} would do if values stay as true as the labelled ones."


# --- facts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Certificates:
    """The promise of a run by group, and the thresholds that follow from it."""

    records: tuple[CertificateRecord, ...]

    def threshold(self, indicator: str) -> float:
        """The score that a fact of this predicate needs."""
        for record in self.records:
            if record.fact_group in (indicator, ALL_FACTS) and record.threshold is not None:
                return record.threshold
        return UNPROMISED

    def denial_limit(self) -> float:
        """The score up to which an atom counts as denied; below 0, which no score reaches, without a promise."""
        for record in self.records:
            if record.fact_group == DENIALS and record.threshold is not None:
                return 1.0 - record.threshold
        return -1.0

    @property
    def checksum(self) -> str:
        """Changes with the promise, the sample and all on which they rest."""
        return content_id("certificates", [record.id for record in self.records])

    def of_run(self, kb: KnowledgeBase, run_id: str) -> list[CertificateRecord]:
        """The records as the run stores them, once the knowledge base has the run."""
        last = kb.runs()[-1].id
        return [replace(record, run_id=run_id, after_run=last) for record in self.records]


def fact_scores(
    kb: KnowledgeBase, atoms: Mapping[str, ProposedAtom], critic: str, maps: ScoreMaps | None
) -> dict[str, float]:
    """By fact id the scores that a search compares: of a critic, calibrated if there are maps."""
    raw = stored_scores(kb, atoms, critic)
    worth = {atoms[fact].claim: score for fact, score in raw.items()}
    if maps is not None:
        worth = maps.of_claims(kb, critic, worth, {atom.claim: atom.indicator for atom in atoms.values()})
    return {fact: worth[atoms[fact].claim] for fact in raw}


def certify_facts(
    kb: KnowledgeBase, library: Library, critics: Sequence[str], maps: ScoreMaps | None, wanted: SearchSettings
) -> Certificates:
    """A threshold, or a reason why there is none, for each group of the facts that the candidates make.

    `critics`: NAME@REVISION of the critics of a chain; the last one is certified, and the promise leaves out what the
    others decide. `maps`: calibrations by which the scores are changed; facts that taught them are not labels then.
    Where rules negate an open predicate, what the critic denies is one more group: its promise is that atoms with a
    score below its limit are false. Raises HapaxError if nothing can be promised.
    """
    critic, proposed = critics[-1], proposed_atoms(kb, library)
    atoms = denied_atoms(kb, library) | proposed
    decided = set().union(*(stored_scores(kb, atoms, earlier) for earlier in critics[:-1]))
    scores = {
        fact: min(score, BELOW_CERTAIN)
        for fact, score in fact_scores(kb, atoms, critic, maps).items()
        if fact not in decided
    }
    if not proposed.keys() & scores.keys():
        raise HapaxError(
            f"{kb.place}: nothing is promised yet, for {critic} has judged no proposed fact.",
            Remedy(
                "Search without {} first, label facts by {} or `hapax votes`, and run this again.",
                Setting("settings.promise"),
                Operation("calibrate"),
            ),
        )
    taught = kb.first(CALIBRATIONS, critic=critic) if maps is not None else None
    # A label from which the map was learned says nothing about how right the map is.
    used = set(taught.sample) if taught else set()
    truths = {fact: is_true for fact, is_true in fact_truths(kb).items() if fact in scores and fact not in used}
    drawn = DrawnLabels.stored(kb, "predicates", critic)
    pool = LabelledPool(scores, truths, ends_of_facts(kb), drawn, "settings.promise", _basis(critic, maps))
    groups: dict[str, list[str]] = {}
    for fact in proposed.keys() & scores.keys():
        groups.setdefault(ALL_FACTS if wanted.certify_by == "all" else atoms[fact].indicator, []).append(fact)
    denied = [fact for fact in scores if atoms[fact].indicator in library.open_negations]
    if denied:
        groups[DENIALS] = denied
    templates = template_hashes(PredicateRecord.of(item) for item in library.completed().signatures)

    def basis(group: str) -> dict[str, Any]:
        # A promise on all facts, or on those of a predicate, rests on all their atoms, denied ones included.
        facts = denied if group == DENIALS else [f for f in scores if group in (ALL_FACTS, atoms[f].indicator)]
        return {
            "wording": content_id("claims", [atoms[fact].claim for fact in sorted(facts) if fact in truths]),
            "templates": {indicator: templates[indicator] for indicator in sorted({atoms[f].indicator for f in facts})},
        }

    return pool.certified(groups, wanted.promise or Promise(), basis)


def _basis(critic: str, maps: ScoreMaps | None) -> dict[str, Any]:
    calibration = None if maps is None else maps.checksums.get(critic, UNCALIBRATED)
    return {"critic": critic, "calibration": calibration, "prompt": prompt_version()}


def prompt_version() -> str:
    """A hash of the question by which a critic is asked about a claim."""
    return content_id("critic prompt", critic_prompt("A claim."))


def template_hashes(predicates: Iterable[PredicateRecord]) -> dict[str, str]:
    """By indicator, a hash of the templates and types by which a predicate's facts become claims."""
    hashes = {}
    for item in predicates:
        words = (item.affirmative, item.negated, item.question, list(item.argument_types))
        hashes[item.indicator] = content_id("templates", *words)
    return hashes


# --- statements -------------------------------------------------------------------------------------------------------


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

    def passing(self, records: Mapping[str, StatementRecord], facts: Certificates) -> dict[str, StatementRecord]:
        """The statements whose premises reach the thresholds of the promise on facts."""
        premises = {identity: self.premises(record) for identity, record in records.items()}
        worth = self.worth(chain.from_iterable(premises.values()))

        def passes(premise: JudgedPremise) -> bool:
            if premise.is_affirmed:
                return worth[premise.claim] >= facts.threshold(premise.indicator)
            return worth[premise.claim] <= facts.denial_limit()

        return {identity: record for identity, record in records.items() if all(map(passes, premises[identity]))}

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

    `records`: by the smallest id of those with one text; `ends`: where they occur, by the same id.
    """

    records: Mapping[str, StatementRecord]
    ends: Mapping[str, Collection[str]]

    @classmethod
    def of(cls, kb: KnowledgeBase, rules: Container[str]) -> DistinctStatements:
        """The certified statements of a knowledge base."""
        stored = [record for record in kb.statements() if record.rule in rules]
        first: dict[str, StatementRecord] = {}
        ends: dict[str, set[str]] = {}
        # Sorted, so that the order of the records decides nothing.
        for record in sorted(stored, key=lambda record: record.id):
            shown = first.setdefault(record.text, record)
            ends.setdefault(shown.id, set()).add(record.distribution.value)
        return cls({record.id: record for record in first.values()}, ends)

    def truths(self, kb: KnowledgeBase) -> dict[str, bool]:
        """Truth of the statements that people judged, other ones included; those on which they tie are left out."""
        found = Judgements.stored(kb)
        truths = {}
        for identity in {*found.texts, *self.records}:
            judgement = found.of(identity)
            if judgement.is_true is not None and judgement.in_shares:
                truths[identity] = judgement.is_true
        return truths


def certify_statements(scores: StatementScores, facts: Certificates | None, wanted: SearchSettings) -> StatementPromise:
    """A threshold, or a reason why there is none, for each group of the searches' statements, each text once.

    `facts`: the promise on the facts of the same search, which removes statements before this one counts them. Raises
    HapaxError if nothing can be promised.
    """
    kb, setting, by = scores.kb, "settings.statement_promise", wanted.certify_by
    rules = {rule.name: RuleRecord.of(rule).text for rule in scores.library.rules}
    distinct = DistinctStatements.of(kb, rules)
    records = distinct.records if facts is None else scores.passing(distinct.records, facts)
    if not records:
        raise HapaxError(
            f"{kb.place}: nothing is promised yet, for it has no such statement of these rules.",
            Remedy(
                "Search without {} first, judge statements by `hapax votes next 100 statements`, and run this again.",
                Setting(setting),
            ),
        )
    templates = template_hashes(PredicateRecord.of(item) for item in scores.library.completed().signatures)
    pool = LabelledPool(
        scores.scores(records.values()),
        distinct.truths(kb),
        distinct.ends,
        DrawnLabels.stored(kb, "soundness", ",".join(scores.critics)),
        setting,
        {**_basis(scores.critics[-1], scores.maps), "templates": templates},
    )
    groups: dict[str, list[str]] = {}
    for identity, record in records.items():
        groups.setdefault(statement_group(record.rule, by), []).append(identity)

    def basis(group: str) -> dict[str, Any]:
        names = sorted({records[identity].rule for identity in groups[group]})
        return {"rules": {name: content_id("rule", rules[name]) for name in names}}

    return StatementPromise(pool.certified(groups, wanted.statement_promise or Promise(), basis), scores, by)


# --- of a search ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Promises:
    """Calibrations and certificates of a search: `maps` make probabilities of scores, the others fix thresholds."""

    maps: ScoreMaps | None = None
    facts: Certificates | None = None
    statements: StatementPromise | None = None

    @classmethod
    def of(cls, kb: KnowledgeBase, library: Library, critics: Sequence[str], wanted: SearchSettings) -> Promises:
        """The calibrations and certificates of the knowledge base that a search wants.

        `critics`: NAME@REVISION of the critics of a chain. Raises HapaxError if the last one, which gives the scores,
        is not calibrated, or if nothing can be promised.
        """
        maps = ScoreMaps.stored(kb) if wanted.calibrated else None
        if maps is not None and critics[-1] not in maps.maps:
            raise HapaxError(
                f"{kb.place}: {short_model_name(critics[-1])} is not calibrated.",
                Remedy("Run {} first, or leave out {}.", Operation("calibrate"), Setting("settings.calibrated")),
            )
        facts = statements = None
        if wanted.promise is not None:
            facts = certify_facts(kb, library, critics, maps, wanted)
        if wanted.statement_promise is not None:
            statements = certify_statements(StatementScores(kb, library, critics, maps), facts, wanted)
        return cls(maps, facts, statements)

    @property
    def certificates(self) -> list[Certificates]:
        """The promises on facts and on statements."""
        of_statements = None if self.statements is None else self.statements.certificates
        return [certificates for certificates in (self.facts, of_statements) if certificates is not None]

    @property
    def checksums(self) -> dict[str, str]:
        """Of each part that there is, by which runs with other ones are told apart."""
        parts = {"calibrated": self.maps, "certificates": self.facts}
        if self.statements is not None:
            parts["statement_certificates"] = self.statements.certificates
        return {name: part.checksum for name, part in parts.items() if part is not None}
