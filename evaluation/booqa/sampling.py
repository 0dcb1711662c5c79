"""Draw the sample: a share of each slice, negatives as frequent as positives, and whole slices for dev or test."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.evaluation.booqa.records import DEV, TEST, Proposition

BARS = (
    *(30, 60, 100, 300, 500, 700, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 10_000, 15_000, 20_000),
    *(30_000, 50_000, 100_000, 100_000_000),
)
"""Bounds of the frequency buckets of the release."""

SPARE = 0.95
"""Share of the negatives of a frequency bucket that may be used: 1.9 for 2 negatives a positive, as in the release."""

BEYOND, MAPPED = "beyond the sample", "negatives of another frequency"


@dataclass(frozen=True, slots=True)
class BalancedPositive:
    """A positive with its negatives, and the frequencies of their predicates."""

    positive: Proposition
    negatives: tuple[Proposition, ...]
    frequency: int
    negative_frequencies: tuple[int, ...]

    @property
    def frequency_ratio(self) -> float:
        """The largest ratio between the frequencies of the positive's predicate and of a negative's, at least 1."""
        # Negatives occur in the corpus (`PredicateIndex.usual`), so no frequency is 0.
        ratios = [self.frequency / frequency for frequency in self.negative_frequencies]
        return max((max(ratio, 1 / ratio) for ratio in ratios), default=1.0)

    @property
    def questions(self) -> tuple[Proposition, ...]:
        """The positive, then its negatives."""
        return (self.positive, *self.negatives)


def with_negatives(balanced: BalancedPositive, count: int, draw: random.Random) -> BalancedPositive:
    """The item with at most `count` negatives, drawn at random from more."""
    if len(balanced.negatives) <= count:
        return balanced
    chosen = draw.sample(range(len(balanced.negatives)), count)
    return replace(
        balanced,
        negatives=tuple(balanced.negatives[place] for place in chosen),
        negative_frequencies=tuple(balanced.negative_frequencies[place] for place in chosen),
    )


def allotments(sizes: Mapping[str, int], sample: int) -> dict[str, int]:
    """Number of items to take from each slice, in proportion to its size, so that the total is at most `sample`."""
    total = sum(sizes.values())
    if total <= sample:
        return dict(sizes)
    shares: dict[str, int] = {}
    passed = allotted = 0
    for key in sorted(sizes):
        # Rounding the running total instead of each share makes the shares add up to `sample` exactly.
        passed += sizes[key]
        shares[key] = passed * sample // total - allotted
        allotted += shares[key]
    return shares


def drawn(
    items: Sequence[BalancedPositive], allotment: int, draw: random.Random
) -> tuple[list[BalancedPositive], Counter[str]]:
    """`allotment` items drawn at random, and the number dropped."""
    chosen = draw.sample(list(items), min(allotment, len(items)))
    return chosen, Counter({BEYOND: len(items) - len(chosen)})


def mapped(
    items: Sequence[BalancedPositive], allotment: int, draw: random.Random
) -> tuple[list[BalancedPositive], Counter[str]]:
    """`allotment` items drawn at random so that their negatives are as frequent as the slice's positives.

    Otherwise the frequency of a hypothesis alone would separate positives, which are general, from their hyponyms. An
    item whose negatives no longer fit into their frequency buckets is dropped.
    """
    most = max((len(item.negatives) for item in items), default=0)
    shares = Counter(_bucket(item.frequency) for item in items)
    room: dict[int, int] = {}
    for bucket, count in sorted(shares.items()):  # sorted, because rounding draws random numbers
        # The bucket's share of the positives, times all negatives that the sample can have.
        expected = count / len(items) * allotment * most * SPARE
        # Rounded up or down at random, so that the expectation stays the same.
        room[bucket] = math.floor(expected) + (draw.random() < expected % 1)
    sample: list[BalancedPositive] = []
    dropped: Counter[str] = Counter()
    # A random order, because the buckets fill up and items that come late find no room.
    for item in draw.sample(list(items), len(items)):
        needed = Counter(map(_bucket, item.negative_frequencies))
        if len(sample) == allotment:
            dropped[BEYOND] += 1
        elif any(count > room.get(bucket, 0) for bucket, count in needed.items()):  # all its negatives or none
            dropped[MAPPED] += 1
        else:
            sample.append(item)
            for bucket, count in needed.items():
                room[bucket] -= count
    return sample, dropped


def halves(sizes: Mapping[str, int], draw: random.Random) -> dict[str, str]:
    """The set of each slice: in random order, slices go to dev as long as it stays within half of all items."""
    homes: dict[str, str] = {}
    in_dev = 0
    total = sum(sizes.values())
    for key in draw.sample(sorted(sizes), len(sizes)):
        homes[key] = DEV if in_dev + sizes[key] <= total / 2 else TEST
        in_dev += sizes[key] if homes[key] == DEV else 0
    return homes


def _bucket(frequency: int) -> int:
    # Number of the bucket: a frequency equal to a bar belongs above it.
    return bisect_right(BARS, frequency)
