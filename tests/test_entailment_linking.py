"""Tests of linking predicates of rules to those of stored entailments, by a sheet in which people decide."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.engine.expansion.sheet import ReviewSheet

RULES = """\
given has_shopped_in(Person, Shop)
given is_ill_with(Person, Disease)
has_shopped_in(Person X, Shop A) & is_ill_with(Person X, Disease D) -> was_careless(Person X, Shop A)
"""

EDGES = """\
shop_in(Person A, Location B)\tgo_to(Person A, Location B)\t0.8
go_to(Person A, Location B)\tvisit(Person A, Location B)\t0.9
suffer_from(Person A, Disease B)\tfeel(Person A, Disease B)\t0.7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAPAX_DB", "kb.db")
    Path("my.rules").write_text(RULES, encoding="utf-8")
    Path("edges.tsv").write_text(EDGES, encoding="utf-8")
    assert invoke("evaluate", "entailment", "facts", "edges.tsv").exit_code == 0
    return tmp_path


def link(*more: str) -> dict[str, object]:
    result = invoke("evaluate", "entailment", "link", "--rules", "my.rules", "--json", *more)
    assert result.exit_code == 0, result.output
    links: dict[str, object] = json.loads(result.stdout)
    return links


def change(decide: Callable[[dict[str, str]], None]) -> None:
    """Edit the rows of the sheet as a person would."""
    with Path("links.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        decide(row)
    with Path("links.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def visited() -> list[str]:
    """Who visited what, by the entailments of the graph."""
    goal = ("query", "visit(X, Y)", "--entail", "0.5", "--assume", "has_shopped_in(ann, ikea)")
    return json.loads(invoke(*goal, "--rules", "my.rules", "--json").stdout)["answers"]


def accept_all(row: dict[str, str]) -> None:
    row["decision"] = "accept"


@pytest.mark.english
def test_an_accepted_link_leads_into_the_graph(folder: Path) -> None:
    """Names with the same lemmas are proposed; once accepted, `query --entail` passes over the link, once withdrawn not."""
    assert (link()["proposed"], visited()) == (1, [])
    (row,) = ReviewSheet(folder / "links.csv").rows
    assert row.additional == {
        "predicate": "has_shopped_in",
        "entailments": "shop_in",
        "method": "lemmas",
        "similarity": "1.000",
    }

    change(accept_all)
    assert (link()["stored"], link()["stored"], len(visited())) == (2, 0, 1)

    change(lambda row: row.update(decision="reject"))
    assert (link()["withdrawn"], link()["withdrawn"], visited()) == (2, 0, [])


@pytest.mark.english
def test_a_person_may_change_the_entailments_of_a_link(folder: Path) -> None:
    """Only the directions that stand in the sheet are stored, in the order of arguments that stands there."""
    link()

    change(
        lambda row: row.update(decision="accept", rules="shop_in(Person A, Shop B) -> has_shopped_in(Person A, Shop B)")
    )

    assert (link()["stored"], visited()) == (1, [])


def test_an_encoder_proposes_near_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the lemmas, the names with the highest cosines are proposed from the threshold on."""
    from hapax.llm_oracle.backends.encoder import EncoderSimilarity

    asked: list[list[str]] = []

    class Encoder:
        def nearest(self, texts: list[str], others: list[str], most: int) -> list[list[tuple[int, float]]]:
            asked.extend((texts, others))
            assert most == 2
            return [[(others.index("suffer from"), 0.9), (others.index("feel"), 0.3)] for _ in texts]

    monkeypatch.setattr(EncoderSimilarity, "load", classmethod(lambda cls, source: Encoder()))
    link("--encoder", "hf:somewhere", "--most", "2", "--at-least", "0.5")

    rows = ReviewSheet(folder / "links.csv").rows
    near = [
        (row.additional["predicate"], row.additional["entailments"])
        for row in rows
        if row.additional["method"] == "encoder"
    ]
    assert near == [("has_shopped_in", "suffer_from"), ("is_ill_with", "suffer_from"), ("was_careless", "suffer_from")]
    assert asked[0] == ["has shopped in", "is ill with", "was careless"]


def test_faults_of_the_sheet_and_of_the_encoder_are_told(folder: Path) -> None:
    """A row without an entailment, and an encoder that is none, are refused with what to write instead."""
    (folder / "links.csv").write_text("proposal,decision,rules\n1,accept,shop_in\n", encoding="utf-8")

    faulty = invoke("evaluate", "entailment", "link", "--rules", "my.rules")
    unknown = invoke(
        "evaluate", "entailment", "link", "--rules", "my.rules", "--encoder", "minilm", "--sheet", "new.csv"
    )

    assert (faulty.exit_code, unknown.exit_code) == (1, 2)
    assert "is not an entailment" in " ".join(faulty.stderr.split())
    assert "hf:NAME_OR_PATH" in unknown.stderr


def test_names_that_the_graph_has_need_no_link(folder: Path) -> None:
    """A predicate with stored entailments under its own name is counted, and not proposed."""
    (folder / "my.rules").write_text("given go_to(Person, Location)\n", encoding="utf-8")
    with hapax.KnowledgeBase("kb.db") as kb:
        links = hapax.link_predicates(kb, hapax.load_rules("my.rules"), "links.csv")

    assert links.proposed == 0
    assert links.notes[-1] == "entailments under their own names: 1 predicate of the rules"
