"""Promises on the precision of a search's facts and statements, from those of its knowledge base that people judged.

A statement's score is the product of what its facts are worth. It only puts statements in an order: the promise comes
from the judged ones, so that false rules and facts that fail together count in full. A certificate is a stored promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from hapax.engine.certificates import (
    METHOD,
    JudgedScore,
    LabelDraw,
    Promise,
    choose_threshold,
    score_shift,
)
from hapax.engine.gates.score_maps import (
    ProposedAtom,
    ScoreMaps,
    denied_atoms,
    fact_truths,
    last_critic,
    proposed_atoms,
    short_model_name,
    stored_scores,
)
from hapax.engine.inference.proof import By, proof_from_json
from hapax.engine.judgements import DrawnLabels, Judgements
from hapax.engine.search.settings import Grouping, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Literal
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.judgement_records import CALIBRATIONS, CertificateRecord
from hapax.kb.records import (
    PREDICATES,
    RULES,
    FactRecord,
    PredicateRecord,
    RuleRecord,
    RunRecord,
    Source,
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
"""Distance of the shift from 0.5 that is reported as much."""


@dataclass(frozen=True)
class LabelledPool:
    """Values with their scores, the labels of some, and what chose these. `setting`: asks for the promise on them.

    `basis`: the critic, its calibration and the wordings on which their scores rest.
    """

    scores: Mapping[str, float]
    truths: Mapping[str, bool]
    drawn: DrawnLabels
    setting: str
    basis: Mapping[str, Any]

    def certified(
        self, groups: Mapping[str, Collection[str]], promise: Promise, basis: Callable[[str], Mapping[str, Any]]
    ) -> Certificates:
        """A certificate for each group of ids, or a record of the reason why there is none; all hold at once.

        `basis`: what the basis of a group has beside. Raises HapaxError if nothing but denials can be promised.
        """
        records, reasons = [], []
        for group, identities in sorted(groups.items()):
            record = self._certificate(group, identities, promise, len(groups), {**self.basis, **basis(group)})
            records.append(record)
            if group != DENIALS and record.threshold is None:
                reasons.append(f"{group}: {record.reason}")
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
        self, group: str, identities: Collection[str], promise: Promise, groups: int, basis: Mapping[str, Any]
    ) -> CertificateRecord:
        scores = {identity: self.scores[identity] for identity in identities}
        truths = {identity: self.truths[identity] for identity in identities if identity in self.truths}
        if group == DENIALS:  # a denial is true if the value is false
            scores = {identity: 1.0 - score for identity, score in scores.items()}
            truths = {identity: not truth for identity, truth in truths.items()}
        judged = [
            JudgedScore(scores[identity], truth, self.drawn.of(identity)[0]) for identity, truth in truths.items()
        ]
        reach = self.drawn.reach
        draw = None if reach is None else LabelDraw(reach, [self.drawn.of(identity)[1] for identity in identities])
        choice = choose_threshold(judged, list(scores.values()), promise, groups, draw)
        # Sorted: the identity of the sample must not depend on the order of the values.
        sample = sorted((identity, scores[identity], truth) for identity, truth in truths.items())
        others = [score for identity, score in scores.items() if identity not in truths]
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
        )


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

    def promised(self, *groups: str) -> CertificateRecord | None:
        """The first certificate with a threshold of one of these groups."""
        return next((item for item in self.records if item.fact_group in groups and item.threshold is not None), None)

    def threshold(self, *groups: str) -> float | None:
        """The score that a value of one of these groups needs; None if nothing is promised."""
        record = self.promised(*groups)
        return None if record is None else record.threshold

    def of_fact(self, indicator: str) -> float:
        """The score that a fact of this predicate needs."""
        threshold = self.threshold(indicator, ALL_FACTS)
        return UNPROMISED if threshold is None else threshold

    def denial_limit(self) -> float:
        """The score up to which an atom counts as denied; below 0, which no score reaches, without a promise."""
        threshold = self.threshold(DENIALS)
        return -1.0 if threshold is None else 1.0 - threshold

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
    pool = LabelledPool(scores, truths, drawn, "settings.promise", _basis(critic, maps))
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
                return worth[premise.claim] >= facts.of_fact(premise.indicator)
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
        record = self.certificates.promised(statement_group(rule, self.by))
        return 0.0 if record is None else record.accepted / record.pool

    def kept(self, statements: Sequence[StatementRecord]) -> list[StatementRecord]:
        """The statements that reach the threshold of their group."""
        scores, kept = self.scores.scores(statements), []
        for statement in statements:
            threshold = self.certificates.threshold(statement_group(statement.rule, self.by))
            if threshold is not None and scores[statement.id] >= threshold:
                kept.append(statement)
        return kept


def distinct_statements(kb: KnowledgeBase, rules: Container[str]) -> dict[str, StatementRecord]:
    """The statements of rules that stand by id, of those with one text that with the smallest id."""
    first: dict[str, StatementRecord] = {}
    for record in sorted(kb.statements(), key=lambda record: record.id):
        if record.rule in rules:
            first.setdefault(record.text, record)
    return {record.id: record for record in first.values()}


def statement_truths(kb: KnowledgeBase, records: Iterable[str]) -> dict[str, bool]:
    """Truth of the statements that people judged, other ones included; those on which they tie are left out.

    `records`: ids of statements that may have been judged by another id.
    """
    found = Judgements.stored(kb)
    truths = {}
    for identity in {*found.texts, *records}:
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
    distinct = distinct_statements(kb, rules)
    records = distinct if facts is None else scores.passing(distinct, facts)
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
        statement_truths(kb, distinct),
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
        """Checksums of the parts that there are, by which runs differ."""
        parts = {"calibrated": self.maps, "certificates": self.facts}
        if self.statements is not None:
            parts["statement_certificates"] = self.statements.certificates
        return {name: part.checksum for name, part in parts.items() if part is not None}


# --- stored certificates ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A certificate of a knowledge base. `lapse`: the reason why it no longer holds; empty while it does."""

    record: CertificateRecord
    lapse: str = ""

    @property
    def text(self) -> str:
        """The promise in words, with its lapse."""
        (line,) = certificate_lines([self.record])
        if not self.lapse:
            return line
        return f"LAPSED, for {self.lapse}. Run the same search again to test the promise anew. It was: {line}"

    def to_json(self) -> dict[str, Any]:
        """The record's fields with the lapse, None while the certificate holds."""
        return {**asdict(self.record), "basis": dict(self.record.basis), "lapse": self.lapse or None}


