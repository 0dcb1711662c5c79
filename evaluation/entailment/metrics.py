"""Metrics of scored entailments: precision-recall curves, areas under them and F1, with intervals (section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from hapax.evaluation.shared.estimates import NOTHING, RESAMPLES, Estimate
from hapax.evaluation.shared.lazy import np
from hapax.grammar.errors import HapaxError

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
