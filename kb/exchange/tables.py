"""Facts from files and tables: CSV, TSV, JSON lines, Parquet, SQLite tables and data frames.

A source gives rows, and a mapping says which columns are the arguments of which predicate, so one table can give facts
of several. In a file of facts the predicate is a column, too: a CSV row is `predicate,argument,...`. A first row that
begins with `predicate` is a header. If it numbers its columns (`argument1`, `arg2`), they may come in any order and
among other columns; each row then has a cell for every column, empty where its predicate has fewer arguments. Empty
cells at the end of a row are ignored, since spreadsheets pad rows with them.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from sys import getsizeof
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

from hapax.grammar.arguments import ARROW, ArgumentRejected, is_table
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.values.moments import Timed, iso_text
from hapax.grammar.writing.words import counted, short, some
from hapax.kb.exchange import values
from hapax.kb.exchange.csv_text import cell_values
from hapax.kb.exchange.foreign_files import (
    LONGEST_CELL,
    arrow_table,
    check_columns,
    parquet_table,
    sqlite_table,
    text_lines,
    text_size,
)
from hapax.kb.exchange.intake import FactIntake, ImportReport, RulesForFacts
from hapax.kb.exchange.values import FactRefused, Unreadable
from hapax.kb.store import KnowledgeBase

if TYPE_CHECKING:
    from hapax.kb.exchange.mappings import TableMapping

_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")
"""Byte order marks of UTF-16, read as UTF-8 with `surrogateescape`."""

_MISSING = ("NAType", "NaTType")
"""Names of the classes of pandas' missing values, which need no pandas to be recognised."""

_NARROW = ("float16", "float32")
"""Types of numpy's floats that show fewer digits than Python's."""

# `argument1`, `arg 2`, `arg_3` ... up to 99.
_NUMBERED = re.compile(r"arg(?:ument)?[ _]?([1-9][0-9]?)")

_QUOTED = re.compile('"[^"]*"')

_ROWS = 50
"""Rows that are read before their size is looked at, as they may be long."""

BATCH = 500
"""Rows of a batch: fewer than 700, from which on Python's collector would walk them."""

_BATCH_BYTES = 16 << 20
"""Bytes of a batch from which on it takes no more rows."""

_FRAME_ROWS = 10_000
"""Rows of a data frame whose cells are objects of Python at a time."""

_FIELDS = ("predicate", "arguments", "types", "source", "probability")
"""Fields of an exported JSONL line. An import reads the first three: imported facts are given ones."""

_PLAIN = frozenset((str, int, Decimal, type(None)))
"""Types of cells that are values, or empty."""

Row: TypeAlias = Sequence[Any]
_Fact: TypeAlias = tuple[int, Any, Any, Any]
"""Line, predicate, arguments, and types or None."""
Source: TypeAlias = Any
"""A path of a file, a text stream of facts, or a table in memory."""


class RowFaults(Protocol):
    """Takes the faults of rows. `file`: name of their source; `progress`: called with what is read, and the total."""

    file: str

    @property
    def progress(self) -> Callable[[int, int], None] | None: ...

    def add_fault(self, line: int, message: str, kind: str = "not a fact") -> None: ...


@dataclass(frozen=True, slots=True)
class OpenTable:
    """The columns of a table, and its rows with their numbers. A row of another width is a fault.

    `values`: what the cells of a column mean: None is an empty one, and `Unreadable` no value. `total`, `done`: bytes
    of a text, and how many are read; otherwise the number of rows. 0 if unknown.
    """

    columns: Sequence[str]
    rows: Iterable[tuple[int, Row]]
    values: Callable[[Sequence[Any]], Sequence[Any]]
    total: int = 0
    done: Callable[[], int] | None = None

    def batches(self, progress: Callable[[int, int], None] | None = None) -> Iterator[list[tuple[int, Row]]]:
        """The rows in batches of bounded number and size. `progress` gets how much is read, and of how much."""
        progress = progress if self.total else None
        rows, count = iter(self.rows), 0
        while True:
            batch: list[tuple[int, Row]] = []
            size, before = 0, self.done() if self.done else 0
            while len(batch) < BATCH and size < _BATCH_BYTES and (part := list(islice(rows, _ROWS))):
                batch += part
                cells = chain.from_iterable(row for _, row in part)
                size = self.done() - before if self.done else size + sum(map(getsizeof, cells))
            if not batch:
                break
            yield batch
            count += len(batch)
            if progress:
                # A file may grow while it is read.
                progress(min(self.done() if self.done else count, self.total), self.total)
        if progress:
            progress(self.total, self.total)


