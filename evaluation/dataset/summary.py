"""What is counted while the rows go by, and what the card and the command tell of a dataset."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluation.dataset.rows import Entry, Source
from evaluation.dataset.selection import Wish
from evaluation.dataset.tables import Size
from evaluation.estimates import Estimate, mean, share
from evaluation.lint import DomainCount, table_16_json
from evaluation.probing.metrics import TOTAL, in_order
from kb.records import Distribution

GATES = ("type", "critic")
"""The gates by which a model judges; the parser's refusals alone are kept, and the likelihood gate only sorts."""

_Scores = dict[tuple[str, Distribution], dict[str, tuple[float, int]]]


@dataclass(frozen=True, slots=True)
class GateVerdicts:
    """How many values came to a gate, and the share of them that it refused."""

    gate: str
    judged: int
    refused: Estimate


@dataclass
class Tally:
    """Counts rows; holds none of them but an example of each end."""

    statements: Counter[tuple[str, Distribution]] = field(default_factory=Counter)
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)
    in_both: int = 0
    examples: dict[Distribution, str] = field(default_factory=dict)
    _domains: dict[str, str] = field(default_factory=dict)
    _scores: _Scores = field(default_factory=lambda: defaultdict(dict))

    def take(self, entry: Entry) -> None:
        record, row = entry.record, entry.row
        key = (record.rule, record.distribution)
        self.statements[key] += 1
        self.labels[row["label"], row["label_source"]] += 1
        self.in_both += row["in_both"] and record.distribution is Distribution.HEAD
        self.examples.setdefault(record.distribution, record.text)
        self._domains[record.rule] = row["domain"]
        if row["log_likelihood"] is not None:
            evaluator = row["evaluator_model"] or ""
            total, count = self._scores[key].get(evaluator, (0.0, 0))
            self._scores[key][evaluator] = (total + row["log_likelihood"], count + 1)

    def domains(self) -> tuple[DomainCount, ...]:
        """LINK's table 16 with delta, the total last."""
        named = set(self._domains.values())
        parts = [(one, [rule for rule, domain in self._domains.items() if domain == one]) for one in in_order(named)]
        return tuple(self._domain(*part) for part in (*parts, (TOTAL, list(self._domains))))

    def _domain(self, domain: str, rules: list[str]) -> DomainCount:
        head, long_tail = (sum(self.statements[rule, each] for rule in rules) for each in Distribution)
        deltas = [delta for rule in sorted(rules) if (delta := self._delta(rule)) is not None]
        return DomainCount(domain, len(rules), head, long_tail, mean(deltas))

    def _delta(self, rule: str) -> float | None:
        """None where one end has no score, and where not one evaluator alone has measured both."""
        head, long_tail = (self._scores.get((rule, each), {}) for each in Distribution)
        if len(head) != 1 or head.keys() != long_tail.keys():
            return None
        (one,), (other,) = head.values(), long_tail.values()
        return one[0] / one[1] - other[0] / other[1]


@dataclass(frozen=True)
class Summary:
    """A dataset in figures. `sizes`: of the Parquet tables; `notes`: what was improvised or does not fit a format."""

    name: str
    wish: Wish
    source: Source
    tally: Tally
    formats: tuple[str, ...]
    sizes: dict[tuple[str, str], Size] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def left_out(self) -> dict[str, int]:
        return self.source.selection.left_out

    @property
    def gates(self) -> list[GateVerdicts]:
        """What the gates refused in the runs behind the statements."""
        counts = self.source.kb.verdict_counts(GATES, self.source.runs)
        return [
            GateVerdicts(gate, judged, share([True] * (judged - accepted) + [False] * accepted))
            for gate in GATES
            if gate in counts
            for accepted, judged in [counts[gate]]
        ]

    @property
    def affirmed(self) -> Estimate:
        """Of the statements that people judged, the share whose entailment they affirmed."""
        chosen = {place.id for place in self.source.selection.places}
        judgements = self.source.selection.judgements
        return share([one not in judgements.verdicts.contradicted for one in sorted(chosen & judgements.judged)])

    def to_json(self) -> dict[str, Any]:
        """What `metadata.json` holds, and `--json` prints."""
        return {
            "name": self.name,
            "formats": list(self.formats),
            "seed": self.wish.seed,
            "sample": self.wish.sample,
            "rules": sorted({place.rule for place in self.source.selection.places}),
            "table_16": table_16_json(self.tally.domains()),
            "in_both": self.tally.in_both,
            "labels": [
                {"label": label, "source": source, "statements": count}
                for (label, source), count in sorted(self.tally.labels.items())
            ],
            "left_out": self.left_out,
            "gates": [{"gate": one.gate, "judged": one.judged, "refused": one.refused.value} for one in self.gates],
            "notes": list(self.notes),
            "runs": list(self._runs()),
        }

    def _runs(self) -> Iterator[dict[str, Any]]:
        for run in self.source.runs.values():
            told = {"command": run.command, "started": run.started, "status": run.status}
            yield {"id": run.id, **told, "settings": dict(run.settings)}
