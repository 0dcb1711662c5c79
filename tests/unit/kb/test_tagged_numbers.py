"""Constants as tagged integers: which numbers are their own tags, how far SQL calculates exactly, and what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal

import pytest

from hapax.grammar.terms import Value
from hapax.kb.symbols import EXACT, NumberExtent, Symbols, canonical, exact_extent, extent_of

LARGEST = (1 << 60) - 1
"""The largest whole number that is its own tag."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as opened:
        opened.execute("CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE)")
        yield opened
    opened.close()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2", "2"),
        (Decimal("2.00"), 2),
        (Decimal("-0.0"), 0),
        (Decimal("20.50"), Decimal("20.5")),
        (Decimal("-0.10"), Decimal("-0.1")),
        (Decimal("1E+3"), 1000),
    ],
)
def test_equal_constants_are_written_alike(value: Value, expected: Value) -> None:
    """Whole decimals are integers, others lose their trailing zeros, and texts stay texts."""
    assert repr(canonical(value)) == repr(expected)


def test_the_extent_of_tagged_numbers() -> None:
    """The largest absolute value among whole numbers of up to 60 bits; decimals and larger numbers are inexact."""
    assert extent_of("9", 2, -3) == NumberExtent(3, False)
    assert extent_of() == extent_of("9") == NumberExtent()
    assert extent_of(LARGEST) == extent_of(-LARGEST) == NumberExtent(LARGEST, False)
    assert extent_of(LARGEST + 1, 5) == extent_of(-LARGEST - 1, 5) == NumberExtent(5, True)
    assert extent_of(5, Decimal("0.5")) == NumberExtent(5, True)
    assert extent_of(Decimal("7.0")) == NumberExtent(7, False)


def test_numbers_are_exact_while_all_their_digits_fit() -> None:
    """The largest number, times ten to the power of the most places, has to be below two to the power of 62."""
    assert exact_extent(["x", 2, Decimal("-3.25")]) == NumberExtent(4, False, 2)
    assert exact_extent([]) == NumberExtent()
    assert exact_extent([LARGEST]) == NumberExtent(LARGEST, False, 0)
    assert exact_extent([1, -LARGEST - 1]) == NumberExtent(1, True, 0)
    within, beyond = EXACT // 10, EXACT // 10 + 1
    assert exact_extent([Decimal("0.1"), within]) == NumberExtent(within, False, 1)
    assert exact_extent([Decimal("0.1"), beyond]) == NumberExtent(beyond, True, 1)
    assert exact_extent([Decimal("1E-17")]) == NumberExtent(1, False, 17)
    assert exact_extent([5, Decimal("1E-18")]) == NumberExtent(5, True, 0)


def test_tags_of_numbers_are_odd_and_those_of_symbols_even(connection: sqlite3.Connection) -> None:
    """A whole number n has the tag 2n + 1; others have rows, in the order of their symbols, and equal ones share one."""
    held = Symbols(connection)

    assert held.tags([0, -1, LARGEST, Decimal("3.0")]) == [1, -1, 2 * LARGEST + 1, 7]
    assert held.last_tag == 0
    assert held.tags(["b", "a", Decimal("0.50"), Decimal("0.5")]) == [4, 2, 6, 6]
    assert held.tag(LARGEST + 1) == 8
    assert held.last_tag == 8
    # Another process reads the rows, and goes on behind them.
    other = Symbols(connection)
    assert other.tags(["c", "a"]) == [10, 2]
    assert other.values([1, 2, 6, 8, 10, -7, 9]) == {
        1: 0, 2: "a", 6: Decimal("0.5"), 8: LARGEST + 1, 10: "c", -7: -4, 9: 4,
    }  # fmt: skip
    assert dict(other.encoded([9, 2, 10])) == {9: "4", 2: '"a"', 10: '"c"'}


def test_sql_makes_tags_of_quotients(connection: sqlite3.Connection) -> None:
    """A whole quotient is its own tag; a decimal gets the tag it has, or a new one, which is stored afterwards."""
    held = Symbols(connection)
    half = held.tag(Decimal("0.5"))
    held.offer_decimals()

    def tag(above: int | None, below: int) -> object:
        return connection.execute("SELECT decimal_tag(?, ?)", (above, below)).fetchone()[0]

    assert (tag(None, 1), tag(6, 2), tag(-6, 2), tag(1, 2)) == (None, 7, -5, half)
    first, second = tag(1, 4), tag(3, 4)
    assert (first, second, tag(2, 8)) == (half + 2, half + 4, half + 2)
    assert held.store_made() == {first: Decimal("0.25"), second: Decimal("0.75")}
    assert held.store_made() == {}
    assert Symbols(connection).tags([Decimal("0.25"), Decimal("0.75")]) == [first, second]
    assert tag(1, 8) == half + 6
    # This quotient has sixty digits.
    long = tag(LARGEST, 1 << 60)
    assert held.store_made() == {half + 6: Decimal("0.125"), long: Decimal(f"0.{LARGEST * 5**60:060}")}
