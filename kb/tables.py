"""Tables of other programs as facts: CSV, TSV, JSON lines, Parquet, SQLite tables and data frames.

A mapping says which columns are the arguments of which predicate, so that one table can give facts of several.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import accumulate, compress, islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hapax.grammar.arguments import ARROW, checked, is_table
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Setting
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.foreign_files import (
    LONGEST_CELL,
    arrow_table,
    check_columns,
    parquet_table,
    sqlite_table,
    text_lines,
)
from hapax.kb.intake import EncodedColumn, FactIntake, ImportReport, RulesForFacts, short
from hapax.kb.store import KnowledgeBase
from hapax.kb.values import LONGEST_TEXT

_BATCH = 500
"""Rows that are mapped at once: fewer than 700, from which on Python's collector would walk through each batch."""

_BATCH_LENGTH = 16 << 20
"""Characters in the texts of a batch from which on it takes no more rows."""

_PLAIN_TEXTS = re.compile(r"(?:[A-Za-z][\w .,;:()&/'-]*(?<! )\n)*", re.ASCII).fullmatch
"""Matches lines that are texts as they stand, whatever form the table has, and that JSON writes between quotes."""

# Not `007` and `-0`, whose JSON differs from the cell; cells of more digits are read one by one.
_INTEGERS = re.compile(r"(?:(?:-?[1-9][0-9]{0,17}|0)\n)*").fullmatch

_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")
"""Byte order marks of UTF-16, read as UTF-8 with `surrogateescape`."""

_MISSING = ("NAType", "NaTType")
"""Names of the classes of pandas' missing values, which need no pandas to be recognised."""

_NARROW = ("float16", "float32")
"""Types of numpy's floats that show fewer digits than Python's."""

_NAMES_SHOWN = 100
"""Names of fields that are remembered for the message about one that no JSON object has."""

Row: TypeAlias = Sequence[object]
_Batch: TypeAlias = tuple[Sequence[int], Sequence[Row]]
"""Numbers of rows, and these rows."""

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class Fixed(BaseModel):
    """An argument that is the same in all facts."""

    model_config = ConfigDict(extra="forbid", strict=True)
    value: str | int


class ColumnsOfFact(BaseModel):
    """A predicate, and the column or the fixed value of each of its arguments."""

    model_config = ConfigDict(extra="forbid", strict=True)
    # Not beginning with a digit, `_` or one of A-Z: Prolog would read a number or a variable.
    predicate: Annotated[str, Field(pattern=r"^[^\W\dA-Z_]\w*$")]
    columns: Annotated[list[str | Fixed], Field(min_length=1)]


