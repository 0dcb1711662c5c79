"""Learn a map from a critic's scores to probabilities, chosen by the log loss on held-out keys.

Candidates: the raw score, logistic regression on its logit (Platt 1999), isotonic regression (Zadrozny and Elkan 2002),
and for combined critics logistic regression on the logits of all members (stacking: Wolpert 1992; with weights that are
not negative: Breiman 1996), each with and without shifts by predicate. A predicate's shift is the maximum a posteriori
estimate under a normal prior around 0 (partial pooling; Gelman and Hill 2007, chapter 12): with few labels it stays
near the common map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from hapax.engine.gates.score_maps import COUNT, OTHERS, OWN, ScoreMap
from hapax.evaluation.shared.estimates import Estimate, auc, of_groups
from hapax.evaluation.shared.lazy import np
from hapax.llm_oracle.critics.combined_critic import logit, sigmoid

FOLDS = 5
"""Parts of the keys, each of which is held out once (Kohavi 1995 for the number)."""

PRIORS = (0.0, 0.5, 1.0, 2.0)
"""Standard deviations of the shifts by predicate that are compared; 0: no shifts."""

BINS = 10
"""Bins of about equal size of the calibration error and the reliability diagram."""

LEAST_LABELS = 20
"""Labels below which no map is learned: five folds would have fewer than four each."""


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """A critic's score of a fact with known truth. `key`: facts of equal keys are never parted by a fold.

    `members`: raw scores of a combined critic's members, by their titles.
    """

    score: float
    is_true: bool
    indicator: str
    key: str
    fact: str = ""
    members: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FittedMap:
    """A map with the name of its method, and the prior of its shifts."""

    method: str
    prior: float
    map: ScoreMap

    @property
    def title(self) -> str:
        title = f"{self.method} with shifts by predicate" if self.map.shifts else self.method
        if not self.map.weights:
            return title
        weights = (f"{weight:.2f} {name.partition('@')[0]}" for name, weight in self.map.weights.items())
        return f"{title}, weights {', '.join(weights)}"


def folds(labels: Sequence[LabelledScore], count: int = FOLDS) -> Iterator[tuple[list[int], list[int]]]:
    """Positions to learn from and positions held out, by key; where all labels have one key, by fact."""
    from sklearn.model_selection import GroupKFold

    # Facts of one key often stand or fall together, so a fold never parts them.
    keys = [label.key for label in labels]
    if len(set(keys)) < 2:
        keys = [f"{label.key} {place}" for place, label in enumerate(labels)]
    parts = min(count, len(set(keys)))
    for learned, left_out in GroupKFold(parts).split(keys, groups=keys):
        yield learned.tolist(), left_out.tolist()


def best_map(labels: Sequence[LabelledScore]) -> FittedMap:
    """The map with the lowest log loss on held-out keys, learned again from all labels."""
    truths = [label.is_true for label in labels]
    if len(labels) < LEAST_LABELS or len(set(truths)) < 2:
        return FittedMap("raw", 0.0, ScoreMap())
    # Stacking needs two members; the slice is empty with fewer.
    methods = ("logistic", "isotonic", *("stacked" for _ in titles_of(labels)[1:2]))
    # Sums over the folds, by method and prior.
    losses: dict[tuple[str, float], float] = {("raw", 0.0): 0.0}
    for learned, left_out in folds(labels):
        known, left = [labels[place] for place in learned], [labels[place] for place in left_out]
        losses["raw", 0.0] += total_loss(left, [label.score for label in left])
        for method in methods:
            # Fitted once for all priors, which only shift it.
            common = _common(method, known)
            for prior in PRIORS:
                fitted = with_shifts(common, known, prior)
                loss = total_loss(left, [_worth(fitted, label) for label in left])
                losses[method, prior] = losses.get((method, prior), 0.0) + loss
    # Of equal losses `min` takes the first: raw before learned, simple before stacked.
    method, prior = min(losses, key=lambda choice: losses[choice])
    if method == "raw":
        return FittedMap("raw", 0.0, ScoreMap())
    return FittedMap(method, prior, with_shifts(_common(method, labels), labels, prior))


def held_out(
    labels: Sequence[LabelledScore], learn: Callable[[Sequence[LabelledScore]], ScoreMap] | None = None
) -> list[float]:
    """The calibrated probability of each label by a map, learned (by default the best) without its key."""
    probabilities = [label.score for label in labels]
    if len(labels) < LEAST_LABELS:
        return probabilities
    for learned, left_out in folds(labels):
        # Nested: the method is chosen anew without the held-out keys, or its choice would leak.
        known = [labels[place] for place in learned]
        fitted = best_map(known).map if learn is None else learn(known)
        for place in left_out:
            probabilities[place] = _worth(fitted, labels[place])
    return probabilities


def total_loss(labels: Sequence[LabelledScore], probabilities: Sequence[float]) -> float:
    """The sum of the log losses of these probabilities."""
    total = 0.0
    for label, probability in zip(labels, probabilities, strict=True):
        log_odds = logit(probability)
        # -log of the probability of what is true, from log odds; `logit` is bounded, so `exp` cannot overflow.
        total += math.log1p(math.exp(-log_odds if label.is_true else log_odds))
    return total


def _worth(fitted: ScoreMap, label: LabelledScore) -> float:
    return fitted.probability(label.score, label.indicator, label.members)


def reply_map(labels: Sequence[LabelledScore], prior: float) -> ScoreMap:
    """The logistic regression on what replies say of their values (`reply_members`), shifted by predicate.

    Weights may be negative: where a critic affirms everything about a thing, each of its claims is worth less.
    """
    from sklearn.linear_model import LogisticRegression

    truths = np.array([label.is_true for label in labels], dtype=int)
    if len(set(truths.tolist())) < 2:
        return _level(truths)
    rows = [[logit(label.members[name]) for name in (OWN, OTHERS, COUNT)] for label in labels]
    model = LogisticRegression().fit(np.array(rows), truths)
    weights = dict(zip((OWN, OTHERS, COUNT), model.coef_[0].tolist(), strict=True))
    return with_shifts(ScoreMap(weights[OWN], float(model.intercept_[0]), weights=weights), labels, prior)


def _level(truths: Any) -> ScoreMap:
    """The share of true facts for every score: by Jeffreys' prior, half a case of each kind keeps it off 0 and 1."""
    return ScoreMap(0.0, logit(float((truths.sum() + 0.5) / (len(truths) + 1))))


