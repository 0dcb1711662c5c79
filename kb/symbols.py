"""Constants as tagged integers: a whole number n below 2^60 in size is 2n + 1, others are even ids in `symbols`.

Equal constants have equal tags, as Prolog takes them: 2 and 2.0 are one, 2 and "2" are two.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

from grammar.prolog_text import MAXIMUM_POWER
from grammar.terms import Value
from kb import values

if TYPE_CHECKING:
    import sqlite3

TAGGED_BITS = 60
"""Whole numbers below two to this power are tagged; a sum of two of them is far from SQLite's 64 bits."""

_KNOWN_TAGS = 1_000_000
"""Constants whose tags are remembered while facts are read: some 100 MB."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The numbers in a relation: the largest tagged one by size, and whether there are others (decimals, huge ones)."""

    largest: int = 0
    inexact: bool = False

    def __or__(self, other: Extent) -> Extent:
        return Extent(max(self.largest, other.largest), self.inexact or other.inexact)


def canonical(value: Value) -> Value:
    """The value as Prolog gives it back: whole decimals as integers, others without zeros at their end.

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
    """Whether a canonical value is a whole number small enough to be its own tag."""
    return isinstance(value, int) and -(1 << TAGGED_BITS) < value < 1 << TAGGED_BITS


def extent_of(*constants: Value) -> Extent:
    """Of these constants; texts among them add nothing."""
    numbers = [one for one in map(canonical, constants) if not isinstance(one, str)]
    whole = [abs(one) for one in numbers if _is_whole(one)]
    return Extent(max(whole, default=0), len(whole) < len(numbers))


class Symbols:
    """The constants of an open knowledge base and their tags."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection
        self._tags: dict[Value, int] = {}

    def tag(self, value: Value) -> int:
        """The integer that stands for a constant; a new constant gets a row."""
        return self.tags([value])[0]

    def tags(self, constants: Sequence[Value]) -> list[int]:
        """The integers of these constants, one each. Most are known already where facts are read in bulk."""
        try:
            return list(map(self._tags.__getitem__, constants))
        except KeyError:
            self._learn(constants)
        return list(map(self._tags.__getitem__, constants))

    def _learn(self, constants: Iterable[Value]) -> None:
        if len(self._tags) > _KNOWN_TAGS:
            self._tags.clear()
        one_by_one = {value: canonical(value) for value in set(constants).difference(self._tags)}
        symbols = {value: values.encode_value(one) for value, one in one_by_one.items() if not _is_whole(one)}
        ids = self._ids(set(symbols.values()))
        for value, one in one_by_one.items():
            self._tags[value] = ids[symbols[value]] if value in symbols else 2 * int(one) + 1

    def _ids(self, texts: Collection[str]) -> dict[str, int]:
        """The ids of symbols, new ones included."""
        (last,) = self._conn.execute("SELECT coalesce(max(id), 0) FROM symbols").fetchone()
        found: dict[str, int] = {}
        if last:
            sql = "SELECT symbol, id FROM symbols WHERE symbol IN (SELECT value FROM json_each(?))"
            found.update(self._conn.execute(sql, (json.dumps(list(texts), ensure_ascii=False),)))
        new = sorted(set(texts).difference(found))
        found.update(zip(new, range(last + 2, last + 2 * len(new) + 2, 2), strict=True))
        self._conn.executemany("INSERT INTO symbols (symbol, id) VALUES (?, ?)", ((one, found[one]) for one in new))
        return found

    def values(self, tags: Iterable[int]) -> dict[int, Value]:
        """The constants behind tags."""
        found: dict[int, Value] = {}
        asked = []
        for tag in set(tags):
            if tag & 1:
                found[tag] = tag >> 1
            else:
                asked.append(tag)
        sql = "SELECT id, symbol FROM symbols WHERE id IN (SELECT value FROM json_each(?))"
        for tag, text in self._conn.execute(sql, (json.dumps(asked),)):
            found[tag] = values.decode_value(text)
        return found
