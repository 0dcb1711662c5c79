"""Numbers, names and values in messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_LETTERS = str.maketrans("øłđðħŧıØŁĐÐĦŦ", "olddhtiOLDDHT") | str.maketrans(
    {"æ": "ae", "œ": "oe", "þ": "th", "ß": "ss", "Æ": "AE", "Œ": "OE", "Þ": "TH", "ẞ": "SS"}
)
"""Letters that Unicode does not take apart into plain letters and marks."""


def counted(number: float, noun: str, plural: str = "") -> str:
    """`1 call`, `2.5 calls`; `plural` is for nouns that need more than an s: `counted(2, "call is", "calls are")`."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def some(names: Iterable[str], most: int = 5, between: str = ", ") -> str:
    """The first few names, and the number of the others."""
    listed = list(names)
    return between.join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def short(item: object) -> str:
    """The item as Python writes it, cut to 40 characters."""
    return excerpt(repr(item), 40)


def excerpt(text: str, most: int = 60) -> str:
    """The beginning of a text in one line, with dots for the rest."""
    line = one_line(text)
    return line if len(line) <= most else line[: most - 3] + "..."


def one_line(text: str) -> str:
    """The text in one line, without control characters that a terminal would obey."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def two_decimals(value: float | None) -> str:
    """Two decimals, or `n/a`."""
    return "n/a" if value is None else f"{value:.2f}"


def with_article(noun: str) -> str:
    """A noun with its indefinite article, by its first letter, with the usual exceptions."""
    small = noun.lower()
    # A unit, a user, a euro and a one-way street begin with a spoken consonant; the h of an hour is silent.
    is_vowel = small.startswith(tuple("aeiou")) and not small.startswith(("uni", "use", "eu", "one"))
    return f"{'an' if is_vowel or small.startswith(('hour', 'honor', 'heir')) else 'a'} {noun}"


def plain_letters(text: str) -> str:
    """The text without the marks of its letters: `Odegaard` for `Ødegaard`."""
    if text.isascii():
        return text
    # After NFKD a mark is a character of its own, which can be left out.
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The most similar known names as a question after a blank, or ""."""
    from difflib import get_close_matches  # only failures need it

    near = get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""
