"""Reads replies that are data: JSON, YAML, Python lists, elements of XML, tables, CSV, also when they are cut off."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import chain, islice
from typing import Any

import yaml

from hapax.llm_oracle.answers import MOST_LINES, parse_number

MOST_DATA = 200_000
"""Characters of a reply that are tried as JSON."""

MOST_LOOSE = 20_000
"""Characters of data that are tried as Python's notation or YAML, which take longer to read."""

_GENERIC_NAMES = ("value", "answer", "name", "item", "result", "example", "entity", "title", "text", "label")
_ORDER_NAMES = frozenset(("#", "no", "nr", "id", "index", "rank", "number", "position", "order", "№"))
SIDE_NAMES = re.compile(
    r"reason|explan|note|descri|confiden|comment|detail|source|prob|score|categor|count|total|status|type|class|"
    r"question|prompt|sentence|format|variable",
    re.IGNORECASE,
)
"""Names of what data says beside its values."""
_CARRIERS = ("arguments", "parameters", "input", "function", "output", "data", "response", "properties", "tool_input")
"""Names of the parts of a call of a tool that carry what it is called with."""
# `Here: ["`, `x = [{"`, or a bracket at the beginning of a line; not the `[` of `see [B]`.
_BEGIN = re.compile(r"(?:^|[:：=\](]|(?<=\s))[ \t]*(?=[\[{]\s*[\"'{\[])|^[ \t]*(?=[\[{])", re.MULTILINE)
MOST_BEGINNINGS = 5
"""Brackets at which data is looked for."""
_FENCED = re.compile(r"(?:```|~~~)(?P<language>[\w+-]*)[ \t]*\n(?P<inside>.*?)(?:\n[ \t]*(?:```|~~~)|\Z)", re.DOTALL)
# `|---|:--:|`, the line below the header of a table in Markdown.
_RULE_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
# `$1,200`, `-3`, `5 kg (est.)`.
_QUANTITY = re.compile(r"[^\w\s]{0,2}\s*[-−]?\d[\d.,]*\s*(?:[^\d\s][^\d]{0,20})?(?:\(.*\))?")
_LISTED = re.compile(r"\s*\(?\d{1,3}[.)]\s|\s*[-*•]\s")
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
    # A list of objects in JSON may have list marks: `1. {"name": "basil"}`.
    text = re.sub(r"^[^\S\n]*(?:\d{1,3}[.)]|[-*•])\s+(?=\{\s*\")", "", text[:MOST_DATA], flags=re.MULTILINE)
    for match in _FENCED.finditer(text):
        node = _parsed(match["inside"].strip())
        if node is None and match["language"].casefold() in ("yaml", "yml"):
            node = _yaml(match["inside"])
        if node is not None:
            return DataPart(text[: match.start()], tuple(_values(node, wanted)), text[match.end() :])
    for begin in islice(_BEGIN.finditer(text), MOST_BEGINNINGS):
        part = _data_at(text, begin.end(), wanted)
        if part is not None:
            return part
    return None


def _data_at(text: str, begin: int, wanted: WantedName) -> DataPart | None:
    """The values of the data that begins at a position; None if none does."""
    inside = text[begin:]
    node, end = _decoded(inside)
    # `[B]`, a link or a footnote is no data.
    if not isinstance(node, list | dict) or not node:
        return None
    if isinstance(node, list) and len(node) == 1 and (inside[end : end + 1] == "(" or inside[1:2].isalnum()):
        return None
    if (
        isinstance(node, list)
        and all(isinstance(part, int) for part in node)
        and inside[end:].strip()
        and not wanted.numeric
    ):
        return None
    return DataPart(text[:begin], tuple(_values(node, wanted)), inside[end:])


def _decoded(inside: str) -> tuple[Any, int]:
    """The data with which a text begins, and where it ends."""
    try:
        node, end = json.JSONDecoder().raw_decode(inside)
    except (ValueError, RecursionError):
        return _parsed(inside.strip()), len(inside)
    # One object per line is one list.
    lines = _json_lines(inside) if inside[end:].lstrip().startswith(("{", "[")) else None
    return (node, end) if lines is None else (lines, len(inside))