@checked
class TableMapping(BaseModel):
    """The facts that each row of a table gives. `table`: in a SQLite file; `delimiter`: of a CSV file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    facts: Annotated[list[ColumnsOfFact], Field(min_length=1)]
    table: str | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1, pattern=r'[^\r\n"]')] | None = None

    @classmethod
    @checked
    def of(cls, predicate: str, columns: Sequence[str], table: str | None = None) -> TableMapping:
        """The mapping of one predicate. Raises HapaxError if the name cannot be a predicate's."""
        return _validated(
            {"facts": [{"predicate": predicate, "columns": [*columns]}], "table": table},
            str(Setting("mapping.columns")),
        )

    @classmethod
    @checked
    def read(cls, path: Path) -> TableMapping:
        """The mapping in a YAML file. Raises HapaxError with every fault."""
        try:
            content = read_yaml(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as fault:
            raise HapaxError(f"{path} cannot be read: {fault}. Name a readable mapping file.") from fault
        except (yaml.YAMLError, ValueError) as fault:
            raise HapaxError(f"{path} is not YAML: {' '.join(str(fault).split())}. {_EXAMPLE}") from fault
        return _validated(content, str(path))

    @property
    def named_columns(self) -> list[str]:
        """The columns of the table that are arguments of some fact, each once."""
        arguments = [argument for facts in self.facts for argument in facts.columns]
        return list(dict.fromkeys(argument for argument in arguments if isinstance(argument, str)))


_EXAMPLE = "Write, for example: facts: [{predicate: lies_at, columns: [airport, elevation]}]"


def _validated(content: object, place: str) -> TableMapping:
    try:
        return TableMapping.model_validate(content)
    except ValidationError as fault:
        lines = []
        for error in fault.errors():
            where = ".".join(str(part) for part in error["loc"] if part not in ("str", "Fixed"))
            message = error["msg"]
            if error["type"] == "string_pattern_mismatch" and where == "delimiter":
                message = f"{error['input']!r} cannot separate cells; write a character such as ; or \\t"
            elif error["type"] == "string_pattern_mismatch":
                message = f"{error['input']!r} is not a predicate name; write a name like is_allergic_to"
            lines.append(f"{where or 'the file'}: {message}")
        raise HapaxError(f"{place}: {'; '.join(dict.fromkeys(lines))}. {_EXAMPLE}") from fault


@dataclass(frozen=True, slots=True)
class _Table:
    """The columns of a table, and its rows with their numbers. A row shorter than the columns is a fault."""

    columns: Sequence[str]
    batches: Iterator[_Batch]
    decode: Callable[[object], object]
    """The value of a cell as the table has it; texts of CSV files may be numbers."""


def import_table(
    kb: KnowledgeBase,
    source: Any,
    mapping: TableMapping,
    *,
    rules: RulesForFacts | None = None,
    skip_faulty: bool = False,
) -> ImportReport:
    """Import the rows of a table as given facts. `source`: a file, whose ending tells its form, or a table in memory.

    `rules`: those whose declarations the facts must fit. Raises FactsRejected with every faulty row, and imports
    nothing, unless `skip_faulty` is set; HapaxError for a file without the columns of the mapping.
    """
    file = str(source) if isinstance(source, str | Path) else type(source).__name__
    intake = FactIntake(kb, file, rules)
    intake.names_predicates = True
    with extras_named():
        for table in _opened(source, mapping):
            _add_rows(table, mapping, intake)
    return intake.store(skip_faulty)


def import_rows(kb: KnowledgeBase, predicate: str, source: Any, rules: RulesForFacts) -> ImportReport:
    """Import rows of values, or of a table in memory, as given facts of one predicate.

    Raises FactsRejected with every faulty row, numbered from 1, and then imports nothing.
    """
    intake = FactIntake(kb, f"rows of {predicate}", rules)
    intake.names_predicates = True
    intake.remedy = "Fix these rows, or leave them out."
    with extras_named():
        for line, row in enumerate(_rows(source), 1):
            if isinstance(row, str | bytes | Mapping | Set) or not isinstance(row, Iterable):
                # A text would pass for a row of its letters, a dict for one of its keys, a set in any order.
                kind = type(row).__name__
                intake.add_fault(line, f"{short(row)} is a {kind}, not a row; give a tuple of values", "not a row")
                continue
            try:
                intake.add_fact(line, predicate, list(map(_plain, row)))
            except ValueError as fault:
                intake.add_fault(line, f"{predicate}: {fault}", "faulty cell")
    return intake.store(skip_faulty=False)


def _rows(source: Any) -> Iterator[object]:
    """The rows of a source; of a table in memory in the order of its columns."""
    if not is_table(source):
        yield from source
        return
    for _, rows in _of_memory(source).batches:
        yield from rows


def _of_memory(source: Any) -> _Table:
    # An index of pandas would be a column of Arrow, so its own way comes first.
    if hasattr(source, "itertuples"):
        return _of_frame(source)
    if hasattr(source, ARROW):
        return _of_arrow(source)
    raise HapaxError(
        f"A {type(source).__name__} does not say how its rows are read: it has columns, but no {ARROW}. Make it a "
        "list of tuples, or a table of pandas, polars or pyarrow."
    )


def _of_arrow(source: Any) -> _Table:
    columns, rows = arrow_table(source)
    return _Table(columns, _batches(enumerate(rows, 1)), _plain)


def _opened(source: Any, mapping: TableMapping) -> Iterator[_Table]:
    """The one table of a source, open while it is used."""
    if is_table(source):
        yield _of_memory(source)
        return
    path = Path(source)
    form = path.suffix.lstrip(".").lower()
    opened = _FORMS.get(form)
    if opened is None:
        raise HapaxError(f"{path}: tables are read from {', '.join(sorted(_FORMS))}, not from {form!r} files.")
    with _access(path):
        is_file = path.is_file()
    if not is_file:
        reason = "this is a folder" if path.is_dir() else "there is no such file"
        raise HapaxError(f"{path}: {reason}. Name a readable file.")
    yield from opened(path, mapping)


@contextmanager
def _access(path: Path) -> Iterator[None]:
    """Translate errors of the file system into HapaxError."""
    try:
        yield
    except OSError as fault:
        raise HapaxError(f"{path}: {fault.strerror or fault}. Name a readable file.") from fault


def _add_rows(table: _Table, mapping: TableMapping, intake: FactIntake) -> None:
    places = [_places(facts, table.columns, intake.file) for facts in mapping.facts]
    width = len(table.columns)
    for batch in table.batches:
        lines, rows = _of_width(width, batch, intake)
        if not rows:
            continue
        columns = list(zip(*rows, strict=True))
        for facts, arguments in zip(mapping.facts, places, strict=True):
            encoded = []
            for argument in arguments:
                if isinstance(argument, Fixed):
                    encoded.append(EncodedColumn.of([argument.value] * len(lines)))
                else:
                    encoded.append(_column(columns[argument], table.decode))
            intake.add_rows(facts.predicate, lines, encoded)


def _of_width(width: int, batch: _Batch, intake: FactIntake) -> _Batch:
    """The rows that have as many cells as the header; the others become faults."""
    lines, rows = batch
    if {*map(len, rows)} <= {width}:
        return lines, rows
    for line, row in zip(lines, rows, strict=True):
        if len(row) < width:
            intake.add_fault(line, f"the row has {len(row)} of {width} cells; add the missing ones", "short row")
        elif len(row) > width:
            message = f"the row has {len(row)} cells and the header {width}; quote cells that hold the separator"
            intake.add_fault(line, message, "long row")
    sound = [len(row) == width for row in rows]
    return list(compress(lines, sound)), list(compress(rows, sound))


def _batches(rows: Iterable[tuple[int, Row]]) -> Iterator[_Batch]:
    """Numbered rows in batches, which are smaller where the texts are long."""
    lines: list[int] = []
    found: list[Row] = []
    length = 0
    for line, row in rows:
        lines.append(line)
        found.append(row)
        for cell in row:
            if type(cell) is str:
                length += len(cell)
        if len(lines) == _BATCH or length > _BATCH_LENGTH:
            yield lines, found
            lines, found, length = [], [], 0
    if lines:
        yield lines, found


def _places(facts: ColumnsOfFact, columns: Sequence[str], file: str) -> list[int | Fixed]:
    """The place of each argument's column. Raises HapaxError for a column that the table lacks or has twice."""
    places: list[int | Fixed] = []
    for argument in facts.columns:
        if isinstance(argument, Fixed):
            places.append(argument)
            continue
        check_columns([argument], columns, f"{file}:1")
        places.append(columns.index(argument))
    return places


def _column(cells: Sequence[object], decode: Callable[[object], object]) -> EncodedColumn:
    """The encoded column. Columns of plain texts or of integers, which most are, are recognised as a whole."""
    if set(map(type, cells)) == {str}:
        written: Any = cells
        lines = "\n".join((*written, ""))
        # In a column of so few characters no text is too long.
        if len(lines) <= LONGEST_TEXT and lines.count("\n") == len(
            cells
        ):  # no cell has a line break, so each line is a cell
            if _PLAIN_TEXTS(lines):
                return EncodedColumn.of_plain_texts(written)
            # Digits in a CSV cell are a number; in a typed table a text of digits stays a text.
            if decode is not _plain and _INTEGERS(lines):
                return EncodedColumn.of_integers(written)
    decoded: list[object] = []
    for cell in cells:
        try:
            decoded.append(decode(cell))
        except ValueError as fault:
            decoded.append(fault)
    return EncodedColumn.of(decoded)


def _of_csv(path: Path, mapping: TableMapping) -> Iterator[_Table]:
    from hapax.kb.exchange import parse_cell

    def decode(cell: object) -> object:
        text = str(cell)
        return parse_cell(text) if text.strip() else None

    limit = csv.field_size_limit(LONGEST_CELL)
    try:
        # A byte that is not UTF-8 becomes a lone surrogate, which is then reported as a fault of its row.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            header_line = stream.readline(LONGEST_CELL)
            if header_line.startswith(_UTF_16):
                raise HapaxError(f"{path} is UTF-16, not UTF-8. Save the table as UTF-8.")
            stream.seek(0)
            delimiter = mapping.delimiter or ("\t" if path.suffix.lower() == ".tsv" else _delimiter(header_line))
            reader = csv.reader(text_lines(stream, str(path)), delimiter=delimiter, strict=True)
            header = next(reader, None)
            if not header:
                raise HapaxError(f"{path} has no header. Its first row should name the columns.")
            yield _Table([cell.strip() for cell in header], _csv_batches(reader, path), decode)
    except OSError as fault:
        raise HapaxError(f"{path}: {fault.strerror}. Name a readable file.") from fault
    finally:
        csv.field_size_limit(limit)  # the limit belongs to the whole process


def _delimiter(header: str) -> str:
    """The separator of a header: a comma, unless the header has none and has tabs, semicolons or vertical bars."""
    return next((mark for mark in (",", "\t", ";", "|") if mark in header), ",")


def _csv_batches(reader: Any, path: Path) -> Iterator[_Batch]:
    """Rows with their first lines, but for those of empty cells. Raises HapaxError for a row that is not valid CSV."""
    line = reader.line_num + 1
    try:
        while rows := list(islice(reader, _BATCH)):
            lines: Sequence[int] = range(line, line + len(rows))
            if reader.line_num + 1 - line != len(rows):  # some cell has a line break
                # Each row begins on the line after the last line of the row before it.
                lines = list(accumulate((1 + _extra_lines(row) for row in rows[:-1]), initial=line))
            line = reader.line_num + 1
            if not all(map(any, rows)):
                filled = [any(row) for row in rows]
                lines, rows = list(compress(lines, filled)), list(compress(rows, filled))
            yield lines, rows
    except csv.Error as fault:
        raise HapaxError(
            f"{path}:{reader.line_num}: not valid CSV: {fault}. Double each quotation mark inside a quoted cell. "
            "Nothing was imported."
        ) from fault


def _extra_lines(row: Sequence[str]) -> int:
    """Line breaks inside the cells of a row."""
    written = "".join(row)
    if "\n" not in written and "\r" not in written:
        return 0
    return sum(len(_LINE_BREAK.findall(cell)) for cell in row)


def _of_json_lines(path: Path, mapping: TableMapping) -> Iterator[_Table]:
    """Objects, one per line. The columns are those of the mapping; an object without one has an empty cell."""
    columns = mapping.named_columns
    missing = set(columns)
    others: dict[str, None] = {}

    def rows(stream: Iterable[str]) -> Iterator[tuple[int, Row]]:
        for line, text in enumerate(stream, 1):
            if not text.strip():
                continue
            try:
                entry = json.loads(text, parse_float=Decimal)
            except (ValueError, RecursionError) as fault:
                raise HapaxError(f"{path}:{line}: not valid JSON: {fault}. Nothing was imported.") from fault
            if not isinstance(entry, dict):
                raise HapaxError(f"{path}:{line}: not a JSON object. Write one object per line. Nothing was imported.")
            if missing:
                # Other names are of interest only while some column was in no object.
                missing.difference_update(entry)
                others.update(dict.fromkeys(islice(entry, _NAMES_SHOWN)) if len(others) < _NAMES_SHOWN else {})
            yield line, [entry.get(column) for column in columns]
        if others and missing:
            check_columns([min(missing)], list(others), str(path))

    with _access(path), path.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
        yield _Table(columns, _batches(rows(text_lines(stream, str(path)))), _plain)


def _of_sqlite(path: Path, mapping: TableMapping) -> Iterator[_Table]:
    columns = mapping.named_columns
    with sqlite_table(path, mapping.table, columns) as rows:
        yield _Table(columns, _batches(enumerate(rows, 1)), _plain)


def _of_parquet(path: Path, mapping: TableMapping) -> Iterator[_Table]:
    columns, rows = parquet_table(path, mapping.named_columns)
    yield _Table(columns, _batches(enumerate(rows, 1)), _plain)


def _of_frame(frame: Any) -> _Table:
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    # Pandas gives Python's floats, which show further digits of narrow ones; numpy's own show theirs (see `_plain`).
    columns = [column.to_numpy() if str(column.dtype) in _NARROW else column for column in columns]
    rows = enumerate(zip(*columns, strict=True), 1)
    return _Table([str(name) for name in frame.columns], _batches(rows), _plain)


def _plain(cell: object) -> object:
    """The value of a typed cell: whole floats are integers, other floats the decimals that they show.

    Dates and times are texts in ISO 8601, a date with the time 00:00:00 the date alone. Raises ValueError for anything
    else but texts and numbers.
    """
    if isinstance(cell, str | int | Decimal | None) and not isinstance(cell, bool):
        return cell
    if type(cell).__name__ in _MISSING:
        return None
    if isinstance(cell, datetime):
        return cell.isoformat().removesuffix("T00:00:00")
    if isinstance(cell, date | time):
        return cell.isoformat()
    number = cell.item() if hasattr(cell, "item") else cell  # numpy's numbers
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    if isinstance(number, float):
        if math.isnan(number):  # a missing value of a data frame
            return None
        shown = str(cell) if type(cell).__name__ in _NARROW else repr(number)
        # Infinity becomes a decimal, too, which `values.refusal` then names.
        return int(number) if number.is_integer() else Decimal(shown)
    raise ValueError(f"{type(cell).__name__} is neither a text nor a number; turn it into one")


_FORMS: dict[str, Callable[[Path, TableMapping], Iterator[_Table]]] = {
    "csv": _of_csv,
    "tsv": _of_csv,
    "txt": _of_csv,
    "jsonl": _of_json_lines,
    "ndjson": _of_json_lines,
    "parquet": _of_parquet,
    "db": _of_sqlite,
    "sqlite": _of_sqlite,
    "sqlite3": _of_sqlite,
}
"""Readers of tables by the ending of the file."""
