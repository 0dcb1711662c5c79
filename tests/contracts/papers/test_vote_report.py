"""Counts of people's votes: majorities, agreement, the audit of facts, the human baseline, and shares by rule."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cli_fixture import invoke, run
from papers_fixture import bring, fault, fill_csv, fill_tasks, judge, notes, search, statements, told

import hapax

FOUR = {
    ("allergy", "head"): [("milk", "fondue"), ("milk", "toast"), ("milk", "gravel")],
    ("before", "longtail"): [("1876", "naan", "1900")],
}


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of three voters deny that toast follows and that gravel is a dish; of the long-tail one two disagree."""
    database = bring(tmp_path_factory.mktemp("voted") / "kb.db", FOUR)
    denied = {("toast", "entailment"): "no", ("gravel", "data type B"): "no"}
    judge(database, "v0", denied)
    judge(database, "v1", {**denied, ("naan", "entailment"): "no"})
    judge(database, "v2", {}, "statements", "--rule", "allergy")
    return database


@pytest.fixture(scope="module")
def counted(voted: Path) -> Any:
    """The report on these votes as JSON."""
    return report(voted)


@pytest.fixture(scope="module")
def shown(voted: Path) -> str:
    """The same as people read it."""
    return run("votes", "report", "--db", voted).stdout


@pytest.fixture
def four(tmp_path: Path) -> Path:
    return bring(tmp_path / "kb.db", FOUR)


def report(database: Path) -> Any:
    return told("votes", "report", "--db", database)


def shares(row: dict[str, Any]) -> list[tuple[float | None, int]]:
    return [(row[name]["value"], row[name]["count"]) for name in ("data_type", "factuality", "overall")]


def test_accuracy_counts_majorities_and_no_ties(counted: Any) -> None:
    """Tables 3 and 17: a tie is in neither share, and a statement is right if types and entailment are."""
    head, tail, both = counted["table_3"]
    domains = {row["group"]: row for row in counted["table_17"]}

    assert shares(head) == [(pytest.approx(2 / 3), 3), (pytest.approx(2 / 3), 3), (pytest.approx(1 / 3), 3)]
    assert shares(tail) == [(1, 1), (None, 0), (None, 0)]
    assert shares(both) == [(0.75, 4), (pytest.approx(2 / 3), 3), (pytest.approx(1 / 3), 3)]
    assert list(domains) == ["temporal", "outcomes and effects", "total"]
    assert shares(domains["total"]) == shares(both)
    assert [tie["questions"] for tie in counted["ties"]] == [["entailment"]]


@pytest.mark.parametrize("parts", [("data type B", "entailment"), ("entailment", "data type B")])
def test_one_wrong_part_is_enough(parts: tuple[str, str], four: Path) -> None:
    """A statement of which a majority denies one part is wrong, although votes on the other part are tied."""
    denied, tied = [("naan", part) for part in parts]
    judge(four, "v0", {denied: "no", tied: "no"})
    judge(four, "v1", {denied: "no"})
    _, tail, _ = report(four)["table_3"]

    assert sorted(shares(tail)[:2], key=str) == [(0, 1), (None, 0)]
    assert shares(tail)[2] == (0, 1)


def test_agreement_is_told_for_types_entailment_and_both(counted: Any) -> None:
    """Table 19 by hand: 7 1/3 of 8 pairs agree on types, 2 1/3 of 4 on entailment; alpha 1 - (n - 1) o / e."""
    found = counted["table_19"]

    assert {name: row["questions"] for name, row in found.items()} == {"data type": 8, "factuality": 4, "overall": 12}
    assert found["data type"]["percent"]["value"] == pytest.approx((7 + 1 / 3) / 8)
    assert found["factuality"]["percent"]["value"] == pytest.approx((2 + 1 / 3) / 4)
    # 8 yes and 3 no; of 22 ordered pairs within questions, weighted, 2 of toast and 2 of naan differ.
    assert found["factuality"]["krippendorff"]["value"] == pytest.approx(1 - 10 * (2 + 2) / (2 * 8 * 3))