def import_facts(
    kb: KnowledgeBase,
    source: Source,
    *,
    mapping: TableMapping | None = None,
    form: str | None = None,
    skip_faulty: bool = False,
    same_key: str = "refuse",
    rules: RulesForFacts | None = None,
) -> ImportReport:
    """Import the rows of a file or table as given facts. Without `mapping` it is a file or stream of facts.

    `form` of a file of facts: `csv` or `jsonl`; None takes it from the file name. `same_key`: see `FactIntake.store`.
    `rules`: those whose declarations the facts must fit. Raises FactsRejected with every faulty row, and imports
    nothing, unless `skip_faulty` is set; HapaxError for a file that cannot be read or lacks a column.
    """
    is_path = isinstance(source, str | Path)
    name = str(source) if is_path else getattr(source, "name", type(source).__name__)
    with FactIntake(kb, str(name), rules) as intake, extras_named():
        if mapping is None:
            _add_facts(source, form or Path(intake.file).suffix.lstrip(".").lower(), intake)
        else:
            with opened(source, intake, mapping.named_columns, mapping.table, mapping.delimiter) as table:
                add_rows(table, mapping, intake)
        return intake.store(skip_faulty, same_key)


def import_rows(
    kb: KnowledgeBase, predicate: str, source: Any, rules: RulesForFacts, same_key: str = "refuse"
) -> ImportReport:
    """Import rows of values, or of a table in memory, as given facts of one predicate. `same_key`: as `import_facts`.

    Raises FactsRejected with every faulty row, numbered from 1, and then imports nothing.
    """
    with FactIntake(kb, f"rows of {predicate}", rules) as intake, extras_named():
        intake.remedy = "Fix these rows, or leave them out."
        rows = _in_memory(source).rows if is_table(source) else _rows(source, intake)
        for batch in OpenTable((), rows, typed_values).batches():
            intake.add_facts([(line, predicate, row, None) for line, row in batch], plain_values)
        return intake.store(skip_faulty=False, same_key=same_key)


def _rows(source: Iterable[Any], intake: FactIntake) -> Iterator[tuple[int, Row]]:
    """Rows of Python with their numbers; what is no row is a fault."""
    for line, row in enumerate(source, 1):
        if isinstance(row, list | tuple):
            yield line, row
        elif isinstance(row, str | bytes | Mapping | Set) or not isinstance(row, Iterable):
            # A text would pass for a row of its letters, a dict for one of its keys, a set in any order.
            kind = type(row).__name__
            intake.add_fault(line, f"{short(row)} is a {kind}, not a row; give a tuple of values", "not a row")
        else:
            yield line, tuple(row)


# -- tables with columns of their own


def add_rows(table: OpenTable, mapping: TableMapping, intake: FactIntake) -> None:
    """Add the facts of a table's rows. Raises HapaxError for a column or predicate that is not there."""
    check_columns(mapping.named_columns, table.columns, f"{intake.file}:1")
    kinds = []
    for facts in mapping.facts:
        names = tuple(map(str, facts.columns))
        if facts.key:
            intake.add_key(facts.predicate, names, facts.key_places)
        try:
            kinds.append((intake.kind(facts.predicate, len(facts.columns)), names, facts.columns))
        except FactRefused as refused:
            raise HapaxError(f"{intake.file}: {refused}. Correct the predicate or its columns.") from refused
    places, width = {name: table.columns.index(name) for name in mapping.named_columns}, len(table.columns)
    for batch in table.batches(intake.progress):
        lines, rows = zip(*batch, strict=True)
        if set(map(len, rows)) != {width}:
            for line, row in batch:
                if len(row) != width:
                    add_width_fault(line, row, width, intake)
            fitting = [(line, row) for line, row in batch if len(row) == width]
            if not fitting:
                continue
            lines, rows = zip(*fitting, strict=True)
        cells = list(zip(*rows, strict=True))
        columns = {name: table.values(cells[place]) for name, place in places.items()}
        for kind, names, arguments in kinds:
            found = [columns[name] if isinstance(name, str) else [name.value] * len(lines) for name in arguments]
            intake.add_columns(lines, kind, found, names, mapping.empty)


