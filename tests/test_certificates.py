"""Thresholds with a promise on precision, in simulated worlds whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hapax.engine.certificates import (
    JudgedScore,
    LabelDraw,
    Promise,
    ThresholdChoice,
    binomial_tail,
    choose_by_group,
    choose_threshold,
    least_labels,
    score_shift,
    upper_bound,
)
from hapax.engine.search.certified_groups import ScoredValue, end_lines, ends_of, refuse_without_promise
from hapax.grammar.errors import HapaxError

WORLDS = 1000
BROKEN_AT_MOST = int(stats.binom.ppf(0.999, WORLDS, 0.1))
"""Broken promises among the worlds that a method which breaks one in ten exceeds once in a thousand test runs."""


def world(rng: np.random.Generator, size: int, auc: float, true_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores and truths of a pool in which true values score above false ones with probability `auc`."""
    truths = rng.random(size) < true_share
    distance = math.sqrt(2) * stats.norm.ppf(auc)
    return stats.norm.cdf(rng.normal(size=size) + distance * truths), truths


def labelled(rng: np.random.Generator, scores: np.ndarray, truths: np.ndarray, count: int) -> list[JudgedScore]:
    drawn = rng.choice(len(scores), count, replace=False)
    return [JudgedScore(float(scores[place]), bool(truths[place])) for place in drawn]


def is_broken(choice: ThresholdChoice, scores: np.ndarray, truths: np.ndarray, precision: float) -> bool:
    return choice.threshold is not None and truths[scores >= choice.threshold].mean() < precision


def true_yield(threshold: float | None, scores: np.ndarray, truths: np.ndarray) -> float:
    """Share of the true values that are accepted."""
    return 0.0 if threshold is None else float(truths[scores >= threshold].sum() / truths.sum())


def oracle_threshold(scores: np.ndarray, truths: np.ndarray, precision: float) -> float | None:
    """The lowest threshold that has the precision, by all truths."""
    order = np.argsort(-scores)
    shares = np.cumsum(truths[order]) / np.arange(1, len(order) + 1)
    reached = np.flatnonzero(shares >= precision)
    return float(scores[order[reached[-1]]]) if len(reached) else None


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    """Tail and bound are those of the binomial distribution, as SciPy computes them."""
    for false, count in ((0, 10), (3, 60), (40, 900), (7, 7)):
        assert binomial_tail(false, count, 0.05) == pytest.approx(stats.binom.cdf(false, count, 0.05))
        expected = stats.beta.ppf(0.9, false + 1, count - false) if false < count else 1.0
        assert upper_bound(false, count, 0.9) == pytest.approx(expected)


def test_forty_five_labels_without_a_fault_are_the_least() -> None:
    """A precision of .95 with confidence .9 needs 45 labels that are all true: .95^45 is below .1, .95^44 is not."""
    assert least_labels(0, 0.05, 0.1) == 45


@pytest.mark.parametrize(
    ("labels", "auc", "true_share"), [(60, 0.8, 0.94), (150, 0.507, 0.945), (300, 0.7, 0.9), (600, 0.95, 0.5)]
)
def test_the_promise_is_broken_in_one_world_of_ten_at_most(labels: int, auc: float, true_share: float) -> None:
    """Of 1,000 worlds with a random labelled sample, at most a tenth accept more than 5 % false values."""
    rng, promise, broken = np.random.default_rng(labels), Promise(0.95, 0.9), 0
    for _ in range(WORLDS):
        scores, truths = world(rng, 1000, auc, true_share)
        choice = choose_threshold(labelled(rng, scores, truths, labels), scores.tolist(), promise)
        broken += is_broken(choice, scores, truths, 0.95)

    assert broken <= BROKEN_AT_MOST


def test_all_groups_hold_at_once_where_each_has_its_own_shift() -> None:
    """Head and long tail differ in truth and in the critic's skill; a world counts as broken if either end is."""
    rng, promise, broken = np.random.default_rng(5), Promise(0.9, 0.9), 0
    for _ in range(WORLDS):
        ends = {"head": world(rng, 800, 0.9, 0.9), "long_tail": world(rng, 800, 0.7, 0.75)}
        judged = {end: labelled(rng, *values, 300) for end, values in ends.items()}
        pools = {end: scores.tolist() for end, (scores, _) in ends.items()}
        choices = choose_by_group(judged, pools, promise)
        broken += any(is_broken(choices[end], *values, 0.9) for end, values in ends.items())

    assert broken <= BROKEN_AT_MOST


