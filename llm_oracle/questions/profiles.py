"""Prompt profiles: ways to put a question for values into words.

A profile is one value; `PROFILES` is their ordered tuple, to which adding a value adds a profile. Models differ in the
words that bring out their knowledge: `profile_probing.py` measures which profile suits a model best.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.writing.words import with_article
from hapax.llm_oracle.protocols import ListedSentence, ReplyForm
from hapax.llm_oracle.questions.prompts import (
    VALUES_PER_CALL,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
)

BLANK = "___"
"""Mark of the requested value in the words of our own profiles, which models know from exercises."""

# `[B]` or `[B2]`, with an article before it if there is one.
_SLOT = re.compile(r"(?P<article>\b(?:the|an?) |)(?P<slot>\[[A-Z][0-9]{0,3}\])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnsweredExample:
    """A question of the same form with its answer, for the profile `few-shot`."""

    sentence: str
    """With `BLANK` at the requested place: `the Danube flows through ___`."""
    data_type: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueQuestion:
    """A question for values, in all forms that a wording may need.

    `sentence`: by the predicates' templates, with slots such as `[B]`; `atoms`: in predicate form, such as
    `ingredient_in(butter, B)`. `functional`: one value is right. `forbidden`: values that a reply should not repeat.
    `open_types`: data types of the sentence's other slots by their names.
    """

    variable: str
    sentence: str
    atoms: tuple[str, ...]
    data_type: str
    count: int = VALUES_PER_CALL
    functional: bool = False
    numeric: bool = False
    forbidden: tuple[str, ...] = ()
    examples: tuple[AnsweredExample, ...] = ()
    open_types: tuple[tuple[str, str], ...] = ()

    @property
    def blank_sentence(self) -> str:
        """The sentence with `BLANK` at the requested place and no other slot: `some river flows through ___`."""
        named = {f"[{name}]": f"some {data_type.lower()}" for name, data_type in self.open_types}
        named[f"[{self.variable}]"] = BLANK

        def worded(slot: re.Match[str]) -> str:
            text = named.get(slot["slot"], "something")
            # An article of the template stands before the blank alone: `the ___`, but `some animal`.
            return f"{slot['article']}{text}" if text == BLANK else text

        return _SLOT.sub(worded, self.sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A way to ask for values."""

    name: str
    description: str
    word: Callable[[ValueQuestion], str]
    """Writes the prompt, without the forbidden values unless `names_forbidden`."""
    names_forbidden: bool = False
    """True if `word` names the forbidden values. Otherwise the backend excludes them in its own way."""
    json: bool = False
    """True if the reply is a JSON object whose field `values` is an array of texts."""
    reply_end: str = ""
    """Text after which a reply goes on with another question of its own; empty: none."""
    recognised: bool = False
    """True for words of LINK, in which `read_prompt` recognises the list: their requests need no `ReplyForm`."""
    joins: bool = False
    """True if its questions may be asked together, in the words of `lists_prompt`."""

    def reply_form(self, question: ValueQuestion) -> ReplyForm | None:
        """The form of the reply for the backend; None for LINK's words, which say it."""
        if self.recognised:
            return None
        return ReplyForm(1 if question.functional else question.count, question.data_type, self.json)

    def listed(self, question: ValueQuestion) -> ListedSentence | None:
        """The question as one of several in a request; None if it is asked alone, in the words of the profile."""
        if not self.joins or question.forbidden:
            return None
        text = f"{question.blank_sentence} (___: {with_article(question.data_type.lower())})"
        return ListedSentence(text, 1 if question.functional else question.count)

    def own_part(self, text: str) -> str:
        """The part of a reply that answers this question, before further questions that the model makes up."""
        return text.partition(self.reply_end)[0] if self.reply_end else text


# Words of LINK


def _hapax_words(question: ValueQuestion) -> str:
    if question.functional:
        return functional_prompt(question.variable, question.sentence, question.data_type)
    return knowledge_prompt(question.variable, question.sentence, question.data_type, question.count)


def _paper_words(question: ValueQuestion) -> str:
    """Section 2.3 of the paper. It prints no prompt for a single right value, whose words are the released code's."""
    wanted = _wanted(question, f"{question.count} values")
    return (
        f"Give me {wanted} to fill in the sentence “{' & '.join(question.atoms)}” "
        f"in the format “1. value.”, where {question.variable} is a {question.data_type}."
    )


def _released_words(question: ValueQuestion) -> str:
    """The released code's default."""
    wanted = _wanted(question, f"{question.count} diverse values")
    verb = "is" if question.functional else "can be"
    return (
        f"Give me {wanted} to instantiate the rule '{' & '.join(question.atoms)}' "
        f"in the format '1. value.', where {question.variable} {verb} a {question.data_type}."
    )


