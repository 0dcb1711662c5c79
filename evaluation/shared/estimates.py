"""Estimates with 95 % intervals: shares, means, differences, correlations, areas under curves, agreement of voters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hapax.evaluation.shared.lazy import np, scipy

RESAMPLES = 1000
"""Bootstrap resamples of each interval."""

PSEUDO_LABELS = 2
"""True and false values each that widen the interval of a share by few labels."""

EXACT_DIGITS = 12
"""Digits of the largest value of the data up to which a difference is no rounding noise."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval and the number of cases; nan where there is nothing to measure."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return self.text(3, 3, empty="none")

    def text(self, digits: int, interval_digits: int, scale: float = 1, empty: str = "n/a") -> str:
        """`0.500 (0.250 to 0.750)`; the value alone if it has no interval, `empty` if nothing was measured."""
        if math.isnan(self.value):
            return empty
        # z: a number that is rounded to zero has no minus sign.
        value = f"{scale * self.value:z.{digits}f}"
        if math.isnan(self.low):
            return value
        low, high = (f"{scale * end:z.{interval_digits}f}" for end in (self.low, self.high))
        return f"{value} ({low} to {high})"


def percent(estimate: Estimate) -> str:
    """`12.50 (4.3 to 31.1)`; `n/a` where there is nothing to measure."""
    return estimate.text(2, 1, scale=100)


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def share(hits: Sequence[bool]) -> Estimate:
    """Share of hits, with Wilson's interval."""
    if not hits:
        return NOTHING
    interval = scipy.stats.binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
    return Estimate(sum(hits) / len(hits), float(interval.low), float(interval.high), len(hits))


def mended_share(scores: Sequence[float], judged: Sequence[tuple[float, bool, float]]) -> Estimate:
    """Share of true values of a pool with these scores, of which some were judged: score, truth and chance to be drawn.

    The mean score, mended by the errors on the judged values, each divided by its chance: prediction-powered and active
    inference (Angelopoulos, Bates, Fannjiang, Jordan, Zrnic 2023, Science 382; Zrnic and Candes 2024, arXiv 2403.03208,
    equation 3). The interval is normal, with the variance of a priority sample (Duffield, Lund, Thorup 2007) and with
    two more true and two more false values than were judged (Agresti and Coull 1998): few labels often hold no error of
    a sure critic at all, and their own variance is then 0.
    """
    if not judged or not scores:
        return NOTHING
    # Each judged value stands for 1/chance values like it (Horvitz and Thompson).
    stands_for = [1.0 / chance for *_, chance in judged]
    errors = [(is_true - score) / chance for score, is_true, chance in judged]
    size, total = len(scores), math.fsum(errors)
    value = (math.fsum(scores) + total) / size
    weight = math.fsum(stands_for)
    typical = math.fsum(score / chance for score, _, chance in judged) / weight
    # For how many values an added one stands: few heavy labels count as fewer equal ones, and none is added once all
    # values are judged.
    added = math.fsum(count**2 for count in stands_for) / weight * max(0.0, 1.0 - len(judged) / size)
    whole = size + 2 * PSEUDO_LABELS * added
    centre = math.fsum(scores) / size + (total + PSEUDO_LABELS * added * (1.0 - 2 * typical)) / whole
    variance = math.fsum(error**2 * (1.0 - 1.0 / count) for error, count in zip(errors, stands_for, strict=True))
    variance += PSEUDO_LABELS * added**2 * ((1.0 - typical) ** 2 + typical**2)
    width = float(scipy.stats.norm.ppf(0.975)) * math.sqrt(variance) / whole
    # A share lies between 0 and 1, which neither the correction nor the normal interval knows.
    inner = [min(max(end, 0.0), 1.0) for end in (value, min(value, centre - width), max(value, centre + width))]
    return Estimate(inner[0], inner[1], inner[2], len(judged))


def mean(values: Sequence[float]) -> Estimate:
    """Mean, with a bootstrap interval over the values."""
    return _bootstrapped(np.mean, [values], paired=False)


def mean_share(shares: Sequence[float]) -> Estimate:
    """Mean of values between 0 and 1, such as shares of right answers, with a bootstrap interval over them.

    Where all are 0, or all are 1, resamples say nothing, and the interval is Wilson's, with each value as one case.
    """
    if len(set(shares)) == 1 and shares[0] in (0, 1):
        return share([bool(value) for value in shares])
    return mean(shares)


def mean_difference(minuend: Any, subtrahend: Any) -> float:
    """First mean minus second mean; 0 where they differ by rounding alone."""
    difference = float(np.mean(minuend) - np.mean(subtrahend))
    largest = max(float(np.abs(sample).max()) for sample in (minuend, subtrahend))
    return difference if abs(difference) > largest * 10.0**-EXACT_DIGITS else 0.0


def difference_of_means(minuend: Sequence[float], subtrahend: Sequence[float]) -> Estimate:
    """First mean minus second mean, with a bootstrap interval; both sides are resampled."""

    def difference(first: Any, second: Any, axis: int = -1) -> Any:
        return np.mean(first, axis=axis) - np.mean(second, axis=axis)

    estimate = _bootstrapped(difference, [minuend, subtrahend], paired=False, vectorized=True)
    return replace(estimate, value=mean_difference(minuend, subtrahend)) if estimate.count else estimate


