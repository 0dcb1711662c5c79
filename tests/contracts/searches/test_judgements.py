"""Judgements of people, and counts of what gates decided."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run
from money_fixture import RULES, VALUES
from papers_fixture import fill_csv
from served import serving

import hapax

# --- judgements -------------------------------------------------------------------------------------------------------


NOBODY = "Nobody has judged these statements"
DERIVED = """
given parent(Person, Person): "[1] is a parent of [2]" / "[1] is no parent of [2]"
given child(Person, Person): "[1] is a child of [2]" / "[1] is no child of [2]"
@name turned
@generic none
parent(Person A, Person B) -> child(Person B, Person A)
"""


@pytest.fixture(autouse=True)
def _folder(database: Path, searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has `kb.db`, the statements of a search: some of one city each."""
    monkeypatch.chdir(database.parent)
    Path("script.json").write_bytes(searched.with_name("script.json").read_bytes())


def sentence(row: Mapping[str, Any]) -> str:
    return f"If {row['premise']}, then {row['conclusion']}."


def rows(folder: Path) -> list[dict[str, Any]]:
    """The statements of a dataset, by distribution and text."""
    found = []
    for path in sorted(folder.glob("jsonl/statements-*.jsonl")):
        found += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return found


def dataset(name: str, *options: str) -> tuple[list[dict[str, Any]], dict[str, Any], str, str]:
    """The rows, the metadata and the card of a dataset of all statements, and what the command said."""
    said = run("data", "dataset", name, "--db", "kb.db", "--in-both", "keep", *options).output
    folder = Path(name)
    metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
    return rows(folder), metadata, (folder / "README.md").read_text("utf-8"), " ".join(said.split())


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("votes", "report", "--db", "kb.db", "--json").stdout)
    return found


def ask(kind: str, answers: Mapping[str, str], *options: str, voter: str = "ada") -> dict[str, str]:
    """Export a sheet, answer its main question by parts of the item's text, and import it; the answer by item."""
    sheets = f"sheets-{voter}"
    export = ("votes", "export", kind, "--voter", voter, "--sample", "0", "--format", "csv", "--out", sheets)
    run(*export, *options, "--db", "kb.db")
    given: dict[str, str] = {}

    def answer(row: dict[str, str]) -> str:
        if row["question"] not in ("soundness", "entailment"):
            return "" if row["question"] == "harmful" else "yes"
        chosen = next((word for part, word in answers.items() if part in row["text"]), "yes")
        given[row["item"].partition(":")[2]] = chosen
        return chosen

    run("votes", "import", fill_csv(Path(sheets) / f"{kind}-{voter}.csv", answer), "--db", "kb.db")
    return given


@pytest.mark.parametrize(("kind", "no"), [("soundness", "facts"), ("soundness", "rule"), ("statements", "no")])
def test_a_denied_statement_leaves_the_dataset_and_all_places_agree(kind: str, no: str) -> None:
    """A sheet's "no", whichever question it answers, takes the statement out and is counted alike everywhere."""
    given = ask(kind, {"Norwegian": no})
    denied = [identity for identity, answer in given.items() if answer == no]
    kept, metadata, card, said = dataset("out")
    found = report()
    run("report", "--db", "kb.db", "-o", "report.html")
    shown = html.unescape(Path("report.html").read_text("utf-8"))

    assert len(denied) == 1
    assert {row["id"] for row in kept} == given.keys() - set(denied)
    assert {(row["label"], row["label_source"], row["judgement"]) for row in kept} == {("entailment", "votes", "true")}
    assert metadata["left_out"]["denied"] >= 1
    assert "people deny" in said
    assert (found["statements"]["judged"], found["statements"]["found_wrong"]) == (len(given), 1)
    assert (found["statements"]["true"], found["statements"]["false"]) == (len(given) - 1, 1)
    assert [failure["statement"] for failure in found["failures"]] == denied
    counts = f"{len(given)} statements: by majority {len(given) - 1} true, 1 false, 0 undecided"
    for text in (card, shown, json.dumps(found)):
        assert counts in " ".join(text.split())
        assert NOBODY not in text
    assert re.search(r"\bada\b", card) is None


