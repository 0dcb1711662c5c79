"""Tests of explicit induction: pairs judged by instances that a search finds for their premises."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from cli_fixture import invoke

import hapax
from hapax.evaluation.entailment.induction import InductionScorer, InstanceFinder, instantiated
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple

TRUTH = 0.3
"""P(yes) of an entailment less that of its denial, by a model that knows no argument."""


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
"""Words of the antipatterns alone."""


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
    pairs = [pair(f"cure {number}", f"plague {number}") for number in range(40)]
    errors = []
    for count in (0, 4, 40, 400):
        estimates = InductionScorer("induce", biased, instances(count)).estimates(pairs)
        assert {estimate.count for estimate in estimates} == {count + 1}
        errors.append(float(np.sqrt(np.mean([(estimate.value - TRUTH) ** 2 for estimate in estimates]))))

    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1
    assert errors[-1] < 0.02


def test_an_instance_keeps_what_the_premise_does_not_mention() -> None:
    """Arguments are replaced in premise and hypothesis, also where they are exchanged; others stay."""
    premise = Triple("Rome", "conquered", "Gaul")
    exchanged = EntailmentPair(premise, Triple("Gaul", "fell to", "Rome"), True)
    other = EntailmentPair(premise, Triple("Rome", "fought in", "Europe"), True)

    changed = instantiated(exchanged, ("Persia", "Media"))
    assert (changed.premise.sentence, changed.hypothesis.sentence) == ("Persia conquered Media", "Media fell to Persia")
    assert instantiated(other, ("Persia", "Media")).hypothesis.sentence == "Persia fought in Europe"


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    """Two typed pairs, and a model that knows a few drugs and diseases."""
    lines = [
        "(treat.1,treat.2) aspirin::medicine fever::disease\t(cure.1,cure.2) aspirin::medicine fever::disease\tTrue",
        "(cure.1,cure.2) aspirin::medicine fever::disease\t(treat.1,treat.2) aspirin::medicine fever::disease\tFalse",
    ]
    pairs = tmp_path / "pairs_rels.txt"
    pairs.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script = {
        "generate": {"cure [Y]": ["quinine", "penicillin"], "treat [Y]": ["quinine"]},
        "defaults": {"generate": ["malaria", "scurvy", "fever"], "critic": 0.8},
    }
    (tmp_path / "model.json").write_text(json.dumps(script), encoding="utf-8")
    return pairs


def score(pairs: Path, *more: str):
    model = f"scripted:{pairs.parent / 'model.json'}"
    return invoke(
        *("evaluate", "entailment", "score", str(pairs), "-m", model, "--no-twin", "--json"),
        *("--db", str(pairs.parent / "kb.db"), *more),
    )


def test_instances_are_searched_by_type_and_asked_once(typed: Path) -> None:
    """The arguments' types are asked for, a second run sends nothing, and no fact of the search is kept."""
    first = score(typed, "--scorer", "induce")
    assert first.exit_code == 0, first.output
    with hapax.KnowledgeBase(typed.parent / "kb.db") as kb:
        asked = set(kb.calls())
        prompts = [json.dumps(call.request) for call in kb.calls().values() if call.role == "knowledge"]
        assert any("medicine" in prompt for prompt in prompts)
        assert any("disease" in prompt for prompt in prompts)
        assert any("malaria" in json.dumps(call.request) for call in kb.calls().values() if call.role == "critic")
        assert list(kb.facts()) == []
        assert list(kb.statements()) == []
    assert "no instance" not in first.output

    second = score(typed, "--scorer", "induce")

    assert json.loads(second.stdout) == json.loads(first.stdout)
    with hapax.KnowledgeBase(typed.parent / "kb.db") as kb:
        assert set(kb.calls()) == asked


def test_premises_without_instances_are_counted(typed: Path) -> None:
    """A pair whose premise has no instance is judged by itself alone, and a note says how many premises these are."""
    script = {"defaults": {"generate": [], "critic": 0.8}}
    (typed.parent / "model.json").write_text(json.dumps(script), encoding="utf-8")

    result = score(typed, "--scorer", "induce")

    assert result.exit_code == 0, result.output
    assert "no instance was found for 2 of 2 premises" in " ".join(result.output.split())


def test_the_embedded_model_may_have_no_instance(typed: Path) -> None:
    """The default model is asked in the words that it is trained on, and knows few predicates."""
    result = invoke(
        *("evaluate", "entailment", "score", str(typed), "--scorer", "induce", "--no-twin"),
        *("--db", str(typed.parent / "kb.db")),
    )

    assert result.exit_code == 0, result.output
    assert "no instance was found" in " ".join(result.output.split())


def test_one_end_can_be_asked_for(typed: Path) -> None:
    """`induce:head` and `induce:long_tail` are scorers of one end; another name is refused with these."""
    both = score(typed, "--scorer", "induce:head", "--scorer", "induce:long_tail", "--instances", "2")
    refused = score(typed, "--scorer", "induce:middle")

    assert both.exit_code == 0, both.output
    assert refused.exit_code == 2
    assert "induce:head or induce:long_tail" in refused.stderr
