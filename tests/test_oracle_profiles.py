"""Prompt profiles: their words to the letter, and what a reply may and may not contain."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.profiles import (
    FEW_SHOT,
    HAPAX,
    JSON,
    PAPER,
    PLAIN,
    PROFILE_NAMES,
    PROFILES,
    RELEASED,
    RELEASED_NL,
    AnsweredExample,
    ValueQuestion,
    find_profile,
)
from hapax.llm_oracle.prompts import exclusion_clause, functional_prompt, knowledge_prompt, read_prompt
from hapax.llm_oracle.protocols import ReplyForm

ROOT = Path(__file__).parents[1]
LINK = ROOT.parent / "shared" / "data" / "link"
TRACES = LINK / "released_traces"

DISH = ValueQuestion("B", "butter is an ingredient in [B]", ("ingredient_in(butter, B)",), "Dish")
RIVER = ValueQuestion("B", "the Rhine flows through [B]", ("flows_through(the Rhine, B)",), "Country", 5)

_PROMPT = re.compile(
    r"Give me (?:(?P<count>\d+) (?:diverse )?values|the correct value) of (?P<variable>\w) .*?'(?P<asked>.*?)' in the "
    r"format .*?\.', .*?\.(?: Do not generate these values: (?P<forbidden>.*)\.)?"
)


def test_paper_prints_the_predicate_in_curly_quotes() -> None:
    """The profile `paper` gives the prompt of section 2.3 to the letter, with the article a."""
    assert PAPER.word(DISH) == (
        "Give me 50 values of B to fill in the sentence “ingredient_in(butter, B)” in the format “1. value.”, "
        "where B is a Dish."
    )


def test_hapax_keeps_the_words_of_the_embedded_model() -> None:
    """The profile `hapax` gives the very prompts by which older knowledge bases hold answers."""
    assert HAPAX.word(DISH) == knowledge_prompt("B", "butter is an ingredient in [B]", "Dish")
    year = ValueQuestion("Y", "the radio was invented in [Y]", (), "Year", functional=True)
    assert HAPAX.word(year) == functional_prompt("Y", "the radio was invented in [Y]", "Year")
    assert HAPAX.reply_form(DISH) is None


@pytest.mark.parametrize("profile", [HAPAX, PAPER, RELEASED, RELEASED_NL], ids=lambda profile: profile.name)
def test_words_of_link_tell_backends_the_length_of_the_list(profile: Any) -> None:
    """Backends read variable and count from a prompt in any of LINK's wordings, so that they can stop at its end."""
    parts = read_prompt(profile.word(DISH) + exclusion_clause(("naan",)))
    assert parts is not None
    assert (parts.variable, parts.count, parts.data_type.lower()) == ("B", 50, "dish")
    once = read_prompt(profile.word(replace(DISH, functional=True)))
    assert once is not None
    assert once.count == 1


def test_plain_asks_with_a_blank_and_names_forbidden_values() -> None:
    """The profile `plain` marks the requested place with a blank, and says which values to leave out."""
    assert PLAIN.word(RIVER) == (
        'List 5 examples of a country such that "the Rhine flows through ___" is true. '
        "Answer with a numbered list of names only."
    )
    assert PLAIN.word(replace(RIVER, forbidden=("Germany", "Austria"))).endswith(
        " Do not generate these values: Germany, Austria."
    )
    open_words = replace(RIVER, sentence="[A] flows through [B]")
    assert '"something flows through ___"' in PLAIN.word(open_words)
    typed_words = replace(open_words, open_types=(("A", "River"),))
    assert '"some river flows through ___"' in PLAIN.word(typed_words)
    year = ValueQuestion("Y", "the radio was invented in [Y]", (), "Year", functional=True, numeric=True)
    assert PLAIN.word(year) == (
        'Name the year such that "the radio was invented in ___" is true. Answer with the number only.'
    )


