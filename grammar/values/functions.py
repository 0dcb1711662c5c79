"""The operations and functions of expressions, over exact values, and comparisons over bound variables.

Every evaluator of rules calls these. A search tests thousands of small comparisons: to calculate them here saves a goal
of Prolog for each, which would have the same results.

An operation is a function whose name is its sign. A test, such as `contains(C, "x")`, is a function whose value is
the text `true` or `false`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import ceil, floor, prod, trunc
from typing import Any, TypeAlias

from hapax.grammar.terms import ANY, IS_MISSING, Arithmetic, Comparison, Expression, Value, Variable, number_of
from hapax.grammar.values.moments import DATE, DATE_TIME, DURATION, TIME, UNITS, Moment, NoValue, moment_of

Number: TypeAlias = int | Fraction
Exact: TypeAlias = Number | str | Moment
"""A value inside a calculation: its end has a moment's text in the place of the moment."""

LARGEST_EXPONENT = 1000
"""Largest exponent of `**`."""

MOST_BITS = 1_000_000
"""Bits of a number within a calculation. A larger one would keep the processor in one operation for too long."""

LONGEST_IN_TEXT = 10_000
"""Bits of a number that is written; Python writes no more than 4,300 digits."""

LONGEST_PATTERN = 1_000
"""Characters of a regular expression, and its counted repetitions of a part."""

_REPEATED = re.compile(r"\{(\d{0,300})(?:,(\d{0,300}))?\}")

_NUMERAL = re.compile(r"[+-]?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,2})?", re.ASCII)

SECONDS_PER_MATCH = 1.0
"""Time that a regular expression may take on one text."""


@dataclass(frozen=True, slots=True)
class ExactFunction:
    """A function of `least` to `most` values. Its `call` raises NoValue where it has no value.

    `result`: the type of its value; empty: that of its operands.
    """

    call: Callable[..., Exact]
    least: int
    most: int
    result: str = ""

    @property
    def wanted(self) -> str:
        """The number of values that it takes, in words."""
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


# -- values


def _number(value: Exact) -> Number:
    if isinstance(value, int | Fraction):
        return value
    raise NoValue(f'"{value}" is not a number')


def _whole(value: Exact) -> int:
    number = _number(value)
    if number.denominator != 1:
        raise NoValue(f"{_text(value)} is not a whole number")
    return number.numerator


def _moment(value: Exact) -> Moment:
    moment = moment_of(value) if isinstance(value, str) else value
    if isinstance(moment, Moment):
        return moment
    raise NoValue(f"{_quoted(value)} is not a date, a time or a duration")


def _text(value: Exact) -> str:
    if isinstance(value, int | Fraction) and _bits(value) > LONGEST_IN_TEXT:
        raise NoValue("a number has too many digits")
    if isinstance(value, Fraction) and value.denominator > 1:
        return f"{number_of(value):f}"
    return str(value)


def _are_numbers(*values: Exact) -> bool:
    return all(isinstance(value, int | Fraction) for value in values)


# -- operations


def _sum(left: Any, right: Any) -> Exact:
    if _are_numbers(left, right):
        return left + right  # type: ignore[no-any-return]
    first, second = _operands(left, right)
    if first.kind == DURATION:
        first, second = second, first
    if second.kind != DURATION:
        raise NoValue(f"{first} and {second} cannot be added")
    return first.later(second.seconds)


def _difference(left: Any, right: Any) -> Exact:
    if _are_numbers(left, right):
        return left - right  # type: ignore[no-any-return]
    first, second = _operands(left, right)
    if second.kind == DURATION:
        return first.later(-second.seconds)
    _refuse_unlike(first, second)
    return Moment(DURATION, first.seconds - second.seconds)


def _operands(left: Exact, right: Exact) -> tuple[Moment, Moment]:
    """Two moments. Raises NoValue for another value."""
    if _are_numbers(left) or _are_numbers(right):
        _ = _number(left), _number(right)  # of which one raises NoValue
    return _moment(left), _moment(right)


def _refuse_unlike(first: Moment, second: Moment) -> None:
    if first.kind != second.kind and not (first.is_day and second.is_day):
        raise NoValue(f"{first} and {second} cannot be compared")


def _product(left: Any, right: Any) -> Exact:
    if not _are_numbers(left, right) and _are_numbers(left):
        left, right = right, left
    if _are_numbers(left, right):
        _refuse_large(_bits(left) + _bits(right))
        return left * right  # type: ignore[no-any-return]
    return Moment(DURATION, _duration(left) * _number(right))