def test_failures_join_rule_values_votes_and_proof(counted: Any, shown: str) -> None:
    """Table 20: what a majority denied, in the words that people were asked in."""
    toast = next(row for row in counted["failures"] if "toast" in row["conclusion"])

    assert (toast["rule"], toast["domain"], toast["distribution"]) == ("allergy", "outcomes and effects", "head")
    assert toast["values"] == {"X": "PersonX", "A": "milk", "B": "toast"}
    for line in (
        "Is milk an allergen? yes (3 yes, 0 no)",
        "Is gravel a dish? no (1 yes, 2 no)",
        "Does the premise entail the conclusion? no (1 yes, 2 no)",
        'is_made_from("toast", "milk")  [given]',
    ):
        assert line in shown
    assert counted["statements"]["found_wrong"] == len(counted["failures"]) == 2


def test_the_audit_counts_errors_by_fact_and_rightness_by_statement(four: Path) -> None:
    """Table 6: a statement is right if all questions about all its facts are; undecided ones have no say."""
    assert "hapax votes export" in fault("votes", "report", "--db", four)
    judge(four, "ann", {("Toast", "audit Q3"): "no"}, "predicates", "--draw-rules", 0)
    judge(four, "bob", {("Gravel", "audit Q1"): "no", ("Toast", "audit Q3"): "no"}, "predicates", "--draw-rules", 0)
    audit = report(four)["table_6"]
    errors = [(row["value"], row["count"]) for row in audit["errors"]]

    assert (audit["facts"], audit["ties"]) == (4, 1)
    assert errors == [(0, 3), (0, 4), (0.25, 4), (0, 4), (0, 4)]
    assert (audit["correct"]["head"]["value"], audit["correct"]["head"]["count"]) == (0.5, 2)


def test_people_who_judge_the_same_statements_see_how_far_they_agree(four: Path) -> None:
    """Also of sheets that only ask whether statements are true the report has the agreement, in text and in figures."""
    judge(four, "ann", {}, "soundness")
    alone = report(four)["agreement"]
    judge(four, "bob", {("Gravel", "soundness"): "facts"}, "soundness")
    found, shown = report(four)["agreement"], run("votes", "report", "--db", four).stdout

    assert alone["questions"] == 0
    assert (found["questions"], found["percent"]["value"]) == (4, 0.75)
    assert "Agreement on whether statements are true" in shown


def test_labels_that_link_turned_are_in_no_table(tmp_path: Path) -> None:
    """Only the noes of LINK's annotators are known, so they would make every figure worse. One mark of harm is enough,
    whatever others say."""
    (tmp_path / "lint").mkdir()
    flips = {"LINK": {"allergy": {"head": [0], "longtail": []}}}
    (tmp_path / "lint" / "flip_label_data.json").write_text(json.dumps(flips), "utf-8")
    database = bring(tmp_path / "kb.db", FOUR)
    for voter, harmful in (("ann", "no"), ("bob", "yes"), ("cy", "no")):
        judge(database, voter, {("toast", "harmful"): harmful})
    found = report(database)

    assert shares(found["table_3"][0]) == [(1, 3)] * 3
    assert any("LINK's annotators" in remark for remark in found["remarks"])
    assert found["statements"]["harmful"] == [next(i for t, i in statements(database).items() if "toast" in t)]


