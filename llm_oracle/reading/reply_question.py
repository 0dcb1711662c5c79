"""The question whose replies are read: the pattern of its template, and the words that are known from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hapax.grammar.terms import Value

# Data types of titles and sentences.
_TITLES = frozenset(
    [
        "film", "movie", "book", "novel", "game", "album", "song", "show", "series", "title", "play", "opera", "work",
        "painting", "poem", "story", "musical", "documentary", "episode", "comic", "manga", "anime", "magazine",
        "podcast", "proverb", "saying", "quote", "quotation", "slogan", "motto", "idiom", "phrase", "sentence",
        "question", "lyric", "headline", "joke", "excuse", "reason"
    ]
)  # fmt: skip
# Data types whose names often hold `and`: `fish and chips`, `Marks and Spencer`.
_COMPOUNDS = _TITLES | frozenset(
    [
        "dish", "food", "meal", "recipe", "snack", "dessert", "sandwich", "cocktail", "drink", "company", "firm",
        "brand", "shop", "store", "band", "duo", "couple", "pair"
    ]
)  # fmt: skip
_FUNCTION_WORDS = frozenset(
    [
        "a", "an", "the", "of", "in", "on", "at", "to", "by", "for", "from", "with", "and", "or", "as", "is", "are",
        "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "can", "may", "will", "that", "this",
        "which", "who", "it", "its", "his", "her", "their", "there", "one", "some", "many", "most", "all", "any", "not",
        "very", "also", "into", "through", "than", "personx", "persony"
    ]
)  # fmt: skip
_AUXILIARIES = {"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has", "does": "do"}
_PRONOUNS = "(?:it|they|he|she|this|these)"
# What a sentence may have more than the template: a clause between commas, an adverb. `Etna, a volcano, often erupts`.
_INSERTED = r"(?:,[^,]{1,80},)?"
_FILLING = (
    r"(?:(?:also|commonly|often|typically|usually|frequently|generally|widely|sometimes|regularly|(?:most\s+)?likely|"
    r"probably|originally|mainly|mostly|primarily|can|may|their|its|his|her|own)\s+)?"
)
_ENDING = re.compile(r"(?<=\w\w)(?:ing|ies|ied|ed|es|e|s|y)$")


def stems(text: str) -> frozenset[str]:
    """Beginnings of the words of a text that carry meaning, equal for the forms of a word."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return frozenset(_ENDING.sub("", word)[:5] for word in words if word not in _FUNCTION_WORDS)


@dataclass(frozen=True)
class ReplyQuestion:
    """The part of a question that reading its replies needs.

    `sentence`: the template in the prompt, in which `[VARIABLE]` is the slot; empty if there is none. `numeric`: the
    data type descends from Number. `forbidden`: values that the prompt excludes.
    """

    variable: str
    data_type: str
    sentence: str = ""
    numeric: bool = False
    forbidden: tuple[Value, ...] = ()

    @cached_property
    def sides(self) -> tuple[list[str], list[str]]:
        """The words of the template before and after its slot; none if it has no slot."""
        before, slot, after = self.sentence.partition(f"[{self.variable}]")
        return (before.split(), after.split()) if slot else ([], [])

    @cached_property
    def type_words(self) -> frozenset[str]:
        """The words of the data type in lower case, as they are and in the singular."""
        words = self.data_type.casefold().split()
        return frozenset((*words, *(word.removesuffix("s") for word in words)))

    @cached_property
    def is_of_titles(self) -> bool:
        """True if values are titles or sentences, which may hold colons and commas."""
        noun = re.split(r"\s(?:of|by|from|in|for|with)\s", self.data_type.casefold())[0].split()[-1:]
        return bool({*noun, *(word.removesuffix("s") for word in noun)} & _TITLES)

    @cached_property
    def has_compounds(self) -> bool:
        """True if names of the data type often hold `and`."""
        return bool(self.type_words & _COMPOUNDS)

    @cached_property
    def known_stems(self) -> frozenset[str]:
        """Stems of the words of the template and of the data type."""
        return stems(re.sub(r"\[[A-Z]\d?\]", " ", self.sentence) + f" {self.data_type}")

    @cached_property
    def _templates(self) -> list[re.Pattern[str]]:
        """Patterns of sentences that repeat the template, those that repeat all of it first."""
        head, tail = self.sides
        sides = [(head, tail)] if head or tail else []
        if not head and len(tail) > 2:
            sides.append((head, tail[:-1]))  # `Pizza is a dish from Naples` for `[B] is a dish from Italy`
        for begin, word in enumerate(head[1:8], 1):
            if word.isalpha() and word.islower() and word not in ("a", "an", "the"):
                sides.append(([_PRONOUNS, *head[begin:]], tail))  # `It lies in Mali`
        return [_template(before, behind) for before, behind in sides]

    def slot(self, text: str) -> str | None:
        """The text in the place of the slot; None if the text does not repeat the template."""
        # Few texts hold its words, and compiling the expressions takes milliseconds.
        if not stems(text) & self.known_stems:
            return None
        match = next((match for template in self._templates if (match := template.match(text))), None)
        return match[1].strip().rstrip(":–—- ").strip('`"“” ') if match else None


def _template(head: list[str], tail: list[str]) -> re.Pattern[str]:
    """The pattern of a text with these words before and after the slot, which is its group 1."""
    before = "".join(
        r"(?:(?:an?|the)\s+)?" if word.casefold() in ("a", "an", "the") else f"{_form(word)}{_INSERTED}\\s+{_FILLING}"
        for word in head
    )
    behind = "".join(
        r"(?:\s+(?:an?|the))?" if word in ("a", "an", "the") else f"\\s+{_FILLING if place else ''}{_form(word)}"
        for place, word in enumerate(tail)
    )
    end = r"\b" if tail else r"\W*$"
    return re.compile(rf"^\W*{before}[\"'“‘\[]?(.{{1,200}}?)[\"'”’\]]?{behind}{end}", re.IGNORECASE | re.DOTALL)


def _form(word: str) -> str:
    """A pattern for a word of a template; nouns and verbs may be plural."""
    if word in _AUXILIARIES:
        return f"(?:{word}|{_AUXILIARIES[word]})"
    may_be_plural = len(word) > 3 and word.isalpha() and word.islower()
    return (
        re.escape(word.removesuffix("s")) + "(?:e?s)?"
        if may_be_plural
        else word
        if word == _PRONOUNS
        else re.escape(word)
    )


class DropReason(StrEnum):
    """Why an entry of a reply is not a value. Its text is stored with the entry."""

    REASONING = "is reasoning before the answer"
    REFUSAL = "says that there is no answer"
    PREAMBLE = "introduces the list"
    HEADING = "is a heading"
    EXPLANATION = "explains a value"
    REMARK = "is a remark, not a value"
    REPEAT = "repeats an earlier value"
    FORBIDDEN = "is a value that the prompt excludes"
    CUT = "was cut off by the token limit"
    TOO_LONG = "is too long for a value"
    SLOT = "repeats the slot of the question"
    DATA_TYPE = "repeats the data type"
    EMPTY = "is a list number or mark without a value"
    NO_NUMBER = "is not one number, and the data type is numeric"
    CONTROL = "holds a control character"
    NOT_READ = "stands after the last line that is read"


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply that may hold one value, or `dropped` for a reason. `marked`: it has a list mark."""

    raw: str
    body: str
    dropped: DropReason | None = None
    marked: bool = True
