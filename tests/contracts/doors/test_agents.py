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
    server = StdioServerParameters(command=sys.executable, args=[str(ROOT / "cli.py"), "kb", "mcp", *map(str, options)])

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
        ("why_not", {"text": "uses_currency('France', franc)"}),
        ("check_rules", {"text": "p(Thing X -> q(Thing X)"}),
    )
    predicates, answers, statements, first, none, cut, story, missing, faults = replies

    finding = {"list_predicates", "search_names", "search_facts", "search_statements"}
    assert names == {*finding, "query", "why", "why_not", "check_rules"}
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
        "nobody": ("why_not", {"text": "nobody_knows(this)"}),
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


# --- an agent over a knowledge base that it does not know ------------------------------------------------------------

SHIPS = """
given sails_for(Ship, Company): "[1] sails for [2]" / "[1] does not sail for [2]" / "does [1] sail for [2]?"
given is_based_in(Company, Port): "[1] is based in [2]" / "[1] is not based in [2]" / "is [1] based in [2]?"
given was_built_in(Ship, Year): "[1] was built in [2]" / "[1] was not built in [2]" / "was [1] built in [2]?"
derived calls_at(Ship, Port): "[1] calls at [2]"
sails_for(S, C) & is_based_in(C, P) -> calls_at(S, P)
"""
SAILS = [("MS Nordlys", "Hurtigruten"), ("MS Vesterålen", "Hurtigruten"), ("Pride of Kent", "P&O Ferries")]
BASED = [("Hurtigruten", "Tromsø"), ("P&O Ferries", "Dover")]
BUILT = [("MS Nordlys", 1994), ("MS Vesterålen", 1983), ("Pride of Kent", 1992)]

TASKS: dict[str, tuple[list[Question], str]] = {
    "Where does the Nordlys call?": (
        [("search_names", {"words": "nordlys"}), ("query", {"goal": "calls_at('{names[0]}', Port)"})],
        "Tromsø",
    ),
    "Who owns the Pride of Kent?": (
        [("search_names", {"words": "pride kent"}), ("query", {"goal": "sails_for('{names[0]}', Company)"})],
        "P&O Ferries",
    ),
    "When was the Vesteralen built?": (
        [("search_names", {"words": "vesteralen"}), ("query", {"goal": "was_built_in('{names[0]}', Year)"})],
        "1983",
    ),
    "Which ships call at Tromso?": (
        [("search_names", {"words": "troms"}), ("query", {"goal": "calls_at(Ship, '{names[0]}')"})],
        "MS Vesterålen",
    ),
    "What is known of Dover?": ([("search_facts", {"words": "dover"})], "P&O Ferries"),
    "How many ships are there?": ([("list_predicates", {}), ("search_facts", {"predicate": "was_built_in"})], "1994"),
    "Which ship is older than 1990?": ([("query", {"goal": "was_built_in(Ship, Y), Y < 1990"})], "MS Vesterålen"),
    "Why does the Nordlys call at Tromso?": (
        [("search_names", {"words": "troms"}), ("why", {"text": "calls_at('MS Nordlys', '{names[0]}')"})],
        "sails for Hurtigruten",
    ),
    "Why does the Nordlys not call at Dover?": (
        [("search_names", {"words": "dover"}), ("why_not", {"text": "calls_at('MS Nordlys', '{names[0]}')"})],
        "does not hold",
    ),
    "Can I say that a ship is large?": ([("check_rules", {"text": "large(S) -> big(S"})], "rules:1:"),
}
"""Questions with an agent's calls, which use what earlier replies told it, and a part of the right answer."""


def test_an_agent_answers_ten_questions_over_a_base_that_it_does_not_know(tmp_path: Path) -> None:
    """It finds the spelling of names, facts and proofs through the tools alone, and reads the language as a resource."""
    rules = hapax.parse_rules(SHIPS)
    (tmp_path / "ships.rules").write_text(SHIPS, "utf-8")
    with hapax.KnowledgeBase(tmp_path / "ships.db") as kb:
        for predicate, rows in (("sails_for", SAILS), ("is_based_in", BASED), ("was_built_in", BUILT)):
            hapax.add_facts(kb, predicate, rows, rules)
    options = ["kb", "mcp", "--rules", tmp_path / "ships.rules", "--db", tmp_path / "ships.db"]
    server = StdioServerParameters(command=sys.executable, args=[str(ROOT / "cli.py"), *map(str, options)])

    async def work() -> tuple[str, dict[str, str]]:
        answers = {}
        async with Client(stdio_client(server)) as client:
            page = (await client.read_resource("hapax://language")).contents[0].text
            for task, (calls, _) in TASKS.items():
                known: dict[str, Any] = {}
                for tool, template in calls:
                    given = {name: text.format(**known) for name, text in template.items()}
                    reply = await client.call_tool(tool, given)
                    assert not reply.is_error, reply.content
                    known |= reply.structured_content
                    answers[task] = str(reply.structured_content)
            slip = await client.call_tool("query", {"goal": "calls_at('ms nordlys', Port"})
            return page, answers | {"slip": slip.content[0].text}

    page, answers = anyio.run(work)

    assert page.startswith("# The rule language")
    assert [task for task, (_, part) in TASKS.items() if part not in answers[task]] == []
    assert "hapax " not in answers["slip"]


def test_remedies_are_calls_of_tools(tmp_path: Path) -> None:
    """A remedy that an agent can carry out is named as a tool with its arguments; the rest is for whoever runs the server."""
    with hapax.KnowledgeBase(tmp_path / "empty.db"):
        pass
    _, (rejected, limit) = asked(
        ["--db", tmp_path / "empty.db"],
        ("why", {"text": "nobody_knows(this)"}),
        ("query", {"goal": "between(1, 100000000, X), X < 0"}),
    )

    for message in (rejected, limit):
        assert "`hapax why" not in str(message)
        assert "`hapax query" not in str(message)
    assert "of the server" in str(limit)
