"""Questions to people, the instructions of sheets, and the qualification with which each sheet begins.

The paper prints the questions (3.3, 4, appendices C and G) and shows the sheets only as pictures (figures 14 and 15),
so the instructions, examples and qualifications here are our own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hapax.engine.judgements import (
    DATA_TYPE_QUESTION,
    ENTAILMENT_QUESTION,
    FALSE_FACTS,
    HARMFUL,
    SOUND,
    SOUNDNESS_QUESTION,
    SOUNDNESS_WORDING,
    UNSOUND_RULE,
    UNSURE,
)
from hapax.grammar.options import Option
from hapax.grammar.writing.words import with_article
from hapax.grammar.yaml_files import read_yaml
from hapax.llm_oracle.questions.prompts import sentence

AUDIT = "audit"
"""First word of the questions of table 6, `audit Q1` to `audit Q5`, which are about facts."""

PRINTED_ARGUMENTS = 2
"""Arguments of the facts of table 6: Q1 and Q2 are about their references, Q3 about truth, Q4 and Q5 about types."""

BASELINE = "baseline 5"
"""The probing template 5 put to people, as in the paper's section 4. It does not label statements."""

SCHEMA = "schema"
"""First word of the questions about Winograd schemas: two labels, and those of SCHEMA_AVAILABLE."""

SCHEMA_LABELS = ("first", "second", "unclear")

SCHEMA_AVAILABLE = {
    "context": "Are both sentences right in themselves: could somebody say this of these two?",
    "reasoning": "Would the reasons for your two answers stay the same with any other two in their places?",
    "adversarial": "At first glance, do the sentences sound as if the other one of the two were meant?",
}
"""The three aspects that annotators verify in the CR-WSC paper (section 2.1)."""

SOUNDNESS_ANSWERS = (SOUND, FALSE_FACTS, UNSOUND_RULE, UNSURE)

SOUNDNESS_TEXT = "Is the statement true?"

CHOICES = ("yes", "no")

_JOINERS = "\u200c\u200d"
"""Invisible characters that are not shown by their codes: Persian and Hindi words cannot be spelled without them."""


FORMS: Mapping[str, tuple[str, ...]] = {"json": ("json",), "csv": ("csv",), "both": ("json", "csv")}
"""Forms of sheets by what `--format` names."""

SheetForms: TypeAlias = Annotated[
    tuple[str, ...],
    Option(
        "Format of the sheets: CSV for a spreadsheet, JSON for Label Studio.",
        name="format",
        default="both",
        choices=tuple(FORMS),
        read=FORMS.__getitem__,
    ),
]

DECIDING = {"statements": ENTAILMENT_QUESTION, "predicates": AUDIT, "soundness": SOUNDNESS_QUESTION}
"""Beginnings of the questions by which an item of a sheet counts as judged; a vote on another sheet does not."""


class SheetKind(StrEnum):
    """LINK's three sheets (figure 14, appendix C with table 6, figure 15), for Winograd schemas, and for soundness."""

    STATEMENTS = "statements"
    PREDICATES = "predicates"
    BASELINE = "baseline"
    SCHEMAS = "schemas"
    SOUNDNESS = "soundness"


@dataclass(frozen=True, slots=True)
class ItemQuestion:
    """One question of an item. `key` is stored with the vote, `text` is read by people."""

    key: str
    text: str
    choices: tuple[str, ...] = CHOICES
    required: bool = True


@dataclass(frozen=True, slots=True)
class VotingItem:
    """Lines to read, and questions about them. `id` names the subject of the votes.

    `facts`: the ids of the facts that the last lines state, empty for a line that states none.
    """

    id: str
    lines: tuple[str, ...]
    questions: tuple[ItemQuestion, ...]
    facts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(self.lines)


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """An item with its right answers, for the instructions or for the qualification."""

    item: VotingItem
    answers: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SheetWording:
    """Title, instructions and examples of a kind of sheet. The answers of `qualification` are never put on a sheet."""

    title: str
    instructions: tuple[str, ...]
    examples: tuple[WorkedExample, ...]
    qualification: tuple[WorkedExample, ...]


def visible(text: str) -> str:
    """The text with invisible characters and those that reverse others written as `⟨U+202E⟩`."""
    readable = ""
    for character in text:
        # Controls, formats, surrogates, and line and paragraph separators.
        is_hidden = unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in _JOINERS
        readable += f"⟨U+{ord(character):04X}⟩" if is_hidden else character
    return readable


def statement_item(identity: str, premise: str, conclusion: str, typed: tuple[tuple[str, str, str], ...]) -> VotingItem:
    """Item of figure 14: data types, entailment and harm. `typed`: name, value and data type of variables."""
    types = []
    for name, value, kind in typed:
        # Rules write data types in capitals, `Food Item`; the paper asks in lower case: `Is Houston a location?`
        asked = f"Is {value} {with_article(kind.lower())}?"
        types.append(ItemQuestion(f"{DATA_TYPE_QUESTION} {name}", visible(asked)))
    entailed = ItemQuestion(ENTAILMENT_QUESTION, "Does the premise entail the conclusion?")
    harmful = ItemQuestion(
        HARMFUL, "Could this statement harm or insult somebody? (Leave it open if not.)", required=False
    )
    lines = (f"Premise: {visible(sentence(premise))}", f"Conclusion: {visible(sentence(conclusion))}")
    return VotingItem(identity, lines, (*types, entailed, harmful))


