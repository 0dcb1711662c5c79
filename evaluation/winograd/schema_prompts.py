"""The prompts of the CR-WSC paper and its notebooks: of the six methods, and of analogies for new schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hapax.evaluation.winograd.schema_files import MACHINE, Pair
from hapax.grammar.errors import HapaxError


class PromptMethod(StrEnum):
    """Method of asking. `aot-staged` abstracts, answers and maps back in separate steps; `own` is a user's prompt.

    The methods that begin with `likelihood` score texts instead of reading a reply.
    """

    ZERO_SHOT = "zero-shot"
    ONE_SHOT = "one-shot"
    WINOWHY = "winowhy"
    ZS_COT = "zs-cot"
    COT = "cot"
    AOT = "aot"
    AOT_STAGED = "aot-staged"
    OWN = "own"
    LIKELIHOOD = "likelihood"
    LIKELIHOOD_PARTIAL = "likelihood-partial"
    LIKELIHOOD_PMI = "likelihood-pmi"
    LIKELIHOOD_CHOICE = "likelihood-choice"


class PromptWording(StrEnum):
    """Wording of the prompts: as the paper prints them, or as its released notebooks send them."""

    PAPER = "paper"
    NOTEBOOK = "notebook"


HEADER = "Q: Compare the two sentences and answer the questions"
FORMAT_LINE = "Answer in the format that 1.Answer for the first question 2. 1.Answer for the second question\n"
STEP_BY_STEP = {PromptWording.PAPER: "Let's think step by step\n", PromptWording.NOTEBOOK: "let's think step by step\n"}
FOLLOW = "Follow the above format of the answer and answer the following question. "

_ONE_SHOT = """\
Q: Compare the two sentences and answer the questions{colon}
1. The fish ate the worm. It was hungry. What does "it" refer to?
2. The fish ate the worm. It was tasty. What does "it" refer to?
Select from ["The fish", "The worm"]
A: 1. The fish. 2. The worm"""

_COT = """\
Q: Compare the two sentences and answer the questions
1. The fish ate the worm, it was tasty. What does "it" refer to?
2. The fish ate the worm, it was hungry. What does "it" refer to?
Select from ["fish", "worm"]
{blank}In the first sentence, the worm is the main object that was eaten, the one that is eaten should be considered \
as tasty. In the second sentence, the fish was the one eating so it must be hungry. Thus the answer is:{break}A: 1. \
worm 2. fish"""

_WINOWHY_PAPER = """\
Q: Compare the two sentences and answer the questions
1. The firemen arrived after the police because they were coming from so far away. What do "they" refers to?
2. The firemen arrived before the police because they were coming from so far away. What do "they" refers to?
Select from ["The firemen", "the police"]
In the first sentence, the answer is the firemen since if they were coming from so far away then it's more likely they \
arrived after. In the second sentence, the firemen arrived before the police, so the police were farther away thus \
arriving late. Thus the answer is:
A: 1. The firemen 2. the police"""

_WINOWHY_NOTEBOOK = """\
Q: Compare the two sentences and answer the questions
1. The tasty fish ate the worm, it was tasty. What does "it" refer to?
2. The tasty fish ate the worm, it was hungry. What does "it" refer to?
Select from ["tasty fish", "worm"]

In the first sentence, the worm is the main object that the very (ate) refers to so the answer is worm. In the second \
sentence, the fish was the one eating so it must be hungry. Thus the answer is:
A: 1. worm 2. fish"""

_AOT_PAPER = """\
Q: Compare the two sentences and answer the questions
1. The tasty fish ate the worm, it was tasty. What does "it" refer to?
2. The tasty fish ate the worm, it was hungry. What does "it" refer to? Select from ["tasty fish", "worm"]
Conceptualization:
Fish can be conceptualized as a predator, and worm can be conceptualized as a prey. The question can be conceptualized \
as:
1. The predator ate the prey, it was tasty. What does "it" refer to?
2. The predator ate the prey, it was hungry. What does "it" refer to? Select from ["prey", "predator"]
Because the subject of "ate" should be hungry and the object should be tasty, so:
Answer: 1. prey. 2. predator Conclusion: As worm is a prey, and fish is a predator in the context, A: Thus the answer \
is:
1. worm 2. fish"""

_AOT_NOTEBOOK = """\
Q: Compare the two sentences and answer the questions
1. The tasty fish ate the worm, it was tasty. What does "it" refer to?
2. The tasty fish ate the worm, it was hungry. What does "it" refer to?
Select from ["tasty fish", "worm"]

Conceptualization: Fish can be conceptualized as a predator, and worm can be conceptualized as a prey.
The question can be conceptualized as:
1. The predator ate the prey, it was tasty. What does "it" refer to?
2. The predator ate the prey, it was hungry. What does "it" refer to?
Select from ["prey", "predator"]
Because the subject of "ate" should be hungry and the object should be tasty, so:
Answer: 1. prey. 2. predator

