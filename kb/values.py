"""How values stand in a database cell and in a file, and which ones are refused with what reason.

A value is stored as JSON text: `"saag chicken"`, `1876`, `{"decimal": "1.50"}`. So text is never a number, integers
of any size and decimals come back exactly, and NUL is an escape and no end of text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from json.encoder import c_make_encoder, encode_basestring, encode_basestring_ascii  # type: ignore[attr-defined]
from typing import Any, NoReturn

from grammar.errors import HapaxError
from grammar.terms import Value

MAX_INTEGER_BITS = 10_000
"""About 3,000 digits: Python refuses to write or read integers of more than 4,300."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNREADABLE_BYTE = re.compile("[\udc80-\udcff]")
"""What a byte that is no UTF-8 becomes when a file is read with `surrogateescape`."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""What `json.dumps` would build anew for every cell."""


def writer(encoder: json.JSONEncoder) -> Callable[[object], str]:
    """`encoder.encode` of a compact encoder, without what that builds anew for every value where Python has it in C.

    Trees that hold themselves raise RecursionError.
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
    except TypeError:  # a Python without it, or one that makes it of something else
        return encoder.encode
    return lambda value: "".join(chunks(value, 0))


class ValueRefused(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A value that the knowledge base cannot hold exactly."""


def refusal(value: object) -> str | None:
    """Why the value cannot be stored, with the remedy; None: it can."""
    if isinstance(value, str):
        return _text_refusal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return f"{type(value).__name__} is no value; give a text, an integer or a decimal"
    if isinstance(value, int):
        too_big = value.bit_length() > MAX_INTEGER_BITS
        return f"the integer has more than {MAX_INTEGER_BITS} bits; give it as text" if too_big else None
    return None if value.is_finite() else f"{value} is no number that can be compared; leave it out"


def _text_refusal(text: str) -> str | None:
    if text.isascii():
        return None
    found = _SURROGATE.search(text)
    if found is None:
        return None
    if _UNREADABLE_BYTE.match(found[0]):
        return f"the byte 0x{ord(found[0]) - 0xDC00:02X} is not UTF-8; save the text as UTF-8"
    return f"the text holds half a character (U+{ord(found[0]):04X}), which UTF-8 cannot write; remove it"


def encode_value(value: Value) -> str:
    """The value as JSON text. Raises `ValueRefused`."""
    if type(value) is str and value.isascii():
        return encode_basestring(value)
    checked = _checked(value)
    return encode_basestring(checked) if isinstance(checked, str) else _COMPACT.encode(checked)


def decode_value(text: str) -> Value:
    """The inverse of `encode_value`. Raises ValueError for text that is no value."""
    return plain_value(load_json(text))


def encode_values(values: tuple[Value | None, ...]) -> str:
    """A list of values; None is the free position of a pattern. Raises `ValueRefused`."""
    return f"[{','.join(['null' if value is None else encode_value(value) for value in values])}]"


def decode_values(text: str) -> tuple[Value | None, ...]:
    """The inverse of `encode_values`. Raises ValueError or TypeError."""
    return tuple(None if item is None else plain_value(item) for item in load_list(text))


def load_json(text: str) -> Any:
    """JSON with `{"decimal": "1.5"}` and numbers with a point as decimals. Raises ValueError, for deep nesting too."""
    try:
        return json.loads(text, object_hook=_decimal_hook, parse_float=decimal_value, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def load_list(text: str) -> list[Any]:
    """A JSON list. Raises ValueError or TypeError: texts and maps could be walked through as well."""
    items = load_json(text)
    if not isinstance(items, list):
        raise TypeError(f"{_shown(items)} where a list belongs")
    return items


def encode_tree(tree: object, decimals: bool = True) -> str:
    """A JSON tree in one canonical form. Raises `ValueRefused` for what JSON cannot hold.

    Half characters are written as escapes here and come back: a paid answer is kept whatever it holds.
    """
    unicode, ascii_only = _TREES[decimals]
    try:
        text = unicode(tree)
        if not text.isascii() and _SURROGATE.search(text):
            text = ascii_only(tree)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRefused(f"no JSON can hold it ({error}); store plain texts, numbers, lists and maps") from error
    return text


def decode_tree(text: str, decimals: bool = True) -> dict[str, Any]:
    """The inverse of `encode_tree` for maps. Raises ValueError or TypeError for anything else."""
    try:
        tree = json.loads(text, object_hook=_lenient_hook if decimals else None)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(tree, dict):
        raise TypeError(f"{_shown(tree)} where a map belongs")
    return tree


def encode_decimal(value: object) -> object:
    """For `json.dumps(default=...)`: the decimals inside a JSON tree."""
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


_TREES = {
    decimals: tuple(
        writer(
            json.JSONEncoder(
                ensure_ascii=escaped,
                separators=(",", ":"),
                sort_keys=True,
                default=encode_decimal if decimals else None,
            )
        )
        for escaped in (False, True)
    )
    for decimals in (True, False)
}
"""By whether a tree may hold decimals: what writes it as it is, and what escapes all but ASCII."""


def _checked(value: Value) -> object:
    reason = refusal(value)
    if reason is not None:
        raise ValueRefused(reason)
    return encode_decimal(value) if isinstance(value, Decimal) else value


def plain_value(item: object) -> Value:
    """What `load_json` gave, if it is a value. Raises ValueError."""
    if isinstance(item, str | int | Decimal) and not isinstance(item, bool):
        return item
    raise ValueError(f"{_shown(item)} is no value; give a text or a number")


def _shown(item: object) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
    return names.get(type(item), type(item).__name__)


def _decimal_hook(item: dict[str, Any]) -> object:
    if item.keys() == {"decimal"} and isinstance(item["decimal"], str):
        return decimal_value(item["decimal"])
    return item


def _lenient_hook(item: dict[str, Any]) -> object:
    """A tree may hold a map of the same looks that is no decimal of ours."""
    try:
        return _decimal_hook(item)
    except ValueError:
        return item


def decimal_value(text: str) -> Decimal:
    """A finite decimal. Raises ValueError, where `Decimal` itself raises an ArithmeticError."""
    try:
        number = Decimal(text)
    except ArithmeticError as error:
        raise ValueError(f"{text[:40]!r} is no decimal number") from error
    if not number.is_finite():
        raise ValueError(f"{text[:40]} is no number that can be compared")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that can be compared")
