"""The six prompts of the paper (appendix C), in its own words and in those of the released notebooks.

The paper's are the printed words; where its page breaks a line, one line break stands. The notebooks' are what they
send, byte for byte; those for CR-WSC-H and CR-WSC-M differ in two places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from evaluation.winograd.data import MACHINE, Pair, WinogradItem
from grammar.errors import HapaxError


class Method(StrEnum):
    """How a pair is asked. `aot-staged`: abstraction, answer and way back as separate steps. `own`: a user's prompt."""

    ZERO_SHOT = "zero-shot"
    ONE_SHOT = "one-shot"
    WINOWHY = "winowhy"
    ZS_COT = "zs-cot"
    COT = "cot"
    AOT = "aot"
    AOT_STAGED = "aot-staged"
    OWN = "own"


class Variant(StrEnum):
    """Whose words: those the paper prints, or those its released notebooks send."""

    PAPER = "paper"
    NOTEBOOK = "notebook"


HEADER = "Q: Compare the two sentences and answer the questions"
FORMAT_LINE = "Answer in the format that 1.Answer for the first question 2. 1.Answer for the second question\n"
STEP_BY_STEP = {Variant.PAPER: "Let's think step by step\n", Variant.NOTEBOOK: "let's think step by step\n"}
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

EXEMPLARS: Mapping[tuple[Method, Variant], str] = {
    (Method.ONE_SHOT, Variant.PAPER): _ONE_SHOT.replace("{colon}", ":"),
    (Method.ONE_SHOT, Variant.NOTEBOOK): _ONE_SHOT.replace("{colon}", ""),
    (Method.WINOWHY, Variant.PAPER): _WINOWHY_PAPER,
    (Method.WINOWHY, Variant.NOTEBOOK): _WINOWHY_NOTEBOOK,
    (Method.COT, Variant.PAPER): _COT.replace("{blank}", "").replace("{break}", " "),
    (Method.COT, Variant.NOTEBOOK): _COT.replace("{blank}", "\n").replace("{break}", "\n"),
    (Method.AOT, Variant.PAPER): _AOT_PAPER,
    (Method.AOT, Variant.NOTEBOOK): _AOT_NOTEBOOK,
}
"""The worked example before the question; zero-shot methods have none."""

PROMPTED = tuple(one for one in Method if one not in (Method.AOT_STAGED, Method.OWN))
"""The six of the paper's table 2, each a single prompt."""

STAGE_ONE = """\
Q: Compare the two sentences and answer the questions
1. The tasty fish ate the worm, it was tasty. What does "it" refer to?
2. The tasty fish ate the worm, it was hungry. What does "it" refer to?
Select from ["tasty fish", "worm"]
Conceptualization: tasty fish can be conceptualized as a predator, and worm can be conceptualized as a prey."""
"""The first stage by itself: the same example up to where the concepts are known."""

STAGE_TWO = """\
Q: Compare the two sentences and answer the questions
1. The predator ate the prey, it was tasty. What does "it" refer to?
2. The predator ate the prey, it was hungry. What does "it" refer to?
Select from ["prey", "predator"]
Because the subject of "ate" should be hungry and the object should be tasty, so:
Answer: 1. prey. 2. predator"""
"""The second stage by itself: it shows no entity."""


def pronoun_question(pronoun: str) -> str:
    """`What does "he" refer to?`; `they` and `them` take "do"."""
    small = pronoun.lower()
    return f'What {"do" if small in ("they", "them") else "does"} "{small}" refer to?'


def question_block(pair: Pair) -> str:
    """The two sentences with their questions and the options of the first, as every prompt has them."""
    one, other = pair
    return f'{HEADER}\n1. {_asked(one)}\n2. {_asked(other)}\nSelect from ["{one.options[0]}", "{one.options[1]}"]\n'


def _asked(item: WinogradItem) -> str:
    return f"{item.text} {pronoun_question(item.pronoun)}"


def prompt(pair: Pair, method: Method, variant: Variant, own: str = "") -> str:
    """The whole prompt of a single-prompt method. `own`: the text before the question that a user brings."""
    block = question_block(pair)
    notebook = variant is Variant.NOTEBOOK
    machine = pair[0].source == MACHINE
    if method is Method.ZERO_SHOT:
        return f"{block}{FORMAT_LINE if notebook else ''}A:"
    if method is Method.ZS_COT:
        return f"{block}{FORMAT_LINE if notebook else ''}{STEP_BY_STEP[variant]}A: "
    exemplar = own if method is Method.OWN else EXEMPLARS[method, variant]
    if method is Method.WINOWHY and notebook:
        return f"{exemplar}\n\n{block}{'A:' if machine else ''}"
    follow = FOLLOW if method is Method.AOT and notebook and machine else ""
    return f"{exemplar}\n\n{follow}{block}A: "


def abstraction_prompt(pair: Pair) -> str:
    """Stage 1: what can the two entities be conceptualised as?"""
    return f"{STAGE_ONE}\n\n{question_block(pair)}Conceptualization: "


def abstract_prompt(pair: Pair) -> str:
    """Stage 2: the question about concepts, from a pair whose options are concepts already."""
    return f"{STAGE_TWO}\n\n{question_block(pair)}"


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A user's prompt, such as one taken for AoT2 of table 5, which neither paper nor release prints."""

    name: str
    text: str


def read_own(name: str, path: Path) -> OwnPrompt:
    """The file's text, which stands before each question. Raises HapaxError."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HapaxError(f"{path} cannot be read: {error}. Give a text file in UTF-8.") from error
    if not text:
        raise HapaxError(f"{path} is empty. Write what stands before each question.")
    if name in set(Method):
        raise HapaxError(f"{name!r} is a method of its own. Give the prompt another name.")
    return OwnPrompt(name, text)
