"""The wordings are those of LINK's released code, byte for byte, and knowledge prompts can be read back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.llm_oracle.profiles import (
    RELEASED,
    RELEASED_NL,
    ValueQuestion,
)
from hapax.llm_oracle.prompts import (
    PromptParts,
    critic_prompt,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
    read_prompt,
    sentence,
    type_claim,
    with_article,
)


def test_wordings_of_the_released_code() -> None:
    """Lists, single values, exclusion and the critic's question are asked for as LINK's code does, byte by byte."""
    assert (
        knowledge_prompt("B", "butter is an ingredient in [B]", "Dish")
        + exclusion_clause(("naan", "roti"))
        == "Give me 50 values of B to fill in the sentence 'butter is an ingredient in [B]' in the format '1. value.', "
        "where B is a dish. Do not generate these values: naan, roti."
    )
    assert functional_prompt("Y", "the radio was invented in [Y]", "Year") == (
        "Give me the correct value of Y to fill in the sentence 'the radio was invented in [Y]' "
        "in the format '1. value.', where Y is a year."
    )
    assert critic_prompt("Butter is {claim}.") == (
        "For the following question, please answer in a normal life scenario with no special consideration:\n"
        "Question: Is the following statement correct? Please answer yes or no\n"
        "Statement: Butter is {claim}.\n"
        "Answer:"
    )
    assert exclusion_clause(()) == ""


def test_claims_are_sentences() -> None:
    """A claim starts with a capital and ends in one full stop; articles follow the sound."""
    assert sentence("butter is in naan.") == "Butter is in naan."
    assert type_claim("saffron", "Ingredient") == "Saffron is an ingredient."
    assert [with_article(noun) for noun in ("hour", "university", "dish")] == ["an hour", "a university", "a dish"]


@given(st.sampled_from("ABXYZ"), st.text(max_size=50), st.sampled_from(["dish", "food allergen"]), st.integers(1, 999))
def test_prompt_is_read_back(variable: str, words: str, data_type: str, count: int) -> None:
    """Whatever stands in the sentence, the parts of a prompt are found again, with an exclusion clause or without."""
    for values in ((), ("a", "b.")):
        prompt = knowledge_prompt(variable, words, data_type, count) + exclusion_clause(values)
        assert read_prompt(prompt) == PromptParts(variable, words, data_type, count)
    assert read_prompt(functional_prompt(variable, words, data_type)) == PromptParts(variable, words, data_type, 1)


ROOT = Path(__file__).parents[3]
LINK = ROOT.parent / "shared" / "data" / "link"
TRACES = LINK / "released_traces"
PROMPT = re.compile(
    r"Give me (?:(?P<count>\d+) (?:diverse )?values|the correct value) of (?P<variable>\w) .*?'(?P<asked>.*?)' in the "
    r"format .*?\.', .*?\.(?: Do not generate these values: (?P<forbidden>.*)\.)?"
)


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
            question = released_question(call["prompt"], rule)
            assert profile.word(question) + exclusion_clause(question.forbidden) == call["prompt"]
            compared += 1
    assert compared > 500


def released_question(prompt: str, rule: dict[str, Any]) -> ValueQuestion:
    """The question of a traced prompt: data type and words from the rule, values from the prompt."""
    match = PROMPT.fullmatch(prompt)
    assert match is not None, prompt
    name, data_type, _, kind = rule["variables"][match["variable"]]
    forbidden = tuple(match["forbidden"].split(", ")) if match["forbidden"] else ()
    sentence, atom = filled(match["asked"], name, rule)
    count = int(match["count"] or 1)
    return ValueQuestion(name, sentence, (atom,), data_type, count, functional=kind == "factual", forbidden=forbidden)


def filled(asked: str, name: str, rule: dict[str, Any]) -> tuple[str, str]:
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
