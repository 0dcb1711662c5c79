"""Thresholds with a promise on precision, from a labelled random sample. Pure arithmetic: no file, no model, no NumPy.

A promise says: of what is accepted, at most a share `1 - precision` is false, with this confidence over the draw of the
sample. Nothing is assumed about the scores. Thresholds are tested from strict to lax, each by the exact binomial test
that Clopper and Pearson's bound (1934) inverts, until one fails (Learn then Test: Angelopoulos, Bates, Candes, Jordan,
Lei 2021, arXiv 2110.01052, fixed sequence testing, algorithm 1). The thresholds come from the scores alone, never from
the labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError

METHOD = "learn-then-test"
"""The name of the test, which is stored with its result."""

GRID = 50
"""Thresholds that are compared: each accepts a fiftieth of the pool more than the one before."""

STARTS = (1, 6)
"""Tests begin where a sample may hold this many false values; each of the sequences has an equal part of the error.

Starting among the best scores alone fails on the first chance fault; starting among many alone misses small sets.
"""

BEGINNING = 0.75
"""Largest share of the labels that a test may need to begin; with the others it goes on to laxer thresholds."""

SPARE = 1.2
"""Labels to expect at the only beginning, as a multiple of the least that can pass: a draw may bring fewer."""

MOST_LABELS = 100_000
"""Largest number of further labels that is worth telling."""


@checked
@dataclass(frozen=True, slots=True)
class Promise:
    """At least `precision` of what is accepted is true, with this confidence. Raises HapaxError outside 0 to 1."""

    precision: float = 0.95
    confidence: float = 0.9

    def __post_init__(self) -> None:
        for name in ("precision", "confidence"):
            number = getattr(self, name)
            if not 0.0 < number < 1.0:
                raise HapaxError(f"{name} is {number:g}. Set it between 0 and 1, such as 0.95.")

    @property
    def risk(self) -> float:
        """Largest share of false values among the accepted."""
        return 1.0 - self.precision

    @property
    def error(self) -> float:
        """Largest probability of a broken promise."""
        return 1.0 - self.confidence

    def __str__(self) -> str:
        return f"at least {self.precision:.3g} of the accepted are true, with confidence {self.confidence:.3g}"


@dataclass(frozen=True, slots=True)
class JudgedScore:
    """A score with its label.

    `draw`: the random number by which a `LabelDraw` chose it; None: every value was as likely to be labelled.
    """

    score: float
    is_true: bool
    draw: float | None = None


@dataclass(frozen=True, slots=True)
class LabelDraw:
    """A draw in which values differ in their probability of being labelled.

    Each value has a random number, even between 0 and 1, and was labelled if that is below `reach` times its weight.
    `weights`: of the pool, aligned with its scores. Values above a threshold are a fair sample if only those count that
    the smallest weight among them would have chosen, too.
    """

    reach: float
    weights: Sequence[float]


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """A threshold that keeps a promise; None where there is no such threshold, with the reason.

    `labels`, `false`: labelled values from the threshold on, and the false ones among them; without a threshold, at the
    most promising one. `bound`: Clopper and Pearson's upper bound on the share of false values there, at the confidence
    of one test. `accepted`, `pool`: unlabelled values from the threshold on, and all. `more_labels`: estimate of the
    labels that are lacking; None if by these labels no number would do.
    """

    threshold: float | None
    labels: int
    false: int
    bound: float
    accepted: int
    pool: int
    reason: str = ""
    more_labels: int | None = None


# --- the binomial test -----------------------------------------------------------------------------------------------


def binomial_tail(false: int, count: int, share: float) -> float:
    """P(at most `false` of `count` draws are false) if this share of all is false."""
    if false >= count:
        return 1.0
    # In logarithms, and scaled by the largest term, because the terms may be too small for floats.
    log_odds, log_term = math.log(share) - math.log1p(-share), count * math.log1p(-share)
    terms = [log_term]
    for number in range(1, false + 1):
        log_term += math.log((count - number + 1) / number) + log_odds
        terms.append(log_term)
    highest = max(terms)
    return min(1.0, math.exp(highest) * math.fsum(math.exp(term - highest) for term in terms))


def upper_bound(false: int, count: int, confidence: float) -> float:
    """One-sided upper bound on a share, with `false` in `count` draws (Clopper and Pearson)."""
    if false >= count:
        return 1.0
    low, high = false / count, 1.0
    for _ in range(60):  # halves the interval to below the precision of floats
        middle = (low + high) / 2
        if binomial_tail(false, count, middle) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=1024)
def least_labels(false: int, risk: float, error: float) -> int:
    """Smallest number of labels with which `false` false ones pass the test."""
    low, high = false, max(2 * false, 1)
    # Doubled until it is enough, then halved towards the least.
    while binomial_tail(false, high, risk) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_tail(false, middle, risk) > error:
            low = middle
        else:
            high = middle
    return high


# --- choosing a threshold --------------------------------------------------------------------------------------------


class _Sample:
    """The scores of a pool and of its labelled part, sorted once, so that each threshold is counted by bisection."""

    def __init__(self, judged: Sequence[JudgedScore], pool: Sequence[float], draw: LabelDraw | None) -> None:
        ordered = sorted((label for label in judged if label.draw is None), key=lambda label: label.score)
        self.even = len(ordered)
        """Labels of a fair draw from the whole pool."""
        self._scores = [label.score for label in ordered]
        # Prefix sums: the false ones of a range are the difference of two.
        self._false = [0, *accumulate(not label.is_true for label in ordered)]
        self._drawn = [label for label in judged if label.draw is not None]
        order = sorted(range(len(pool)), key=pool.__getitem__)
        self._pool = [pool[place] for place in order]
        self._reach = 0.0 if draw is None else draw.reach
        # The least weight from each place of the sorted pool to its end.
        weights = [] if draw is None else [draw.weights[place] for place in reversed(order)]
        self._least = list(accumulate(weights, min))[::-1]
        size = len(self._pool)
        places = [size - max(1, round(size * number / GRID)) for number in range(1, GRID + 1)]
        self.thresholds = list(dict.fromkeys(self._pool[place] for place in places))
        """Scores of the pool from strict to lax, each of which accepts a further part of it."""

    def drawn_share(self, threshold: float) -> float:
        """Share of the pool from the threshold on that a draw with weights chose evenly."""
        place = bisect_left(self._pool, threshold)
        return min(1.0, self._reach * self._least[place]) if place < len(self._least) else 0.0

    def count(self, threshold: float) -> tuple[int, int]:
        """Numbers of false and of all labelled values from the threshold on."""
        below, share = bisect_left(self._scores, threshold), self.drawn_share(threshold)
        false, count = self._false[-1] - self._false[below], len(self._scores) - below
        for label in self._drawn:
            if label.score >= threshold and label.draw is not None and label.draw < share:
                false, count = false + (not label.is_true), count + 1
        return false, count

    def accepted(self, threshold: float) -> int:
        """Number of values of the pool from the threshold on."""
        return len(self._pool) - bisect_left(self._pool, threshold)

    def expected(self, threshold: float) -> float:
        """Number of labels to expect from the threshold on, whatever they say."""
        accepted = self.accepted(threshold)
        return accepted / len(self._pool) * self.even + accepted * self.drawn_share(threshold)

    def choice(self, threshold: float, error: float) -> ThresholdChoice:
        """The threshold with its counts and its bound."""
        false, count = self.count(threshold)
        bound = upper_bound(false, count, 1.0 - error)
        return ThresholdChoice(threshold, count, false, bound, self.accepted(threshold), len(self._pool))


def choose_threshold(
    judged: Sequence[JudgedScore],
    pool: Sequence[float],
    promise: Promise,
    groups: int = 1,
    draw: LabelDraw | None = None,
) -> ThresholdChoice:
    """The lowest threshold that keeps the promise for a pool of scores, of which `judged` are a random sample.

    `groups`: number of groups that get thresholds under the same promise; each has an equal part of the error
    (Bonferroni). `draw`: by which those of the sample were drawn that have a random number.
    """
    if not judged or not pool:
        least = least_labels(0, promise.risk, promise.error / (groups * len(STARTS)))
        return ThresholdChoice(None, 0, 0, 1.0, 0, len(pool), "nothing is labelled", least)
    sample = _Sample(judged, pool, draw)
    begins = _beginnings(sample, promise.risk, promise.error / groups)
    error = promise.error / (groups * len(begins))
    best: int | None = None
    for begin in begins:
        # Fixed-sequence testing: the tests go from strict to lax and end at the first failure, so that no further
        # correction for their number is needed beside that for the beginnings.
        for place in range(begin, len(sample.thresholds)):
            false, count = sample.count(sample.thresholds[place])
            if binomial_tail(false, count, promise.risk) > error:
                break
            best = place if best is None else max(best, place)
    if best is not None:
        return sample.choice(sample.thresholds[best], error)
    return _refusal(sample, promise.risk, error)


def _beginnings(sample: _Sample, risk: float, error: float) -> list[int]:
    """Places of the first tests: where so many labels are to be expected that some may be false.

    They follow from the scores and the number of labels, so that the labels themselves have no part in them.
    """
    expected = [sample.expected(threshold) for threshold in sample.thresholds]
    labels = max(expected)
    needed = [least_labels(false, risk, error / len(STARTS)) for false in STARTS]
    # Where too many would be needed to begin, there is one beginning, with some labels to spare.
    needed = [least for least in needed if least <= BEGINNING * labels] or [
        math.ceil(SPARE * least_labels(0, risk, error))
    ]
    begins: dict[int, None] = {}
    for least in needed:
        enough = (place for place, count in enumerate(expected) if count >= least)
        begins[next(enough, len(expected) - 1)] = None
    return list(begins)


def _refusal(sample: _Sample, risk: float, error: float) -> ThresholdChoice:
    """No threshold, for the reason of the one that lacks the fewest labels or else has the fewest false values."""
    options: list[tuple[float, float, float]] = []
    pool = sample.accepted(sample.thresholds[-1])
    for threshold in sample.thresholds:
        false, count = sample.count(threshold)
        # Only the share of the pool above the threshold brings labels there.
        more = _lacking(false, count, risk, error) * pool / sample.accepted(threshold)
        options.append((more, (false + 0.5) / (count + 1), threshold))
    more, _, threshold = min(options)
    closest = sample.choice(threshold, error)
    reason = (
        f"of {closest.labels} labelled values with the best scores {closest.false} are false, so that the share of "
        f"false ones may be {closest.bound:.3g}"
    )
    if closest.bound <= risk:
        reason += "; that would do, but a stricter threshold had failed, and each further test costs confidence"
    labels = math.ceil(more) if more <= MOST_LABELS else None
    return replace(closest, threshold=None, reason=reason, more_labels=labels)


def _lacking(false: int, count: int, risk: float, error: float) -> float:
    """Labels above a threshold that are lacking if the share of false ones stays as it is; infinite if it is too high.

    The share is estimated with half a false value more (Krichevsky and Trofimov), since few labels often hold none, and
    the binomial test by its normal approximation.
    """
    if not false:
        return float(max(least_labels(0, risk, error) - count, 1))
    share = (false + 0.5) / (count + 1)
    if share >= risk:
        return math.inf
    normal = NormalDist().inv_cdf(1.0 - error)
    return max(normal**2 * risk * (1.0 - risk) / (risk - share) ** 2 - count, 1.0)


def score_shift(labelled: Sequence[float], others: Sequence[float]) -> float | None:
    """Probability that a labelled value scores above another one, ties counting half: 0.5 where they are alike.

    None if a side is empty. A two-sample test by a classifier (Lopez-Paz and Oquab 2017) with the score as its feature.
    """
    if not labelled or not others:
        return None
    ordered = sorted(others)
    above = math.fsum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in labelled)
    return above / (2 * len(labelled) * len(others))
