"""LINK's dataset LINT: its CSV files become statements, which are counted, probed and explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run
from lint_fixture import FILES, RULES
from papers_fixture import fault, lines, notes, statements, told

import hapax


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lint").mkdir()
    for name, text in FILES.items():
        (tmp_path / "lint" / name).write_text(text, "utf-8")
    (tmp_path / "rules.json").write_text(json.dumps(RULES), "utf-8")
    return tmp_path


IMPORT = ("evaluate", "lint", "lint", "--rules", "rules.json", "--db", "lint.db")


def test_csvs_become_statements(folder: Path) -> None:
    """Each distinct complete row is a statement in LINK's words, with its year as a number and underscores as blanks."""
    said = notes(run(*IMPORT))
    with hapax.KnowledgeBase("lint.db", read_only=True) as kb:
        (theremin,) = kb.statements(rule="rule7", distribution=hapax.Distribution.LONG_TAIL)

    assert set(statements(folder / "lint.db")) == {
        "If PersonX is allergic to dairy, then PersonX is not able to eat mashed potatoes.",
        "If PersonX is allergic to gluten, then PersonX is not able to eat bread.",
        "If PersonX was born in Roman Empire, then PersonX could not use tractor.",
        "If PersonX is allergic to dairy, then PersonX is not able to eat mysore pak.",
        "If PersonX is allergic to gluten, then PersonX is not able to eat tofu, fried.",
        "If PersonX was born in Hittite Empire, then PersonX could not use theremin.",
    }
    assert dict(theremin.substitution) == {"P": "PersonX", "B": "Hittite Empire", "A": "theremin", "Y": 1920}
    assert "1 repeated row and 1 row with an empty cell; people flipped 1 label" in said


def test_import_counts_as_table_16_and_measures_delta(folder: Path) -> None:
    """Rules and statements by domain, and how much likelier the head is; a second import changes nothing."""
    first, second = run(*IMPORT, "--json"), run(*IMPORT, "--json")
    counts = json.loads(first.stdout)["table_16"]

    assert [(count["domain"], count["rules"], count["head"], count["long_tail"]) for count in counts] == [
        ("temporal", 1, 1, 1),
        ("outcomes and effects", 1, 2, 2),
        ("total", 2, 3, 3),
    ]
    assert all(count["delta"] > 0 for count in counts)
    assert json.loads(first.stdout)["rules_about_persons"] == 2
    assert "2 of LINT's 417 rules: 2 of its 149 about persons and 0 of its 268 about objects" in notes(first)
    assert "of its 54,220 head statements" in notes(first)
    assert "of its 54,366 long-tail statements" in notes(first)
    assert second.stdout == first.stdout
    assert len(statements(folder / "lint.db")) == 6


def test_imported_statements_are_probed_with_turned_labels_and_explained(folder: Path) -> None:
    """The probing takes LINK's turned labels and needs no rule file; `why` shows what LINT states. `--flips` and
    `--method` name a file and a method whose labels people turned."""
    run(*IMPORT)
    command = ("evaluate", "probe", "-m", "simulated:1", "--sample", 0, "--db", "lint.db", "-o", "answers.jsonl")
    said = notes(run(*command))
    labels = {row["question"]: row["label"] for row in lines(folder / "answers.jsonl")}
    ghee = next(identity for text, identity in statements(folder / "lint.db").items() if "mysore pak" in text)
    story = run("why", ghee, "--db", "lint.db").stdout
    (folder / "flips.json").write_text(json.dumps({"GPT4": {"rule7": {"head": [0], "longtail": [0]}}}), "utf-8")

    assert "flipped 1 label" in said
    tractor = "Answer the question with yes or no: if PersonX was born in Roman Empire, could PersonX use tractor?"
    assert tractor in labels
    asked = "Is it true that if PersonX is allergic to {}, PersonX is not able to eat {}."
    assert labels[asked.format("gluten", "bread")] == "No"
    assert labels[asked.format("dairy", "mysore pak")] == "Yes"
    assert "ghee" in story
    assert "given" in story
    assert told(*IMPORT, "--flips", "flips.json", "--method", "GPT4")["labels_turned"] == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rule2_value_cache.csv_head", "P,A,B\nPersonX,dairy,bread\n", ("column Z", "rule2")),
        ("rule99_value_cache.csv_head", "P,A\nPersonX,dairy\n", ("rule99",)),
        ("rule2_value_cache.csv_head", 'P,A,Z,B\nPersonX,"dairy\n', ("CSV", "UTF-8")),
        ("flip_label_data.json", "[]", ("flip_label_data.json", "flipped labels")),
        ("flip_label_data.json", '{"LINK": {"rule2": {"head": [7]}}}', ("row 7",)),
        ("flip_label_data.json", '{"LINK": {"rule2": {"head": [Infinity]}}}', ("flipped labels",)),
    ],
)
def test_faulty_files_are_told_and_nothing_is_stored(
    folder: Path, name: str, text: str, words: tuple[str, ...]
) -> None:
    """Place and fact; the knowledge base stays as it was. So does a folder that holds none of LINT's files."""
    (folder / "lint" / name).write_text(text, "utf-8")
    said = fault(*IMPORT)
    (folder / "empty").mkdir(exist_ok=True)

    assert "rule2_value_cache.csv_head" in fault("evaluate", "lint", "empty", *IMPORT[3:])
    assert [word for word in words if word not in said] == []
    assert not (folder / "lint.db").exists()
