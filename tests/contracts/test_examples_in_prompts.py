"""Worked examples in the prompts of the profile few-shot: from given facts and `@example` lines, never an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import invoke
from openai_fake import FakeServer
from served import prompt_of

import hapax

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?"
oracle borders(Country, Country): "[1] borders [2]" / "[1] does not border [2]" / "does [1] border [2]?"
@example flows_through("the Danube", "Austria")
@example flows_through("the Danube", "Germany")
"""


def prompts(folder: Path, goal: str, *facts: tuple[str, str, str]) -> str:
    """The first question that leaves for a server when a goal is asked with these facts given."""
    (folder / "my.rules").write_text(RULES, "utf-8")
    rules = hapax.parse_rules(RULES)
    with hapax.KnowledgeBase(folder / "kb.db") as kb:
        for predicate, first, second in facts:
            hapax.add_facts(kb, predicate, [(first, second)], rules)
    asking = ("--ask", "-m", "openai:m", "--profile", "few-shot", "--likelihood", "frequency")
    with FakeServer() as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        given = ("--rules", folder / "my.rules", "--db", folder / "kb.db")
        invoke("query", goal, *asking, *given, environment=environment)
        return next(prompt for prompt in map(prompt_of, server.asked) if "List" in prompt)


def test_examples_of_the_rule_file_are_answered_questions(tmp_path: Path) -> None:
    """They come before the question, with all their values."""
    prompt = prompts(tmp_path, "flows_through('the Po', C)")

    assert 'such that "the Danube flows through ___" is true.\nAnswer:\n1. Austria\n2. Germany\n' in prompt
    assert prompt.rstrip().endswith("Answer:")
    assert prompt.index("the Danube") < prompt.index("the Po")


def test_given_facts_are_examples(tmp_path: Path) -> None:
    """At most three keys, those with most values first; a value that rules and facts both give is shown once."""
    rivers = [("flows_through", f"river {number}", f"land {number}") for number in range(5)]
    prompt = prompts(
        *(tmp_path, "flows_through('the Po', C)", *rivers),
        *(("flows_through", "river 4", "land 9"), ("flows_through", "the Danube", "Austria")),
    )

    assert [number for number in range(5) if f"river {number} flows" in prompt] == [0, 4]
    assert prompt.count("Austria") == 1


@pytest.mark.parametrize(
    ("goal", "facts", "shown", "hidden"),
    [
        # neither the row of the asked river nor countries that are known to answer
        (
            "flows_through('the Danube', C)",
            [("flows_through", "the Rhine", "Austria"), ("flows_through", "the Rhine", "France")],
            ["France"],
            ["Austria", "Germany"],
        ),
        # a row of another country that names the asked one states an answer
        (
            "borders('France', C)",
            [("borders", "Spain", "France"), ("borders", "Spain", "Portugal"), ("borders", "Chile", "Peru")],
            ["Chile borders ___"],
            ["Spain"],
        ),
    ],
)
def test_no_example_gives_an_answer_away(
    tmp_path: Path, goal: str, facts: list[tuple[str, str, str]], shown: list[str], hidden: list[str]
) -> None:
    """Known values of the asked key are shown in no row."""
    prompt = prompts(tmp_path, goal, *facts)

    assert [text for text in shown if text not in prompt] == []
    assert [text for text in hidden if text in prompt] == []
