"""`hapax kb mcp`: a knowledge base as tools of a language model, met through the client of the protocol's own SDK."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_fixture import invoke
from mcp import Client, StdioServerParameters, stdio_client
from money_fixture import WORLD
from openai_fake import FakeServer

import hapax

ROOT = Path(hapax.__file__).resolve().parents[1]
Question = tuple[str, dict[str, Any]]


@pytest.fixture
def folder(searched: Path) -> Path:
    return searched.parent


def asked(options: list[Any], *questions: Question) -> tuple[set[str], list[Any]]:
    """The names of the tools of a server process, and its replies: structured answers, or the texts of errors."""
    server = StdioServerParameters(command=sys.executable, args=[str(ROOT / "cli.py"), "mcp", *map(str, options)])

    async def talk() -> tuple[set[str], list[Any]]:
        async with Client(stdio_client(server)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            results = [await client.call_tool(name, arguments) for name, arguments in questions]
            return names, [each.content[0].text if each.is_error else each.structured_content for each in results]

    return anyio.run(talk)


def test_an_agent_finds_its_way_and_nothing_is_written(folder: Path) -> None:
    """Predicates, answers, statements and proofs, with limits announced; without --ask no tool asks, no byte changes."""
    database = folder / "kb.db"
    before = database.read_bytes()
    names, replies = asked(
        ["--db", database],
        ("list_predicates", {}),
        ("query", {"goal": "uses_currency('France', Currency)"}),
        ("search_statements", {"words": "EURO lives", "rule": "currency"}),
        ("search_statements", {"limit": 1}),
        ("search_statements", {"words": "%"}),
        ("query", {"goal": "is_a_city_in(City, Country)", "limit": 1}),
        ("why", {"text": "uses_currency('France', euro)"}),
        ("why_not", {"atom": "uses_currency('France', franc)"}),
        ("check_rules", {"text": "p(Thing X -> q(Thing X)"}),
    )
    predicates, answers, statements, first, none, cut, story, missing, faults = replies

    assert names == {"list_predicates", "query", "search_statements", "why", "why_not", "check_rules"}
    assert {"uses_currency/2", "is_a_city_in/2"} <= {line["predicate"] for line in predicates["predicates"]}
    assert answers["answers"] == [{"Currency": "euro"}]
    assert statements["statements"]
    assert all("euro" in line["text"] for line in statements["statements"])
    assert (len(first["statements"]), first["more"], none["statements"]) == (1, True, [])
    assert cut["truncated"] is True
    assert "P(yes)" in story["story"]
    assert missing["story"]
    assert faults["diagnostics"][0].startswith("rules:1:")
    assert database.read_bytes() == before


def test_faults_are_told_to_the_agent(folder: Path) -> None:
    """Dangerous goals, unknown predicates, wrong ends and huge limits are errors that name what is wrong."""
    questions: dict[str, Question] = {
        "shell": ("query", {"goal": "shell('rm -rf /')"}),
        "nobody": ("why_not", {"atom": "nobody_knows(this)"}),
        "uncertain": ("search_statements", {"distribution": "uncertain"}),
        "1 to 1000": ("query", {"goal": "is_a_city_in(X, Y)", "limit": 10**6}),
    }
    _, replies = asked(["--db", folder / "kb.db"], *questions.values())

    assert [word for word, reply in zip(questions, replies, strict=True) if word not in str(reply)] == []


def test_questions_stay_within_one_budget(folder: Path, tmp_path: Path) -> None:
    """`ask` stores facts, and all its calls together, those at the start included, keep the budget."""
    goals = ["uses_currency('France', X)", "is_a_city_in(City, Country)", "uses_currency(Country, 'euro')"]
    with FakeServer(WORLD) as fake:
        model = f"openai:tiny@{fake.url}"
        options = ["--rules", folder / "money.rules", "--db", tmp_path / "kb.db", "--ask", "-m", model]
        options += ["--likelihood", "frequency", "--profile", "hapax", "--max-calls", "8"]
        names, (first, *others) = asked(options, *(("ask", {"goal": goal}) for goal in goals))

    assert "ask" in names
    assert first["answers"] == [{"X": "euro"}]
    assert "udget" in str(others[-1])
    assert 0 < len(fake.asked) <= 8


def test_asking_needs_a_budget(folder: Path) -> None:
    """Without a limit an agent could spend without end."""
    result = invoke("kb", "mcp", "--db", folder / "kb.db", "--ask", "-m", "simulated")

    assert result.exit_code == 2
    assert "--max-calls" in result.output
