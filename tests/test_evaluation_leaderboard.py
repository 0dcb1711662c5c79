"""`leaderboard`: models on one frozen dataset, with tests that know clusters, and answers that are never asked twice."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from test_evaluation_dataset import fill, lines

import hapax
from hapax.engine.run_memory import identities_of
from hapax.evaluation.dataset.frozen import metadata_checksum
from hapax.evaluation.link.probing.templates import TEMPLATES
from hapax.evaluation.shared.estimates import adjusted, signed_rank_test
from hapax.kb.records import RunRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.circularity import is_circular

STATEMENTS = 5
"""Statements of the frozen kitchen: two of the head, three of the long tail; fondue was in both."""


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """A frozen dataset of five statements, ranked by the model `writer`."""
    with KnowledgeBase(tmp_path / "kitchen.db") as kb:
        fill(kb)
    assert invoke("dataset", tmp_path / "frozen", "--db", tmp_path / "kitchen.db", "--format", "jsonl").exit_code == 0
    return tmp_path / "frozen"


def script(folder: Path, name: str, yes: bool) -> str:
    """A model that gives the same answer to every question."""
    answers = {"generate": {}, "defaults": {"generate": "Yes", "critic": 0.9 if yes else 0.1, "likelihood": -9.0}}
    (folder / f"{name}.json").write_text(json.dumps(answers), encoding="utf-8")
    return f"scripted:{folder / name}.json"


def knowing(folder: Path, frozen: Path) -> str:
    """A model that answers all questions about head statements right, and none about the long tail."""
    critic = {}
    for distribution in ("head", "long_tail"):
        for row in lines(frozen / "jsonl" / f"probes-{distribution}.jsonl"):
            critic[row["question"]] = 0.9 if (row["label"] == 0) == (distribution == "head") else 0.1
    defaults = {"generate": "Yes", "critic": 0.5, "likelihood": -9.0}
    (folder / "knowing.json").write_text(json.dumps({"critic": critic, "defaults": defaults}), encoding="utf-8")
    return f"scripted:{folder / 'knowing.json'}"


def board(frozen: Path, *models: str, more: tuple[str, ...] = ()) -> Any:
    named = [word for model in models for word in ("-m", model)]
    result = invoke("leaderboard", frozen, "--db", frozen.parent / "answers.db", *named, "--json", *more)
    assert result.stdout, result.stderr
    return json.loads(result.stdout), result


def test_scores_are_shares_of_right_answers_by_split(frozen: Path) -> None:
    """A model that knows the head alone has 100 % there, 0 in the long tail, and beats a constant answer on the head."""
    expert = knowing(frozen.parent, frozen)
    figures, result = board(frozen, expert, script(frozen.parent, "yes", yes=True))
    by_model = {score["model"]: score for score in figures["models"]}
    known, constant = by_model[expert], by_model[script(frozen.parent, "yes", yes=True)]
    positive = {row["label"] for row in lines(frozen / "jsonl" / "probes-head.jsonl")}
    heads = lines(frozen / "jsonl" / "probes-head.jsonl")
    share = sum(row["label"] == 0 for row in heads) / len(heads)

    assert result.exit_code == 0, result.output
    assert positive == {0, 1}
    assert (known["head"]["value"], known["long_tail"]["value"], known["drop"]["value"]) == (1, 0, 1)
    assert known["every_head"]["value"] == 1
    assert constant["head"]["value"] == pytest.approx(share)
    assert constant["every_head"]["value"] == 0
    assert (constant["constant"], known["constant"]) == ("positive", None)
    assert figures["models"][0]["model"] == constant["model"]  # the best on the long tail comes first
    difference = next(pair for pair in figures["comparisons"] if pair["distribution"] == "head")
    assert difference["difference"]["value"] == pytest.approx(share - 1)
    assert figures["dataset"]["checksum"] == hapax.load_dataset(frozen).checksum


@pytest.mark.smollm2
@pytest.mark.timeout(900)
def test_three_models_are_compared_on_one_dataset(frozen: Path) -> None:
    """The embedded model, SmolLM2 and a script answer all questions about all statements, and each two are compared."""
    models = ("embedded", "smollm2", script(frozen.parent, "yes", yes=True))
    figures, result = board(frozen, *models)

    assert result.exit_code == 0, result.output
    assert {score["model"]: score["statements"] for score in figures["models"]} == dict.fromkeys(models, 5)
    assert len(figures["comparisons"]) == 6


def test_a_budget_ends_it_and_the_journal_resumes_it(frozen: Path) -> None:
    """A budget gives exit code 3 and says what was asked; afterwards only the missing questions are asked."""
    model = script(frozen.parent, "yes", yes=True)
    partial, stopped = board(frozen, model, more=("--max-calls", "0"))
    _, whole = board(frozen, model)
    again, free = board(frozen, model, more=("--max-calls", "0"))

    assert (stopped.exit_code, partial["models"][0]["statements"]) == (3, 0)
    assert partial["models"][0]["stopped"]
    assert (whole.exit_code, free.exit_code) == (0, 0)
    assert again["models"][0]["statements"] == STATEMENTS


def test_the_ranker_of_a_dataset_is_circular(frozen: Path) -> None:
    """A model that ranked the dataset is marked, by the dataset's own metadata."""
    metadata = json.loads((frozen / "metadata.json").read_text("utf-8"))
    model = script(frozen.parent, "yes", yes=True)
    metadata["rankers"] = [
        {"name": "pupil", "taught_by": [f"scripted/{frozen.parent / 'yes.json'}", "scripted/yes.json"]}
    ]
    metadata["metadata_checksum"] = metadata_checksum(metadata)
    (frozen / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    figures, result = board(frozen, model, script(frozen.parent, "no", yes=False))

    assert {score["model"]: score["circular"] for score in figures["models"]} == {
        model: True,
        script(frozen.parent, "no", yes=False): False,
    }
    assert "*: circular" in result.stderr


def test_the_page_escapes_and_needs_no_network(frozen: Path) -> None:
    """`--html` writes the tables; nothing in it is loaded from elsewhere, and the same is there from Python."""
    page = frozen.parent / "board.html"
    model = script(frozen.parent, "<b>yes", yes=True)
    board(frozen, model, more=("--html", str(page)))
    evaluation = hapax.leaderboard(frozen, hapax.LeaderboardOptions((model,)))

    assert "&lt;b&gt;yes" in page.read_text("utf-8")
    assert "<b>" not in page.read_text("utf-8")
    assert "http" not in page.read_text("utf-8").replace("http-equiv", "")
    assert evaluation.value.html == page.read_text("utf-8")
    assert len(evaluation.value.scores) == 1
    assert evaluation.tables[0].to_pandas().shape[0] == 1


def test_a_model_that_cannot_be_asked_stops_it_before_any_question(frozen: Path) -> None:
    """Nothing is asked if one of the models is unknown."""
    result = invoke(
        "leaderboard",
        frozen,
        "--db",
        frozen.parent / "answers.db",
        "-m",
        script(frozen.parent, "yes", yes=True),
        "-m",
        "?",
    )
    with KnowledgeBase(frozen.parent / "answers.db") as kb:
        calls = kb.call_counts()

    assert result.exit_code == 1
    assert "Unknown model '?'" in result.stderr
    assert not calls


def test_a_folder_without_a_dataset_is_refused(tmp_path: Path) -> None:
    """The message names what is missing and the command that writes a dataset."""
    result = invoke("leaderboard", tmp_path, "--db", tmp_path / "answers.db")

    assert result.exit_code == 1
    assert "there is no dataset (metadata.json is missing)" in " ".join(result.stderr.split())


def test_runs_without_teachers_know_those_of_the_embedded_model() -> None:
    """A run records who taught its models; for an earlier one, the embedded model's folder says it."""
    names = ["embedded@1", "embedded@1", "mine@2", "frequency"]
    run = RunRecord("run", "search", {"models": names, "likelihood": "model"}, "run", "2026-01-01T00:00:00+00:00")
    later = replace(run, settings={**run.settings, "taught_by": {"mine@2": ["frequency"]}})
    judge = identities_of(run)["evaluator"]

    assert identities_of(run)["knowledge"].taught_by == ("frequency",)
    assert is_circular(judge, identities_of(run)["knowledge"])
    assert not is_circular(judge, identities_of(run)["likelihood"])
    assert is_circular(judge, identities_of(later)["likelihood"])


def test_the_card_warns_of_a_circular_judge(tmp_path: Path) -> None:
    """Delta by a judge that taught the ranker is marked on the card."""
    with KnowledgeBase(tmp_path / "kitchen.db") as kb:
        fill(kb)
        names = ["writer@1", "judge@2", "writer@1", "counter@3"]
        settings = {"models": names, "likelihood": "model", "critic": True, "taught_by": {"writer@1": ["counter"]}}
        kb.start_run(RunRecord("run", "search", settings, "run", "2026-01-01T00:00:00+00:00"))
    invoke("dataset", tmp_path / "out", "--db", tmp_path / "kitchen.db", "--format", "hf")

    assert "**Circular:** counter ranked these statements, taught" in (tmp_path / "out" / "README.md").read_text(
        "utf-8"
    )


def test_signed_rank_tests_by_hand() -> None:
    """Six differences of one sign have p = 2 / 2**6; equal pairs differ in nothing; adjusted p-values keep their order."""
    assert signed_rank_test([1, 2, 3, 4, 5, 6], [0] * 6) == pytest.approx(2 / 2**6)
    assert signed_rank_test([0, 0], [0, 0]) == 1
    assert math.isnan(signed_rank_test([], []))
    assert adjusted([0.04, float("nan"), 0.01]) == pytest.approx([0.04, float("nan"), 0.02], nan_ok=True)


def test_every_statement_is_asked_all_questions(frozen: Path) -> None:
    """13 questions about each statement of the dataset, neither more nor fewer."""
    model = script(frozen.parent, "yes", yes=True)
    board(frozen, model)
    with KnowledgeBase(frozen.parent / "answers.db") as kb:
        assert kb.call_counts() == {"probe": STATEMENTS * len(TEMPLATES)}
