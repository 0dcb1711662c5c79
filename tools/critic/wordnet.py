"""Facts of WordNet 3.0: kinds, definitions, parts and opposites (file format: man page wndb)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.prompts import with_article
from hapax.llm_oracle.references.loaders import WORDNET

LONGEST_DEFINITION = 90
"""Characters of a definition that is used; its examples and second parts are left out."""
KINDS_ABOVE = 2
"""Hypernyms of a noun that are claimed; all further ones are only kept from being falsehoods."""
PARTS = {
    "#p": "is_part_of",
    "#m": "is_a_member_of",
    "#s": "is_a_substance_of",
    ";c": "belongs_to_the_field",
    ";r": "is_at_home_in",
}
"""Relations between synsets by WordNet's pointer symbols."""


@dataclass(frozen=True, slots=True)
class Synset:
    """Words that mean the same, with pointers: symbol, offset, part of speech, and number of the own word or 0.

    `definition` is empty where the first sentence of the gloss is too short or too long to be claimed.
    """

    words: tuple[str, ...]
    definition: str
    pointers: tuple[tuple[str, int, str, int], ...]


@dataclass(slots=True)
class WordTable:
    """Values by key, and what else is true of a key."""

    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    listed: dict[str, frozenset[str]] = field(default_factory=dict)


class Wordnet:
    """The nouns, verbs and adjectives of WordNet. Raises HapaxError if its files are missing."""

    def __init__(self, folder: Path = WORDNET) -> None:
        self.nouns = dict(_synsets(folder / "data.noun"))
        self.verbs = dict(_synsets(folder / "data.verb"))
        self.adjectives = dict(_synsets(folder / "data.adj"))

    def tables(self, is_known: Callable[[str], bool]) -> dict[str, WordTable]:
        """Tables by relation, of words that are common enough. A word's first meaning alone is used."""
        nouns, verbs, adjectives = (
            _first_meanings(synsets, is_known) for synsets in (self.nouns, self.verbs, self.adjectives)
        )
        return {
            "is_a_kind": self._kinds(nouns, self.nouns, with_article),
            "is_defined_as": self._definitions(nouns, self.nouns),
            "is_a_way_to": self._kinds(verbs, self.verbs, str),
            "is_defined_as_verb": self._definitions(verbs, self.verbs),
            "is_defined_as_adjective": self._definitions(adjectives, self.adjectives),
            "is_the_opposite_of": self._opposites(adjectives),
            **{name: self._linked(nouns, symbol) for symbol, name in PARTS.items()},
        }

    def _kinds(self, words: dict[str, int], synsets: dict[int, Synset], worded: Callable[[str], str]) -> WordTable:
        table = WordTable()
        every: dict[str, set[int]] = defaultdict(set)  # all synsets of a word, since a falsehood must be false of all
        for offset, synset in synsets.items():
            for word in synset.words:
                every[word].add(offset)
        for word, offset in words.items():
            near = _ancestors(offset, synsets)[:KINDS_ABOVE]
            claimed = [worded(synsets[kind].words[0]) for kind in near if synsets[kind].words[0] != "entity"]
            true: set[str] = set()
            for meaning in every[word]:
                for kind in (meaning, *_ancestors(meaning, synsets)):
                    true.update(map(worded, synsets[kind].words))
            if claimed:
                table.values[word] = tuple(dict.fromkeys(claimed))
                table.listed[word] = frozenset(true)
        return table

    def _definitions(self, words: dict[str, int], synsets: dict[int, Synset]) -> WordTable:
        table = WordTable()
        own: dict[str, set[str]] = defaultdict(set)
        for synset in synsets.values():
            for word in synset.words:
                own[word].add(synset.definition)
        for word, offset in words.items():
            definition = synsets[offset].definition
            if definition and word.casefold() not in definition.casefold():
                table.values[word] = (definition,)
                table.listed[word] = frozenset(own[word])
        return table

    def _linked(self, nouns: dict[str, int], symbol: str) -> WordTable:
        values: dict[str, dict[str, None]] = defaultdict(dict)
        for word, offset in nouns.items():
            for kind, target, part, _ in self.nouns[offset].pointers:
                if kind == symbol and part == "n":
                    values[word][self.nouns[target].words[0]] = None
        return WordTable({word: tuple(row) for word, row in values.items()})

    def _opposites(self, adjectives: dict[str, int]) -> WordTable:
        values: dict[str, dict[str, None]] = defaultdict(dict)
        for word, offset in adjectives.items():
            synset = self.adjectives[offset]
            for kind, target, part, number in synset.pointers:
                if kind == "!" and part in "as" and number and synset.words[number - 1] == word:
                    values[word].update(dict.fromkeys(self.adjectives[target].words[:1]))
        return WordTable({word: tuple(row) for word, row in values.items()})


def _ancestors(offset: int, synsets: dict[int, Synset]) -> list[int]:
    """Hypernyms of a synset, nearest first."""
    above: dict[int, None] = {}
    waiting = [offset]
    for current in waiting:
        for kind, target, _, _ in synsets[current].pointers:
            if kind in ("@", "@i") and target in synsets and target not in above:
                above[target] = None
                waiting.append(target)
    return list(above)


def _first_meanings(synsets: dict[int, Synset], is_known: Callable[[str], bool]) -> dict[str, int]:
    """The synset of each word in which it stands first, or else the first one of the file."""
    first: dict[str, int] = {}
    leading: dict[str, int] = {}
    for offset, synset in synsets.items():
        for place, word in enumerate(synset.words):
            chosen = leading if place == 0 else first
            chosen.setdefault(word, offset)
    return {word: offset for word, offset in {**first, **leading}.items() if is_known(word)}


def _synsets(path: Path) -> Iterator[tuple[int, Synset]]:
    try:
        with path.open(encoding="ascii") as stream:
            for line in stream:
                if not line.startswith(" "):  # the licence is indented
                    yield _synset(line)
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read. Run `apt-get install wordnet-base`.") from fault


def _synset(line: str) -> tuple[int, Synset]:
    head, _, gloss = line.partition(" | ")
    fields = head.split()
    count = int(fields[3], 16)
    words = tuple(fields[4 + 2 * place].partition("(")[0].replace("_", " ") for place in range(count))
    at = 4 + 2 * count
    pointers: list[tuple[str, int, str, int]] = []
    for number in range(int(fields[at])):
        symbol, offset, part, places = fields[at + 1 + 4 * number : at + 5 + 4 * number]
        pointers.append((symbol, int(offset), part, int(places[:2], 16)))
    definition, *_ = (part.strip().strip('"') for part in gloss.split(";"))
    if definition.startswith("(") and ")" in definition:
        definition = definition.partition(")")[2].strip()
    if not 8 <= len(definition) <= LONGEST_DEFINITION:
        definition = ""
    return int(fields[0]), Synset(words, definition, tuple(pointers))
