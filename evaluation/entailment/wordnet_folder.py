"""WordNet's own database files as a lexicon (man pages wndb and morphy), such as Debian's package `wordnet-base`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

from hapax.evaluation.entailment.lexicon import Lexicon, ReplacementDirection, Sense, lexicon_languages
from hapax.evaluation.shared.wordnet_files import index_entries, synset_at
from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.references.loaders import WORDNET

NAME = "wordnet-base"
"""Name of the lexicon that Debian's package installs."""

_PARTS = {"v": "verb", "n": "noun"}
"""Parts of speech in order of preference: a predicate is a verb if it can be one, else a noun."""

_ENDINGS = {
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "n": (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man")),
        ("ies", "y"),
    ),
}
"""Endings that Morphy detaches, with their replacements (man page morphy)."""

_POINTERS = {
    ReplacementDirection.NARROWER: ("~", "~i"),  # WordNet files troponyms under hyponyms
    ReplacementDirection.BROADER: ("@", "@i", "*"),
}
"""Symbols of relations: hyponyms; hypernyms and entailments."""


def installed(folder: Path = WORDNET) -> bool:
    """True if the folder has WordNet's files."""
    names = [f"{kind}.{part}" for kind, part in product(("index", "data"), _PARTS.values())]
    return all((folder / name).is_file() for name in names)


def open_lexicon(name: str = "", language: str = "EN") -> Lexicon:
    """Open the lexicon of a name: `wordnet-base`, a folder with WordNet's files, or one of `wn`'s, such as `oewn:2024`.

    Without a name it is the only one of `wn`'s for the language, or, for English where there is none, Debian's package.
    Raises HapaxError if there is no such lexicon, or if several match.
    """
    if name == NAME:
        return WordNetFolder()
    if name and ("/" in name or Path(name).is_dir()):
        return WordNetFolder(Path(name))
    if not name and language == "EN" and installed() and not lexicon_languages():
        return WordNetFolder()
    return Lexicon.open(name, language)


class WordNetFolder(Lexicon):
    """The verbs and nouns of a folder with WordNet's files. Raises HapaxError for another folder."""

    def __init__(self, folder: Path = WORDNET) -> None:
        if not installed(folder):
            raise HapaxError(
                f"{folder} is not a folder of WordNet: it lacks index.verb, data.verb, index.noun or data.noun. "
                "Install Debian's package wordnet-base, or name another folder."
            )
        self.language = "EN"
        self._index: dict[str, dict[str, tuple[int, ...]]] = {}
        self._data: dict[str, bytes] = {}
        self._exceptions: dict[str, dict[str, str]] = {}
        for key, part in _PARTS.items():
            self._index[key] = dict(index_entries(folder / f"index.{part}"))
            self._data[key] = (folder / f"data.{part}").read_bytes()
            self._exceptions[key] = dict(_irregular(folder / f"{part}.exc"))
        # Caches of this object: `cache` on a method would keep the object alive.
        self.senses = cache(self._senses)
        self.lemma = cache(self._lemma)
        self.related = cache(self._related)

    def _senses(self, text: str) -> tuple[Sense, ...]:
        senses: dict[Sense, None] = {}
        for key in _PARTS:
            for form in self._base_forms(text, key):
                senses |= dict.fromkeys(self._synset(key, offset) for offset in self._index[key][form])
        return tuple(senses)

    def _lemma(self, word: str) -> str:
        """The lemma of a word as a verb, else as a noun; a word that is itself a lemma is unchanged."""
        for key in _PARTS:
            forms = list(self._base_forms(word, key))
            if forms:
                return word if _entry(word) in forms else forms[0].replace("_", " ")
        return word

    def _related(self, sense: str, way: ReplacementDirection) -> tuple[Sense, ...]:
        # Ids of senses are a part of speech and a byte offset, such as `v1921964` (`_synset`).
        key, offset = sense[0], int(sense[1:])
        related = []
        for symbol, target, part in synset_at(self._data[key], offset).pointers:
            # Other parts of speech are related otherwise than by meaning alone.
            if symbol in _POINTERS[way] and part == key:
                related.append(self._synset(key, target))
        return tuple(related)

    def _base_forms(self, text: str, key: str) -> Iterator[str]:
        """Entries of the index that the text is a form of: itself, an irregular form, or one less its ending."""
        entry, index = _entry(text), self._index[key]
        forms: dict[str, None] = {}
        if entry in index:
            forms[entry] = None
        irregular = self._exceptions[key].get(entry)
        if irregular is not None and irregular in index:
            forms[irregular] = None
        # Morphy's order: endings are detached only from words that are neither entries nor irregular.
        if not forms:
            for ending, replacement in _ENDINGS[key]:
                # Several endings may fit, as -es and -s do; each base form that the index has counts.
                if entry.endswith(ending) and (base := entry.removesuffix(ending) + replacement) in index:
                    forms[base] = None
        yield from forms

    def _synset(self, key: str, offset: int) -> Sense:
        synset = synset_at(self._data[key], offset)
        return Sense(f"{key}{offset}", synset.gloss, tuple(dict.fromkeys(synset.words)))


def _entry(text: str) -> str:
    return text.casefold().replace(" ", "_")


def _irregular(path: Path) -> Iterator[tuple[str, str]]:
    """Irregular forms and their first base forms; none if the file is not there."""
    if path.is_file():
        for line in path.read_text("ascii").splitlines():
            form, base, *_ = line.split()
            yield form, base
