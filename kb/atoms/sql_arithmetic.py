"""Exact arithmetic on tagged constants as SQL functions: sums of any size, decimals, thirds, and no rounding.

A tag stands for a constant (`kb/atoms/symbols.py`): whole numbers below 2^60 are odd tags, everything else is looked
up. Where both sides are such whole numbers SQLite calculates itself; every other case calls a function of this module.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.terms import number_of
from hapax.grammar.values.functions import FUNCTIONS, Exact, Number, compared, sort_key
from hapax.grammar.values.moments import Moment, NoValue
from hapax.kb.atoms.symbols import KNOWN_TAGS, TAGGED_BITS, Symbols
from hapax.kb.exchange.values import LONGEST_TEXT, MAX_INTEGER_BITS

_MOST_ARGUMENTS = 100
"""Arguments of a function of SQLite, of which it allows 127."""

_TAGS_END = 1 << (TAGGED_BITS + 1)
"""Twice a whole number that is its own tag lies between this and its negative."""

_SQL_COMPARISONS = {"<": "<", "=<": "<=", ">": ">", ">=": ">=", "=": "=", "\\=": "<>"}


class NumberTooLarge(HapaxError):  # noqa: N818  named after the situation, as all our errors are
    """A calculation whose result has more digits than a knowledge base stores."""


@dataclass(frozen=True, slots=True)
class Cell:
    """SQL of a tag."""

    sql: str


@dataclass(frozen=True, slots=True, eq=False)
class Calculated:
    """A comparison, an operation or a function of `grammar/values/functions.py`.

    An operand that is used twice is the same object, and is calculated once.
    """

    operator: str
    operands: tuple[Operand, ...]


Operand: TypeAlias = Cell | Number | str | Calculated
"""A tag in SQL, a number or text that a rule states, or a calculation."""

_Step: TypeAlias = tuple[str, tuple[int, ...]]
"""An operator and the places of its operands among the inputs and the results so far."""


@dataclass
class _Program:
    """A calculation as steps over the tags of its cells. A constant of the rule is an input, too."""

    cells: list[str] = field(default_factory=list)
    constants: list[Number | str] = field(default_factory=list)
    steps: list[_Step] = field(default_factory=list)

    @classmethod
    def of(cls, operand: Operand) -> _Program:
        """The program of a calculation."""
        program = cls()
        order = _operands_first(operand)
        program.cells = list(dict.fromkeys(item.sql for item in order if isinstance(item, Cell)))
        program.constants = list(dict.fromkeys(item for item in order if isinstance(item, int | Fraction | str)))
        width = len(program.cells) + len(program.constants)
        places: dict[int, int] = {}
        for item in order:
            if isinstance(item, Calculated):
                places[id(item)] = width + len(program.steps)
                program.steps.append((item.operator, tuple(program._place(part, places) for part in item.operands)))
        return program

    def _place(self, operand: Operand, places: dict[int, int]) -> int:
        if isinstance(operand, Cell):
            return self.cells.index(operand.sql)
        if isinstance(operand, Calculated):
            return places[id(operand)]
        return len(self.cells) + self.constants.index(operand)


def _operands_first(operand: Operand) -> list[Operand]:
    """A calculation's parts, each once, after its own parts. Calculations may be nested as deeply as anyone likes."""
    order: list[Operand] = []
    seen: set[int] = set()
    waiting: list[tuple[Operand, bool]] = [(operand, False)]
    while waiting:
        item, has_parts = waiting.pop()
        if isinstance(item, Calculated) and not has_parts and id(item) not in seen:
            seen.add(id(item))
            waiting += [(item, True), *((part, False) for part in reversed(item.operands))]
        elif has_parts or not isinstance(item, Calculated):
            order.append(item)
    return order


