"""Replies of models: names are stored as written, and no reply stops a search, however hostile it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run

RULES = """
oracle plays_in(Club A, City B): "[1] plays in [2]"
oracle lies_in(City B, Country C): "[1] lies in [2]"

@name abroad
plays_in(Club A, City B) & lies_in(City B, Country C) -> plays_in_country(Club A, Country C).
"""
CLUBS = "1. FK Bodø/Glimt.\n2. Molde FK.\n3. 1. FC Köln.\n4. Amoxicillin/clavulanate.\n5. Viking / Vikings.\n6. Brann/Molde FK."


def bomb() -> str:
    """YAML of nine lines that stand for 387 million values."""
    lines = ["- &- [apple,pear,pear,pear,pear,pear,pear,pear,pear]"]
    for depth in range(1, 9):
        lines.append(f"- &{'-' * (depth + 1)} [{','.join([f'*{chr(45) * depth} '] * 9)}]")
    return "```yaml\n" + "\n".join(lines) + "\n```"


HOSTILE = {
    "bomb": bomb(),
    "blanks": " " * 160_000 + "x",
    "empty lines": "[" + "\r\n" * 80_000 + "]",
    "points": "." * 160_000,
    "rows": "<tr>" * 40_000,
    "elements": "".join(f"<t{number}>a" for number in range(20_000)),
    "lines": "\r\n" * 80_000 + "x",
    "sentences": "The pizza is a dish.\n" * 8_000,
    "marks": "<|x|>" * 32_000,
    "brackets": "[" * 900 + '"a"' + "]" * 900,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a rule file."""
    monkeypatch.chdir(tmp_path)
    Path("clubs.rules").write_text(RULES, "utf-8")
    return tmp_path


def values(reply: str) -> set[str]:
    """The values of the facts that a search stores when the model answers every question so."""
    script = {"defaults": {"generate": reply, "critic": 0.95, "likelihood": -60}}
    Path("script.json").write_text(json.dumps(script), "utf-8")
    run("search", "clubs.rules", "-m", "scripted:script.json", "--calls", "1", "--profile", "hapax")
    facts = map(json.loads, run("export", "--format", "jsonl").stdout.splitlines())
    return {value for fact in facts for value in fact["arguments"]}


def test_names_keep_their_slashes_and_numbers() -> None:
    """A slash parts alternatives only with blanks around it, or where one half is an item of its own."""
    names = {"1. FC Köln", "Amoxicillin/clavulanate", "Brann", "FK Bodø/Glimt", "Molde FK", "Viking"}

    assert values(CLUBS) == names


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_reply_is_passed_over(name: str) -> None:
    """A search whose model answers with a bomb ends, and so does the next one, which reads the stored reply."""
    for _ in range(2):
        assert len(values(HOSTILE[name])) <= 1
