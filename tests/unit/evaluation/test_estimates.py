"""Figures with intervals, tests of differences, and agreement: by hand, by published examples, and by SciPy."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hapax.engine.gates.score_maps import (
    ScoreMap,
    chained_critics,
    denial_probabilities,
    fact_probabilities,
    last_critic,
)
from hapax.evaluation.calibration.fitting import (
    LabelledScore,
    best_map,
    held_out,
    measures,
    reliability,
    with_shifts,
)
from hapax.evaluation.entailment import entailment_report as metrics
from hapax.evaluation.link.long_tail import LongTailStudy, evaluate_long_tail
from hapax.evaluation.shared.estimates import (
    agreement,
    auc,
    difference_of_means,
    krippendorff_alpha,
    mean,
    mean_difference,
    mean_share,
    mended_share,
    rank_correlation,
    share,
    spearman,
)
from hapax.grammar.rules import Library
from hapax.kb.judgement_records import CALIBRATIONS, CalibrationRecord
from hapax.kb.records import RUNS, DenialRecord, Distribution, FactRecord, RunRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity, SpannedText

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
    """Values that differ by rounding alone are ties without a sign; small scores keep theirs."""
    first, second = [0.1 + 0.2] * 10, [0.3] * 10
    assert first[0] > second[0]

    assert mean_difference(first, second) == difference_of_means(first, second).value == 0.0
    small, smaller = [2e-20 * n for n in range(1, 11)], [1e-20 * n for n in range(1, 11)]
    assert mean_difference(small, smaller) > 0


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_shares_that_are_all_alike_have_the_interval_of_single_cases(end: float) -> None:
    """Ten shares of 1, and an AUC of 1 by ten cases, are no proof that there is nothing else: Wilson's interval."""
    wilson = share([bool(end)] * 10)
    assert wilson.high - wilson.low == pytest.approx(0.278, abs=0.001)

    assert mean_share([end] * 10) == wilson
    assert mean_share([0.0, 1.0]) == mean([0.0, 1.0])


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

    assert found.percent.value == pytest.approx(7 / 9)
    assert (found.fleiss.value, found.krippendorff.value) == (pytest.approx(0.55), pytest.approx(0.6))
    assert agreement(pairs).krippendorff.value == pytest.approx(0.095, abs=5e-4)
    assert (same.percent.value, math.isnan(same.krippendorff.value)) == (1, True)
    assert (alone.questions, alone.percent.count) == (0, 0)


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


def timid(count: int, seed: int = 0) -> list[LabelledScore]:
    """A critic that knows much and says yes to nothing: all its scores are below .11."""
    rng = np.random.default_rng(seed)
    labels = []
    for number in range(count):
        is_true = bool(rng.random() < 0.6)
        score = 0.11 / (1 + math.exp(-rng.normal(1.5 if is_true else -1.5, 1)))
        labels.append(LabelledScore(score, is_true, f"p{number % 3}/2", f"key {number // 2}", str(number)))
    return labels


def test_a_timid_critic_gets_probabilities() -> None:
    """Scores that never reach .11 become probabilities near the truth, on keys that the map has not seen."""
    labels = timid(400)
    raw = measures(labels, [label.score for label in labels])
    calibrated = measures(labels, held_out(labels))

    assert raw.ece.value > 0.4
    assert calibrated.ece.value < 0.08
    assert calibrated.log_loss.high < raw.log_loss.low
    assert calibrated.auc.value > 0.9


def test_facts_with_one_score_are_one_point_in_whatever_order_they_come() -> None:
    """A critic that gives .5 to everything and is right about half is calibrated: its error is 0, its point one."""
    labels = [LabelledScore(0.5, n < 50, "p/2", f"{n:03}") for n in range(100)]
    scores = [label.score for label in labels]

    assert measures(labels, scores).ece.value == 0
    assert reliability(labels, scores) == [(0.5, 0.5, 100)]


def test_a_map_never_prefers_the_lower_score() -> None:
    """Within a predicate a higher score has at least the probability of a lower one."""
    fitted = best_map(timid(300)).map

    probabilities = [fitted.probability(score / 1000, "p1/2") for score in range(120)]

    assert probabilities == sorted(probabilities)
    assert 0 < probabilities[0] < probabilities[-1] < 1


def test_few_labels_of_a_predicate_move_its_map_little() -> None:
    """The shift of a predicate with two false labels is smaller than that of one with forty."""
    labels = [LabelledScore(0.5, False, "few/2", str(n)) for n in range(2)]
    labels += [LabelledScore(0.5, False, "many/2", str(n)) for n in range(40)]

    shifts = with_shifts(ScoreMap(), labels, 1.0).shifts

    assert shifts["many/2"] < shifts["few/2"] < 0


