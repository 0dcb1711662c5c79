"""Frequency of the words of a statement's values in running text, an idea of LINK's appendix A that LINT lacks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

LANGUAGE = "en"


def rarest_word(values: Iterable[str]) -> float | None:
    """Zipf frequency of the rarest word: log10 of its count per billion words, 0 for an unknown word.

    None if no value has a word that contains a letter.
    """
    from wordfreq.tokens import tokenize

    words: set[str] = set()
    for value in values:
        # Between blanks, letters and digits of ASCII are wordfreq's words as well; splitting is much faster.
        plain = value.isascii() and value.replace(" ", "").isalnum()
        # wordfreq only guesses how frequent a number is, so numbers do not count.
        found = value.lower().split(" ") if plain else tokenize(value, LANGUAGE)
        words.update(word for word in found if any(map(str.isalpha, word)))
    return min(map(_zipf, words), default=None)


@lru_cache(maxsize=100_000)
def _zipf(word: str) -> float:
    from wordfreq import zipf_frequency

    return float(zipf_frequency(word, LANGUAGE))
