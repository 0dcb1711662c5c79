"""Measured figures with what chance may have done to them: every interval covers 95 %."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats  # type: ignore[import-untyped]  # ships no types

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, its interval, and from how many cases; nan where there is nothing to measure."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """The figure with its interval; one that cannot be resampled stands alone."""
        if math.isnan(self.value):
            return "none"
        return f"{self.value:.3f}" if math.isnan(self.low) else f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def share(hits: Sequence[bool]) -> Estimate:
    """The share of hits, with Wilson's interval."""
    if not hits:
        return NOTHING
    interval = stats.binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
    return Estimate(sum(hits) / len(hits), float(interval.low), float(interval.high), len(hits))


def mean(values: Sequence[float]) -> Estimate:
    """The mean, with a bootstrap interval over the values."""
    return _bootstrapped(np.mean, [values], paired=False)


def difference_of_means(one: Sequence[float], other: Sequence[float]) -> Estimate:
    """How far the first mean lies above the second, with a bootstrap interval; both sides are resampled."""

    def figure(first: Any, second: Any, axis: int = -1) -> Any:
        return np.mean(first, axis=axis) - np.mean(second, axis=axis)

    return _bootstrapped(figure, [one, other], paired=False, vectorized=True)


def relative_change(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """How far the mean goes from `before` to `after`, as a share of the former; both sides are resampled.

    Undefined where nothing stood before; without an interval where a resample has nothing before.
    """
    if not any(before):
        return Estimate(math.nan, math.nan, math.nan, len(before) + len(after))
    return _bootstrapped(_relative_change, [before, after], paired=False)


def area_under_curve(positive: Sequence[float], negative: Sequence[float]) -> Estimate:
    """The area with a bootstrap interval; both sides are resampled."""
    return _bootstrapped(area, [positive, negative], paired=False)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> Estimate:
    """The correlation with a bootstrap interval over the pairs."""
    return _bootstrapped(spearman, [one, other], paired=True)


def of_groups(figure: Callable[[Any], float], groups: Sequence[Any]) -> Estimate:
    """A figure of rows that come in groups, such as the questions about one statement; whole groups are resampled.

    `groups`: arrays of rows, all with the same columns. `figure` takes the rows of several groups as one array.
    """
    if not groups:
        return NOTHING
    rows, lengths = np.concatenate(groups), np.array([len(group) for group in groups])
    starts = np.cumsum(lengths) - lengths

    def of_drawn(numbers: Any) -> float:
        drawn = np.asarray(numbers, dtype=int)
        taken = lengths[drawn]
        within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        return figure(rows[np.repeat(starts[drawn], taken) + within])

    return _bootstrapped(of_drawn, [range(len(groups))], paired=False)


def area(positive: Any, negative: Any) -> float:
    """Chance that a positive case scores above a negative one, ties counting half.

    Mann and Whitney's U as a share of all pairs, from ranks: far cheaper than a test with its p-value.
    """
    ranks = stats.rankdata(np.concatenate([positive, negative]))
    above = ranks[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2
    return float(above / (len(positive) * len(negative)))


def spearman(one: Any, other: Any) -> float:
    """Spearman's rank correlation; nan if either side never varies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)  # nan says it
        return float(stats.spearmanr(one, other).statistic)


def _relative_change(before: Any, after: Any) -> float:
    first = float(np.mean(before))
    return (float(np.mean(after)) - first) / first if first else math.nan


def _bootstrapped(
    figure: Callable[..., Any], samples: Sequence[Sequence[float]], paired: bool, vectorized: bool = False
) -> Estimate:
    """The figure of the samples. The resampling is seeded: the same scores give the same interval.

    `vectorized`: the figure takes all resamples at once, along `axis`.
    """
    count = len(samples[0]) if paired else sum(map(len, samples))
    if not all(map(len, samples)):
        return NOTHING
    value = float(figure(*map(np.asarray, samples)))
    if min(map(len, samples)) < 2 or math.isnan(value):  # nothing to resample
        return Estimate(value, math.nan, math.nan, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # nan says it
        interval = stats.bootstrap(
            [np.asarray(sample, dtype=float) for sample in samples],
            figure,
            paired=paired,
            vectorized=vectorized,
            n_resamples=RESAMPLES,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high), count)
