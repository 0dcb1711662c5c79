"""The sample: its share for each slice, negatives as frequent as positives, and whole slices for dev and for test."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.booqa.records import DEV, TEST, Question

BARS = (
    *(30, 60, 100, 300, 500, 700, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 10_000, 15_000, 20_000),
    *(30_000, 50_000, 100_000, 100_000_000),
)
"""The release's bounds between frequencies that count as alike."""

SPARE = 0.95
"""How much of the negatives that positives ask for may be taken of each frequency: 1.9 for 2, as in the release."""

BEYOND, MAPPED = "beyond the sample", "negatives of another frequency"


@dataclass(frozen=True, slots=True)
class Item:
    """A positive with its negatives, and how often their predicates occur."""

    positive: Question
    negatives: tuple[Question, ...]
    frequency: int
    negative_frequencies: tuple[int, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """The positive, then its negatives."""
        return (self.positive, *self.negatives)


def with_negatives(item: Item, count: int, draw: random.Random) -> Item:
    """No more than so many negatives, drawn."""
    if len(item.negatives) <= count:
        return item
    chosen = draw.sample(range(len(item.negatives)), count)
    return replace(
        item,
        negatives=tuple(item.negatives[place] for place in chosen),
        negative_frequencies=tuple(item.negative_frequencies[place] for place in chosen),
    )


def allotments(sizes: Mapping[str, int], sample: int) -> dict[str, int]:
    """How many of each slice's items are taken: all, or in proportion so many that they are `sample` together."""
    total = sum(sizes.values())
    if total <= sample:
        return dict(sizes)
    found: dict[str, int] = {}
    passed = taken = 0
    for key in sorted(sizes):
        passed += sizes[key]
        found[key] = passed * sample // total - taken
        taken += found[key]
    return found


def drawn(items: Sequence[Item], allotment: int, draw: random.Random) -> tuple[list[Item], Counter[str]]:
    """So many items by chance, and what was dropped."""
    chosen = draw.sample(list(items), min(allotment, len(items)))
    return chosen, Counter({BEYOND: len(items) - len(chosen)})


def mapped(items: Sequence[Item], allotment: int, draw: random.Random) -> tuple[list[Item], Counter[str]]:
    """So many items whose negatives are together as frequent as the slice's positives.

    Otherwise a hypothesis' frequency alone would tell positives, which are general, from their hyponyms. Items come in
    an order drawn; one whose negatives no longer fit is dropped.
    """
    most = max((len(item.negatives) for item in items), default=0)
    shares = Counter(_bucket(item.frequency) for item in items)
    left = {
        bucket: _rounded(count / len(items) * allotment * most * SPARE, draw)
        for bucket, count in sorted(shares.items())
    }
    kept: list[Item] = []
    dropped: Counter[str] = Counter()
    for item in draw.sample(list(items), len(items)):
        wanted = Counter(map(_bucket, item.negative_frequencies))
        if len(kept) == allotment:
            dropped[BEYOND] += 1
        elif any(count > left.get(bucket, 0) for bucket, count in wanted.items()):
            dropped[MAPPED] += 1
        else:
            kept.append(item)
            for bucket, count in wanted.items():
                left[bucket] -= count
    return kept, dropped


def halves(sizes: Mapping[str, int], draw: random.Random) -> dict[str, str]:
    """Which slices are dev's and which test's: in an order drawn, dev takes what keeps it within half."""
    found: dict[str, str] = {}
    taken = 0
    total = sum(sizes.values())
    for key in draw.sample(sorted(sizes), len(sizes)):
        found[key] = DEV if taken + sizes[key] <= total / 2 else TEST
        taken += sizes[key] if found[key] == DEV else 0
    return found


def _bucket(frequency: int) -> int:
    return bisect_right(BARS, frequency)


def _rounded(number: float, draw: random.Random) -> int:
    """Up or down by chance, so that the mean stays."""
    whole = math.floor(number)
    return whole + (draw.random() < number - whole)
