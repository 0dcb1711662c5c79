"""Imported values get the canonical names of a reference, so that tables that spell them otherwise join."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run

import hapax
from hapax.kb import intake
from hapax.kb.tables import TableMapping

RULES = """
given grows(Country, Crop): "[1] grows [2]" / "[1] does not grow [2]" / "does [1] grow [2]?".
given trades_with(Country, Country): "[1] trades with [2]" / "[1] does not trade with [2]" / "does [1] trade with [2]?".
given can_buy(Country, Crop): "[1] can buy [2]" / "[1] cannot buy [2]" / "can [1] buy [2]?".
@name market
grows(Country A, Crop C) & trades_with(Country B, Country A) -> can_buy(Country B, Crop C)
"""
NATIONS = """
source: {name: List of nations, version: "1", licence: public domain}
tables: {nations: {file: nations.csv}}
types: {Country: {table: nations, name: name, aliases: others, closedness: closed}}
"""
TABLE = "name,others\nIvory Coast,Côte d'Ivoire|CIV\nGuinea,\nIreland,IR|Eire\nIran,IR\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("trade.rules").write_text(RULES, encoding="utf-8")
    Path("nations.yaml").write_text(NATIONS, encoding="utf-8")
    Path("nations.csv").write_text(TABLE, encoding="utf-8")
    Path("crops.csv").write_text("nation,crop\nCôte d'Ivoire,cocoa\nGuinea,CIV\n", encoding="utf-8")
    Path("facts.csv").write_text('trades_with,IR,"ivory coast"\ntrades_with,Eire,CIV\n', encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_two_tables_in_two_spellings_join() -> None:
    """Values of both files get the name of the reference, told at the end, and `why` has the spelling of the file."""
    crops = run(
        *("import", "crops.csv", "--predicate", "grows", "--columns", "nation,crop"),
        *("--rules", "trade.rules", "--names", "reference:nations.yaml", "--db", "t.db"),
    )
    trade = run("import", "facts.csv", "--names", "reference:nations.yaml", "--db", "t.db")

    assert "1 row under canonical names, such as Côte d'Ivoire as Ivory Coast" in " ".join(crops.stderr.split())
    assert "2 rows under canonical names" in trade.stderr
    assert "has no Country, or more than one, of the name 'IR'" in " ".join(trade.stderr.split())
    answers = json.loads(run("query", "can_buy(Who, What)", "--db", "t.db", "--json").stdout)
    assert {tuple(row.values()) for row in answers["answers"]} == {("IR", "cocoa"), ("Ireland", "cocoa")}
    why = run("why", 'grows("Ivory Coast", cocoa)', "--db", "t.db").stdout
    assert "given by the user, written grows(" in why
    assert "Côte d'Ivoire" in why
    assert "names by reference:nations.yaml" in why


@pytest.mark.usefixtures("folder")
def test_only_values_of_a_type_with_names_are_renamed(fresh_kb: hapax.KnowledgeBase) -> None:
    """A crop that is spelled as a country's alias stays, and the report has the numbers of rows and the spellings."""
    rules = hapax.FactRules(hapax.parse_rules(RULES), names="reference:nations.yaml")
    mapping = TableMapping.of("grows", ["nation", "crop"])

    report = hapax.import_facts(fresh_kb, "crops.csv", mapping=mapping, rules=rules)

    assert {fact.arguments for fact in fresh_kb.facts()} == {("Ivory Coast", "cocoa"), ("Guinea", "CIV")}
    assert (report.renamed, dict(report.spellings)) == (1, {"Côte d'Ivoire": "Ivory Coast"})


