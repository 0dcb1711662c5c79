"""Removes a key from texts that came from elsewhere: whole, with signs between its characters, reversed, or in pieces.

Pieces of fewer than `PIECE` letters and digits are not found, nor is a key in another encoding.
"""

from __future__ import annotations

import re
from functools import lru_cache

SHORTEST_SECRET = 12
"""Characters. Shorter keys, such as `EMPTY` for servers that need none, are words that may occur in a reply."""

HIDDEN = "[key]"

PIECE = 12

_BETWEEN = re.compile(r"[\W_]+")


def redacted(text: str, key: str) -> str:
    """The text with the key replaced."""
    if len(key) < SHORTEST_SECRET:
        return text
    text = text.replace(key, HIDDEN)
    plain = _BETWEEN.sub("", text)
    found = [piece for piece in _pieces(key) if piece in plain]
    # Letters alone may be honest words, unless more of the key is there.
    is_told = any(not piece.isalpha() and not piece.isdigit() for piece in found)
    return _without(text, plain, found) if is_told else text


@lru_cache(maxsize=16)
def _pieces(key: str) -> frozenset[str]:
    """The pieces of a key and of its reverse."""
    plain = _BETWEEN.sub("", key)
    pieces: set[str] = set()
    for whole in (plain, plain[::-1]):
        pieces.update(whole[start : start + PIECE] for start in range(len(whole) - PIECE + 1))
    return frozenset(pieces)


def _without(text: str, plain: str, pieces: list[str]) -> str:
    """The text without these pieces, which lie in `plain`, its letters and digits."""
    # For each character of `plain` its place in `text`.
    places = [match.start() for match in re.finditer(r"[^\W_]", text)]
    covered: set[int] = set()
    for piece in pieces:
        start = plain.find(piece)
        while start >= 0:
            covered.update(range(places[start], places[start + PIECE - 1] + 1))
            start = plain.find(piece, start + 1)
    signs = []
    for place, sign in enumerate(text):
        if place not in covered:
            signs.append(sign)
        elif place - 1 not in covered:
            signs.append(HIDDEN)
    return "".join(signs)