def test_people_are_measured_as_a_model_is(four: Path) -> None:
    """Table 4's human baseline: the majority and the single person against the labels that people's judgement gives."""
    judge(four, "ann", {("toast", "entailment"): "no", ("gravel", "data type B"): "no"})
    for voter in ("bob", "cy", "dee"):
        denied = ("toast", "naan", "fondue") if voter == "dee" else ("toast", "naan")
        asked = judge(four, voter, {(dish, "baseline 5"): "no" for dish in denied}, "baseline")
    found = report(four)["baseline"]
    kinds = ("majority", "one_person")
    totals = [(kind, row) for kind in kinds for row in found[kind] if row["domain"] == "total"]
    cells = {(kind, row["distribution"]): row for kind, row in totals}

    assert {row["asked"] for row in asked if "naan" in row["asked"]} == {
        "Premise: PersonX was in 1876. Conclusion: PersonX is not able to eat naan. Does premise entail conclusion?"
    }
    assert "gravel" not in str(asked)  # its type is wrong
    assert (cells["majority", "head"]["statements"], cells["majority", "head"]["all"]["value"]) == (2, 1)
    assert cells["majority", "long_tail"]["all"]["value"] == 0
    assert cells["one_person", "head"]["accuracy"]["value"] == pytest.approx((2 / 3 + 1) / 2)


# Soundness


def test_shares_of_true_statements_by_rule_mark_those_below_the_bar(tmp_path: Path) -> None:
    """Answers on a sheet give shares by rule and over rules; `check` and the dataset's card name a rule below the bar.
    A draw is even over rules, and a larger one holds the smaller."""
    values = {
        ("allergy", "head"): [("milk", f"dish {number}") for number in range(20)],
        ("cook", "longtail"): [("milk", f"rare {number}") for number in range(4)],
    }
    database, drawn = bring(tmp_path / "kb.db", values), []
    for size in (6, 8):
        folder = tmp_path / f"sheets{size}"
        run("votes", "export", "soundness", "--out", folder, "--voter", "ann", "--sample", size, "--db", database)
        drawn.append(set(re.findall("(?:dish|rare) [0-9]+", (folder / "soundness-ann.csv").read_text("utf-8-sig"))))
    judge(database, "ann", {("rare", "soundness"): "rule"}, "soundness")
    found = told("evaluate", "soundness", "--db", database)["rules"]
    checked = invoke("check", tmp_path / "kitchen.rules", "--db", database)
    run("data", "dataset", tmp_path / "set", "--db", database, "--judged", "keep", "--format", "hf")
    card = (tmp_path / "set" / "README.md").read_text("utf-8")

    assert drawn[0] < drawn[1]
    assert [sum("rare" in name for name in names) for names in drawn] == [3, 4]
    assert [len(names) for names in drawn] == [6, 8]
    assert (found["allergy"]["share"]["value"], found["cook"]["share"]["value"]) == (1, 0)
    assert found["cook"]["counts"]["reasons"] == {"rule": 4}
    assert "HPX416" in checked.output
    assert "cook" in checked.output
    assert "| cook | 0.00 (0.0 to 49.0) | 4 |" in card
    assert "| allergy |" not in card.partition("## How many statements are right")[2]


# Derived statements

ROADS = """
given road(Place, Place): "a road leads from [1] to [2]" / "no road leads from [1] to [2]" / "does a road lead there?"
given reaches(Place, Place): "[2] can be reached from [1]" / "[2] cannot be reached from [1]" / "can it be reached?"
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
road(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
"""

STATED = ("--rule", "step", "--rule", "further")


@pytest.fixture
def roads(tmp_path: Path) -> Path:
    """Ten derived statements, and no search."""
    (tmp_path / "roads.rules").write_text(ROADS, "utf-8")
    (tmp_path / "roads.csv").write_text("".join(f"road,{a},{b}\n" for a, b in ("ab", "bc", "cd", "de")), "utf-8")
    run("import", tmp_path / "roads.csv", "--rules", tmp_path / "roads.rules", "--db", tmp_path / "kb.db")
    run("derive", tmp_path / "roads.rules", *STATED, "--db", tmp_path / "kb.db")
    return tmp_path / "kb.db"


