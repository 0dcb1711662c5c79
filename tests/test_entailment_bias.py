"""Tests of the audit of bias: what a scorer affirms without a premise that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from hapax.evaluation.entailment.bias import (
    ATTESTED_PAIRS,
    FREQUENT,
    HYPOTHESIS_ONLY,
    RANDOM,
    UNATTESTED_PAIRS,
    WHOLE,
    AuditSetting,
    BiasAudit,
    audit,
    findings,
)
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.evaluation.entailment.perturbations import random_premises, swapped
from hapax.evaluation.entailment.scorers import VisibleSides

ENTAILED = {("killed", "harmed"), ("bought", "owned")}
PREDICATES = (*ENTAILED, ("met", "harmed"), ("saw", "owned"))


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the bootstrap's resamples: the planted effects are far larger than its noise."""
    monkeypatch.setattr("hapax.evaluation.entailment.metrics.RESAMPLES", 100)
    monkeypatch.setattr("hapax.evaluation.shared.estimates.RESAMPLES", 100)


@dataclass(frozen=True)
class Planted:
    """Scores a pair by a function of it."""

    judge: Callable[[EntailmentPair], float]
    name: str = "planted"
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [self.judge(pair) for pair in pairs]


def pairs() -> list[EntailmentPair]:
    """Twenty pairs of each couple of predicates, each about two entities of its own."""
    made = []
    for number in range(20):
        for premise, hypothesis in PREDICATES:
            who, whom = f"ann {number}", f"bob {number}"
            sides = Triple(who, premise, whom), Triple(who, hypothesis, whom)
            made.append(EntailmentPair(*sides, (premise, hypothesis) in ENTAILED))
    return made


def audited(judge: Callable[[EntailmentPair], float]) -> BiasAudit:
    return audit(Planted(judge), pairs(), AuditSetting(lambda texts: [-float(len(text)) for text in texts]))


def by_premise(pair: EntailmentPair) -> float:
    return float((pair.premise.predicate, pair.hypothesis.predicate) in ENTAILED)


def by_heart(pair: EntailmentPair) -> float:
    """A model that knows the hypotheses about every second entity, whatever the premise says."""
    return float(int(pair.hypothesis.subject.split()[-1]) % 2 == 0)


def test_a_scorer_that_reads_the_premise_affirms_nothing_without_it() -> None:
    """It affirms the true pairs, none with a random premise, and none by the hypothesis alone."""
    found = audited(by_premise)

    assert {name: found.by_name[name].affirmed.value for name in (WHOLE, RANDOM, HYPOTHESIS_ONLY, FREQUENT)} == {
        WHOLE: 0.5,
        RANDOM: 0.0,
        HYPOTHESIS_ONLY: 0.0,
        FREQUENT: 0.5,
    }
    assert found.by_name[RANDOM].against.value == -0.5
    assert any("hardly affirms it" in sentence for sentence in findings(found))


def test_a_scorer_that_knows_hypotheses_by_heart_is_told() -> None:
    """With random premises it affirms as much as before, and it affirms the hypotheses that it affirms alone."""
    found = audited(by_heart)

    assert found.by_name[RANDOM].affirmed.value == found.by_name[WHOLE].affirmed.value == 0.5
    assert found.by_name[ATTESTED_PAIRS].affirmed.value == 1.0
    assert found.by_name[UNATTESTED_PAIRS].affirmed.value == 0.0
    assert any("affirms what no premise supports" in sentence for sentence in findings(found))


def test_hypotheses_of_equal_scores_have_no_halves() -> None:
    """Where no hypothesis stands out alone, the note says so, and does not ask for scores that are there."""
    notes = [note for note in audited(by_premise).notes if note.startswith("attestation")]

    assert notes[-1] == "attestation: no hypothesis scores above the median, so there are no halves"
    assert not any("give their scores" in note for note in notes)


def test_a_random_premise_is_related_to_nothing() -> None:
    """The drawn predicate neither entails the hypothesis in the set nor follows from it, and the arguments stay."""
    given = pairs()

    for before, after in zip(given, random_premises(given, typed=False, seed=1), strict=True):
        assert after is not None
        assert (after.premise.predicate, before.hypothesis.predicate) not in PREDICATES
        assert (after.premise.subject, after.premise.object) == (before.premise.subject, before.premise.object)


def test_exchanged_entities_are_two_in_both_sides() -> None:
    """Premise and hypothesis get the same two new names; with one name only, a pair cannot be changed."""
    (first, *_) = pairs()

    (changed,) = swapped([first], {"": ["eve", "liz", "pat"]}, seed=0)
    assert changed is not None
    assert {changed.premise.subject, changed.premise.object} < {"eve", "liz", "pat"}
    assert (changed.premise.subject, changed.premise.object) == (changed.hypothesis.subject, changed.hypothesis.object)
    assert swapped([first], {"": ["eve"]}, seed=0) == [None]
