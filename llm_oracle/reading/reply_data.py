"""Reads replies that are data: JSON, also broken or cut off, elements of XML, tables, CSV."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from hapax.llm_oracle.reading.link_replies import MOST_LINES, parse_number
from hapax.llm_oracle.reading.reply_lines import read_lines
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyPart, ReplyQuestion

MOST_DATA = 200_000
"""Characters of a reply that are read as data."""
MOST_REPAIRED = 20_000
"""Characters of broken JSON that are repaired."""
MOST_BRACKETS = 200
"""Brackets of broken JSON: each that is open costs a frame of the stack."""

_GENERIC_NAMES = ("value", "answer", "name", "item", "result", "example", "entity", "title", "text", "label")
# Names of what data says beside its values, and of the parts of a call of a tool that carry what it is called with.
_SIDE_NAMES = re.compile(
    r"(?:^|_)(?:reason|explan|notes?$|descri|confiden|comment|detail|source|prob|score|categor|count$|total|status|"
    r"type$|class$|"
    r"question|prompt|sentence|format|variable)|^(?:#|no|nr|id|index|rank|number|position|order|№)\.?$",
    re.IGNORECASE,
)
_CARRIERS = ("arguments", "parameters", "input", "function", "output", "data", "response", "properties", "tool_input")
# `Here: ["`, `x = [{"`, or a bracket at the beginning of a line; not the `[` of `see [B]`.
_BEGIN = re.compile(r"(?:^|[:：=\](]|(?<=\s))[ \t]*(?=[\[{]\s*[\"'{\[])|^[ \t]*(?=[\[{])", re.MULTILINE)
_FENCED = re.compile(r"(?:```|~~~)(?P<language>[\w+-]*)[ \t]*\n(?P<inside>.*?)(?:\n[ \t]*(?:```|~~~)|\Z)", re.DOTALL)
_INLINE_TAG = re.compile(
    r"</?(?:b|i|em|strong|u|code|span|br|sub|sup|small|a|font|mark|s)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE
)
# `|---|:--:|`, the line below the header of a table in Markdown.
_RULE_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
# `$1,200`, `-3`, `5 kg (est.)`.
_QUANTITY = re.compile(r"[^\w\s]{0,2}\s*[-−]?\d[\d.,]*\s*(?:[^\d\s][^\d]{0,20})?(?:\(.*\))?")


def _fit(name: str, question: ReplyQuestion) -> int:
    """Rank of a key or header as a name of the values: 0 if it names something else, higher is better."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()
    words = [re.sub(r"(?<!s)s$", "", word) for word in re.findall(r"[^\W_]+", spaced)]
    wanted = [re.sub(r"(?<!s)s$", "", word) for word in question.data_type.casefold().split()]
    if name.strip("[]*_` ") == question.variable or words == wanted:
        return 4
    if wanted and wanted[-1] in words:
        return 3
    return 2 if words and words[-1] in _GENERIC_NAMES else 0


def read_data(answer: str, question: ReplyQuestion) -> list[ReplyPart]:
    """The parts of a reply that is JSON; empty if it is none."""
    text = answer[:MOST_DATA]
    # A list of objects may have list marks: `1. {"name": "basil"}`.
    text = re.sub(r"^[^\S\n]*(?:\d{1,3}[.)]|[-*•])\s+(?=\{\s*\")", "", text, flags=re.MULTILINE)
    begin = _BEGIN.search(text)
    inside = text[begin.end() :] if begin else ""
    end = max(inside.rfind("]"), inside.rfind("}")) + 1
    # One element without quotes is a slot, a link or a footnote.
    if (
        begin is None
        or re.match(r"\[[^\[\]{}\"',]*\](?!\s*$)", inside)
        or not re.search(r"[\"',\d]", inside[:end] or inside)
    ):
        return []
    end = end if end and not re.match(r"[\s,]*[\"'{\[]", inside[end:]) else len(inside)
    data = parsed(inside[:end])
    if data is None:
        return []
    # `["1. basil", "2. thyme"]`
    values = [
        re.sub(r"^\s*\d{1,3}[.)]\s+(?=\D)", "", value) for value in islice(_values(data, question), MOST_LINES + 1)
    ]
    parts = [ReplyPart(value, value) for value in values if value.strip()]
    return [
        *_aside(text[: begin.end()], DropReason.PREAMBLE),
        *(parts or [ReplyPart(answer, answer, DropReason.REFUSAL)]),
        *_aside(inside[end:], DropReason.REMARK),
    ]