def test_denied_statements_are_marked_or_kept_if_that_is_asked_for() -> None:
    """`mark` flips the label, `keep` leaves it to the rule; the column and the card tell the votes in both."""
    ask("soundness", {"Norwegian": "rule"})
    marked, marked_data, marked_card, _ = dataset("marked", "--judged", "mark")
    kept, kept_data, kept_card, _ = dataset("kept", "--judged", "keep")
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        hapax.write_dataset(kb, "api", hapax.SelectionOptions(shared=True, judged="mark"))

    assert {row["label"] for row in marked if "Norwegian" in sentence(row)} == {"contradiction"}
    assert {row["label"] for row in kept if "Norwegian" in sentence(row)} == {"entailment"}
    assert {row["label_source"] for row in kept} == {"rule"}
    for found in (marked, kept):
        words = {row["judgement"] for row in found if "Norwegian" in sentence(row)}
        assert words == {"false"}
    assert marked_data["left_out"]["denied"] == kept_data["left_out"]["denied"] == 0
    assert all("1 false" in card and NOBODY not in card for card in (marked_card, kept_card))
    assert rows(Path("api")) == marked
    with pytest.raises(hapax.HapaxError, match="judged"):
        hapax.SelectionOptions(judged="flip")


def test_ties_and_doubt_deny_nothing() -> None:
    """A tie between voters, and an unsure answer, are undecided: the statement stays with its rule's label."""
    ask("soundness", {"Norwegian": "rule", "dalasi": "unsure"}, voter="ada")
    ask("soundness", {"dalasi": "unsure"}, voter="ben")
    found, metadata, card, _ = dataset("out")
    judged = {"Norwegian": "undecided", "dalasi": "undecided", "euro": "true", "yen": "true"}

    assert metadata["left_out"]["denied"] == 0
    for row in found:
        assert row["judgement"] == next(word for part, word in judged.items() if part in sentence(row))
        assert row["label"] == "entailment"
    assert "2 undecided" in card
    assert report()["statements"]["found_wrong"] == 0


def test_without_votes_card_and_report_say_so() -> None:
    """Where nobody voted, the card and the page say so, the column is empty, and the title is the folder's name."""
    found, metadata, card, _ = dataset("of_nobody")
    run("report", "--db", "kb.db", "-o", "report.html")

    assert {row["judgement"] for row in found} == {None}
    assert {row["label_source"] for row in found} == {"rule"}
    assert metadata["judged"]["judged"] == 0
    assert NOBODY in card
    assert NOBODY in Path("report.html").read_text("utf-8")
    assert "pretty_name: of_nobody\n" in card


def test_votes_given_in_the_browser_count_like_those_of_sheets() -> None:
    """Answers on the page Judge show on the statement's page, and are in report and dataset."""
    answers: dict[str, str] = {}
    with serving(Path("kb.db").resolve(), "--judge") as pages:
        while found := re.search(r'name="item" value="([^"]+)"', shown := pages.ask("/judge?voter=ada").text):
            answer = "facts" if "Norwegian" in shown else "yes"
            pages.send("/judge", {"voter": "ada", "item": found[1], "answer": answer})
            answers[found[1].partition(":")[2]] = answer
        verdicts = {identity: pages.ask(f"/statement/{identity}").text for identity in answers}
    denied = {identity for identity, answer in answers.items() if answer == "facts"}
    kept, *_ = dataset("out")

    assert len(denied) == 1
    for identity, shown in verdicts.items():
        assert ("false by majority" if identity in denied else "true by majority") in shown
    assert report()["statements"]["found_wrong"] == 1
    assert denied.isdisjoint(row["id"] for row in kept)


def test_the_browser_goes_on_with_a_draw_that_was_begun() -> None:
    """After the items that `votes next` gave out, the page asks for the next ones of the draw, whose labels count."""
    run("votes", "next", "1", "statements", "--db", "kb.db", "--out", "sheets")
    with serving(Path("kb.db").resolve(), "--judge") as pages:
        for _ in range(3):
            found = re.search(r'name="item" value="([^"]+)"', pages.ask("/judge?voter=ada").text)
            assert found is not None
            pages.send("/judge", {"voter": "ada", "item": found[1], "answer": "yes"})

    assert "by 3 labels" in " ".join(run("votes", "report", "--db", "kb.db").output.split())


def test_both_sheets_decide_on_the_same_statement() -> None:
    """One voter's no to LINK's question and two voters' yes to the other are one ballot."""
    ask("statements", {"Norwegian": "no"}, voter="ada")
    sound = json.loads(run("evaluate", "soundness", "--db", "kb.db", "--json").stdout)
    for voter in ("ben", "cem"):
        ask("soundness", {}, voter=voter)
    together, _, card, _ = dataset("out")

    assert "1 false" not in card
    assert any("Norwegian" in sentence(row) for row in together)
    assert sound["rules"]["currency"]["counts"]["reasons"] == {"rule": 1}
    assert report()["statements"]["found_wrong"] == 0