def stored_certificates(kb: KnowledgeBase, run_ids: Iterable[str]) -> list[StoredCertificate]:
    """The certificates of these runs, each compared with the critic, wording and calibration of the knowledge base.

    A certificate lapses when a later run has another revision of its critic or of the model that proposed its facts. It
    also lapses when something changes on which it rests: the templates of its claims, the wording of the critic's
    question, the calibration, and, if it is about statements, their rules.
    """
    wanted = set(run_ids)
    records = [record for record in kb.certificates() if record.run_id in wanted]
    if not records:
        return []
    maps, runs = ScoreMaps.stored(kb), kb.runs()
    templates = template_hashes(kb.select(PREDICATES))
    rules = {rule.name: content_id("rule", rule.text) for rule in kb.select(RULES)}
    stored = []
    for record in records:
        reasons = [_other_revision(record, runs)]
        basis = record.basis
        if basis["calibration"] not in (None, maps.checksums.get(basis["critic"], UNCALIBRATED)):
            reasons.append("the calibration has changed since")
        if basis["prompt"] != prompt_version():
            reasons.append("the wording of the critic's question has changed since")
        for indicator, checksum in basis["templates"].items():
            if templates.get(indicator, checksum) != checksum:
                reasons.append(f"the wording of {indicator} has changed since")
        for name, checksum in basis.get("rules", {}).items():
            if rules.get(name) != checksum:
                reasons.append(f"the rule {name} has changed since")
        stored.append(StoredCertificate(record, "; ".join(filter(None, reasons))))
    return stored