def _quotient(left: Exact, right: Exact) -> Exact:
    divisor = _number(right) if _are_numbers(left) or _are_numbers(right) else _duration(right)
    if not divisor:
        raise NoValue("division by zero")
    if _are_numbers(left):
        return Fraction(_number(left)) / divisor
    quotient = Fraction(_duration(left)) / divisor
    return Moment(DURATION, quotient) if _are_numbers(right) else quotient


def _duration(value: Exact) -> Number:
    moment = _moment(value) if isinstance(value, str) else value
    if isinstance(moment, Moment) and moment.kind == DURATION:
        return moment.seconds
    raise NoValue(f"{value} is not a duration" if isinstance(moment, Moment) else f"{_text(value)} is a number")


def _whole_quotient(left: Exact, right: Exact) -> Exact:
    """The quotient without its decimals, as Prolog has it: -7 // 2 is -3."""
    return trunc(_number(_quotient(_number(left), _number(right))))


def _remainder(left: Exact, right: Exact) -> Exact:
    """The remainder with the sign of the divisor, as Prolog has it: -7 mod 2 is 1."""
    divisor = _number(right)
    if not divisor:
        raise NoValue("division by zero")
    return _number(left) % divisor


def _power(base: Exact, exponent: Exact) -> Exact:
    number, power = _number(base), _whole(exponent)
    if abs(power) > LARGEST_EXPONENT:
        raise NoValue(f"the exponent {_text(power)} is larger than {LARGEST_EXPONENT}")
    if not number and power < 0:
        raise NoValue("division by zero")
    _refuse_large(_bits(number) * abs(power))
    return Fraction(number) ** power if power < 0 else number**power


def _bits(number: Number) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _refuse_large(bits: int) -> None:
    if bits > MOST_BITS:
        raise NoValue("a number has too many digits")


def _size(value: Exact) -> Exact:
    number = _number(value)
    return max(number, -number)


def _rounded(value: Exact, places: Exact = 0) -> Exact:
    """The nearest number with so many decimal places; of two, the one farther from zero."""
    if not 0 <= _whole(places) <= LARGEST_EXPONENT:
        raise NoValue(f"{_text(places)} is not a number of decimal places")
    scale = 10 ** _whole(places)
    number = _number(value) * scale
    half = Fraction(1, 2)
    nearest = floor(number + half) if number >= 0 else ceil(number - half)
    return Fraction(nearest, scale)


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[..., Exact]:
    def extreme(*values: Exact) -> Exact:
        return reduce(lambda best, value: value if is_better(*comparable(value, best)) else best, values)

    return extreme


# -- comparisons

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "=<": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "\\=": operator.ne,
}  # fmt: skip


def comparable(left: Exact, right: Exact) -> tuple[Any, Any]:
    """Two values in the forms that Python orders: numbers, texts or seconds. Raises NoValue for two kinds."""
    if _are_numbers(left, right):
        return left, right
    if _are_numbers(left) or _are_numbers(right):
        kinds = "a number and a text" if _are_numbers(left) else "a text and a number"
        raise NoValue(f"{_quoted(left)} and {_quoted(right)} are {kinds}")
    first, second = (moment_of(side) if isinstance(side, str) else side for side in (left, right))
    if first is None and second is None:
        return left, right
    if not isinstance(first, Moment) or not isinstance(second, Moment):
        raise NoValue(f"{_quoted(left if first is None else right)} is not a date, a time or a duration")
    _refuse_unlike(first, second)
    return first.seconds, second.seconds


def _quoted(value: Exact) -> str:
    return f'"{value}"' if isinstance(value, str) else _text(value)


def compared(sign: str, left: Exact, right: Exact) -> bool:
    """True if the comparison holds. Raises NoValue for a number and a text, and for a date and another text."""
    return _ORDERS[sign](*comparable(left, right))


def sort_key(values: Iterable[str | Number]) -> Callable[[str | Number], Any]:
    """A key that sorts these values: numbers first, then texts; if all texts state moments of one kind, as these."""
    moments = [moment_of(value) for value in values if isinstance(value, str)]
    kinds = {moment and (moment.is_day or moment.kind) for moment in moments}

    def key(value: str | Number) -> Any:
        if not isinstance(value, str):
            return False, value
        moment = moment_of(value) if len(kinds) == 1 else None
        return True, value if moment is None else moment.seconds

    return key


# -- texts


def _test(holds: Callable[..., bool]) -> Callable[..., Exact]:
    return lambda *values: "true" if holds(*map(_text, values)) else "false"