def test_a_map_and_its_shifts_are_added_on_the_logit() -> None:
    """A score of .8 has log odds of ln 4; slope, intercept, a predicate's shift and the members' weights act on these."""
    line = ScoreMap(slope=2.0, intercept=-math.log(2), shifts={"lower/2": -math.log(8)})
    assert line.probability(0.8) == pytest.approx(8 / 9)  # odds 4 * 4 / 2
    assert line.probability(0.8, "other/2") == pytest.approx(8 / 9)
    assert line.probability(0.8, "lower/2") == pytest.approx(1 / 2)

    points = ScoreMap(points=([0.2, 0.4, 0.8], [0.1, 0.5, 0.9]), shifts={"higher/2": math.log(9)})
    found = [points.probability(score) for score in (0.0, 0.2, 0.3, 0.4, 0.7, 0.8, 1.0)]
    assert found == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.8, 0.9, 0.9])
    assert points.probability(0.0, "higher/2") == pytest.approx(1 / 2)

    both = ScoreMap(slope=1.5, intercept=math.log(3), weights={"a": 1.0, "b": 0.5}, shifts={"lower/2": -math.log(12)})
    assert both.probability(0.5, members={"a": 0.8, "b": 0.2}) == pytest.approx(6 / 7)  # odds 3 * 4 / 2
    assert both.probability(0.5, members={"a": 0.8, "other": 0.9}) == pytest.approx(12 / 13)
    assert both.probability(0.5, "lower/2", {"a": 0.8}) == pytest.approx(1 / 2)
    assert both.probability(0.8) == pytest.approx(24 / 25)  # the combined score alone: odds 3 * 4 ** 1.5
    for fitted in (line, points, both, ScoreMap()):
        assert ScoreMap.of(json.loads(json.dumps(fitted.parameters))).probability(0.3, "lower/2") == pytest.approx(
            fitted.probability(0.3, "lower/2")
        )


def test_the_probability_of_a_fact_is_that_of_its_run() -> None:
    """The map of the critic that judged in a fact's run changes its score, unless the run or a source gave it."""
    fitted = best_map(timid(300)).map
    scored = fitted.probability(0.05, "p/2")
    settings: dict[str, dict[str, Any]] = {
        "by_critic": {"models": ["k@1", "a@1"]},
        "by_chain": {"models": ["k@1", "table,a@2; 1"]},
        "by_other": {"models": ["k@1", "b@1"]},
        "calibrated": {"models": ["k@1", "a@1"], "calibrated": True},
    }
    with KnowledgeBase() as kb:
        kb.add(CALIBRATIONS, [CalibrationRecord("a@1", "isotonic", fitted.parameters, (), (), {}, "2026")])
        for run, stored in settings.items():
            kb.add(RUNS, [RunRecord.now(run, "search", stored)])
        of_fact, of_denial = fact_probabilities(kb, Library()), denial_probabilities(kb)

    fact = FactRecord("p", ("a", "b"), ("A", "B"), Source.MODEL, 0.05)
    facts = {run: of_fact(replace(fact, run_id=run)) for run in settings}
    denials = {run: of_denial(DenialRecord("p", ("a", "b"), 0.05, run)) for run in settings}
    assert facts == denials
    assert facts == {"by_critic": scored, "by_chain": scored, "by_other": 0.05, "calibrated": 0.05}
    assert of_fact(fact) == 0.05  # no run is known
    assert of_fact(replace(fact, run_id="by_critic", basis="a table")) == 0.05
    assert of_fact(replace(fact, run_id="by_critic", probability=None)) is None


def test_a_chain_of_critics_is_told_apart_by_its_revisions() -> None:
    """Each name of a chain has its revision; where a name has a comma of its own, only the last critic is known."""
    assert chained_critics("table,a@2; 1") == ["table@2", "a@1"]
    assert chained_critics("table,a@; 1") == ["table", "a@1"]
    assert chained_critics("a@1") == ["a@1"]
    assert chained_critics("a,b@1") == [last_critic("a,b@1")]
    assert last_critic("table,a@2; 1") == "a@1"


