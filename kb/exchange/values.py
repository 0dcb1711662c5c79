"""Encoding of values in database cells and files, and the reasons for refusing some.

A value is stored as JSON text: `"saag chicken"`, `1876`, `{"decimal": "1.50"}`. So text is never read as a number,
integers of any size and decimals come back exactly, and NUL is an escape that does not end the text. A third, which a
rule calculates and no fact has, has the exact number beside its first digits: `{"decimal": "0.333", "exact": "1/3"}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from json.encoder import c_make_encoder, encode_basestring, encode_basestring_ascii  # type: ignore[attr-defined]
from typing import Any, NoReturn

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import MAXIMUM_POWER, MISSING, CutDecimal, Value, decimal_of
from hapax.grammar.writing.words import counted, short

MAX_INTEGER_BITS = 10_000
"""About 3,000 digits; Python refuses to read or write integers of more than 4,300 digits."""
MAX_PLACES = MAXIMUM_POWER
"""Places of a decimal before its point, and after it: a calculation with 1e99999999 would take hours."""

LONGEST_TEXT = 1 << 20
"""Characters of a text in a new fact, whichever way it comes in. A longer one is a document or an attack."""

_FRACTION = re.compile(r"-?[0-9]+/[1-9][0-9]*")

_SURROGATE = re.compile("[\ud800-\udfff]")

# A byte that is not UTF-8 becomes one of these when a file is read with `surrogateescape`.
_UNREADABLE_BYTE = re.compile("[\udc80-\udcff]")

_SHORT = 2**63
"""Integers below this need no check of their size."""

# `json.dumps` would create a new encoder for every cell.
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def writer(encoder: json.JSONEncoder) -> Callable[[object], str]:
    """Fast equivalent of `encoder.encode` for an encoder without indentation.

    `encode` creates a new C encoder for every value; this creates one for all. A tree that contains itself raises
    RecursionError, since cycles are not tracked.
    """
    written = encode_basestring_ascii if encoder.ensure_ascii else encode_basestring
    try:
        chunks = c_make_encoder(
            None,
            encoder.default,
            written,
            encoder.indent,
            encoder.key_separator,
            encoder.item_separator,
            encoder.sort_keys,
            encoder.skipkeys,
            encoder.allow_nan,
        )
    except TypeError:  # this Python has no C encoder, or one with other parameters
        return encoder.encode
    return lambda value: "".join(chunks(value, 0))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cell that is no value, with the reason."""

    reason: str


