"""Predicates as parsers write them, and the words in them: `(shop.1,shop.in.2)`, `在·X·工作`, or plain text."""

from __future__ import annotations

import re

_PARSED = re.compile(r"([^()]*)\((.*)\.\d,(.*)\.\d\)")
"""Prefix, and the predicate with its place for either argument."""

_JOINTS = re.compile(r"[.\-_]+")
_BLANKS = re.compile(r"[\s_]+")
_AUXILIARIES = frozenset({"is", "are", "would", "should", "must", "have"})


def predicate_words(predicate: str, language: str = "EN") -> tuple[str, ...]:
    """The words in small letters. Chinese ones are split by `·`, where `X` is the object's place.

    Of an English parse the second half counts, which has the preposition: `NEG__(go.1,go.to.2)` is `do not go to`.
    """
    found = _PARSED.fullmatch(predicate.strip())
    if language == "ZH":
        return tuple(part for part in (found[2] if found else predicate.strip()).split("·") if part)
    if found is None:
        return tuple(word for word in _BLANKS.split(predicate.casefold()) if word)
    return _with_prefix(found[1], _split(found[3]))


def surface(words: tuple[str, ...], language: str = "EN") -> str:
    """The words as a triple's predicate, as the prompts take it."""
    return ("·" if language == "ZH" else " ").join(words)


def _split(text: str) -> tuple[str, ...]:
    return tuple(word for word in _JOINTS.split(text.casefold()) if word)


def _with_prefix(prefix: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """`try__(visit.1,visit.2)` is `try to visit`."""
    before = _split(prefix)
    if not before:
        return words
    if before == ("neg",):
        return (words[0], "not", *words[1:]) if words[:1] and words[0] in _AUXILIARIES else ("do", "not", *words)
    if len(before) == 1:
        before = (*before, "to")
    return (*before, *(words[1:] if words[:1] == before[-1:] else words))
