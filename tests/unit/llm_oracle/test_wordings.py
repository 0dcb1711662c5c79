"""The wordings are those of LINK's released code, byte for byte, and knowledge prompts can be read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
