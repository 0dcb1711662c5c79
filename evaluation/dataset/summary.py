"""Counts over the rows of a dataset, and the summary that the card, `metadata.json` and the command print."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hapax.engine.search.gates import GateCount, VerdictCounts, gates_in_order
from hapax.engine.search.stored_certificates import StoredCertificate, stored_certificates
from hapax.evaluation.dataset.columns import LAYOUT
from hapax.evaluation.dataset.formats import Target
from hapax.evaluation.dataset.rows import DatasetSource, Entry
from hapax.evaluation.dataset.selection import SelectionOptions
from hapax.evaluation.link.lint import DomainTally, table_16_json
from hapax.evaluation.shared.estimates import Estimate, share
from hapax.kb.records import Distribution


@dataclass(frozen=True, slots=True)
class GateVerdicts:
    """Number of values that a gate judged, and the share of them that it refused."""

    gate: str
    judged: int
    refused: Estimate


@dataclass
class RowCounter:
    """Counts rows as they are written. It keeps one example text of each distribution, and no other row."""

    domains: DomainTally = field(default_factory=lambda: DomainTally({}))
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)
    in_both: int = 0
    examples: dict[Distribution, str] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        record, row = entry.record, entry.row
        self.domains.rules[record.rule] = row["domain"]
        self.domains.take(record, row["evaluator_model"])
        self.labels[row["label"], row["label_source"]] += 1
        # Such a statement has a row in each distribution; it is counted at the first of them.
        self.in_both += row["in_both"] and record.distribution is Distribution.HEAD
        self.examples.setdefault(record.distribution, record.text)


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset in figures. `notes`: choices, and rows that a format cannot hold."""

    target: Target
    wish: SelectionOptions
    source: DatasetSource
    tally: RowCounter
    checksum: str
    formats: tuple[str, ...]
    notes: tuple[str, ...] = ()
    derived: int = 0
    """Statements of `derive`, in a file of their own."""

    @property
    def left_out(self) -> dict[str, int]:
        return self.source.selection.left_out

    @property
    def gates(self) -> list[GateVerdicts]:
        """Verdicts of the gates on values in the runs behind the statements; gates without a value are left out."""
        runs_by_compat: dict[Any, list[str]] = {}
        for run in self.source.runs.values():
            runs_by_compat.setdefault(run.settings.get("compat"), []).append(run.id)
        totals: dict[str, GateCount] = {}
        # Runs with another order of gates are counted apart: the order says how many values came to each gate.
        for compat, run_ids in runs_by_compat.items():
            values = VerdictCounts()
            counts: list[tuple[str, GateCount]] = []
            for verdict in self.source.kb.verdict_counts(run_ids):
                if verdict.proposed:
                    values.add(verdict.gate, verdict.accepted, verdict.scored, verdict.count)
                elif verdict.scored:  # a single fact comes to no gate but the one that judged it
                    counts.append((verdict.gate, GateCount(verdict.count * verdict.accepted, verdict.count)))
            counts += values.by_gate(gates_in_order(compat)).items()
            for name, count in counts:
                totals[name] = totals.get(name, GateCount()) + count
        verdicts = []
        for gate in gates_in_order():
            total = totals.get(gate.name, GateCount())
            if gate.in_card and gate.on_values and total.judged:
                refused = [True] * (total.judged - total.accepted) + [False] * total.accepted
                verdicts.append(GateVerdicts(gate.name, total.judged, share(refused)))
        return verdicts

    @property
    def certificates(self) -> list[StoredCertificate]:
        """The promises on the facts that the runs behind the statements accepted."""
        return stored_certificates(self.source.kb, self.source.runs)

    def to_json(self) -> dict[str, Any]:
        """The content of `metadata.json`, which `--json` prints."""
        labels, runs = [], []
        roots = {run.run: run.root for run in self.source.roots.runs}
        sealed = self.source.seal
        for (label, source), count in sorted(self.tally.labels.items()):
            labels.append({"label": label, "source": source, "statements": count})
        for run in self.source.runs.values():
            attributes = {name: getattr(run, name) for name in ("id", "command", "started", "status")}
            runs.append({**attributes, "root": roots.get(run.id), "settings": dict(run.settings)})
        return {
            "name": self.target.tasks,
            "layout": LAYOUT,
            "version": self.target.version,
            "checksum": self.checksum,
            "rankers": [{"name": ranker.name, "taught_by": ranker.taught_by} for ranker in self.source.rankers],
            "formats": list(self.formats),
            "seed": self.wish.seed,
            "sample": self.wish.sample,
            "rules": sorted({place.rule for place in self.source.selection.places}),
            "table_16": table_16_json(self.tally.domains.counts()),
            "in_both": self.tally.in_both,
            "repeats": self.source.selection.repeats,
            "derived": self.derived,
            "labels": labels,
            "left_out": self.left_out,
            "judged": {**self.source.selection.counts.to_json(), "choice": self.wish.judged},
            "gates": [{"gate": gate.gate, "judged": gate.judged, "refused": gate.refused.value} for gate in self.gates],
            "certificates": [certificate.to_json() for certificate in self.certificates],
            "notes": list(self.notes),
            "root": self.source.roots.root,
            "sealed_by": sealed.key if sealed else None,
            "runs": runs,
        }
