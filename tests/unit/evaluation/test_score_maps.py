"""Maps from a critic's scores to probabilities: they are learned from labels, measured on held-out keys, and stored."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hapax.engine.search.score_maps import (
    ScoreMap,
    chained_critics,
    denial_probabilities,
    fact_probabilities,
    last_critic,
)
from hapax.evaluation.calibration.fitting import (
    LabelledScore,
    best_map,
    contextual_map,
    held_out,
    measures,
    reliability,
    with_shifts,
)
from hapax.kb.records import CALIBRATIONS, RUNS, CalibrationRecord, DenialRecord, FactRecord, RunRecord, Source
from hapax.kb.store import KnowledgeBase


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


def test_without_labels_the_bias_is_that_of_claims_about_nothing() -> None:
    """A critic that gives .1 to claims without content is as undecided at .1 as another at .5 (Zhao et al. 2021)."""
    fitted = contextual_map([0.1, 0.1, 0.1])

    assert fitted.probability(0.1) == pytest.approx(0.5)
    # p / p_cf, normalised: (0.3 / 0.1) / (0.3 / 0.1 + 0.7 / 0.9)
    assert fitted.probability(0.3) == pytest.approx(3 / (3 + 0.7 / 0.9))


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
        of_fact, of_denial = fact_probabilities(kb), denial_probabilities(kb)

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
