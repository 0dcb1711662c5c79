"""Constants as tagged integers: a whole number n with |n| < 2^60 is 2n + 1, others are even ids in table `symbols`.

Constants have equal tags if they are equal to Prolog: 2 and 2.0 are one constant, 2 and "2" are two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, TypeGuard

from hapax.grammar.terms import MAXIMUM_POWER, CutDecimal, Value
from hapax.kb import values

if TYPE_CHECKING:
    import sqlite3

TAGGED_BITS = 60
"""Whole numbers below two to this power are tagged; the sum of two tags is far below SQLite's 64 bits."""

EXACT = 1 << 62
"""SQL calculates with whole numbers below this; beyond 64 bits SQLite would continue with rounded floats."""

_MOST_PLACES = 17

# Constants with cached tags; a million takes about 100 MB.
_KNOWN_TAGS = 1_000_000


@dataclass(frozen=True, slots=True)
class NumberExtent:
    """Numbers in a relation: a bound of their absolute values, and whether some are symbols (decimals, huge ones).

    `places`: a bound of their decimal places. In the table `relations` the bound is that of the tagged ones alone.
    """

    largest: int = 0
    inexact: bool = False
    places: int = 0

    def __or__(self, other: NumberExtent) -> NumberExtent:
        return NumberExtent(
            max(self.largest, other.largest), self.inexact or other.inexact, max(self.places, other.places)
        )


def canonical(value: Value) -> Value:
    """The value as Prolog returns it: whole decimals become integers, others lose their trailing zeros.

    A number too large or too small for Prolog stays a decimal.
    """
    if not isinstance(value, Decimal) or isinstance(value, CutDecimal):
        return value
    if abs(value.adjusted()) <= MAXIMUM_POWER and value == value.to_integral_value():
        return int(value)
    sign, digits, exponent = value.as_tuple()
    kept = list(digits)
    assert isinstance(exponent, int)  # noqa: S101  it is finite
    while kept[-1] == 0 and len(kept) > 1:
        kept.pop()
        exponent += 1
    return Decimal((sign, tuple(kept), exponent))


def _is_whole(value: Value) -> TypeGuard[int]:
    """True for a canonical value that is a whole number small enough to be its own tag."""
    return isinstance(value, int) and -(1 << TAGGED_BITS) < value < 1 << TAGGED_BITS


def extent_of(*constants: Value) -> NumberExtent:
    """Extent of the numbers among these constants."""
    numbers = [number for number in map(canonical, constants) if not isinstance(number, str)]
    whole = [abs(number) for number in numbers if _is_whole(number)]
    return NumberExtent(max(whole, default=0), len(whole) < len(numbers))


def exact_extent(numbers: Iterable[Value]) -> NumberExtent:
    """Extent of numbers that may be decimals; `inexact` only if some are too large or too long for SQL.

    A number is within it if its absolute value, times ten to the power of `places`, is below `EXACT`.
    """
    largest = places = 0
    for number in numbers:
        value = canonical(number)
        if isinstance(value, str):
            continue
        digits, size = decimal_places(value), Decimal(value).copy_abs()
        if digits > _MOST_PLACES or size >= 1 << TAGGED_BITS:
            return NumberExtent(largest, True, places)
        largest, places = max(largest, math.ceil(size)), max(places, digits)
    return NumberExtent(largest, largest * 10**places >= EXACT, places)


def decimal_places(number: int | Decimal) -> int:
    """Decimal places of a canonical number."""
    exponent = number.as_tuple().exponent if isinstance(number, Decimal) else 0
    assert isinstance(exponent, int)  # noqa: S101  it is finite
    return max(0, -exponent)


