"""Every case of red_team.yaml is contained: it leaves no file, and what it says is refused, bounded or only text.

`unit/engine/test_worker_isolation.py` has its goals meet the walls behind the grammar.
"""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_fixture import run

import hapax

Case = Mapping[str, Any]
CASES: Mapping[str, list[Case]] = yaml.safe_load((Path(__file__).parents[1] / "red_team.yaml").read_text("utf-8"))
RULES = """
given e(Thing).
given n(Number).
e(Thing A) & loop(Thing A) -> loop(Thing A)
n(Number A) & B = A + 1 & grow(Number A) -> grow(Number B)
"""
SAYS = "given says(Person, Sentence)"
LIES_IN = 'oracle lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"'
SECONDS = 0.3
"""Processor time of a goal that is to end at a limit."""


class Arena:
    """A knowledge base and a folder, in which everything happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rules = hapax.parse_rules(RULES)
        self.kb = hapax.KnowledgeBase()
        hapax.add_facts(self.kb, "e", [("alive",)], self.rules)
        hapax.add_facts(self.kb, "n", [(1,)], self.rules)

    def text(self, case: Case) -> str:
        text: str = case["text"].replace("{file}", str(self.folder / "made"))
        return text.replace("{many}", case["many"] * case["count"]) if "many" in case else text

    def outcome(self, goal: str, rules: hapax.Library, seconds: float = 30 * SECONDS) -> str:
        limits = hapax.QueryLimits(seconds=seconds, inferences=20_000_000, answers=100, memory_mb=96)
        try:
            hapax.query(goal, rules, self.kb, options=hapax.QueryOptions(limits=limits))
        except hapax.LimitExceeded:
            return "limit"
        except hapax.HapaxError as refused:
            return "refused" if str(refused).strip() else "unexplained"
        return "answered"

    def is_empty(self) -> bool:
        """True if nothing has left a file."""
        return list(self.folder.iterdir()) == []


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arena]:
    (tmp_path / "arena").mkdir()
    monkeypatch.chdir(tmp_path / "arena")
    found = Arena(tmp_path / "arena")
    with found.kb:
        yield found


def cases(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", CASES[kind], ids=[f"{n}-{case['why']}"[:60] for n, case in enumerate(CASES[kind])]
    )


def test_there_are_many_and_they_differ() -> None:
    """The file holds at least 150 cases, no two alike, each with a reason."""
    every = [
        json.dumps([kind, case["text"], case.get("many"), case.get("count")]) for kind in CASES for case in CASES[kind]
    ]

    assert len(set(every)) == len(every) >= 150
    assert all(case["why"] for kind in CASES for case in CASES[kind])


@cases("goals")
def test_goals(arena: Arena, case: Case) -> None:
    """A hostile goal is rejected or ends at its limits."""
    then = case.get("then", "refused")
    # Only what is to end at a limit ends there: a refusal may take longer than that beside other work.
    seconds = SECONDS if then == "limit" else 30 * SECONDS

    assert arena.outcome(arena.text(case), arena.rules, seconds) == then
    assert arena.is_empty()


@cases("rules")
def test_rules(arena: Arena, case: Case) -> None:
    """A hostile rule file is rejected with diagnostics, or compiles to a program in which nothing runs by itself."""
    try:
        rules = hapax.parse_rules(f"{arena.text(case)}\ngiven e(Thing).")
        faults = [fault for fault in hapax.check_rules(rules) if fault.severity == "error"]
        then = "refused" if faults else arena.outcome("X = 1", rules)
    except hapax.HapaxError as refused:
        then = "refused" if str(refused).strip() else "unexplained"

    assert then == case.get("then", "refused")
    assert arena.is_empty()


@cases("values")
def test_values(arena: Arena, tmp_path: Path, case: Case) -> None:
    """A hostile value is rejected, or stays the same in goals and exported files; a terminal has nothing to obey."""
    text, rules = arena.text(case), hapax.parse_rules(SAYS)
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        try:
            hapax.add_facts(kb, "says", [("tom", text)], rules)
        except hapax.HapaxError:
            kept = "refused"
        else:
            kept = "kept"
        assert kept == case.get("then", "kept")
        if kept == "refused":
            return
        if "\0" not in text:
            assert [row["X"] for row in hapax.query("says(tom, X)", rules, kb)] == [text]
        for form in ("csv", "jsonl"):
            exported = io.StringIO(newline="")
            hapax.export_facts(kb, exported, form=form)
            exported.seek(0)
            with hapax.KnowledgeBase() as copy:
                hapax.import_facts(copy, exported, form=form)
                assert [fact.arguments for fact in copy.facts()] == [("tom", text)]
    (tmp_path / "says.rules").write_text(SAYS, "utf-8")
    shown = run("query", "says(tom, X)", "--rules", tmp_path / "says.rules", "--db", tmp_path / "kb.db").output

    assert [sign for sign in shown if unicodedata.category(sign) == "Cc" and sign not in "\n\t"] == []
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert arena.is_empty()


@cases("answers")
def test_answers(arena: Arena, tmp_path: Path, case: Case) -> None:
    """A hostile reply gives the values that a person would read from it, and these are facts like any other."""
    script = {"defaults": {"generate": arena.text(case), "critic": 0.95, "likelihood": -10.0}}
    (tmp_path / "script.json").write_text(json.dumps(script), "utf-8")
    models, rules = hapax.open_models(f"scripted:{tmp_path / 'script.json'}"), hapax.parse_rules(LIES_IN)
    settings = hapax.SearchSettings(profile="hapax", calls_per_question=1)
    with hapax.KnowledgeBase() as kb:
        options = hapax.QueryOptions(settings=settings)
        found = hapax.query("lies_in(X, 'Norway')", rules, kb, models=models, options=options)
        again = hapax.query("lies_in(X, 'Norway')", rules, kb)

    assert [row["X"] for row in found] == [row["X"] for row in again]
    assert sorted(row["X"] for row in found) == sorted(case.get("then", []))
    assert arena.is_empty()