def given(database: Path, command: tuple[object, ...], sheet: Path) -> set[str]:
    """Have a sheet written, say yes to all on it and import it; the items that it asks about."""
    run(*command, "--db", database, "--out", sheet.parent, "--format", "csv", "--voter", sheet.stem.partition("-")[2])
    asked = set(re.findall("(?:statement|fact):[0-9a-f]+", sheet.read_text("utf-8-sig")))
    run("votes", "import", fill_csv(sheet, lambda _: "yes"), "--db", database)
    return asked


def test_a_sheet_of_derived_statements_is_drawn_imported_and_counted(roads: Path) -> None:
    """Derived statements are asked about with their facts in words, and the report counts votes by rule. Facts and
    distributions are no part of their draw, and after a new fact `derive` comes first."""
    asked = judge(roads, "ann", {("", "soundness"): "rule"}, "soundness", "--derived", "--rule", "step")
    judge(roads, "ann", {}, "soundness", "--derived", "--rule", "further")
    judged = {row["rule"]: (row["right"], row["wrong"]) for row in report(roads)["derived"]}
    export = ("votes", "export", "--db", roads, "--out", roads.parent / "out")

    assert judged == {"step": (0, 4), "further": (6, 0)}
    texts = [row["text"] for row in asked if " b can be reached from a" in row["text"]]
    assert all("Fact: A road leads from a to b." in text for text in texts)
    assert "soundness" in fault(*export, "predicates", "--derived", "--draw-rules", 0)
    assert "no run" in fault(*export, "statements", "--derived", "--run", "a")
    assert "neither" in fault(*export, "statements", "--derived", "--head", 1, "--long-tail", 1)
    assert "--derived" in fault(*export, "statements")
    (roads.parent / "more.csv").write_text("road,e,f\n", "utf-8")
    run("import", roads.parent / "more.csv", "--rules", roads.parent / "roads.rules", "--db", roads)
    assert "hapax derive" in fault("votes", "next", 3, "statements", "--derived", "--db", roads)


def test_votes_on_derived_statements_follow_changes_of_facts(roads: Path) -> None:
    """A judged statement that facts no longer support leaves the report, and comes back with its fact and its vote;
    when some are judged, `votes next --derived` asks about others and estimates the share of true ones."""
    command, rules, counts = ("votes", "next", 4, "statements", "--derived"), roads.parent / "roads.rules", []
    asked = [given(roads, command, roads.parent / voter / f"soundness-{voter}.csv") for voter in ("ann", "bob")]
    left = told(*command, "--db", roads, "--out", roads.parent / "cem")
    judge(roads, "dee", {}, "soundness", "--derived")
    for more in (("--reason", "wrong"), ("--undo",)):
        run("data", "retract", 'road("d", "e")', *more, "--db", roads, "--rules", rules)
        run("derive", rules, *STATED, "--db", roads)
        counts.append(sum(row["right"] for row in report(roads)["derived"]))

    assert [len(items) for items in asked] == [4, 4]
    assert asked[0].isdisjoint(asked[1])
    assert {key: left[key] for key in ("items", "pool", "judged")} == {"items": 2, "pool": 10, "judged": 8}
    assert left["true"][0] == 1.0
    assert counts == [6, 10]


# The next items to judge


def test_next_items_come_on_a_sheet_and_are_not_asked_twice(tmp_path: Path) -> None:
    """Facts or statements of a search come in the order of one draw; when all are judged one line says so."""
    database = tmp_path / "kb.db"
    search(database)
    for kind, stem in (("statements", "soundness"), ("facts", "predicates")):
        sheets = [tmp_path / f"{kind}-{voter}" / f"{stem}-{voter}.csv" for voter in ("ann", "bob", "cem")]
        first = given(database, ("votes", "next", 3, kind), sheets[0])
        second = given(database, ("votes", "next", 100, kind), sheets[1])
        rest = run("votes", "next", 100, kind, "--db", database, "--out", sheets[2].parent)
        assert first.isdisjoint(second)
        assert f"{kind} of the draw are judged: 100.0" in notes(rest)
        assert not sheets[2].parent.exists()
    run("report", "--db", database, "-o", tmp_path / "report.html")
    assert "Of all facts of the draw by" in (tmp_path / "report.html").read_text("utf-8")
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        assert len({vote.statement_id for vote in kb.votes()}) > 3


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
def vote_sheets_database(brought: Path, tmp_path: Path) -> Path:
    """Six statements of each distribution."""
    shutil.copy(brought, tmp_path / "kb.db")
    return tmp_path / "kb.db"