Conclusion: As worm is a prey, and fish is a predator in the context,
A: Thus the answer is:
1. worm 2. fish"""

EXEMPLARS: Mapping[tuple[PromptMethod, PromptWording], str] = {
    (PromptMethod.ONE_SHOT, PromptWording.PAPER): _ONE_SHOT.replace("{colon}", ":"),
    (PromptMethod.ONE_SHOT, PromptWording.NOTEBOOK): _ONE_SHOT.replace("{colon}", ""),
    (PromptMethod.WINOWHY, PromptWording.PAPER): _WINOWHY_PAPER,
    (PromptMethod.WINOWHY, PromptWording.NOTEBOOK): _WINOWHY_NOTEBOOK,
    (PromptMethod.COT, PromptWording.PAPER): _COT.replace("{blank}", "").replace("{break}", " "),
    (PromptMethod.COT, PromptWording.NOTEBOOK): _COT.replace("{blank}", "\n").replace("{break}", "\n"),
    (PromptMethod.AOT, PromptWording.PAPER): _AOT_PAPER,
    (PromptMethod.AOT, PromptWording.NOTEBOOK): _AOT_NOTEBOOK,
}
"""Worked examples that precede the question; zero-shot methods have none."""

SCORED = (
    PromptMethod.LIKELIHOOD,
    PromptMethod.LIKELIHOOD_PARTIAL,
    PromptMethod.LIKELIHOOD_PMI,
    PromptMethod.LIKELIHOOD_CHOICE,
)
"""Methods that score texts instead of prompting."""

PROMPTED = tuple(
    method for method in PromptMethod if method not in (PromptMethod.AOT_STAGED, PromptMethod.OWN, *SCORED)
)
"""The six single-prompt methods of the paper's table 2."""

STAGE_ONE = """\
Q: Compare the two sentences and answer the questions
1. The tasty fish ate the worm, it was tasty. What does "it" refer to?
2. The tasty fish ate the worm, it was hungry. What does "it" refer to?
Select from ["tasty fish", "worm"]
Conceptualization: tasty fish can be conceptualized as a predator, and worm can be conceptualized as a prey."""
"""Example of the first stage: the AoT example up to the concepts."""

STAGE_TWO = """\
Q: Compare the two sentences and answer the questions
1. The predator ate the prey, it was tasty. What does "it" refer to?
2. The predator ate the prey, it was hungry. What does "it" refer to?
Select from ["prey", "predator"]
Because the subject of "ate" should be hungry and the object should be tasty, so:
Answer: 1. prey. 2. predator"""
"""Example of the second stage, which names no entity."""


def pronoun_question(pronoun: str) -> str:
    """`What does "he" refer to?`; `they` and `them` take "do"."""
    lower = pronoun.lower()
    return f'What {"do" if lower in ("they", "them") else "does"} "{lower}" refer to?'


def question_block(pair: Pair) -> str:
    """The end of every prompt: the two sentences with their questions, and the options of the first."""
    first, second = (f"{item.text} {pronoun_question(item.pronoun)}" for item in pair)
    # The second sentence may have options of its own; the prompt has one list for both.
    options = pair[0].options
    return f'{HEADER}\n1. {first}\n2. {second}\nSelect from ["{options[0]}", "{options[1]}"]\n'


def prompt(pair: Pair, method: PromptMethod, variant: PromptWording, own: str = "") -> str:
    """The prompt of a single-prompt method. `own`: a user's text to put before the question."""
    block = question_block(pair)
    notebook = variant is PromptWording.NOTEBOOK
    # The notebook for CR-WSC-M differs from that for CR-WSC-H in the WinoWhy and in the AoT prompt.
    machine = pair[0].source == MACHINE
    if method is PromptMethod.ZERO_SHOT:
        return f"{block}{FORMAT_LINE if notebook else ''}A:"
    # Only zero-shot has no blank after "A:"; the notebooks' prompts are kept to the byte.
    if method is PromptMethod.ZS_COT:
        return f"{block}{FORMAT_LINE if notebook else ''}{STEP_BY_STEP[variant]}A: "
    # A user's text takes the place of the worked example; the question stays the paper's.
    exemplar = own if method is PromptMethod.OWN else EXEMPLARS[method, variant]
    if method is PromptMethod.WINOWHY and notebook:
        return f"{exemplar}\n\n{block}{'A:' if machine else ''}"
    follow = FOLLOW if method is PromptMethod.AOT and notebook and machine else ""
    return f"{exemplar}\n\n{follow}{block}A: "


def abstraction_prompt(pair: Pair) -> str:
    """Stage 1: ask for concepts of the two entities."""
    return f"{STAGE_ONE}\n\n{question_block(pair)}Conceptualization: "


def abstract_prompt(pair: Pair) -> str:
    """Stage 2: ask about a pair whose options are concepts."""
    return f"{STAGE_TWO}\n\n{question_block(pair)}"


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A user's prompt, for example for AoT2 of table 5, which neither the paper nor the release contains."""

    name: str
    text: str


def read_own(name: str, path: Path) -> OwnPrompt:
    """Read a prompt from a file, to be put before each question. Raises HapaxError."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HapaxError(f"{path} cannot be read: {error}. Give a text file in UTF-8.") from error
    if not text:
        raise HapaxError(f"{path} is empty. Write the text that comes before each question.")
    # Otherwise its answers would be stored, and counted, as those of the built-in method.
    if name in set(PromptMethod):
        raise HapaxError(f"{name!r} is the name of a built-in method. Give the prompt another name.")
    return OwnPrompt(name, text)


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