def certificates_of(kb: KnowledgeBase, facts: Iterable[FactRecord]) -> list[StoredCertificate]:
    """The certificates of the facts' runs that cover them, each once; a fact that a source states needs none."""
    covered: dict[str, set[str]] = {}
    for fact in facts:
        if fact.source is not Source.GIVEN and not fact.basis and fact.run_id is not None:
            # A promise on all facts covers a fact as well as one on its predicate does.
            covered.setdefault(fact.run_id, {ALL_FACTS}).add(fact.indicator)
    stored = stored_certificates(kb, covered)
    return [
        certificate for certificate in stored if certificate.record.fact_group in covered[certificate.record.run_id]
    ]


def certificates_of_statement(kb: KnowledgeBase, statement: StatementRecord) -> list[StoredCertificate]:
    """The promises on statements that cover this one, by any run that kept it."""
    groups = (STATEMENTS, f"{STATEMENTS} of {statement.rule}")
    runs = [run for (run,) in kb.sql("SELECT DISTINCT run_id FROM statements WHERE id = ?", (statement.id,))]
    stored = stored_certificates(kb, runs)
    return [certificate for certificate in stored if certificate.record.fact_group in groups]


def _other_revision(record: CertificateRecord, runs: Sequence[RunRecord]) -> str:
    """The lapse caused by a later run with another revision of the certificate's models; empty if there is none.

    Runs are compared by their order, since clocks are coarse and can be set back.
    """
    order = [run.id for run in runs]
    last = record.after_run if record.after_run in order else record.run_id
    if record.run_id not in order or last not in order:
        return "its run is not in this knowledge base"
    (own,) = (run for run in runs if run.id == record.run_id)
    certified = _models_at_work(own)
    for run in runs[order.index(last) + 1 :]:
        for role, model in _models_at_work(run).items():
            name, _, revision = model.rpartition("@")
            own_name, _, own_revision = certified.get(role, "").rpartition("@")
            if name and name == own_name and revision != own_revision:
                return f"the {role} {name} has had another revision since"
    return ""


def _models_at_work(run: RunRecord) -> dict[str, str]:
    """NAME@REVISION of the critic that judged a run's facts and of the model that proposed them, by role."""
    names: Sequence[str] = run.settings.get("models") or ("", "")
    knowledge, critic = names[:2]
    # A chain's first critics decide by their sources; the promise is about the last.
    return {"critic": last_critic(critic), "knowledge model": knowledge}


def certificate_lines(records: Sequence[CertificateRecord]) -> list[str]:
    """The certificates of a run in words."""
    lines = []
    for record in records:
        promise = Promise(record.precision, record.confidence)
        if record.threshold is None:
            instead = "none is kept" if record.fact_group.startswith(STATEMENTS) else "no model's value accepted"
            if record.fact_group == DENIALS:
                instead = "no atom is denied"
            lines.append(f"{record.fact_group}: nothing is promised, and {instead}: {record.reason}")
            continue
        share = record.accepted / record.pool
        things = "statements" if record.fact_group.startswith(STATEMENTS) else "proposed facts"
        text, limit = str(promise), f"Threshold {record.threshold:.4g}"
        if record.fact_group == DENIALS:
            text = text.replace("accepted are true", "denied are false")
            limit = f"P(yes) at most {1 - record.threshold:.4g}"
        line = (
            f"{record.fact_group}: {text}. {limit}, which {share:.0%} of {record.pool} "
            f"{things} reach; {record.false} of {counted(record.labels, 'label')} there false, bound "
            f"{record.bound:.3f} ({record.method})."
        )
        if record.shift is not None and abs(record.shift - 0.5) > MUCH_SHIFT:
            line += (
                f" The labelled {things.removeprefix('proposed ')} differ from the others in their scores (AUC "
                f"{record.shift:.2f}, 0.5 if alike): the promise holds for {things.removeprefix('proposed ')} like "
                "the labelled ones."
            )
        lines.append(line)
    return lines
