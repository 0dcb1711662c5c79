"""Lookups in WordNet's database files (man page wndb): senses by frequency, kinds above a noun, words of like sense."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hapax.llm_oracle.references.loaders import WORDNET

SENSES = 3
"""Senses of a noun that count for what it can be; WordNet lists the most frequent first."""


class WordNet:
    """Nouns, verbs and adjectives of a folder of WordNet; a missing folder knows no word."""

    def __init__(self, folder: Path = WORDNET) -> None:
        self.available = all((folder / f"{kind}.{part}").is_file() for kind in ("data", "index") for part in _PARTS)
        self._index: dict[str, dict[str, tuple[int, ...]]] = {}
        self._data: dict[str, bytes] = {}
        if self.available:
            for part in _PARTS:
                self._index[part] = _index(folder / f"index.{part}")
                self._data[part] = (folder / f"data.{part}").read_bytes()

    def kinds(self, noun: str) -> list[tuple[str, ...]]:
        """For each of the first senses of a noun, the chain of words above it, nearest first."""
        return [self._chain(offset) for offset in self._senses("noun", noun)[:SENSES]]

    def knows(self, noun: str) -> bool:
        """True if the noun is in WordNet."""
        return bool(self._senses("noun", noun))

    def alike(self, word: str, part: str) -> list[str]:
        """Words of the first sense of a verb or adjective, and of the adjectives similar to it."""
        senses = self._senses(part, word)
        if not senses:
            return []
        words, pointers = self._synset(part, senses[0])
        near = list(words)
        for symbol, offset in pointers:
            if part == "adj" and symbol == "&":
                near += self._synset(part, offset)[0]
        return [synonym for synonym in dict.fromkeys(near) if synonym != word]

    def synonyms(self, part: str, word: str) -> list[str]:
        """Single words whose first sense is the first sense of this word, so that they can replace it."""
        first = self._senses(part, word)[:1]
        if not first:
            return []
        words = [name.casefold() for name in self._synset(part, first[0])[0] if name.isalpha() and name.islower()]
        return [name for name in dict.fromkeys(words) if name != word and self._senses(part, name)[:1] == first]

    def _senses(self, part: str, word: str) -> tuple[int, ...]:
        return self._index.get(part, {}).get(word.casefold().replace(" ", "_"), ())

    def _chain(self, offset: int) -> tuple[str, ...]:
        above: dict[str, None] = {}
        waiting = [offset]
        for current in waiting:
            words, pointers = self._synset("noun", current)
            above.setdefault(words[0])
            waiting += [target for symbol, target in pointers if symbol in ("@", "@i") and target not in waiting]
        return tuple(above)

    def _synset(self, part: str, offset: int) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
        data = self._data[part]
        fields = data[offset : data.index(b" | ", offset)].decode("ascii").split()
        count = int(fields[3], 16)
        words = tuple(fields[4 + 2 * place].partition("(")[0].replace("_", " ") for place in range(count))
        at = 4 + 2 * count
        pointers = []
        for number in range(int(fields[at])):
            symbol, target = fields[at + 1 + 4 * number : at + 3 + 4 * number]
            pointers.append((symbol, int(target)))
        return words, tuple(pointers)


_PARTS = ("noun", "verb", "adj")


def _index(path: Path) -> dict[str, tuple[int, ...]]:
    index = {}
    for line in path.read_text(encoding="ascii").splitlines():
        if not line.startswith(" "):  # the licence is indented
            fields = line.split()
            count = int(fields[2])  # number of senses; their offsets end the line, most frequent first
            index[fields[0]] = tuple(map(int, fields[-count:]))
    return index


@lru_cache(maxsize=1)
def shipped_wordnet() -> WordNet:
    """WordNet of Debian's package `wordnet-base`, read at the first call."""
    return WordNet()
