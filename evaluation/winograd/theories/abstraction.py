"""Sentences without their entities: each option is replaced by a mark before anything else reads the sentence.

Patterns, theories and models see only the marks, so answers cannot depend on the names of the entities.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

MARKS = ("\ue000", "\ue001")
"""Marks of the first and the second option: private-use characters, which do not occur in other text."""

DETERMINERS = "the|a|an|this|that|these|those|my|your|his|her|its|our|their|some|one of the|one of"
PRONOUNS = "he|she|it|they|him|her|them|his|its|their|hers|theirs"

CLOSE_SPELLING = 0.9
"""Minimum similarity (difflib's ratio) of an option of one word and a misspelling of it in the sentence."""

_DETERMINER = re.compile(rf"^(?:{DETERMINERS})\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
# A mark, a possessive ending, a word with its hyphens and apostrophes, or a sign.
_TOKEN = re.compile(rf"[{''.join(MARKS)}]|'s\b|\w+(?:[-']\w+)*|[.,;:!?]")
# Irregular forms come before the rule for all others, `n't`.
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"\b(he|she|it|that|there)'s\b"), r"\1 is"),
    (re.compile(r"(?<=s)'(?!\w)"), "'s"),  # `the boys' ball`
    (re.compile(rf"(?<=[{''.join(MARKS)}])'(?!\w)"), "'s"),
)


@dataclass(frozen=True, slots=True)
class AbstractSentence:
    """A sentence in lower case, with a mark for each option, a blank after every token and no full stop at the end."""

    text: str

    def has(self, word: str) -> bool:
        """True if the sentence contains the word."""
        return word.casefold() in self.text.split()

    @property
    def order(self) -> tuple[int, int]:
        """Numbers of the entities in the order in which the sentence names them."""
        first, second = sorted((0, 1), key=lambda number: self.text.index(MARKS[number]))
        return first, second

    def shown(self, names: tuple[str, str]) -> str:
        """The sentence with these names instead of the marks, for people and models."""
        words = self.text
        for mark, name in zip(MARKS, names, strict=True):
            words = words.replace(mark, name)
        return re.sub(r" (?=[.,;:!?]|'s )", "", words).strip() + "."


def abstracted(text: str, options: tuple[str, str]) -> AbstractSentence | None:
    """The sentence with marks instead of its options; None if it does not contain both as separate phrases."""
    # A text that contains a mark could pretend to name an entity.
    if any(mark in text for mark in MARKS):
        return None
    cores = [entity_name(option) for option in options]
    if not all(cores) or cores[0].casefold() == cores[1].casefold():
        return None
    for number in sorted((0, 1), key=lambda number: -len(cores[number])):  # "laptop bag" before "laptop"
        text, count = _marked(text, cores[number], MARKS[number])
        if not count:
            return None
    words = normalised(text)
    return AbstractSentence(words) if all(mark in words for mark in MARKS) else None


def normalised(text: str) -> str:
    """The text in lower case, with contractions written out, a blank after every token and no final punctuation."""
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
    """The text with marks for the phrase, and their number."""
    words = [re.escape(word) for word in core.split()]
    whole = r"\s+".join(words)
    # Tried in this order: the phrase, its plural, "ones" as its noun, a misspelling of a single word.
    phrases = [whole, whole + "e?s"]
    if len(words) > 1:
        phrases.append(r"\s+".join([*words[:-1], "ones?"]))
    else:
        phrases += map(re.escape, get_close_matches(core, text.split(), 1, CLOSE_SPELLING))
    for phrase in phrases:
        marked, count = re.subn(rf"(?<!\w){phrase}(?!\w)", mark, text, flags=re.IGNORECASE)
        if count:
            return marked, count
    return text, 0
