"""Counts of people's votes: majorities, agreement, the audit of facts, the human baseline, and shares by rule."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from papers_fixture import bring, fault, judge, notes, script, search, statements, told
from votes_fixture import fill_csv

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
    assert found["factuality"]["unanimous"]["value"] == 0.5


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
        asked = judge(four, voter, {(dish, "baseline 5"): "no" for dish in denied}, "baseline", "--template", 5)
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
        run("evaluate", "soundness", "--out", folder, "--voter", "ann", "--sample", size, "--db", database)
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


def test_a_model_judges_and_is_not_asked_twice(tmp_path: Path) -> None:
    """Answers of a model are stored as votes, which people outweigh; a budget ends it, and the next call goes on."""
    database = bring(tmp_path / "kb.db", FOUR)
    judging = ("evaluate", "soundness", "--db", database, "-m", script(tmp_path / "no.json", yes=0.1), "--json")
    stopped, first, again = (invoke(*judging, *more) for more in (("--max-calls", 1), (), ("--max-calls", 0)))
    judge(database, "ann", {}, "soundness")
    after = told("evaluate", "soundness", "--db", database)

    assert [result.exit_code for result in (stopped, first, again)] == [3, 0, 0]
    assert json.loads(first.stdout)["rules"]["allergy"]["share"]["value"] == 0
    assert again.stdout == first.stdout
    assert after["rules"]["allergy"]["share"]["value"] == 1
    assert "--out" in fault("evaluate", "soundness", "--out", tmp_path, "-m", "simulated", "--db", database, code=2)


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
    assert "distribution" in fault(*export, "statements", "--derived", "--head", 1, "--long-tail", 1)
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