def relative_change(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Change of the mean from `before` to `after`, as a share of the former; both sides are resampled.

    nan if the mean before is 0; without an interval if that of a resample is.
    """
    if not any(before):
        return Estimate(math.nan, math.nan, math.nan, len(before) + len(after))
    return _bootstrapped(_relative_change, [before, after], paired=False)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Spearman's correlation with a bootstrap interval over the pairs."""
    return _bootstrapped(spearman, [first, second], paired=True)


def of_groups(statistic: Callable[[Any], float], groups: Sequence[Any]) -> Estimate:
    """A statistic of rows that come in groups, such as the questions about one statement; whole groups are resampled.

    `groups`: arrays of rows, all with the same columns. `statistic` takes the rows of many groups as one array.
    """
    if not groups:
        return NOTHING
    rows, lengths = np.concatenate(groups), np.array([len(group) for group in groups])
    # Row number at which each group begins.
    starts = np.cumsum(lengths) - lengths

    def of_resample(numbers: Any) -> float:
        resample = np.asarray(numbers, dtype=int)
        sizes = lengths[resample]
        # Row numbers of the drawn groups, without a Python loop: each group's start, plus 0, 1, ... within it.
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return statistic(rows[np.repeat(starts[resample], sizes) + within])

    # What is resampled are the numbers of groups; the statistic looks the rows up.
    return _bootstrapped(of_resample, [range(len(groups))], paired=False)


def auc(positive: Any, negative: Any) -> float:
    """Probability that a positive case scores above a negative one, ties counting half; nan if a side is empty.

    Mann and Whitney's U as a share of all pairs, from ranks: far cheaper than a test with its p-value.
    """
    if not len(positive) or not len(negative):
        return math.nan
    ranks = scipy.stats.rankdata(np.concatenate([positive, negative]))
    # Sum of the positive ranks less its least possible value: pairs in which the positive case is above.
    above = ranks[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2
    return float(above / (len(positive) * len(negative)))


def spearman(first: Any, second: Any) -> float:
    """Spearman's rank correlation; nan if either side is constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.ConstantInputWarning)  # the result is nan
        return float(scipy.stats.spearmanr(first, second).statistic)


def _relative_change(before: Any, after: Any) -> float:
    first = float(np.mean(before))
    return (float(np.mean(after)) - first) / first if first else math.nan


def _bootstrapped(
    statistic: Callable[..., Any], samples: Sequence[Sequence[float]], paired: bool, vectorized: bool = False
) -> Estimate:
    """The statistic of the samples, with an interval by seeded resampling: equal samples have equal intervals.

    `vectorized`: the statistic takes all resamples at once, along `axis`.
    """
    # Paired samples have one case for each pair.
    count = len(samples[0]) if paired else sum(map(len, samples))
    if not all(map(len, samples)):
        return NOTHING
    value = float(statistic(*map(np.asarray, samples)))
    if min(map(len, samples)) < 2 or math.isnan(value):  # nothing to resample
        return Estimate(value, math.nan, math.nan, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)  # the interval is nan
        interval = scipy.stats.bootstrap(
            [np.asarray(sample, dtype=float) for sample in samples],
            statistic,
            paired=paired,
            vectorized=vectorized,
            n_resamples=RESAMPLES,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high), count)


# --- agreement of people who answered the same questions --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement on a set of questions with at least two votes each.

    `percent`: share of pairs of voters who gave the same answer, averaged over questions. `fleiss`: Fleiss' kappa.
    `krippendorff`: Krippendorff's nominal alpha. The last two are nan if all voters always gave the same answer.
    """

    questions: int
    percent: Estimate
    fleiss: Estimate
    krippendorff: Estimate


def agreement(subjects: Iterable[Sequence[Sequence[int]]]) -> AnnotatorAgreement:
    """Compute the agreement. `subjects` holds, by statement and question, the number of votes for each answer.

    Intervals come from resampling whole statements, because the answers about one statement depend on each other.
    """
    groups = []
    for questions in subjects:
        # One vote alone neither agrees nor disagrees with anything.
        if voted_twice := [counts for counts in questions if sum(counts) > 1]:
            groups.append(np.array(voted_twice))
    if not groups:
        return AnnotatorAgreement(0, NOTHING, NOTHING, NOTHING)
    alpha = of_groups(krippendorff_alpha, groups)
    votes = sum(int(group.sum()) for group in groups)
    # Alpha is kappa with a correction for small samples, so that kappa's interval follows from alpha's. Fleiss defines
    # kappa for equal numbers of votes on each question; for others, this weighs questions as alpha does.
    value, low, high = (1 - (1 - bound) * votes / (votes - 1) for bound in (alpha.value, alpha.low, alpha.high))
    kappa = Estimate(value, low, high, alpha.count)
    question_count = sum(len(group) for group in groups)
    return AnnotatorAgreement(question_count, of_groups(agreeing_pairs, groups), kappa, alpha)


def agreeing_pairs(counts: Any) -> float:
    """Share of equal pairs of votes on a question, averaged over the rows of `counts`."""
    # n votes make n (n - 1) ordered pairs.
    votes = counts.sum(axis=1)
    return float(np.mean((counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))))


def krippendorff_alpha(counts: Any) -> float:
    """Krippendorff's alpha for nominal answers; nan if only one answer was ever given.

    `counts`: a row for each question, with the number of votes for each answer. Computed as in Krippendorff, Computing
    Krippendorff's Alpha-Reliability (2011), section D, whose values of a unit are the votes on a question.
    """
    votes = counts.sum(axis=1)
    # One vote alone can be paired with no other.
    counts, votes = counts[votes > 1], votes[votes > 1]
    total = votes.sum()
    expected = total**2 - (counts.sum(axis=0) ** 2).sum()
    if not expected:
        return math.nan
    # Ordered pairs of equal votes on a question of n votes count 1 / (n - 1) each.
    equal = ((counts * (counts - 1)).sum(axis=1) / (votes - 1)).sum()
    return float(1 - (total - 1) * (total - equal) / expected)