def test_labels_of_the_head_alone_do_not_certify_the_tail() -> None:
    """Labels of one end break the promise at the other end, which is why they are drawn for each end."""
    rng, promise, broken = np.random.default_rng(6), Promise(0.9, 0.9), 0
    for _ in range(100):
        head, tail = world(rng, 1500, 0.9, 0.9), world(rng, 1500, 0.6, 0.6)
        choice = choose_threshold(labelled(rng, *head, 300), tail[0].tolist(), promise)
        broken += is_broken(choice, *tail, 0.9)

    assert broken > 50


def test_a_modest_critic_gives_half_of_what_the_truth_would() -> None:
    """With an AUC of .8 and 600 labels the promise of .95 gives at least half the yield of the best threshold."""
    rng, promise, ours, best = np.random.default_rng(7), Promise(0.95, 0.9), [], []
    for _ in range(100):
        scores, truths = world(rng, 4000, 0.8, 0.9)
        choice = choose_threshold(labelled(rng, scores, truths, 600), scores.tolist(), promise)
        ours.append(true_yield(choice.threshold, scores, truths))
        best.append(true_yield(oracle_threshold(scores, truths, 0.95), scores, truths))

    assert float(np.mean(ours)) > 0.5 * float(np.mean(best))


def test_a_critic_by_chance_gets_no_threshold_and_no_hope() -> None:
    """Where a third is false at every score, nothing is promised, and no number of labels is said to do."""
    rng = np.random.default_rng(8)
    scores, truths = world(rng, 2000, 0.5, 0.67)

    choice = choose_threshold(labelled(rng, scores, truths, 400), scores.tolist(), Promise())

    assert (choice.threshold, choice.more_labels) == (None, None)
    assert "are false" in choice.reason


def test_chance_faults_among_the_best_scores_refuse_no_promise_that_all_labels_keep() -> None:
    """Three faults among the best hundred of 330 labels end one sequence of tests; the other one begins after them."""
    scores = [1 - place / 330 for place in range(330)]
    judged = [JudgedScore(score, place not in (10, 40, 70)) for place, score in enumerate(scores)]

    choice = choose_threshold(judged, scores, Promise(0.95, 0.9))

    assert choice.threshold == scores[-1]
    assert (choice.labels, choice.false) == (330, 3)


def test_too_few_labels_say_how_many_more() -> None:
    """Thirty true labels promise nothing yet; the estimate of the lacking ones suffices when it is followed."""
    scores = [number / 1000 for number in range(1000)]
    judged = [JudgedScore(score, True) for score in scores[::33]]

    few = choose_threshold(judged, scores, Promise())
    assert few.threshold is None
    assert few.more_labels is not None
    more = [JudgedScore(scores[number * 617 % 1000], True) for number in range(2 * few.more_labels)]

    assert choose_threshold([*judged, *more], scores, Promise()).threshold is not None


def test_conformal_risk_control_keeps_the_expectation() -> None:
    """Over many samples the share of false values of an average question is at most the risk."""
    rng, promise, losses = np.random.default_rng(9), Promise(0.9, method="conformal"), []
    for _ in range(200):
        scores, truths = world(rng, 1200, 0.85, 0.85)
        blocks = np.arange(1200) // 4  # questions with four values each
        drawn = rng.choice(300, 120, replace=False)
        judged = [
            JudgedScore(float(scores[place]), bool(truths[place]), str(blocks[place]))
            for place in np.flatnonzero(np.isin(blocks, drawn))
        ]
        choice = choose_threshold(judged, scores.tolist(), promise)
        for block in range(300):
            if block in drawn or choice.threshold is None:
                continue
            members = (blocks == block) & (scores >= choice.threshold)
            losses.append(1 - truths[members].mean() if members.any() else 0.0)

    assert float(np.mean(losses)) <= 0.1


