"""Constants as tagged integers: a whole number n with |n| < 2^60 is 2n + 1, others are even ids in table `symbols`.

Constants have equal tags if they are equal to Prolog: 2 and 2.0 are one constant, 2 and "2" are two. The tag of an
empty cell is 0.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice
from typing import Any, TypeGuard

from hapax.grammar.terms import MAXIMUM_POWER, MISSING, CutDecimal, Value
from hapax.grammar.writing.words import plain_letters
from hapax.kb.exchange import values

TAGGED_BITS = 60
"""Whole numbers below two to this power are their own tags; the sum of two tags is far below SQLite's 64 bits."""

MISSING_TAG = 0

# Constants with cached tags; so many take about 5 MB.
KNOWN_TAGS = 50_000

# Words and letters of each by which texts are found.
_MOST_WORDS = _MOST_LETTERS = 50

# Rows of one INSERT, which is twice as fast as one by one.
_ROWS = 500


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


def is_plain(column: str) -> str:
    """SQL for a text of ASCII alone, whose characters are as many as its bytes."""
    return f"length({column}) = length(CAST({column} AS BLOB))"


def _folded(text: str) -> str:
    return plain_letters(text).casefold()


def _is_whole(value: Value) -> TypeGuard[int]:
    """True for a canonical value that is a whole number small enough to be its own tag."""
    return isinstance(value, int) and -(1 << TAGGED_BITS) < value < 1 << TAGGED_BITS


def _are_whole(values: Sequence[Value]) -> TypeGuard[Sequence[int]]:
    """True for integers alone that are small enough to be their own tags."""
    return set(map(type, values)) == {int} and all(map(_is_whole, (min(values), max(values))))


