"""Proofs where there is one, a model elsewhere: accuracy, and the risk at each coverage.

Answers are ordered by confidence: proved answers first, then the model's by the margin of its scores. The risk at a
coverage is the share of wrong answers among that share of the most confident ones; the area under the curve (AURC) is
its mean over all coverages (Geifman and El-Yaniv, Bias-Reduced Uncertainty Estimation, 2019, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hapax.evaluation.shared.estimates import Estimate, of_groups, share
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.resolving import resolve_schema_pairs, resolve_schemas
from hapax.evaluation.winograd.runs import StoredRun, stored_runs
from hapax.evaluation.winograd.tables import shortened
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.store import KnowledgeBase

SHOWN_COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Coverages whose accuracy the table shows."""

CURVE_POINTS = 50
"""Most points of a curve for programs."""


@dataclass(frozen=True, slots=True)
class ConfidentAnswer:
    """An answer to a sentence. `confidence` orders answers; -inf for none, which is wrong."""

    family: str
    confidence: float
    right: bool
    proved: bool = False


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """A way of answering a source. `proved`: share of proved answers; `accuracy`: over all sentences; `aurc`: area
    under the risk-coverage curve, 0 to 1, with an interval over families; `curve`: pairs of coverage and risk.
    """

    answered_by: str
    source: str
    proved: Estimate
    accuracy: Estimate
    aurc: Estimate
    curve: tuple[tuple[float, float], ...]

    def accuracy_at(self, coverage: float) -> float:
        """Share of right answers among this share of the most confident ones."""
        # The first point at or behind the coverage, which rounding may have put a little lower.
        return 1 - next(risk for reached, risk in self.curve if reached >= coverage - 1e-9)


def risks(confidences: Any, wrong: Any) -> list[float]:
    """Expected share of wrong answers among the k most confident ones, for k = 1, 2, ... Ties are in random order."""
    order = np.argsort(-np.asarray(confidences, dtype=float), kind="stable")
    errors = np.asarray(wrong, dtype=float)[order]
    # Every answer of a tie carries its tie's mean error.
    _, group, sizes = np.unique(-np.asarray(confidences, dtype=float)[order], return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=errors) / sizes
    found: list[float] = (np.cumsum(means[group]) / np.arange(1, len(errors) + 1)).tolist()
    return found


def risk_curve(answered_by: str, source: str, answers: Sequence[ConfidentAnswer]) -> RiskCurve:
    """Measure answers to a source; there must be at least one."""
    at_each = risks([answer.confidence for answer in answers], [not answer.right for answer in answers])
    families: dict[str, list[tuple[float, float]]] = {}
    for answer in answers:
        families.setdefault(answer.family, []).append((answer.confidence, float(not answer.right)))
    total = len(at_each)
    # Evenly spaced points, and the coverages of the table among them.
    places = {max(1, math.ceil(total * step / CURVE_POINTS)) for step in range(1, CURVE_POINTS + 1)}
    places |= {max(1, math.ceil(total * coverage)) for coverage in SHOWN_COVERAGES}
    return RiskCurve(
        answered_by,
        source,
        share([answer.proved for answer in answers]),
        share([answer.right for answer in answers]),
        of_groups(_aurc, [np.array(rows) for rows in families.values()]),
        tuple((place / total, at_each[place - 1]) for place in sorted(places)),
    )


def _aurc(rows: Any) -> float:
    return float(np.mean(risks(rows[:, 0], rows[:, 1])))


@checked
@extras_named()
def combine_proofs(
    kb: KnowledgeBase,
    items: Sequence[WinogradItem],
    method: str = "reasoner",
    *,
    model: str | None = None,
    pair_consistent: bool = False,
) -> Evaluation[list[RiskCurve]]:
    """Accuracy and risk at each coverage of models alone, and with the proofs of `method` where there are some.

    The models' answers are those that `ask_schemas` stored in the knowledge base; `method` is one of
    `resolve_schemas`. `model`: only runs of models whose names begin so. `pair_consistent`: proofs are those of
    `resolve_schema_pairs`. Raises HapaxError if nothing was asked.
    """
    known = {item.id for item in items}
    runs: list[StoredRun] = []
    for run in stored_runs(kb):
        is_wanted = run.name.startswith(model or "") and run.status == "done"
        if is_wanted and any(answer.item in known for answer in run.answers):
            runs.append(run)
    if not runs:
        raise HapaxError(
            "No finished answers of a model to these sentences are stored.",
            Remedy("Ask with {}.", Operation("ask_schemas", "FILE", knowledge="MODEL", method="likelihood")),
        )
    # Sentences that no model was asked about cannot be compared, and are not proved.
    asked: set[str] = set()
    for run in runs:
        asked.update(answer.item for answer in run.answers)
    wanted = [item for item in items if item.id in asked]
    resolved = (resolve_schema_pairs if pair_consistent else resolve_schemas)(wanted, method=method).value
    proofs: dict[str, int] = {}
    for answer in resolved:
        if answer.resolution.answer is not None:
            proofs[answer.item.id] = answer.resolution.answer
    named = f"{method}, pair-consistent" if pair_consistent else method
    curves = combined(items, proofs, shortened(runs), named)
    return Evaluation(curves, _result(curves))


def combined(
    items: Sequence[WinogradItem], proofs: Mapping[str, int], runs: Sequence[StoredRun], method: str
) -> list[RiskCurve]:
    """Curves of each finished run alone and with proofs, on the run's sentences among the items.

    `proofs`: answers of `method` by item; an item without one is left to the model.
    """
    labels = {item.id: item.answer for item in items}
    curves = []
    for run in runs:
        answers = [answer for answer in run.answers if labels.get(answer.item) == answer.gold]
        if run.status != "done" or not answers:
            continue
        alone, hybrid = [], []
        for answer in answers:
            # Answers read from a reply have no margin and are all alike.
            margin = run.margins.get(answer.item, 0.0) if answer.strict is not None else -math.inf
            asked = ConfidentAnswer(answer.family, margin, answer.right)
            alone.append(asked)
            proof = proofs.get(answer.item)
            # Before all answers of the model, whatever their margins.
            proved = ConfidentAnswer(answer.family, math.inf, proof == answer.gold, proved=True)
            hybrid.append(asked if proof is None else proved)
        name = f"{run.name}, {run.label}"
        curves.append(risk_curve(name, run.source, alone))
        curves.append(risk_curve(f"{name} + {method}", run.source, hybrid))
    return curves


def _result(curves: Sequence[RiskCurve]) -> ExperimentResult:
    """Accuracy, accuracy at some coverages and AURC of each way of answering; curves for programs."""
    rows = []
    for curve in curves:
        at = [f"{100 * curve.accuracy_at(coverage):.1f}" for coverage in SHOWN_COVERAGES[:-1]]
        whole, proved = (estimate.text(1, 0, scale=100) for estimate in (curve.accuracy, curve.proved))
        rows.append((curve.answered_by, curve.source, proved, *at, whole, curve.aurc.text(3, 3)))
    columns = ("answered by", "source", "proved", "right at 25 %", "at 50 %", "at 75 %", "of all", "AURC")
    notes = [
        "Right at 25 %: among the quarter of the answers with the highest confidence, proved ones first. AURC: mean "
        "share of wrong answers over all coverages; less is better."
    ]
    return ExperimentResult([ResultTable("", columns, rows)], list(curves), notes=notes)
