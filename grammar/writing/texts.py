"""Names, texts and numbers as rule text has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from hapax.grammar.terms import Value
from hapax.grammar.values.moments import UNITS, duration_text
from hapax.grammar.writing.prolog_text import UNSTORABLE

MAXIMUM_DIGITS = 300
"""Digits of a number, and its largest power of ten. Nobody means a larger quantity, and written out it fills memory."""

# A letter of any alphabet (a word character that is neither digit nor underscore), then digits: A, Ä2.
_LETTER = re.compile(r"[^\W\d_]\d*")
# `Price`, `_`, `_Price`, but neither `Price-Cost` nor the names of the program's own variables
_VARIABLE = re.compile(r"(?!Hapax_|_\d)(?:[^\W\d_]|_)\w*")
# [1] or [X] in a template
SLOT = re.compile(r"\[([^\[\]]*)\]")
# \n, \" and the like, or a character by its code: \u{e9}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|.)", re.DOTALL)


@lru_cache(maxsize=10_000)  # called for every argument of every rule, twice
def is_variable_name(text: str) -> bool:
    """Tell if a word names a variable: a capital letter of any alphabet, perhaps with a number, such as `A` or `Ä2`."""
    return bool(_LETTER.fullmatch(text)) and text[0].isupper()


def is_variable_word(text: str) -> bool:
    """Tell if a word of a rule names a variable: it begins with a capital letter or `_`, as in goals."""
    return (text[0].isupper() or text[0] == "_") and _VARIABLE.fullmatch(text) is not None


class NoConstant(ValueError):  # noqa: N818  named after the situation, as all our errors are
    """A text or number of a rule file that no constant can have. `label`: of the hint, `words`: of its message."""

    def __init__(self, label: str, **words: str) -> None:
        super().__init__(label)
        self.label, self.words = label, words


def value_of(source: str, unit: str = "") -> Value:
    """The value of a quoted text, of a number, or of a number with a unit of time. Raises NoConstant."""
    if source[0] in "\"'":
        return unquoted(source)
    number = number_value(source)
    if unit:
        text = duration_text(number, unit) if number is not None else None
        if text is None:
            raise NoConstant("unknown unit", unit=unit, units=", ".join(UNITS))
        return text
    if number is None:
        raise NoConstant("number too large", limit=str(MAXIMUM_DIGITS))
    return number


def unquoted(source: str) -> str:
    """The text inside quotes with its escapes replaced.

    Raises NoConstant for an unknown escape, and for that of a character that Prolog and SQLite cannot hold.
    """
    if found := UNSTORABLE.search(source):
        raise NoConstant("unknown escape", escape=f"\\u{{{ord(found[0]):x}}}")
    return _ESCAPE.sub(_unescaped, source[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        code = int(escape[2:-1], 16)
        # Neither NUL nor half of a character in UTF-16 is a text: Prolog and SQLite can hold neither.
        if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
    character = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}.get(escape)
    if character is None:
        raise NoConstant("unknown escape", escape=match[0])
    return character


def number_value(source: str) -> int | Decimal | None:
    """An int for plain digits, an exact Decimal for a point or an exponent, None if it exceeds MAXIMUM_DIGITS."""
    # Counted before int(), which refuses very long numbers with an error of its own.
    digits = sum(character.isdigit() for character in source)
    if digits > MAXIMUM_DIGITS:
        return None
    if source.lstrip("-").isdigit():
        return int(source)
    try:
        number = Decimal(source)
    except InvalidOperation:  # a power of ten beyond what decimals have
        return None
    # `adjusted` is the power of ten of the first digit: 1e999 is short to write, and too large.
    return number if not number or abs(number.adjusted()) <= MAXIMUM_DIGITS else None


def numbered_slots(template: str, names: Sequence[str]) -> str:
    """The template with slots `[X]` of variable names replaced by `[1]`, `[2]` ...; other brackets stay."""
    positions: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        positions.setdefault(name, str(position))  # of a repeated name, the first position
    return SLOT.sub(lambda slot: f"[{positions.get(slot[1], slot[1])}]", template)


def predicate_name(words: Sequence[str]) -> str:
    """The words of a predicate name. Blanks beside underscores, as LINK prints them, are dropped; others stay."""
    return re.sub(r" ?_ ?", "_", " ".join(words))
