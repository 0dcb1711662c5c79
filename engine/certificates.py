"""Thresholds with a promise on precision, from a labelled random sample. Pure arithmetic: no file, no model, no NumPy.

A promise says: of what is accepted, at most a share `1 - precision` is false, with this confidence over the draw of the
sample. Nothing is assumed about the scores. What a threshold accepts is an urn of known size, and its labels are drawn
from it without replacement, so that each urn has the exact hypergeometric test. All thresholds are tested at one level,
and the laxest that passes is taken: Learn then Test (Angelopoulos, Bates, Candes, Jordan, Lei 2021, arXiv 2110.01052),
with the level set by the joint distribution of the nested tests instead of Bonferroni's.

The level is the largest with which false values that are spread evenly, so that every urn has just one too many, pass
somewhere with a probability of at most the error. No other placing passes more often where labels are drawn evenly: in
an urn with too many false values, at least as many are labelled as if they were spread evenly. The thresholds come from
the scores alone, never from the labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError

METHOD = "hypergeometric test"
"""The name of the test, which is stored with its result."""

GRID = 25
"""Thresholds that are compared: each accepts a twenty-fifth of the pool more than the one before."""

HALVINGS = 8
"""The level of a test is the error, halved this often at most."""

ENDLESS = 1000
"""Values for which each labelled one stands where the pool is all values like them."""

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
    most promising one. `bound`: upper bound on the share of false values there, at the level of one test. `accepted`,
    `pool`: values from the threshold on, and all. `more_labels`: estimate of the labels that are lacking; None if by
    these labels no number would do.
    """

    threshold: float | None
    labels: int
    false: int
    bound: float
    accepted: int
    pool: int
    reason: str = ""
    more_labels: int | None = None


# --- the test of an urn ----------------------------------------------------------------------------------------------


def false_chances(size: int, bad: int, labels: int, most: int) -> list[float]:
    """P(x of the labels are false) for x from 0 to `most`, if `bad` of `size` values are, drawn without replacement."""
    # Where labels are not of the pool, it has at least as many values.
    size = max(size, labels, bad)
    first = max(0, labels + bad - size)
    # In logarithms, because the terms may be too small for floats.
    log_term = _log_choose(size - bad, labels - first) + _log_choose(bad, first) - _log_choose(size, labels)
    chances = [0.0] * min(first, most + 1)
    for false in range(first, min(most, bad, labels) + 1):
        chances.append(math.exp(log_term))
        if false < min(bad, labels):
            log_term += math.log((bad - false) * (labels - false))
            log_term -= math.log((false + 1) * (size - bad - labels + false + 1))
    return chances


def _log_choose(count: int, chosen: int) -> float:
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def tail(size: int, bad: int, labels: int, false: int) -> float:
    """P(at most `false` of the labels are false) if `bad` of `size` values are, drawn without replacement."""
    return min(1.0, math.fsum(false_chances(size, bad, labels, false)))


def upper_bound(false: int, labels: int, size: int, confidence: float) -> float:
    """One-sided upper bound on the share of false values among `size`, of which `labels` were drawn, `false` of them
    false: the hypergeometric counterpart of Clopper and Pearson's.
    """
    low, high = false, max(size, labels) - (labels - false)
    while low < high:
        middle = (low + high + 1) // 2
        if tail(size, middle, labels, false) > 1.0 - confidence:
            low = middle
        else:
            high = middle - 1
    return low / max(size, labels, 1)


