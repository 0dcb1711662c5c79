"""The question whose replies are read: its template as patterns, and the words that are known from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hapax.grammar.terms import Value

_TITLES = frozenset(
    [
        "film",
        "movie",
        "book",
        "novel",
        "game",
        "album",
        "song",
        "show",
        "series",
        "title",
        "play",
        "opera",
        "work",
        "painting",
        "poem",
        "story",
        "musical",
        "documentary",
        "episode",
        "comic",
        "manga",
        "anime",
        "magazine",
        "podcast",
    ]
)
_PHRASES = frozenset(
    [
        "proverb",
        "saying",
        "quote",
        "quotation",
        "slogan",
        "motto",
        "idiom",
        "phrase",
        "sentence",
        "question",
        "lyric",
        "headline",
        "joke",
        "excuse",
        "reason",
    ]
)
_COMPOUNDS = _TITLES | frozenset(
    [
        "dish",
        "food",
        "meal",
        "recipe",
        "snack",
        "dessert",
        "sandwich",
        "cocktail",
        "drink",
        "company",
        "firm",
        "brand",
        "shop",
        "store",
        "band",
        "duo",
        "couple",
        "pair",
        "county",
        "region",
        "province",
    ]
)
"""Data types whose names often hold `and`: `fish and chips`, `Marks and Spencer`."""


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

    @property
    def has_article(self) -> bool:
        """True if `the` stands before the slot."""
        before, slot, _ = self.sentence.partition(f"[{self.variable}]")
        return bool(slot) and f" {before}".casefold().endswith(" the ")

    @property
    def _sides(self) -> tuple[list[str], list[str]] | None:
        """The words of the template before and after its slot; None if it has no slot."""
        before, slot, after = self.sentence.partition(f"[{self.variable}]")
        return (before.split(), after.split(f"[{self.variable}]")[0].split()) if slot else None

    @cached_property
    def templates(self) -> tuple[TemplatePattern, ...]:
        """Patterns of sentences that repeat the template, those that repeat all of it first."""
        if self._sides is None:
            return ()
        head, tail = self._sides
        # The sentence may go on: `Iron is magnetic at room temperature`.
        ends = (r"\W*$", r"\b") if tail else (r"\W*$",)
        patterns = [TemplatePattern(head, tail, end, is_whole=True) for end in ends]
        # The part of the template beside the slot may go on otherwise: `Pizza is a dish from Naples`.
        if not head and sum(not _is_article(word) for word in tail[:-1]) > 1:
            patterns.append(TemplatePattern(head, tail[:-1], r"\b"))
        if head and not tail and len(head) > 2:
            patterns.append(TemplatePattern(head[1:], tail, r"\W*$"))
        # A pronoun may stand for the known argument: `It lies in Mali`.
        for begin in range(1, min(len(head), 8)):
            if head[begin].isalpha() and head[begin].islower() and not _is_article(head[begin]):
                patterns.append(TemplatePattern([_PRONOUNS, *head[begin:]], tail, ends[-1]))
        return tuple(patterns)

    @cached_property
    def shortened_predicate(self) -> re.Pattern[str] | None:
        """Pattern of a name behind which the template goes on as a clause: `linen woven from fibres`, `bats that fly`.

        None if the template does not begin with its slot.
        """
        head, tail = self._sides or ([], [])
        if len(tail) < 2 or not all(map(_is_article, head)):
            return None
        verb, *rest = tail
        if verb.casefold() in _COPULAS:
            if len(rest) < 2 or _is_article(rest[0]):
                return None
            clause = rf"(?:(?:that|which|who)\s+(?:{'|'.join(_COPULAS)})\s+)?{_word(rest[0])}"
            following = rest[1]
        else:
            base = verb.removesuffix("s").removesuffix("e")
            clause = rf"(?:(?:that|which|who)\s+(?:can\s+)?{_word(verb)}|{re.escape(base)}\w?ing)"
            following = rest[0]
        behind = r"\b" if _is_article(following) else rf"\s+{_word(following)}\b"
        return re.compile(rf"(?P<name>\S+(?:\s+\S+){{0,4}}?),?\s+{clause}{behind}.*", re.IGNORECASE | re.DOTALL)

    @cached_property
    def is_of_titles(self) -> bool:
        """True if the data type has titles as values, which may hold colons and commas."""
        return bool(self._head_words & (_TITLES | _PHRASES))

    @cached_property
    def is_of_phrases(self) -> bool:
        """True if the data type has sentences as values."""
        return bool(self._head_words & _PHRASES)

    @cached_property
    def has_compounds(self) -> bool:
        """True if names of the data type often hold `and`."""
        return bool(self.type_words & _COMPOUNDS)

    @cached_property
    def may_be_of_people(self) -> bool:
        """True if the data type may be of people, by its ending as in `Composer` or `Scientist`."""
        return any(map(_PEOPLE.search, self._head_words))

    @cached_property
    def _head_words(self) -> frozenset[str]:
        """The noun of the data type, as it is and in the singular: `instrument` of `Musical Instrument`."""
        words = re.split(r"\s+(?:of|by|from|in|for|with)\s+", self.data_type.casefold())[0].split()
        return frozenset((words[-1], words[-1].removesuffix("s"))) if words else frozenset()

    @cached_property
    def type_words(self) -> frozenset[str]:
        """The words of the data type in lower case, as they are and in the singular."""
        words = self.data_type.casefold().split()
        return frozenset((*words, *(word.removesuffix("s") for word in words)))

    def without_beginning(self, text: str) -> str:
        """A text without the last word of the template before the slot: `in May` for `... starts in [A]`."""
        head = self._sides[0] if self._sides else []
        word, _, rest = text.partition(" ")
        return rest if head and rest and word.casefold() == head[-1].casefold() else text

    @property
    def fixed_words(self) -> str:
        """The template without its slots."""
        return re.sub(r"\[[A-Z]\d?\]", " ", self.sentence)

    @cached_property
    def known_stems(self) -> frozenset[str]:
        """Stems of the words of the template and of the data type that carry meaning."""
        return stems(f"{self.fixed_words} {self.data_type}")


@dataclass(frozen=True)
class TemplatePattern:
    """A pattern of sentences that repeat a template: its words before the slot, those after it, and a pattern behind.

    `is_whole`: all words of the template are there.
    """

    head: Sequence[str]
    tail: Sequence[str]
    end: str
    is_whole: bool = False

    def slot(self, text: str) -> str | None:
        """The text in the place of the slot; None if the text does not repeat the template."""
        # Few texts hold the words of a template, and compiling the expression of each question takes milliseconds.
        folded = text.casefold()
        if not all(stem in folded for stem in self._stems):
            return None
        match = self._expression.match(text)
        return match[1] if match else None

    @cached_property
    def _stems(self) -> list[str]:
        """Beginnings of the words that a sentence has to hold, in lower case."""
        words = (word for word in (*self.head, *self.tail) if not _is_article(word) and word != _PRONOUNS)
        return [_stem(word).casefold() for word in words if not _forms(word)]

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        slot = r"[\"'“‘\[]?(.{1,200}?)[\"'”’\]]?"
        # For `the capital of [A] is`: articles may be absent, other words may have a clause or a filling word behind.
        begin = r"^\W*" + "".join(
            _ARTICLE_BEFORE if _is_article(text) else _word(text) + _INSERTED + r"\s+" + _FILLING for text in self.head
        )
        closing = "".join(
            _ARTICLE_AFTER if _is_article(text) else r"\s+" + (_FILLING if number else "") + _word(text)
            for number, text in enumerate(self.tail)
        )
        expression = (begin if self.head else "^") + slot + closing + self.end
        return re.compile(expression, re.IGNORECASE | re.DOTALL)


_INSERTED = r"(?:,[^,]{1,80},)?"
"""A clause between commas, which a sentence may have more than the template: `Etna, a volcano, lies in Italy`."""
_PRONOUNS = "it|they|he|she|this|these"
_ARTICLE_BEFORE, _ARTICLE_AFTER = r"(?:(?:an?|the)\s+)?", r"(?:\s+(?:an?|the))?"
"""Articles of a template may be absent."""
_FILLING = (
    r"(?:(?:also|commonly|often|typically|usually|frequently|generally|widely|sometimes|regularly|(?:most\s+)?likely|"
    r"probably|originally|mainly|mostly|primarily|can|may|their|its|his|her|own)\s+)?"
)
"""A word that a sentence may have more than the template."""
_PEOPLE = re.compile(r"(?:er|or|ist|ian|ess)$|^(?:person|king|queen|president|poet|saint)")
_COPULAS = ("is", "are", "was", "were")
_SAME_FORMS = ({"is", "are"}, {"was", "were"}, {"has", "have"}, {"does", "do"})


def _is_article(word: str) -> bool:
    return word.casefold() in ("a", "an", "the")


def _word(text: str) -> str:
    """A pattern for a word of a template; a verb may be plural."""
    if text == _PRONOUNS:
        return f"(?:{text})"
    forms = _forms(text)
    if forms:
        return f"(?:{'|'.join(sorted(forms))})"
    return re.escape(_stem(text)) + ("(?:e?s)?" if _may_be_plural(text) else "")


def _forms(text: str) -> set[str]:
    """The forms of an auxiliary verb; empty for any other word."""
    return next((forms for forms in _SAME_FORMS if text.casefold() in forms), set())


def _stem(text: str) -> str:
    """The word without the ending of a plural or of a verb."""
    return text.removesuffix("s") if _may_be_plural(text) else text


def _may_be_plural(text: str) -> bool:
    return len(text) > 3 and text.isalpha() and text.islower()


FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "to",
        "by",
        "for",
        "from",
        "with",
        "and",
        "or",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "do",
        "does",
        "did",
        "can",
        "may",
        "will",
        "that",
        "this",
        "which",
        "who",
        "it",
        "its",
        "his",
        "her",
        "their",
        "there",
        "one",
        "some",
        "many",
        "most",
        "all",
        "any",
        "not",
        "very",
        "also",
        "into",
        "through",
        "than",
        "personx",
        "persony",
    ]
)


_ENDING = re.compile(r"(?<=\w\w)(?:ing|ies|ied|ed|es|e|s|y)$")


def stems(text: str) -> frozenset[str]:
    """The beginnings of the words of a text that carry meaning, by which forms of a word are known as the same."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return frozenset(_ENDING.sub("", word)[:5] for word in words if word not in FUNCTION_WORDS)
