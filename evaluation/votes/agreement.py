"""Agreement of people who answered the same questions, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hapax.evaluation.shared.estimates import NOTHING, Estimate, of_groups
from hapax.evaluation.shared.lazy import np


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement on a set of questions with at least two votes each.

    `percent`: share of pairs of voters who gave the same answer, averaged over questions. `unanimous`: share of
    questions on which all voters agree. `fleiss`: Fleiss' kappa. `krippendorff`: Krippendorff's nominal alpha. The last
    two are nan if all voters always gave the same answer.
    """

    questions: int
    percent: Estimate
    unanimous: Estimate
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
        return AnnotatorAgreement(0, NOTHING, NOTHING, NOTHING, NOTHING)
    alpha = of_groups(krippendorff_alpha, groups)
    votes = sum(int(group.sum()) for group in groups)
    # Kappa rises with alpha, so its interval follows from alpha's without another resampling.
    value, low, high = (fleiss_kappa(bound, votes) for bound in (alpha.value, alpha.low, alpha.high))
    kappa = Estimate(value, low, high, alpha.count)
    question_count = sum(len(group) for group in groups)
    return AnnotatorAgreement(question_count, of_groups(percent, groups), of_groups(unanimous, groups), kappa, alpha)


def percent(counts: Any) -> float:
    """Share of equal pairs of votes on a question, averaged over the rows of `counts`."""
    # n votes make n (n - 1) ordered pairs.
    votes = counts.sum(axis=1)
    return float(np.mean((counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))))


def unanimous(counts: Any) -> float:
    """Share of rows with votes in one column only."""
    return float(np.mean(counts.max(axis=1) == counts.sum(axis=1)))


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


def fleiss_kappa(alpha: float, votes: int) -> float:
    """Fleiss' kappa from Krippendorff's alpha and the number of votes.

    Alpha is kappa with a correction for small samples, so for n votes kappa is 1 - (1 - alpha) n / (n - 1). Fleiss
    defines kappa for equal numbers of votes on each question; for others, this weighs questions as alpha does.
    """
    return 1 - (1 - alpha) * votes / (votes - 1)