def _part(text: Exact, first: Exact, size: Exact) -> Exact:
    """So many characters from one on, counted from 1; fewer where the text ends."""
    start, length = _whole(first) - 1, _whole(size)
    if start < 0 or length < 0:
        raise NoValue(f"there is no part from {start + 1} on with {length} characters")
    return _text(text)[start : start + length]


def _exchanged(text: Exact, old: Exact, new: Exact) -> Exact:
    if not _text(old):
        raise NoValue("an empty text cannot be replaced")
    return _text(text).replace(_text(old), _text(new))


def _stated_number(value: Exact) -> Exact:
    """The number that a text states in digits, with or without a point and a power of ten."""
    if _are_numbers(value):
        return value
    if _NUMERAL.fullmatch(_text(value).strip()) is None:
        raise NoValue(f"{_quoted(value)} does not state a number")
    return Fraction(_text(value).strip())


def _matches(text: str, pattern: str) -> bool:
    try:
        if pattern not in _slow:
            return _compiled(pattern).search(text, timeout=SECONDS_PER_MATCH) is not None
    except (TimeoutError, MemoryError):
        _slow.add(pattern)
    raise NoValue(f'the pattern "{pattern}" takes more than {SECONDS_PER_MATCH:g} second on a text, or too much memory')


def _is_like(text: str, pattern: str) -> bool:
    """True if the whole text has the form of a pattern as in SQL: `%` are any characters, `_` is one."""
    parts = {"%": ".*", "_": "."}
    return _matches(text, f"(?s)\\A{''.join(parts.get(sign) or re.escape(sign) for sign in pattern)}\\Z")


_slow: set[str] = set()
"""Patterns that took too long on a text, and are not tried on another one."""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import regex  # only few rules need it

    if len(pattern) > LONGEST_PATTERN:
        raise NoValue(f"a pattern has more than {LONGEST_PATTERN} characters")
    # Compiling writes counted repetitions out, also those within others.
    counts = [max(int(number or 0) for number in found) for found in _REPEATED.findall(pattern)]
    if prod(filter(None, counts)) > LONGEST_PATTERN:
        raise NoValue(f'the pattern "{pattern}" repeats a part more than {LONGEST_PATTERN} times')
    try:
        return regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        raise NoValue(f'"{pattern}" is not a regular expression: {error}') from None


# -- dates and times


def _of_day(part: Callable[[Any], int]) -> Callable[[Exact], Exact]:
    return lambda value: part(_moment(value).day)


def _of_clock(size: int, below: int) -> Callable[[Exact], Exact]:
    """A unit of the time of day of `size` seconds, `below` of them in the next larger unit. Seconds keep decimals."""

    def part(value: Exact) -> Exact:
        moment = _moment(value)
        if moment.kind not in (TIME, DATE_TIME):
            raise NoValue(f"{moment} has no time of day")
        return moment.local % below if size == 1 else moment.local // size % below

    return part


def _in_units(size: int) -> Callable[[Exact], Exact]:
    return lambda value: Fraction(_duration(value)) / size


NUMBER, TEXT, OBJECT = "Number", "Text", "Object"

