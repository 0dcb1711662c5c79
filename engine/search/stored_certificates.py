"""Certificates that a knowledge base has: in words, and the reasons why some of them no longer hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hapax.engine.certificates import (
    Promise,
)
from hapax.engine.questions.score_maps import ScoreMaps, last_critic
from hapax.engine.search.promises import (
    ALL_FACTS,
    DENIALS,
    MUCH_SHIFT,
    STATEMENTS,
    UNCALIBRATED,
    end_lines,
    prompt_version,
    template_hashes,
)
from hapax.grammar.writing.words import counted
from hapax.kb.records import (
    PREDICATES,
    RULES,
    CertificateRecord,
    FactRecord,
    RunRecord,
    Source,
    StatementRecord,
    content_id,
)
from hapax.kb.store import KnowledgeBase


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
        lines.append(line + end_lines(record.ends or {}))
    return lines
