"""Sheets for people: what is drawn and asked, that nothing on them can hurt, and that every fault is found on return."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from cli_fixture import run
from papers_fixture import bring, fault, judge, lines, notes, script
from votes_fixture import fill_csv, fill_tasks

import hapax

SIX = {
    ("allergy", "head"): [("milk", f"dish {number}") for number in range(6)],
    ("cook", "longtail"): [("milk", f"rare dish {number}") for number in range(6)],
}
HOSTILE = (
    "</script><script>alert(1)</script>",
    '=HYPERLINK("http://x")',
    "@SUM(1)",
    "abc\u202edef",
    '" onmouseover="alert(1)',
    "<!--<script>",
    "{{ 7*7 }}{% raw %}",
    "'=1+1",
)


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bring(tmp_path_factory.mktemp("sheets") / "kb.db", SIX)


@pytest.fixture
def database(brought: Path, tmp_path: Path) -> Path:
    """Six statements of each distribution."""
    shutil.copy(brought, tmp_path / "kb.db")
    return tmp_path / "kb.db"


def export(database: Path, *options: object, kind: str = "statements", out: str = "sheets", voter: str = "ann") -> Path:
    """The folder of exported sheets; of all items unless the options say otherwise."""
    sample = () if {"--head", "--sample"} & set(options) else ("--sample", 0)
    folder = database.parent / out
    run("votes", "export", kind, "--voter", voter, *sample, "--out", folder, "--db", database, *options)
    return folder


def sheet(database: Path, *options: object, **more: str) -> Path:
    """Ann's sheet as CSV."""
    (path,) = export(database, *options, **more).glob("*-ann.csv")
    return path


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def rewrite(path: Path, rows: list[dict[str, str]], **options: str) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), **options)  # type: ignore[arg-type]
        writer.writeheader()
        writer.writerows(rows)
    return path


def items(path: Path) -> list[str]:
    return list(dict.fromkeys(row["item"] for row in cells(path) if row["section"] == "item"))


def yes(row: dict[str, str]) -> str:
    return "" if row["question"] == "harmful" else "yes"


def refused(database: Path, *paths: Path) -> str:
    """The message of an import that stores nothing."""
    said = fault("votes", "import", *paths, "--db", database)
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        assert kb.votes() == []
    return said


# What is drawn and asked


def test_larger_samples_hold_the_smaller(database: Path) -> None:
    """A uniform sample only grows, another seed draws others, and the same command writes the same bytes. Head and long
    tail can be drawn apart; a probing with the same seed draws the same statements."""
    drawn = [set(items(sheet(database, "--sample", size, out=f"s{size}"))) for size in (3, 7, 12)]
    other = set(items(sheet(database, "--sample", 3, "--seed", 1, out="other")))
    both = items(sheet(database, "--head", 4, "--long-tail", 4, out="both"))
    model, answers = script(database.parent / "s.json"), database.parent / "answers.jsonl"
    run("evaluate", "probe", "-m", model, "--sample", 4, "--db", database, "-o", answers)

    assert drawn[0] < drawn[1] < drawn[2]
    assert [len(ids) for ids in drawn] == [3, 7, 12]
    assert other != drawn[0]
    assert sheet(database, out="again").read_bytes() == sheet(database, out="once").read_bytes()
    assert set(both) == {f"statement:{row['statement']}" for row in lines(answers)}
    assert len(both) == 8


def test_statements_are_asked_about_as_in_figure_14(database: Path) -> None:
    """Data types of the values that the statement names, entailment, and a mark of harm that may stay open."""
    rows = [row for row in cells(sheet(database)) if "eat dish 3" in row["text"]]
    text = "Premise: PersonX is allergic to milk. Conclusion: PersonX is not able to eat dish 3."

    assert {row["text"] for row in rows} == {text}
    assert [(row["question"], row["asked"]) for row in rows[:-1]] == [
        ("data type A", "Is milk an allergen?"),
        ("data type B", "Is dish 3 a dish?"),
        ("entailment", "Does the premise entail the conclusion?"),
    ]
    assert rows[-1]["question"] == "harmful"