@pytest.mark.usefixtures("folder")
def test_a_fact_without_types_stays_as_it_is_written() -> None:
    """Of a predicate that the kept rules do not have, nobody says that its value is a country."""
    run("import", "facts.csv", "--rules", "trade.rules", "--db", "t.db")
    rows = [
        {"predicate": "trades_with", "arguments": ["CIV", "Guinea"]},
        {"predicate": "borders", "arguments": ["CIV", "Guinea"]},
        {"predicate": "touches", "arguments": ["CIV", "Guinea"], "types": ["Country", "Country"]},
    ]
    Path("facts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    told = run("import", "facts.jsonl", "--names", "reference:nations.yaml", "--db", "t.db").stderr

    assert "2 rows under canonical names" in told
    with hapax.KnowledgeBase("t.db") as kb:
        found = {(fact.predicate, fact.arguments[0]) for fact in kb.facts() if fact.arguments[1] == "Guinea"}
    assert found == {("trades_with", "Ivory Coast"), ("borders", "CIV"), ("touches", "Ivory Coast")}


@pytest.mark.usefixtures("folder")
def test_rows_that_differ_in_spelling_alone_are_one_fact(fresh_kb: hapax.KnowledgeBase) -> None:
    """Two spellings of a fact count as one fact read and one repeat, now and when they are imported again."""
    Path("twice.csv").write_text("nation,crop\nCIV,cocoa\nIvory Coast,cocoa\nCÔTE D'IVOIRE,cocoa\n", encoding="utf-8")
    rules = hapax.FactRules(hapax.parse_rules(RULES), names="reference:nations.yaml")
    mapping = TableMapping.of("grows", ["nation", "crop"])

    first = hapax.import_facts(fresh_kb, "twice.csv", mapping=mapping, rules=rules)
    second = hapax.import_facts(fresh_kb, "twice.csv", mapping=mapping, rules=rules)

    assert (first.read, first.added, first.repeats) == (1, 1, 2)
    assert (second.read, second.added, second.known) == (1, 0, 1)
    assert hapax.verify(fresh_kb).is_clean


@pytest.mark.usefixtures("folder")
def test_faulty_rows_have_no_part_in_renaming(fresh_kb: hapax.KnowledgeBase) -> None:
    """Rows that are left out neither count as renamed nor shift the spellings of the rows after them."""
    Path("faulty.csv").write_text("nation,crop\nCIV,\nCIV,cocoa\nGuinea,rice\n", encoding="utf-8")
    rules = hapax.FactRules(hapax.parse_rules(RULES), names="reference:nations.yaml")
    mapping = TableMapping.of("grows", ["nation", "crop"])

    report = hapax.import_facts(fresh_kb, "faulty.csv", mapping=mapping, rules=rules, skip_faulty=True)

    assert (report.read, report.renamed, len(report.faults)) == (2, 1, 1)
    bases = {fact.arguments[0]: fact.basis for fact in fresh_kb.facts()}
    assert bases["Guinea"] is None
    assert "CIV" in (bases["Ivory Coast"] or "")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--names", "reference:nations.yaml"), "needs rules, which say of which type each argument is"),
        (("--names", "embedded", "--rules", "trade.rules"), "has no canonical names. Name a reference"),
        (("--names", "reference:nowhere", "--rules", "trade.rules"), "there is no such file"),
        (("--names", "reference:allergens", "--rules", "trade.rules"), "of which the rules have no argument"),
    ],
)
def test_names_that_cannot_be_used_are_refused(arguments: tuple[str, ...], message: str) -> None:
    """Names without rules, or of a reference that has none for the rules' types, are an error, and nothing comes in."""
    refused = run("import", "facts.csv", *arguments, "--db", "t.db", code=1)

    assert message in " ".join(refused.stderr.split())


@pytest.mark.usefixtures("folder")
def test_as_many_spellings_are_reported_as_the_limit(
    fresh_kb: hapax.KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More are renamed as well, and counted."""
    Path("crops.csv").write_text("nation,crop\nCIV,a\nEire,b\nCôte d'Ivoire,c\nGuinea,d\n", encoding="utf-8")
    monkeypatch.setattr(intake, "_SPELLINGS_REPORTED", 2)
    rules = hapax.FactRules(hapax.parse_rules(RULES), names="reference:nations.yaml")

    report = hapax.import_facts(
        fresh_kb, "crops.csv", mapping=TableMapping.of("grows", ["nation", "crop"]), rules=rules
    )

    assert (report.renamed, dict(report.spellings)) == (3, {"CIV": "Ivory Coast", "Eire": "Ireland"})
