"""Words of a predicate in a parser's notation: `(shop.1,shop.in.2)`, `在·X·工作`, or plain text."""

from __future__ import annotations

import re

_PARSED = re.compile(r"([^()]*)\((.*)\.\d,(.*)\.\d\)")
"""The prefix, and the predicate once for each argument."""

_JOINTS = re.compile(r"[.\-_]+")
_BLANKS = re.compile(r"[\s_]+")
_AUXILIARIES = frozenset({"is", "are", "would", "should", "must", "have"})


def predicate_words(predicate: str, language: str = "EN") -> tuple[str, ...]:
    """The words of a predicate in lower case: `NEG__(go.1,go.to.2)` is `do not go to`.

    Chinese words are separated by `·`, and `X` marks the object's place.
    """
    parsed = _PARSED.fullmatch(predicate.strip())
    if language == "ZH":
        return tuple(part for part in (parsed[2] if parsed else predicate.strip()).split("·") if part)
    if parsed is None:
        return tuple(word for word in _BLANKS.split(predicate.casefold()) if word)
    return _with_prefix(parsed[1], _split(parsed[3]))  # the second half of an English parse has the preposition


def surface(words: tuple[str, ...], language: str = "EN") -> str:
    """The words joined to the predicate of a triple, in the form that the prompts take."""
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
    # A prefix that ends in the predicate's first word does not repeat it.
    return (*before, *(words[1:] if words[:1] == before[-1:] else words))