def _common(method: str, labels: Sequence[LabelledScore]) -> ScoreMap:
    truths = np.array([label.is_true for label in labels], dtype=int)
    if len(set(truths.tolist())) < 2:  # a fold may hold true facts alone
        return _level(truths)
    if method == "stacked":
        return _stacked(labels, truths)
    return logistic(labels, truths) if method == "logistic" else _isotonic(labels, truths)


def logistic(labels: Sequence[LabelledScore], truths: Any) -> ScoreMap:
    """The logistic regression of these truths, 0 or 1, on the logits of the scores."""
    from sklearn.linear_model import LogisticRegression

    logits = np.array([[logit(label.score)] for label in labels])
    # C is the inverse of the penalty: a weak one, without which scores that part all labels give an infinite slope.
    model = LogisticRegression(C=100.0).fit(logits, truths)
    # A higher score never makes a claim less likely, whatever chance says in a few labels.
    slope = max(float(model.coef_[0, 0]), 0.0)
    if slope == 0.0:
        return _level(truths)
    return ScoreMap(slope, float(model.intercept_[0]))


def titles_of(labels: Sequence[LabelledScore]) -> list[str]:
    """The members of a combined critic that scored some of these labels."""
    return list(dict.fromkeys(chain.from_iterable(label.members for label in labels)))


def _stacked(labels: Sequence[LabelledScore], truths: Any) -> ScoreMap:
    """A weight for each member; a member whose weight would be negative is left out, the most negative one first."""
    from sklearn.linear_model import LogisticRegression

    titles = titles_of(labels)
    while titles:
        rows = []
        for label in labels:
            # A member without a score adds nothing: the logit of 0.5 is 0.
            rows.append([logit(label.members.get(title, 0.5)) for title in titles])
        model = LogisticRegression(C=100.0).fit(np.array(rows), truths)
        weights = model.coef_[0].tolist()
        # A negative weight would say that a member's doubt speaks for a fact.
        if min(weights) >= 0:
            found = dict(zip(titles, weights, strict=True))
            return ScoreMap(sum(weights), float(model.intercept_[0]), weights=found)
        del titles[weights.index(min(weights))]
    return _level(truths)


