"""Classes of words: which atoms of the theory an event, or what is said of the pronoun, states (`lexicon.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path

from hapax.evaluation.winograd.reasoner.wordnet import WordNet, shipped_wordnet

FILE = Path(__file__).with_name("lexicon.toml")

LEAST_SHARE = 0.6
"""Least share of the nearby listed words, by weight, that have a class, for an unlisted word to have it."""

LEAST_NEARNESS = 0.5
"""Least sum of the weights of the relations by which an unlisted word is near listed ones."""


class WordClasses:
    """Classes by lemma; an unlisted word has those of most listed words that WordNet puts near it."""

    def __init__(self, path: Path = FILE, wordnet: WordNet | None = None) -> None:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
        self.wordnet = shipped_wordnet() if wordnet is None else wordnet
        self.denied: Mapping[str, str] = sections["denied"]
        self.first: Mapping[str, str] = sections["first"]
        self.second: Mapping[str, str] = sections["second"]
        self._events = _by_word(sections["events"])
        self._reversed = _by_word(sections["reversed"])
        self._qualities = _by_word(sections["qualities"])
        self._unclassed = {part: frozenset(_words(text)) for part, text in sections["unclassed"].items()}
        self.manners: dict[str, str] = {}
        for name, text in sections["manner"].items():
            self.manners |= dict.fromkeys(_words(text), name)
        minds = {name: frozenset(_words(text)) for name, text in sections["minds"].items()}
        self.mind_classes, self.mind_words = minds["classes"], minds["verbs"] | minds["qualities"]
        self.object_classes = minds["objects"]
        self.genders: dict[str, str] = {}
        for gender, text in sections["names"].items():
            self.genders |= dict.fromkeys(_words(text), gender)

    @property
    def classes(self) -> frozenset[str]:
        """All classes of events and qualities."""
        by_word = (*self._events.values(), *self._reversed.values(), *self._qualities.values())
        return frozenset(chain.from_iterable(by_word))

    def event_classes(self, entry: str, lemma: str, negative: bool) -> list[tuple[str, bool]]:
        """Classes of an event, each with True if its roles are exchanged. `entry`: the lemma as the lexicon has it."""
        classes = [(name, False) for name in self._events.get(entry, ())]
        classes += [(name, True) for name in self._reversed.get(entry, ())]
        # Only single verbs: WordNet knows nothing of `look up to B`.
        if not classes and entry == lemma and lemma not in self._unclassed["event"]:
            classes = [(name, False) for name in self._by_sense(self._events, lemma, "verb")]
        if negative:
            # A negated event states the class declared as its denial, or nothing.
            classes = [(self.denied[name], flip) for name, flip in classes if name in self.denied]
        return classes

    def qualities(self, lemma: str, part: str, negative: bool) -> list[str]:
        """Classes of what is said of an entity. `part`: `verb`, `adj` or `noun`, or others of listed words alone."""
        kind = "verb" if part in ("verb", "participle") else "noun" if part == "noun" else "adj"
        classes = [*self._qualities.get(lemma, ()), *self._qualities.get(f"{lemma} ({kind})", ())]
        if not classes and part in ("verb", "adj", "noun") and lemma not in self._unclassed[part]:
            classes = self._by_sense(self._qualities, lemma, part)
        return [self.denied[name] for name in classes if name in self.denied] if negative else classes

    def _by_sense(self, listed: Mapping[str, tuple[str, ...]], lemma: str, part: str) -> list[str]:
        """Classes that most of the listed words near this one have, each relation with its weight."""
        shares: dict[str, float] = {}
        total = 0.0
        for weight, words in self.wordnet.near(lemma, part):
            known = [listed[word] for word in words if word in listed]
            if known:
                total += weight
            for name in chain.from_iterable(known):
                shares[name] = shares.get(name, 0.0) + weight / len(known)
        if total < LEAST_NEARNESS:
            return []
        return sorted(name for name, share in shares.items() if share >= LEAST_SHARE * total)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.replace("\n", " ").split(",") if word.strip()]


def _by_word(section: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    classes: dict[str, tuple[str, ...]] = {}
    for name, text in section.items():
        for word in dict.fromkeys(_words(text)):
            classes[word] = (*classes.get(word, ()), name)
    return classes


@lru_cache(maxsize=1)
def shipped_lexicon() -> WordClasses:
    """The lexicon of this folder, read at the first call."""
    return WordClasses()