class ByNumber:
    """A likelihood model to which a name is as likely as its number is small: `dish 3` has -3 nats."""

    def __init__(self, name: str = "numbers", sign: float = 1.0, taught_by: tuple[str, ...] = ()) -> None:
        self.identity = ModelIdentity(name, taught_by=taught_by)
        self._sign = sign

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-1.0 * len(text), 1) for text in texts]

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        answers = []
        for text in texts:
            numbers = [int(text.text[start:end].split()[-1]) for start, end in text.spans]
            spans = tuple((-self._sign * number, 1) for number in numbers)
            answers.append(LogLikelihood(sum(total for total, _ in spans), len(spans), spans=spans))
        return answers


@pytest.fixture
def kb() -> KnowledgeBase:
    """Two rules with nine statements each, all of them in both ends, as a search with a wide beam leaves them."""
    store = KnowledgeBase()
    store.add(RUNS, [RunRecord("run", "search", {}, "run", "2026-01-01")])
    statements = [
        StatementRecord(
            rule, distribution, "run", (("D", f"dish {number}"),), f"{rule} dish {number} is hot", "all is well", {}
        )
        for rule in ("soup", "cake")
        for number in range(9)
        for distribution in Distribution
    ]
    store.add_statements(statements)
    return store


def judged(found: LongTailStudy, ranker: str, judge: str, measure: str) -> tuple[float, bool]:
    (split,) = [
        split
        for split in found.judged
        if (split.ranker, split.judge, split.measure) == (ranker, judge, measure) and split.judged_by == Measure.SPAN
    ]
    return split.auc.value, split.circular


def test_a_judge_measures_the_split_of_another(kb: KnowledgeBase) -> None:
    """An agreeing judge finds every head likelier than every long tail, a contrary judge none, the stored ends half."""
    found = evaluate_long_tail(kb, [ByNumber(), ByNumber("twin"), ByNumber("contrary", -1.0)]).value

    assert judged(found, "numbers", "twin", "span") == (1.0, False)
    assert judged(found, "numbers", "contrary", "span") == (0.0, False)
    assert judged(found, "as stored", "twin", "") == (0.5, False)
    assert (found.statements, found.rules) == (18, 2)


class ByDifference(ByNumber):
    """As `ByNumber`, but beside another name, a name is as likely as their numbers are near."""

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        answers = super().span_log_likelihoods(texts)
        for place, text in enumerate(texts):
            first, _, second = text.text.strip().partition(" has to do with ")
            if second:
                difference = int(first.split()[-1]) - int(second.strip(".").split()[-1])
                answers[place] = LogLikelihood(0.0, 1, spans=((-float(abs(difference)), 1),))
        return answers


def test_rare_pairs_are_those_of_the_commoner_names() -> None:
    """The measure of pairs divides the half of the statements with the commoner names; pairs judge what a search by it found."""
    store = KnowledgeBase()
    store.add(RUNS, [RunRecord("run", "search", {"likelihood": "model", "measure": "pair"}, "run", "2026-01-01")])
    store.add_statements(
        StatementRecord(
            "soup",
            Distribution.LONG_TAIL if number % 3 else Distribution.HEAD,
            "run",
            (("D", f"dish {number}"), ("S", f"sauce {number + number % 3}")),
            f"dish {number} has sauce {number + number % 3}",
            "all is well",
            {},
        )
        for number in range(12)
    )

    found = evaluate_long_tail(store, [ByDifference(), ByDifference("twin")]).value

    sizes = {size.measure: size for size in found.sizes if size.ranker == "numbers"}
    assert (sizes["pair"].head, sizes["pair"].long_tail) == (2, 2)
    assert (sizes["prior"].head, sizes["prior"].long_tail) == (4, 4)
    stored = {split.judged_by: split for split in found.judged if (split.ranker, split.judge) == ("as stored", "twin")}
    assert set(stored) == {Measure.SPAN, Measure.PAIR}
    # The names of the head are nearer to each other, which their own numbers do not show.
    assert stored[Measure.PAIR].auc.value > stored[Measure.SPAN].auc.value


def test_a_circular_judge_is_marked(kb: KnowledgeBase) -> None:
    """The ranker itself and its teacher are marked in every table and are no evidence."""
    pupil = ByNumber("pupil", taught_by=("numbers",))
    found = evaluate_long_tail(kb, [ByNumber(), pupil, ByNumber("stranger")]).value

    assert judged(found, "pupil", "numbers", "span") == (1.0, True)
    assert judged(found, "numbers", "pupil", "span") == (1.0, True)
    assert judged(found, "pupil", "stranger", "span") == (1.0, False)
    cells = next(row for row in found.evaluation().tables[0].rows if row[:2] == ("pupil", "span"))
    assert cells[2:5] == ("1.00 (2/2)*", "1.00 (2/2)*", "1.00 (2/2)")
