"""Every CSV that the program writes is harmless to a spreadsheet and a terminal, and reads back unchanged."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from cli_fixture import invoke, run
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
    monkeypatch.delenv("HAPAX_DB", raising=False)
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
    assert "0 votes" not in imported.output


def test_lint_of_a_dataset_is_harmless_and_comes_back() -> None:
    """LINT's files have no dangerous cell, and the statements that are read from them have the same values."""
    run("search", "kitchen.rules", "-m", "simulated", "--ends", "overlapping", "--measure", "paper")
    run("dataset", "out", "--format", "lint")
    files = sorted(Path("out/lint").glob("*.csv_*"))

    assert files
    assert [cell for path in files for cell in dangerous(path.read_text("utf-8"))] == []
    written = {json.loads(cell) for path in files for cell in cells(path.read_text("utf-8")) if cell.startswith('"')}
    assert written & set(HOSTILE)
    run("evaluate", "lint", "out/lint", "--rules", "kitchen.rules", "--db", "read.db")
    run("votes", "export", "statements", "--sample", "0", "--out", "read", "--db", "read.db", "--voter", "ann")
    (sheet,) = Path("read").glob("*.csv")
    shown = " ".join(cells(sheet.read_text("utf-8-sig")))
    assert [value for value in written if value.isprintable() and value not in shown.replace("\\", "")] == []
    assert "\\u" not in shown


def test_the_sheet_of_proposed_rules_keeps_what_a_person_wrote() -> None:
    """A remark that looks like a formula is written as harmless text, and means the same however often it is read."""
    meta = """given is_of_age(Person, Age): "[1] is [2] years old" / "[1] is not [2] years old" / "is [1] [2] years old?"
given needs_age(Object, Age): "[1] needs age [2]" / "[1] does not need age [2]" / "does [1] need age [2]?"
given cannot_operate(Person, Object): "[1] cannot operate [2]" / "[1] can operate [2]" / "is [1] unable to operate [2]?"

@name operating_age
@domain temporal
is_of_age(Person A, Age X) & needs_age(Object B, Age X) -> cannot_operate(Person A, Object B)
"""
    script = {
        "generate": {"List 10 subcategories": "Vehicle", "[mask](Person A, Vehicle B)": "cannot_drive"},
        "defaults": {"generate": ""},
    }
    Path("meta.rules").write_text(meta, "utf-8")
    Path("script.json").write_text(json.dumps(script), "utf-8")
    Path("library").mkdir()
    expand = ("rules", "expand", "meta.rules", "--variable", "B", "-m", "scripted:script.json", "-o", "new.rules")
    expand = (*expand, "--rules", "library", "--db", "x.db")
    sheet = Path("new.decisions.csv")
    invoke(*expand)
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "remarks": "=1+1"} for row in rows)

    texts = []
    for _ in range(2):
        invoke(*expand)
        texts.append(sheet.read_text("utf-8"))

    assert '"""=1+1"""' in texts[0]
    assert texts[0] == texts[1]
    assert dangerous(texts[1]) == []
