"""Explicit induction: the mean over instances approaches what a model thinks of no argument in particular."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

import numpy as np

from hapax.evaluation.entailment.induction import InductionScorer, InstanceFinder, instantiated
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple

TRUTH = 0.3


def pair(subject: str, object_: str) -> EntailmentPair:
    premise, hypothesis = (Triple(subject, words, object_) for words in ("kills", "harms"))
    return EntailmentPair(premise, hypothesis, True)


def instances(count: int) -> InstanceFinder:
    def find(premises: Sequence[Triple]) -> Mapping[Triple, Sequence[tuple[str, str]]]:
        found = {}
        for premise in premises:
            numbers = [f"{premise.subject.split()[1]}{number:03}" for number in range(count)]
            found[premise] = [(f"drug {number}", f"germ {number}") for number in numbers]
        return found

    return find


DENIALS = ("It is not sure", "This does not mean", "The fact that", "Even if", "Just because")


def biased(texts: Sequence[str]) -> list[float]:
    """P(yes) of a model that also knows by heart what it has read of the arguments, for or against."""
    answers = []
    for text in texts:
        arguments = " ".join(re.findall(r"(?:cure|drug|plague|germ) \d+", text)[:2])
        known = random.Random(" ".join(sorted(arguments.split()))).uniform(-0.3, 0.3)
        answers.append(0.3 if any(words in text for words in DENIALS) else 0.3 + TRUTH + known)
    return answers


def test_the_estimate_approaches_the_truth_as_instances_grow() -> None:
    """A model that knows arguments by heart errs on every pair alone, and less and less in the mean of instances."""
    pairs = [pair(f"cure {number}", f"plague {number}") for number in range(20)]
    errors = []
    for count in (0, 4, 40):
        estimates = InductionScorer("induce", biased, instances(count)).estimates(pairs)
        assert {estimate.count for estimate in estimates} == {count + 1}
        errors.append(float(np.sqrt(np.mean([(estimate.value - TRUTH) ** 2 for estimate in estimates]))))

    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1
    assert errors[-1] < 0.04


def test_an_instance_keeps_what_the_premise_does_not_mention() -> None:
    """Arguments are replaced in premise and hypothesis, also where they are exchanged; others stay."""
    premise = Triple("Rome", "conquered", "Gaul")
    exchanged = EntailmentPair(premise, Triple("Gaul", "fell to", "Rome"), True)
    other = EntailmentPair(premise, Triple("Rome", "fought in", "Europe"), True)

    changed = instantiated(exchanged, ("Persia", "Media"))
    assert (changed.premise.sentence, changed.hypothesis.sentence) == ("Persia conquered Media", "Media fell to Persia")
    assert instantiated(other, ("Persia", "Media")).hypothesis.sentence == "Persia fought in Europe"