def _aside(text: str, reason: DropReason) -> list[ReplyPart]:
    return [ReplyPart(line.raw, line.raw, reason) for line in read_lines(text, MOST_LINES)]


def parsed(text: str) -> list[Any] | dict[str, Any] | None:
    """The data that a text is, repaired where it is broken or cut off; None if it cannot be."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        text = text[:MOST_REPAIRED]
        if text.count("[") + text.count("{") > MOST_BRACKETS:
            return None
        import json_repair

        # One object per line is one list; a last text that is cut off is not known.
        joined = re.sub(r"([\]}])\s*\n\s*(?=[\[{])", r"\1,", text)
        joined = f"[{joined}]" if joined != text and text.startswith("{") else text
        data = json_repair.loads(re.sub(r",?\s*(?:[\"'][^\"'\]}]*|\w+)$", "", joined), skip_json_loads=True)
    return data if isinstance(data, list | dict) else None


def _values(data: Any, question: ReplyQuestion) -> Iterator[str]:
    """The values in a list or an object."""
    if isinstance(data, list):
        rows = [list(map(str, row)) for row in data if isinstance(row, list)]
        if len(rows) == len(data) > 1 and {len(row) for row in rows} in ({2}, {3}):
            column = _value_column([], rows, question)
            data = [row[column] for row in rows]
        for part in data:
            yield from _values(part, question)
    elif isinstance(data, dict):
        yield from _values_of_object(data, question)
    elif data not in (None, "") and not isinstance(data, bool):
        yield str(data)


def _values_of_object(data: dict[str, Any], question: ReplyQuestion) -> Iterator[str]:
    carried = next((part for name, part in data.items() if name.casefold() in _CARRIERS and part), None)
    if isinstance(carried, str):
        carried = parsed(carried) if carried.lstrip().startswith(("{", "[")) else None
    main = {name: part for name, part in data.items() if not _SIDE_NAMES.search(name) and part is not None}
    nested = [part for part in main.values() if isinstance(part, list | dict)]
    best = max(data, key=lambda name: (_fit(name, question), isinstance(data[name], list | dict)), default="")
    if len(data) > 1 and all(isinstance(part, dict | bool) for part in data.values()):  # the values are the names
        yield from (name for name, part in data.items() if part)
    elif carried or (_fit(best, question) and data[best] is not None):
        value = carried or data[best]
        if isinstance(value, str) and best.casefold().endswith("s") and not question.numeric:
            value = re.split(r"\s*[;\n]\s*|,\s+(?:and\s+)?|\s+and\s+(?=[^,]+$)", value)
        yield from _values(value, question)
    elif nested or all(re.fullmatch(r"\D*\d+", name) for name in data):  # `1`, `value_2`
        yield from _values(nested or list(data.values()), question)
    elif question.numeric:
        yield from (str(part) for part in data.values() if parse_number(str(part), question.data_type) is not None)
    elif len(main) < len(data) or len(data) == 1:  # a record
        yield from map(str, list(main.values())[:1])
    else:
        yield from data


# --- tables

_ROW = re.compile(r"<tr\b[^<>]{0,200}>(?P<cells>(?:(?!</?tr\b).)*)</tr>", re.IGNORECASE | re.DOTALL)


# Cells of a table that say if the value of their row is right.
_CROSSED_CELL = re.compile(r"[❌✗✘✖]|\|\s*no\s*(?:\||$)", re.IGNORECASE)
_TICKED_CELL = re.compile(r"[✅✓✔]|\|\s*yes\s*(?:\||$)", re.IGNORECASE)


def read_table(answer: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply with a table in Markdown or in CSV; empty if it has none. `cut`: by the token limit."""
    fence = _FENCED.search(answer[:MOST_DATA])
    text = _ROW.sub(_piped, fence["inside"] if fence else answer[:MOST_DATA])
    cut = cut and not answer.endswith(("\n", "|"))
    lines = [line for line in text.splitlines() if line.strip()][: MOST_LINES + 1]
    piped = [place for place, line in enumerate(lines) if "|" in line]
    is_ruled = any("-" in lines[place] and _RULE_ROW.fullmatch(lines[place][:1000]) for place in piped)
    if len(piped) > 1 and (is_ruled or all(lines[place].strip().startswith("|") for place in piped)):
        rows = {
            place: re.split(r"(?<!\\)\|", lines[place].strip().removeprefix("|").removesuffix("|")) for place in piped
        }
        return _table(lines, rows, is_ruled, question, cut)
    for delimiter in (",", ";", "\t", "  "):
        rows = {place: _csv_cells(line, delimiter) for place, line in enumerate(lines)}
        width = len(rows[0]) if rows else 0
        is_headed = width > 1 and any(_fit(cell, question) > 1 and len(cell.split()) <= 3 for cell in rows[0])
        is_plain = delimiter == ";" and len(rows) > 2 and width > 1 and "; " not in text
        is_list = re.match(r"\s*(?:\(?\d{1,3}[.)]|[-*•])\s|[^,;]*:", lines[0]) if lines else True
        if (is_headed or is_plain) and len(rows) > 1 and not is_list and {len(row) for row in rows.values()} == {width}:
            return _table(lines, rows, is_headed, question, cut)
    return []


