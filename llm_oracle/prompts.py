"""The words put to a model. One place, so that the embedded model is trained on exactly what the search asks.

Wordings are LINK's (section 2.3 of the paper, and its released code); `docs/models.md` says which is which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CRITIC_PROMPT = (
    "For the following question, please answer in a normal life scenario with no special consideration:\n"
    "Question: Is the following statement correct? Please answer yes or no\n"
    "Statement: {claim}\n"
    "Answer:"
)

VALUES_PER_CALL = 50

_KNOWLEDGE_FRAME = re.compile(
    r"Give me (?:(?P<count>\d{1,4}) values|the correct value) of (?P<variable>\S{1,64}) "
    r"to fill in the sentence '(?P<sentence>.*)' in the format '1\. value\.', "
    r"where (?P=variable) is an? (?P<data_type>[^.]+)\.",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What went into a knowledge prompt. `count` is 1 for a functional one; the data type is in lower case."""

    variable: str
    sentence: str
    data_type: str
    count: int


def read_prompt(prompt: str) -> PromptParts | None:
    """The parts of a `knowledge_prompt` or `functional_prompt`; None if the text is neither."""
    match = _KNOWLEDGE_FRAME.match(prompt)
    if match is None:
        return None
    return PromptParts(match["variable"], match["sentence"], match["data_type"], int(match["count"] or 1))


def knowledge_prompt(variable: str, sentence: str, data_type: str, count: int = VALUES_PER_CALL) -> str:
    """The paper's knowledge prompt (section 2.3), as the released code spells it.

    `sentence` holds the slot `[B]` of the variable asked for.
    """
    return (
        f"Give me {count} values of {variable} to fill in the sentence '{sentence}' "
        f"in the format '1. value.', where {variable} is {with_article(data_type.lower())}."
    )


def functional_prompt(variable: str, sentence: str, data_type: str) -> str:
    """The released code's prompt for a variable with one right value (its factual node)."""
    return (
        f"Give me the correct value of {variable} to fill in the sentence '{sentence}' "
        f"in the format '1. value.', where {variable} is {with_article(data_type.lower())}."
    )


def exclusion_clause(values: tuple[str, ...]) -> str:
    """The released code's sentence for the next calls, naming what was accepted already."""
    return f" Do not generate these values: {', '.join(values)}." if values else ""


def critic_prompt(claim: str) -> str:
    """The released code's question about a claim. The paper (section 2.3) says only that its answer is yes or no."""
    return CRITIC_PROMPT.format(claim=claim)


def type_claim(value: str, data_type: str) -> str:
    """The data-type statement the critic judges: `Saffron is an ingredient.`"""
    return sentence(f"{value} is {with_article(data_type.lower())}")


def sentence(words: str) -> str:
    """A clause as a sentence: first letter upper case, one full stop."""
    return words[:1].upper() + words[1:].rstrip(".") + "."


def with_article(noun: str) -> str:
    """`a dish`, `an ingredient`; by first letter, with the usual exceptions."""
    spoken_vowel = noun[:1] in "aeiou" and not noun.startswith(("uni", "use", "eu", "one"))
    return f"{'an' if spoken_vowel or noun.startswith(('hour', 'honor', 'heir')) else 'a'} {noun}"
