"""How well scores part entailments from the rest: precision and recall, areas, F1, with intervals (section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.estimates import NOTHING, RESAMPLES, Estimate
from grammar.errors import HapaxError

HALF = 0.5
"""The precision above which AUC has been measured (Hosseini et al. 2018; Schmitt and Schütze 2021)."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision and recall at each distinct score as threshold, from the highest down; all of one length.

    Left of the first point precision stays as it is there. (The usual anchor at recall 0 and precision 1 would give a
    scorer that says the same of everything an area above its baseline.)
    """

    precision: _Floats
    recall: _Floats
    thresholds: _Floats
    positive: float
    """Share of true entailments: the precision of a scorer that knows nothing."""

    points: tuple[_Floats, _Floats]
    """Recall and precision case by case, with the flat beginning. Within ties both are what a draw among them gives on
    average, so that a scorer which ties nearly everything gains nothing by it."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The best F1 and where it is reached. Without any true entailment found F1 is 0 at an infinite threshold."""

    f1: float
    precision: float
    recall: float
    theta: float


class Ranking:
    """Labels in the order of their scores, from which the curves of any weighting are read."""

    def __init__(self, truth: Sequence[bool], scores: Sequence[float]) -> None:
        labels, values = np.asarray(truth, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        if labels.shape != values.shape:
            raise ValueError(f"{len(labels)} labels and {len(values)} scores do not belong together")
        self._order = np.argsort(-values, kind="stable")
        self._labels, values = labels[self._order], values[self._order]
        self._ends = np.flatnonzero(np.append(np.diff(values) != 0, True)) if len(values) else np.zeros(0, np.intp)
        self._thresholds = values[self._ends]

    def curve(self, weights: _Floats | None = None) -> Curve:
        """The curve; `weights` count a case several times or not at all."""
        counts = np.ones_like(self._labels) if weights is None else weights[self._order]
        taken, hits = np.cumsum(counts), np.cumsum(self._labels * counts)
        if not len(hits) or hits[-1] == 0:
            return Curve(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, (np.zeros(0), np.zeros(0)))
        seen = taken[self._ends] > 0
        ends = self._ends[seen]
        expected = np.interp(taken, np.append(0.0, taken[ends]), np.append(0.0, hits[ends]))
        each = taken > 0
        recall, precision = expected[each] / hits[-1], expected[each] / taken[each]
        return Curve(
            hits[ends] / taken[ends],
            hits[ends] / hits[-1],
            self._thresholds[seen],
            float(hits[-1] / taken[-1]),
            (np.append(0.0, recall), np.append(precision[0], precision)),
        )


def curve(truth: Sequence[bool], scores: Sequence[float]) -> Curve:
    """The curve of scores over labels."""
    return Ranking(truth, scores).curve()


def area_above(one: Curve, floor: float = HALF) -> float:
    """Area under the curve where precision is `floor` at least, the curve being straight between its cases.

    An empty curve has area 0.
    """
    return _excess(one, floor) + floor * _reach(one, floor)


def normalised_area(one: Curve, baseline: float | None = None) -> float:
    """AUCnorm of Eq. 1: (AUC above the baseline - baseline) / (1 - baseline), 0 for an empty curve.

    `baseline` is the share of true entailments unless given. It is 0 for a scorer that knows nothing and 1 for a
    perfect one; a curve that falls below its baseline on the way loses more than `released_area` takes away, down to
    -baseline / (1 - baseline).
    """
    floor = one.positive if baseline is None else baseline
    if not len(one.recall) or floor >= 1:
        return 0.0
    return (area_above(one, floor) - floor) / (1 - floor)


def released_area(one: Curve, baseline: float | None = None) -> float:
    """AUCREL of the released code: area of max(precision - baseline, 0), over 1 - baseline; 0 for an empty curve.

    Equal to Eq. 1 where precision never falls below the baseline.
    """
    floor = one.positive if baseline is None else baseline
    return 0.0 if not len(one.recall) or floor >= 1 else _excess(one, floor) / (1 - floor)


def best_f1(one: Curve) -> Threshold:
    """The threshold with the highest F1, the highest of several."""
    if not len(one.recall):
        return Threshold(0.0, 0.0, 0.0, math.inf)
    both = one.precision + one.recall
    f1 = np.divide(2 * one.precision * one.recall, both, out=np.zeros_like(both), where=both > 0)
    place = int(np.argmax(f1))
    return Threshold(*(float(part[place]) for part in (f1, one.precision, one.recall, one.thresholds)))


def refuse_one_label(truth: Sequence[bool], place: object) -> None:
    """Raises HapaxError where all labels are alike: nothing is told from anything, so no figure would be one."""
    if len(set(truth)) == 1:
        raise HapaxError(
            f"{place}: every label is {truth[0]}, so that there is nothing to tell apart and no figure. "
            f"Add what is labelled {not truth[0]}."
        )


Figure = Callable[[Curve], float]
"""What is measured on a curve."""


def estimate(
    truth: Sequence[bool],
    scores: Sequence[float],
    figure: Figure,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Estimate:
    """A figure with its bootstrap interval. Cases of one cluster (a pair and its converse) are drawn together."""
    ranking = Ranking(truth, scores)
    return _resampled(lambda weights: figure(ranking.curve(weights)), len(truth), clusters, seed)


def estimate_gap(
    truth: Sequence[bool],
    both: tuple[Sequence[float], Sequence[float]],
    figure: Figure,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Estimate:
    """How far a figure lies higher for the first scores than for the second, on the same resampled cases."""
    one, other = (Ranking(truth, scores) for scores in both)
    return _resampled(
        lambda weights: figure(one.curve(weights)) - figure(other.curve(weights)), len(truth), clusters, seed
    )


def _resampled(
    figure: Callable[[_Floats | None], float], count: int, clusters: Sequence[Hashable] | None, seed: int
) -> Estimate:
    """The figure of weighted cases, and what 95 % of resamplings give; a single cluster gives no interval."""
    if count == 0:
        return NOTHING
    value = figure(None)
    names = list(range(count)) if clusters is None else list(clusters)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) < 2:
        return Estimate(value, math.nan, math.nan, count)
    member = np.array([numbers[name] for name in names])
    generator = np.random.default_rng(seed)
    drawn = [
        figure(np.bincount(generator.integers(0, len(numbers), len(numbers)), minlength=len(numbers))[member] * 1.0)
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(value, float(low), float(high), count)


def _segments(one: Curve, floor: float) -> tuple[_Floats, _Floats, _Floats]:
    """Widths of the curve's straight pieces, and how far their two ends lie above the floor."""
    recall, precision = one.points
    above = precision - floor
    return np.diff(recall), above[:-1], above[1:]


def _excess(one: Curve, floor: float) -> float:
    """Area between curve and floor where the curve is above it."""
    width, left, right = _segments(one, floor)
    high, low = np.maximum(left, right), np.minimum(left, right)
    crossing = np.divide(high, high - low, out=np.zeros_like(high), where=high > low)
    whole, cut = width * (high + low) / 2, width * crossing * high / 2
    return float(np.sum(np.where(low >= 0, whole, np.where(high > 0, cut, 0.0))))


def _reach(one: Curve, floor: float) -> float:
    """For how much recall the curve is at the floor or above."""
    width, left, right = _segments(one, floor)
    high, low = np.maximum(left, right), np.minimum(left, right)
    crossing = np.divide(high, high - low, out=np.zeros_like(high), where=high > low)
    return float(np.sum(np.where(low >= 0, width, np.where(high > 0, width * crossing, 0.0))))