class ExactArithmetic:
    """The SQL functions of one connection."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._programs: dict[tuple[object, ...], int] = {}
        self._by_number: list[tuple[list[Number | str], list[_Step]]] = []
        self.has_failed = False
        """True once a calculation had no value, such as a division by zero."""
        connection = symbols.connection
        for name, arguments, function in (
            ("calculated", -1, self._calculated),
            ("compared", -1, self._compared),
            ("failure", -1, self._failure),
            ("is_number", 1, self._is_number),
        ):
            connection.create_function(name, arguments, function, deterministic=True)
        connection.create_aggregate("sum_of_tags", 1, self._aggregate(sum))
        connection.create_aggregate("avg_of_tags", 1, self._aggregate(_average))
        connection.create_aggregate("min_of_tags", 1, self._extreme(min))
        connection.create_aggregate("max_of_tags", 1, self._extreme(max))

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise the exception of a function inside the block: SQLite only says that one failed.

        That of a signal's handler, too: Python runs handlers when a function begins, where nothing can catch them.
        """
        own, found, hook = threading.get_ident(), list[BaseException](), sys.unraisablehook

        def keep(fault: sys.UnraisableHookArgs) -> None:
            if threading.get_ident() == own and fault.exc_value is not None:
                found.append(fault.exc_value)
            else:
                hook(fault)

        sqlite3.enable_callback_tracebacks(True)
        sys.unraisablehook = keep
        try:
            yield
        except sqlite3.OperationalError:
            if found:
                raise found[0] from None
            raise
        finally:
            sys.unraisablehook = hook
            sqlite3.enable_callback_tracebacks(False)

    # -- SQL

    def value(self, operand: Operand) -> str:
        """SQL of the tag of a value; NULL where a calculation has none, as in a division by zero."""
        if isinstance(operand, Cell):
            return operand.sql
        if not isinstance(operand, Calculated):
            return str(self._tag(operand))
        exact = self._call("calculated", operand)
        whole = _whole_result(operand)
        return exact if whole is None else f"CASE WHEN {whole[0]} THEN {whole[1]} ELSE {exact} END"

    def is_number(self, cell: str) -> str:
        """SQL of the condition that a tag is a number's."""
        return f"CASE WHEN {cell} & 1 = 1 THEN 1 ELSE is_number({cell}) END"

    def fails(self, operand: Calculated) -> str:
        """SQL of the reason why a comparison or calculation has no value; NULL if it has one."""
        return self._call("failure", operand)

    def comparison(self, sign: str, left: Operand, right: Operand) -> str:
        """SQL of a comparison of values, which is false where they have no common order."""
        exact = self._call("compared", Calculated(sign, (left, right)))
        if isinstance(left, Calculated) or isinstance(right, Calculated):
            return exact
        sides = [_plain(side) for side in (left, right)]
        if None in sides:
            return exact
        # The tags of whole numbers are ordered as the numbers are.
        whole = " & ".join(side.sql for side in (left, right) if isinstance(side, Cell))
        tested = f"{sides[0]} {_SQL_COMPARISONS[sign]} {sides[1]}"
        return f"CASE WHEN {whole} & 1 = 1 THEN {tested} ELSE {exact} END" if whole else exact

    def _call(self, function: str, operand: Calculated) -> str:
        program = _Program.of(operand)
        key = (function, len(program.cells), tuple(program.constants), tuple(program.steps))
        if key not in self._programs:
            self._programs[key] = len(self._by_number)
            self._by_number.append((program.constants, program.steps))
        arguments = program.cells
        if len(arguments) >= _MOST_ARGUMENTS:
            arguments = [_joined(arguments)]
        return f"{function}({', '.join([str(self._programs[key]), *arguments])})"

    # -- functions

    def _calculated(self, *call: int | str | None) -> int | None:
        return self._outcome(call, self._tag)

    def _compared(self, *call: int | str | None) -> int:
        return self._outcome(call, bool) or 0

    def _outcome(self, call: tuple[Any, ...], made: Callable[[Exact], int]) -> int | None:
        """The value made of a program's result; None if it has none. Columns repeat their values: it is remembered."""
        known = self._symbols.calculations
        try:
            outcome = known[call]
        except KeyError:
            if len(known) >= KNOWN_TAGS:
                known.clear()
            outcome = None
            with suppress(NoValue):
                outcome = made(self._result(call[0], call[1:]))
            known[call] = outcome
        if outcome is None:
            self.has_failed = True
        return outcome

    def _failure(self, number: int, *tags: int | str | None) -> str | None:
        try:
            result = self._result(number, tags)
            _ = str(result) if isinstance(result, Moment) else ""
        except NoValue as reason:
            return str(reason)
        return None

    def _result(self, number: int, tags: Sequence[int | str | None]) -> Exact:
        constants, steps = self._by_number[number]
        if len(tags) == 1 and isinstance(tags[0], str):
            tags = [int(tag) for tag in tags[0].split()]
        values: list[Exact] = []
        for tag in tags:
            value = tag >> 1 if isinstance(tag, int) and tag & 1 else self._value(tag)
            if value is None:
                raise NoValue("an operand has no value")
            values.append(value)
        values += constants
        for name, places in steps:
            operands = [values[place] for place in places]
            values.append(compared(name, *operands) if name in _SQL_COMPARISONS else FUNCTIONS[name].call(*operands))
        return values[-1]

    def _is_number(self, tag: int | None) -> int:
        value = self._value(tag)
        return int(value is not None and not isinstance(value, str))

    def _value(self, tag: Any) -> str | Number | None:
        return None if tag is None else self._symbols.exact(tag)

    def _tag(self, value: Exact) -> int:
        if isinstance(value, str | Moment):
            return self._symbols.calculated_tag(self._storable(str(value)))
        return self._number_tag(value)

    def _storable(self, text: str) -> str:
        if len(text) > LONGEST_TEXT:
            raise NoValue(f"a text has more than {LONGEST_TEXT} characters")
        return text

    def _number_tag(self, number: Number) -> int:
        if isinstance(number, int) and abs(number) < 1 << TAGGED_BITS:
            return 2 * number + 1
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_INTEGER_BITS:
            raise NumberTooLarge(
                f"A calculation gives a number of more than {MAX_INTEGER_BITS} bits.",
                Remedy(
                    "If it counts without end, give it a last value: {} names such rules.", Operation("check_rules")
                ),
            )
        return self._symbols.calculated_tag(number_of(Fraction(number)))

    def _aggregate(self, result: Callable[[list[Any]], Number]) -> type:
        arithmetic = self

        class Aggregate:
            """An aggregate of SQLite over the tags of a group; texts do not count, and without numbers it is NULL."""

            def __init__(self) -> None:
                self.tags: list[int | None] = []
                self.step = self.tags.append

            def finalize(self) -> int | None:
                values: list[Any] = list(map(arithmetic._value, self.tags))
                numbers = [value for value in values if value is not None and not isinstance(value, str)]
                return arithmetic._tag(result(numbers)) if numbers else None

        return Aggregate

    def _extreme(self, choice: Callable[..., Any]) -> type:
        arithmetic = self

        class Extreme:
            """The smallest or largest tag of a group: numbers come before texts, and dates are ordered as such."""

            def __init__(self) -> None:
                self.tags: set[int | None] = set()
                self.step = self.tags.add

            def finalize(self) -> int | None:
                values = {tag: arithmetic._symbols.exact(tag) for tag in self.tags if tag is not None}
                if not values:
                    return None
                order = sort_key(values.values())
                return int(choice(values, key=lambda tag: (order(values[tag]), tag)))

        return Extreme