def test_questions_with_a_few_labelled_values_promise_nothing_by_conformal_risk_control() -> None:
    """One label for each question says nothing of what it accepts: 300 of them do not count as 300 questions."""
    rng, promise, losses = np.random.default_rng(10), Promise(0.95, method="conformal"), []
    for _ in range(50):
        scores = rng.random((400, 10))
        truths = rng.random((400, 10)) < 0.5 + 0.35 * scores
        judged = []
        for question in rng.choice(400, 300, replace=False):
            place = question, rng.integers(10)
            judged.append(JudgedScore(float(scores[place]), bool(truths[place]), str(question), block_size=10))
        choice = choose_threshold(judged, scores.ravel().tolist(), promise)
        accepted = scores >= (2.0 if choice.threshold is None else choice.threshold)
        losses.append(float(np.mean((accepted & ~truths).sum(axis=1) / np.maximum(accepted.sum(axis=1), 1))))

    assert float(np.mean(losses)) <= 0.05


def test_conformal_risk_control_counts_an_uneven_draw_as_an_even_one() -> None:
    """Of a draw that prefers some values, only labels count that an even draw would have brought."""
    scores = [number / 100 for number in range(100)]
    judged = [JudgedScore(score, True, str(score), draw=0.9 if score < 0.5 else 0.1) for score in scores]
    draw = LabelDraw(0.5, [1.0] * 100)

    choice = choose_threshold([*judged], scores, Promise(0.99, method="conformal"), draw=draw)

    assert choice.reason.startswith("50 questions with labels of all proposed values")


def test_conformal_risk_control_tells_how_many_questions_more_would_do() -> None:
    """Where few enough are false, a refusal says how many labels are lacking, and that many suffice."""
    scores = [number / 1000 for number in range(1000)]
    promise = Promise(0.95, method="conformal")
    judged = [JudgedScore(score, place != 0, str(place)) for place, score in enumerate(scores[999:970:-1])]

    few = choose_threshold(judged, scores, promise)
    assert (few.threshold, few.more_labels) == (None, 33)
    more = [JudgedScore(score, place != 5, f"more {place}") for place, score in enumerate(scores[970:937:-1])]

    assert choose_threshold([*judged, *more], scores, promise).threshold is not None


@pytest.mark.parametrize("number", [0.0, 1.0, math.nan, 95])
def test_a_promise_is_a_share(number: float) -> None:
    """A precision outside 0 to 1 is refused."""
    with pytest.raises(HapaxError, match="between 0 and 1"):
        Promise(precision=number)


def test_a_score_shift_is_the_chance_that_a_labelled_value_scores_higher() -> None:
    """Ties count half, and without values on both sides nothing is known."""
    assert score_shift([1.0, 2.0], [1.0, 3.0]) == (0.5 + 1) / 4
    assert score_shift([4.0], [1.0, 2.0]) == 1.0
    assert score_shift([], [1.0]) is score_shift([1.0], []) is None


def test_values_are_counted_at_each_end_where_they_occur() -> None:
    """A value at both ends counts at both, and one below the threshold only in the pool."""
    values = [
        ScoredValue("a", 0.9, True, ends=("head",)),
        ScoredValue("b", 0.8, False, ends=("head", "long_tail")),
        ScoredValue("c", 0.7, True, ends=("long_tail",)),
        ScoredValue("d", 0.95, None, ends=("long_tail",)),
        ScoredValue("e", 0.8, None),
    ]
    choice = ThresholdChoice(0.8, 2, 1, 0.5, 2, 5)

    counts = ends_of(values, choice, Promise(0.95, 0.9))
    none = ends_of(values, replace(choice, threshold=None), Promise(0.95, 0.9))

    assert counts == {
        "head": {
            "pool": 2,
            "labelled": 2,
            "accepted": 2,
            "labels": 2,
            "false": 1,
            "bound": round(upper_bound(1, 2, 0.9), 4),
            "shift": None,
        },
        "long_tail": {
            "pool": 3,
            "labelled": 2,
            "accepted": 2,
            "labels": 1,
            "false": 1,
            "bound": round(upper_bound(1, 1, 0.9), 4),
            "shift": 0.0,
        },
        "neither end": {
            "pool": 1,
            "labelled": 0,
            "accepted": 1,
            "labels": 0,
            "false": 0,
            "bound": round(upper_bound(0, 0, 0.9), 4),
            "shift": None,
        },
    }
    assert {(end["accepted"], end["labels"], end["false"]) for end in none.values()} == {(0, 0, 0)}


