"""Scorers measured on every subset of pairs: curves, areas under them, and draws selected on dev (sections 2, 3)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hapax.evaluation.entailment.pairs import (
    HYPOTHESIS_ONLY,
    EntailmentPair,
    SubGroup,
    VisibleSides,
    pair_and_converse,
    pairing_name,
    read_pairs,
    read_splits,
    subsets,
)
from hapax.evaluation.entailment.scorers import (
    SCORERS,
    EntailmentScorer,
    ScorerOptions,
    ScorerSession,
    file_scores,
    leak_warning,
)
from hapax.evaluation.shared.estimates import NOTHING, RESAMPLES, Estimate
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.result_tables import (
    COLOURS,
    Evaluation,
    ResultTable,
    file_name,
    single,
    write_figure,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.kb.files.unfinished import replace_file
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, DeferralCollector

RELEASED_HALF = 0.51
"""The precision above which the released code takes its AUCHALF."""

HALF = 0.5
"""The precision above which earlier work measures AUC (Hosseini et al. 2018; Schmitt and Schütze 2021)."""

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision and recall at each distinct score as threshold, from the highest down; arrays of equal length."""

    precision: _Floats
    recall: _Floats
    thresholds: _Floats
    positive: float
    """Share of true entailments: the precision of a scorer that knows nothing."""

    points: tuple[_Floats, _Floats]
    """Recall and precision after each case, and at recall 0. Within ties, their expectation under random order."""

    counts: tuple[_Floats, _Floats, _Floats]
    """Hits and cases at the end of each run of equal scores, from 0 on, and the cases at each point: whole numbers."""

    def above(self, floor: float | None = None) -> _Floats:
        """Height of each point over a precision, by default `positive`; exactly 0 where they are equal."""
        hits, ends, cases = self.counts
        share = Fraction(int(hits[-1]), int(ends[-1])) if floor is None else Fraction(floor).limit_denominator(10**6)
        # Precision hits/cases is compared with the share by their counts: a quotient would be off by its rounding, and
        # a curve that lies on its floor, such as that of a constant scorer, would fall below it.
        excess = np.interp(cases, ends, hits * share.denominator - ends * share.numerator)
        height = excess / (cases * share.denominator)
        return np.append(height[0], height)


@dataclass(frozen=True, slots=True)
class BestThreshold:
    """The best F1 and the threshold that reaches it; F1 0 at an infinite threshold if there is no true entailment."""

    f1: float
    precision: float
    recall: float
    theta: float


