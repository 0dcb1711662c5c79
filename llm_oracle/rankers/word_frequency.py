"""Relative frequencies of English words, from the table beside this module (NOTICE says where it comes from)."""

from __future__ import annotations

import lzma
import math
import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path

import regex

TABLE = Path(__file__).with_name("english_words.xz")
"""Text of 800 lines. The words of line n, counted from 0, have the relative frequency 10 ** (-n / 100)."""

RAREST = 1e-9
"""Relative frequency of a word that is not in the table: just below its rarest words."""

# Words end at the word boundaries of Unicode's annex 29; signs such as ™ are words, too. The letter of a French article
# or of a name such as O'Hara is a word of its own.
_WORD = regex.compile(
    r"(?=[\w\p{So}]) (?! \w\w?' [AEHIOUYaehiouyÁÉÍÓÚÀÈÌÒÙÂÊÎÔÛÅÏÖŒáéíóúàèìòùâêîôûåïöœ]) \X+? \b | \w\w?'",
    regex.V1 | regex.WORD | regex.VERBOSE,
)
_CURLY_QUOTE = re.compile("[\u02bc\u2018-\u201b]")
_NUMBER = re.compile(r"\d[\d.,]+")
_DIGIT, _DIGITS = re.compile(r"\d"), re.compile(r"\d+")

FIRST_DIGITS = (0.009, 0.300, 0.175, 0.124, 0.096, 0.078, 0.066, 0.057, 0.050, 0.045)
"""Shares of numbers by their first digit: Benford's law, and an estimate for 0."""


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    normal = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return [_CURLY_QUOTE.sub("'", word.strip("'")) for word in _WORD.findall(normal)]


def word_frequencies(text: str) -> list[float]:
    """Relative frequency of each word of a text, to three digits, and `RAREST` at least."""
    return [_rounded(frequency) for frequency in map(_frequency, words(text))]


def name_frequency(name: str) -> float:
    """Relative frequency of a name: one over the sum of the inverses of its words', to three digits.

    `RAREST` for a name without words or with one that the table does not have.
    """
    frequencies = [_frequency(word) for word in words(name)]
    if not frequencies or 0 in frequencies:
        return RAREST
    return _rounded(1 / sum(1 / frequency for frequency in frequencies))


@lru_cache(maxsize=100_000)
def zipf_frequency(name: str) -> float:
    """Log10 of the occurrences of a name in 10**9 words, to two decimals; 0 if it has an unknown word."""
    return round(math.log10(name_frequency(name)) + 9, 2)


def _rounded(frequency: float) -> float:
    return max(RAREST, float(f"{frequency:.3g}"))


def _frequency(word: str) -> float:
    """Relative frequency of a word, 0 if it is unknown.

    The table has numbers of two digits or more with zeros for digits, as the sum over all numbers of this form.
    """
    form = _NUMBER.sub(lambda number: _DIGIT.sub("0", number[0]), word)
    frequency = _table().get(form, 0.0)
    if frequency and form != word:
        for number in _NUMBER.findall(word):
            for digits in _DIGITS.findall(number):
                frequency *= _share(digits)
    return frequency


def _share(digits: str) -> float:
    """Share of these digits in the numbers of their length."""
    benford = FIRST_DIGITS[int(digits[0])] / 10.0 ** (len(digits) - 1)
    if len(digits) != 4:
        return benford
    # Years become more frequent up to 2019, stay so for 20 years and then become rare; a tenth is not years.
    year = int(digits)
    exponent = 0.0083 * max(0, 2019 - year) + 0.2 * max(0, year - 2039)
    return math.pow(10, -1.9185 - exponent) + 0.1 * benford


@cache
def _table() -> dict[str, float]:
    table: dict[str, float] = {}
    with lzma.open(TABLE, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            table.update(dict.fromkeys(line.split(), 10 ** (-number / 100)))
    return table
