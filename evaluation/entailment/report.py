"""Measure scorers on every subset, with whole pairs and with hypotheses alone, to expose artefacts (section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hapax.evaluation.entailment.datasets import HYPOTHESIS_ONLY, subsets
from hapax.evaluation.entailment.groups import SubGroup, pair_and_converse, pairing_name
from hapax.evaluation.entailment.metrics import (
    BestThreshold,
    Curve,
    area_above,
    best_f1,
    curve,
    estimate,
    estimate_gap,
    normalised_area,
    released_area,
)
from hapax.evaluation.entailment.pairs import EntailmentPair
from hapax.evaluation.entailment.scorers import EntailmentScorer, VisibleSides
from hapax.evaluation.shared.drawing import COLOURS, single, write_figure
from hapax.evaluation.shared.estimates import NOTHING, Estimate
from hapax.evaluation.shared.results import ExperimentResult, ResultTable
from hapax.llm_oracle.budget import DeferralCollector

DIRECTIONAL = pairing_name((SubGroup.DIR_TRUE, SubGroup.DIR_FALSE))


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """The figures of a scorer on a subset: AUCnorm (`norm`), the same on hypotheses alone (`twin`), and their gap."""

    scorer: str
    subset: str
    sees: VisibleSides | None
    pairs: int
    curve: Curve
    twin_curve: Curve | None
    norm: Estimate
    twin: Estimate
    gap: Estimate

    @property
    def area(self) -> float:
        """AUC50."""
        return area_above(self.curve)

    @property
    def released(self) -> float:
        """AUCREL."""
        return released_area(self.curve)

    @property
    def threshold(self) -> BestThreshold:
        return best_f1(self.curve)

    @property
    def finding(self) -> str:
        """The conclusion at 95 %: a key of `FINDINGS`, or empty if there is nothing to compare with."""
        if self.sees is VisibleSides.HYPOTHESIS:
            return "artefact" if self.norm.low > 0 else "nothing"
        if self.twin_curve is None:
            return ""
        if self.twin.low > 0:
            return "artefact and more" if self.gap.low > 0 else "artefact"
        if self.norm.low > 0:
            return "entailment" if self.gap.low > 0 else "undecided"
        return "nothing"


FINDINGS = {
    "entailment": "above chance, and the premises account for it",
    "artefact": "hypotheses alone are above chance, and premises add nothing beyond chance",
    "artefact and more": "hypotheses alone are above chance, and premises add to that",
    "undecided": "above chance, but the contribution of premises is within chance",
    "nothing": f"within chance; on {DIRECTIONAL} this means that the direction is not recognised",
}
"""Explanations of the findings in the last column."""


def measure(
    scorers: Sequence[EntailmentScorer],
    pairs: Sequence[EntailmentPair],
    sides: VisibleSides = VisibleSides.BOTH,
    seed: int = 0,
) -> Iterator[SubsetResult]:
    """The results of each scorer on each subset. A scorer that sees one side only has no twin."""
    chosen = list(subsets(pairs))
    deferrals = DeferralCollector()
    for scorer in scorers:
        sees = scorer.sees if sides is VisibleSides.BOTH else sides
        # The full set is scored once: subsets differ in labels alone.
        with deferrals:
            scores = _by_pair(scorer, [sides.of(pair) for pair in pairs], pairs)
        with deferrals:
            twins = (
                _by_pair(scorer, [pair.hypothesis_only for pair in pairs], pairs) if sees is VisibleSides.BOTH else None
            )
        # Once a request waits in a queue, nothing is measured, but later scorers add their requests to the queue, too.
        if deferrals.first is not None:
            continue
        for subset, members in chosen:
            yield _result((scorer.name, subset, sees), members, scores, twins, seed)
    deferrals.raise_first()


def _by_pair(
    scorer: EntailmentScorer, visible: Sequence[EntailmentPair], pairs: Sequence[EntailmentPair]
) -> dict[tuple[object, str], float]:
    """The scores of the pairs of which the scorer sees `visible`, in the same order, by the whole pairs."""
    return {_identity(pair): score for pair, score in zip(pairs, scorer.scores(visible), strict=True)}


def _identity(pair: EntailmentPair) -> tuple[object, str]:
    """Wording and language: pairs that agree in both have the same score."""
    return (pair.key, pair.language)


def _result(
    names: tuple[str, str, VisibleSides | None],
    pairs: Sequence[EntailmentPair],
    scored: dict[tuple[object, str], float],
    twins: dict[tuple[object, str], float] | None,
    seed: int,
) -> SubsetResult:
    truth = [pair.entailed for pair in pairs]
    clusters = [pair_and_converse(pair) for pair in pairs]  # a pair and its converse are not independent
    scores = [scored[_identity(pair)] for pair in pairs]
    norm = estimate(truth, scores, normalised_area, clusters, seed)
    if twins is None:
        return SubsetResult(*names, len(pairs), curve(truth, scores), None, norm, NOTHING, NOTHING)
    alone = [twins[_identity(pair)] for pair in pairs]
    return SubsetResult(
        *names,
        len(pairs),
        curve(truth, scores),
        curve(truth, alone),
        norm,
        estimate(truth, alone, normalised_area, clusters, seed),
        estimate_gap(truth, (scores, alone), normalised_area, clusters, seed),
    )


FIGURE_COLUMNS = ("true", "AUC50", "AUCREL", "F1", "AUCnorm")


def experiment_result(results: Sequence[SubsetResult], remarks: Sequence[str] = ()) -> ExperimentResult:
    """The results as a table, all figures, and as notes the remarks and explanations of the findings."""
    columns = ("scorer", "subset", "pairs", *FIGURE_COLUMNS, HYPOTHESIS_ONLY, "gap", "finding")
    rows = []
    for result in results:
        twin = (_with_interval(result.twin), _with_interval(result.gap), result.finding)
        rows.append((result.scorer, result.subset, str(result.pairs), *figure_cells(result), *twin))
    figures = []
    for result in results:
        twin_figures = {"hypothesis_only": result.twin, "gap": result.gap, "finding": result.finding}
        figures.append({**main_figures(result), "sees": result.sees, **twin_figures})
    findings = dict.fromkeys(result.finding for result in results if result.finding)
    notes = [*remarks, *(f"{name}: {FINDINGS[name]}" for name in findings)]
    return ExperimentResult([ResultTable("", columns, rows)], figures, notes=notes)


def figure_cells(result: SubsetResult) -> tuple[str, ...]:
    """The cells of a table under `FIGURE_COLUMNS`."""
    figures = (result.curve.positive, result.area, result.released, result.threshold.f1)
    return (*(f"{figure:.2f}" for figure in figures), _with_interval(result.norm))


def main_figures(result: SubsetResult) -> dict[str, object]:
    """The figures that do not compare with hypotheses alone, for JSON."""
    return {
        "scorer": result.scorer,
        "subset": result.subset,
        "pairs": result.pairs,
        "true": result.curve.positive,
        "auc50": result.area,
        "auc_rel": result.released,
        "f1": result.threshold,
        "auc_norm": result.norm,
    }


def write_curves(results: Sequence[SubsetResult], folder: Path) -> list[Path]:
    """Write a figure with its CSV for each subset, and each curve as lines of `precision TAB recall TAB theta`."""
    written: list[Path] = []
    for subset in dict.fromkeys(result.subset for result in results):
        members = [result for result in results if result.subset == subset]
        lines, rows = [], list[Sequence[object]]()
        for result in members:
            for name, measured in _curves(result):
                points = zip(measured.precision, measured.recall, measured.thresholds, strict=True)
                text = ""
                for precision, recall, theta in points:
                    rows.append((name, float(precision), float(recall), float(theta)))
                    text += f"{precision!s}\t{recall!s}\t{theta!s}\n"
                lines.append((folder / f"{file_name(name)}-{subset}.tsv", text))
        table = ResultTable("", ("scorer", "precision", "recall", "theta"), rows)
        drawn = single((4.4, 3.6), partial(_draw, members))
        written += write_figure(folder / f"curves-{subset}", drawn, table)
        for path, text in lines:
            path.write_text(text, "utf-8")
            written.append(path)
    return written


def _curves(result: SubsetResult) -> Iterator[tuple[str, Curve]]:
    yield result.scorer, result.curve
    if result.twin_curve is not None:
        yield f"{result.scorer}, {HYPOTHESIS_ONLY}", result.twin_curve


def _draw(results: Sequence[SubsetResult], axes: Any) -> None:
    axes.axhline(results[0].curve.positive, color="0.6", linewidth=0.8, label="share of true pairs")
    for number, result in enumerate(results):
        for name, measured in _curves(result):
            style = "-" if measured is result.curve else ":"
            axes.plot(*measured.points, style, color=COLOURS[number % len(COLOURS)], linewidth=1.2, label=name)
    axes.set(xlabel="recall", ylabel="precision", title=results[0].subset, xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(frameon=False).set_in_layout(False)  # long names must not squeeze the curves


def file_name(text: str) -> str:
    """The text as part of a file name: runs of other characters than letters and digits become a hyphen."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text).split())


def _with_interval(figure: Estimate) -> str:
    return figure.text(2, 2, empty="")
