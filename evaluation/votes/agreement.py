"""How far voters agree (LINK, appendix I.3), in four measures, since the paper does not say which one is its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.estimates import NOTHING, Estimate, of_groups


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement on some questions; those with fewer than two votes have no say.

    `percent`: the share of pairs of voters who gave the same answer, averaged over questions. `unanimous`: the share
    of questions on which all voters agree. `fleiss`: Fleiss' kappa. `krippendorff`: Krippendorff's nominal alpha. Both
    are undefined where all voters always gave one and the same answer.
    """

    questions: int
    percent: Estimate
    unanimous: Estimate
    fleiss: Estimate
    krippendorff: Estimate


def agreement(subjects: Iterable[Sequence[Sequence[int]]]) -> Agreement:
    """The agreement on questions that come by subject: votes for each answer to each question about one statement.

    Intervals come from resampling whole subjects, since the answers about one statement depend on each other.
    """
    groups = [np.array(kept) for each in subjects if (kept := [one for one in each if sum(one) > 1])]
    if not groups:
        return Agreement(0, NOTHING, NOTHING, NOTHING, NOTHING)
    alpha = of_groups(krippendorff_alpha, groups)
    votes = sum(int(group.sum()) for group in groups)
    value, low, high = (fleiss_kappa(one, votes) for one in (alpha.value, alpha.low, alpha.high))
    kappa = Estimate(value, low, high, alpha.count)
    return Agreement(sum(map(len, groups)), of_groups(percent, groups), of_groups(unanimous, groups), kappa, alpha)


def percent(counts: Any) -> float:
    """The share of pairs of votes on a question that are alike, averaged over the rows of `counts`."""
    votes = counts.sum(axis=1)
    return float(np.mean((counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))))


def unanimous(counts: Any) -> float:
    """The share of rows with votes in one column only."""
    return float(np.mean(counts.max(axis=1) == counts.sum(axis=1)))


def krippendorff_alpha(counts: Any) -> float:
    """Krippendorff's alpha for nominal answers; nan where only one answer was ever given."""
    import krippendorff

    if np.count_nonzero(counts.sum(axis=0)) < 2:
        return math.nan
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def fleiss_kappa(alpha: float, votes: int) -> float:
    """Fleiss' kappa from Krippendorff's alpha of so many votes.

    Alpha is kappa with a correction for small samples, so of n votes kappa is 1 - (1 - alpha) n / (n - 1). Fleiss
    defines it for equally many votes on each question; elsewhere this weighs questions as alpha does.
    """
    return 1 - (1 - alpha) * votes / (votes - 1)
