"""The grid of tables 7 to 10: its file and the file's faults, every cell filled, and going on after a stop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from papers_fixture import fault, notes, statements, told
from test_likelihoods import WORLD

import hapax

ROOT = Path(__file__).parents[3]
SMALL = """
files: [test.rules]
models: [{name: LINK, knowledge: "simulated:1"}]
temperatures: [0.7]
search: {beam: 10, calls: 1, values: 10}
baseline: false
evaluator: simulated:3
"""
GRID = (
    SMALL.replace("}]", '}, {name: LINK with another, knowledge: "simulated:2"}]')
    .replace("[0.7]", "[0.5, 0.7]")
    .replace("baseline: false", "baseline: {count: 10, values: 10, calls: 2}")
)
MODEL = "models: [{name: a, knowledge: embedded}]\n"
PRINTED: Mapping[str, Any] = {
    "8": ["w/o", "critic", "52.58", "52.08", "33.00"],
    "10": ["Zero-shot", "GPT4", "85.44", "88.42", "74.39"],
}
"""A line of each of two tables of the paper."""


def filled(folder: Path, text: str) -> Path:
    """A grid that never ran."""
    (folder / "test.rules").write_text(WORLD, "utf-8")
    (folder / "grid.yaml").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A grid that ran, and what its first run printed as JSON."""
    folder = filled(tmp_path_factory.mktemp("grid"), GRID)
    return folder, told(*grid(folder))


def grid(folder: Path) -> tuple[object, ...]:
    return ("evaluate", "grid", folder / "grid.yaml", "--db", folder / "grid.db")


def test_a_short_file_is_the_papers_grid(tmp_path: Path) -> None:
    """Without more than a model, variants, temperatures and the baseline are the paper's."""
    (tmp_path / "grid.yaml").write_text(MODEL, "utf-8")
    found = hapax.read_grid(tmp_path / "grid.yaml")

    assert list(found.variants) == ["full", "w/o critic", "w/o critic+likelihood"]
    assert found.temperatures == (0.5, 0.7, 1.0)
    assert found.baseline is not None
    assert (found.baseline.count, found.baseline.values, found.baseline.wordings) == (200, 50, (1,))
    assert [model.knowledge for model in hapax.read_grid(ROOT / "docs" / "papers" / "grid.yaml").models] == [
        "embedded",
        "simulated:7",
    ]


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (f"{MODEL}temperaturs: [0.5]", "temperaturs", "not permitted"),
        (f"{MODEL}temperatures: [0.5, hot]", "temperatures.1", "valid"),
        (f"{MODEL}temperatures: []", "temperatures", "at least one"),
        (f"{MODEL}variants: [full, without critic]", "variants.1", "w/o critic+likelihood"),
        (f"{MODEL}\nsearch:\n  beam: 0", "search.beam", "greater than"),
        (f"{MODEL}\nsearch:\n  temperature: 1", "search.temperature", "not permitted"),
        (f"{MODEL}baseline: {{wordings: [11]}}", "baseline.wordings.0", "equal to 10"),
        ("models: [{name: a}]", "models.0.knowledge", "required"),
        ("models:\n  - {name: a, knowledge: embedded}\n  - {name: a, knowledge: embedded}", "models", "name"),
        ("seed: 1", "models", "required"),
        ("models: &m [*m]", "models.0", "valid"),
    ],
)
def test_a_fault_of_the_file_is_told_with_its_key(tmp_path: Path, text: str, key: str, words: str) -> None:
    """Each fault names file, key, and what is wanted."""
    said = fault(*grid(filled(tmp_path, text)))

    assert f"grid.yaml: {key}" in said
    assert words in said


@pytest.mark.parametrize(
    "text", ["models: [", "a: !!python/object:os.system {}", "\0", "{[1]: 2}", "a: b: c", "[1]", ""]
)
def test_what_is_no_grid_is_refused(tmp_path: Path, text: str) -> None:
    """Broken or harmful YAML ends the command with exit code 1 and the way to an example; faults come all at once."""
    three = "models: [{name: 3, knowledge: embedded}]\nseeed: 1\njudge: [a]"

    assert "mapping" in fault(*grid(filled(tmp_path, text)))
    assert fault(*grid(filled(tmp_path, three))).count("grid.yaml:") == 3