@dataclass(frozen=True, slots=True)
class _Urn:
    """The values from a threshold on: their number, their labels, and the false ones among these.

    `bad`: the least number of false values that breaks the promise. `share`: part of the draw whose labels count.
    """

    threshold: float
    size: int
    labels: int
    false: int
    bad: int
    share: float

    @classmethod
    def of(cls, threshold: float, size: int, labels: Sequence[JudgedScore], risk: float, share: float = 1.0) -> _Urn:
        """The urn of these labels, of which a share `risk` may be false."""
        false = sum(not label.is_true for label in labels)
        # The product of floats may lie just below a whole number.
        return cls(threshold, size, len(labels), false, math.floor(risk * size + 1e-9) + 1, share)

    def tails(self, error: float) -> list[float]:
        """P(at most x labels are false) for x from 0, up to `error`, if the promise is just broken."""
        # No more than the expected number can be that improbable.
        expected = self.labels * self.bad // self.size
        sums = accumulate(false_chances(self.size, self.bad, self.labels, expected))
        return [value for value in sums if value <= error] if self.labels else []

    def passes(self, level: float) -> bool:
        """True if so few labels are false that they would hardly be if the promise were broken."""
        return self.labels > 0 and tail(self.size, self.bad, self.labels, self.false) <= level

    def choice(self, level: float, scale: int, pool: int) -> ThresholdChoice:
        """The threshold with its counts and its bound. `scale`: values that each of the pool is."""
        bound = upper_bound(self.false, self.labels, self.size, 1.0 - level)
        return ThresholdChoice(self.threshold, self.labels, self.false, bound, self.size // scale, pool)

    def lacking(self, level: float) -> float:
        """Further labels with which the test is to be passed, if their share of false ones stays; infinite if none.

        The share is estimated with half a false value more (Krichevsky and Trofimov) where some are false.
        """
        share = (self.false + 0.5) / (self.labels + 1) if self.false else 0.0
        if share * self.size >= self.bad:
            return math.inf

        def passes(labels: int) -> bool:
            return tail(self.size, self.bad, labels, round(share * labels)) <= level

        low, high = self.labels, min(self.labels + 1, self.size)
        # Doubled until it is enough, then halved towards the least.
        while not passes(high):
            if high == self.size or high > MOST_LABELS:
                return math.inf
            low, high = high, min(2 * high, self.size)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if passes(middle) else (middle, high)
        return max(high - self.labels, 1)


def _strata(urns: Sequence[_Urn], most: int) -> list[list[float]]:
    """Distributions of the false labels that each urn has beyond those of the one before, if all are just broken.

    `most`: number up to which they are needed. Urns by the same part of a draw have nested labels.
    """
    strata = []
    for _, members in groupby(urns, key=lambda urn: urn.share):
        size, bad, labels = 0, 0, 0
        for urn in members:
            strata.append(false_chances(urn.size - size, urn.bad - bad, urn.labels - labels, most))
            size, bad, labels = urn.size, urn.bad, urn.labels
    return strata


def _passing(urns: Sequence[_Urn], strata: Sequence[Sequence[float]], limits: Sequence[int]) -> float:
    """Largest probability that an urn with too many false values has at most its limit of false labels; -1: none."""
    passing, chances, share, most = 0.0, [1.0], urns[0].share, max(limits)
    for urn, further, limit in zip(urns, strata, limits, strict=True):
        if urn.share != share:  # probabilities of different parts add up
            chances, share = [1.0], urn.share
        chances = _sums(chances, further, most)
        passing += math.fsum(chances[: limit + 1])
        chances[: limit + 1] = [0.0] * len(chances[: limit + 1])
    return passing


def _sums(first: Sequence[float], second: Sequence[float], most: int) -> list[float]:
    """Distribution of the sum of two independent numbers, up to `most`."""
    sums = [0.0] * (most + 1)
    for number, chance in enumerate(first):
        if chance:
            for place, further in enumerate(second[: most + 1 - number], number):
                sums[place] += chance * further
    return sums


# --- choosing a threshold --------------------------------------------------------------------------------------------


def _urns(
    judged: Sequence[JudgedScore], pool: Sequence[float], risk: float, draw: LabelDraw | None, scale: int
) -> list[_Urn]:
    """The urns of the thresholds that are compared, from strict to lax. `scale`: values that each of the pool is."""
    order = sorted(range(len(pool)), key=pool.__getitem__, reverse=True)
    # Negated, so that they ascend, as bisection wants them.
    scores = [-pool[place] for place in order]
    labels = sorted(judged, key=lambda label: -label.score)
    labelled = [-label.score for label in labels]
    # The share of the draw that is even from the best value to each place.
    shares = [1.0] * len(order)
    if draw is not None:
        shares = [min(1.0, draw.reach * least) for least in accumulate((draw.weights[place] for place in order), min)]
    places = [max(1, round(len(scores) * number / GRID)) for number in range(1, GRID + 1)]
    urns = []
    for score in dict.fromkeys(scores[place - 1] for place in places):
        size = bisect_right(scores, score)
        share = _coarse(shares[0], shares[size - 1])
        own = labels[: bisect_right(labelled, score)]
        own = [label for label in own if label.draw is None or label.draw < share]
        urns.append(_Urn.of(-score, size * scale, own, risk, share))
    return urns


def _coarse(whole: float, share: float) -> float:
    """The share, rounded down to a half, a quarter and so on of the whole, so that many urns have the same one."""
    return whole * 2.0 ** -math.ceil(math.log2(whole / share)) if 0.0 < share < whole else share


def choose_threshold(
    judged: Sequence[JudgedScore],
    pool: Sequence[float] | None,
    promise: Promise,
    groups: int = 1,
    draw: LabelDraw | None = None,
) -> ThresholdChoice:
    """The lowest threshold that keeps the promise for a pool of scores, of which `judged` are a random sample.

    `pool`: None stands for endlessly many values like the judged ones. `groups`: number of groups that get thresholds
    under the same promise; each has an equal part of the error (Bonferroni). `draw`: by which those of the sample were
    drawn that have a random number.
    """
    error, scale = promise.error / groups, ENDLESS if pool is None else 1
    scores = [label.score for label in judged] if pool is None else pool
    if not judged or not scores:
        least = _Urn.of(0.0, len(scores) or MOST_LABELS, (), promise.risk).lacking(error / 2)
        return ThresholdChoice(None, 0, 0, 1.0, 0, len(scores), "nothing is labelled", math.ceil(least))
    urns = _urns(judged, scores, promise.risk, draw, scale)
    levels = dict(zip(urns, _levels(urns, error), strict=True))
    passed = [urn for urn, level in levels.items() if urn.passes(level)]
    if passed:
        return passed[-1].choice(levels[passed[-1]], scale, len(scores))
    # The reason is that of the urn that lacks the fewest labels or else has the fewest false ones.
    lacking = {urn: urn.lacking(level) * urns[-1].size / urn.size for urn, level in levels.items()}
    closest = min(urns, key=lambda urn: (lacking[urn], (urn.false + 0.5) / (urn.labels + 1), urn.size))
    found = closest.choice(levels[closest], scale, len(scores))
    reason = (
        f"of {found.labels} labelled values with the best scores {found.false} are false, so that the share of "
        f"false ones may be {found.bound:.3g}"
    )
    more = lacking[closest]
    return replace(found, threshold=None, reason=reason, more_labels=math.ceil(more) if more <= MOST_LABELS else None)


def _levels(urns: Sequence[_Urn], error: float) -> list[float]:
    """The level of each test, so that all of them together err with a probability of at most `error`.

    Levels fall with the labels of an urn: many labels decide well at a small level, too, and few need a large one.
    """
    tails = [urn.tails(error) for urn in urns]
    least = next((urn.labels for urn, own in zip(urns, tails, strict=True) if own), 1)

    def levels(halvings: float) -> list[float]:
        return [error * 2.0**-halvings * min(1.0, least / max(urn.labels, 1)) for urn in urns]

    strata = _strata(urns, max(map(len, tails)))
    low, high = 0.0, float(HALVINGS)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        limits = [bisect_right(own, level) - 1 for own, level in zip(tails, levels(middle), strict=True)]
        low, high = (low, middle) if _passing(urns, strata, limits) <= error else (middle, high)
    return levels(high)


def score_shift(labelled: Sequence[float], others: Sequence[float]) -> float | None:
    """Probability that a labelled value scores above another one, ties counting half: 0.5 where they are alike.

    None if a side is empty. A two-sample test by a classifier (Lopez-Paz and Oquab 2017) with the score as its feature.
    """
    if not labelled or not others:
        return None
    ordered = sorted(others)
    above = math.fsum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in labelled)
    return above / (2 * len(labelled) * len(others))