def predicate_item(identity: str, claim: str, typed: Sequence[tuple[str, str]]) -> VotingItem:
    """Item with Q1 to Q5 of appendix C. `claim`: a sentence; `typed`: value and data type of each argument.

    The paper's facts have two arguments; the questions about further ones have keys of their own.
    """
    references, types = [], []
    for number, (value, data_type) in enumerate(typed, start=1):
        is_printed = number <= PRINTED_ARGUMENTS
        text = f"Does “{value}” in the Statement “{claim}” have a clear reference?"
        key = f"Q{number}" if is_printed else f"reference {number}"
        references.append(ItemQuestion(f"{AUDIT} {key}", visible(text)))
        type_text = sentence(f"{value} is {with_article(data_type.lower())}")
        text = f"Is the Statement “{type_text}” factually correct, with very high probability?"
        key = f"Q{PRINTED_ARGUMENTS + 1 + number}" if is_printed else f"type {number}"
        types.append(ItemQuestion(f"{AUDIT} {key}", visible(text)))
    text = f"Is the Statement “{claim}” factually correct, with very high probability?"
    # A comment is about the truth of the fact.
    truth = ItemQuestion(f"{AUDIT} Q{PRINTED_ARGUMENTS + 1}", visible(text))
    return VotingItem(identity, (f"Statement: {visible(claim)}",), (*references, truth, *types))


def soundness_item(identity: str, premise: str, conclusion: str, facts: Mapping[str, str]) -> VotingItem:
    """Item about the truth of a statement. `facts`: sentences of its proof with the ids of facts, or empty texts."""
    lines = [f"Statement: If {visible(premise)}, then {visible(conclusion)}."]
    lines += [f"Fact: {visible(sentence(fact))}" for fact in facts]
    questions = (
        ItemQuestion(SOUNDNESS_QUESTION, SOUNDNESS_TEXT, SOUNDNESS_ANSWERS),
        ItemQuestion(SOUNDNESS_WORDING, "Is the statement good English?"),
    )
    return VotingItem(identity, tuple(lines), questions, tuple(facts.values()))


def baseline_item(identity: str, text: str) -> VotingItem:
    """Item of figure 15: the question of table 12 that the paper describes for people (section 4)."""
    # No lines: the question names premise and conclusion.
    return VotingItem(identity, (), (ItemQuestion(BASELINE, visible(text)),))


def schema_item(
    identity: str, sentences: tuple[str, str], pronouns: tuple[str, str], options: tuple[str, str]
) -> VotingItem:
    """Item about a Winograd schema: what each pronoun means (label), and if the schema can be used (availability)."""
    first, second = map(visible, options)
    questions = []
    for number, pronoun in enumerate(pronouns, start=1):
        word = visible(pronoun)
        text = f"In sentence {number}, does “{word}” mean the first (“{first}”) or the second (“{second}”)?"
        questions.append(ItemQuestion(f"{SCHEMA} label {number}", text, SCHEMA_LABELS))
    for key, text in SCHEMA_AVAILABLE.items():
        questions.append(ItemQuestion(f"{SCHEMA} {key}", text))
    lines = tuple(f"{number}. {visible(text)}" for number, text in enumerate(sentences, start=1))
    return VotingItem(identity, lines, tuple(questions))


_ITEMS: Mapping[SheetKind, Callable[..., VotingItem]] = {
    SheetKind.STATEMENTS: statement_item,
    SheetKind.PREDICATES: predicate_item,
    SheetKind.BASELINE: baseline_item,
    SheetKind.SCHEMAS: schema_item,
    SheetKind.SOUNDNESS: soundness_item,
}


def _worked(kind: SheetKind, rows: Sequence[Mapping[str, Any]]) -> tuple[WorkedExample, ...]:
    """Examples of a kind of sheet, each with as many of its item's questions as there are answers."""
    examples = []
    for row in rows:
        item, answers = _ITEMS[kind](*row["item"]), tuple(row["answers"])
        asked = replace(item, questions=item.questions[: len(answers)])
        examples.append(WorkedExample(asked, answers, row.get("reason", "")))
    return tuple(examples)


WORDINGS: dict[SheetKind, SheetWording] = {}
for _kind, _own in read_yaml(Path(__file__).with_name("wordings.yaml").read_text("utf-8")).items():
    _examples = (_worked(SheetKind(_kind), _own[_part]) for _part in ("examples", "qualification"))
    WORDINGS[SheetKind(_kind)] = SheetWording(_own["title"], tuple(_own["instructions"]), *_examples)
