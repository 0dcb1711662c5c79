"""Phrases of the reasoner's lexicon: each is one that the parse of some sentence gives."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest

from hapax.evaluation.winograd.reasoner.events import EventReader
from hapax.evaluation.winograd.reasoner.lexicon import FILE, WordClasses
from hapax.evaluation.winograd.reasoner.parsing import SpacyParser
from hapax.evaluation.winograd.reasoner.reasoning import located
from hapax.evaluation.winograd.reasoner.stating import SentenceStatements
from hapax.evaluation.winograd.reasoner.wordnet import WordNet

SECTIONS = tomllib.loads(FILE.read_text(encoding="utf-8"))

NEVER_LEMMAS = {"a", "an", "the", "not", "his", "her", "their", "its", "one's"}
"""Words that no phrase has, since phrases are made of lemmas without determiners."""

BETWEEN = (
    "The man will {phrase} the woman",
    "The men {phrase} the woman",
    "The man was {phrase} the woman",
    "The woman was {phrase} by the man",
    "The man will {verb} the woman {rest}",
    "The man will {verb} a {rest} the woman",
    "The man will {verb} the {rest} the woman",
    "The man will {verb} the book {rest} the woman",
    "The man will {two} the book {later} the woman",
    "The man will {two} the woman {later}",
    "The man will {phrase} 's heart",
    "The man will {owned} the woman's {last_noun}",
)
OF_PRONOUN = (
    "he will {phrase}",
    "he is {phrase}",
    "they {phrase}",
    "he {phrase}",
    "it is {phrase}",
    "he has {phrase}",
    "he has a {phrase}",
    "he is a {phrase}",
    "he was {phrase} it",
    "he was {phrase} work",
    "he is {phrase} work",
    "he will {phrase} work",
    "he will {verb} a {rest}",
    "he will {verb} the {rest}",
    "he will {two} the {later}",
    "they {verb} {rest}s",
    "they are {verb} {rest}s",
    "they have {verb} {rest}s",
    "he was going {phrase}",
)
"""Sentence forms for phrases; one of them at least gives the phrase."""


class Recorder(WordClasses):
    """A lexicon that lists nothing and keeps what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def event_classes(self, entry: str, lemma: str, negative: bool) -> list[tuple[str, bool]]:
        self.asked.add(entry)
        return []

    def qualities(self, lemma: str, part: str, negative: bool) -> list[str]:
        self.asked.add(lemma)
        return []


def phrases_of(section: str) -> list[str]:
    """Entries of a section with more than one word, each once."""
    words = [word.strip() for text in SECTIONS[section].values() for word in text.replace("\n", " ").split(",")]
    return [word for word in dict.fromkeys(words) if " " in word.split(" (")[0]]


def sentences_with(phrase: str, forms: tuple[str, ...]) -> Iterator[str]:
    """The phrase in each form."""
    verb, *others = phrase.split()
    parts = {"phrase": phrase, "verb": verb, "rest": " ".join(others), "two": " ".join([verb, *others[:1]])}
    parts |= {"later": " ".join(others[1:]), "owned": " ".join([verb, *others[:-2]]), "last_noun": others[-2:][0]}
    for form in forms:
        yield form.format(**parts)


@pytest.mark.parametrize("section", ["events", "reversed", "qualities"])
def test_phrases_are_made_of_lemmas(section: str) -> None:
    """No phrase has a determiner or a negation, which the reader leaves out, so that none is listed in vain."""
    assert [phrase for phrase in phrases_of(section) if NEVER_LEMMAS & set(phrase.split())] == []


@pytest.mark.english
@pytest.mark.timeout(900)  # it parses thousands of sentences
@pytest.mark.skipif(not WordNet().available, reason="WordNet is not installed (wordnet-base of Debian)")
def test_the_parse_of_some_sentence_gives_each_phrase() -> None:
    """Every phrase of the lexicon is asked for when a sentence that has it is read."""
    parser, lexicon = SpacyParser(), Recorder()

    def given(phrase: str, forms: tuple[str, ...], end: str) -> bool:
        for sentence in sentences_with(phrase, forms):
            text, options = (
                end.format(sentence),
                ("the men" if sentence.startswith("The men") else "the man", "the woman"),
            )
            pronoun = "they" if forms is BETWEEN else sentence.split()[0]
            schema = located(parser.parse(text), options, pronoun, text.rindex(f" {pronoun} ") + 1)
            if schema is not None:
                SentenceStatements(schema, EventReader(schema.parse).events(), lexicon)
            if phrase.split(" (", maxsplit=1)[0] in lexicon.asked:
                return True
        return False

    between = [*phrases_of("events"), *phrases_of("reversed")]
    unread = [phrase for phrase in between if not given(phrase, BETWEEN, "{} because they are old.")]
    said = [phrase.split(" (")[0] for phrase in phrases_of("qualities")]
    unread += [phrase for phrase in said if not given(phrase, OF_PRONOUN, "The man met the woman because {}.")]

    assert unread == []
