"""Votes on statements that only `derive` concluded: sheets, import, report, the page of judging, and look-ups by id."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from votes_fixture import fill_csv

from hapax.api.browser.judging import Cells, Judging
from hapax.api.kept_rules import kept_rules
from hapax.engine.inference import bulk_derivation
from hapax.engine.inference.bulk_derivation import derive_all, find_statement, read_statements, statement_by_id
from hapax.evaluation.votes.next_items import NextOptions, next_items
from hapax.evaluation.votes.questions import SOUNDNESS_WORDING
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.derived_ids import DerivedIds
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

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


def road(first: str, second: str) -> FactRecord:
    return FactRecord("road", (first, second), ("Place", "Place"), Source.GIVEN)


@pytest.fixture
def roads(tmp_path: Path) -> Path:
    """A knowledge base with the kept rules and ten derived statements, and no search."""
    rules, path = tmp_path / "roads.rules", tmp_path / "roads.db"
    rules.write_text(ROADS, "utf-8")
    with KnowledgeBase(path) as kb:
        kb.add_facts(road(*pair) for pair in ("ab", "bc", "cd", "de"))
    assert invoke("derive", rules, "--rule", "step", "--rule", "further", "--db", path).exit_code == 0
    return path


def library_of(kb: KnowledgeBase) -> Library:
    library = kept_rules(kb)
    assert library is not None
    return library


def sentences(kb: KnowledgeBase) -> dict[str, str]:
    library = library_of(kb)
    records = [record for rule in library.rules for record in read_statements(kb, library, rule)]
    return {record.id: record.text for record in records}


def test_a_sheet_of_derived_statements_is_drawn_imported_and_counted(roads: Path, tmp_path: Path) -> None:
    """Five of ten derived statements are asked about, with their facts in words, and the report counts votes by rule."""
    options = ("soundness", "--derived", "--voter", "ann", "--sample", 5, "--db", roads, "--out", tmp_path)
    exported = invoke("votes", "export", *options)
    asked: dict[str, str] = {}

    def answer(row: dict[str, str]) -> str:
        asked[row["item"]] = row["text"]
        return "yes" if row["question"] == SOUNDNESS_WORDING or " and " in row["text"] else "rule"

    imported = invoke("votes", "import", fill_csv(tmp_path / "soundness-ann.csv", answer), "--db", roads, "--json")
    report = json.loads(invoke("votes", "report", "--db", roads, "--json").stdout)

    assert "5 derived statements drawn" in exported.stderr
    assert (len(asked), json.loads(imported.stdout)["new"]) == (5, 10)
    assert all("Fact: A road leads from" in text for text in asked.values())
    judged = {rule["rule"]: (rule["right"], rule["wrong"]) for rule in report["derived"]}
    assert sum(map(sum, judged.values())) == 5
    assert judged["further"][1] == judged["step"][0] == 0
    assert "does not hold" not in json.dumps(report["remarks"])


def test_a_larger_draw_holds_the_smaller(roads: Path, tmp_path: Path) -> None:
    """The draw depends on the seed and each statement alone, and `--rule` restricts it."""
    sheets = {}
    for name, options in {"few": ("--sample", 3), "many": ("--sample", 6), "step": ("--rule", "step")}.items():
        words = ("votes", "export", "statements", "--derived", "--db", roads, "--out", tmp_path / name, *options)
        assert invoke(*words, "--voter", "ann", "--format", "csv").exit_code == 0
        text = (tmp_path / name / "statements-ann.csv").read_text("utf-8-sig")
        sheets[name] = set(re.findall("statement:[0-9a-f]+", text))

    assert sheets["few"] < sheets["many"]
    assert [len(items) for items in sheets.values()] == [3, 6, 4]


def test_derived_statements_are_no_items_of_other_sheets(roads: Path) -> None:
    """Sheets of facts, and distributions, are refused with the reason, and a knowledge base without a search names the way."""
    command = ("votes", "export", "--db", roads)

    assert "sheets of statements or soundness" in invoke(*command, "predicates", "--derived", "--draw-rules", 0).stderr
    assert "have no distribution" in invoke(*command, "statements", "--derived", "--head", 1, "--long-tail", 1).stderr
    assert "--derived" in invoke(*command, "statements").stderr


def test_the_page_of_judging_asks_about_derived_statements(roads: Path) -> None:
    """All ten are asked one after the other, and their votes are stored."""
    judging = Judging(roads, library_of)
    asked = []
    for _ in range(10):
        with KnowledgeBase(roads, read_only=True) as kb:
            shown = judging.next(kb, "soundness", "ann", 0)
        assert shown is not None
        asked.append((shown.item.id, shown.items))
        judging.vote("soundness", "ann", shown.item.id, shown.question.key, Cells("yes"))

    with KnowledgeBase(roads, read_only=True) as kb:
        assert judging.next(kb, "soundness", "ann", 0) is None
        assert {identity.partition(":")[2] for identity, _ in asked} == sentences(kb).keys()
        assert len(kb.votes()) == 10
    assert {items for _, items in asked} == {10}


def test_the_next_derived_statements_are_drawn_and_estimated(roads: Path, tmp_path: Path) -> None:
    """`votes next --derived` asks about other statements once some are judged, and estimates the share of true ones."""
    command = ("votes", "next", 4, "statements", "--derived", "--db", roads, "--out", tmp_path, "--format", "csv")
    drawn: list[set[str]] = []
    for voter in ("ann", "bob"):
        found = invoke(*command, "--voter", voter)
        assert found.exit_code == 0, found.output
        sheet = tmp_path / f"soundness-{voter}.csv"
        drawn.append(set(re.findall("statement:([0-9a-f]+)", sheet.read_text("utf-8-sig"))))
        assert invoke("votes", "import", fill_csv(sheet, lambda _: "yes"), "--db", roads).exit_code == 0
    report = json.loads(invoke(*command, "--json").stdout)
    with KnowledgeBase(roads, read_only=True) as kb:
        known = sentences(kb).keys()

    assert [len(items) for items in drawn] == [4, 4]
    assert drawn[0].isdisjoint(drawn[1])
    assert drawn[0] | drawn[1] < known
    assert {key: report[key] for key in ("items", "pool", "judged")} == {"items": 2, "pool": 10, "judged": 8}
    assert report["true"][0] == 1.0
    assert "Of all derived statements of the draw" in invoke("votes", "report", "--db", roads).output


def test_the_page_asks_about_derived_statements_in_the_order_of_their_draw(roads: Path) -> None:
    """The next statements that the browser shows are those of `votes next --derived`."""
    judging, shown = Judging(roads, library_of), []
    with KnowledgeBase(roads) as kb:
        chosen = next_items(kb, NextOptions("derived", 3), library_of(kb)).ids
        for _ in chosen:
            asked = judging.next(kb, "soundness", "ann", 0)
            assert asked is not None
            shown.append(asked.item.id.partition(":")[2])
            judging.vote("soundness", "ann", asked.item.id, asked.question.key, Cells("yes"))

    assert tuple(shown) == chosen


def test_a_draw_of_derived_statements_leaves_out_what_is_out_of_date(roads: Path) -> None:
    """After a fact has come nothing is drawn until the rules are derived again, and facts are no derived items."""
    with KnowledgeBase(roads) as kb:
        kb.add_facts([road("e", "f")])

    assert "Run `hapax derive` first" in invoke("votes", "next", 3, "statements", "--derived", "--db", roads).stderr
    assert "--derived" in invoke("votes", "next", 3, "statements", "--db", roads).stderr
    assert "`derive` concludes statements" in invoke("votes", "next", 3, "facts", "--derived", "--db", roads).stderr


def test_the_index_of_ids_follows_changes_of_facts(roads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After facts come and go, and a derivation anew, each statement is found by its id, and none that is gone."""
    with KnowledgeBase(roads) as kb:
        library = library_of(kb)
        gone = sentences(kb)
        for change in ("withdraw", "restore", "add", "anew"):
            ends = [record for record in kb.facts() if record.arguments[0] == "d"]
            if change == "withdraw":
                assert DerivedIds(kb).prepare()
                kb.withdraw([record.id for record in ends], "wrong", "user")
            elif change == "restore":
                kb.restore([withdrawal.fact.id for withdrawal in kb.withdrawals()])
            elif change == "add":
                kb.add_facts([road("e", "f"), road("x", "a")])
            derive_all(kb, library, library.rules, "prolog" if change == "anew" else "auto")
            known = sentences(kb)
            with monkeypatch.context() as patch:
                patch.setattr(bulk_derivation, "find_statement", None)  # no statement is looked for among all
                for identity, text in known.items():
                    found = statement_by_id(kb, library, identity)
                    assert found is not None
                    assert (found.id, found.text) == (identity, text)
                for identity in gone.keys() - known.keys():
                    assert statement_by_id(kb, library, identity) is None
            gone |= known
            assert set(DerivedIds(kb).all()) == known.keys()


