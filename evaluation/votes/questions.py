"""What people are asked, how it reads on a sheet, and the qualification that each sheet begins with.

The paper prints the questions (3.3, 4, appendices C and G) and shows the sheets only as pictures (figures 14 and 15),
so the instructions, examples and qualifications here are our own.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from evaluation.probing.items import DATA_TYPE, ENTAILMENT
from evaluation.probing.templates import AnswerPair
from llm_oracle.prompts import sentence, with_article

HARMFUL = "harmful"
"""The question by which a person marks a statement. One mark is enough; nobody has to answer."""

AUDIT = "audit"
"""The questions of table 6 are `audit Q1` to `audit Q5`, and are about facts."""

BASELINE = "baseline"
"""A probing template put to people: `baseline 5`. Kept apart from `entailment`, which makes the labels."""

SCHEMA = "schema"
"""The questions about Winograd schemas are `schema label 1`, `schema label 2` and those of `SCHEMA_AVAILABLE`."""

SCHEMA_LABELS = ("first", "second", "unclear")

SCHEMA_AVAILABLE = {
    "context": "Are both sentences right in themselves: could somebody say this of these two?",
    "reasoning": "Would the reasons for your two answers stay the same with any other two in their places?",
    "adversarial": "At first glance, do the sentences sound as if the other one of the two were meant?",
}
"""The three angles from which the CR-WSC paper has cases verified (section 2.1)."""

CHOICES = ("yes", "no")

_JOINERS = "\u200c\u200d"
"""Without width, but Persian and Hindi words are not spelled without them."""


class Kind(StrEnum):
    """LINK's three sheets (figure 14, appendix C with table 6, figure 15), and one for Winograd schemas."""

    STATEMENTS = "statements"
    PREDICATES = "predicates"
    BASELINE = "baseline"
    SCHEMAS = "schemas"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of an item. `key` is the vote's question, `text` what a person reads.

    `main` is the question whose comment belongs to the item as a whole.
    """

    key: str
    text: str
    choices: tuple[str, ...] = CHOICES
    required: bool = True
    main: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """What is shown together: lines to read, then questions. `id` names what the votes are about."""

    id: str
    lines: tuple[str, ...]
    asked: tuple[Asked, ...]

    @property
    def text(self) -> str:
        return " ".join(self.lines)


@dataclass(frozen=True, slots=True)
class Example:
    """An item with its right answers: one that the instructions work out, or one that qualifies."""

    item: Item
    answers: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """What a kind of sheet says before its items. The answers of `qualification` are never put on a sheet."""

    title: str
    instructions: tuple[str, ...]
    examples: tuple[Example, ...]
    qualification: tuple[Example, ...]


def visible(text: str) -> str:
    """The text with characters that cannot be seen, or turn the order of others round, written as `⟨U+202E⟩`."""
    return "".join(
        f"⟨U+{ord(one):04X}⟩"
        if one not in _JOINERS and unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else one
        for one in text
    )


def statement_item(identity: str, premise: str, conclusion: str, typed: tuple[tuple[str, str, str], ...]) -> Item:
    """Figure 14: data types, entailment, and the mark of harm. `typed`: name, value and data type of variables."""
    types = (Asked(f"{DATA_TYPE} {name}", visible(type_question(value, kind))) for name, value, kind in typed)
    entailed = Asked(ENTAILMENT, "Does the premise entail the conclusion?", main=True)
    harmful = Asked(HARMFUL, "Could this statement harm or insult somebody? (Leave it open if not.)", required=False)
    return Item(identity, _premise_and_conclusion(premise, conclusion), (*types, entailed, harmful))


def predicate_item(identity: str, claim: str, typed: tuple[tuple[str, str], tuple[str, str]]) -> Item:
    """Q1 to Q5 of appendix C. `claim`: a sentence; `typed`: value and data type of both arguments."""
    (one, one_type), (other, other_type) = typed
    texts = (
        f"Does “{one}” in the Statement “{claim}” have a clear reference?",
        f"Does “{other}” in the Statement “{claim}” have a clear reference?",
        f"Is the Statement “{claim}” factually correct, with very high probability?",
        f"Is the Statement “{_type_sentence(one, one_type)}” factually correct, with very high probability?",
        f"Is the Statement “{_type_sentence(other, other_type)}” factually correct, with very high probability?",
    )
    asked = (Asked(f"{AUDIT} Q{number}", visible(text), main=number == 3) for number, text in enumerate(texts, start=1))
    return Item(identity, (f"Statement: {visible(claim)}",), tuple(asked))


def baseline_item(identity: str, questions: tuple[tuple[int, str, AnswerPair], ...]) -> Item:
    """Figure 15: templates of table 12 by number, as this statement fills them."""
    asked = (
        Asked(
            f"{BASELINE} {number}",
            visible(text),
            tuple(word.lower() for word in pair.value),
            main=place == 0,
        )
        for place, (number, text, pair) in enumerate(questions)
    )
    return Item(identity, (), tuple(asked))


def schema_item(identity: str, sentences: tuple[str, str], pronouns: tuple[str, str], options: tuple[str, str]) -> Item:
    """A Winograd schema: what each pronoun means (the label), and whether the schema can be used (availability)."""
    first, second = map(visible, options)
    labels = (
        Asked(
            f"{SCHEMA} label {number}",
            f"In sentence {number}, does “{visible(pronoun)}” mean the first (“{first}”) or the second (“{second}”)?",
            SCHEMA_LABELS,
            main=number == 1,
        )
        for number, pronoun in enumerate(pronouns, start=1)
    )
    available = (Asked(f"{SCHEMA} {key}", text) for key, text in SCHEMA_AVAILABLE.items())
    lines = tuple(f"{number}. {visible(text)}" for number, text in enumerate(sentences, start=1))
    return Item(identity, lines, (*labels, *available))


def type_question(value: str, data_type: str) -> str:
    """`Is Houston a location?` (table 20)."""
    return f"Is {value} {with_article(data_type.lower())}?"


def _type_sentence(value: str, data_type: str) -> str:
    return sentence(f"{value} is {with_article(data_type.lower())}")


def _premise_and_conclusion(premise: str, conclusion: str) -> tuple[str, ...]:
    return f"Premise: {visible(sentence(premise))}", f"Conclusion: {visible(sentence(conclusion))}"


def _statement(
    number: str, clauses: tuple[str, str], types: tuple[tuple[str, str], ...], answers: str, reason: str = ""
) -> Example:
    """`clauses`: premise and conclusion; `answers`: y or n for each question, of which harm is none here."""
    names = tuple((name, value, kind) for name, (value, kind) in zip("AB", types, strict=True))
    made = statement_item(number, *clauses, names)
    return Example(Item(made.id, made.lines, made.asked[:-1]), _answers(answers), reason)


def _predicate(
    number: str, claim: str, typed: tuple[tuple[str, str], tuple[str, str]], answers: str, reason: str = ""
) -> Example:
    return Example(predicate_item(number, claim, typed), _answers(answers), reason)


def _baseline(number: str, premise: str, conclusion: str, answer: str, reason: str = "") -> Example:
    text = f"Premise: {premise}. Conclusion: {conclusion}. Does premise entail conclusion?"
    return Example(baseline_item(number, ((5, text, AnswerPair.YES_NO),)), _answers(answer), reason)


def _schema(
    number: str, sentences: tuple[str, str], options: tuple[str, str], answers: tuple[str, ...], reason: str = ""
) -> Example:
    """A schema about `he` or `it`, with as many of its questions as there are answers."""
    pronoun = "he" if " he " in sentences[0] else "it"
    made = schema_item(number, sentences, (pronoun, pronoun), options)
    return Example(Item(made.id, made.lines, made.asked[: len(answers)]), answers, reason)


def _answers(letters: str) -> tuple[str, ...]:
    return tuple({"y": "yes", "n": "no"}[letter] for letter in letters)


_ORDINARY = (
    "Think of ordinary life; do not look for exceptions that nobody would think of. PersonX is any person, and other "
    "words that end in X, Y or Z are any thing of that kind."
)
_SEARCH = "Look up what you do not know: a search engine is allowed, a language model is not."
_HIDDEN = "A sign such as ⟨U+202E⟩ stands for a character that cannot be seen."

_ENTAILS = "The premise entails the conclusion if whoever believes the premise must believe the conclusion, too."

WORDINGS = {
    Kind.STATEMENTS: Wording(
        "Is the statement right?",
        (
            "Each statement has a premise and a conclusion. Say of the things it names whether each is what the "
            "question says it is, and then whether the premise entails the conclusion.",
            _ENTAILS,
            "Answer each question for itself: a conclusion may follow although a thing is of the wrong kind.",
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
    Kind.PREDICATES: Wording(
        "Is the fact right?",
        (
            "Each statement is about two things. Say whether it is clear what each of them is, whether the statement "
            "is true, and whether each thing is what the question says it is.",
            "Where it is not clear what a thing is, a statement about it is not correct with very high probability.",
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
    Kind.BASELINE: Wording(
        "Does it follow?",
        (
            "Answer each question for itself.",
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
    Kind.SCHEMAS: Wording(
        "Whom does the pronoun mean?",
        (
            "Each item has two sentences that differ in a word or two. Say of each whom or what the pronoun means, and "
            "then whether the item can be used.",
            "Answer each question for itself. Answer “unclear” only where both, or neither, could well be meant.",
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
}