class ValueRefused(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A value that the knowledge base cannot store exactly."""


def refusal(value: object) -> str | None:
    """Reason why the value cannot be stored, with the remedy; None if it can."""
    if isinstance(value, str):
        return _text_refusal(value)
    if isinstance(value, Unreadable):
        return value.reason
    # `bool` is a subclass of `int`.
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return f"{type(value).__name__} is not a value; give a text, an integer or a decimal"
    if isinstance(value, int):
        too_big = value.bit_length() > MAX_INTEGER_BITS
        return f"the integer has more than {MAX_INTEGER_BITS} bits; give it as text" if too_big else None
    if isinstance(value, CutDecimal):
        return f"{value.exact} has no decimal form that ends; give a decimal near it"
    return None if value.is_finite() else f"{value} is not a finite number; leave it out"


def fact_refusal(value: object) -> str | None:
    """Reason why a new fact cannot have the value: `refusal`, or a text or number that is too long to work with."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"the text has {len(value)} characters, more than {LONGEST_TEXT}; shorten it"
    if isinstance(value, Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        if max(len(digits) + int(exponent), -int(exponent)) > MAX_PLACES:
            return f"the number has more than {MAX_PLACES} places before or after its point; give it as text"
    return refusal(value)


def _text_refusal(text: str) -> str | None:
    if text.isascii():
        return None
    found = _SURROGATE.search(text)
    if found is None:
        return None
    # `surrogateescape` reads a byte B that is not UTF-8 as U+DC00 + B.
    if _UNREADABLE_BYTE.match(found[0]):
        return f"the byte 0x{ord(found[0]) - 0xDC00:02X} is not UTF-8; save the text as UTF-8"
    return f"the text contains half a character (U+{ord(found[0]):04X}), which UTF-8 cannot encode; remove it"


def encode_value(value: Value) -> str:
    """The value as JSON text. Raises `ValueRefused`."""
    # The usual case: only half characters make a text unfit, and ASCII has none.
    if type(value) is str and value.isascii():
        return encode_basestring(value)
    if value is MISSING:
        return "null"
    reason = None if isinstance(value, CutDecimal) else refusal(value)
    if reason is not None:
        raise ValueRefused(reason)
    checked = encode_decimal(value) if isinstance(value, Decimal) else value
    return encode_basestring(checked) if isinstance(checked, str) else _COMPACT.encode(checked)


def encode_texts(texts: Sequence[str]) -> list[str]:
    """Texts as JSON texts, looked at together. Raises `ValueRefused` for the first that cannot be stored."""
    if _text_refusal("".join(texts)) is None:
        return list(map(encode_basestring, texts))
    return list(map(encode_value, texts))


def encode_fact_values(column: Sequence[Any]) -> list[str]:
    """Values of new facts as JSON texts. Raises `ValueRefused` for the first of which `fact_refusal` has a reason."""
    kinds = set(map(type, column))
    # Nearly all columns have texts alone, or whole numbers, which are looked at together.
    if kinds == {str} and max(map(len, column)) <= LONGEST_TEXT:
        return encode_texts(column)
    if kinds == {int} and min(column) > -_SHORT and max(column) < _SHORT:
        return list(map(str, column))
    for value in column:
        if reason := fact_refusal(value):
            raise ValueRefused(reason)
    return list(map(encode_value, column))


def decode_value(text: str) -> Value:
    """The inverse of `encode_value`. Raises ValueError for text that is not a value."""
    return plain_value(load_json(text))


def encode_values(values: tuple[Value | None, ...]) -> str:
    """A list of values as JSON text; None is the free position of a pattern. Raises `ValueRefused`."""
    return f"[{','.join(['null' if value is None else encode_value(value) for value in values])}]"


def decode_values(text: str) -> tuple[Value | None, ...]:
    """The inverse of `encode_values`. Raises ValueError or TypeError."""
    return tuple(None if item is None else plain_value(item) for item in load_list(text))


def load_json(text: str) -> Any:
    """Parse JSON, with `{"decimal": "1.5"}` and numbers with a point as decimals. Raises ValueError."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def load_list(text: str) -> list[Any]:
    """Parse a JSON list. Raises ValueError or TypeError."""
    items = load_json(text)
    # A text or a map could be iterated over as well, and would give wrong cells.
    if not isinstance(items, list):
        raise TypeError(f"expected a list, not {_shown(items)}")
    return items


def encode_tree(tree: object, decimals: bool = True) -> str:
    """A JSON tree as text in canonical form. Raises `ValueRefused` for a tree that JSON cannot represent.

    Lone surrogates are escaped and come back: a paid answer is kept whatever it contains.
    """
    unicode, ascii_only = _TREES[decimals]
    try:
        text = unicode(tree)
        if not text.isascii() and _SURROGATE.search(text):
            text = ascii_only(tree)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRefused(f"JSON cannot represent it ({error}); store plain texts, numbers, lists and maps") from error
    return text


def decode_tree(text: str, decimals: bool = True) -> dict[str, Any]:
    """The inverse of `encode_tree` for maps. Raises ValueError or TypeError for anything else."""
    try:
        tree = json.loads(text, object_hook=_lenient_hook if decimals else None)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(tree, dict):
        raise TypeError(f"expected an object, not {_shown(tree)}")
    return tree


def encode_decimal(value: object) -> object:
    """JSON form of a decimal, for `json.dumps(default=...)`."""
    if isinstance(value, CutDecimal) and is_exact(value):
        return {"decimal": str(value), "exact": str(value.exact)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def is_exact(value: CutDecimal) -> bool:
    """True if the JSON form of a cut number has the exact one, which may be too large to be written."""
    return max(value.exact.numerator.bit_length(), value.exact.denominator.bit_length()) <= MAX_INTEGER_BITS


def _tree_writer(decimals: bool, escaped: bool) -> Callable[[object], str]:
    default = encode_decimal if decimals else None
    return writer(json.JSONEncoder(ensure_ascii=escaped, separators=(",", ":"), sort_keys=True, default=default))


# For trees with and without decimals: a writer for Unicode text, and one that escapes all but ASCII.
_TREES = {
    True: (_tree_writer(decimals=True, escaped=False), _tree_writer(decimals=True, escaped=True)),
    False: (_tree_writer(decimals=False, escaped=False), _tree_writer(decimals=False, escaped=True)),
}


def plain_value(item: object) -> Value:
    """An item from `load_json` as a value. Raises ValueError for anything else."""
    if isinstance(item, str | int | Decimal) and not isinstance(item, bool):
        return item
    raise ValueError(f"{_shown(item)} is not a value; give a text or a number")


def _shown(item: object) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
    return names.get(type(item), type(item).__name__)


def _decimal_hook(item: dict[str, Any]) -> object:
    if item.keys() == {"decimal"} and isinstance(item["decimal"], str):
        return decimal_value(item["decimal"])
    if item.keys() == {"decimal", "exact"} and all(isinstance(part, str) for part in item.values()):
        return cut_decimal(item["decimal"], item["exact"])
    return item


def _lenient_hook(item: dict[str, Any]) -> object:
    """Leave a map alone that looks like one of our decimals but is not."""
    try:
        return _decimal_hook(item)
    except ValueError:
        return item


def cut_decimal(digits: str, exact: str) -> CutDecimal:
    """Parse a number without a decimal form that ends: its first digits and itself. Raises ValueError."""
    if _FRACTION.fullmatch(exact) is None or len(exact) > MAX_INTEGER_BITS:
        raise ValueError(f"{exact[:40]!r} is not a fraction")
    number = decimal_of(Fraction(exact))
    if not isinstance(number, CutDecimal) or str(number) != digits:
        raise ValueError(f"{digits[:40]!r} are not the first digits of {exact[:40]}")
    return number


def decimal_value(text: str) -> Decimal:
    """Parse a finite decimal. Raises ValueError, unlike `Decimal`, which raises ArithmeticError."""
    try:
        number = Decimal(text)
    except ArithmeticError as error:
        raise ValueError(f"{text[:40]!r} is not a decimal number") from error
    if not number.is_finite():
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


# `json` accepts NaN and Infinity, which no JSON standard and no fact may contain.
def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")


# One for all calls: `json.loads` builds a new one for each.
_DECODER = json.JSONDecoder(object_hook=_decimal_hook, parse_float=decimal_value, parse_constant=_no_constant)


# -- the checks that every fact passes, whichever way it comes into a knowledge base

MOST_ARGUMENTS = 900
"""Most arguments of a fact: SQLite limits the columns of a table, and the depth of a condition."""


class FactRefused(ValueRefused):
    """Something that cannot be a fact. `kind`: the fault in short, by which faults are counted."""

    def __init__(self, message: str, kind: str = "not a fact") -> None:
        super().__init__(message)
        self.kind = kind


def check_fact(predicate: object, arguments: Sequence[Any], types: object = ()) -> None:
    """Raise FactRefused unless these are a predicate's name, its arguments, and their types or none."""
    check_form(predicate, arguments, types)
    encoded_columns(str(predicate), [[argument] for argument in arguments])


def check_form(predicate: object, arguments: object, types: object = ()) -> None:
    """Like `check_fact`, without the values of the arguments."""
    if not isinstance(predicate, str) or not predicate.isidentifier():
        raise FactRefused(f"{short(predicate)} is not a predicate name; write a name like is_allergic_to")
    if not isinstance(arguments, (list, tuple)):
        raise FactRefused(f"the arguments of {predicate} are {short(arguments)}, not a list; write them as a list")
    if not arguments:
        raise FactRefused(f"{predicate} has no arguments; write at least one", "short row")
    if len(arguments) > MOST_ARGUMENTS:
        raise FactRefused(f"{predicate} has {len(arguments)} arguments; give it {MOST_ARGUMENTS} at most", "long row")
    if types != ():
        _check_types(types, f"{predicate}/{len(arguments)}", len(arguments))


def encoded_columns(predicate: str, columns: Sequence[Sequence[Any]], names: Sequence[str] = ()) -> list[list[str]]:
    """The columns of some facts' arguments as JSON texts. Raises FactRefused for the first that no fact can have.

    `names`: of the columns that they come from, for the message.
    """
    texts = []
    for place, column in enumerate(columns):
        try:
            texts.append(encode_fact_values(column))
        except ValueRefused as refused:
            where = f"column {names[place]}" if names else f"argument {place + 1} of {predicate}"
            if any(value is None for value in column):
                remedy = "fill it in, leave the row out, or declare a key to keep it"
                raise FactRefused(f"{where} is empty; {remedy}", "empty cell") from None
            raise FactRefused(f"{where}: {refused}", "faulty cell") from None
    return texts


def _check_types(types: object, indicator: str, arity: int) -> None:
    if not isinstance(types, (list, tuple)) or not all(isinstance(data_type, str) for data_type in types):
        raise FactRefused(f"the types of {indicator} are not a list of texts; leave them out")
    if types and len(types) != arity:
        raise FactRefused(f"{indicator} has {counted(len(types), 'type')}; give one for each argument, or none")
    for data_type in types:
        if reason := refusal(data_type):
            raise FactRefused(f"a type of {indicator}: {reason}")