def test_a_statement_that_another_rule_of_its_name_concluded_is_not_found(roads: Path) -> None:
    """The variables of the rule that is loaded now need not be those of the derivation."""
    changed = ROADS.replace("road(Place A, Place B) -> ", 'road(Place B, Place A) & A \\= "z" -> ')
    with KnowledgeBase(roads) as kb:
        library, other = library_of(kb), parse_library([("roads.rules", changed)])
        by_step = list(read_statements(kb, library, library.rule("step")))
        for record in by_step:
            assert statement_by_id(kb, library, record.id) == record
            assert statement_by_id(kb, other, record.id) is None
            assert find_statement(kb, library, lambda found, _, wanted=record.id: found == wanted) == record
            assert find_statement(kb, other, lambda found, _, wanted=record.id: found == wanted) is None
            assert statement_by_id(kb, replace(library, rules=()), record.id) is None


def test_a_statement_is_found_where_no_index_can_be_made(roads: Path) -> None:
    """While another command writes, a derived statement is looked for among all."""
    with KnowledgeBase(roads, read_only=True) as kb, KnowledgeBase(roads) as writer:
        known = sentences(kb)
        with writer.transaction():
            writer.database.conn.execute("UPDATE derivations SET stale = stale")
            assert not DerivedIds(kb).prepare()
            found = [statement_by_id(kb, library_of(kb), identity) for identity in known]

    assert [record.id for record in found if record is not None] == list(known)
