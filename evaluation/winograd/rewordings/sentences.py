"""Parsed sentences whose words are moved and replaced, and the words of the changed sentence as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.reasoner.events import EventReader
from hapax.evaluation.winograd.reasoner.parsing import Parse, Parser
from hapax.evaluation.winograd.reasoner.reasoning import located
from hapax.evaluation.winograd.reasoner.stating import ParsedSchema

_OPENING_QUOTES = ('"', "'", "“", "‘", "(")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence. `blank`: the whitespace behind it; `source`: its index in the original parse, or None."""

    text: str
    blank: str = " "
    source: int | None = None


@dataclass(frozen=True)
class ParsedItem:
    """An item with its parse, in which both options and the pronoun were located."""

    item: WinogradItem
    schema: ParsedSchema

    @property
    def parse(self) -> Parse:
        return self.schema.parse

    @cached_property
    def reader(self) -> EventReader:
        return EventReader(self.parse)

    @cached_property
    def words(self) -> list[Word]:
        """The words as they stand."""
        words = []
        # What stands between two words is kept, so that unchanged parts read as before.
        ends = [token.start for token in self.parse[1:]] + [len(self.item.text)]
        for token, end in zip(self.parse, ends, strict=True):
            behind = self.item.text[token.start + len(token.text) : end]
            words.append(Word(token.text, behind, token.index))
        return words

    def subtree(self, index: int) -> list[int]:
        """Indices of the word and all words that depend on it, in order."""
        found, waiting = {index}, [index]
        while waiting:
            head = waiting.pop()
            for token in self.parse:
                if token.head == head and token.index not in found:
                    found.add(token.index)
                    waiting.append(token.index)
        return sorted(found)

    def span(self, index: int) -> range | None:
        """The places of a word and all that depends on it; None if other words stand between them."""
        indices = self.subtree(index)
        return range(indices[0], indices[-1] + 1) if indices[-1] - indices[0] + 1 == len(indices) else None

    def replaced(self, texts: Mapping[int, str]) -> list[Word]:
        """The words with some replaced by others; an empty text takes the word out."""
        words = []
        for word in self.words:
            text = word.text if word.source is None else texts.get(word.source, word.text)
            if text:
                words.append(Word(text, word.blank, word.source))
        return words


def parsed(item: WinogradItem, parser: Parser) -> ParsedItem | None:
    """The parsed item; None if an option or the pronoun is not found in its sentence."""
    schema = located(parser.parse(item.text), item.options, item.pronoun, item.pronoun_start)
    return None if schema is None else ParsedItem(item, schema)


def uncapitalized(words: Sequence[Word], parse: Parse) -> list[Word]:
    """The words with the first in lower case, unless it is a name or `I`, so that others may stand before it."""
    first, *rest = words
    token = None if first.source is None else parse[first.source]
    keeps = token is not None and (token.tag.startswith("NNP") or token.text == "I" or token.text.isupper())
    text = first.text if keeps else first.text[:1].lower() + first.text[1:]
    return [Word(text, first.blank, first.source), *rest]


def as_text(words: Iterable[Word], pronoun: int) -> tuple[str, int] | None:
    """The words as a sentence with a capital, and where its pronoun begins; None if the pronoun is not among them."""
    text, start = "", None
    words = list(words)
    for number, word in enumerate(words):
        if word.source == pronoun:
            start = len(text)
        last = number == len(words) - 1
        text += word.text + ("" if last else word.blank)
    at = next((place for place, letter in enumerate(text) if letter not in _OPENING_QUOTES), 0)
    return None if start is None else (text[:at] + text[at : at + 1].upper() + text[at + 1 :], start)