def _average(numbers: Sequence[Number]) -> Fraction:
    return Fraction(sum(numbers)) / len(numbers)


def _plain(operand: Operand) -> str | None:
    """SQL of the tag of a cell or of a whole number; None for another number or a calculation."""
    if isinstance(operand, Cell):
        return operand.sql
    if isinstance(operand, int) and abs(operand) < 1 << TAGGED_BITS:
        return str(2 * operand + 1)
    return None


def _whole_result(operand: Calculated) -> tuple[str, str] | None:
    """SQL of a condition under which SQLite may calculate with whole numbers, and of the tag; None if it never may."""
    if operand.operator not in ("+", "-", "*"):
        return None
    first, second = map(_plain, operand.operands)
    if first is None or second is None:
        return None
    odd = " & ".join(side.sql for side in operand.operands if isinstance(side, Cell))
    if not odd:
        return None
    # The tag of n is 2n + 1.
    if operand.operator == "*":
        small = f"abs({first}) < {1 << 30} AND abs({second}) < {1 << 30}"
        return f"{odd} & 1 = 1 AND {small}", f"2 * ({first} >> 1) * ({second} >> 1) + 1"
    tag = f"{first} + {second} - 1" if operand.operator == "+" else f"{first} - {second} + 1"
    return f"{odd} & 1 = 1 AND abs({tag} - 1) < {_TAGS_END}", tag


def _joined(cells: Sequence[str]) -> str:
    """SQL of the tags in one text with a blank between two; halves, because SQLite limits the depth of expressions."""
    if len(cells) == 1:
        return f"({cells[0]})"
    half = len(cells) // 2
    return f"({_joined(cells[:half])} || ' ' || {_joined(cells[half:])})"