@contextmanager
def opened(
    source: Source,
    intake: RowFaults,
    wanted: Sequence[str] | None = None,
    name: str | None = None,
    delimiter: str | None = None,
) -> Iterator[OpenTable]:
    """The table of a source, open while it is used, with the wanted columns at least; None: all of them.

    `name`: of the table in a SQLite file. `delimiter`: of a CSV file, otherwise as its header shows. All columns of
    JSON objects are those of the first. Raises HapaxError for a file that cannot be read.
    """
    if is_table(source):
        yield _in_memory(source, wanted)
        return
    path = Path(source)
    with _readable(path):
        path.open("rb").close()
    form = path.suffix.lstrip(".").lower()
    if form in ("csv", "tsv", "txt"):
        with _text(path) as stream:
            rows = _csv_rows(stream, intake, delimiter or ("\t" if form == "tsv" else None))
            _, header = next(rows, (0, []))
            if not header:
                raise HapaxError(f"{path} has no header. Its first row should name the columns.")
            yield _text_table([cell.strip() for cell in header], rows, _foreign_values, stream)
    elif form in ("jsonl", "ndjson"):
        with _text(path) as stream:
            objects = _objects(stream, wanted, intake)
            if wanted is None:
                line, first = next(objects, (0, {}))
                objects, wanted = chain([(line, first)] if first else [], objects), list(first)
            columns = list(wanted)
            cells = ((line, [entry[name] for name in columns]) for line, entry in objects)
            yield _text_table(columns, cells, typed_values, stream)
    elif form == "parquet":
        columns, found, count = parquet_table(path, wanted)
        yield OpenTable(columns, enumerate(found, 1), typed_values, count)
    elif form in ("db", "sqlite", "sqlite3"):
        with sqlite_table(path, name, wanted, intake.progress is not None) as (columns, found, count):
            yield OpenTable(columns, enumerate(found, 1), typed_values, count)
    else:
        _refuse_rules(path, form)
        known = "csv, db, jsonl, ndjson, parquet, sqlite, sqlite3, tsv, txt"
        raise ArgumentRejected(
            f"{path}: tables are read from {known}, not from {form!r} files. Save the table as one of these."
        )


def _text_table(
    columns: Sequence[str],
    rows: Iterable[tuple[int, Row]],
    values_of: Callable[[Sequence[Any]], Sequence[Any]],
    stream: IO[str],
) -> OpenTable:
    """A table in a text, of whose file it is known how much is read."""
    size = text_size(stream)
    done = stream.buffer.tell if size and isinstance(stream, TextIOWrapper) else None
    return OpenTable(columns, rows, values_of, size if done else 0, done)


_foreign_values = partial(cell_values, foreign=True)
"""Values of cells that a person or another program wrote."""


def _refuse_rules(path: str | Path, form: str) -> None:
    if form in ("rules", "pl", "lp"):
        raise ArgumentRejected(
            f"{path} has facts and rules as text, and is no table.",
            Remedy("{} stores its facts and what follows.", Operation("derive", str(path))),
        )


def add_width_fault(line: int, cells: Row, width: int, intake: RowFaults, reason: str = "") -> None:
    """Add the fault of a row with fewer or more cells than the table has columns."""
    fact = f"the row has {counted(len(cells), 'cell')} where the header has {width}{reason}"
    if len(cells) < width:
        intake.add_fault(line, f"{fact}; add the missing argument, or an empty cell if there is none", "short row")
    else:
        intake.add_fault(line, f"{fact}; quote cells that hold the separator, or name all columns", "long row")


# -- files of facts


def _add_facts(source: Source, form: str, intake: FactIntake) -> None:
    if form not in ("csv", "jsonl"):
        _refuse_rules(intake.file, form)
        raise ArgumentRejected(
            f"{intake.file}: facts are imported from csv or jsonl, not from {form!r}.",
            Remedy(
                "Give the file one of these endings, or say which columns of a table are the arguments: {}.",
                Setting("mapping.columns"),
            ),
        )
    with _text(source) as stream:
        facts = _facts_of_csv(stream, intake) if form == "csv" else _facts_of_objects(stream, intake)
        for batch in _text_table((), ((line, fact) for line, *fact in facts), cell_values, stream).batches(
            intake.progress
        ):
            intake.add_facts([(line, *fact) for line, fact in batch])