def export(
    vote_sheets_database: Path, *options: object, kind: str = "statements", out: str = "sheets", voter: str = "ann"
) -> Path:
    """The folder of exported sheets; of all items unless the options say otherwise."""
    sample = () if "--sample" in options else ("--sample", 0)
    folder = vote_sheets_database.parent / out
    run("votes", "export", kind, "--voter", voter, *sample, "--out", folder, "--db", vote_sheets_database, *options)
    return folder


def sheet(vote_sheets_database: Path, *options: object, **more: str) -> Path:
    """Ann's sheet as CSV."""
    (path,) = export(vote_sheets_database, *options, **more).glob("*-ann.csv")
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


def refused(vote_sheets_database: Path, *paths: Path) -> str:
    """The message of an import that stores nothing."""
    said = fault("votes", "import", *paths, "--db", vote_sheets_database)
    with hapax.KnowledgeBase(vote_sheets_database, read_only=True) as kb:
        assert kb.votes() == []
    return said


# What is drawn and asked


def test_larger_samples_hold_the_smaller(vote_sheets_database: Path) -> None:
    """A uniform sample only grows, another seed draws others, and the same command writes the same bytes. Head and long
    tail can be drawn apart."""
    drawn = [set(items(sheet(vote_sheets_database, "--sample", size, out=f"s{size}"))) for size in (3, 7, 12)]
    other = set(items(sheet(vote_sheets_database, "--sample", 3, "--seed", 1, out="other")))

    assert drawn[0] < drawn[1] < drawn[2]
    assert [len(ids) for ids in drawn] == [3, 7, 12]
    assert other != drawn[0]
    with hapax.KnowledgeBase(vote_sheets_database, read_only=True) as kb:
        ends = {f"statement:{statement.id}": statement.distribution.value for statement in kb.statements()}
    both = items(sheet(vote_sheets_database, "--head", 4, "--long-tail", 3, out="both"))
    assert Counter(ends[item] for item in both) == {"head": 4, "long_tail": 3}
    assert sheet(vote_sheets_database, out="again").read_bytes() == sheet(vote_sheets_database, out="once").read_bytes()


def test_statements_are_asked_about_as_in_figure_14(vote_sheets_database: Path) -> None:
    """Data types of the values that the statement names, entailment, and a mark of harm that may stay open."""
    rows = [row for row in cells(sheet(vote_sheets_database)) if "eat dish 3" in row["text"]]
    text = "Premise: PersonX is allergic to milk. Conclusion: PersonX is not able to eat dish 3."

    assert {row["text"] for row in rows} == {text}
    assert [(row["question"], row["asked"]) for row in rows[:-1]] == [
        ("data type A", "Is milk an allergen?"),
        ("data type B", "Is dish 3 a dish?"),
        ("entailment", "Does the premise entail the conclusion?"),
    ]
    assert rows[-1]["question"] == "harmful"


