"""Every case of red_team.yaml is contained: no file and no process is left, and the next answer is right."""

from __future__ import annotations

import io
import json
import os
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.markup import escape

from hapax.commands.console import Screen
from hapax.engine.expansion.replies import read_conclusions, read_predicate, read_types
from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.program import build_program
from hapax.engine.inference.session import LimitExceeded, PrologError, PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_goal, parse_library
from hapax.kb.exchange import export_facts, import_facts
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.answers import parse_values, parse_yes_no

Case = Mapping[str, Any]
CASES: Mapping[str, list[Case]] = yaml.safe_load((Path(__file__).parent / "red_team.yaml").read_text("utf-8"))
RULES = """
given e(Thing).
given n(Number).
e(Thing A) & loop(Thing A) -> loop(Thing A)
n(Number A) & B = A + 1 & grow(Number A) -> grow(Number B)
"""
FACTS = [FactRecord("e", ("alive",), (), Source.GIVEN), FactRecord("n", (1,), (), Source.GIVEN)]
LIMITS = QueryLimits(seconds=0.3, inferences=20_000_000, answers=100, memory_mb=96)


class Arena:
    """A session, a knowledge base and a folder of its own, in which everything happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "made"
        self.library = parse_library([("f.rules", RULES)])
        self.kb = KnowledgeBase()
        self.kb.add_facts(FACTS)
        self.session = PrologSession()
        self.load()

    def load(self) -> None:
        self.session.load(build_program(self.library, FACTS))

    def text(self, case: Case) -> str:
        text: str = case["text"].replace("{file}", str(self.file))
        return text.replace("{many}", case["many"] * case["count"]) if "many" in case else text

    def is_whole(self) -> bool:
        """The session answers, there is no file, and the worker has no other process."""
        answer = self.session.solutions("e(X)", ["X"]).rows
        process = self.session._process
        assert process is not None
        return answer == [("alive",)] and list(self.folder.iterdir()) == [] and processes_of(process.pid) <= 1


def processes_of(group: int) -> int:
    """The number of processes in the group, 0 without /proc."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = stat.read_text("utf-8", "replace").rpartition(") ")[2].split()[:3]
        except (OSError, ValueError):
            continue
        found += state != "Z" and int(owner) == group
    return found


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("arena")
    before = Path.cwd()
    os.chdir(folder)
    made = Arena(folder)
    yield made
    made.session.close()
    made.kb.close()
    os.chdir(before)


def cases(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", CASES[kind], ids=[f"{n}-{case['why']}"[:60] for n, case in enumerate(CASES[kind])]
    )


def assert_explained(refused: HapaxError) -> None:
    """An error has a message."""
    assert str(refused).strip()


def outcome(arena: Arena, text: str, seconds: float) -> str:
    try:
        goal = parse_goal(text, arena.library)
        arena.session.solutions(str(goal), goal.variables, replace(LIMITS, seconds=seconds))
    except LimitExceeded:
        return "limit"
    except HapaxError as refused:
        assert_explained(refused)
        return "refused"
    return "answered"


def test_there_are_many_and_they_differ() -> None:
    """The file holds at least 150 cases, no two alike, each with a reason."""
    every = [
        json.dumps([kind, case["text"], case.get("many"), case.get("count")]) for kind in CASES for case in CASES[kind]
    ]

    assert len(set(every)) == len(every) >= 150
    assert all(case["why"] for kind in CASES for case in CASES[kind])


@cases("goals")
def test_goals(arena: Arena, case: Case) -> None:
    """A hostile goal is rejected or ends at its limits: in the grammar, in Prolog's sandbox, and behind both."""
    text = arena.text(case)
    then = case.get("then", "refused")
    # Only what is to end at a limit ends there: a refusal may take longer than that beside other work.
    assert outcome(arena, text, LIMITS.seconds if then == "limit" else 30 * LIMITS.seconds) == then
    for trusted in (False, True):
        try:
            arena.session.solutions(text, [], LIMITS, trusted=trusted)
        except (PrologError, LimitExceeded) as refused:
            assert_explained(refused)

    assert arena.is_whole()


@cases("rules")
def test_rules(arena: Arena, case: Case) -> None:
    """A hostile rule file is rejected with diagnostics, or compiles to a program in which nothing runs by itself."""
    try:
        library = parse_library([("f.rules", arena.text(case)), ("e.rules", "given e(Thing).")])
        check_library(library)
        arena.session.load(build_program(library, FACTS))
        then = "answered"
    except HapaxError as refused:
        assert_explained(refused)
        then = "refused"
        arena.load()

    assert then == case.get("then", "refused")
    assert arena.is_whole()
    arena.load()


@cases("values")
def test_values(arena: Arena, case: Case) -> None:
    """A hostile value is rejected, or stays the same in the knowledge base, in Prolog and in every exported file."""
    text = arena.text(case)
    fact = FactRecord("says", ("tom", text), (), Source.GIVEN)
    library = parse_library([("f.rules", "given says(Thing, Thing).")])
    with KnowledgeBase() as kb:
        try:
            kb.add_facts([fact])
        except HapaxError as refused:
            assert_explained(refused)
            assert case.get("then") == "refused"
            return
        assert case.get("then", "kept") == "kept"
        assert kb.facts() == [fact]
        if "\0" not in text:
            arena.session.load(build_program(library, kb.facts()))
            assert arena.session.solutions("says(tom, X)", ["X"]).rows == [(text,)]
            arena.load()
        for form in ("csv", "jsonl"):
            file = io.StringIO(newline="")
            export_facts(kb, file, form=form)
            file.seek(0)
            with KnowledgeBase() as copy:
                import_facts(copy, file, form=form)
                assert [record.arguments for record in copy.facts()] == [fact.arguments]

    assert arena.is_whole()


@cases("values")
def test_values_on_a_terminal(arena: Arena, case: Case) -> None:
    """Output contains nothing that a terminal would obey or show in another order."""
    screen = io.StringIO()
    console = Screen(file=screen, force_terminal=True, highlight=False, width=100)
    console.print(escape(arena.text(case)), soft_wrap=True)
    shown = screen.getvalue()

    assert [sign for sign in shown if unicodedata.category(sign) == "Cc" and sign not in "\n\t"] == []
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@cases("answers")
def test_answers(arena: Arena, case: Case) -> None:
    """A hostile reply gives the values that a person would read from it, and these are facts like any other."""
    text = arena.text(case)
    found = [value.value for value in parse_values(text, "A", "City") if value.rejected is None]
    parse_yes_no(text)
    read_predicate(text)
    assert len([*read_types(text), *read_conclusions(text, ("A", "B"))]) < 10_000

    assert found == case.get("then", [])
    with KnowledgeBase() as kb:
        kb.add_facts(FactRecord("says", ("tom", value), (), Source.MODEL) for value in found)
        library = parse_library([("f.rules", "oracle says(Thing, Thing).")])
        if found:
            assert sorted(run_query(Theory(library, kb), "says(tom, X)").rows) == sorted((value,) for value in found)
    assert arena.is_whole()
