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
    choose_threshold,
    tail,
    upper_bound,
)
from hapax.engine.gates.score_maps import (
    AUDIT_QUESTION,
    fact_truths,
    voted_truths,
)
from hapax.engine.judgements import NEVER, DrawnLabels, cut_of, draw_weights
from hapax.engine.search.promises import prompt_version, stored_certificates
from hapax.evaluation.shared.estimates import mended_share
from hapax.kb.judgement_records import CERTIFICATES, LABELS, VOTES, CertificateRecord, DrawnItem, FactLabel, VoteRecord
from hapax.kb.records import RUNS, FactRecord, RunRecord, Source
from hapax.kb.store import KnowledgeBase

WORLDS = 400
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


def test_the_test_is_that_of_an_urn() -> None:
    """The tail is that of the hypergeometric distribution, as SciPy computes it; the bound is the largest share that the
    labels leave possible, and of a large urn it is Clopper and Pearson's. An urn that is all labelled leaves no doubt."""
    for false, count, size, bad in (
        (0, 10, 100, 5),
        (3, 60, 200, 10),
        (40, 900, 1000, 70),
        (7, 7, 9, 8),
        (2, 90, 90, 5),
    ):
        expected = stats.hypergeom.cdf(false, size, bad, count)
        assert tail(size, bad, count, false) == pytest.approx(expected, abs=1e-12)
    for false, count in ((0, 10), (3, 60), (7, 7)):
        expected = stats.beta.ppf(0.9, false + 1, count - false) if false < count else 1.0
        assert upper_bound(false, count, 10**6, 0.9) == pytest.approx(expected, abs=1e-4)
    assert upper_bound(3, 60, 60, 0.9) == 3 / 60


@pytest.mark.parametrize(
    ("labels", "auc", "true_share"), [(60, 0.8, 0.94), (150, 0.507, 0.945), (300, 0.7, 0.9), (600, 0.95, 0.5)]
)
def test_the_promise_is_broken_in_one_world_of_ten_at_most(labels: int, auc: float, true_share: float) -> None:
    """Of 400 worlds with a random labelled sample, at most a tenth accept more than 5 % false values."""
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
        choices = {end: choose_threshold(judged[end], pools[end], promise, groups=2) for end in ends}
        broken += any(is_broken(choices[end], *values, 0.9) for end, values in ends.items())

    assert broken <= BROKEN_AT_MOST


def test_evenly_spread_false_values_are_as_many_as_a_promise_may_miss() -> None:
    """Where each urn has just one false value too many, the promise is broken as often as its confidence allows: hardly
    more than one time in ten, and more often than one in thirty, so that little of the error is wasted."""
    rng, promise, broken, size = np.random.default_rng(11), Promise(0.95, 0.9), 0, 400
    scores = 1 - np.arange(size) / size
    allowed = np.floor(0.05 * np.arange(1, size + 1) + 1e-9)
    truths = np.diff(allowed, prepend=-1) == 0
    for _ in range(WORLDS):
        choice = choose_threshold(labelled(rng, scores, truths, 120), scores.tolist(), promise)
        broken += is_broken(choice, scores, truths, 0.95)

    assert stats.binom.ppf(0.001, WORLDS, 1 / 30) < broken <= BROKEN_AT_MOST


def test_chance_faults_among_the_best_scores_refuse_no_promise_that_all_labels_keep() -> None:
    """Three faults among the best hundred of 330 labels fail strict thresholds; laxer ones pass all the same."""
    scores = [1 - place / 1000 for place in range(1000)]
    judged = [JudgedScore(score, place not in (10, 40, 70)) for place, score in enumerate(scores[::3])]

    choice = choose_threshold(judged, scores, Promise(0.95, 0.9))

    assert choice.threshold == scores[-1]
    assert (choice.labels, choice.false) == (334, 3)


def test_of_values_like_the_labelled_ones_less_is_known_than_of_the_labelled_ones() -> None:
    """Forty true labels are all of a pool of forty, and too few for endlessly many values like them."""
    judged = [JudgedScore(number / 40, True) for number in range(40)]

    assert choose_threshold(judged, [label.score for label in judged], Promise(0.95, 0.9)).threshold == 0.0
    assert choose_threshold(judged, None, Promise(0.95, 0.9)).threshold is None
    assert choose_threshold(judged * 2, None, Promise(0.95, 0.9)).threshold is not None