def _csv_cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line in CSV, or of columns that blanks part; none of a line that is no CSV."""
    if delimiter == "  ":
        return re.split(r"\s{2,}", line.strip())
    try:
        # Line by line, so that an open quotation mark does not swallow the lines below.
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a cell is longer than the module's limit
        return []


def _piped(row: re.Match[str]) -> str:
    """A row of an HTML table as one of Markdown."""
    cells = re.split(
        r"</t[dh]>", re.sub(r"<t[dh]\b[^<>]{0,200}>", "", row["cells"].replace("|", "/")), flags=re.IGNORECASE
    )
    return "\n| " + " | ".join(" ".join(_INLINE_TAG.sub("", cell).split()) for cell in cells[:-1]) + " |\n"


def _table(
    lines: Sequence[str], rows: dict[int, list[str]], is_headed: bool, question: ReplyQuestion, cut: bool
) -> list[ReplyPart]:
    """A part for each line of a table, and for those around it. `rows`: cells by position."""
    cells = {place: [cell.strip() for cell in row] for place, row in rows.items()}
    rules = {place for place in cells if "-" in lines[place] and _RULE_ROW.fullmatch(lines[place][:1000])}
    first = min(cells)
    headers = {place for place in cells if place + 1 in rules} | {first} if is_headed else set()
    data = [row for place, row in cells.items() if place not in headers | rules]
    column = _value_column(cells[first] if is_headed else [], data, question)
    found = {place: row[column] for place, row in cells.items() if column < len(row) and place not in headers | rules}
    is_judged = any(map(_TICKED_CELL.search, lines))
    parts: list[ReplyPart] = []
    for place, line in enumerate(lines):
        around = DropReason.PREAMBLE if place <= min(found, default=place) else DropReason.REMARK
        reason = DropReason.REMARK if is_judged and _CROSSED_CELL.search(line) else None
        reason = reason if place in found else DropReason.HEADING if "|" in line else around
        reason = DropReason.CUT if cut and place == len(lines) - 1 and reason is None else reason
        parts.append(ReplyPart(line, found.get(place) or line, reason))
    return parts


def _value_column(header: Sequence[str], data: Sequence[Sequence[str]], question: ReplyQuestion) -> int:
    """Index of the column with the values: the best header, else the first column that does not number the rows."""
    fits = [_fit(name, question) for name in header]
    # A generic header such as `Name` does not promise a column of numbers.
    if fits and max(fits) > (2 if question.numeric else 0):
        return fits.index(max(fits))
    width = max(map(len, data), default=0)
    columns = [[row[place].strip("*_` ") for row in data if place < len(row)] for place in range(width)]
    are_numbers = [all(map(_QUANTITY.fullmatch, texts)) for texts in columns]
    for place, texts in enumerate(columns):
        counts_rows = texts == list(map(str, range(1, len(texts) + 1)))
        is_side = place < len(header) and re.fullmatch(r"(?:#|no|nr|id|index|rank)\.?", header[place].casefold())
        if not is_side and not counts_rows and (question.numeric == are_numbers[place] or all(are_numbers)):
            return place
    return 0
