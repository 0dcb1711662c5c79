"""Analogy prompts (appendix B) for a source pair."""

from __future__ import annotations

from dataclasses import dataclass

from hapax.evaluation.winograd.data import Pair

_PAPER_TASK = """\
Compare the following two sentences and answer the questions:
{one}
{two}
Think about the property reflected by these sentences regarding {a} and {b}. Provide two entities that share a similar \
relation to {a} and {b} based on this property.
Answer:
"""

_PAPER_ANSWER = """\
{why} Therefore, analogous entities are:
{first}
{second}
The analogous sentences would be:
{new_one}
{new_two}"""


@dataclass(frozen=True, slots=True)
class Analogy:
    """A worked example: two sentences about two entities, their property, and two analogous entities."""

    sentences: tuple[str, str]
    entities: tuple[str, str]
    why: str
    analogous: tuple[str, str]
    """As printed in the paper, including its full stops."""
    new_sentences: tuple[str, str]

    @property
    def text(self) -> str:
        task = _PAPER_TASK.format(
            one=self.sentences[0], two=self.sentences[1], a=f"the {self.entities[0]}", b=f"the {self.entities[1]}"
        )
        answer = _PAPER_ANSWER.format(
            why=self.why,
            first=self.analogous[0],
            second=self.analogous[1],
            new_one=self.new_sentences[0],
            new_two=self.new_sentences[1],
        )
        return task + answer


ANALOGIES = (
    Analogy(
        ("The bike passes the car because it is fast.", "The bike passes the car because it is slow."),
        ("bike", "car"),
        "In these sentences, the property highlighted is the speed difference between the bike and the car. Typically, "
        "a bike is slower than a car.",
        ("truck", "sports car"),
        (
            "The truck passes the sports car because it is fast.",
            "The truck passes the sports car because it is slow.",
        ),
    ),
    Analogy(
        (
            "The ring doesn't fit into the handbag because it is too large.",
            "The ring doesn't fit into the handbag because it is too small.",
        ),
        ("ring", "handbag"),
        "In these sentences, the property highlighted is the size difference between the ring and the handbag. "
        "Typically, a ring is smaller than a handbag.",
        ("pebble", "schoolbag."),
        (
            "The pebble doesn't fit into the schoolbag because it is too large.",
            "The pebble doesn't fit into the schoolbag because it is too small.",
        ),
    ),
    Analogy(
        (
            "The body-builder doesn't lift the child because he is too heavy.",
            "The body-builder doesn't lift the child because he is too light.",
        ),
        ("body-builder", "child"),
        "In these sentences, the property highlighted is the weight difference between the bodybuilder and the child. "
        "Typically, a bodybuilder is heavier than a child.",
        ("strong man", "little boy."),
        (
            "The strong man doesn't lift the little boy because he is too heavy.",
            "The strong man doesn't lift the little boy because he is too light.",
        ),
    ),
    Analogy(
        (
            "The elite students were bullying the undisciplined students, so we punished them.",
            "The elite students were bullying the undisciplined students, so we rescued them.",
        ),
        ("elite students", "undisciplined students"),
        "In these sentences, the property highlighted is the difference in behavior or discipline between the elite "
        "students and the undisciplined students. Typically, elite students are more disciplined compared to "
        "undisciplined students.",
        ("lawyers", "homeless individuals."),
        (
            "The lawyers were bullying the homeless individuals, so we punished them.",
            "The lawyers were bullying the homeless individuals, so we rescued them.",
        ),
    ),
    Analogy(
        ("The fish eats the worm, and it is tasty.", "The fish eats the worm, it is hungry."),
        ("fish", "worm"),
        "In these sentences, the property highlighted is the taste or satisfaction derived from eating the worm by the "
        "fish. Typically, the fish finds the worm either tasty or satisfies its hunger.",
        ("ring-necked pheasant", "grasshopper."),
        (
            "The ring-necked pheasant eats the grasshopper, and it is tasty.",
            "The ring-necked pheasant eats the grasshopper, it is hungry.",
        ),
    ),
)
"""The paper's prompts 1 to 5."""

RELEASED_EXAMPLE = """\
Compare the two sentences and answer the questions
1.The bike passes the car because it is fast.
2.The bike passes the car because it is slow.
Think about the property these two sentences reflect about the bike and car in both sentences?
Please give two entities to replace the bike and car according to the properties.

In the two sentences, it reflects the speed of the bike and the car. In usual circumstances, the speed of a bike is \
slower than that of a car. Therefore, the two entities are:
1. truck. 2. sports car.
The two sentences are
1.The truck passes the sports car because it is fast.
2.The truck passes the sports car because it is slow."""

RELEASED_TASK = """\
Compare the two sentences and answer the questions
1.{one}
2.{two}
Think about the property these two sentences reflect about the {a} and {b} in both sentences?
Give two entities with an analogous relation with the {a} and {b} according to the property."""


def paper_prompt(pair: Pair, number: int) -> str:
    """The paper's prompt 1 to 5 for a source pair."""
    first, second = pair
    # Options are in capitals where they begin a sentence; the prompt names them in the middle of one.
    a, b = (option[0].lower() + option[1:] if option.startswith("The ") else option for option in first.options)
    return f"{ANALOGIES[number - 1].text}\n\n{_PAPER_TASK.format(one=first.text, two=second.text, a=a, b=b)}"


def released_prompt(pair: Pair) -> str:
    """The prompt of the released transcripts, byte for byte."""
    first, second = pair
    a, b = first.options
    return f"{RELEASED_EXAMPLE}\n\n\n{RELEASED_TASK.format(one=first.text, two=second.text, a=a, b=b)}"