def test_the_ends_of_a_promise_tell_where_labels_are_lacking() -> None:
    """Each end has its counts; one with a much smaller part of the labels than of the accepted values is named."""
    head = {"accepted": 30, "labels": 28, "false": 1, "bound": 0.1234, "shift": None}
    tail = {"accepted": 20, "labels": 14, "false": 0, "bound": 0.2, "shift": 0.61}

    assert end_lines({"head": head, "long_tail": {**tail, "accepted": 0}}) == ""
    assert end_lines({"head": head, "long_tail": tail}) == (
        " By end: head: 30 accepted, 28 labels, 1 false, bound 0.123; long tail: 20 accepted, 14 labels, 0 false, "
        "bound 0.200, labels differ in score (AUC 0.61)."
    )
    assert end_lines({"head": head, "long_tail": {**tail, "labels": 0, "shift": 0.6}}) == (
        " By end: head: 30 accepted, 28 labels, 1 false, bound 0.123; long tail: 20 accepted, 0 labels. "
        "long tail has a smaller part of the labels than of the accepted: the promise leans on the other labels. "
        "Label more of it."
    )
    three = {end: {**tail, "labels": labels} for end, labels in (("head", 8), ("long_tail", 1), ("neither end", 1))}
    assert "long tail and neither end have a smaller part" in end_lines(three)
    without_labels = end_lines({"head": {**head, "labels": 0}, "long_tail": {**tail, "labels": 0}})
    assert "smaller part" not in without_labels


def test_a_refused_promise_tells_the_reason_of_each_group() -> None:
    """The error lists the groups with what would help; where one has a threshold there is no error."""
    refused = ThresholdChoice(None, 3, 1, 0.5, 0, 9, "1 of 3 labels is false", 40)
    hopeless = replace(refused, more_labels=None)

    with pytest.raises(HapaxError) as error:
        refuse_without_promise({"p/2": refused, "q/2": hopeless}, Promise(0.95, 0.9), "Label more.")
    refuse_without_promise({"p/2": refused, "q/2": replace(refused, threshold=0.5)}, Promise(), "Label more.")

    assert str(error.value) == (
        "Nothing can be promised: that at least 0.95 of the accepted are true, with confidence 0.9.\n"
        "p/2: 1 of 3 labels is false; about 40 more labels would do if values stay as true as the labelled ones.\n"
        "q/2: 1 of 3 labels is false; by these labels no number of further ones would do.\n"
        "Label more."
    )


def test_the_units_of_a_promise_are_shares() -> None:
    """A promise is told as a share with its confidence, or as an expectation by conformal risk control."""
    assert str(Promise(0.95, method="conformal")) == (
        "in an average question at most 0.05 of the accepted values are false, in expectation"
    )
    assert Promise(0.75, 0.9).risk == 0.25
    assert Promise(0.75, 0.75).error == 0.25


@pytest.mark.parametrize(
    ("best", "others", "told"),
    [
        ("ft", "ffffttttt", "of 11 labelled values with the best scores 5 are false"),
        ("f", "fftt", "of 5 labelled values with the best scores 3 are false"),
        ("ftt", "ftttf", "of 3 labelled values with the best scores 1 are false"),
    ],
)
def test_a_hopeless_promise_tells_the_least_share_of_false_values(best: str, others: str, told: str) -> None:
    """The share counts half a false value more, so that few labels are no better for being few."""
    judged = [
        JudgedScore(start - place / 1000, label == "t")
        for start, labels in ((0.99, best), (0.5, others))
        for place, label in enumerate(labels)
    ]

    assert choose_threshold(judged, [number / 100 for number in range(100)], Promise(0.9, 0.9)).reason.startswith(told)
