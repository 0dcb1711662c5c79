"""Tables as rows of cells: CSV, TSV, JSON lines, Parquet, and loaders of Python packages. Every fault names its row."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.kb.exchange.foreign_files import parquet_table, text_lines
from hapax.llm_oracle.references.loaders import LOADERS
from hapax.llm_oracle.references.mapping import TableSection

LONGEST_CELL = 20_000
"""Characters of a cell. A longer one is a sign of an unclosed quotation mark."""

Cell: TypeAlias = str | int | float | bool | Sequence[str] | None
"""A cell of a table; a sequence holds several names."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table, with its number as people count: the line of a file, or the row of a loader, from 1."""

    number: int
    cells: Mapping[str, Cell]


def read_table(name: str, table: TableSection, folder: Path) -> list[TableRow]:
    """All rows of a table. Raises HapaxError for a file that cannot be read, and for each faulty row of it."""
    if table.loader is not None:
        loader = LOADERS.get(table.loader)
        if loader is None:
            known = ", ".join(sorted(LOADERS))
            raise HapaxError(f"Table {name}: no loader {table.loader!r} is registered. Choose one of {known}.")
        return [TableRow(number, cells) for number, cells in enumerate(loader(), 1)]
    assert table.file is not None  # noqa: S101  # the mapping has checked it
    path = folder / table.file
    readers = {".csv": _separated, ".tsv": _separated, ".jsonl": _json_lines, ".parquet": _parquet}
    reader = readers.get(path.suffix.casefold())
    if reader is None:
        raise HapaxError(f"{path}: tables end in {', '.join(readers)}, not in {path.suffix!r}. Convert the file.")
    try:
        # As a list, so that faults of the file come up here.
        rows = list(reader(path))
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read: {fault.strerror or fault}. Correct the table's `file`.") from fault
    except UnicodeDecodeError as fault:
        raise HapaxError(f"{path}: is not UTF-8 text. Save the table as UTF-8.") from fault
    _refuse_strange_cells(path, rows)
    return rows


def _separated(path: Path) -> Iterator[TableRow]:
    """Rows of a CSV or TSV file with a header."""
    # Spreadsheets write a byte order mark; `newline` as the module csv wants it, for line breaks inside cells.
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(
            text_lines(stream, str(path)), delimiter="\t" if path.suffix.casefold() == ".tsv" else ",", strict=True
        )
        try:
            header = [column.strip() for column in next(rows, [])]
            if not any(header):
                raise HapaxError(f"{path}: has no header. Write the names of the columns in its first line.")
            repeated = sorted({column for column in header if header.count(column) > 1})
            if repeated:
                raise HapaxError(f"{path}:1: repeats the columns {', '.join(map(repr, repeated))}. Rename all but one.")
            for cells in rows:
                if not any(cell.strip() for cell in cells):
                    continue  # a blank line
                if len(cells) != len(header):
                    raise HapaxError(
                        f"{path}:{rows.line_num}: has {len(cells)} cells, the header {len(header)}. "
                        "Complete the row, and quote cells that hold the separator."
                    )
                yield TableRow(rows.line_num, dict(zip(header, cells, strict=True)))
        except csv.Error as fault:
            raise HapaxError(f"{path}:{rows.line_num}: {fault}. Correct the quotation marks around here.") from fault


def _json_lines(path: Path) -> Iterator[TableRow]:
    """Rows of a file with a JSON object in each line."""
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(text_lines(stream, str(path)), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as fault:
                raise HapaxError(f"{path}:{number}: is not JSON: {fault}. Write one object per line.") from fault
            if not isinstance(row, dict):
                raise HapaxError(f"{path}:{number}: is not a JSON object. Write one object per line.")
            yield TableRow(number, row)


def _parquet(path: Path) -> Iterator[TableRow]:
    """Rows of a Parquet file."""
    columns, rows, _ = parquet_table(path)
    for number, cells in enumerate(rows, 1):
        yield TableRow(number, dict(zip(columns, cells, strict=True)))


def _refuse_strange_cells(path: Path, rows: Sequence[TableRow]) -> None:
    """Raise HapaxError for cells with control characters, and for cells that are too long to be a name."""
    faults = []
    for row in rows:
        for column, cell in row.cells.items():
            texts = cell if isinstance(cell, list | tuple) else (cell,)
            for text in texts:
                if not isinstance(text, str):
                    continue
                if len(text) > LONGEST_CELL:
                    faults.append(f"{path}:{row.number}: column {column!r} has {len(text)} characters.")
                elif any(character < " " and character not in "\t\r\n" for character in text):
                    faults.append(f"{path}:{row.number}: column {column!r} has a control character: {text[:40]!r}.")
    if faults:
        raise HapaxError(table_faults(faults, f"Correct these cells; at most {LONGEST_CELL} characters are read."))


MOST_FAULTS = 10
"""Faults of a table that a message lists."""


def table_faults(faults: Sequence[str], remedy: str) -> str:
    """The faults of a table, one line each, with what to do about them."""
    listed = list(faults[:MOST_FAULTS])
    if len(faults) > MOST_FAULTS:
        listed.append(f"{len(faults) - MOST_FAULTS} more faults.")
    return "\n".join((*listed, remedy))