def test_too_few_labels_say_how_many_more() -> None:
    """Thirty true labels promise nothing yet; the estimate of the lacking ones suffices when it is followed."""
    scores = [number / 1000 for number in range(1000)]
    judged = [JudgedScore(score, True) for score in scores[::33]]

    few = choose_threshold(judged, scores, Promise())
    assert few.threshold is None
    assert few.more_labels is not None
    more = [JudgedScore(scores[number * 617 % 1000], True) for number in range(2 * few.more_labels)]

    assert choose_threshold([*judged, *more], scores, Promise()).threshold is not None


# Labels of a draw that prefers some values

DRAWN_WORLDS = 100
DRAWN_BROKEN = int(stats.binom.ppf(0.999, DRAWN_WORLDS, 0.1))


def calibrated_world(
    rng: np.random.Generator, size: int, auc: float, true_share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities and truths."""
    truths = rng.random(size) < true_share
    distance = math.sqrt(2) * stats.norm.ppf(auc)
    odds = (
        true_share / (1 - true_share) * np.exp(distance * (rng.normal(size=size) + distance * truths) - distance**2 / 2)
    )
    return odds / (1 + odds), truths


def drawn(rng: np.random.Generator, scores: np.ndarray, truths: np.ndarray, count: int, risk: float = 0.1):
    """The labels of a draw with the weights of `votes next`, and the draw."""
    weights, _ = draw_weights(scores.tolist(), cut_of(scores.tolist(), risk))
    draws = rng.random(len(scores))
    order = np.argsort(draws / np.array(weights))
    reach = float(draws[order[count]] / weights[order[count]])
    judged = [JudgedScore(float(scores[n]), bool(truths[n]), float(draws[n])) for n in order[:count]]
    rows = [(float(scores[n]), bool(truths[n]), min(1.0, reach * weights[n])) for n in order[:count]]
    return judged, LabelDraw(reach, weights), rows


def test_a_promise_by_labels_of_the_draw_is_kept() -> None:
    """Labels that are drawn with weights break the promise in at most one world of ten, and certify more worlds."""
    rng, promise, broken, made, even = np.random.default_rng(1), Promise(0.9, 0.9), 0, 0, 0
    for _ in range(DRAWN_WORLDS):
        scores, truths = calibrated_world(rng, 800, 0.75, 0.7)
        judged, draw, _ = drawn(rng, scores, truths, 120)
        choice = choose_threshold(judged, scores.tolist(), promise, draw=draw)
        if choice.threshold is not None:
            made += 1
            broken += truths[scores >= choice.threshold].mean() < 0.9
        chosen = rng.choice(len(scores), 120, replace=False)
        labels = [JudgedScore(float(scores[n]), bool(truths[n])) for n in chosen]
        even += choose_threshold(labels, scores.tolist(), promise).threshold is not None

    assert broken <= DRAWN_BROKEN
    assert made > even


def test_the_draw_brings_a_first_promise_with_few_labels() -> None:
    """Of 1,500 values of a good critic, the 120 labels that are drawn first certify 95 % in most worlds, where as many
    labels of an even draw certify it in few."""
    rng, promise, made, even, worlds = np.random.default_rng(4), Promise(0.95, 0.9), 0, 0, 30
    for _ in range(worlds):
        scores, truths = calibrated_world(rng, 1500, 0.9, 0.7)
        judged, draw, _ = drawn(rng, scores, truths, 120, risk=0.05)
        made += choose_threshold(judged, scores.tolist(), promise, draw=draw).threshold is not None
        even += choose_threshold(labelled(rng, scores, truths, 120), scores.tolist(), promise).threshold is not None

    assert made > worlds / 2 > 1.5 * even


def test_an_estimate_from_a_biased_sample_is_mended() -> None:
    """The interval of the share of true values holds it in 95 of 100 worlds, although the sample prefers some
    values."""
    rng, inside, naive = np.random.default_rng(3), 0, 0
    for _ in range(DRAWN_WORLDS):
        scores, truths = calibrated_world(rng, 1000, 0.8, 0.6)
        _, _, rows = drawn(rng, scores, truths, 300)
        share = mended_share(scores.tolist(), rows)
        inside += share.low <= truths.mean() <= share.high
        naive += abs(np.mean([is_true for _, is_true, _ in rows]) - truths.mean()) < (share.high - share.low) / 2

    assert inside >= stats.binom.ppf(0.001, DRAWN_WORLDS, 0.95)
    assert naive < DRAWN_WORLDS / 2


@pytest.mark.parametrize(
    ("is_other", "found"),
    [
        (False, {"given out": (0.3, 2.0), "not given out": (None, 2.0), "elsewhere": (None, 1.0)}),
        (True, {"given out": (NEVER, 1.0), "not given out": (None, 1.0), "elsewhere": (None, 1.0)}),
    ],
)
def test_labels_drawn_by_the_scores_of_another_critic_are_no_sample(
    is_other: bool, found: dict[str, tuple[float | None, float]]
) -> None:
    """A certificate thins the labels that its own critic's draw gave out, leaves out another one's, and counts the rest."""
    draws = {"given out": 0.3, "not given out": 0.9}
    items = {item_id: DrawnItem("s", item_id, 0.5, weight=2.0, draw=draw) for item_id, draw in draws.items()}
    labels = DrawnLabels(reach=0.2, items=items, is_other=is_other)

    assert {item_id: labels.of(item_id) for item_id in found} == found


def test_a_certificate_of_a_run_that_is_not_here_has_lapsed() -> None:
    """Of merged rows a run may be missing; without the last run before the test, the certificate's own counts."""
    record = CertificateRecord(
        fact_group="all facts", precision=0.95, confidence=0.9, method="hypergeometric test",
        basis={"critic": "c@1", "calibration": None, "prompt": prompt_version(), "templates": {}},
        threshold=0.8, labels=60, false=1, bound=0.046, accepted=30, pool=40, sample="", shift=None, reason="", created="2026",
    )  # fmt: skip
    with KnowledgeBase() as kb:
        kb.add(RUNS, [RunRecord.now("here", "search", {"models": ["m@1", "c@1", "m@1", "m@1"]})])
        kb.add(RUNS, [RunRecord.now("later", "search", {"models": ["m@2", "c@2", "m@2", "m@2"]})])
        for run, last in (("gone", None), ("gone", "here"), ("here", "gone"), ("here", "later")):
            kb.add(CERTIFICATES, [replace(record, run_id=run, after_run=last, sample=f"{run} {last}")])
        found = {item.record.sample for item in stored_certificates(kb, ["gone", "here"]) if not item.lapse}

    assert found == {"here later"}


def fact_id(value: str) -> str:
    return FactRecord("is_in", (value, "soup"), (), Source.MODEL).id


@pytest.fixture
def scored_facts_labelled(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """Labels of two sources and votes: on some facts they agree, on others not."""
    labels = [
        ("leek", True, "atlas"), ("leek", True, "file"), ("salt", True, "atlas"), ("salt", False, "file"),
        ("sand", False, "atlas"), ("rice", False, "file"), ("corn", True, "file"),
    ]  # fmt: skip
    fresh_kb.add(LABELS, (FactLabel("is_in", (value, "soup"), is_true, source) for value, is_true, source in labels))
    votes = [("rice", "ann", "yes"), ("peas", "ann", "no"), ("beet", "ann", "yes"), ("beet", "bob", "no")]
    fresh_kb.add(VOTES, (VoteRecord(fact_id(value), AUDIT_QUESTION, voter, answer) for value, voter, answer in votes))
    return fresh_kb


def named(truths: dict[str, bool]) -> dict[str, bool]:
    names = {fact_id(value): value for value in ("leek", "salt", "sand", "rice", "corn", "peas", "beet")}
    return {names[key]: is_true for key, is_true in truths.items()}


def test_votes_outweigh_labels_and_ties_say_nothing(scored_facts_labelled: KnowledgeBase) -> None:
    """Sources count alike, and a fact on which they or the voters are divided is left out."""
    assert named(fact_truths(scored_facts_labelled)) == {
        "leek": True,
        "sand": False,
        "corn": True,
        "rice": True,
        "peas": False,
    }
    assert named(voted_truths(scored_facts_labelled)) == {"rice": True, "peas": False}