def _released_sentence_words(question: ValueQuestion) -> str:
    """The released code with its option `use_nl_prompt`. Its article is always `a`."""
    wanted = _wanted(question, f"{question.count} values")
    return (
        f"Give me {wanted} to fill in the sentence '{question.sentence}' "
        f"in the format '1. value.', where {question.variable} is a {question.data_type.lower()}."
    )


def _wanted(question: ValueQuestion, values: str) -> str:
    return f"{'the correct value' if question.functional else values} of {question.variable}"


# Words of our own


def _plain_words(question: ValueQuestion) -> str:
    if question.functional:
        noun = question.data_type.lower()
        answer = "number" if question.numeric else f"name of the {noun}"
        # A list of one right name confuses small models, which then answer neither.
        return f'Name the {noun} such that "{question.blank_sentence}" is true. Answer with the {answer} only.'
    return f"{_request(question)} {_list_instruction(question)}{exclusion_clause(question.forbidden)}"


def _few_shot_words(question: ValueQuestion) -> str:
    blocks = ["Answer the last question in the way the others are answered: with a numbered list and nothing else."]
    for example in question.examples:
        items = "\n".join(f"{number}. {value}" for number, value in enumerate(example.values, 1))
        asked = f'List examples of {with_article(example.data_type.lower())} such that "{example.sentence}" is true.'
        blocks.append(f"Question: {asked}\nAnswer:\n{items}")
    blocks.append(f"Question: {_request(question)}{exclusion_clause(question.forbidden)}\nAnswer:")
    return "\n\n".join(blocks)


def _json_words(question: ValueQuestion) -> str:
    return (
        f"{_request(question)} Answer with one JSON object and nothing else, in the form "
        f'{{"values": ["first", "second"]}}.{exclusion_clause(question.forbidden)}'
    )


def _request(question: ValueQuestion) -> str:
    noun = with_article(question.data_type.lower())
    if question.functional:
        return f'Name {noun} such that "{question.blank_sentence}" is true. There is one right answer.'
    examples = "example" if question.count == 1 else "examples"
    return f'List {question.count} {examples} of {noun} such that "{question.blank_sentence}" is true.'


def _list_instruction(question: ValueQuestion) -> str:
    kind = "numbers" if question.numeric else "names"
    return f"Answer with a numbered list of {kind} only."


HAPAX = Profile(
    name="hapax",
    description="the sentence of LINK's released code, with the right article; the embedded model is trained on it",
    word=_hapax_words,
    recognised=True,
    joins=True,
)
PLAIN = Profile(
    name="plain",
    description="a plain request for a numbered list of names",
    word=_plain_words,
    names_forbidden=True,
    joins=True,
)
FEW_SHOT = Profile(
    name="few-shot",
    description="the plain request after examples with their answers",
    word=_few_shot_words,
    names_forbidden=True,
    reply_end="\nQuestion:",
)
JSON = Profile(
    name="json",
    description="the plain request for JSON, with structured output where the model has it",
    word=_json_words,
    names_forbidden=True,
    joins=True,
    json=True,
)
PAPER = Profile(
    name="paper",
    description="the predicate, as the LINK paper prints it",
    word=_paper_words,
    recognised=True,
)
RELEASED = Profile(
    name="released",
    description="the predicate, as LINK's released code asks by default",
    word=_released_words,
    recognised=True,
)
RELEASED_NL = Profile(
    name="released-nl",
    description="the sentence, as LINK's released code asks with use_nl_prompt",
    word=_released_sentence_words,
    recognised=True,
)

PROFILES = (HAPAX, PLAIN, FEW_SHOT, JSON, PAPER, RELEASED, RELEASED_NL)
"""All profiles, in the order in which they are probed."""

PROFILE_NAMES: Sequence[str] = tuple(profile.name for profile in PROFILES)


def find_profile(name: str) -> Profile:
    """The profile of this name. Raises HapaxError for an unknown one."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    raise HapaxError(f"There is no prompt profile {name!r}. Choose one of {', '.join(PROFILE_NAMES)}.")


def profile_name(name: str) -> str | None:
    """The name of a profile, None for `auto`. Raises HapaxError for another name."""
    if name == "auto":
        return None
    if name in PROFILE_NAMES:
        return name
    raise HapaxError(f"{name!r} is not one of auto, {', '.join(PROFILE_NAMES)}.")


ProfileName: TypeAlias = Annotated[
    str | None,
    Option(
        f"Words in which the knowledge model is asked: {', '.join(PROFILE_NAMES)}; auto: those of --compat, or those "
        "that bring the most known answers, which are probed once per model.",
        metavariable="NAME",
        default="auto",
        read=profile_name,
        in_any_folder=True,
    ),
]