def _facts_of_csv(stream: IO[str], intake: FactIntake) -> Iterator[_Fact]:
    """The facts of rows whose predicate is a column: the one that a header names, else the first."""
    rows = _csv_rows(stream, intake, ",")
    first = next(rows, None)
    if first is None:
        return
    places = _header(first[1], intake)
    if places is None:
        intake.names_predicates = False
        rows = chain([first], rows)
    width, wanted = len(first[1]), max(places or [-1]) + 1
    for line, cells in rows:
        chosen = [cells[place] if place < len(cells) else "" for place in places] if places else cells
        predicate = chosen[0].strip()
        arguments = list(cell_values(chosen[1:])) if len(chosen) > 1 else []
        width_of_row = intake.row_width(predicate)
        while len(arguments) > width_of_row and arguments[-1] is None:
            arguments.pop()
        if places and any(map(str.strip, cells[width:])):
            add_width_fault(line, cells, width, intake)
        elif len(cells) < wanted and (indicator := f"{predicate}/{len(arguments)}") not in intake.known:
            # The row may have lost an argument.
            add_width_fault(line, cells, wanted, intake, f", and {indicator} is not known")
        else:
            yield line, predicate, arguments, None


def _header(cells: Sequence[str], intake: FactIntake) -> list[int] | None:
    """The places of the predicate and its arguments in each row; none: all cells, as they are. None: it is no header.

    Raises HapaxError if a column is missing: then no row can be read, even with `skip_faulty`.
    """

    def refused(fact: str) -> HapaxError:
        return HapaxError(f"{intake.file}:1: {fact}. Nothing was imported.")

    names = [cell.strip().lower() for cell in cells]
    # One cell with semicolons or tabs inside: the table was saved with another separator.
    if len(names) == 1 and re.search(r"\S[;\t]", names[0]):
        raise refused("the cells are not separated by commas; save the file with commas")
    numbered = [(int(match[1]), place) for place, name in enumerate(names) if (match := _NUMBERED.fullmatch(name))]
    # `predicate` alone can head facts of any number of arguments; without it the row is the first fact.
    if not numbered:
        return [] if names[0] == "predicate" else None
    if "predicate" not in names:
        raise refused("the header has no column `predicate`; give this name to the column of predicates")
    places = dict(numbered)
    if len(places) < len(numbered):
        raise refused("the header gives two arguments the same number; number them 1, 2, 3 ...")
    if missing := set(range(1, len(places) + 1)) - places.keys():
        raise refused(f"the header has no column `argument{min(missing)}`; number the arguments 1, 2, 3 ...")
    used = [names.index("predicate"), *(places[number] for number in sorted(places))]
    unused = (cell.strip() for place, cell in enumerate(cells) if place not in used)
    intake.unused.update({name: 1 for name in unused if name})
    return used


def _facts_of_objects(stream: IO[str], intake: FactIntake) -> Iterator[_Fact]:
    """The facts of JSON objects whose predicate is a field."""
    for line, entry in _objects(stream, ("predicate", "arguments"), intake):
        for name in entry.keys() - _FIELDS if len(entry) > 2 else ():
            intake.unused.setdefault(name, line)
        yield line, entry["predicate"], entry["arguments"], entry.get("types")


# -- rows of texts


@contextmanager
def _text(source: Source) -> Iterator[IO[str]]:
    """The text of a file, open while it is used, or the stream itself."""
    if not isinstance(source, str | Path):
        yield source
        return
    # A byte that is not UTF-8 becomes a lone surrogate, which is then reported as a fault of its row.
    with _readable(source), Path(source).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        yield stream


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Translate errors of the file system into HapaxError."""
    try:
        yield
    except FileNotFoundError as fault:
        raise ArgumentRejected(f"{path}: there is no such file. Name a readable file.") from fault
    except IsADirectoryError as fault:
        raise ArgumentRejected(f"{path} is a folder. Name a file.") from fault
    except OSError as fault:
        raise HapaxError(f"{path}: {fault.strerror or fault}. Name a readable file.") from fault


def _csv_rows(stream: IO[str], intake: RowFaults, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Rows with their first lines, without those of blanks. A row that is not valid CSV is a fault.

    `delimiter`: None: the one of comma, tab, semicolon and vertical bar that the first line has most often.
    """
    lines = iter(text_lines(stream, intake.file))
    first = next(lines, "")
    if first.startswith(_UTF_16):
        raise HapaxError(f"{intake.file} is UTF-16, not UTF-8. Save it as UTF-8.")
    if "\0" in first:
        raise ArgumentRejected(f"{intake.file} is not a text: it has zero bytes. Save the table as CSV, in UTF-8.")
    delimiter = delimiter or max(",\t;|", key=_QUOTED.sub("", first).count)
    limit = csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    try:
        while True:
            line = reader.line_num + 1
            try:
                for cells in reader:
                    if cells and (cells[0].strip() or any(map(str.strip, cells))):
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                # The next line begins a new row.
                intake.add_fault(line, f"not valid CSV: {error}; double each quotation mark inside a quoted cell")
            else:
                return
    finally:
        csv.field_size_limit(limit)  # the limit belongs to the whole process


