"""Promises on the precision of the facts that a search accepts, from labelled facts of its knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hapax.engine.certificates import JudgedScore, Promise, ThresholdChoice, choose_by_group, score_shift
from hapax.engine.search.score_maps import ScoreMaps, last_critic
from hapax.engine.search.scored_facts import fact_truths, proposed_atoms, stored_scores
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.words import counted
from hapax.kb import system
from hapax.kb.records import CertificateRecord, FactRecord, PredicateRecord, RunRecord, Source, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.prompts import critic_prompt

Grouping = Literal["all", "predicate"]

ALL_FACTS = "all facts"
"""Group of a promise on all facts together."""

BELOW_CERTAIN = 1.0 - 1e-9
"""Largest score of a model, so that a threshold of 1 lets only what a source states pass."""

UNPROMISED = 1.0
"""Threshold of facts about which nothing is promised."""

UNCALIBRATED = "uncalibrated"
"""Calibration of a critic without one, in a search that uses calibrations."""

MUCH_SHIFT = 0.1
"""Distance of the shift from 0.5 that is reported as much."""


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
        self._atoms = proposed_atoms(kb, library)
        decided: set[str] = set()
        for earlier in critics[:-1]:
            decided.update(stored_scores(kb, self._atoms, earlier))
        raw = stored_scores(kb, self._atoms, self._critic)
        self._scores = {fact: self._score(fact, score) for fact, score in raw.items() if fact not in decided}
        taught = kb.calibration(self._critic) if maps is not None else None
        # A label from which the map was learned says nothing about how right the map is.
        used = set(taught.sample) if taught else set()
        truths = fact_truths(kb)
        self._truths = {fact: truths[fact] for fact in self._scores if fact in truths and fact not in used}

    def _score(self, fact: str, score: float) -> float:
        indicator = self._atoms[fact].indicator
        own = score if self._maps is None else self._maps.probability(self._critic, score, indicator)
        return min(own, BELOW_CERTAIN)

    def certify(self, promise: Promise, by: Grouping = "all") -> Certificates:
        """A threshold, or a reason why there is none, for each group. Raises HapaxError if nothing can be promised."""
        groups: dict[str, list[str]] = {}
        for fact in self._scores:
            groups.setdefault(ALL_FACTS if by == "all" else self._atoms[fact].indicator, []).append(fact)
        pools = {group: [self._scores[fact] for fact in facts] for group, facts in sorted(groups.items())}
        judged: dict[str, list[JudgedScore]] = {}
        for group, facts in groups.items():
            judged[group] = [self._judged(fact) for fact in facts if fact in self._truths]
        choices = choose_by_group(judged, pools, promise)
        if not any(choice.threshold is not None for choice in choices.values()):
            raise HapaxError(self._refusal(choices, promise))
        records = [self._record(group, groups[group], choice, promise) for group, choice in choices.items()]
        return Certificates(tuple(records))

    def _judged(self, fact: str) -> JudgedScore:
        atom = self._atoms[fact]
        return JudgedScore(self._scores[fact], self._truths[fact], f"{atom.indicator}|{atom.key}")

    def _refusal(self, choices: Mapping[str, ThresholdChoice], promise: Promise) -> str:
        if not choices:
            return (
                f"{self._kb.place}: nothing is promised yet, for {self._critic} has judged no proposed fact. Search "
                "without --precision first, label facts by `hapax calibrate` or `hapax votes`, and run this again."
            )
        reasons = []
        for group, choice in choices.items():
            reasons.append(f"{group}: {describe(choice.reason, choice.more_labels)}")
        listed = "\n".join(reasons[:10])
        return (
            f"Nothing can be promised: that {promise}.\n{listed}\nLabel more facts by `hapax calibrate` or `hapax "
            "votes`, ask for less with --precision and --confidence, or choose another critic."
        )

    def _record(self, group: str, facts: Sequence[str], choice: ThresholdChoice, promise: Promise) -> CertificateRecord:
        sample = sorted((fact, self._scores[fact], self._truths[fact]) for fact in facts if fact in self._truths)
        others = [self._scores[fact] for fact in facts if fact not in self._truths]
        shift = score_shift([score for _, score, _ in sample], others)
        wording = content_id("claims", [self._atoms[fact].claim for fact, _, _ in sample])
        indicators = sorted({self._atoms[fact].indicator for fact in facts})
        basis = {
            "critic": self._critic,
            "wording": wording,
            "calibration": self._maps.checksums.get(self._critic, UNCALIBRATED) if self._maps else None,
            "prompt": prompt_version(),
            "templates": {indicator: self._templates[indicator] for indicator in indicators},
        }
        return CertificateRecord(
            group,
            promise.precision,
            promise.confidence,
            promise.method,
            basis,
            choice.threshold,
            choice.labels,
            choice.false,
            choice.bound,
            choice.accepted,
            choice.pool,
            content_id("sample", [list(row) for row in sample]),
            shift,
            "" if choice.threshold is not None else describe(choice.reason, choice.more_labels),
            system.now().isoformat(timespec="seconds"),
        )


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
    when the templates change by which its facts become claims, when Hapax words the critic's question otherwise, and
    when the calibration changes on which it rests.
    """
    wanted = set(run_ids)
    records = [record for record in kb.certificates() if record.run_id in wanted]
    if not records:
        return []
    maps, runs = ScoreMaps.stored(kb), kb.runs()
    templates = template_hashes(kb.predicates())
    stored = []
    for record in records:
        reasons = [_other_revision(record, runs)]
        own = maps.checksums.get(record.basis["critic"], UNCALIBRATED)
        # Certificates of older files rest on the calibrations of all critics together.
        if record.basis.get("calibration") not in (None, own, maps.checksum):
            reasons.append("the calibration has changed since")
        if record.basis.get("prompt", prompt_version()) != prompt_version():
            reasons.append("the wording of the critic's question has changed since")
        for indicator, checksum in (record.basis.get("templates") or {}).items():
            if templates.get(indicator, checksum) != checksum:
                reasons.append(f"the wording of {indicator} has changed since")
        stored.append(StoredCertificate(record, "; ".join(filter(None, reasons))))
    return stored