def test_facts_are_asked_about_as_in_appendix_c(database: Path) -> None:
    """Each fact between two searched values has Q1 to Q5; an audit draws rules before their statements."""
    rows = cells(sheet(database, "--draw-rules", 0, kind="predicates"))
    asked = [(row["question"], row["asked"]) for row in rows if row["text"] == "Statement: Dish 3 is made from milk."]
    one_rule = cells(sheet(database, "--draw-rules", 1, kind="predicates", out="one"))

    claim = "Dish 3 is made from milk."
    assert asked == [
        ("audit Q1", f"Does “dish 3” in the Statement “{claim}” have a clear reference?"),
        ("audit Q2", f"Does “milk” in the Statement “{claim}” have a clear reference?"),
        ("audit Q3", f"Is the Statement “{claim}” factually correct, with very high probability?"),
        ("audit Q4", "Is the Statement “Dish 3 is a dish.” factually correct, with very high probability?"),
        ("audit Q5", "Is the Statement “Milk is an allergen.” factually correct, with very high probability?"),
    ]
    assert len({row["item"] for row in one_rule if row["section"] == "item"}) == 6


def test_a_baseline_asks_templates_of_what_people_judged(database: Path) -> None:
    """Of judged statements those of right types, in the wordings and with the answers of the templates; `--new` leaves
    out what was voted on."""
    judge(database, "ann", {("dish 2", "data type B"): "no"}, "statements", "--rule", "allergy")
    asked = cells(sheet(database, "--template", 3, "--template", 5, kind="baseline"))
    rows = [row for row in asked if row["section"] == "item"]
    premise, conclusion = "PersonX is allergic to milk", "PersonX is not able to eat dish 1"

    assert len({row["item"] for row in rows}) == 5
    assert [(row["question"], row["choices"], row["asked"]) for row in rows if "dish 1" in row["asked"]] == [
        ("baseline 3", "true / false", f"True or false: if {premise}, {conclusion}."),
        ("baseline 5", "yes / no", f"Premise: {premise}. Conclusion: {conclusion}. Does premise entail conclusion?"),
    ]
    new = {row["text"] for row in cells(sheet(database, "--new", out="rest")) if row["section"] == "item"}
    assert len(new) == 6
    assert all("can cook" in text for text in new)


# Files


def test_voters_have_the_same_items_in_orders_of_their_own(database: Path) -> None:
    """No sheet has a word on rule or distribution; `--per-sheet` shares the items out."""
    folder = export(database, "--voter", "bob", "--voter", "cy", "--format", "csv")
    orders = [items(path) for path in sorted(folder.glob("*.csv"))]
    parts = sorted(export(database, "--per-sheet", 5, "--format", "csv", out="parts").glob("*.csv"))

    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1
    assert not re.search("head|long.tail|allergy,|cook,", (folder / "statements-ann.csv").read_text("utf-8-sig"))
    assert [path.name for path in parts] == [f"statements-part-{number}-ann.csv" for number in (1, 2, 3)]
    assert sorted(item for path in parts for item in items(path)) == sorted(orders[0])


def test_label_studio_shows_text_question_and_answers(database: Path) -> None:
    """Its configuration names fields of the tasks, and has the sheet's instructions; no right answer is in either."""
    folder = export(database, "--format", "json")
    tasks = [task["data"] for task in json.loads((folder / "statements-ann.json").read_text("utf-8"))]
    view = ET.fromstring((folder / "statements-label-studio.xml").read_text("utf-8"))  # noqa: S314  our own
    shown = {element.get("value", "")[1:] for element in view if element.get("value", "").startswith("$")}

    assert shown == {"text", "asked", "choices"}
    assert shown <= tasks[0].keys()
    assert "answer" not in tasks[0]
    assert [choice["value"] for choice in tasks[0]["choices"]] == ["yes", "no"]
    assert len(view.findall("Header")) > 3


@pytest.mark.parametrize("fill", [fill_csv, fill_tasks])
def test_hostile_texts_stay_texts_and_come_back(tmp_path: Path, fill: Callable[..., Path]) -> None:
    """Formulas, markup and reversed text change nothing of a sheet, and votes on them are those filled in."""
    hostile = [("milk", text.replace('"', '""')) for text in HOSTILE]
    database = bring(tmp_path / "kb.db", {("allergy", "head"): hostile})
    table = sheet(database)
    given: dict[str, str] = {}

    def answer(row: dict[str, str]) -> str:
        if row["question"] != "entailment":
            return yes(row)
        return given.setdefault(row["item"].partition(":")[2], "no" if len(given) % 2 else "yes")

    assert not [cell for row in cells(table) for cell in row.values() if re.match(r"[=+\-@\t\r\n]", cell)]
    assert "\u202e" not in table.read_text("utf-8-sig")
    source = table if fill is fill_csv else table.with_suffix(".json")
    run("votes", "import", fill(source, answer), "--db", database)
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        votes = {vote.statement_id: vote.answer for vote in kb.votes() if vote.question == "entailment"}
    assert votes == given
    assert len(votes) == len(HOSTILE)


