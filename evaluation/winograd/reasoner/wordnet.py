"""Lookups in WordNet's database files (man page wndb): senses by frequency, kinds above a noun, words of like sense."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
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
        self._near: dict[tuple[str, str], list[tuple[float, frozenset[str]]]] = {}
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

    def near(self, word: str, part: str) -> list[tuple[float, frozenset[str]]]:
        """Words near a verb, adjective or noun, by each relation that has any, with the weight of the relation."""
        if (word, part) not in self._near:
            self._near[word, part] = self._related(word, part)
        return self._near[word, part]

    def _related(self, word: str, part: str) -> list[tuple[float, frozenset[str]]]:
        senses = self._senses(part, word)
        groups: list[tuple[float, set[str]]] = []
        for (first, last), symbols, weight in _NEAR:
            targets = [(part, offset) for offset in senses[first:last]]
            for symbol in symbols:
                targets = [target for place in targets for target in self._targets(place, symbol)]
            groups.append((weight, {name for place in targets for name in self._words(place)} - {word}))
        return [(weight, frozenset(words)) for weight, words in groups if words]

    def _targets(self, place: tuple[str, int], symbols: str) -> list[tuple[str, int]]:
        """Synsets to which these pointers lead, without adverbs."""
        part, offset = place
        pointers = synset_at(self._data[part], offset).pointers
        return [(_PART_OF[code], at) for symbol, at, code in pointers if symbol in symbols and code in _PART_OF]

    def _words(self, place: tuple[str, int]) -> tuple[str, ...]:
        part, offset = place
        return synset_at(self._data[part], offset).words

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
_PART_OF = {"n": "noun", "v": "verb", "a": "adj", "s": "adj"}

_NEAR: tuple[tuple[tuple[int, int], tuple[str, ...], float], ...] = (
    ((0, 1), (), 0.7),
    ((0, 1), ("&",), 0.7),
    ((0, 1), ("^",), 0.65),
    ((0, 1), ("+\\",), 0.6),
    ((0, 1), ("$",), 0.5),
    ((0, 1), ("@",), 0.5),
    ((1, 2), (), 0.5),
    ((2, 3), (), 0.4),
    ((1, 2), ("&",), 0.4),
    ((0, 1), ("~",), 0.4),
    ((0, 1), ("@", "~"), 0.3),
    ((1, 2), ("@",), 0.25),
    ((0, 1), ("@", "@"), 0.15),
)
"""Relations to nearby words: senses they start from, pointers to follow (man page wninput), and weight.

The weights are about how often a listed word has the class of the listed words that are so related to it.
"""


@lru_cache(maxsize=1)
def shipped_wordnet() -> WordNet:
    """WordNet of Debian's package `wordnet-base`, read at the first call."""
    return WordNet()
