"""How rare the words of a statement's values are in running text: an idea of LINK's appendix A, beyond its dataset."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

LANGUAGE = "en"


def rarest_word(values: Iterable[str]) -> float | None:
    """The Zipf frequency of the rarest word: log10 of its count in a thousand million words, 0 for an unknown one.

    None where no value has a word with a letter in it.
    """
    from wordfreq.tokens import tokenize

    words = {word for value in values for word in tokenize(value, LANGUAGE) if any(map(str.isalpha, word))}
    return min(map(_zipf, words), default=None)


@lru_cache(maxsize=100_000)
def _zipf(word: str) -> float:
    from wordfreq import zipf_frequency

    return float(zipf_frequency(word, LANGUAGE))