def test_facts_are_asked_about_as_in_appendix_c(vote_sheets_database: Path) -> None:
    """Each fact between two searched values has Q1 to Q5; an audit draws rules before their statements."""
    rows = cells(sheet(vote_sheets_database, "--draw-rules", 0, kind="predicates"))
    asked = [(row["question"], row["asked"]) for row in rows if row["text"] == "Statement: Dish 3 is made from milk."]
    one_rule = cells(sheet(vote_sheets_database, "--draw-rules", 1, kind="predicates", out="one"))

    claim = "Dish 3 is made from milk."
    assert asked == [
        ("audit Q1", f"Does “dish 3” in the Statement “{claim}” have a clear reference?"),
        ("audit Q2", f"Does “milk” in the Statement “{claim}” have a clear reference?"),
        ("audit Q3", f"Is the Statement “{claim}” factually correct, with very high probability?"),
        ("audit Q4", "Is the Statement “Dish 3 is a dish.” factually correct, with very high probability?"),
        ("audit Q5", "Is the Statement “Milk is an allergen.” factually correct, with very high probability?"),
    ]
    assert len({row["item"] for row in one_rule if row["section"] == "item"}) == 6


def test_a_baseline_asks_about_what_people_judged(vote_sheets_database: Path) -> None:
    """Of judged statements those of right types, in the wording of template 5; `--new` leaves out what was voted on."""
    judge(vote_sheets_database, "ann", {("dish 2", "data type B"): "no"}, "statements", "--rule", "allergy")
    asked = cells(sheet(vote_sheets_database, kind="baseline"))
    rows = [row for row in asked if row["section"] == "item"]
    premise, conclusion = "PersonX is allergic to milk", "PersonX is not able to eat dish 1"

    assert len({row["item"] for row in rows}) == 5
    assert [(row["question"], row["choices"], row["asked"]) for row in rows if "dish 1" in row["asked"]] == [
        ("baseline 5", "yes / no", f"Premise: {premise}. Conclusion: {conclusion}. Does premise entail conclusion?"),
    ]
    new = {row["text"] for row in cells(sheet(vote_sheets_database, "--new", out="rest")) if row["section"] == "item"}
    assert len(new) == 6
    assert all("can cook" in text for text in new)


# Files


def test_voters_have_the_same_items_in_orders_of_their_own(vote_sheets_database: Path) -> None:
    """No sheet has a word on rule or distribution; `--per-sheet` shares the items out."""
    folder = export(vote_sheets_database, "--voter", "bob", "--voter", "cy", "--format", "csv")
    orders = [items(path) for path in sorted(folder.glob("*.csv"))]
    parts = sorted(export(vote_sheets_database, "--per-sheet", 5, "--format", "csv", out="parts").glob("*.csv"))

    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1
    assert not re.search("head|long.tail|allergy,|cook,", (folder / "statements-ann.csv").read_text("utf-8-sig"))
    assert [path.name for path in parts] == [f"statements-part-{number}-ann.csv" for number in (1, 2, 3)]
    assert sorted(item for path in parts for item in items(path)) == sorted(orders[0])


def test_label_studio_shows_text_question_and_answers(vote_sheets_database: Path) -> None:
    """Its configuration names fields of the tasks, and has the sheet's instructions; no right answer is in either."""
    folder = export(vote_sheets_database, "--format", "json")
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
    vote_sheets_database = bring(tmp_path / "kb.db", {("allergy", "head"): hostile})
    table = sheet(vote_sheets_database)
    given: dict[str, str] = {}

    def answer(row: dict[str, str]) -> str:
        if row["question"] != "entailment":
            return yes(row)
        return given.setdefault(row["item"].partition(":")[2], "no" if len(given) % 2 else "yes")

    assert not [cell for row in cells(table) for cell in row.values() if re.match(r"[=+\-@\t\r\n]", cell)]
    assert "\u202e" not in table.read_text("utf-8-sig")
    source = table if fill is fill_csv else table.with_suffix(".json")
    run("votes", "import", fill(source, answer), "--db", vote_sheets_database)
    with hapax.KnowledgeBase(vote_sheets_database, read_only=True) as kb:
        votes = {vote.statement_id: vote.answer for vote in kb.votes() if vote.question == "entailment"}
    assert votes == given
    assert len(votes) == len(HOSTILE)


