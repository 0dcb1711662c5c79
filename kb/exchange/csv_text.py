"""CSV as the project writes it: no cell is a formula to a spreadsheet or a command to a terminal.

A cell that would be either is written as a JSON string, `"=SUM(A1)"` with its quotation marks; `read_cell` undoes that.
In files of facts a cell is a number if it is written like one (`1876`, `3.5`), otherwise a text. A text that looks like
a number, begins with a quotation mark or has blanks at its ends is written as a JSON string, too; an empty one is `""`.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Protocol

from hapax.grammar.terms import MISSING, Value
from hapax.grammar.writing.words import short
from hapax.kb.exchange import values
from hapax.kb.exchange.values import Unreadable

_FORMULA = re.compile(r"(?:^|;)\s*[=+\-@＝＋－＠]")
"""Start of a cell that a spreadsheet may take for a formula, also where semicolons part cells, as in many countries."""

_AFTER_SEMICOLON = re.compile(r"(;\s*)([=+\-@＝＋－＠])")

_JOINERS = "\u200c\u200d"

# `1876`, `-3.5`, `1E-7` and `1.5e3` are numbers; `007`, `+1` and `.5` stay texts, as does `1e5`, which may be a code.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-][0-9]+)?")

_NO_PLAIN_TEXT = frozenset('-0123456789"{')
"""First characters of cells that may be anything but the text that they show."""

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class _CsvStream(Protocol):
    def write(self, text: str, /) -> object: ...


def is_harmless(text: str) -> bool:
    """True if no spreadsheet runs the text, and it has no control characters nor others that cannot be seen."""
    has_controls = not text.isprintable() and any(map(_is_control, text))
    return not has_controls and (_NUMBER.fullmatch(text) is not None or not _FORMULA.search(text))


def _is_control(sign: str) -> bool:
    # Blanks other than the usual one, and the joiners that Persian and emoji need, are shown as they are.
    return not sign.isprintable() and sign not in _JOINERS and unicodedata.category(sign) != "Zs"


def escaped(json_text: str) -> str:
    """The JSON text with an escape for every control character, and for the sign of a formula after a semicolon."""
    if not json_text.isprintable():
        json_text = "".join(json.dumps(sign)[1:-1] if _is_control(sign) else sign for sign in json_text)
    # JSON has semicolons in texts alone.
    return _AFTER_SEMICOLON.sub(lambda found: f"{found[1]}\\u{ord(found[2]):04x}", json_text)


def text_cell(content: object) -> str:
    """The cell for a text or a number; None is empty. `read_cell` gives the text back."""
    if content is None:
        return ""
    text = str(content)
    if not isinstance(content, str) or (is_harmless(text) and not text.startswith('"')):
        return text
    return escaped(json.dumps(text, ensure_ascii=False))


def read_cell(cell: str) -> str:
    """The text of a cell that `text_cell` wrote, or that a person typed."""
    if len(cell) < 2 or not (cell[0] == cell[-1] == '"'):
        return cell
    try:
        text = json.loads(cell)
        text.encode()
    except ValueError:
        # The person's own quotation marks, or half a character, which no file holds.
        return cell
    return str(text)


def cell_value(cell: str) -> Value | None:
    """The value of a cell in a file of facts or a table; None for blanks. Raises ValueError for an invalid one."""
    text = cell.strip()
    if not text:
        return None
    if text[0] not in _NO_PLAIN_TEXT:
        return text
    if text.startswith(('"', '{"decimal"')):
        try:
            return values.plain_value(values.load_json(text))
        except ValueError as error:
            raise ValueError(f"{short(text)} is not a JSON string ({error}); close it with a quotation mark") from error
    if _INTEGER.fullmatch(text):
        # Refused here, because Python's own error is advice to programmers.
        if len(text) > values.MAX_PLACES:
            raise ValueError(f"the integer has {len(text)} digits; write it as a text in quotation marks")
        return int(text)
    return values.decimal_value(text) if _DECIMAL.fullmatch(text) else text


def cell_values(cells: Sequence[str], *, foreign: bool = False) -> Sequence[Value | Unreadable | None]:
    """The values that `cell_value` gives for the cells of a column.

    `foreign`: a person or another program wrote it, with quotation marks of its own.
    """
    texts = list(map(str.strip, cells))
    first = set(map(itemgetter(slice(1)), texts))
    if "" not in first and _NO_PLAIN_TEXT.isdisjoint(first):
        return texts
    if '"' not in first:
        try:
            numbers = list(map(int, texts))
        except ValueError:
            pass
        else:
            # Python reads `1_000` and `٣` as integers, too.
            if list(map(str, numbers)) == texts:
                return numbers
    known = {text: _value_or_fault(text, foreign) for text in set(texts)}
    return list(map(known.__getitem__, texts))


def _value_or_fault(text: str, foreign: bool) -> Value | Unreadable | None:
    try:
        return cell_value(text)
    except ValueError as fault:
        is_own = foreign and text.startswith('"') and values.refusal(text) is None
        return text if is_own else Unreadable(str(fault))


def value_cell(value: Value) -> str:
    """CSV cell for a value: its plain text if `cell_value` turns that back into the value, otherwise JSON."""
    if value is MISSING:
        return ""
    plain = str(value)
    if plain and is_harmless(plain):
        try:
            # The text `1876` would come back as a number, so it is written as JSON.
            again = cell_value(plain)
        except ValueError:
            again = None
        if type(again) is type(value) and str(again) == plain:
            return plain
    return escaped(values.encode_value(value))


def write_rows(
    stream: _CsvStream,
    rows: Iterable[Iterable[object]],
    *,
    cell: Callable[[object], str] = text_cell,
    end: str = "\n",
    quotes_all: bool = False,
) -> None:
    """Write rows of CSV, each content by `cell`; `quotes_all` puts quotation marks around every cell."""
    writer = csv.writer(stream, lineterminator=end, quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL)
    for row in rows:
        writer.writerow([cell(content) for content in row])
