"""Reads replies that are data: JSON, JSON lines, Python lists and Markdown tables, also when they are cut off."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hapax.llm_oracle.answers import MOST_LINES, parse_number

MOST_DATA = 200_000
"""Characters of a reply that are tried as JSON."""

_GENERIC_NAMES = ("value", "answer", "name", "item", "result", "example", "entity", "title", "text", "label")
_ORDER_NAMES = frozenset(("#", "no", "nr", "id", "index", "rank", "number", "position", "order", "№"))
_SIDE_NAMES = re.compile(
    r"reason|explan|note|descri|confiden|comment|detail|source|prob|score|categor|count|total|status|type|class|"
    r"question|prompt|sentence|format|variable",
    re.IGNORECASE,
)
_FENCED = re.compile(r"(?:```|~~~)[\w+-]*[ \t]*\n(?P<inside>.*?)(?:\n[ \t]*(?:```|~~~)|\Z)", re.DOTALL)
_RULE_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_CELL_BREAK = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class WantedName:
    """The names under which data may hold the values: the variable, the data type, generic words."""

    variable: str
    data_type: str
    numeric: bool = False

    def fit(self, name: str) -> int:
        """Rank of a key or header as a name of the values: 0 if it names something else, higher is better."""
        words = _words(name)
        wanted = _words(self.data_type)
        if name.strip() == self.variable or name.strip("[] ") == self.variable:
            return 5
        if words == wanted:
            return 4
        if wanted and wanted[-1] in words:
            return 3
        return 2 if words and words[-1] in _GENERIC_NAMES else 0


def _words(name: str) -> list[str]:
    """The words of a name in lower case and singular: `bigDogs` and `big_dogs` give big, dog."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [
        word if word.endswith("ss") else word.removesuffix("s") for word in re.findall(r"[^\W_]+", spaced.casefold())
    ]


# --- JSON


@dataclass(frozen=True, slots=True)
class DataPart:
    """Values read from a part of a text that is data, and the text around it."""

    before: str
    values: tuple[str, ...]
    after: str


def read_json(text: str, wanted: WantedName) -> DataPart | None:
    """The values of the JSON or Python data in a text; None if it holds none."""
    text = text[:MOST_DATA]
    for match in _FENCED.finditer(text):
        node = _parsed(match["inside"].strip())
        if node is not None:
            return DataPart(text[: match.start()], tuple(_values(node, wanted)), text[match.end() :])
    begin = re.search(r"^[ \t]*(?=[\[{])|(?<=[:：])[ \t]*(?=[\[{]\s*[\"'{\[])", text, re.MULTILINE)
    if begin is None:
        return None
    inside = text[begin.end() :]
    node, end = _decoded(inside)
    # `[B]`, a link or a footnote is no data.
    if not isinstance(node, list | dict) or not node:
        return None
    if isinstance(node, list) and len(node) == 1 and inside[end : end + 1] == "(":
        return None
    if (
        isinstance(node, list)
        and all(isinstance(part, int) for part in node)
        and inside[end:].strip()
        and not wanted.numeric
    ):
        return None
    return DataPart(text[: begin.end()], tuple(_values(node, wanted)), inside[end:])


def _decoded(inside: str) -> tuple[Any, int]:
    """The data with which a text begins, and where it ends."""
    try:
        node, end = json.JSONDecoder().raw_decode(inside)
    except (ValueError, RecursionError):
        return _parsed(inside.strip()), len(inside)
    # One object a line is one list.
    lines = _json_lines(inside) if inside[end:].lstrip().startswith(("{", "[")) else None
    return (node, end) if lines is None else (lines, len(inside))


def _parsed(text: str) -> list[Any] | dict[str, Any] | None:
    """The data that a text is, in JSON or in Python's notation, repaired where the end is missing."""
    text = re.sub(r"^[^\W\d]\w{0,40}\s*=\s*(?=[\[{])", "", text)
    if not text.startswith(("[", "{")):
        return None
    for candidate in (text, re.sub(r",\s*(?=[\]}])", "", text)):
        try:
            node = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return node if isinstance(node, list | dict) else None
    lines = _json_lines(text)
    if lines is not None:
        return lines
    last = max(text.rfind("]"), text.rfind("}"))
    try:
        node = ast.literal_eval(text[: last + 1][:20_000])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return _repaired(text)
    return node if isinstance(node, list | dict) else None


def _json_lines(text: str) -> list[Any] | None:
    """The data of a text with one JSON value a line; a last line that is cut off is left out."""
    nodes: list[Any] = []
    lines = [line.strip().rstrip(",") for line in text.splitlines() if line.strip()]
    for line in lines:
        try:
            nodes.append(json.loads(line))
        except (ValueError, RecursionError):
            break
    return nodes if len(nodes) > 1 and len(nodes) >= len(lines) - 1 else None


def _repaired(text: str) -> list[Any] | dict[str, Any] | None:
    """The data of a text that ends before its brackets close, up to its last complete element."""
    open_brackets: list[str] = []
    ends: list[tuple[int, str]] = []
    in_string = escaped = False
    for position, char in enumerate(text):
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "[{":
            open_brackets.append("]" if char == "[" else "}")
        elif char in "]}" and open_brackets:
            open_brackets.pop()
            ends.append((position + 1, "".join(reversed(open_brackets))))
        elif char == ",":
            ends.append((position, "".join(reversed(open_brackets))))
        if len(open_brackets) > 20:
            return None
    for end, closing in ends[:-4:-1]:
        try:
            node = json.loads(text[:end] + closing)
        except (ValueError, RecursionError):
            continue
        return node if isinstance(node, list | dict) else None
    return None