# Faults


def test_all_faults_are_told_at_once_with_their_lines(vote_sheets_database: Path) -> None:
    """Strange and missing answers, changed rows and lost ones; nothing is stored. The same sheet as CSV and as JSON, or
    a voter without a name, is refused, too."""
    path = fill_csv(sheet(vote_sheets_database), yes)
    saved = fill_tasks(path.with_suffix(".json"), yes)
    assert "ann already answered" in refused(vote_sheets_database, path, saved)
    rows = cells(path)
    first = next(place for place, row in enumerate(rows) if row["section"] == "item")
    rows[first]["answer"] = "maybe"
    rows[first + 1]["answer"] = " "
    rows[first + 2]["asked"] += " Surely?"
    del rows[first + 3]
    said = refused(vote_sheets_database, rewrite(path, rows))

    for place in range(2, 5):
        assert f"statements-ann.csv:{first + place}: " in said
    for words in ("'maybe'", "no answer", "changed", f"{rows[first]['sheet']} not found", "--skip-faulty"):
        assert words in said
    assert "names no voter" in refused(
        vote_sheets_database, fill_csv(sheet(vote_sheets_database, out="more"), yes, voter=" ")
    )


def test_votes_on_what_is_not_there_are_refused(vote_sheets_database: Path, tmp_path: Path) -> None:
    """A sheet of another knowledge base, or a mistyped --db, is not counted for this one."""
    path = fill_csv(sheet(vote_sheets_database), yes)
    other = bring(tmp_path / "other.db", {("allergy", "head"): [("milk", "naan")]}, lint="other")

    assert "is not in this knowledge base" in refused(other, path)
    assert "no such knowledge base" in fault("votes", "import", path, "--db", tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()


def test_who_fails_the_qualification_does_not_count(vote_sheets_database: Path) -> None:
    """One wrong answer refuses the sheet as a whole, and so do rows without it; --skip-faulty imports the others."""
    folder = export(vote_sheets_database, "--voter", "bob", "--format", "csv")
    ann, bob = (fill_csv(folder / f"statements-{voter}.csv", yes) for voter in ("ann", "bob"))
    whole = cells(ann)
    rows = [dict(row) for row in whole]
    next(row for row in rows if row["section"] == "qualification")["answer"] = "no"
    assert "ann failed the qualification, by 1 of 9 questions" in refused(vote_sheets_database, rewrite(ann, rows), bob)
    whole[-2]["voter"] = "somebody"
    assert "somebody has no rows of the qualification" in refused(vote_sheets_database, rewrite(ann, whole), bob)
    run("votes", "import", rewrite(ann, rows), bob, "--skip-faulty", "--db", vote_sheets_database)

    with hapax.KnowledgeBase(vote_sheets_database, read_only=True) as kb:
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
        (b'[{"data": {"rows": 9999999999, "row": [1]}}]', "names no voter"),
        (b'[{"data": {}, "annotations": [{"result": [{"from_name": "answer"}]}]}]', "not a task"),
        (b"{" * 50_000, "JSON"),
    ],
)
def test_what_is_no_sheet_is_refused(content: bytes, words: str, vote_sheets_database: Path) -> None:
    """Other files are told by name, and never with a traceback."""
    path = vote_sheets_database.parent / "sheet.csv"
    path.write_bytes(content)

    assert words in refused(vote_sheets_database, path)


def test_importing_twice_changes_nothing_and_a_changed_vote_is_told(vote_sheets_database: Path) -> None:
    """A second import is all known, also from a spreadsheet that wrote semicolons, capitals and an empty row; a voter's
    other answer replaces the first."""
    path = fill_csv(sheet(vote_sheets_database, "--sample", 2), yes)
    rows, command = cells(path), ("votes", "import", path, "--db", vote_sheets_database)
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