def test_few_shot_shows_examples_before_the_question() -> None:
    """The profile `few-shot` shows questions with answers, and reads a reply up to the next question it makes up."""
    example = AnsweredExample("the Danube flows through ___", "Country", ("Austria", "Hungary"))
    asked = replace(RIVER, examples=(example,))
    assert FEW_SHOT.word(asked) == (
        "Answer the last question in the way the others are answered: with a numbered list and nothing else.\n\n"
        'Question: List examples of a country such that "the Danube flows through ___" is true.\n'
        "Answer:\n1. Austria\n2. Hungary\n\n"
        'Question: List 5 examples of a country such that "the Rhine flows through ___" is true.\n'
        "Answer:"
    )
    reply = "1. Germany.\n2. France.\n\nQuestion: List examples of a city.\nAnswer:\n1. Rome."
    assert FEW_SHOT.own_part(reply) == "1. Germany.\n2. France.\n"


def test_json_asks_for_an_object_of_values() -> None:
    """The profile `json` asks for one object, and tells the backend that the reply is JSON."""
    assert JSON.word(RIVER) == (
        'List 5 examples of a country such that "the Rhine flows through ___" is true. '
        'Answer with one JSON object and nothing else, in the form {"values": ["first", "second"]}.'
    )
    assert JSON.reply_form(RIVER) == ReplyForm(5, "Country", json=True)


def test_unknown_profile_is_refused_with_the_names() -> None:
    """An unknown name is refused with all names to choose from."""
    with pytest.raises(HapaxError, match=f"no prompt profile 'chatty'.*{', '.join(PROFILE_NAMES)}"):
        find_profile("chatty")


def test_the_page_shows_the_words_of_every_profile() -> None:
    """docs/profiles.md has each profile with its description and its words to the letter."""
    page = (ROOT / "docs" / "profiles.md").read_text("utf-8")
    example = AnsweredExample("the Danube flows through ___", "Country", ("Austria", "Hungary"))
    for profile in PROFILES:
        question = replace(RIVER, count=50, examples=(example,) if profile is FEW_SHOT else ())
        section = page.split(f"### `{profile.name}`\n")[1].split("\n### ")[0]
        assert profile.description[1:] in section
        assert f"```text\n{profile.word(question)}\n```" in section


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces of LINK's released code are not there")
@pytest.mark.parametrize(("form", "profile"), [("default", RELEASED), ("nl", RELEASED_NL)], ids=["default", "nl"])
def test_released_words_are_those_of_the_traces(form: str, profile: Any) -> None:
    """Each prompt that LINK's released code sent is made byte for byte from the rule and the values in it."""
    rules = json.loads((LINK / "rules_example.json").read_text("utf-8"))
    compared = 0
    for path in sorted(TRACES.glob(f"search_*_{form}_*.json")):
        trace = json.loads(path.read_text("utf-8"))
        rule = rules[trace["rule"].split()[0]]
        for call in trace["knowledge"]:
            question = _released_question(call["prompt"], rule)
            assert profile.word(question) + exclusion_clause(question.forbidden) == call["prompt"]
            compared += 1
    assert compared > 500


def _released_question(prompt: str, rule: dict[str, Any]) -> ValueQuestion:
    """The question of a traced prompt: data type and words from the rule, values from the prompt."""
    match = _PROMPT.fullmatch(prompt)
    assert match is not None, prompt
    name, data_type, _, kind = rule["variables"][match["variable"]]
    forbidden = tuple(match["forbidden"].split(", ")) if match["forbidden"] else ()
    sentence, atom = _filled(match["asked"], name, rule)
    count = int(match["count"] or 1)
    return ValueQuestion(name, sentence, (atom,), data_type, count, functional=kind == "factual", forbidden=forbidden)


def _filled(asked: str, name: str, rule: dict[str, Any]) -> tuple[str, str]:
    """The words of a traced prompt as a sentence and as an atom, by the rule's atom about this variable."""
    for atom, template in {**rule["premise_map"], **rule["conclusion_map"]}.items():
        variables = atom[atom.index("(") + 1 : -1].split(", ")
        if name not in variables:
            continue
        (other,) = set(variables) - {name}
        atom_parts, template_parts = re.split(rf"\b{other}\b", atom), template.split(f"[{other}]")
        for before, after in (atom_parts, template_parts):
            if asked.startswith(before) and asked.endswith(after):
                value = asked[len(before) : len(asked) - len(after)]
                return value.join(template_parts), value.join(atom_parts)
    raise AssertionError(asked)