def _isotonic(labels: Sequence[LabelledScore], truths: Any) -> ScoreMap:
    from sklearn.isotonic import IsotonicRegression

    least = 0.5 / (len(labels) + 1)  # nothing is certain by a sample
    model = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
    model.fit([label.score for label in labels], truths)
    # Corners of the step-like map, between which `ScoreMap` interpolates.
    return ScoreMap(points=(model.X_thresholds_.tolist(), model.y_thresholds_.tolist()))


def with_shifts(common: ScoreMap, labels: Sequence[LabelledScore], prior: float) -> ScoreMap:
    """The map with a shift for each predicate with labels; `prior`: standard deviation of the shifts."""
    if not prior:
        return common
    by_predicate: dict[str, list[LabelledScore]] = {}
    for label in labels:
        by_predicate.setdefault(label.indicator, []).append(label)
    shifts = {name: _shift(common, members, prior) for name, members in sorted(by_predicate.items())}
    return replace(common, shifts=shifts)


def _shift(common: ScoreMap, labels: Sequence[LabelledScore], prior: float) -> float:
    """The maximum a posteriori shift of a predicate, by Newton's method; the posterior is concave."""
    bases = []
    for label in labels:
        bases.append((logit(common.probability(label.score, members=label.members)), label.is_true))
    shift = 0.0
    for _ in range(50):
        odds = [(sigmoid(base + shift), is_true) for base, is_true in bases]
        # Derivatives of the log posterior: a logistic likelihood and a normal prior with deviation `prior`.
        gradient = math.fsum(is_true - share for share, is_true in odds) - shift / prior**2
        curvature = math.fsum(share * (1 - share) for share, _ in odds) + 1 / prior**2
        # Newton's method may overshoot far from the maximum, where the curvature is small.
        step = max(-2.0, min(2.0, gradient / curvature))
        shift += step
        if abs(step) < 1e-9:
            break
    return shift


# --- measures --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CalibrationMeasures:
    """Distance of probabilities from the truth; lower is better but for the AUC. Whole keys are resampled."""

    brier: Estimate
    log_loss: Estimate
    ece: Estimate
    auc: Estimate


def measures(labels: Sequence[LabelledScore], probabilities: Sequence[float]) -> CalibrationMeasures:
    """Brier score, log loss, expected calibration error and AUC, with 95 % intervals."""
    by_key: dict[str, list[tuple[float, float]]] = {}
    for label, probability in zip(labels, probabilities, strict=True):
        by_key.setdefault(label.key, []).append((probability, float(label.is_true)))
    # Rows of (probability, truth), an array for each key.
    groups = [np.array(rows) for _, rows in sorted(by_key.items())]
    return CalibrationMeasures(*(of_groups(measure, groups) for measure in (_brier, _log_loss, _ece, _auc)))


def _brier(rows: Any) -> float:
    return float(np.mean((rows[:, 0] - rows[:, 1]) ** 2))


def _log_loss(rows: Any) -> float:
    # A certain but wrong probability would make the mean infinite.
    inner = np.clip(rows[:, 0], 1e-6, 1 - 1e-6)
    return float(-np.mean(rows[:, 1] * np.log(inner) + (1 - rows[:, 1]) * np.log(1 - inner)))


def _ece(rows: Any) -> float:
    """Expected calibration error over bins of equal size (Naeini et al. 2015; Nixon et al. 2019 for the bins)."""
    distances = [len(part) * abs(part[:, 0].mean() - part[:, 1].mean()) for part in _bins(rows)]
    return float(sum(distances) / len(rows))


def _bins(rows: Any) -> list[Any]:
    """Rows of (probability, truth) in bins of about equal numbers of facts, not of equal width.

    Facts with one probability are in one bin: which of them fell to which bin would be an accident of their order.
    """
    _, places, counts = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    # The bin of a probability is that of the fact in the middle of those with it.
    middles = np.cumsum(counts) - (counts + 1) / 2
    bins = (middles * BINS / len(rows)).astype(int)[places]
    return [rows[bins == number] for number in np.unique(bins)]


def _auc(rows: Any) -> float:
    return auc(rows[rows[:, 1] == 1, 0], rows[rows[:, 1] == 0, 0])


def reliability(labels: Sequence[LabelledScore], probabilities: Sequence[float]) -> list[tuple[float, float, int]]:
    """Mean probability, share of true facts and number of facts in each bin of about equal size."""
    rows = np.array([(probability, label.is_true) for label, probability in zip(labels, probabilities, strict=True)])
    if not len(rows):
        return []
    return [(float(part[:, 0].mean()), float(part[:, 1].mean()), len(part)) for part in _bins(rows)]