def _parsed(text: str) -> list[Any] | dict[str, Any] | None:
    """The data that a text is, in JSON or in Python's notation, repaired where the end is missing."""
    # `fruits = [...]`, as in Python.
    text = re.sub(r"^[^\W\d]\w{0,40}\s*=\s*(?=[\[{])", "", text)
    if not text.startswith(("[", "{")):
        return None
    without_ends = re.sub(r",\s*(?=[\]}])", "", text)
    with_commas = re.sub(r"(?<=[\"\]}])[ \t]*\n\s*(?=[\"\[{])", ",\n", without_ends)
    # As it is; without commas before closing brackets; with the commas that are missing at ends of lines.
    for candidate in (text, without_ends, with_commas):
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
        node = ast.literal_eval(text[: last + 1][:MOST_LOOSE])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        # Keys without quotes are YAML.
        return _repaired(text) or _yaml(re.sub(r"//[^\n\"]*$", "", text[: last + 1], flags=re.MULTILINE))
    return node if isinstance(node, list | dict) else None


class _PlainLoader(yaml.BaseLoader):
    """Reads YAML without anchors and aliases, by which a few lines could stand for millions of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node. Raises YAMLError where it is an alias or has an anchor."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise yaml.YAMLError("an anchor or alias")
        return super().compose_node(parent, index)


def _yaml(text: str) -> list[Any] | dict[str, Any] | None:
    """The data of a text in YAML, all scalars as texts."""
    if len(text) > MOST_LOOSE or text.count("[") + text.count("{") > 200:
        return None  # brackets exhaust the stack
    try:
        node = yaml.load(text, Loader=_PlainLoader)  # noqa: S506  # it makes only texts, lists and objects
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return node if isinstance(node, list | dict) else None


def _json_lines(text: str) -> list[Any] | None:
    """The data of a text with one JSON value per line; a last line that is cut off is left out."""
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
        # No reply nests values so deeply; hostile ones would make the loop below costly.
        if len(open_brackets) > 20:
            return None
    # The last ends may lie in an element that is broken in another way, so that earlier ones are tried as well.
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
        rows = list(filter(_is_row, node))
        # Lists of two or three cells are rows such as number and name; other lists in a list are joined.
        if len(rows) > 1 and len(rows) == len(node) and {len(row) for row in rows} in ({2}, {3}):
            cells = [list(map(str, row)) for row in rows]
            column = _value_column([], cells, wanted)
            return [row[column] for row in cells]
        values: list[str] = []
        for part in node:
            is_record = isinstance(part, dict) and _carried(part) is None
            values += [_picked(part, wanted)] if is_record else _values(part, wanted)
        return [value for value in values if value]
    if isinstance(node, dict):
        return _values_of_object(node, wanted)
    return [] if node is None or isinstance(node, bool) else [str(node)]


def _is_row(part: Any) -> bool:
    """True for a list of texts and numbers."""
    return isinstance(part, list) and all(isinstance(cell, str | int | float) for cell in part)


def _values_of_object(node: Mapping[str, Any], wanted: WantedName) -> list[str]:
    carried = _carried(node)
    if carried is not None:
        return _values(carried, wanted)
    chosen = _list_in(node, wanted)
    if chosen is not None:
        return _values(chosen, wanted)
    inner = [part for part in node.values() if isinstance(part, dict)]
    if len(node) == 1 and inner:
        return _values_of_object(inner[0], wanted)
    if all(isinstance(part, bool) for part in node.values()):
        return [str(name) for name, part in node.items() if part]
    # Numbered keys may bear a word: `1`, `value_2`.
    if all(re.fullmatch(r"\D*\d+", str(name)) for name in node):
        return _values(list(node.values()), wanted)
    if len(node) == 1 or max((wanted.fit(str(name)) for name in node), default=0):
        return _named_values(node, wanted)
    if wanted.numeric:
        return [str(part) for part in node.values() if parse_number(str(part), wanted.data_type) is not None]
    return [str(name) for name in node]


def _carried(node: Mapping[str, Any]) -> Any:
    """The data with which an object calls a tool, which may stand in a string; None if it calls none."""
    for name, part in node.items():
        if str(name).casefold() in _CARRIERS:
            data = _parsed(part.strip()) if isinstance(part, str) else part
            if isinstance(data, list | dict) and data:
                return data
    return None


def _list_in(node: Mapping[str, Any], wanted: WantedName) -> list[Any] | None:
    """The list of values in an object or in the objects in it, by the fit of its name; the first of equals."""
    ranked: list[tuple[int, str, list[Any]]] = []
    level = [node]
    for depth in range(4):
        below: list[Mapping[str, Any]] = []
        for part in level:
            for name, inner in part.items():
                if isinstance(inner, list):
                    # The fit of the name decides; of equal ones the outer list.
                    ranked.append((10 * wanted.fit(str(name)) - depth, str(name), inner))
                elif isinstance(inner, dict):
                    below.append(inner)
        level = below
    if not ranked:
        return None
    best = max(ranked, key=lambda entry: entry[0])
    if best[0] >= 10 or len(ranked) == 1:
        return best[2]
    main = [inner for _, name, inner in ranked if not SIDE_NAMES.search(name)]
    return list(chain.from_iterable(main))


def _named_values(node: Mapping[str, Any], wanted: WantedName) -> list[str]:
    """The value that an object names, or the values if it names them in the plural: `"values": "a, b"`."""
    value = _picked(node, wanted)
    name = next((str(name) for name, part in node.items() if str(part) == value), "")
    if name.casefold().endswith("s") and re.search(r"[,;\n]", value) and not wanted.numeric:
        return [part.strip() for part in re.split(r"\s*[;\n]\s*|,\s+(?:and\s+)?", value) if part.strip()]
    return [value] if value else []


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
    main = [name for name in scalars if name.casefold() not in _ORDER_NAMES and not SIDE_NAMES.search(name)]
    return scalars[main[0]] if main else ""


# --- elements of XML and HTML

_ELEMENT = re.compile(r"<(?P<name>[A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?>")
_ELEMENT_END = re.compile(r"</(?P<name>[A-Za-z][\w-]{0,40})>")
_TAG = re.compile(r"</?(?P<name>[A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?>")
_INLINE_TAGS = frozenset(
    ["b", "i", "em", "strong", "u", "code", "span", "br", "sub", "sup", "small", "a", "font", "mark", "s", "strike"]
)


class _Elements(HTMLParser):
    """Collects the texts of the innermost elements, with their names."""

    def __init__(self) -> None:
        super().__init__()
        self.leaves: list[tuple[str, str]] = []
        self._open: list[tuple[str, list[str], bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  # the names of the base class
        if tag not in _INLINE_TAGS and len(self._open) < 50:
            # An element with another one inside is not an innermost one.
            self._open = [(name, texts, False) for name, texts, _ in self._open]
            self._open.append((tag, [], True))

    def handle_endtag(self, tag: str) -> None:
        if tag not in [name for name, _, _ in self._open]:
            return
        while self._open:
            name, texts, is_innermost = self._open.pop()
            if is_innermost:
                self.leaves.append((name, "".join(texts).strip()))
            if name == tag:
                break

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][1].append(data)


def read_elements(text: str, wanted: WantedName) -> DataPart | None:
    """The values in the innermost elements of a text in XML or HTML; None if it has no list of elements."""
    folded = text[:MOST_DATA]
    if _ROW.search(folded):
        return None  # a table, which is read by rows
    ends = {match["name"]: match.start() for match in _ELEMENT_END.finditer(folded)}  # the last of each name
    closed = [
        match
        for match in _ELEMENT.finditer(folded)
        if match["name"].casefold() not in _INLINE_TAGS and ends.get(match["name"], -1) >= match.end()
    ]
    if not closed:
        return None
    parser = _Elements()
    try:
        parser.feed(folded)
    except AssertionError:  # html.parser's, for a declaration that it does not know: `<![foo[`
        return None
    names = Counter(name for name, inside in parser.leaves if inside.strip())
    if not names:
        return None
    rows = [name for name in names if name not in ("td", "th")] or list(names)
    best = max(rows, key=lambda name: (wanted.fit(name), not SIDE_NAMES.search(name), names[name]))
    values = tuple(inside for name, inside in parser.leaves if name == best and inside.strip())
    if best in ("p", "div") or any("\n" in value for value in values) or len(values) < 2:
        return None  # the text in the elements is read without them
    end = max(ends[match["name"]] + len(match["name"]) + 3 for match in closed)
    return DataPart(text[: closed[0].start()], values, text[end:])


def without_elements(text: str) -> str:
    """A text without the tags of elements that enclose parts of it; a name in `<...>` without an end stays."""
    opened = {match["name"] for match in _ELEMENT.finditer(text[:MOST_DATA])} - _INLINE_TAGS
    enclosing = opened & {match["name"] for match in _ELEMENT_END.finditer(text)}
    return _TAG.sub(lambda tag: "\n" if tag["name"] in enclosing else tag.group(), text) if enclosing else text


# --- tables


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of a text with a table: `cell` is the value's cell, None for a line that is not a row."""

    raw: str
    cell: str | None


