"""Constants as tagged integers: which numbers are their own tags, how SQL calculates with them, and what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import pytest

from hapax.grammar.terms import Value
from hapax.kb.arithmetic import Calculated, Cell, ExactArithmetic
from hapax.kb.symbols import Symbols

LARGEST = (1 << 60) - 1
"""The largest whole number that is its own tag."""
NUMBERS: list[int | Decimal] = [0, 1, -3, LARGEST, -LARGEST, LARGEST + 1, 1 << 70, Decimal("0.1"), Decimal("-2.75")]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as opened:
        opened.execute("CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE)")
        yield opened
    opened.close()


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


def test_calculated_numbers_have_the_tags_of_equal_constants(connection: sqlite3.Connection) -> None:
    """A whole result is its own tag; another has the tag that it has, or a new one, which is stored afterwards."""
    held = Symbols(connection)
    half = held.tag(Decimal("0.5"))
    function = ExactArithmetic(held).value(Calculated("/", (Cell("?1"), Cell("?2"))))

    def tag(above: Value, below: Value) -> object:
        return connection.execute(f"SELECT {function}", (held.tag(above), held.tag(below))).fetchone()[0]

    assert (tag(6, 2), tag(-6, 2), tag(1, 2), tag(1, 0), tag("x", 2)) == (7, -5, half, None, None)
    quarter, third = tag(1, 4), tag(1, 3)
    assert tag(2, 8) == quarter
    held.store_made()
    other = Symbols(connection)
    assert other.tag(Decimal("0.25")) == quarter
    assert other.exact(int(str(third))) == Fraction(1, 3)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
@pytest.mark.parametrize("left", NUMBERS)
@pytest.mark.parametrize("right", NUMBERS)
def test_sql_calculates_exactly(connection: sqlite3.Connection, sign: str, left: Value, right: Value) -> None:
    """At the ends of machine words and beyond, and with decimals, results are those of fractions."""
    held = Symbols(connection)
    cells = [Cell(str(held.tag(value))) for value in (left, right)]
    (found,) = connection.execute(f"SELECT {ExactArithmetic(held).value(Calculated(sign, tuple(cells)))}").fetchone()
    one, other = Fraction(left), Fraction(right)
    results = {"+": one + other, "-": one - other, "*": one * other, "/": one / other if other else None}

    assert (None if found is None else held.exact(found)) == results[sign]


@pytest.mark.parametrize("left", [*NUMBERS, "x"])
@pytest.mark.parametrize("right", [*NUMBERS, "1"])
def test_sql_compares_exactly(connection: sqlite3.Connection, left: Value, right: Value) -> None:
    """Numbers are ordered as fractions are, texts by their characters, and a number and a text not at all."""
    held = Symbols(connection)
    arithmetic = ExactArithmetic(held)
    cells = [Cell(str(held.tag(value))) for value in (left, right)]
    signs = ["<", "=<", ">", ">=", "=", "\\="]
    (*found,) = connection.execute(f"SELECT {', '.join(arithmetic.comparison(s, *cells) for s in signs)}").fetchone()
    if isinstance(left, str) != isinstance(right, str):
        assert found == [0] * 6
    else:
        one, other = (side if isinstance(side, str) else Fraction(side) for side in (left, right))
        assert found == [one < other, one <= other, one > other, one >= other, one == other, one != other]


def test_known_symbols_are_looked_up_without_writing(connection: sqlite3.Connection) -> None:
    """A connection that only reads gets the tags of symbols that are there."""
    Symbols(connection).tags(["a", "b"])
    connection.execute("PRAGMA query_only = ON")

    assert Symbols(connection).tags(["b", "a"]) == [4, 2]