# Faults


def test_all_faults_are_told_at_once_with_their_lines(database: Path) -> None:
    """Strange and missing answers, changed rows and lost ones; nothing is stored. The same sheet as CSV and as JSON, or
    a voter without a name, is refused, too."""
    path = fill_csv(sheet(database), yes)
    saved = fill_tasks(path.with_suffix(".json"), yes)
    assert "ann already answered" in refused(database, path, saved)
    rows = cells(path)
    first = next(place for place, row in enumerate(rows) if row["section"] == "item")
    rows[first]["answer"] = "maybe"
    rows[first + 1]["answer"] = " "
    rows[first + 2]["asked"] += " Surely?"
    del rows[first + 3]
    said = refused(database, rewrite(path, rows))

    for place in range(2, 5):
        assert f"statements-ann.csv:{first + place}: " in said
    for words in ("'maybe'", "no answer", "changed", f"{rows[first]['sheet']} not found", "--skip-faulty"):
        assert words in said
    assert "names no voter" in refused(database, fill_csv(sheet(database, out="more"), yes, voter=" "))


def test_votes_on_what_is_not_there_are_refused(database: Path, tmp_path: Path) -> None:
    """A sheet of another knowledge base, or a mistyped --db, is not counted for this one."""
    path = fill_csv(sheet(database), yes)
    other = bring(tmp_path / "other.db", {("allergy", "head"): [("milk", "naan")]}, lint="other")

    assert "is not in this knowledge base" in refused(other, path)
    assert "no such knowledge base" in fault("votes", "import", path, "--db", tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()


def test_who_fails_the_qualification_does_not_count(database: Path) -> None:
    """One wrong answer refuses the sheet as a whole, and so do rows without it; --skip-faulty imports the others."""
    folder = export(database, "--voter", "bob", "--format", "csv")
    ann, bob = (fill_csv(folder / f"statements-{voter}.csv", yes) for voter in ("ann", "bob"))
    whole = cells(ann)
    rows = [dict(row) for row in whole]
    next(row for row in rows if row["section"] == "qualification")["answer"] = "no"
    assert "ann failed the qualification, by 1 of 9 questions" in refused(database, rewrite(ann, rows), bob)
    whole[-2]["voter"] = "somebody"
    assert "somebody has no rows of the qualification" in refused(database, rewrite(ann, whole), bob)
    run("votes", "import", rewrite(ann, rows), bob, "--skip-faulty", "--db", database)

    with hapax.KnowledgeBase(database, read_only=True) as kb:
        assert {vote.voter for vote in kb.votes()} == {"bob"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"a,b\n1,2\n", "column 'sheet'"),
        (b"", "column 'sheet'"),
        (b"<!doctype html>\n<html></html>", "column 'sheet'"),
        (b'{"format": "other"}', "not a task"),
        (b"[1]", "not a task"),
        (b"[]", "no rows"),
        (b'[{"data": {"rows": 9999999999, "row": [1]}}]', "changed"),
        (b'[{"data": {}, "annotations": [{"result": [{"from_name": "answer"}]}]}]', "not a task"),
        (b"{" * 50_000, "JSON"),
    ],
)
def test_what_is_no_sheet_is_refused(content: bytes, words: str, database: Path) -> None:
    """Other files are told by name, and never with a traceback."""
    path = database.parent / "sheet.csv"
    path.write_bytes(content)

    assert words in refused(database, path)


def test_importing_twice_changes_nothing_and_a_changed_vote_is_told(database: Path) -> None:
    """A second import is all known, also from a spreadsheet that wrote semicolons, capitals and an empty row; a voter's
    other answer replaces the first."""
    path = fill_csv(sheet(database, "--sample", 2), yes)
    rows, command = cells(path), ("votes", "import", path, "--db", database)
    first = notes(run(*command))
    capitals = [{**row, "answer": row["answer"].upper()} for row in rows]
    rewrite(path, [*capitals, dict.fromkeys(rows[0], "")], delimiter=";")
    again = notes(run(*command))
    fill_csv(rewrite(path, rows), lambda row: yes(row) and "no")
    changed = notes(run(*command))

    assert "6 new, 0 known, 0 replaced" in first
    assert "0 new, 6 known, 0 replaced" in again
    assert "0 new, 0 known, 6 replaced" in changed
    assert changed.count("ann changed yes to no") == 6