class Ranking:
    """Labels in descending order of their scores. Sorted once, it yields the curve of any weighting of the cases."""

    def __init__(self, truth: Sequence[bool], scores: Sequence[float]) -> None:
        labels, values = np.asarray(truth, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        if labels.shape != values.shape:
            raise ValueError(f"{len(labels)} labels but {len(values)} scores")
        self._order = np.argsort(-values, kind="stable")  # ties stay in the order given
        self._labels, values = labels[self._order], values[self._order]
        # Places of the last case of each run of equal scores: only there can a threshold lie.
        self._ends = np.flatnonzero(np.append(np.diff(values) != 0, True)) if len(values) else np.zeros(0, np.intp)
        self._thresholds = values[self._ends]

    def curve(self, weights: _Floats | None = None) -> Curve:
        """The curve of the cases, each counted `weights` times (default: once)."""
        counts = np.ones_like(self._labels) if weights is None else weights[self._order]
        cases, hits = np.cumsum(counts), np.cumsum(self._labels * counts)
        if not len(hits) or hits[-1] == 0:
            nothing = np.zeros(0)
            return Curve(nothing, nothing, nothing, 0.0, (nothing, nothing), (nothing, nothing, nothing))
        counted = cases > 0  # a resample may leave out the cases with the highest scores
        reached = counted[self._ends]
        ends = self._ends[reached]
        # Hits inside a run of equal scores rise linearly: a scorer that ties nearly everything gains nothing by it.
        end_hits, end_cases = np.append(0.0, hits[ends]), np.append(0.0, cases[ends])
        expected = np.interp(cases, end_cases, end_hits)
        recall, precision = expected[counted] / hits[-1], expected[counted] / cases[counted]
        return Curve(
            hits[ends] / cases[ends],
            hits[ends] / hits[-1],
            self._thresholds[reached],
            float(hits[-1] / cases[-1]),
            # Left of the first case precision stays as it is there. The usual anchor, precision 1 at recall 0, would
            # put the area of a constant scorer above its baseline.
            (np.append(0.0, recall), np.append(precision[0], precision)),
            (end_hits, end_cases, cases[counted]),
        )


def curve(truth: Sequence[bool], scores: Sequence[float]) -> Curve:
    """The curve of these scores against these labels."""
    return Ranking(truth, scores).curve()


def area_above(measured: Curve, floor: float = HALF) -> float:
    """Area under the curve where precision is at least `floor`, the curve being linear between cases; 0 if empty."""
    if not len(measured.recall):
        return 0.0
    area, width = _above(measured, floor)
    return area + floor * width


def normalised_area(measured: Curve) -> float:
    """AUCnorm of Eq. 1: (AUC above the baseline - baseline) / (1 - baseline); 0 for an empty curve.

    The baseline is the share of true entailments. The figure is 0 for a scorer that knows nothing and 1 for a perfect
    one. A curve that falls below its baseline loses more here than in `released_area`; the lowest value is
    -baseline / (1 - baseline).
    """
    floor = measured.positive
    if not len(measured.recall) or floor >= 1:
        return 0.0
    area, width = _above(measured)
    return (area + floor * width - floor) / (1 - floor)


def released_area(measured: Curve) -> float:
    """AUCREL of the released code: area of max(precision - baseline, 0) over 1 - baseline; 0 for an empty curve.

    Equal to Eq. 1 where precision never falls below the baseline.
    """
    floor = measured.positive
    return 0.0 if not len(measured.recall) or floor >= 1 else _above(measured)[0] / (1 - floor)


def released_points(measured: Curve) -> tuple[_Floats, _Floats]:
    """Recall and precision as the released code joins them: the thresholds' own, after precision 1 at recall 0.

    Within ties the released curve is a straight line, whatever their order.
    """
    return np.append(0.0, measured.recall), np.append(1.0, measured.precision)


def area_of_release(measured: Curve) -> float:
    """AUCREL on the released code's curve: area of max(precision - baseline, 0) over 1 - baseline; 0 if empty."""
    floor = measured.positive
    if not len(measured.recall) or floor >= 1:
        return 0.0
    recall, precision = released_points(measured)
    return _trapezoids(recall, np.maximum(precision - floor, 0.0)) / (1 - floor)


def half_of_release(measured: Curve) -> float:
    """AUCHALF of the released code: area under its curve over the points whose precision is at least .51."""
    recall, precision = released_points(measured)
    reached = precision >= RELEASED_HALF
    return _trapezoids(recall[reached], precision[reached])


def concordance(measured: Curve) -> float:
    """Probability that a true pair has a higher score than a false one, ties counted half; .5 without either label.

    It is the area under the ROC curve: chance is .5 whatever the share of true pairs, and less is worse than chance.
    """
    hits, ends, _ = measured.counts
    if not len(hits) or hits[-1] == 0 or hits[-1] == ends[-1]:
        return 0.5
    # The ROC curve in counts: true pairs over false pairs reached.
    misses = ends - hits
    return _trapezoids(misses, hits) / float(hits[-1] * misses[-1])


def _trapezoids(across: _Floats, up: _Floats) -> float:
    return float(np.sum(np.diff(across) * (up[:-1] + up[1:]) / 2))


def best_f1(measured: Curve) -> BestThreshold:
    """The threshold with the best F1; among equals, the highest."""
    if not len(measured.recall):
        return BestThreshold(0.0, 0.0, 0.0, math.inf)
    both = measured.precision + measured.recall
    f1 = np.divide(2 * measured.precision * measured.recall, both, out=np.zeros_like(both), where=both > 0)
    # The first of equals, and thresholds descend.
    place = int(np.argmax(f1))
    return BestThreshold(
        *(float(part[place]) for part in (f1, measured.precision, measured.recall, measured.thresholds))
    )


def refuse_one_label(truth: Sequence[bool], place: object) -> None:
    """Raise HapaxError if all labels are equal: no figure is defined then."""
    if len(set(truth)) == 1:
        raise HapaxError(
            f"{place}: every label is {truth[0]}, so there are no two classes to separate and nothing to measure. "
            f"Add pairs labelled {not truth[0]}."
        )


Figure = Callable[[Curve], float]
"""A measure of a curve."""


@dataclass(frozen=True, slots=True)
class TwinFigure:
    """A figure of whole pairs, the same of hypotheses alone, and their difference; nan without hypotheses alone."""

    whole: Estimate
    alone: Estimate = NOTHING
    gap: Estimate = NOTHING


def compare(
    truth: Sequence[bool],
    score_lists: Sequence[Sequence[float]],
    figures: Mapping[str, Figure],
    clusters: Sequence[Hashable],
    seed: int = 0,
) -> dict[str, TwinFigure]:
    """Each figure of the scores of whole pairs and, if given, of hypotheses alone, on the same resampled cases.

    The cases of a cluster (a pair and its converse) are resampled together.
    """
    rankings = [Ranking(truth, scores) for scores in score_lists]

    def measured(weights: _Floats | None) -> _Floats:
        curves = [ranking.curve(weights) for ranking in rankings]
        rows = [list(map(figure, curves)) for figure in figures.values()]
        # Per figure: whole pairs, hypotheses alone, and their difference.
        return np.array([[*row, row[0] - row[1]] if len(row) == 2 else row for row in rows])

    estimates = _resampled(measured, len(truth), clusters, seed)
    return {name: TwinFigure(*row) for name, row in zip(figures, estimates, strict=True)}


def _resampled(
    figures: Callable[[_Floats | None], _Floats], count: int, clusters: Sequence[Hashable], seed: int
) -> list[list[Estimate]]:
    """An estimate for each number of the matrix that `figures` returns."""
    values = figures(None)
    if count == 0:
        return [[NOTHING] * len(row) for row in values]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    if len(numbers) < 2:
        return [[Estimate(float(value), math.nan, math.nan, count) for value in row] for row in values]
    # Number of the cluster of each case.
    member = np.array([numbers[name] for name in clusters])
    generator = np.random.default_rng(seed)
    resampled = []
    for _ in range(RESAMPLES):
        draws = generator.integers(0, len(numbers), len(numbers))
        # How often each cluster was drawn is the weight of each of its cases.
        weights = np.bincount(draws, minlength=len(numbers))[member] * 1.0
        resampled.append(figures(weights))
    # Shape: resamples x figures x columns, such as whole, alone and gap.
    low, high = np.quantile(np.array(resampled), (0.025, 0.975), axis=0)
    rows = []
    for row in zip(values, low, high, strict=True):
        ends = zip(*row, strict=True)
        rows.append([Estimate(float(value), float(least), float(most), count) for value, least, most in ends])
    return rows


def _above(measured: Curve, floor: float | None = None) -> tuple[float, float]:
    """Area between the curve and the floor where the curve is above it, and the width of recall over which it is."""
    recall, _ = measured.points
    width, height = np.diff(recall), measured.above(floor)
    # Height of the higher and lower end of each linear segment above the floor.
    high, low = np.maximum(height[:-1], height[1:]), np.minimum(height[:-1], height[1:])
    # The share of a segment's width that is above the floor, where the segment crosses it.
    crossing = np.divide(high, high - low, out=np.zeros_like(high), where=high > low)
    whole, cut = width * (high + low) / 2, width * crossing * high / 2
    area = np.where(low >= 0, whole, np.where(high > 0, cut, 0.0))
    reach = np.where(low >= 0, width, np.where(high > 0, width * crossing, 0.0))
    return float(np.sum(area)), float(np.sum(reach))


DIRECTIONAL = pairing_name((SubGroup.DIR_TRUE, SubGroup.DIR_FALSE))


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """The figures of a scorer on a subset, each of whole pairs, of hypotheses alone, and their gap.

    `rel` is AUCREL, `norm` AUCnorm of Eq. 1, `order` the concordance. `released`: `rel` and `area` are taken on the
    released code's curve.
    """

    scorer: str
    subset: str
    sees: VisibleSides | None
    pairs: int
    curve: Curve
    twin_curve: Curve | None
    rel: TwinFigure
    norm: TwinFigure
    order: TwinFigure
    released: bool = False

    @property
    def area(self) -> float:
        """AUC50; on the released code's curve its AUCHALF."""
        return half_of_release(self.curve) if self.released else area_above(self.curve)

    @property
    def threshold(self) -> BestThreshold:
        return best_f1(self.curve)

    @property
    def finding(self) -> str:
        """The conclusion at 95 %, by concordance: a key of `FINDINGS`, or empty if there is nothing to compare with."""
        whole, alone, gap = self.order.whole, self.order.alone, self.order.gap
        if self.sees is VisibleSides.HYPOTHESIS:
            # Its whole pairs are hypotheses alone already.
            alone = whole
        elif self.twin_curve is None:
            return ""
        # Before all others: a reversed scorer can have a hypothesis-only twin above chance.
        if whole.high < CHANCE:
            return "reversed"
        if alone.low > CHANCE:
            return "artefact and more" if gap.low > 0 else "artefact"
        if whole.low > CHANCE:
            return "entailment" if gap.low > 0 else "undecided"
        return "nothing"


CHANCE = 0.5
"""Concordance of a scorer that knows nothing."""

FINDINGS = {
    "entailment": "above chance, and the premises account for it",
    "artefact": "hypotheses alone are above chance, and premises add nothing beyond chance",
    "artefact and more": "hypotheses alone are above chance, and premises add to that",
    "undecided": "above chance, but the contribution of premises is within chance",
    "reversed": "reliably wrong: false pairs have the higher scores",
    "nothing": f"within chance; on {DIRECTIONAL} this means that the direction is not recognised",
}
"""Explanations of the findings in the last column."""


def measure(
    scorers: Sequence[EntailmentScorer], pairs: Sequence[EntailmentPair], options: EntailmentOptions, seed: int
) -> Iterator[SubsetResult]:
    """The results of each scorer on each subset. A scorer that sees one side only has no twin."""
    sides = VisibleSides(options.sides)
    # By line: pairs that differ in case alone, or come twice, may have scores of their own.
    pairs = [pair if pair.place else replace(pair, place=f"pair {number}") for number, pair in enumerate(pairs, 1)]
    lines = {pair.place: line for line, pair in enumerate(pairs)}
    chosen = list(subsets(pairs, options.released))
    deferrals = DeferralCollector()
    for scorer in scorers:
        sees = scorer.sees if sides is VisibleSides.BOTH else sides
        # The full set is scored once: subsets differ in labels alone.
        with deferrals:
            scores = scorer.scores([sides.of(pair) for pair in pairs])
        twins = None
        if options.twin and sees is VisibleSides.BOTH:
            with deferrals:
                twins = scorer.scores([pair.hypothesis_only for pair in pairs])
        # Once a request waits in a queue, nothing is measured, but later scorers add their requests to the queue, too.
        if deferrals.first is not None:
            continue
        for subset, members in chosen:
            truth = [pair.entailed for pair in members]
            clusters = [pair_and_converse(pair) for pair in members]  # a pair and its converse are not independent
            score_lists = [
                [scored[lines[pair.place]] for pair in members] for scored in (scores, twins) if scored is not None
            ]
            names = (scorer.name, subset, sees)
            yield subset_result(names, truth, score_lists, clusters, seed, released=options.released)
    deferrals.raise_first()


def subset_result(
    names: tuple[str, str, VisibleSides | None],
    truth: Sequence[bool],
    score_lists: Sequence[Sequence[float]],
    clusters: Sequence[Hashable],
    seed: int,
    *,
    released: bool = False,
) -> SubsetResult:
    """The figures of the scores of whole pairs and, if given, of hypotheses alone.

    `names`: scorer, subset, and the sides of a pair that it sees. `released`: on the released code's curve.
    """
    # Names of the fields of `SubsetResult` that `compared` fills.
    figures = {
        "rel": area_of_release if released else released_area,
        "norm": normalised_area,
        "order": concordance,
    }
    curves = [curve(truth, scores) for scores in score_lists]
    twin_curve = curves[1] if len(curves) > 1 else None
    compared = compare(truth, score_lists, figures, clusters, seed)
    rel, norm, order = (compared[name] for name in figures)
    return SubsetResult(*names, len(truth), curves[0], twin_curve, rel, norm, order, released)


FIGURE_COLUMNS = ("true", "AUC50", "F1", "AUCnorm", "AUCREL")


def evaluation_of(results: list[SubsetResult], remarks: Sequence[str] = ()) -> Evaluation[list[SubsetResult]]:
    """The results as two tables for each scorer, all figures, and as notes the remarks and the findings explained."""
    tables, figures = [], []
    for scorer in dict.fromkeys(result.scorer for result in results):
        rows, twins = [], []
        for result in results:
            if result.scorer == scorer:
                rows.append((result.subset, result.pairs, *figure_cells(result)))
                if result.finding:
                    gap = _with_interval(result.rel.gap)
                    twins.append((result.subset, _with_interval(result.rel.alone), gap, result.finding))
        tables.append(ResultTable(scorer, ("subset", "pairs", *FIGURE_COLUMNS), rows))
        # A table of its own: with these columns a row would be wider than a terminal.
        if twins:
            tables.append(ResultTable("", ("subset", f"AUCREL {HYPOTHESIS_ONLY}", "gap", "finding"), twins))
    for result in results:
        # The names of the first version: AUCnorm alone had hypotheses and gap.
        twin_figures = {"hypothesis_only": result.norm.alone, "gap": result.norm.gap, "finding": result.finding}
        figures.append({**main_figures(result), "sees": result.sees, **twin_figures})
    findings = dict.fromkeys(result.finding for result in results if result.finding)
    notes = [*remarks, *(f"{name}: {FINDINGS[name]}" for name in findings)]
    return Evaluation(results, tables, figures, notes=notes)


def figure_cells(result: SubsetResult) -> tuple[str, ...]:
    """The cells of a table under `FIGURE_COLUMNS`."""
    figures = (result.curve.positive, result.area, result.threshold.f1, result.norm.whole.value)
    return (*(f"{figure:z.2f}" for figure in figures), _with_interval(result.rel.whole))


def main_figures(result: SubsetResult) -> dict[str, object]:
    """The figures of a subset for JSON; the comparisons with hypotheses alone are nan without these."""
    return {
        "scorer": result.scorer,
        "subset": result.subset,
        "pairs": result.pairs,
        "true": result.curve.positive,
        "auc50": result.area,
        "auc_rel": result.rel.whole.value,
        "auc_rel_compared": result.rel,
        "f1": result.threshold,
        "auc_norm": result.norm.whole,
        "concordance": result.order,
        "released_curve": result.released,
    }


@checked
def draw_entailments(evaluation: Evaluation[list[SubsetResult]], folder: str | Path) -> list[Path]:
    """Write the precision-recall curves of each subset (PNG, SVG, CSV, TSV), and return the paths."""
    return write_curves(evaluation.value, Path(folder))


def write_curves(results: Sequence[SubsetResult], folder: Path) -> list[Path]:
    """Write a figure with its CSV for each subset, and each curve as lines of `precision TAB recall TAB theta`."""
    written: list[Path] = []
    for subset in dict.fromkeys(result.subset for result in results):
        members = [result for result in results if result.subset == subset]
        rows: list[tuple[object, ...]] = []
        files = {}
        for name, measured in chain.from_iterable(map(_curves, members)):
            points = list(zip(measured.precision, measured.recall, measured.thresholds, strict=True))
            rows += [(name, *map(float, point)) for point in points]
            files[folder / f"{file_name(name)}-{subset}.tsv"] = "".join(
                "\t".join(map(str, point)) + "\n" for point in points
            )
        table = ResultTable("", ("scorer", "precision", "recall", "theta"), rows)
        written += write_figure(folder / f"curves-{subset}", single((4.4, 3.6), partial(_draw, members)), table)
        for path, text in files.items():
            replace_file(path, text)
        written += files
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


def _with_interval(figure: Estimate) -> str:
    return figure.text(2, 2, empty="")


@checked
@dataclass(frozen=True)
class EntailmentOptions(ScorerOptions):
    """Scorers by name, their options, and how they are measured.

    `sides`: the sides of a pair that they see. `twin`: hypotheses alone are measured, too. `released`: curves as the
    released code draws them.
    """

    scorers: Annotated[tuple[str, ...], Option(f"{SCORERS}; repeat the option to compare scorers.", name="scorer")] = (
        "critic",
    )
    sides: Annotated[
        Literal["both", "hypothesis", "premise"],
        Option("Sides of a pair that a scorer sees.", name="shown"),
    ] = "both"
    twin: bool = True
    released: Annotated[
        bool,
        Option("Take curves as the released code does: precision 1 at recall 0, AUC50 from .51 on.", name="release"),
    ] = False


@checked
def score_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[SubsetResult]]:
    """Measure scorers on each subset of the pairs, with whole pairs and with hypotheses alone.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    `progress` is called with the sentences done and their number. Raises HapaxError for an unknown scorer, a missing
    option, and pairs that all have one label.
    """
    options = options or EntailmentOptions()
    session = ScorerSession(kb, options, opening, budget, progress)
    splits = read_splits(list(map(Path, paths)))
    pairs = list(chain.from_iterable(splits.values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    # A scorer that is named twice is measured once.
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    results = list(measure(scorers, pairs, options, session.seed))
    return evaluation_of(results, [warning] if warning else [])


DRAWS = 100
"""Draws of hyperparameters in the paper's protocol."""


@checked
def select_draw(
    folder: str | Path,
    dev: str | Path,
    test: str | Path,
    *,
    draws: Annotated[int, Option("Draws that must be there.", least=1)] = DRAWS,
) -> Evaluation[str]:
    """Select the draw of hyperparameters with the best AUC50 on dev, and measure it on test, once.

    `folder` has a folder for each draw of a fine-tuning, with its scores in `dev.txt` and `test.txt`, as lines of
    `truth score`. The figures are kept there in `selected.json`, and the same call returns them. Raises HapaxError
    while draws are missing, and for other sets than those of the first call.
    """
    folder, sets = Path(folder), {"dev": _digest(Path(dev)), "test": _digest(Path(test))}
    selected = folder / "selected.json"
    if selected.is_file():
        stored: dict[str, Any] = json.loads(selected.read_text("utf-8"))
        if stored["sets"] != sets:
            raise HapaxError(f"{folder}: its draws were selected and tested on other sets. Train again for these.")
        return _selected(stored)
    if sets["dev"] == sets["test"]:
        raise HapaxError(f"{test}: the draws are selected on this file. Name a separate test set.")
    finished = sorted(path.parent for path in folder.glob("*/dev.txt"))
    if len(finished) < draws:
        raise HapaxError(
            f"{folder}: {draws - len(finished)} of {draws} draws are missing, and the test comes after the last."
        )
    pairs = read_pairs(Path(dev))
    on_dev = {draw.name: _draw_figures(pairs, draw / "dev.txt") for draw in finished}
    # Of equal draws the first; the test scores of the others are never read.
    best = max(on_dev, key=lambda name: on_dev[name]["auc50"])
    on_test = _draw_figures(read_pairs(Path(test)), folder / best / "test.txt")
    figures = {"sets": sets, "draw": best, "draws": len(finished), "dev": on_dev[best], "test": on_test}
    replace_file(selected, json.dumps(figures, indent=1) + "\n")
    return _selected(figures)


def _selected(figures: Mapping[str, Any]) -> Evaluation[str]:
    """The selected draw, with its figures on both sets."""
    rows = [(name, *(f"{figure:.3f}" for figure in figures[name].values())) for name in ("dev", "test")]
    table = ResultTable(f"Draw {figures['draw']}", ("set", "AUC50", "AUCnorm", "AUCREL", "F1"), rows)
    return Evaluation(figures["draw"], [table], figures)


def _draw_figures(pairs: Sequence[EntailmentPair], path: Path) -> dict[str, float]:
    measured = curve([pair.entailed for pair in pairs], file_scores(pairs, path))
    areas = {"auc50": area_above(measured), "auc_norm": normalised_area(measured), "auc_rel": released_area(measured)}
    return {**areas, "f1": best_f1(measured).f1}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a file of premises and hypotheses.") from None