def read_table(text: str, wanted: WantedName) -> list[TableLine] | None:
    """The lines of a text that holds Markdown tables, with the cell of the value in each row; None without a table."""
    text = _ROW.sub(_piped, text[:MOST_DATA]) if _ROW.search(text[:MOST_DATA]) else text
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


_ROW = re.compile(r"<tr\b[^<>]{0,200}>(?P<cells>(?:(?!</?tr\b).)*)</tr>", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(r"<t[dh]\b[^<>]{0,200}>((?:(?!</?t[dh]\b).)*)</t[dh]>", re.IGNORECASE | re.DOTALL)


def _piped(row: re.Match[str]) -> str:
    """A row of an HTML table as one of Markdown."""
    cells = [" ".join(re.sub(r"<[^<>]{1,200}>", " ", cell).split()) for cell in _CELL.findall(row["cells"])]
    return "\n| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |\n"


def read_csv(text: str, wanted: WantedName) -> list[TableLine] | None:
    """The rows of a text in CSV whose first line names the columns; None if it is not such a text."""
    fenced = _FENCED.search(text[:MOST_DATA])
    inside = fenced["inside"] if fenced else text[:MOST_DATA]
    lines = [line for line in inside.splitlines() if line.strip()][: MOST_LINES + 1]
    is_named = fenced is not None and fenced["language"].casefold() in ("csv", "tsv")
    if fenced is None and any(_LISTED.match(line) for line in lines[:2]):
        return None  # a list whose items hold commas
    # The empty delimiter stands for columns of fixed width.
    for delimiter in (",", ";", "\t", ""):
        if len(lines) < 2 or not all(delimiter in line for line in lines):
            continue
        rows = [_csv_cells(line, delimiter) for line in lines]
        if len(rows) != len(lines) or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
            continue
        if any(":" in cell for cell in rows[0]):
            continue  # `Stone fruits: plum, cherry`
        has_header = any(wanted.fit(_bare(cell)) > 1 and len(cell.split()) <= 3 for cell in rows[0])
        if not (has_header or is_named):
            continue
        header = rows[0] if has_header else []
        column = _value_column([_bare(cell) for cell in header], rows[len(header) > 0 :], wanted)
        around = text[: fenced.start()].splitlines() if fenced else []
        result = [TableLine(line, None) for line in around if line.strip()]
        for number, (line, row) in enumerate(zip(lines, rows, strict=True)):
            result.append(TableLine(line, None if number == 0 and has_header else row[column]))
        after = text[fenced.end() :].splitlines() if fenced else []
        return [*result, *(TableLine(line, None) for line in after if line.strip())]
    return None


def _csv_cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line in CSV, or of columns of fixed width without a delimiter; none of a line that is no CSV."""
    if not delimiter:
        return re.split(r"\s{2,}", line.strip())
    try:
        # Line by line, so that an open quotation mark does not swallow the lines below.
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a cell is longer than the module's limit
        return []


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
    cells = list(map(_cells, rows))
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


def _cells(row: str) -> list[str]:
    """The cells of a row in Markdown, with or without pipes at its ends."""
    return [cell.strip() for cell in _CELL_BREAK.split(row.strip().removeprefix("|").removesuffix("|"))]


def _value_column(header: Sequence[str], data: Sequence[Sequence[str]], wanted: WantedName) -> int:
    """Index of the column with the values: the best header, else the first column that does not number the rows."""
    fits = [wanted.fit(name) for name in header]
    width = max((len(row) for row in (header, *data)), default=0)
    best = max(fits, default=0)
    # A generic header such as `Name` does not promise a column of numbers.
    if best and not (wanted.numeric and best < 3):
        return fits.index(best)
    for column in range(width):
        texts = [_bare(row[column]) for row in data if column < len(row)]
        if column < len(header) and header[column].casefold().strip(". ") in _ORDER_NAMES:
            continue
        are_numbers = all(_QUANTITY.fullmatch(text) for text in texts)
        if wanted.numeric and are_numbers:
            return column
        others_are_names = width > 1 and not all(_are_quantities(data, other) for other in range(width))
        if not wanted.numeric and are_numbers and texts and others_are_names:
            continue
        counts_rows = texts == [str(number) for number in range(1, len(texts) + 1)]
        if not wanted.numeric and not counts_rows:
            return column
    return 0


def _are_quantities(data: Sequence[Sequence[str]], column: int) -> bool:
    """True if a column holds nothing but numbers."""
    return all(_QUANTITY.fullmatch(_bare(row[column])) for row in data if column < len(row))


def _bare(cell: str) -> str:
    return cell.strip().strip("*_` ")
