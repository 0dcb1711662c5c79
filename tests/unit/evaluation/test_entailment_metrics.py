"""Curves, areas and intervals of entailment scores: by hand, in exact arithmetic, and beside scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.evaluation.entailment import metrics

CASES = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40).filter(
    lambda cases: len({label for label, _ in cases}) == 2
)


def test_curve_by_hand() -> None:
    """Four cases, of which the second is wrong: one point for each distinct score."""
    measured = metrics.curve([True, False, True, True], [0.9, 0.8, 0.5, 0.5])

    assert measured.thresholds.tolist() == [0.9, 0.8, 0.5]
    assert measured.precision.tolist() == [1.0, 0.5, 0.75]
    assert measured.recall.tolist() == pytest.approx([1 / 3, 1 / 3, 1])
    assert measured.positive == 0.75
    assert metrics.area_above(measured, 0.0) == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + (2 / 3 + 3 / 4) / 2) / 3)
    assert metrics.best_f1(measured) == metrics.BestThreshold(pytest.approx(6 / 7), 0.75, 1.0, 0.5)


def exact_areas(cases: Sequence[tuple[bool, int]]) -> tuple[Fraction, Fraction]:
    """AUCnorm of Eq. 1 and AUCREL in rational numbers, straight from the definitions."""
    ordered = sorted(cases, key=lambda case: -case[1])
    hits = sum(label for label, _ in ordered)
    floor = Fraction(hits, len(ordered))
    points, before = [], Fraction(0)
    for _, group in groupby(ordered, key=lambda case: case[1]):
        tied = list(group)
        share = Fraction(sum(label for label, _ in tied), len(tied))
        for _ in tied:  # expectation under random order
            before += share
            points.append((before / hits, before / (len(points) + 1)))
    points.insert(0, (Fraction(0), points[0][1]))
    area = reach = Fraction(0)
    for (left, start), (right, end) in pairwise(points):
        high, low = max(start, end) - floor, min(start, end) - floor
        above = Fraction(1) if low >= 0 else high / (high - low) if high > 0 else Fraction(0)
        area += (right - left) * ((high + low) / 2 if low >= 0 else above * max(high, 0) / 2)
        reach += (right - left) * above
    return (area + floor * reach - floor) / (1 - floor), area / (1 - floor)


@settings(deadline=None)
@given(CASES)
def test_areas_are_those_of_exact_arithmetic(cases: list[tuple[bool, int]]) -> None:
    """With any ties, both areas equal those computed in rational numbers. The concordance is the share of ordered
    couples: a true pair above a false one counts 1, a tie one half."""
    true, false = ([score for label, score in cases if label is wanted] for wanted in (True, False))
    wins = sum((high > low) + (high == low) / 2 for high, low in product(true, false))
    measured = metrics.curve([label for label, _ in cases], [float(score) for _, score in cases])
    norm, released = exact_areas(cases)

    assert metrics.normalised_area(measured) == pytest.approx(float(norm), abs=1e-12)
    assert metrics.released_area(measured) == pytest.approx(float(released), abs=1e-12)
    assert metrics.concordance(measured) == pytest.approx(wins / (len(true) * len(false)))


def test_curve_of_the_release_by_hand() -> None:
    """From precision 1 at recall 0 in straight lines; its half keeps the points from .51 on."""
    measured = metrics.curve([True, False, True, False], [1.0, 1.0, 1.0, 0.0])

    # Points (0, 1), (1, 2/3), (1, 1/2) over a baseline of 1/2.
    assert metrics.area_of_release(measured) == pytest.approx((1 / 2 + 1 / 6) / 2 / (1 / 2))
    assert metrics.half_of_release(measured) == pytest.approx((1 + 2 / 3) / 2)


def test_the_definitions_differ_where_the_curve_dips() -> None:
    """A curve that starts below its baseline loses that stretch in Eq. 1 and only its height in the released code."""
    measured = metrics.curve([False, False, True, True], [0.9, 0.8, 0.7, 0.6])

    assert metrics.released_area(measured) == pytest.approx(0.0)
    assert metrics.normalised_area(measured) == pytest.approx(-1.0)
    assert metrics.normalised_area(metrics.curve([True, False], [1.0, 0.0])) == pytest.approx(1.0)


def test_empty_curve() -> None:
    """Without cases, or without a true one, every figure is 0 and nothing crashes."""
    for truth in ([], [False, False]):
        measured = metrics.curve(truth, [0.5] * len(truth))
        assert (
            metrics.area_above(measured) == metrics.normalised_area(measured) == metrics.released_area(measured) == 0.0
        )
        assert metrics.best_f1(measured) == metrics.BestThreshold(0.0, 0.0, 0.0, math.inf)
    all_true = metrics.curve([True], [0.5])
    assert metrics.normalised_area(all_true) == 0.0


def test_interval_covers_and_repeats() -> None:
    """The interval holds the figure, is the same for a seed, and narrows with more cases."""
    generator = np.random.default_rng(3)
    widths = []
    for count in (100, 2000):
        truth = (generator.random(count) < 0.4).tolist()
        scores = [generator.normal(float(label), 1.0) for label in truth]
        first, again = (
            metrics.compare(truth, [scores], {"rel": metrics.released_area}, range(count))["rel"] for _ in range(2)
        )
        assert first == again
        estimated = first.whole
        assert estimated.low < estimated.value < estimated.high
        widths.append(estimated.high - estimated.low)
    assert widths[1] < widths[0]
