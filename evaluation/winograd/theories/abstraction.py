"""Sentences without their entities: each option becomes a mark before anything reads the sentence.

Patterns, theories and models see marks only, so an answer cannot depend on what the entities are called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

MARKS = ("\ue000", "\ue001")
"""What stands for the first and the second option: private characters, which no other text holds."""

DETERMINERS = "the|a|an|this|that|these|those|my|your|his|her|its|our|their|some|one of the|one of"
PRONOUNS = "he|she|it|they|him|her|them|his|its|their|hers|theirs"

CLOSE_SPELLING = 0.9
"""How alike (difflib's ratio) a name of one word and a word of the sentence are that are taken for one."""

_DETERMINER = re.compile(rf"^(?:{DETERMINERS})\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
_TOKEN = re.compile(rf"[{''.join(MARKS)}]|'s\b|\w+(?:[-']\w+)*|[.,;:!?]")
_CONTRACTIONS = tuple(
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\bcan(?:'t|not)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"),
        (r"'m\b", " am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"\b(he|she|it|that|there)'s\b", r"\1 is"),
        (r"(?<=s)'(?!\w)", "'s"),
        (rf"(?<=[{''.join(MARKS)}])'(?!\w)", "'s"),
    )
)


@dataclass(frozen=True, slots=True)
class AbstractSentence:
    """A sentence in small letters, a blank after each word and sign, each option a mark; no full stop at the end."""

    text: str

    def has(self, word: str) -> bool:
        """Whether the word stands in the sentence."""
        return word.casefold() in self.text.split()

    @property
    def order(self) -> tuple[int, int]:
        """The numbers of the entities in the order in which the sentence names them."""
        first, second = sorted((0, 1), key=lambda number: self.text.index(MARKS[number]))
        return first, second

    def shown(self, names: tuple[str, str]) -> str:
        """The sentence with these names in place of the marks, for people and models."""
        words = self.text
        for mark, name in zip(MARKS, names, strict=True):
            words = words.replace(mark, name)
        return re.sub(r" (?=[.,;:!?]|'s )", "", words).strip() + "."


def abstracted(text: str, options: tuple[str, str]) -> AbstractSentence | None:
    """The sentence with its options as marks; None where one of them does not stand in it as a phrase of its own."""
    if any(mark in text for mark in MARKS):
        return None
    cores = [entity_name(option) for option in options]
    if not all(cores) or cores[0].casefold() == cores[1].casefold():
        return None
    for number in sorted((0, 1), key=lambda one: -len(cores[one])):  # "laptop bag" before "laptop"
        text, found = _marked(text, cores[number], MARKS[number])
        if not found:
            return None
    words = normalised(text)
    return AbstractSentence(words) if all(mark in words for mark in MARKS) else None


def normalised(text: str) -> str:
    """Small letters, contractions written out, one blank after each word and sign, no sign at the end."""
    plain = text.casefold().replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        plain = pattern.sub(full, plain)
    tokens: list[str] = _TOKEN.findall(plain)
    while tokens and tokens[-1] in ".,;:!?":
        tokens.pop()
    return "".join(f"{token} " for token in tokens)


def entity_name(option: str) -> str:
    """The option without determiner and possessive ending."""
    words = " ".join(option.split())
    return _POSSESSIVE.sub("", _DETERMINER.sub("", words)).strip()


def _marked(text: str, core: str, mark: str) -> tuple[str, int]:
    """The text with the mark for the phrase; failing it for its plural, for "ones" as its noun, for a misspelling."""
    close = get_close_matches(core, text.split(), 1, CLOSE_SPELLING) if " " not in core else []
    for phrase in [*_phrases(core), *map(re.escape, close)]:
        marked, found = re.subn(rf"(?<!\w){phrase}(?!\w)", mark, text, flags=re.IGNORECASE)
        if found:
            return marked, found
    return text, 0


def _phrases(core: str) -> list[str]:
    words = [re.escape(word) for word in core.split()]
    whole = r"\s+".join(words)
    return [whole, whole + "e?s", *([r"\s+".join([*words[:-1], "ones?"])] if len(words) > 1 else [])]
