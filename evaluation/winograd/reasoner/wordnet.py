"""Lookups in WordNet's database files (man page wndb): senses by frequency, kinds above a noun, words of like sense."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, product
from pathlib import Path

from hapax.evaluation.shared.wordnet_files import index_entries, synset_at
from hapax.llm_oracle.references.loaders import WORDNET

SENSES = 3
"""Senses of a noun that count for what it can be; WordNet lists the most frequent first."""


class WordNet:
    """Nouns, verbs and adjectives of a folder of WordNet; a missing folder knows no word."""

    def __init__(self, folder: Path = WORDNET) -> None:
        names = [f"{kind}.{part}" for kind, part in product(("data", "index"), _PARTS)]
        self.available = all((folder / name).is_file() for name in names)
        self._index: dict[str, dict[str, tuple[int, ...]]] = {}
        self._data: dict[str, bytes] = {}
        if self.available:
            for part in _PARTS:
                self._index[part] = dict(index_entries(folder / f"index.{part}"))
                self._data[part] = (folder / f"data.{part}").read_bytes()

    def kinds(self, noun: str, count: int | None = SENSES) -> list[tuple[str, ...]]:
        """For each of the first senses of a noun, or all if None, the chain of words above it, nearest first."""
        return [self._chain(offset) for offset in self._senses("noun", noun)[:count]]

    def knows(self, noun: str) -> bool:
        """True if the noun is in WordNet."""
        return bool(self._senses("noun", noun))

    def alike(self, word: str, part: str) -> list[str]:
        """Words of the first sense of a verb or adjective, and of the adjectives similar to it."""
        senses = self._senses(part, word)
        if not senses:
            return []
        synset = synset_at(self._data[part], senses[0])
        near = list(synset.words)
        for symbol, offset, _ in synset.pointers:
            # `&` points from an adjective to those similar to it.
            if part == "adj" and symbol == "&":
                near += synset_at(self._data[part], offset).words
        return [synonym for synonym in dict.fromkeys(near) if synonym != word]

    def above(self, word: str, part: str, levels: int = 2) -> list[tuple[str, ...]]:
        """Words of the senses above the first sense of a noun or verb, nearest first."""
        senses = self._senses(part, word)[:1]
        words = []
        for _ in range(levels):
            above: list[int] = []
            for offset in senses:
                pointers = synset_at(self._data[part], offset).pointers
                above += [target for symbol, target, _ in pointers if symbol == "@"]
            senses = tuple(above)
            synsets = [synset_at(self._data[part], offset) for offset in senses]
            words.append(tuple(chain.from_iterable(synset.words for synset in synsets)))
        return words

    def synonyms(self, part: str, word: str) -> list[str]:
        """Single words whose first sense is the first sense of this word, so that they can replace it."""
        first = self._senses(part, word)[:1]
        if not first:
            return []
        words = [name for name in synset_at(self._data[part], first[0]).words if name.isalpha() and name.islower()]
        # In both directions: the other word's first sense must be this one, too.
        return [name for name in dict.fromkeys(words) if name != word and self._senses(part, name)[:1] == first]

    def _senses(self, part: str, word: str) -> tuple[int, ...]:
        return self._index.get(part, {}).get(word.casefold().replace(" ", "_"), ())

    def _chain(self, offset: int) -> tuple[str, ...]:
        above: dict[str, None] = {}
        waiting = [offset]
        # The list grows while it is walked: breadth-first, so that the nearest kinds come first.
        for current in waiting:
            synset = synset_at(self._data["noun"], current)
            above.setdefault(synset.words[0])
            waiting += [
                target for symbol, target, _ in synset.pointers if symbol in ("@", "@i") and target not in waiting
            ]
        return tuple(above)


_PARTS = ("noun", "verb", "adj")


@lru_cache(maxsize=1)
def shipped_wordnet() -> WordNet:
    """WordNet of Debian's package `wordnet-base`, read at the first call."""
    return WordNet()