def test_every_cell_is_filled(whole: tuple[Path, Any]) -> None:
    """Tables 7 to 10 have a figure in each cell, in the paper's layout; what they share runs once. Figures are of each
    cell's own statements: without the critic fewer are right, by the world that knows."""
    tables, cells = whole[1]["tables"], whole[1]["cells"]
    rows, columns = ["LINK", "    w/o critic", "    w/o critic+likelihood"], ("Data Type", "Factuality", "Overall")

    assert [row["Temperature"] for row in tables["7"]] == ["0.5", "0.7"]
    assert [row[""] for row in tables["8"]] == [*rows, "LINK with another", *rows[1:]]
    assert [row[""] for row in tables["9"]] == [row[""] for row in tables["8"]]
    zero_shot = ["Zero-shot simulated:1", "Zero-shot simulated:2"]
    assert [row[""] for row in tables["10"]] == [*zero_shot, "LINK", "LINK with another"]
    assert len(cells) == 9
    assert [row for rows in tables.values() for row in rows for name in columns if "of" not in row[name]] == []
    own = [cell for cell in cells if cell["model"]["name"] == "LINK" and cell["temperature"] == 0.7]
    right = {cell["variant"]: cell["accuracy"]["all"]["overall"] for cell in own}
    share = {variant: figures["right"] / figures["known"] for variant, figures in right.items()}
    assert share["full"] > share["w/o critic+likelihood"]
    assert {cell["accuracy"]["all"]["judge"] for cell in own} == {"the simulated world 1"}


def test_the_papers_figures_stand_apart_and_a_whole_grid_asks_nothing(whole: tuple[Path, Any]) -> None:
    """Each of its tables follows ours under its own name; the same command again sends no call."""
    folder, first = whole
    shown, again = run(*grid(folder)).stdout, told(*grid(folder))
    with hapax.KnowledgeBase(folder / "grid.db", read_only=True) as kb:
        assert kb.facts() == []

    for number, printed in PRINTED.items():
        _, _, theirs = shown.partition(f"LINK's paper, table {number}")
        assert printed in [line.split() for line in theirs.partition("\n\n")[0].splitlines()]
        assert printed[-1] not in json.dumps(first["tables"])
    assert sum(cell["calls"] for cell in again["cells"]) == 0
    assert again["tables"] == first["tables"]
    assert statements(folder / "grid.db")


def test_a_grid_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """A budget ends it with exit code 3 and no half figure; the same command asks only for what is missing."""
    folder = filled(tmp_path, SMALL)
    wanted = told("evaluate", "grid", folder / "grid.yaml", "--db", folder / "whole.db")
    allowed = wanted["cells"][0]["calls"] + 20
    cut = invoke(*grid(folder), "--json", "--max-calls", allowed)
    stopped, rest = json.loads(cut.stdout), told(*grid(folder))
    sent = [sum(cell["calls"] for cell in report["cells"]) for report in (stopped, rest, wanted)]

    assert cut.exit_code == 3
    assert all(cell["accuracy"] == {} for cell in stopped["cells"] if cell["outcome"] != "done")
    assert rest["tables"] == wanted["tables"]
    assert sent[0] <= allowed
    assert sent[0] + sent[1] == sent[2]


def test_a_cell_that_cannot_run_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    """An unknown model fails in its own cells; the rest is filled, and the exit code is 1."""
    broken = SMALL.replace("models: [", 'models: [{name: LINK with another, knowledge: "scripted:missing.json"}, ')
    result = invoke(*grid(filled(tmp_path, broken)), "--json")
    report = json.loads(result.stdout)
    failed = [cell for cell in report["cells"] if cell["failed"]]

    assert result.exit_code == 1
    assert {cell["model"]["name"] for cell in failed} == {"LINK with another"}
    assert "missing.json" in failed[0]["failed"]
    assert "missing.json" in notes(result)
    assert all(cell["outcome"] == "done" for cell in report["cells"] if cell not in failed)
    assert [row[""] for row in report["tables"]["10"]] == ["LINK with another", "LINK"]
