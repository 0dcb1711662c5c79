"""Rules that a model proposes: the paper's prompts, the file in which a person decides, and what is asked again."""

from __future__ import annotations

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


def expand(*options: str, model: str = "scripted:script.json", database: str = "x.db") -> Result:
    return invoke(*EXPAND, "-m", model, "--db", database, *options)


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


def test_comments_become_rules_by_hand_and_are_not_proposed_again() -> None:
    """Without its # a proposal is a rule, with another verb too; what stays a comment or was edited stays as it is."""
    first = expand()
    blocks = Path("new.rules").read_text("utf-8").split("\n\n")
    none = hapax.load_rules("new.rules").rules
    accepted = [re.sub("^# ", "", block, flags=re.MULTILINE) if "cannot_drive" in block else block for block in blocks]
    edited = "\n\n".join(accepted).replace("cannot_drive", "cannot_steer")
    Path("new.rules").write_text(edited, "utf-8")
    again = expand()
    rules = hapax.load_rules("new.rules")

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert len(none) == 0
    assert [str(rule.conclusion) for rule in rules.rules] == ["cannot_steer(Person A, Vehicle B)"]
    assert [fault for fault in hapax.check_rules(rules) if fault.severity == "error"] == []
    assert Path("new.rules").read_text("utf-8") == edited


def test_a_budget_counts_every_request_and_no_run_asks_again() -> None:
    """Two runs, the first one ended by its budget, send as many requests as one; a third asks and adds nothing."""
    stopped = expand("--max-calls", "4")
    sent = calls()
    expand("--accept")
    expand("-o", "alone.rules", database="y.db")
    written = Path("new.rules").read_bytes()
    again = expand("--accept")

    assert (stopped.exit_code, sent, again.exit_code) == (3, 4, 0)
    assert calls() == calls("y.db")
    assert Path("new.rules").read_bytes() == written


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