class Symbols:
    """The constants of an open knowledge base and their tags."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection
        self._tags: dict[Value, int] = {}
        self._made: dict[str, int] = {}

    def tag(self, value: Value) -> int:
        """Tag of a constant; a new constant gets a row."""
        return self.tags([value])[0]

    def tags(self, constants: Sequence[Value]) -> list[int]:
        """Tags of these constants, in their order."""
        # In a bulk load nearly all constants are cached, and this is the fastest way to look them up.
        try:
            return list(map(self._tags.__getitem__, constants))
        except KeyError:
            self._learn(constants)
        return list(map(self._tags.__getitem__, constants))

    def known_tag(self, value: Value) -> int | None:
        """Tag of a constant; None for one that no row has."""
        exact = canonical(value)
        if _is_whole(exact):
            return 2 * exact + 1
        sql = "SELECT id FROM symbols WHERE symbol = ?"
        found = self._conn.execute(sql, (values.encode_value(exact),)).fetchone()
        return int(found[0]) if found else None

    def _learn(self, constants: Iterable[Value]) -> None:
        if len(self._tags) > _KNOWN_TAGS:
            # Before learning, so that all of these constants are cached afterwards.
            self._tags.clear()
        symbols: dict[Value, str] = {}
        for constant in set(constants).difference(self._tags):
            value = canonical(constant)
            if _is_whole(value):
                self._tags[constant] = 2 * value + 1
            else:
                symbols[constant] = values.encode_value(value)
        ids = self._ids(set(symbols.values()))
        for constant, symbol in symbols.items():
            self._tags[constant] = ids[symbol]

    def _ids(self, texts: Collection[str]) -> dict[str, int]:
        """Ids of symbols, new ones included."""
        last = self.last_tag
        found: dict[str, int] = {}
        if last:
            sql = "SELECT symbol, id FROM symbols WHERE symbol IN (SELECT value FROM json_each(?))"
            found.update(self._conn.execute(sql, (json.dumps(list(texts), ensure_ascii=False),)))
        # Sorted, so that ids do not depend on the order of a set.
        new = sorted(set(texts).difference(found))
        # Ids go up by two: odd integers are the tags of whole numbers.
        found.update(zip(new, range(last + 2, last + 2 * len(new) + 2, 2), strict=True))
        new_rows = [(symbol, found[symbol]) for symbol in new]
        self._conn.executemany("INSERT INTO symbols (symbol, id) VALUES (?, ?)", new_rows)
        return found

    def values(self, tags: Iterable[int]) -> dict[int, Value]:
        """Constants by tag."""
        wanted = set(tags)
        found: dict[int, Value] = {tag: tag >> 1 for tag in wanted if tag & 1}
        for tag, text in self._symbols(wanted):
            found[tag] = values.decode_value(text)
        return found

    def encoded(self, tags: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Tags and constants as `kb/values.py` encodes them."""
        wanted = set(tags)
        yield from ((tag, str(tag >> 1)) for tag in wanted if tag & 1)
        yield from self._symbols(wanted)

    @property
    def last_tag(self) -> int:
        """The tag of the newest symbol; 0 without any."""
        (last,) = self._conn.execute("SELECT coalesce(max(id), 0) FROM symbols").fetchone()
        return int(last)

    def numbers(self, after: int = 0) -> dict[int, int | Decimal]:
        """The numbers among the symbols that facts can have, by tag; only those with tags above `after`."""
        # Symbols are JSON: texts begin with a quotation mark, whole numbers with a digit or `-`, decimals with `{`.
        sql = (
            "SELECT id, symbol FROM symbols WHERE (symbol BETWEEN '-' AND ':' OR symbol BETWEEN '{' AND '|') AND id > ?"
        )
        values_by_tag = ((tag, values.decode_value(text)) for tag, text in self._conn.execute(sql, (after,)))
        return {tag: value for tag, value in values_by_tag if not isinstance(value, str | CutDecimal)}

    def offer_decimals(self) -> None:
        """Let SQL on this connection call `decimal_tag`."""
        self._conn.create_function("decimal_tag", 2, self._decimal_tag)

    def _decimal_tag(self, above: int | None, below: int) -> int | None:
        """SQL function `decimal_tag`: the tag of a quotient that is a decimal. `store_made` stores new symbols."""
        if above is None:
            return None
        if above % below == 0:
            return 2 * (above // below) + 1
        # Its exact digits are no more than those of the numerator and the binary digits of the denominator.
        quotient = Context(prec=20 + below.bit_length()).divide(Decimal(above), Decimal(below))
        text = values.encode_value(canonical(quotient))
        found = self._conn.execute("SELECT id FROM symbols WHERE symbol = ?", (text,)).fetchone()
        if found is not None:
            return int(found[0])
        if text not in self._made:
            self._made[text] = self.last_tag + 2 * (len(self._made) + 1)
        return self._made[text]

    def store_made(self) -> dict[int, int | Decimal]:
        """Store the symbols that `decimal_tag` made in a statement which has ended; returns them by tag."""
        made, self._made = self._made, {}
        self._conn.executemany("INSERT INTO symbols (symbol, id) VALUES (?, ?)", made.items())
        numbers = ((tag, values.decode_value(text)) for text, tag in made.items())
        return {tag: value for tag, value in numbers if not isinstance(value, str)}

    def _symbols(self, tags: Iterable[int]) -> sqlite3.Cursor:
        """Symbols by even tag."""
        # Sorted, because neighbours are on one page.
        ids = json.dumps(sorted(tag for tag in tags if not tag & 1))
        return self._conn.execute("SELECT id, symbol FROM symbols WHERE id IN (SELECT value FROM json_each(?))", (ids,))
