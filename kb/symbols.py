"""Constants as tagged integers: a whole number n with |n| < 2^60 is 2n + 1, others are even ids in table `symbols`.

Constants have equal tags if they are equal to Prolog: 2 and 2.0 are one constant, 2 and "2" are two.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

from hapax.grammar.prolog_text import MAXIMUM_POWER
from hapax.grammar.terms import Value
from hapax.kb import values

if TYPE_CHECKING:
    import sqlite3

TAGGED_BITS = 60
"""Whole numbers below two to this power are tagged; the sum of two tags is far below SQLite's 64 bits."""

# Constants with cached tags; a million takes about 100 MB.
_KNOWN_TAGS = 1_000_000


@dataclass(frozen=True, slots=True)
class NumberExtent:
    """Numbers in a relation: the largest tagged absolute value, and whether it has others (decimals, huge ones)."""

    largest: int = 0
    inexact: bool = False

    def __or__(self, other: NumberExtent) -> NumberExtent:
        return NumberExtent(max(self.largest, other.largest), self.inexact or other.inexact)


def canonical(value: Value) -> Value:
    """The value as Prolog returns it: whole decimals become integers, others lose their trailing zeros.

    A number too large or too small for Prolog stays a decimal.
    """
    if not isinstance(value, Decimal):
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


class Symbols:
    """The constants of an open knowledge base and their tags."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection
        self._tags: dict[Value, int] = {}

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
        (last,) = self._conn.execute("SELECT coalesce(max(id), 0) FROM symbols").fetchone()
        found: dict[str, int] = {}
        if last:
            sql = "SELECT symbol, id FROM symbols WHERE symbol IN (SELECT value FROM json_each(?))"
            found.update(self._conn.execute(sql, (json.dumps(list(texts), ensure_ascii=False),)))
        # Sorted, so that ids do not depend on the order of a set.
        new = sorted(set(texts).difference(found))
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

    def _symbols(self, tags: Iterable[int]) -> sqlite3.Cursor:
        """Symbols by even tag."""
        # Sorted, because neighbours are on one page.
        ids = json.dumps(sorted(tag for tag in tags if not tag & 1))
        return self._conn.execute("SELECT id, symbol FROM symbols WHERE id IN (SELECT value FROM json_each(?))", (ids,))
