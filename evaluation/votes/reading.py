"""Reading of filled-in sheets: CSV from a spreadsheet, or JSON from Label Studio."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hapax.evaluation.votes.questions import SheetKind
from hapax.evaluation.votes.sheets import COLUMNS, INSTRUCTIONS, QUALIFICATION, row_check
from hapax.grammar.errors import HapaxError
from hapax.kb.csv_text import read_cell
from hapax.kb.intake import FactFault
from hapax.kb.values import refusal

_NEEDED = tuple(name for name in COLUMNS if name not in {"choices", "comment"})
_NUMBER = re.compile("[0-9]{1,7}")
_MAX_CELL = 1 << 20
"""Longest cell, as in other tables that Hapax reads; Python's own limit is 128 kB."""


_EXPORT_AGAIN = "export the project from Label Studio as JSON"


@dataclass(frozen=True, slots=True)
class FilledRow:
    """One question with its answer as it stands in the file, at `line`; `number` is its row on the sheet."""

    file: str
    line: int
    sheet: str
    kind: str
    voter: str
    number: str
    rows: str
    section: str
    item: str
    question: str
    text: str
    asked: str
    answer: str
    comment: str
    check: str

    @property
    def place(self) -> int | None:
        """Number of the row on its sheet, or None if the cell holds no number."""
        return int(self.number) if _NUMBER.fullmatch(self.number) else None

    @property
    def unchanged(self) -> bool:
        """True if no cell but voter, answer and comment was changed since the export."""
        cells = (self.number, self.item, self.question, self.text, self.asked)
        return bool(_NUMBER.fullmatch(self.rows)) and row_check(self.sheet, int(self.rows), cells) == self.check

    @property
    def qualifies(self) -> bool:
        """True for a question of the qualification."""
        return self.section == QUALIFICATION

    def fault(self, message: str) -> FactFault:
        return FactFault(self.file, self.line, message)


_CELLS = tuple(field.name for field in fields(FilledRow) if field.name not in {"file", "line"})


def read_sheet(path: Path) -> tuple[list[FilledRow], list[FactFault]]:
    """Read a file: its rows, and faults of the file or of rows that cannot be read.

    Raises HapaxError if the file cannot be opened.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HapaxError(f"{path}: {error.strerror}. Name a file that can be read.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The only fault of such a file: its other rows cannot be trusted either.
        line = data[: error.start].count(b"\n") + 1
        return [], [FactFault(str(path), line, "this is not UTF-8; save the sheet as CSV UTF-8")]
    try:
        rows = list(_json_rows(path, text) if text.lstrip().startswith(("[", "{")) else _csv_rows(path, text))
    except _UnreadableError as error:
        return [], [FactFault(str(path), error.line, str(error))]
    if not rows:
        return [], [FactFault(str(path), 1, "the sheet has no rows; restore the file as it was exported")]
    faults = []
    for row in rows:
        # Only these cells are the voter's own; the checksum covers the others.
        for name, cell in (("voter", row.voter), ("answer", row.answer), ("comment", row.comment)):
            if reason := refusal(cell):
                faults.append(row.fault(f"{name}: {reason}"))
    # Row by row: the sound rows of a sheet are still used where faulty ones are skipped.
    faulty = {fault.line for fault in faults}
    return [row for row in rows if row.line not in faulty], faults


class _UnreadableError(Exception):
    """The file is not a sheet."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _csv_rows(path: Path, text: str) -> Iterator[FilledRow]:
    limit = csv.field_size_limit(_MAX_CELL)  # global to the process, so it is restored below
    try:
        # Some spreadsheets write semicolons or tabs, whatever separator they have read.
        header = text.partition("\n")[0]
        delimiter = max(",;\t", key=header.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        names = [name.strip().lower() for name in next(reader, [])]
        if missing := [name for name in _NEEDED if name not in names]:
            raise _UnreadableError(1, f"no column {missing[0]!r}; restore the first row as it was exported")
        # reader.line_num is the last line of a row, and a row with line ends in its cells has several.
        line = reader.line_num + 1
        for cells in reader:
            row = dict(zip(names, map(read_cell, cells), strict=False))
            if any(cells) and row.get("section", "").strip() != INSTRUCTIONS:
                yield _filled(path, line, row)
            line = reader.line_num + 1
    except csv.Error as error:
        raise _UnreadableError(reader.line_num, f"not valid CSV: {error}; save the sheet as CSV UTF-8") from error
    finally:
        csv.field_size_limit(limit)


def _json_rows(path: Path, text: str) -> Iterator[FilledRow]:
    """The rows of tasks that Label Studio exported; their lines are the numbers of the tasks in the file."""
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(getattr(error, "lineno", 1), f"not valid JSON; {_EXPORT_AGAIN}") from error
    for number, task in enumerate(tasks, start=1):
        try:
            data, annotations = task["data"], task.get("annotations", ())
            # A task that its annotator skipped or nobody opened has no answer.
            for annotation in annotations or ({"result": ()},):
                yield _filled(path, number, _texts(data) | _given(annotation))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _UnreadableError(number, f"not a task of Label Studio ({error!r}); {_EXPORT_AGAIN}") from error


def _texts(data: Mapping[str, object]) -> dict[str, str]:
    """The data of a task as texts, of which the checksum was computed."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in data.items()}


def _given(annotation: Mapping[str, Any]) -> dict[str, str]:
    """The answer and the comment of somebody."""
    given = {"answer": "", "comment": ""}
    for result in annotation["result"]:
        words = result["value"]["choices" if result["from_name"] == "answer" else "text"]
        given[result["from_name"]] = " ".join([words] if isinstance(words, str) else words)
    return given


def _filled(path: Path, line: int, row: Mapping[str, str]) -> FilledRow:
    cells = {}
    for name in _CELLS:
        cell = row.get("row" if name == "number" else name, "")
        # The checksum covers the blanks of texts.
        cell = cell if name in {"text", "asked"} else cell.strip()
        cells[name] = cell.lower() if name in {"kind", "section", "answer"} else cell
    return FilledRow(str(path), line, **cells)


def known_kind(row: FilledRow) -> SheetKind | None:
    """The kind of sheet that the row names, or None if there is no such kind."""
    return SheetKind(row.kind) if row.kind in set(SheetKind) else None
