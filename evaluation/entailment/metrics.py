"""Metrics of scored entailments: precision-recall curves, areas under them and F1, with intervals (section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hapax.evaluation.shared.estimates import NOTHING, RESAMPLES, Estimate
from hapax.grammar.errors import HapaxError

HALF = 0.5
"""The precision above which earlier work measures AUC (Hosseini et al. 2018; Schmitt and Schütze 2021)."""

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
            return Curve(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, (np.zeros(0), np.zeros(0)))
        counted = cases > 0  # a resample may leave out the cases with the highest scores
        reached = counted[self._ends]
        ends = self._ends[reached]
        # Hits inside a run of equal scores rise linearly: a scorer that ties nearly everything gains nothing by it.
        expected = np.interp(cases, np.append(0.0, cases[ends]), np.append(0.0, hits[ends]))
        recall, precision = expected[counted] / hits[-1], expected[counted] / cases[counted]
        return Curve(
            hits[ends] / cases[ends],
            hits[ends] / hits[-1],
            self._thresholds[reached],
            float(hits[-1] / cases[-1]),
            # Left of the first case precision stays as it is there. The usual anchor, precision 1 at recall 0, would
            # put the area of a constant scorer above its baseline.
            (np.append(0.0, recall), np.append(precision[0], precision)),
        )


def curve(truth: Sequence[bool], scores: Sequence[float]) -> Curve:
    """The curve of these scores against these labels."""
    return Ranking(truth, scores).curve()


def area_above(measured: Curve, floor: float = HALF) -> float:
    """Area under the curve where precision is at least `floor`, the curve being linear between cases; 0 if empty."""
    area, width = _above(measured, floor)
    return area + floor * width


def normalised_area(measured: Curve, baseline: float | None = None) -> float:
    """AUCnorm of Eq. 1: (AUC above the baseline - baseline) / (1 - baseline); 0 for an empty curve.

    `baseline` defaults to the share of true entailments. The figure is 0 for a scorer that knows nothing and 1 for a
    perfect one. A curve that falls below its baseline loses more here than in `released_area`; the lowest value is
    -baseline / (1 - baseline).
    """
    floor = measured.positive if baseline is None else baseline
    if not len(measured.recall) or floor >= 1:
        return 0.0
    return (area_above(measured, floor) - floor) / (1 - floor)


def released_area(measured: Curve, baseline: float | None = None) -> float:
    """AUCREL of the released code: area of max(precision - baseline, 0) over 1 - baseline; 0 for an empty curve.

    Equal to Eq. 1 where precision never falls below the baseline.
    """
    floor = measured.positive if baseline is None else baseline
    return 0.0 if not len(measured.recall) or floor >= 1 else _above(measured, floor)[0] / (1 - floor)


def best_f1(measured: Curve) -> BestThreshold:
    """The threshold with the best F1; among equals, the highest."""
    if not len(measured.recall):
        return BestThreshold(0.0, 0.0, 0.0, math.inf)
    both = measured.precision + measured.recall
    f1 = np.divide(2 * measured.precision * measured.recall, both, out=np.zeros_like(both), where=both > 0)
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


def estimate(
    truth: Sequence[bool],
    scores: Sequence[float],
    figure: Figure,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Estimate:
    """A figure with its bootstrap interval. The cases of a cluster (a pair and its converse) are resampled together."""
    ranking = Ranking(truth, scores)
    return _resampled(lambda weights: figure(ranking.curve(weights)), len(truth), clusters, seed)


def estimate_gap(
    truth: Sequence[bool],
    score_lists: tuple[Sequence[float], Sequence[float]],
    figure: Figure,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Estimate:
    """The figure of the first scores minus that of the second, on the same resampled cases."""
    first, second = (Ranking(truth, scores) for scores in score_lists)
    return _resampled(
        lambda weights: figure(first.curve(weights)) - figure(second.curve(weights)), len(truth), clusters, seed
    )


def _resampled(
    figure: Callable[[_Floats | None], float], count: int, clusters: Sequence[Hashable] | None, seed: int
) -> Estimate:
    """The figure and the interval of 95 % of its resamples. A single cluster has no interval."""
    if count == 0:
        return NOTHING
    value = figure(None)
    names = list(range(count)) if clusters is None else list(clusters)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < 2:
        return Estimate(value, math.nan, math.nan, count)
    member = np.array([numbers[name] for name in names])
    generator = np.random.default_rng(seed)
    resampled = []
    for _ in range(RESAMPLES):
        draws = generator.integers(0, len(numbers), len(numbers))
        # How often each cluster was drawn is the weight of each of its cases.
        weights = np.bincount(draws, minlength=len(numbers))[member] * 1.0
        resampled.append(figure(weights))
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Estimate(value, float(low), float(high), count)


ROUNDING = 1e-12
"""Difference of two precisions that are equal but for rounding."""


def _above(measured: Curve, floor: float) -> tuple[float, float]:
    """Area between the curve and the floor where the curve is above it, and the width of recall over which it is."""
    recall, precision = measured.points
    width, height = np.diff(recall), precision - floor
    # Rounding must not put a curve that lies on the floor, such as that of a constant scorer, below it. Different
    # ratios of fewer than a million cases are further apart.
    height[np.abs(height) < ROUNDING] = 0.0
    # Height of the higher and lower end of each linear segment above the floor.
    high, low = np.maximum(height[:-1], height[1:]), np.minimum(height[:-1], height[1:])
    # The share of a segment's width that is above the floor, where the segment crosses it.
    crossing = np.divide(high, high - low, out=np.zeros_like(high), where=high > low)
    whole, cut = width * (high + low) / 2, width * crossing * high / 2
    area = np.where(low >= 0, whole, np.where(high > 0, cut, 0.0))
    reach = np.where(low >= 0, width, np.where(high > 0, width * crossing, 0.0))
    return float(np.sum(area)), float(np.sum(reach))
