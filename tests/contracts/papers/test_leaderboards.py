"""`leaderboard`: models on one frozen dataset, with answers that are never asked for twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run
from papers_fixture import bring, fault, lines, script, search

import hapax


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    run("dataset", folder / "frozen", "--db", bring(folder / "kb.db"), "--format", "jsonl")
    return folder / "frozen"


@pytest.fixture
def frozen(written: Path, tmp_path: Path) -> Path:
    """A frozen dataset of five statements: two of the head, three of the long tail."""
    return Path(shutil.copytree(written, tmp_path / "frozen"))


def knowing(frozen: Path) -> str:
    """A model that answers all questions about head statements right, and none about the long tail."""
    critic = {}
    for distribution in ("head", "long_tail"):
        for row in lines(frozen / "jsonl" / f"probes-{distribution}.jsonl"):
            critic[row["question"]] = 0.9 if (row["label"] == 0) == (distribution == "head") else 0.1
    return script(frozen.parent / "knowing.json", yes=0.5, critic=critic)


def board(frozen: Path, *models: str, more: tuple[object, ...] = (), code: int = 0) -> Any:
    named = [word for model in models for word in ("-m", model)]
    result = run("leaderboard", frozen, "--db", frozen.parent / "answers.db", *named, "--json", *more, code=code)
    return json.loads(result.stdout)


def test_scores_are_shares_of_right_answers_by_split(frozen: Path) -> None:
    """A model that knows the head alone has 100 % there and 0 in the long tail; each two models are compared."""
    expert, constant = knowing(frozen), script(frozen.parent / "yes.json")
    figures = board(frozen, expert, constant)
    scores = {score["model"]: score for score in figures["models"]}
    heads = lines(frozen / "jsonl" / "probes-head.jsonl")
    share = sum(row["label"] == 0 for row in heads) / len(heads)

    assert [scores[expert][name]["value"] for name in ("head", "long_tail", "drop", "every_head")] == [1, 0, 1, 1]
    assert scores[constant]["head"]["value"] == pytest.approx(share)
    assert scores[constant]["every_head"]["value"] == 0
    assert (scores[constant]["constant"], scores[expert]["constant"]) == ("positive", None)
    assert figures["models"][0]["model"] == constant  # the best on the long tail comes first
    difference = next(pair for pair in figures["comparisons"] if pair["distribution"] == "head")
    assert difference["difference"]["value"] == pytest.approx(share - 1)
    assert figures["dataset"]["checksum"] == hapax.load_dataset(frozen).checksum


def test_every_statement_is_asked_13_questions_once(frozen: Path) -> None:
    """A budget gives exit code 3; afterwards only the missing questions are asked, and none twice."""
    model, answers = script(frozen.parent / "yes.json"), frozen.parent / "answers.db"
    partial = board(frozen, model, more=("--max-calls", 0), code=3)
    board(frozen, model)
    again = board(frozen, model, more=("--max-calls", 0))
    with hapax.KnowledgeBase(answers, read_only=True) as kb:
        assert kb.call_counts() == {"probe": 5 * 13}

    assert partial["models"][0]["statements"] == 0
    assert partial["models"][0]["stopped"]
    assert again["models"][0]["statements"] == 5


def test_the_ranker_of_a_dataset_is_circular(tmp_path: Path) -> None:
    """A model that ranked the dataset is marked, by the dataset's own metadata; another one is not."""
    search(tmp_path / "kb.db")
    run("dataset", tmp_path / "frozen", "--db", tmp_path / "kb.db", "--in-both", "keep", "--format", "jsonl")
    ranker, other = f"scripted:{tmp_path / 'script.json'}", script(tmp_path / "other.json")
    figures = board(tmp_path / "frozen", ranker, other)

    assert {score["model"]: score["circular"] for score in figures["models"]} == {ranker: True, other: False}


def test_the_page_escapes_and_needs_no_network(frozen: Path) -> None:
    """`--html` writes the tables; nothing in it is loaded from elsewhere, and the same is there from Python."""
    page, model = frozen.parent / "board.html", script(frozen.parent / "<b>yes.json")
    board(frozen, model, more=("--html", page))
    evaluation = hapax.leaderboard(frozen, hapax.LeaderboardOptions((model,)))
    text = page.read_text("utf-8")

    assert "&lt;b&gt;yes" in text
    assert "<b>" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert evaluation.value.html == text
    assert len(evaluation.tables[0].to_pandas()) == 1


def test_a_folder_without_a_dataset_and_an_unknown_model_are_refused(frozen: Path) -> None:
    """The message names what is missing; no model is asked before all are known."""
    model, answers = script(frozen.parent / "yes.json"), frozen.parent / "answers.db"

    assert "metadata.json" in fault("leaderboard", frozen.parent, "--db", answers)
    assert "nosuch" in fault("leaderboard", frozen, "-m", model, "-m", "nosuch", "--db", answers)
    with hapax.KnowledgeBase(answers) as kb:
        assert kb.call_counts() == {}
