"""Methods that answer by likelihood, proofs beside a model, and the association of reversed schemas."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import winograd_fixture as fixture
from cli_fixture import invoke
from hypothesis import given
from hypothesis import strategies as st

from hapax.evaluation.winograd.hybrid import ConfidentAnswer, combined, risk_curve, risks
from hapax.evaluation.winograd.likelihoods import QUESTION
from hapax.evaluation.winograd.runs import StoredRun, stored_runs
from hapax.kb.store import KnowledgeBase

HEAD = "The van overtook the bus because it was so "
BEGINNINGS = {"van": -5, "bus": -20}
"""Log-likelihood of the sentence up to the option: the van is the common one."""
ENDINGS = {("van", "fast"): -4, ("bus", "fast"): -8, ("van", "slow"): -5, ("bus", "slow"): -5.5}
"""Of the words behind it: a van is likelier in both sentences, but less so where it is slow."""
ALONE = {"The van.": -2, "The bus.": -18}


def likelihoods() -> dict[str, float]:
    scores: dict[str, float] = dict(ALONE)
    for name, beginning in BEGINNINGS.items():
        scores[f"The van overtook the bus because the {name}"] = beginning
    for (name, quality), ending in ENDINGS.items():
        scores[f"The van overtook the bus because the {name} was so {quality}."] = BEGINNINGS[name] + ending
    for quality, right in (("fast", 0), ("slow", 1)):
        for order in ((0, 1), (1, 0)):
            options = [("The van", "The bus")[place] for place in order]
            for number in (1, 2):
                text = QUESTION.format(
                    text=f"{HEAD}{quality}.", pronoun="it", first=options[0], second=options[1], number=number
                )
                # The model prefers the first position by 3 nats, and the right option by 1.
                scores[text] = -10 + 3 * (number == 1) + (order[number - 1] == right)
    return scores


def vans(folder: Path) -> tuple[Path, str]:
    """A pair about vans and buses, and a model that scores its texts."""
    path = folder / "vans.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("text", "pronoun", "entity1", "entity2", "label"))
        writer.writerow((f"{HEAD}fast.", "it", "The van", "The bus", 0))
        writer.writerow((f"{HEAD}slow.", "it", "The van", "The bus", 1))
    return path, fixture.scripted(folder / "m.json", {"likelihood": likelihoods()})


def ask(folder: Path, *more: str) -> list[dict[str, Any]]:
    path, model = vans(folder)
    words = ("evaluate", "winograd", "ask", str(path), "-m", model, "--db", str(folder / "w.db"), "--json", *more)
    result = invoke(*words)
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("method", "answers"),
    [
        ("likelihood", [0, 0]),
        # -9 + 2 against -28 + 18 where it is fast, -10 + 2 against -25.5 + 18 where it is slow
        ("likelihood-pmi", [0, 1]),
        ("likelihood-partial", [0, 0]),
        ("likelihood-choice", [0, 1]),
    ],
)
def test_each_score_answers_as_computed_by_hand(tmp_path: Path, method: str, answers: list[int]) -> None:
    """Each method of likelihood chooses the options that its formula gives, and the position of an option decides nothing."""
    ask(tmp_path, "--method", method)

    with KnowledgeBase(tmp_path / "w.db") as kb:
        (run,) = stored_runs(kb)
    assert [answer.strict for answer in run.answers] == answers


def test_the_sentences_of_a_pair_can_be_answered_together(tmp_path: Path) -> None:
    """Pair-consistent answers are the likelier of the two ways, and are stored apart from the others."""
    (single,) = ask(tmp_path, "--method", "likelihood")
    (pair,) = ask(tmp_path, "--method", "likelihood", "--pair-consistent")

    assert (single["strict"]["pair"]["value"], pair["strict"]["pair"]["value"]) == (0.0, 1.0)
    assert (single["consistent"], pair["consistent"]) == (False, True)
    with KnowledgeBase(tmp_path / "w.db") as kb:
        runs = stored_runs(kb)
    assert [run.label for run in runs] == ["likelihood", "likelihood, pair-consistent"]
    # 19 nats for the van where it is fast, 15.5 where it is slow: half of the difference for each sentence.
    assert runs[1].margins == {"vans:0": pytest.approx(1.75), "vans:1": pytest.approx(1.75)}


def test_sentences_with_different_options_are_answered_one_by_one(tmp_path: Path) -> None:
    """Rows without a common pair of options, as in PDP, are no schema, so neither answer depends on the other."""
    _, model = vans(tmp_path)
    path, database = tmp_path / "neighbours.jsonl", str(tmp_path / "w.db")
    rows = [
        {"text": f"{HEAD}fast.", "pronoun": "it", "options": ["The van", "The bus"], "label": 0, "pair": "a"},
        {"text": f"{HEAD}slow.", "pronoun": "it", "options": ["The bus", "The van"], "label": 0, "pair": "a"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ("ask", str(path), "-m", model, "--method", "likelihood", "--pair-consistent", "--db", database)
    assert invoke("evaluate", "winograd", *words).exit_code == 0

    with KnowledgeBase(tmp_path / "w.db") as kb:
        (run,) = stored_runs(kb)
    # The van is likelier in both sentences.
    assert [answer.strict for answer in run.answers] == [0, 1]


def test_pair_consistency_needs_a_score(tmp_path: Path) -> None:
    """`--pair-consistent` without a method that scores is refused with the methods that do."""
    path, model = vans(tmp_path)
    result = invoke("evaluate", "winograd", "ask", str(path), "-m", model, "--pair-consistent")

    assert result.exit_code == 1
    assert "likelihood-partial" in result.stderr


def test_risk_at_each_coverage_is_that_counted_by_hand() -> None:
    """The most confident answers come first, and ties share their errors."""
    assert risks([3, 2, 1, 1], [False, True, True, False]) == pytest.approx([0, 1 / 2, 1.5 / 3, 2 / 4])

    curve = risk_curve("model", "set", [ConfidentAnswer("f", 2, True), ConfidentAnswer("g", 1, False)])
    assert curve.curve == ((0.5, 0.0), (1.0, 0.5))
    assert (curve.aurc.value, curve.accuracy_at(0.5), curve.accuracy_at(1.0)) == (0.25, 1.0, 0.5)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=20))
def test_the_last_risk_is_the_error_rate(answers: list[tuple[int, bool]]) -> None:
    """Whatever the confidences, the risk of all answers is the share of wrong ones, and no risk leaves 0 to 1."""
    found = risks([confidence for confidence, _ in answers], [wrong for _, wrong in answers])

    assert found[-1] == pytest.approx(sum(wrong for _, wrong in answers) / len(answers))
    assert all(-1e-9 <= risk <= 1 + 1e-9 for risk in found)


def test_a_proof_decides_and_comes_first(tmp_path: Path) -> None:
    """A proved answer replaces the model's and is the most confident; other sentences keep the model's answer."""
    ask(tmp_path, "--method", "likelihood")
    with KnowledgeBase(tmp_path / "w.db") as kb:
        runs: list[StoredRun] = stored_runs(kb)
    from hapax.evaluation.winograd.files import read_items

    alone, hybrid = combined(read_items(tmp_path / "vans.csv"), {"vans:1": 1}, runs, "patterns")

    assert (alone.accuracy.value, hybrid.accuracy.value) == (0.5, 1.0)
    assert (alone.proved.value, hybrid.proved.value) == (0.0, 0.5)
    assert hybrid.answered_by == f"{alone.answered_by} + patterns"


def test_hybrid_from_the_command_line(tmp_path: Path) -> None:
    """The command reads stored answers, and says how to get some where there are none."""
    ask(tmp_path, "--method", "likelihood")
    words = ("evaluate", "winograd", "hybrid", str(tmp_path / "vans.csv"), "--method", "patterns")
    result = invoke(*words, "--db", str(tmp_path / "w.db"), "--json")
    other = fixture.write(tmp_path / "plain.csv", fixture.PLAIN)
    missing = invoke(*words[:3], str(other), *words[4:], "--db", str(tmp_path / "w.db"))

    assert result.exit_code == 0, result.stderr
    assert [curve["source"] for curve in json.loads(result.stdout)] == ["vans", "vans"]
    assert missing.exit_code == 1
    assert "hapax evaluate winograd ask FILE -m MODEL --method likelihood" in missing.stderr


@pytest.mark.parametrize(("bonus", "verdict", "separates"), [(4, "can gate", True), (0, "cannot gate", False)])
def test_association_says_if_a_model_can_gate(tmp_path: Path, bonus: int, verdict: str, separates: bool) -> None:
    """A model that goes by association tells reversed pairs from their sources; one that does not is said to be useless."""
    scores = {"The fish.": -5, "The worm.": -5}
    for name, quality in (("fish", "hungry"), ("worm", "hungry"), ("fish", "tasty"), ("worm", "tasty")):
        associated = (name, quality) in {("fish", "hungry"), ("worm", "tasty")}
        scores[f"The {name} was {quality}."] = -10 + bonus * associated
    model = fixture.scripted(tmp_path / "m.json", {"likelihood": scores})
    words = ("evaluate", "winograd", "association", str(fixture.annotated(tmp_path / "wsc.csv")), "-m", model)

    result = invoke(*words, "--db", str(tmp_path / "w.db"))
    figures = json.loads(invoke(*words, "--db", str(tmp_path / "w.db"), "--json").stdout)

    assert result.exit_code == 0, result.stderr
    assert verdict in " ".join(result.stdout.split())
    assert figures["separates"] is separates
    assert figures["auc"]["value"] == (1.0 if bonus else 0.5)


def test_association_needs_a_clause_with_the_pronoun(tmp_path: Path) -> None:
    """Reversed pairs without a pronoun in any clause cannot be measured, which is said instead of failing."""
    path = fixture.annotated(tmp_path / "wsc.csv")
    path.write_text(path.read_text("utf-8").replace("It was", "This was"), "utf-8")
    model = fixture.scripted(tmp_path / "m.json", {"likelihood": likelihoods()})

    result = invoke("evaluate", "winograd", "association", str(path), "-m", model, "--db", str(tmp_path / "w.db"))

    assert result.exit_code == 1
    assert "no clause of a pair of CR-WSC-H has its pronoun" in " ".join(result.stderr.split())


def test_cases_of_two_methods_that_score(tmp_path: Path) -> None:
    """Two methods without wordings stand side by side, each with the options that its scores chose."""
    ask(tmp_path, "--method", "likelihood", "--method", "likelihood-partial")
    words = ("evaluate", "winograd", "cases", str(tmp_path / "vans.csv"), "--db", str(tmp_path / "w.db"))
    result = invoke(*words, "--first", "likelihood", "--second", "likelihood-partial", "--json")

    assert result.exit_code == 0, result.stderr
    (case,) = json.loads(result.stdout)
    assert [(method["method"], method["right"]) for method in case["methods"]] == [
        ("likelihood", False),
        ("likelihood-partial", False),
    ]
    assert case["methods"][0]["reply"] == "The van, by 19.000 nats\nThe van, by 15.500 nats"
    assert case["failures"] == []


def test_association_needs_reversed_pairs(tmp_path: Path) -> None:
    """A file without reversed pairs is refused with the file that has them."""
    path, model = vans(tmp_path)
    result = invoke("evaluate", "winograd", "association", str(path), "-m", model, "--db", str(tmp_path / "w.db"))

    assert result.exit_code == 1
    assert "Give the annotated WSC file" in " ".join(result.stderr.split())