def _objects(stream: IO[str], wanted: Sequence[str] | None, intake: RowFaults) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a text, one a line, with the wanted fields; None: those of the first. Others are faults."""
    for line, text in enumerate(text_lines(stream, intake.file), 1):
        if not text.strip():
            continue
        try:
            entry = values.load_json(text)
        except ValueError as error:
            intake.add_fault(line, f"not valid JSON: {error}; write one object a line")
            continue
        if not isinstance(entry, dict):
            intake.add_fault(line, "not a JSON object; write one object a line")
        elif missing := [name for name in wanted or () if name not in entry]:
            others = some(map(short, entry)) or "nothing"
            intake.add_fault(
                line, f"the object has no {' and no '.join(missing)}, only {others}; add the missing field"
            )
        else:
            wanted = [*entry] if wanted is None else wanted
            yield line, entry


# -- tables in memory, and their cells


def _in_memory(source: Any, wanted: Sequence[str] | None = None) -> OpenTable:
    # An index of pandas would be a column of Arrow, so its own way comes first.
    if hasattr(source, "itertuples"):
        names = [str(name) for name in source.columns]
        # All of them where one is missing: their names help to find it.
        kept = list(range(len(names)))
        if wanted is not None and set(wanted) <= set(names):
            kept = [names.index(name) for name in wanted]
        return OpenTable([names[place] for place in kept], enumerate(_frame_rows(source, kept), 1), typed_values)
    if hasattr(source, ARROW):
        names, cells = arrow_table(source)
        return OpenTable(names, enumerate(cells, 1), typed_values)
    raise HapaxError(
        f"A {type(source).__name__} does not say how its rows are read: it has columns, but no {ARROW}. Make it a "
        "list of tuples, or a table of pandas, polars or pyarrow."
    )


def _frame_rows(frame: Any, places: Sequence[int]) -> Iterator[Row]:
    """The rows of a data frame of pandas, of the columns at these places."""
    for begin in range(0, len(frame), _FRAME_ROWS):
        columns = [frame.iloc[begin : begin + _FRAME_ROWS, place] for place in places]
        # Pandas gives Python's floats, which show further digits of narrow ones; numpy's show theirs (see `_plain`).
        narrow = [str(column.dtype) in _NARROW for column in columns]
        cells = [
            column.to_numpy() if is_narrow else column.astype(object)
            for column, is_narrow in zip(columns, narrow, strict=True)
        ]
        yield from zip(*cells, strict=True)


def plain_values(cells: Sequence[Any]) -> Sequence[Any]:
    """The values of cells of a column with types, see `_plain`."""
    kinds = set(map(type, cells))
    if kinds <= _PLAIN:
        return cells
    # Of floats equal ones are read once, and NaN, which equals nothing, as often as it is there.
    known = {cell: _plain(cell) for cell in set(cells)} if kinds == {float} else {}
    return list(map(known.__getitem__ if known else _plain, cells))


def typed_values(cells: Sequence[Any]) -> Sequence[Any]:
    """The same of a table, where a text of blanks is an empty cell."""
    found = plain_values(cells)
    if all(map(str.strip, (cell for cell in found if type(cell) is str))):
        return found
    return [None if type(cell) is str and not cell.strip() else cell for cell in found]


def _plain(cell: object) -> object:
    """The value of a typed cell: whole floats are integers, other floats the decimals that they show.

    Dates, times and durations are texts in ISO 8601, a date with the time 00:00:00 the date alone. True and false are
    texts, too. Anything else but texts and numbers is `Unreadable`.
    """
    if type(cell) is float and cell.is_integer():
        return int(cell)
    if cell is None or (isinstance(cell, str | int | Decimal) and not isinstance(cell, bool)):
        return cell
    if type(cell).__name__ in _MISSING:
        return None
    if isinstance(cell, datetime):
        return iso_text(cell).removesuffix("T00:00:00")
    if isinstance(cell, Timed):
        return iso_text(cell)
    number = cell.item() if hasattr(cell, "item") else cell  # numpy's numbers
    if isinstance(number, int):
        return str(number).lower() if isinstance(number, bool) else number
    if isinstance(number, float):
        if math.isnan(number):  # a missing value of a data frame
            return None
        shown = str(cell) if type(cell).__name__ in _NARROW else repr(number)
        # Infinity becomes a decimal, too, which `values.refusal` then names.
        return int(number) if number.is_integer() else Decimal(shown)
    return Unreadable(f"{type(cell).__name__} is neither a text nor a number; turn it into one")
