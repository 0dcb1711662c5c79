"""Every CSV that the program writes is harmless to a spreadsheet and a terminal, and reads back unchanged."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from cli_fixture import run
from votes_fixture import fill_csv

RULES = """
given is_allergic_to(Person, Allergen): "[1] is allergic to [2]"
given cannot_eat(Person, Dish): "[2] is nothing for [1]" / "[2] is for [1]" / "is [2] for [1]?"
given is_made_from(Dish, Allergen): "[1] is made from [2]"

@name lodging
@domain locational
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> cannot_eat(Person X, Dish B).
"""
HOSTILE = (
    '=HYPERLINK("http://x")',
    "@SUM(1,2)",
    "+1 egg",
    "-2+3+cmd|' /C calc'!A0",
    "＝1+1",
    "\x1b[31mred",
    "a\u202eb",
    '"Heroes" pie',
    '"quoted"',
    "two\nlines",
    "nul\0",
    "egg;=1+1;",
    "egg; @SUM(1,2)",
    "\x9bC1",
)
PLAIN = ("pie", "-5", "2020", "Crème brûlée", "می\u200cخواهم", "a, b; c")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with facts about hostile names, and what a rule concludes from them."""
    monkeypatch.chdir(tmp_path)
    Path("kitchen.rules").write_text(RULES, "utf-8")
    facts = [{"predicate": "is_allergic_to", "arguments": ["=cmd|calc", "milk"]}]
    facts += [{"predicate": "is_made_from", "arguments": [dish, "milk"]} for dish in (*HOSTILE, *PLAIN)]
    Path("facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts), "utf-8")
    run("import", "facts.jsonl", "--rules", "kitchen.rules")
    return tmp_path


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(text.splitlines(keepends=True)) for cell in row]


def dangerous(text: str) -> list[str]:
    """Cells that a spreadsheet would run, or with characters that a terminal obeys."""
    found = []
    # Where a comma is the decimal sign, spreadsheets part cells at semicolons.
    for cell in (*cells(text), *next(csv.reader([text.replace("\n", ";")], delimiter=";"))):
        is_formula = re.match(r"\s*[=+@＝＋－＠-]", cell) and not re.fullmatch(r"-?[\d.]+", cell)
        if is_formula or re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", cell):
            found.append(cell)
    return found


def test_exported_facts_are_harmless_and_come_back() -> None:
    """A file of `export --format csv` has no dangerous cell, and an import of it gives the same facts."""
    text = run("export", "--format", "csv").stdout
    Path("facts.csv").write_text(text, "utf-8")
    run("import", "facts.csv", "--rules", "kitchen.rules", "--db", "again.db")

    assert dangerous(text) == []
    assert run("export", "--db", "again.db").stdout == run("export").stdout


def test_voting_sheets_are_harmless_and_keep_their_checksums() -> None:
    """A sheet has no dangerous cell, not even the voter's name, and its filled rows are accepted."""
    run("derive", "kitchen.rules")

    run("votes", "export", "statements", "--derived", "--sample", "0", "--out", "sheets", "--voter", "=ann")
    (sheet,) = Path("sheets").glob("*.csv")
    fill_csv(sheet, lambda row: "" if row["question"] == "harmful" else "yes")
    imported = run("votes", "import", sheet)

    assert dangerous(sheet.read_text("utf-8-sig")) == []
    assert "0 faulty rows" in imported.output
    assert not re.search(r"\b0 votes", imported.output)