FUNCTIONS: dict[str, ExactFunction] = {
    "+": ExactFunction(_sum, 2, 2),
    "-": ExactFunction(_difference, 2, 2),
    "*": ExactFunction(_product, 2, 2),
    "/": ExactFunction(_quotient, 2, 2),
    "//": ExactFunction(_whole_quotient, 2, 2, NUMBER),
    "mod": ExactFunction(_remainder, 2, 2, NUMBER),
    "**": ExactFunction(_power, 2, 2, NUMBER),
    "abs": ExactFunction(_size, 1, 1, NUMBER),
    "floor": ExactFunction(lambda value: floor(_number(value)), 1, 1, NUMBER),
    "round": ExactFunction(_rounded, 1, 2, NUMBER),
    "min": ExactFunction(_extreme(operator.lt), 2, 9),
    "max": ExactFunction(_extreme(operator.gt), 2, 9),
    "lower": ExactFunction(lambda value: _text(value).lower(), 1, 1, TEXT),
    "upper": ExactFunction(lambda value: _text(value).upper(), 1, 1, TEXT),
    "length": ExactFunction(lambda value: len(_text(value)), 1, 1, NUMBER),
    "concat": ExactFunction(lambda *values: "".join(map(_text, values)), 2, 99, TEXT),
    "substring": ExactFunction(_part, 3, 3, TEXT),
    "replace": ExactFunction(_exchanged, 3, 3, TEXT),
    "number": ExactFunction(_stated_number, 1, 1, NUMBER),
    "starts_with": ExactFunction(_test(str.startswith), 2, 2, TEXT),
    "ends_with": ExactFunction(_test(str.endswith), 2, 2, TEXT),
    "contains": ExactFunction(_test(operator.contains), 2, 2, TEXT),
    "matches": ExactFunction(_test(_matches), 2, 2, TEXT),
    "like": ExactFunction(_test(_is_like), 2, 2, TEXT),
    IS_MISSING: ExactFunction(_test(lambda _: False), 1, 1, TEXT),  # what has a value
    "year": ExactFunction(_of_day(lambda day: day.year), 1, 1, NUMBER),
    "month": ExactFunction(_of_day(lambda day: day.month), 1, 1, NUMBER),
    "day": ExactFunction(_of_day(lambda day: day.day), 1, 1, NUMBER),
    "weekday": ExactFunction(_of_day(lambda day: day.isoweekday()), 1, 1, NUMBER),
    "hour": ExactFunction(_of_clock(3600, 24), 1, 1, NUMBER),
    "minute": ExactFunction(_of_clock(60, 60), 1, 1, NUMBER),
    "second": ExactFunction(_of_clock(1, 60), 1, 1, NUMBER),
    "date": ExactFunction(lambda value: Moment(DATE, 86400 * (_moment(value).day.toordinal() - 1)), 1, 1, DATE),
    **{unit: ExactFunction(_in_units(size), 1, 1, NUMBER) for unit, size in UNITS.items()},
}
"""The functions by name, and the operations by sign."""


def result_type(name: str, operands: Sequence[str], kind_of: Callable[[str], str]) -> str:
    """The type of an operation's or function's value, by those of its operands.

    `kind_of`: the built-in type that a type is or stands below; "Object" for one of anything.
    """
    if name not in FUNCTIONS or FUNCTIONS[name].result:
        return FUNCTIONS[name].result if name in FUNCTIONS else ANY
    kinds = list(map(kind_of, operands))
    if name in ("min", "max") or set(kinds) <= {NUMBER, TEXT}:
        return operands[0] if name in ("min", "max") else NUMBER
    if DURATION in kinds and name in "+-":
        return operands[kinds.index(DURATION) - 1] if kinds.count(DURATION) == 1 else DURATION
    if name == "-" and OBJECT not in kinds:
        return DURATION
    if name in "*/" and kinds.count(DURATION) == 1:
        return DURATION
    return NUMBER if name == "/" and DURATION in kinds else ANY


# -- expressions over bound variables


def holds(comparison: Comparison, bindings: Mapping[str, Value]) -> bool:
    """True if the comparison holds. It is false where one of its sides has no value, or both have no common order."""
    try:
        return _holds(comparison, bindings)
    except NoValue:
        return False


def fault(comparison: Comparison) -> str:
    """The reason why a comparison of constants has no value; empty if it holds or does not."""
    try:
        _holds(comparison, {})
    except NoValue as reason:
        return str(reason)
    return ""


def _holds(comparison: Comparison, bindings: Mapping[str, Value]) -> bool:
    left, right = (_calculated(side, bindings) for side in comparison.sides)
    if comparison.operator in ("=", "\\=") and not any(isinstance(side, Arithmetic) for side in comparison.sides):
        return (left == right) == (comparison.operator == "=")
    return compared(comparison.operator, left, right)


def _calculated(expression: Expression, bindings: Mapping[str, Value]) -> Exact:
    """The expression's value. Raises NoValue."""
    if isinstance(expression, Arithmetic):
        function = FUNCTIONS.get(expression.operator)
        if function is None:
            raise NoValue(f"there is no function {expression.operator}")
        return function.call(*(_calculated(part, bindings) for part in expression.operands))
    value = bindings[expression.name] if isinstance(expression, Variable) else expression.value
    # A Decimal such as 0.1 becomes exactly 1/10.
    return value if isinstance(value, str) else Fraction(value)


def evaluated(expression: Expression, bindings: Mapping[str, Value]) -> Fraction | str | None:
    """The expression's value: a text, an exact number, or None if it has none."""
    try:
        value = _calculated(expression, bindings)
        return str(value) if isinstance(value, str | Moment) else Fraction(value)
    except NoValue:
        return None


def assigned(expression: Expression, bindings: Mapping[str, Value]) -> Value | None:
    """The expression's value as that of a constant; None if it has no value."""
    value = evaluated(expression, bindings)
    return number_of(value) if isinstance(value, Fraction) else value
