"""Promises on the precision of the facts that a search accepts, from labelled facts of its knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hapax.engine.certificates import Promise
from hapax.engine.judging_draw import DrawnLabels
from hapax.engine.search.certified_groups import (
    MUCH_SHIFT,
    ScoredValue,
    certificates_of_groups,
    choose_for_groups,
    end_lines,
    refuse_without_promise,
)
from hapax.engine.search.score_maps import ScoreMaps, last_critic
from hapax.engine.search.scored_facts import denied_atoms, ends_of_facts, fact_truths, proposed_atoms, stored_scores
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.words import counted
from hapax.kb.records import (
    CALIBRATIONS,
    PREDICATES,
    RULES,
    CertificateRecord,
    FactRecord,
    PredicateRecord,
    RunRecord,
    Source,
    StatementRecord,
    content_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.prompts import critic_prompt

Grouping = Literal["all", "predicate"]

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


def more_labels(promise: str) -> Remedy:
    """The remedy for a promise that cannot be kept, by the setting that asks for it."""
    return Remedy(
        "Label more by `hapax votes next` or {}, ask for less with {} and {}, or choose another critic.",
        Operation("calibrate"),
        Setting(promise),
        Setting("settings.promise.confidence"),
    )


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


class Certifier:
    """Certifies the scores of a critic on the facts that the knowledge base's candidates make.

    `critics`: NAME@REVISION of the critics of a chain; the last one is certified, and the promise leaves out what the
    others decide. `maps`: calibrations by which the scores are changed; facts that taught them are not labels then.
    """

    def __init__(
        self, kb: KnowledgeBase, library: Library, critics: Sequence[str], maps: ScoreMaps | None = None
    ) -> None:
        self._kb, self._maps, self._critic = kb, maps, critics[-1]
        self._templates = template_hashes(PredicateRecord.of(item) for item in library.completed().signatures)
        self._negated = library.open_negations
        proposed = proposed_atoms(kb, library)
        self._proposed = set(proposed)
        self._atoms = denied_atoms(kb, library) | proposed
        decided: set[str] = set()
        for earlier in critics[:-1]:
            decided.update(stored_scores(kb, self._atoms, earlier))
        raw = stored_scores(kb, self._atoms, self._critic)
        self._scores = self._worth({fact: score for fact, score in raw.items() if fact not in decided})
        taught = kb.first(CALIBRATIONS, critic=self._critic) if maps is not None else None
        # A label from which the map was learned says nothing about how right the map is.
        used = set(taught.sample) if taught else set()
        truths = fact_truths(kb)
        self._truths = {fact: truths[fact] for fact in self._scores if fact in truths and fact not in used}
        self._drawn = DrawnLabels.stored(kb, "predicates", self._critic)
        self._ends = ends_of_facts(kb)

    def _worth(self, raw: Mapping[str, float]) -> dict[str, float]:
        """The scores that the search compares, by fact id."""
        worth = {self._atoms[fact].claim: score for fact, score in raw.items()}
        if self._maps is not None:
            indicators = {self._atoms[fact].claim: self._atoms[fact].indicator for fact in raw}
            worth = self._maps.of_claims(self._kb, self._critic, worth, indicators)
        return {fact: min(worth[self._atoms[fact].claim], BELOW_CERTAIN) for fact in raw}

    def certify(self, promise: Promise, by: Grouping = "all") -> Certificates:
        """A threshold, or a reason why there is none, for each group. Raises HapaxError if nothing can be promised.

        Where rules negate an open predicate, what the critic denies is one more group: its promise is that atoms with
        a score below its limit are false.
        """
        if not self._proposed & set(self._scores):
            raise HapaxError(
                f"{self._kb.place}: nothing is promised yet, for {self._critic} has judged no proposed fact.",
                Remedy(
                    "Search without {} first, label facts by {} or `hapax votes`, and run this again.",
                    Setting("settings.promise"),
                    Operation("calibrate"),
                ),
            )
        groups: dict[str, list[ScoredValue]] = {}
        for fact in self._proposed & set(self._scores):
            groups.setdefault(ALL_FACTS if by == "all" else self._atoms[fact].indicator, []).append(self._value(fact))
        affirmed = set(groups)
        denied = [fact for fact in self._scores if self._atoms[fact].indicator in self._negated]
        if denied:
            groups[DENIALS] = [self._denial(fact) for fact in denied]
        choices = choose_for_groups(groups, promise, self._drawn.reach)
        # Without a promise on denials the search can go on: then nothing counts as denied.
        affirming = {group: choice for group, choice in choices.items() if group in affirmed}
        refuse_without_promise(
            affirming,
            promise,
            more_labels("settings.promise"),
        )
        return Certificates(tuple(certificates_of_groups(groups, choices, promise, self._basis)))

    def _value(self, fact: str) -> ScoredValue:
        truth = self._truths.get(fact)
        draw, weight = self._drawn.of(fact)
        ends = self._ends.get(fact, ())
        return ScoredValue(fact, self._scores[fact], truth, ends, draw, weight)

    def _denial(self, fact: str) -> ScoredValue:
        value = self._value(fact)
        return replace(value, score=1.0 - value.score, truth=None if value.truth is None else not value.truth)

    def _basis(self, group: str) -> dict[str, Any]:
        facts = [fact for fact in self._scores if group in (ALL_FACTS, self._atoms[fact].indicator)]
        if group == DENIALS:
            facts = [fact for fact in self._scores if self._atoms[fact].indicator in self._negated]
        indicators = sorted({self._atoms[fact].indicator for fact in facts})
        labelled = sorted(fact for fact in facts if fact in self._truths)
        return {
            "critic": self._critic,
            "wording": content_id("claims", [self._atoms[fact].claim for fact in labelled]),
            "calibration": self._maps.checksums.get(self._critic, UNCALIBRATED) if self._maps else None,
            "prompt": prompt_version(),
            "templates": {indicator: self._templates[indicator] for indicator in indicators},
        }


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

    A certificate lapses when a later run has another revision of its critic or of the model that proposed its facts,
    when the templates change by which its facts become claims, when Hapax words the critic's question otherwise, when
    the calibration changes on which it rests, and, if it is about statements, when one of their rules changes.
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
        own = maps.checksums.get(record.basis["critic"], UNCALIBRATED)
        # Certificates of older files rest on the calibrations of all critics together.
        if record.basis.get("calibration") not in (None, own, maps.checksum):
            reasons.append("the calibration has changed since")
        # Certificates of older files name no prompt, templates or rules.
        if record.basis.get("prompt", prompt_version()) != prompt_version():
            reasons.append("the wording of the critic's question has changed since")
        for indicator, checksum in (record.basis.get("templates") or {}).items():
            if templates.get(indicator, checksum) != checksum:
                reasons.append(f"the wording of {indicator} has changed since")
        for name, checksum in (record.basis.get("rules") or {}).items():
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
            covered.setdefault(fact.run_id, {ALL_FACTS}).add(f"{fact.predicate}/{len(fact.arguments)}")
    stored = stored_certificates(kb, covered)
    return [
        certificate for certificate in stored if certificate.record.fact_group in covered[certificate.record.run_id]
    ]


def certificates_of_statement(kb: KnowledgeBase, statement: StatementRecord) -> list[StoredCertificate]:
    """The promises on statements that cover this one, by any run that kept it."""
    groups = (STATEMENTS, f"{STATEMENTS} of {statement.rule}")
    runs = [run for (run,) in kb.query("SELECT DISTINCT run_id FROM statements WHERE id = ?", (statement.id,))]
    stored = stored_certificates(kb, runs)
    return [certificate for certificate in stored if certificate.record.fact_group in groups]


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
            lines.append(f"{record.fact_group}: nothing is promised, and {_accepted_instead(record)}: {record.reason}")
            continue
        share = record.accepted / record.pool
        things = "statements" if record.fact_group.startswith(STATEMENTS) else "proposed facts"
        text = (
            str(promise)
            if record.fact_group != DENIALS
            else str(promise).replace("accepted are true", "denied are false")
        )
        line = (
            f"{record.fact_group}: {text}. {_threshold_text(record)}, which {share:.0%} of {record.pool} "
            f"{things} reach; {record.false} of {counted(record.labels, 'label')} there false, bound "
            f"{record.bound:.3f} ({record.method})."
        )
        if record.shift is not None and abs(record.shift - 0.5) > MUCH_SHIFT:
            line += (
                f" The labelled {things.removeprefix('proposed ')} differ from the others in their scores (AUC "
                f"{record.shift:.2f}, 0.5 if alike): the promise holds for {things.removeprefix('proposed ')} like "
                "the labelled ones."
            )
        lines.append(line + end_lines(record.ends or {}))
    return lines


def _accepted_instead(record: CertificateRecord) -> str:
    if record.fact_group == DENIALS:
        return "no atom is denied"
    return "none is kept" if record.fact_group.startswith(STATEMENTS) else "no model's value accepted"


def _threshold_text(record: CertificateRecord) -> str:
    threshold = record.threshold or 0.0
    return f"P(yes) at most {1 - threshold:.4g}" if record.fact_group == DENIALS else f"Threshold {threshold:.4g}"