def certificates_of(kb: KnowledgeBase, facts: Iterable[FactRecord]) -> list[StoredCertificate]:
    """The certificates of the facts' runs that cover them, each once; a fact that a source states needs none."""
    covered: dict[str, set[str]] = {}
    for fact in facts:
        if fact.source is not Source.GIVEN and not fact.basis and fact.run_id is not None:
            covered.setdefault(fact.run_id, {ALL_FACTS}).add(f"{fact.predicate}/{len(fact.arguments)}")
    stored = stored_certificates(kb, covered)
    return [
        certificate for certificate in stored if certificate.record.fact_group in covered[certificate.record.run_id]
    ]


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


def describe(reason: str, more_labels: int | None) -> str:
    """The reason why nothing is promised, and what would help."""
    if more_labels is None:
        return f"{reason}; by these labels no number of further ones would do."
    return f"{reason}; about {counted(more_labels, 'more label')} would do if facts stay as true as the labelled ones."


def certificate_lines(records: Sequence[CertificateRecord]) -> list[str]:
    """The certificates of a run in words."""
    lines = []
    for record in records:
        promise = Promise(record.precision, record.confidence, _method(record))
        if record.threshold is None:
            lines.append(f"{record.fact_group}: nothing is promised, and no model's value accepted: {record.reason}")
            continue
        share = record.accepted / record.pool
        line = (
            f"{record.fact_group}: {promise}. Threshold {record.threshold:.4g}, which {share:.0%} of {record.pool} "
            f"proposed facts reach; {record.false} of {counted(record.labels, 'label')} there false, bound "
            f"{record.bound:.3f} ({record.method})."
        )
        if record.shift is not None and abs(record.shift - 0.5) > MUCH_SHIFT:
            line += (
                f" The labelled facts differ from the others in their scores (AUC {record.shift:.2f}, 0.5 if alike): "
                "the promise holds for facts like the labelled ones."
            )
        lines.append(line)
    return lines


def _method(record: CertificateRecord) -> Literal["learn-then-test", "conformal"]:
    return "conformal" if record.method == "conformal" else "learn-then-test"
