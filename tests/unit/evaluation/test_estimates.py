"""Figures with intervals, tests of differences, and agreement: by hand, by published examples, and by SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hapax.evaluation.shared.estimates import (
    auc,
    cohens_d,
    difference_of_means,
    mean,
    mean_difference,
    mean_share,
    mended_share,
    rank_correlation,
    share,
    signed_rank_test,
    spearman,
)
from hapax.evaluation.votes.tally import agreement, krippendorff_alpha

WORLDS = 100


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
)
def test_area_is_mann_whitneys_share_of_pairs(positive: list[int], negative: list[int]) -> None:
    """The area equals scipy's U over the number of pairs, ties included."""
    expected = stats.mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative))

    assert auc(positive, negative) == pytest.approx(expected)


def test_rank_correlation_by_hand() -> None:
    """Same order is 1, reversed is -1, one swap of three is a half, and a constant has none."""
    assert spearman([1, 2, 30], [2, 4, 5]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_shares_have_wilsons_interval() -> None:
    """Eight of ten: the interval that textbooks print."""
    found = share([True] * 8 + [False] * 2)

    assert (found.value, found.count) == (0.8, 10)
    assert found.low == pytest.approx(0.490, abs=0.001)
    assert found.high == pytest.approx(0.943, abs=0.001)


def test_bootstrap_intervals_hold_the_figure_and_repeat() -> None:
    """The same scores give the same interval, with the figure inside."""
    first, second = [float(n) for n in range(30)], [float(n * n % 31) for n in range(30)]

    for estimate in (lambda: mean(first), lambda: rank_correlation(first, second)):
        found = estimate()
        assert found.low <= found.value <= found.high
        assert found == estimate()


def test_nothing_measured_is_no_number() -> None:
    """Without cases there is no figure, and that is said in words."""
    for found in (share([]), mean([]), rank_correlation([], [])):
        assert math.isnan(found.value)
        assert str(found) == "none"


def test_rounding_is_no_difference() -> None:
    """Values that differ by rounding alone are ties: no small p-value, no sign, no effect; small scores keep theirs."""
    first, second = [0.1 + 0.2] * 10, [0.3] * 10
    assert first[0] > second[0]

    assert signed_rank_test(first, second) == 1.0
    assert mean_difference(first, second) == difference_of_means(first, second).value == 0.0
    assert math.isnan(cohens_d([0.1] * 3, [0.3] * 3))
    small, smaller = [2e-20 * n for n in range(1, 11)], [1e-20 * n for n in range(1, 11)]
    assert signed_rank_test(small, smaller) == pytest.approx(2 / 2**10)
    assert mean_difference(small, smaller) > 0
    assert cohens_d(small, smaller) == pytest.approx(cohens_d(np.multiply(small, 1e20), np.multiply(smaller, 1e20)))


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_shares_that_are_all_alike_have_the_interval_of_single_cases(end: float) -> None:
    """Ten shares of 1, and an AUC of 1 by ten cases, are no proof that there is nothing else: Wilson's interval."""
    wilson = share([bool(end)] * 10)
    assert wilson.high - wilson.low == pytest.approx(0.278, abs=0.001)

    assert mean_share([end] * 10) == wilson
    assert mean_share([0.0, 1.0]) == mean([0.0, 1.0])


def test_signed_rank_tests_by_hand() -> None:
    """Six differences of one sign have p = 2 / 2**6; equal pairs differ in nothing."""
    assert signed_rank_test([1, 2, 3, 4, 5, 6], [0] * 6) == pytest.approx(2 / 2**6)
    assert signed_rank_test([0, 0], [0, 0]) == 1
    assert math.isnan(signed_rank_test([], []))


def test_the_interval_by_few_labels_knows_what_they_may_have_missed() -> None:
    """A sure critic that is wrong about 1 fact in 20: the interval by 20 labels holds the truth as often as it says."""
    rng, inside, size, count = np.random.default_rng(4), 0, 1000, 20
    for _ in range(WORLDS):
        truths = rng.random(size) < 0.95
        rows = [(0.97, bool(truths[n]), count / size) for n in rng.choice(size, count, replace=False)]
        share = mended_share([0.97] * size, rows)
        inside += share.low <= truths.mean() <= share.high

    assert inside >= stats.binom.ppf(0.001, WORLDS, 0.95)


def test_nothing_is_uncertain_once_all_is_judged() -> None:
    """Labels of the whole pool give its share without an interval to speak of."""
    share = mended_share([0.9] * 4, [(0.9, True, 1.0), (0.9, True, 1.0), (0.9, True, 1.0), (0.9, False, 1.0)])

    assert (share.value, share.low, share.high) == pytest.approx((0.75, 0.75, 0.75))


FOUR_OBSERVERS = (
    *((3, 0, 0, 0, 0), (0, 3, 1, 0, 0), (0, 0, 4, 0, 0), (0, 0, 4, 0, 0), (0, 4, 0, 0, 0), (1, 1, 1, 1, 0)),
    *((0, 0, 0, 4, 0), (3, 1, 0, 0, 0), (0, 4, 0, 0, 0), (0, 0, 0, 0, 3), (2, 0, 0, 0, 0), (0, 0, 1, 0, 0)),
)
"""Votes by unit and value in Krippendorff's example of four observers, with missing ones (2011)."""


def test_krippendorffs_example_of_four_observers() -> None:
    """Nominal alpha .743; units with a single vote change nothing."""
    counts = np.array(FOUR_OBSERVERS)

    assert krippendorff_alpha(counts) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(counts[:-1]) == krippendorff_alpha(counts)
    assert math.isnan(krippendorff_alpha(counts[-1:]))


def test_agreement_by_hand_and_by_krippendorffs_example() -> None:
    """Votes 3:0, 2:1 and 0:3: percent (1 + 1/3 + 1)/3, alpha 1 - 8 x 1/(5 x 4). Two observers of ten units: .095."""
    found = agreement([[(3, 0)], [(2, 1)], [(0, 3)]])
    first, second = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    pairs = [
        [((first_ == 0) + (second_ == 0), first_ + second_)] for first_, second_ in zip(first, second, strict=True)
    ]
    same, alone = agreement([[(3, 0), (3, 0)]]), agreement([[(1, 0)], [(0, 1)]])

    assert (found.percent.value, found.unanimous.value) == (pytest.approx(7 / 9), pytest.approx(2 / 3))
    assert (found.fleiss.value, found.krippendorff.value) == (pytest.approx(0.55), pytest.approx(0.6))
    assert agreement(pairs).krippendorff.value == pytest.approx(0.095, abs=5e-4)
    assert (same.percent.value, math.isnan(same.krippendorff.value)) == (1, True)
    assert (alone.questions, alone.percent.count) == (0, 0)