class Symbols:
    """The constants of an open knowledge base and their tags."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection
        self._tags: dict[Value, int] = {}
        self._made: dict[str, int] = {}
        self._exact: dict[int, str | int | Fraction] = {}
        self._borrowed: dict[str, int] | None = None
        self._are_new = False
        """The last constants that were learnt were all new."""
        self.calculations: dict[tuple[Any, ...], int | None] = {}
        """What calculations over tags gave, as `kb/atoms/sql_arithmetic.py` notes it; a tag among it may be forgotten,
        too."""

    @property
    def connection(self) -> sqlite3.Connection:
        return self._conn

    def forget(self) -> None:
        """Forget what was learnt: a transaction was undone, so that rows may be gone."""
        for known in (self._tags, self._made, self._exact, self.calculations):
            known.clear()

    @contextmanager
    def borrowing(self) -> Iterator[None]:
        """Give new constants negative tags inside the block, which nobody stores: to read without writing."""
        if self._borrowed is not None:
            yield
            return
        self._borrowed = {}
        try:
            yield
        finally:
            self._borrowed = None
            self.forget()

    def tag(self, value: Value) -> int:
        """Tag of a constant; a new constant gets a row."""
        return self.tags([value])[0]

    def tags(self, constants: Sequence[Value]) -> list[int]:
        """Tags of these constants, in their order."""
        # Columns of whole numbers, as a bulk load has them, need no look-up.
        if _are_whole(constants):
            return [2 * number + 1 for number in constants]
        try:
            return list(map(self._tags.__getitem__, constants))
        except KeyError:
            self._learn(constants)
        return list(map(self._tags.__getitem__, constants))

    def known(self, constants: Sequence[Value]) -> list[int | None]:
        """Tags of these constants, None for one that occurs nowhere."""
        return list(map(self._known, constants))

    def _known(self, constant: Value) -> int | None:
        value = canonical(constant)
        if _is_whole(value):
            return 2 * value + 1
        if value is MISSING:
            return MISSING_TAG
        if constant not in self._tags:
            if not isinstance(value, CutDecimal) and values.refusal(value):
                return None
            text = values.encode_value(value)
            found = self._conn.execute("SELECT id FROM symbols WHERE symbol = ?", (text,)).fetchone()
            if found is None:
                return None
            self._tags[constant] = found[0]
        return self._tags[constant]

    def _learn(self, constants: Iterable[Value]) -> None:
        if len(self._tags) > KNOWN_TAGS:
            # Before learning, so that all of these constants are cached afterwards.
            self._tags.clear()
        # In the order of the constants, so that ids do not depend on the order of a set.
        new = dict.fromkeys([constant for constant in constants if constant not in self._tags])
        # A text, as most are, is canonical.
        texts = [constant for constant in new if type(constant) is str]
        symbols: dict[Value, str] = dict(zip(texts, values.encode_texts(texts), strict=True))
        for constant in [constant for constant in new if type(constant) is not str]:
            value = canonical(constant)
            if _is_whole(value):
                self._tags[constant] = 2 * value + 1
            elif value is MISSING:
                self._tags[constant] = MISSING_TAG
                row = (MISSING_TAG, values.encode_value(MISSING))
                is_stored = self._conn.execute("SELECT 1 FROM symbols WHERE id = ? AND symbol = ?", row).fetchone()
                if self._borrowed is None and not is_stored:
                    self._conn.execute("INSERT INTO symbols (id, symbol) VALUES (?, ?)", row)
            else:
                symbols[constant] = values.encode_value(value)
        ids = self._ids(list(dict.fromkeys(symbols.values())))
        self._tags.update(zip(symbols, map(ids.__getitem__, symbols.values()), strict=True))

    def _ids(self, texts: Sequence[str]) -> dict[str, int]:
        """Ids of symbols, new ones included."""
        last = self.last_tag
        # In a bulk load the next names are new where the last ones were.
        if self._are_new and self._borrowed is None and self._insert(texts, last):
            return dict(zip(texts, range(last + 2, last + 2 * len(texts) + 2, 2), strict=True))
        sql = "SELECT symbol, id FROM symbols WHERE symbol IN (SELECT value FROM json_each(?))"
        found: dict[str, int] = dict(self._conn.execute(sql, (json.dumps(texts, ensure_ascii=False),)))
        new = [text for text in texts if text not in found]
        if self._borrowed is not None:
            for text in new:
                self._borrowed.setdefault(text, -2 * (len(self._borrowed) + 1))
            return found | {text: self._borrowed[text] for text in new}
        self._are_new = not found
        last = self.last_tag
        self._insert(new, last)
        found.update(zip(new, range(last + 2, last + 2 * len(new) + 2, 2), strict=True))
        return found

    def _insert(self, texts: Sequence[str], last: int) -> bool:
        """Insert symbols after the last one; False if some were there, and have kept their ids."""
        inserted = 0
        for begin in range(0, len(texts), _ROWS):
            part = texts[begin : begin + _ROWS]
            # Ids go up by two: odd integers are the tags of whole numbers.
            ids = range(last + 2 * begin + 2, last + 2 * (begin + len(part)) + 2, 2)
            marks = ", ".join(["(?, ?)"] * len(part))
            sql = f"INSERT INTO symbols (symbol, id) VALUES {marks} ON CONFLICT DO NOTHING"  # noqa: S608  ours
            inserted += self._conn.execute(sql, list(chain.from_iterable(zip(part, ids, strict=True)))).rowcount
        return inserted == len(texts)

    def values(self, tags: Iterable[int]) -> dict[int, Value]:
        """Constants by tag."""
        wanted = set(tags)
        found: dict[int, Value] = {tag: tag >> 1 for tag in wanted if tag & 1}
        if MISSING_TAG in wanted:
            found[MISSING_TAG] = MISSING
        for tag, text in self._symbols(wanted - {MISSING_TAG}):
            found[tag] = values.decode_value(text)
        return found

    def encoded(self, tags: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Tags and constants as `kb/exchange/values.py` encodes them."""
        wanted = set(tags)
        yield from ((tag, str(tag >> 1)) for tag in wanted if tag & 1)
        yield from self._symbols(wanted)

    def texts_with(self, words: str, most: int) -> list[str]:
        """Texts with all these words or words that begin so, case and accents left aside; at most so many, short first.

        It reads all symbols, which takes a quarter of a second for a million.
        """
        parts = [part[:_MOST_LETTERS] for part in re.findall(r"[^\W_]+", _folded(words))]
        wanted = list(islice(dict.fromkeys(parts), _MOST_WORDS))
        if not wanted:
            return []
        self._conn.create_function("folded", 1, _folded, deterministic=True)
        plain = is_plain("symbol")
        folded = f"CASE WHEN {plain} THEN lower(symbol) ELSE folded(symbol) END"
        # LIKE is fast, and leaves few texts for GLOB, which sees that a word begins there. Texts begin with a quote.
        sql = (
            "SELECT symbol FROM symbols WHERE symbol GLOB '\"*' AND "  # noqa: S608  ours
            + " AND ".join([f"(symbol LIKE ? OR NOT {plain}) AND {folded} GLOB ?"] * len(wanted))
            # Another program may have spoiled one.
            + " AND json_valid(symbol) ORDER BY length(symbol), symbol LIMIT ?"
        )
        patterns = chain.from_iterable((f"%{word}%", f"*[^a-z0-9]{word}*") for word in wanted)
        return [str(values.decode_value(symbol)) for (symbol,) in self._conn.execute(sql, (*patterns, most))]

    @property
    def last_tag(self) -> int:
        """The tag of the newest symbol; 0 without any."""
        (last,) = self._conn.execute("SELECT coalesce(max(id), 0) FROM symbols").fetchone()
        return int(last)

    def exact(self, tag: int) -> str | int | Fraction:
        """The constant of a tag, a number in the form in which Python calculates exactly."""
        if tag & 1:
            return tag >> 1
        found = self._exact.get(tag)
        if found is None:
            if len(self._exact) > KNOWN_TAGS:
                self._exact.clear()
            value = self.values([tag])[tag]
            found = self._exact[tag] = Fraction(value) if isinstance(value, Decimal) else value
        return found

    def calculated_tag(self, calculated: Value) -> int:
        """The tag of what a running statement calculates; `store_made` stores new ones when it has ended."""
        value = canonical(calculated)
        if _is_whole(value):
            return 2 * value + 1
        text = values.encode_value(value)
        made = self._made.get(text)
        if made is not None:
            return made
        found = self._conn.execute("SELECT id FROM symbols WHERE symbol = ?", (text,)).fetchone()
        if found is not None:
            return int(found[0])
        if self._borrowed is not None:
            return self._borrowed.setdefault(text, -2 * (len(self._borrowed) + 1))
        tag = self._made[text] = self.last_tag + 2 * (len(self._made) + 1)
        self._exact[tag] = value if isinstance(value, str) else Fraction(calculated)
        return tag

    def store_made(self) -> None:
        """Store the numbers that a statement which has ended calculated."""
        made, self._made = self._made, {}
        self._conn.executemany("INSERT INTO symbols (symbol, id) VALUES (?, ?)", made.items())

    def _symbols(self, tags: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Symbols by even tag, those that no table has yet included."""
        # Sorted, because neighbours are on one page.
        even = sorted(tag for tag in tags if not tag & 1)
        sql = "SELECT id, symbol FROM symbols WHERE id IN (SELECT value FROM json_each(?))"
        stored = dict(self._conn.execute(sql, (json.dumps(even),)))
        yield from stored.items()
        if missing := set(even).difference(stored):
            beside = chain(self._made.items(), (self._borrowed or {}).items())
            yield from ((tag, text) for text, tag in beside if tag in missing)
