"""The area under the ROC curve with an interval (Hanley and McNeil 1982)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class AreaUnderCurve:
    """AUC of `truths` true and `falsehoods` false claims."""

    area: float
    truths: int
    falsehoods: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval from the standard error of Hanley and McNeil (1982), equations 1 and 2."""
        area, square = self.area, self.area**2
        first, second = area / (2 - area), 2 * square / (1 + area)
        variance = area * (1 - area) + (self.truths - 1) * (first - square) + (self.falsehoods - 1) * (second - square)
        half = Z95 * math.sqrt(max(0.0, variance) / (self.truths * self.falsehoods))
        return max(0.0, area - half), min(1.0, area + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.area:.3f} ({low:.3f} to {high:.3f})"


def auc(truths: Sequence[bool], scores: Sequence[float]) -> float:
    """Share of pairs of a truth and a falsehood in which the truth has the higher score; ties are halves."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    ranks = [0.0] * len(scores)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and scores[order[end]] == scores[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + end + 1) / 2
        start = end
    positives = sum(truths)
    negatives = len(truths) - positives
    if not positives or not negatives:
        return math.nan
    total = math.fsum(rank for rank, truth in zip(ranks, truths, strict=True) if truth)
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def measured_area(truths: Sequence[bool], scores: Sequence[float]) -> AreaUnderCurve:
    """The AUC with the numbers of claims that its interval needs."""
    return AreaUnderCurve(auc(truths, scores), sum(truths), len(truths) - sum(truths))
