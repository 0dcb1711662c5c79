"""`hapax mcp`: a knowledge base as tools of a language model, met through the client of the protocol's own SDK."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_fixture import EVERY_END, invoke, run
from mcp import Client, StdioServerParameters, stdio_client
from papers_fixture import RULES, SCRIPT

import hapax
from hapax.api.agent_tools import AgentTools
from hapax.commands.agents import mcp_server


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search with a scripted model, which keeps its rules."""
    folder = tmp_path_factory.mktemp("agents")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    model = f"scripted:{folder / 'script.json'}"
    run("search", folder / "money.rules", "-m", model, "--no-progress", "--db", folder / "kb.db", *EVERY_END)
    return folder / "kb.db"


def called(tools: AgentTools, name: str, **arguments: Any) -> Any:
    """The reply of a tool to a client: its structured answer, or the text of its error."""

    async def call() -> Any:
        async with Client(mcp_server(tools)) as client:
            result = await client.call_tool(name, arguments)
            return result.content[0].text if result.is_error else result.structured_content

    return anyio.run(call)


def test_an_agent_finds_its_way(database: Path) -> None:
    """Predicates lead to a goal, the goal to a statement, the statement to its proof."""
    tools = AgentTools(database)
    predicates = called(tools, "list_predicates")["predicates"]
    answers = called(tools, "query", goal="uses_currency(france, Currency) ; uses_currency('France', Currency)")
    statements = called(tools, "search_statements", words="EURO lives", rule="currency")
    story = called(tools, "why", text=statements["statements"][0]["id"])["story"]

    assert {"uses_currency/2", "is_a_city_in/2"} <= {line["predicate"] for line in predicates}
    assert answers["answers"] == [{"Currency": "euro"}]
    assert all("euro" in line["text"] for line in statements["statements"])
    assert statements["more"] is False
    assert "P(yes)" in story


def test_few_statements_are_shown_and_more_are_announced(database: Path) -> None:
    """A limit cuts answers and statements, and says so; words with the signs of SQL patterns match themselves alone."""
    tools = AgentTools(database)

    assert len(called(tools, "search_statements", limit=1)["statements"]) == 1
    assert called(tools, "search_statements", limit=1)["more"] is True
    assert called(tools, "search_statements", words="%")["statements"] == []
    assert called(tools, "search_statements", words="'); DROP")["statements"] == []
    assert called(tools, "query", goal="is_a_city_in(City, Country)", limit=1)["truncated"] is True
    assert "Choose 1 to 1000" in called(tools, "query", goal="is_a_city_in(X, Y)", limit=10**6)


def test_faults_are_told_to_the_agent(database: Path) -> None:
    """A wrong goal, an unknown predicate and a dangerous goal are errors with Hapax's own messages."""
    tools = AgentTools(database)

    assert "shell" in called(tools, "query", goal="shell('rm -rf /')")
    assert "nobody" in called(tools, "why_not", atom="nobody_knows(this)")
    assert "uncertain" in called(tools, "search_statements", distribution="uncertain")
    (fault,) = called(tools, "check_rules", text="p(Thing X -> q(Thing X)")["diagnostics"]
    assert fault.startswith("rules:1:")
    assert called(tools, "why_not", atom="uses_currency('France', franc)")["story"]


def test_nothing_is_written_unless_it_is_told(database: Path) -> None:
    """Without --ask there is no tool that asks models, and no call changes the file."""
    before = database.read_bytes()
    tools = AgentTools(database)

    async def names() -> set[str]:
        async with Client(mcp_server(tools)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert anyio.run(names) == {"list_predicates", "query", "search_statements", "why", "why_not", "check_rules"}
    called(tools, "query", goal="is_a_city_in(City, Country)")
    assert database.read_bytes() == before


def test_questions_stay_within_one_budget(tmp_path: Path) -> None:
    """Over standard input and output, `ask` stores facts, and all its calls together keep the budget."""
    (tmp_path / "money.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    command = ["-m", "hapax.cli", "mcp", "--rules", str(tmp_path / "money.rules"), "--db", str(tmp_path / "kb.db")]
    asking = ["--ask", "-m", f"scripted:{tmp_path / 'script.json'}", "--max-calls", "3"]
    server = StdioServerParameters(command=sys.executable, args=[*command, *asking])

    async def ask() -> list[Any]:
        async with Client(stdio_client(server)) as client:
            goals = ["uses_currency('France', X)", "is_a_city_in(City, Country)", "uses_currency(Country, 'euro')"]
            return [(await client.call_tool("ask", {"goal": goal})).structured_content for goal in goals]

    first, *others = anyio.run(ask)
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        sent = sum(kb.call_counts().values())

    assert first["answers"] == [{"X": "euro"}]
    assert all("Budget reached" in answer["stopped"] for answer in others)
    assert 0 < sent <= 3


def test_asking_needs_a_budget(database: Path) -> None:
    """Without a limit an agent could spend without end."""
    result = invoke("mcp", "--db", database, "--ask", "-m", "simulated")

    assert result.exit_code == 2
    assert "--max-calls, --max-tokens or --max-cost" in result.output
