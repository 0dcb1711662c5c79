"""Rules that a model proposes: the paper's prompts, the sheet in which a person decides, and what is asked again."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_fixture import invoke
from click.testing import Result
from openai_fake import FakeServer

import hapax

ROOT = Path(__file__).parents[3]
FILES = yaml.safe_load((Path(__file__).parents[1] / "commands" / "rule_proposals.yaml").read_text("utf-8"))["files"]
EXPAND = ("rules", "expand", "meta.rules", "--variable", "B", "-o", "new.rules", "--rules", "library")
TABLE_5 = (
    'In rule "requires_a_minimal_age_of(Object B, Age Y) & cannot_operate(Person A, Object B)", B is a variable '
    "representing an Object. List 10 subcategories of Object that B could be that also make the rule true.",
    "cannot_operate(Person A, Object B) is equal to [mask](Person A, Vehicle B). Write the best predicate that "
    "could fit in [mask] token.",
    "Fill in the [mask] in 'If Person A is Age X years old and Vehicle B requires a minimal age of Age Y and Age X is "
    "smaller than Age Y, then Person A [mask] Vehicle B' so that the statement is factually plausible and "
    "grammatically correct. Give 5 statements.",
)
"""The paper's prompts for its own meta-rule."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the paper's meta-rule, a library and a script, as the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, "utf-8")


def expand(*options: str, model: str = "scripted:script.json", database: str = "x.db", answers: str = "") -> Result:
    return invoke(*EXPAND, "-m", model, "--db", database, *options, answers=answers)


def sheet(path: str = "new.decisions.csv") -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mark(decisions: dict[str, dict[str, str]]) -> None:
    """Write cells into the sheet as a person would, by data type."""
    rows = [{**row, **decisions.get(row["type"], {})} for row in sheet()]
    with Path("new.decisions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def calls(database: str = "x.db") -> int:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return sum(kb.call_counts().values())


def test_prompts_are_those_of_table_5() -> None:
    """The paper's meta-rule is asked about in the paper's words, to the letter."""
    script: dict[str, Any] = json.loads(FILES["script.json"])
    with FakeServer(script) as server:
        result = expand("--max-calls", "100", model=f"openai:tiny@{server.url}")
    prompts = [str(asked.body["messages"][-1]["content"]) for asked in server.asked if "messages" in asked.body]

    assert result.exit_code == 0, result.output
    assert [prompt for prompt in TABLE_5 if prompt not in prompts] == []


def test_decisions_in_the_sheet_make_the_rule_file() -> None:
    """Accepted rules are written with name and note, another verb is applied, and a later rejection takes a rule out."""
    expand()
    mark(
        {
            "Vehicle": {"decision": "accept", "by": "ann", "note": "as printed"},
            "Firearm": {"decision": "Accepted", "verb": "cannot buy"},
            "Alcohol": {"decision": "reject"},
        }
    )
    first = expand()
    text = Path("new.rules").read_text("utf-8")
    rules = hapax.load_rules("new.rules")
    mark({"Firearm": {"decision": "reject"}})
    expand()

    assert first.exit_code == 0
    assert "accepted by ann: as printed" in text
    assert [str(rule.conclusion) for rule in rules.rules] == [
        "cannot_drive(Person A, Vehicle B)",
        "cannot_buy(Person A, Firearm B)",
    ]
    assert [fault for fault in hapax.check_rules(rules) if fault.severity == "error"] == []
    assert "Firearm" not in Path("new.rules").read_text("utf-8")


def test_a_budget_counts_every_request_and_no_run_asks_again() -> None:
    """Two runs, the first one ended by its budget, send as many requests as one; a third asks neither model nor person."""
    stopped = expand("--max-calls", "4")
    sent = calls()
    expand("--review", "accept-all")
    expand("--decisions", "alone.csv", "-o", "alone.rules", database="y.db")
    written = Path("new.rules").read_bytes()
    again = expand("--review", "ask")

    assert (stopped.exit_code, sent, again.exit_code) == (3, 4, 0)
    assert calls() == calls("y.db")
    assert Path("new.rules").read_bytes() == written


def test_a_duplicate_of_an_accepted_rule_cannot_be_accepted() -> None:
    """It is refused with its code, and accept-all leaves it waiting."""
    expand()
    rules = sheet()[0]["rules"].replace("age_vehicle", "age_two")
    mark({"Vehicle": {"decision": "accept"}, "Machinery": {"rules": rules}})
    asked = expand("--review", "ask", answers="a\nq\n")
    expand("--review", "accept-all")

    assert "HPX205" in asked.stderr
    assert [row["decision"] for row in sheet()] == ["accept", "", *["accept"] * 4]


def test_the_worked_example_of_the_page() -> None:
    """Script and command of docs/how-to/rules.md, typed in as they stand, print and write what the page shows."""
    page = (ROOT / "docs" / "how-to" / "rules.md").read_text("utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (script,) = (text for kind, text in fences if kind == "json")
    (rules,) = (text for kind, text in fences if kind == "rules")
    (command,) = (text for _, text in fences if text.startswith("hapax rules expand"))
    (printed,) = (text for _, text in fences if text.startswith("Vehicle in operating_age"))
    Path("rules").symlink_to(ROOT / "rules")
    Path("table5.json").write_text(script, "utf-8")
    result = invoke(*shlex.split(command)[1:])

    assert result.exit_code == 0
    assert result.stdout.strip() == printed.strip()
    assert Path("age.rules").read_text("utf-8") == rules
    assert invoke("check", "age.rules", "rules").exit_code == 0