def test_derived_statements_that_people_deny_are_left_out() -> None:
    """Conclusions of `derive` are judged like those of a search; the page of a knowledge base without a search has it."""
    Path("kb.db").unlink()
    Path("family.rules").write_text(DERIVED, "utf-8")
    with Path("family.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("parent", "ann", "bob"), ("parent", "cid", "dan")])
    run("import", "family.csv", "--rules", "family.rules", "--db", "kb.db")
    run("derive", "family.rules", "--db", "kb.db")
    ask("soundness", {"ann": "facts"}, "--derived")
    for choice in ("drop", "mark"):
        said = run("data", "dataset", choice, "--db", "kb.db", "--judged", choice).output
        assert ("deny" in said) == (choice == "drop")
    run("report", "--db", "kb.db", "-o", "report.html")

    kept, marked = (
        {json.loads(line)["conclusion"]: json.loads(line)["judgement"] for line in path.read_text("utf-8").splitlines()}
        for path in (Path("drop/derived.jsonl"), Path("mark/derived.jsonl"))
    )
    assert kept == {"dan is a child of cid": "true"}
    assert marked == {"dan is a child of cid": "true", "bob is a child of ann": "false"}
    assert (report()["statements"]["judged"], report()["statements"]["found_wrong"]) == (2, 1)
    assert "1 true, 1 false" in Path("report.html").read_text("utf-8")


# --- gates ------------------------------------------------------------------------------------------------------------


SCRIPT = {
    "generate": {
        **VALUES,
        "'Norway uses the [B]'": ["Norwegian krone", "euro", "fish", "skilling"],
        "'France uses the [B]'": ["euro", "franc"],
        # LINK begins with the conclusion.
        "PersonX can pay with the [B]": ["Norwegian krone", "euro", "dalasi"],
        "[A] uses the Norwegian krone": ["Norway"],
        "[A] uses the euro": ["France", "Norway", "Fish", "Europe"],
        "[A] uses the dalasi": ["The Gambia"],
        "[B] is a city in Norway": ["Oslo"],
        "[B] is a city in France": ["Lyon"],
        "[B] is a city in The Gambia": ["Banjul"],
        # LINK prints predicates.
        "can_pay_with(PersonX, B)": ["Norwegian krone", "euro", "dalasi"],
        "uses_currency(A, Norwegian krone)": ["Norway"],
        "uses_currency(A, euro)": ["France", "Norway", "Fish", "Europe"],
        "uses_currency(A, dalasi)": ["The Gambia"],
        "is_a_city_in(B, Norway)": ["Oslo"],
        "is_a_city_in(B, France)": ["Lyon"],
        "is_a_city_in(B, The Gambia)": ["Banjul"],
    },
    "critic": {
        # For each order of variables: a fact that is false, a wrong type, and a value that is wrong in both ways.
        "Norway uses the euro.": 0.1,
        "Skilling is a currency.": 0.2,
        "Europe is a country.": 0.2,
        "Norway uses the fish.": 0.1,
        "Fish is a currency.": 0.1,
        "Fish uses the euro.": 0.1,
        "Fish is a country.": 0.1,
    },
    "likelihood": {},
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        # Of 13 values the critic is not asked about the 3 cities of the open question and the 2 of a wrong type.
        (None, {"type": (13, 2), "critic": (8, 1)}),
        ("paper", {"type": (12, 2), "critic": (7, 1)}),
    ],
)
def test_a_search_counts_by_gate(tmp_path: Path, compat: str | None, expected: dict[str, tuple[int, int]]) -> None:
    """In each order of the gates it says how many values came to a gate, and how many of these it rejected."""
    (tmp_path / "test.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    database, model = tmp_path / "kb.db", f"scripted:{tmp_path / 'script.json'}"
    options = ("--db", database, "-m", model, "--evaluator", model, "--json", *(("--compat", compat) if compat else ()))
    (rule,) = json.loads(run("search", tmp_path / "test.rules", *options).stdout)["rules"]
    gates = {name: rule["gates"][name] for name in expected}

    assert {name: (gate["judged"], gate["judged"] - gate["accepted"]) for name, gate in gates.items()} == expected