def _values(node: Any, wanted: WantedName) -> list[str]:
    """The values in a list or an object."""
    if isinstance(node, list):
        values: list[str] = []
        for part in node:
            values += [_picked(part, wanted)] if isinstance(part, dict) else _values(part, wanted)
        return [value for value in values if value]
    if isinstance(node, dict):
        return _values_of_object(node, wanted)
    return [] if node is None or isinstance(node, bool) else [str(node)]


def _values_of_object(node: Mapping[str, Any], wanted: WantedName) -> list[str]:
    lists = {name: part for name, part in node.items() if isinstance(part, list)}
    if lists:
        best = max(lists, key=wanted.fit)
        chosen: Iterable[Any] = [lists[best]] if wanted.fit(best) else lists.values()
        values: list[str] = []
        for part in chosen:
            values += _values(part, wanted)
        return values
    inner = [part for part in node.values() if isinstance(part, dict)]
    if len(node) == 1 and inner:
        return _values_of_object(inner[0], wanted)
    # Numbered keys may bear a word: `1`, `value_2`.
    if all(re.fullmatch(r"\D*\d+", name) for name in node):
        return _values(list(node.values()), wanted)
    if len(node) == 1 or max(map(wanted.fit, node), default=0):
        return [_picked(node, wanted)]
    if wanted.numeric:
        return [str(part) for part in node.values() if parse_number(str(part), wanted.data_type) is not None]
    return list(node)


def _picked(node: Mapping[str, Any], wanted: WantedName) -> str:
    """The value of an object that describes one."""
    scalars = {
        name: str(part)
        for name, part in node.items()
        if isinstance(part, str | int | float) and not isinstance(part, bool)
    }
    if wanted.numeric:
        numbers = {name: part for name, part in scalars.items() if parse_number(part, wanted.data_type) is not None}
        scalars = {name: part for name, part in numbers.items() if name.casefold() not in _ORDER_NAMES} or numbers
    if not scalars:
        return ""
    best = max(scalars, key=wanted.fit)
    if wanted.fit(best):
        return scalars[best]
    main = [name for name in scalars if name.casefold() not in _ORDER_NAMES and not _SIDE_NAMES.search(name)]
    return scalars[main[0]] if main else ""


# --- tables


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of a text with a table: `cell` is the value's cell, None for a line that is not a row."""

    raw: str
    cell: str | None


def read_table(text: str, wanted: WantedName) -> list[TableLine] | None:
    """The lines of a text that holds Markdown tables, with the cell of the value in each row; None without a table."""
    lines = [line for line in text.splitlines() if line.strip()][: MOST_LINES + 1]
    result: list[TableLine] = []
    position = 0
    tables = 0
    while position < len(lines):
        rows = _row_lines(lines, position)
        if len(rows) < 2:
            result.append(TableLine(lines[position], None))
            position += 1
            continue
        tables += 1
        result += _table(rows, wanted)
        position += len(rows)
    return result if tables else None


def _row_lines(lines: Sequence[str], begin: int) -> list[str]:
    """The lines from `begin` on that form a table: a run with pipes, with a rule or with pipes at both ends."""
    end = begin
    while end < len(lines) and "|" in lines[end]:
        end += 1
    rows = list(lines[begin:end])
    is_ruled = len(rows) > 1 and "-" in rows[1] and _RULE_ROW.fullmatch(rows[1][:1000]) is not None
    is_boxed = len(rows) > 1 and all(row.strip().startswith("|") for row in rows)
    return rows if is_ruled or is_boxed else []


def _table(rows: Sequence[str], wanted: WantedName) -> list[TableLine]:
    cells = [
        [cell.strip() for cell in _CELL_BREAK.split(row.strip().removeprefix("|").removesuffix("|"))] for row in rows
    ]
    is_rule = ["-" in row and _RULE_ROW.fullmatch(row[:1000]) is not None for row in rows]
    has_header = (len(rows) > 1 and is_rule[1]) or any(wanted.fit(_bare(cell)) for cell in cells[0])
    header = cells[0] if has_header else []
    data = [row for number, row in enumerate(cells) if not is_rule[number] and not (has_header and number == 0)]
    column = _value_column([_bare(cell) for cell in header], data, wanted)
    result: list[TableLine] = []
    for number, row in enumerate(cells):
        is_data = not is_rule[number] and not (has_header and number == 0)
        result.append(TableLine(rows[number], row[column] if is_data and column < len(row) else None))
    return result


def _value_column(header: Sequence[str], data: Sequence[Sequence[str]], wanted: WantedName) -> int:
    """Index of the column with the values: the best header, else the first column that does not number the rows."""
    fits = [wanted.fit(name) for name in header]
    width = max((len(row) for row in (header, *data)), default=0)
    best = max(fits, default=0)
    if best and not (wanted.numeric and best < 3):
        return fits.index(best)
    for column in range(width):
        texts = [_bare(row[column]) for row in data if column < len(row)]
        if column < len(header) and header[column].casefold().strip(". ") in _ORDER_NAMES:
            continue
        are_numbers = all(parse_number(text, wanted.data_type) is not None for text in texts)
        if wanted.numeric and are_numbers:
            return column
        counts_rows = texts == [str(number) for number in range(1, len(texts) + 1)]
        if not wanted.numeric and not counts_rows:
            return column
    return 0


def _bare(cell: str) -> str:
    return cell.strip().strip("*_` ")
