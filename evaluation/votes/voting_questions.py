"""Questions to people, the instructions of sheets, and the qualification with which each sheet begins.

The paper prints the questions (3.3, 4, appendices C and G) and shows the sheets only as pictures (figures 14 and 15),
so the instructions, examples and qualifications here are our own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

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
from hapax.evaluation.link.probing_questions import AnswerPair
from hapax.grammar.writing.words import with_article
from hapax.llm_oracle.questions.prompts import sentence

AUDIT = "audit"
"""First word of the questions of table 6, `audit Q1` to `audit Q5`, which are about facts."""

PRINTED_ARGUMENTS = 2
"""Arguments of the facts of table 6: Q1 and Q2 are about their references, Q3 about truth, Q4 and Q5 about types."""

BASELINE = "baseline"
"""First word of a probing template put to people, such as `baseline 5`. It does not label statements."""

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
        types.append(ItemQuestion(f"{DATA_TYPE_QUESTION} {name}", visible(type_question(value, kind))))
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
        type_text = _type_sentence(value, data_type)
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


def baseline_item(identity: str, templates: tuple[tuple[int, str, AnswerPair], ...]) -> VotingItem:
    """Item of figure 15: templates of table 12, as number, question and pair of answers."""
    questions: list[ItemQuestion] = []
    for number, text, pair in templates:
        # In lower case, as sheets are read (`reading._filled`).
        choices = tuple(word.lower() for word in pair.value)
        questions.append(ItemQuestion(f"{BASELINE} {number}", visible(text), choices))
    # No lines: the template's question names premise and conclusion.
    return VotingItem(identity, (), tuple(questions))


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


def type_question(value: str, data_type: str) -> str:
    """Question such as `Is Houston a location?` (table 20)."""
    # Rules write data types in capitals, `Food Item`; the paper asks in lower case.
    return f"Is {value} {with_article(data_type.lower())}?"


def _type_sentence(value: str, data_type: str) -> str:
    return sentence(f"{value} is {with_article(data_type.lower())}")


def _statement(
    number: str, clauses: tuple[str, str], types: tuple[tuple[str, str], ...], answers: str, reason: str = ""
) -> WorkedExample:
    """Example with premise and conclusion, and the answers y or n to all questions but the mark of harm."""
    names = tuple((name, value, kind) for name, (value, kind) in zip("AB", types, strict=True))
    item = statement_item(number, *clauses, names)
    # The last question is the mark of harm, which may stay open and so has no right answer.
    return WorkedExample(VotingItem(item.id, item.lines, item.questions[:-1]), _answers(answers), reason)


def _predicate(
    number: str, claim: str, typed: tuple[tuple[str, str], tuple[str, str]], answers: str, reason: str = ""
) -> WorkedExample:
    return WorkedExample(predicate_item(number, claim, typed), _answers(answers), reason)


def _baseline(number: str, premise: str, conclusion: str, answer: str, reason: str = "") -> WorkedExample:
    text = f"Premise: {premise}. Conclusion: {conclusion}. Does premise entail conclusion?"
    return WorkedExample(baseline_item(number, ((5, text, AnswerPair.YES_NO),)), _answers(answer), reason)


def _schema(
    number: str, sentences: tuple[str, str], options: tuple[str, str], answers: tuple[str, ...], reason: str = ""
) -> WorkedExample:
    """Example with a schema about `he` or `it`, and as many of its questions as there are answers."""
    # Enough for the examples below; schemas from files name their pronouns.
    pronoun = "he" if " he " in sentences[0] else "it"
    item = schema_item(number, sentences, (pronoun, pronoun), options)
    return WorkedExample(VotingItem(item.id, item.lines, item.questions[: len(answers)]), answers, reason)


def _soundness(number: str, clauses: tuple[str, str], fact: str, answer: str, reason: str = "") -> WorkedExample:
    """Example of a statement with one fact, in good English."""
    item = soundness_item(number, *clauses, {fact: ""})
    return WorkedExample(item, (answer, "yes"), reason)


def _answers(letters: str) -> tuple[str, ...]:
    return tuple({"y": "yes", "n": "no"}[letter] for letter in letters)


_ORDINARY = (
    "Think of ordinary life; do not look for exceptions that nobody would think of. PersonX is any person, and other "
    "words that end in X, Y or Z are any thing of that kind."
)
_SEARCH = "Look up what you do not know: a search engine is allowed, a language model is not."
_HIDDEN = "A sign such as ⟨U+202E⟩ stands for an invisible character."

_ENTAILS = "The premise entails the conclusion if whoever believes the premise must believe the conclusion, too."

# The ids and answers of a qualification must stay as they are: sheets may still be with voters.
WORDINGS = {
    SheetKind.STATEMENTS: SheetWording(
        "Is the statement right?",
        (
            "Each statement has a premise and a conclusion. Answer for each thing that it names whether it is what the "
            "question says, and then whether the premise entails the conclusion.",
            _ENTAILS,
            "Answer each question by itself: a conclusion may follow even if something in it is of the wrong kind.",
            "If a statement could harm or insult somebody, mark it.",
            _ORDINARY,
            _SEARCH,
            _HIDDEN,
        ),
        (
            _statement(
                "example:1",
                ("PersonX is allergic to shellfish", "PersonX is not able to eat shrimp cocktail"),
                (("shellfish", "Food Allergen"), ("shrimp cocktail", "Dish")),
                "yyy",
                "Shrimps are shellfish.",
            ),
            _statement(
                "example:2",
                ("Drawer X has trouble containing a scroll saw", "Car cannot be placed in Drawer X"),
                (("scroll saw", "Tool"), ("car", "Tool")),
                "yny",
                "A car is a vehicle and no tool, but it is larger than a scroll saw.",
            ),
            _statement(
                "example:3",
                ("PersonX is located in Houston", "PersonX cannot eat chocolate"),
                (("Houston", "Location"), ("chocolate", "Food Item")),
                "yyn",
                "Chocolate is not forbidden in Houston.",
            ),
        ),
        (
            _statement(
                "qualification:1",
                ("PersonX is allergic to milk", "PersonX is not able to eat cheese fondue"),
                (("milk", "Food Allergen"), ("cheese fondue", "Dish")),
                "yyy",
            ),
            _statement(
                "qualification:2",
                ("PersonX died in 1750", "PersonX was not able to use the telephone"),
                (("1750", "Year"), ("telephone", "Plant")),
                "yny",
            ),
            _statement(
                "qualification:3",
                ("PersonX lives in France", "PersonX is not able to buy bread"),
                (("France", "Country"), ("bread", "Food Item")),
                "yyn",
            ),
        ),
    ),
    SheetKind.PREDICATES: SheetWording(
        "Is the fact right?",
        (
            "Each statement is about one, two or more things. Answer whether it is clear what each of them is, "
            "whether the statement is true, and whether each thing is what the question says.",
            "If it is not clear what a thing is, a statement about it is not correct with very high probability.",
            _ORDINARY,
            _SEARCH,
            _HIDDEN,
        ),
        (
            _predicate(
                "example:1",
                "Saigon existed during the Cold War.",
                (("Saigon", "Location"), ("the Cold War", "Historical Time Period")),
                "yyyyy",
            ),
            _predicate(
                "example:2",
                "The thing was invented in 1876.",
                (("The thing", "Product"), ("1876", "Year")),
                "nynny",
                "Nobody can say which thing is meant.",
            ),
        ),
        (
            _predicate(
                "qualification:1",
                "Butter is an ingredient in puff pastry.",
                (("Butter", "Ingredient"), ("puff pastry", "Dish")),
                "yyyyy",
            ),
            _predicate(
                "qualification:2",
                "Granite is an ingredient in tomato soup.",
                (("Granite", "Ingredient"), ("tomato soup", "Dish")),
                "yynny",
            ),
            _predicate(
                "qualification:3",
                "It is the capital of France.",
                (("It", "City"), ("France", "Country")),
                "nynny",
            ),
        ),
    ),
    SheetKind.BASELINE: SheetWording(
        "Does it follow?",
        (
            "Answer each question by itself.",
            _ENTAILS,
            _ORDINARY,
            _SEARCH,
            _HIDDEN,
        ),
        (
            _baseline(
                "example:1",
                "PersonX is allergic to shellfish",
                "PersonX is not able to eat shrimp cocktail",
                "y",
                "Shrimps are shellfish.",
            ),
            _baseline(
                "example:2",
                "PersonX is located in Houston",
                "PersonX cannot eat chocolate",
                "n",
                "Chocolate is not forbidden in Houston.",
            ),
        ),
        (
            _baseline(
                "qualification:1", "PersonX is allergic to milk", "PersonX is not able to eat cheese fondue", "y"
            ),
            _baseline("qualification:2", "PersonX lives in France", "PersonX is not able to buy bread", "n"),
            _baseline("qualification:3", "PersonX died in 1750", "PersonX was not able to use the telephone", "y"),
        ),
    ),
    SheetKind.SCHEMAS: SheetWording(
        "Whom does the pronoun mean?",
        (
            "Each item has two sentences that differ in a word or two. Answer for each of them whom or what the "
            "pronoun means, and then whether the item can be used.",
            "Answer each question by itself. Answer “unclear” only if both, or neither, could well be meant.",
            _HIDDEN,
        ),
        (
            _schema(
                "example:1",
                (
                    "The wrestler couldn't push the ballet dancer because he was so weak.",
                    "The wrestler couldn't push the ballet dancer because he was so strong.",
                ),
                ("the wrestler", "the ballet dancer"),
                ("first", "second", "yes", "yes", "yes"),
                "Who cannot push is weak, whoever it is; but one would sooner call a dancer weak.",
            ),
        ),
        (
            _schema(
                "qualification:1",
                (
                    "The thimble doesn't go into the barrel because it is too wide.",
                    "The thimble doesn't go into the barrel because it is too narrow.",
                ),
                ("the thimble", "the barrel"),
                ("first", "second"),
            ),
        ),
    ),
    SheetKind.SOUNDNESS: SheetWording(
        "Is the statement true?",
        (
            "Each statement is an if-then sentence; the facts below it are those from which a rule made it. Answer "
            "“yes” if the conclusion holds whenever the premise does.",
            "Answer “facts” if a fact below the statement is false and the statement is wrong for that reason, “rule” "
            "if the conclusion does not follow although the facts are true, and “unsure” if you cannot tell.",
            _ORDINARY,
            _SEARCH,
            _HIDDEN,
        ),
        (
            _soundness(
                "example:1",
                ("PersonX is allergic to shellfish", "PersonX is not able to eat shrimp cocktail"),
                "shrimp falls under the allergen shellfish",
                "yes",
            ),
            _soundness(
                "example:2",
                ("PersonX grew up in Norway", "PersonX can speak Danish in Rome"),
                "Rome has the official language Danish",
                "facts",
                "Danish is no official language of Rome.",
            ),
        ),
        (
            _soundness(
                "qualification:1",
                ("PersonX lives in Paris", "PersonX can pay at home with the euro"),
                "France uses the euro",
                "yes",
            ),
            _soundness(
                "qualification:2",
                ("PersonX follows the vegan diet", "PersonX may eat butter"),
                "butter is made from milk",
                "rule",
            ),
        ),
    ),
}
