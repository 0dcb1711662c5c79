"""Tables in files of other programs, read within bounds: a small file may unpack to any size, or run SQL of its own.

Memory holds one batch of rows, whose cells have at most `LONGEST_CELL` bytes each. Ctrl-C and SIGTERM end the reading
at once.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.writing.words import some
from hapax.kb.connection import obey_signals, reading_uri, stoppable, sweep
from hapax.kb.exchange.values import LONGEST_TEXT

LONGEST_CELL = 4 * LONGEST_TEXT
"""Bytes of a cell: a character takes up to four. Texts that are too long for a fact but not for this are faults."""

LONGEST_LINE = 64 << 20
"""Characters of a line of a text file."""

MOST_PACKED = 500
"""Times its size in the file that the column of a Parquet file may unpack to, beyond the first 64 MiB."""

_FREE_BYTES = 64 << 20

_BATCH_BYTES = 16 << 20
"""Bytes of a batch of rows of a Parquet file, by the mean size of its cells."""

Row: TypeAlias = Sequence[Any]


def text_lines(stream: IO[str], place: str) -> Iterable[str]:
    """The lines of a text file. Raises HapaxError for one that is longer than `LONGEST_LINE`."""
    return stream if text_size(stream) <= LONGEST_LINE else _bounded_lines(stream, place)


def text_size(stream: IO[str]) -> int:
    """Bytes of the file of a text; 0 for a pipe, and for a text in memory."""
    try:
        return os.fstat(stream.fileno()).st_size
    except OSError:
        return 0


def _bounded_lines(stream: IO[str], place: str) -> Iterator[str]:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise HapaxError(
                f"{place}:{number}: the line has more than {LONGEST_LINE} characters. Break it up. Nothing was read."
            )
        yield line


def check_columns(wanted: Iterable[str], columns: Sequence[str], place: str) -> None:
    """Raise HapaxError for a wanted column that a table lacks or has twice."""
    for column in wanted:
        if columns.count(column) > 1:
            raise HapaxError(f"{place}: the column {column!r} is there twice. Give each column a name of its own.")
        if column not in columns:
            near = get_close_matches(column, columns, n=1, cutoff=0.6)
            remedy = f"Did you mean {near[0]}?" if near else f"The columns are {some(columns, 20)}."
            raise HapaxError(f"{place}: there is no column {column!r}. {remedy}")


# -- SQLite


@contextmanager
def sqlite_table(
    path: Path, table: str | None, wanted: Sequence[str] | None = None, counts: bool = False
) -> Iterator[tuple[list[str], Iterator[Row], int]]:
    """Names of the wanted columns of a table in another program's SQLite file, its rows and their number.

    `table`: by default the only one. `wanted`: None: all columns. Without `counts` the number is 0.
    Nothing that the file contains is run. Raises HapaxError for a view, a virtual table and a calculated column, whose
    rows its own SQL would make, for a column that is not there and for a cell of more than `LONGEST_CELL` bytes.
    """
    try:
        with closing(sqlite3.connect(reading_uri(path), uri=True)) as connection, stoppable():
            obey_signals(connection)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {setting}")
            name = _stored_table(connection, path, table)
            names = _stored_columns(connection, path, name, wanted)
            # From now on SQLite may read this table and nothing else, whatever the file says that the table is.
            connection.set_authorizer(_only(name))
            columns = ", ".join(map(_quoted, names)) or "1"
            cursor = connection.execute(f"SELECT {columns} FROM main.{_quoted(name)}")  # noqa: S608  quoted
            most, count = _most_rows(path), 0
            if counts:
                bounded = f"SELECT 1 FROM main.{_quoted(name)} LIMIT {most}"  # noqa: S608  quoted
                ((count,),) = connection.execute(f"SELECT count(*) FROM ({bounded})")  # noqa: S608  quoted
            yield names, _counted((row[: len(names)] for row in cursor), path, most), count
    except sqlite3.Error as fault:
        if "too big" in str(fault):
            raise HapaxError(
                f"{path}: a cell of {table} has more than {LONGEST_CELL} bytes. Shorten it, or leave its row out. "
                "Nothing was imported."
            ) from fault
        raise HapaxError(f"{path} cannot be read: {fault}. Give a sound SQLite file.") from fault
    finally:
        sweep(path)


def _stored_table(connection: sqlite3.Connection, path: Path, table: str | None) -> str:
    """The name of the table. Raises HapaxError if the file does not store its rows."""
    listed = connection.execute(
        "SELECT name, type FROM main.sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    )
    kinds = dict(listed.fetchall())
    if table is None and len(kinds) == 1:
        (table,) = kinds
    if table is None or table not in kinds:
        chosen = f"there is no table {table!r}" if table else "no table is named"
        names = [name for name, kind in kinds.items() if kind == "table"]
        raise HapaxError(
            f"{path}: {chosen}.", Remedy("Name one of {} by {}.", some(names, 20), Setting("mapping.table"))
        )
    # SQLite's own reading of the text: `table`, `view`, `virtual`, or `shadow` for a table of a virtual one.
    found = [row[2] for row in connection.execute(f"PRAGMA main.table_list({_quoted(table)})")]
    if found not in (["table"], ["shadow"]):
        kind = "view" if kinds[table] == "view" else "virtual table"
        raise HapaxError(
            f"{path}: {table} is a {kind}, whose rows the file's own SQL would calculate, and that is not run. "
            f"{_copied(path, table)}"
        )
    return table


def _stored_columns(connection: sqlite3.Connection, path: Path, table: str, wanted: Sequence[str] | None) -> list[str]:
    """The wanted columns. Raises HapaxError if one of them is missing or calculated."""
    # The second and the last cell are the name, and 2 if the column is calculated for each reading.
    hidden = {row[1]: row[-1] for row in connection.execute(f"PRAGMA main.table_xinfo({_quoted(table)})")}
    names = list(hidden if wanted is None else wanted)
    check_columns(names, list(hidden), f"{path}:1")
    for column in names:
        if hidden[column] == 2:
            raise HapaxError(
                f"{path}: the column {column} of {table} is calculated by the file's own SQL, and that is not run. "
                f"{_copied(path, table)}"
            )
    return names


def _copied(path: Path, table: str) -> str:
    """The remedy for rows that are not stored."""
    copy = shlex.quote(f"CREATE TABLE copy AS SELECT * FROM {_quoted(table)}")  # noqa: S608  shown, not run
    return f"If you trust the file, copy them by `sqlite3 {shlex.quote(str(path))} {copy}` and name the table copy."


def _only(table: str) -> Callable[..., int]:
    """Authorizer of SQLite that lets a statement read one table and count its rows."""
    allowed = ((sqlite3.SQLITE_READ, table), (sqlite3.SQLITE_FUNCTION, "count"))

    def decide(action: int, name: str | None, second: str | None, *_: str | None) -> int:
        # Of a function the name comes second.
        is_allowed = action == sqlite3.SQLITE_SELECT or (action, name or second) in allowed
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    return decide


def _most_rows(path: Path) -> int:
    """The rows that a file has room for: each takes four bytes at least."""
    logs = (path, path.with_name(f"{path.name}-wal"))
    return sum(log.stat().st_size for log in logs if log.exists()) // 4


def _counted(rows: Iterable[Row], path: Path, most: int) -> Iterator[Row]:
    """The rows. Raises HapaxError if they are more than the file has room for: its pages then name each other."""
    for number, row in enumerate(rows):
        if number >= most:
            raise HapaxError(f"{path} is damaged: it gives more rows than it has room for. Give a sound SQLite file.")
        yield row


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# -- Parquet


def parquet_table(path: Path, wanted: Sequence[str] | None = None) -> tuple[list[str], Iterator[Row], int]:
    """Names of the columns of a Parquet file, its rows and their number. `wanted`: the columns to read; None: all.

    Raises HapaxError for a file that is not sound, for a missing column, for one that unpacks to far more than it takes
    in the file, and for a cell of more than `LONGEST_CELL` bytes.
    """
    with extras_named():
        from pyarrow import parquet
    with _arrow_faults(path), parquet.ParquetFile(path) as file:
        schema, count = file.schema_arrow, file.metadata.num_rows
    columns = list(schema.names if wanted is None else wanted)
    check_columns(columns, schema.names, f"{path}:1")
    texts = [field.name for field in schema if field.name in columns and _is_text(field.type)]
    return columns, _parquet_rows(path, columns, texts), count


def _parquet_rows(path: Path, columns: Sequence[str], texts: Sequence[str]) -> Iterator[Row]:
    from pyarrow import parquet

    number = 1
    # Each text of a dictionary is in memory once, however many rows name it.
    with _arrow_faults(path), parquet.ParquetFile(path, read_dictionary=list(texts)) as file:
        for group in range(file.num_row_groups):
            size = _batch_size(file.metadata.row_group(group), set(columns), path)
            for batch in file.iter_batches(size, row_groups=[group], columns=list(columns)):
                cells = [_cells(batch.column(name), f"{path}:{number}", name) for name in columns]
                yield from zip(*cells, strict=True) if cells else [()] * len(batch)
                number += len(batch)


def arrow_table(source: Any) -> tuple[list[str], Iterator[Row]]:
    """Columns and rows of a table in memory by Arrow's PyCapsule protocol, batch by batch.

    Raises HapaxError for an object that is no table.
    """
    import pyarrow as pa

    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, TypeError) as fault:
        kind = type(source).__name__
        raise HapaxError(f"A {kind} is no table: {fault}. Give a table with a column for each argument.") from fault

    def rows() -> Iterator[Row]:
        for batch in reader:
            yield from zip(*(with_shown_digits(column).to_pylist() for column in batch.columns), strict=True)

    return reader.schema.names, rows()


@contextmanager
def _arrow_faults(path: Path) -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError) as fault:
        raise HapaxError(f"{path} cannot be read: {fault}. Give a sound Parquet file.") from fault


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(
        check(kind) for check in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def _batch_size(group: Any, chosen: set[str], path: Path) -> int:
    """Rows to read at once. Raises HapaxError for a column chunk that is too large for its rows or its packed size."""
    row_bytes = 1
    for place in range(group.num_columns):
        chunk = group.column(place)
        # Of a nested column the path goes on after a point.
        if chunk.path_in_schema.split(".")[0] not in chosen and chunk.path_in_schema not in chosen:
            continue
        unpacked = int(chunk.total_uncompressed_size)
        mean = unpacked // max(1, group.num_rows)
        if mean > LONGEST_CELL:
            raise _too_long(str(path), chunk.path_in_schema)
        if unpacked > max(_FREE_BYTES, MOST_PACKED * int(chunk.total_compressed_size)):
            raise HapaxError(
                f"{path}: the column {chunk.path_in_schema} unpacks to {unpacked} bytes, more than {MOST_PACKED} times "
                "its size in the file. Write the file anew with less compression if you trust it. Nothing was imported."
            )
        row_bytes += mean
    return max(1, min(500, _BATCH_BYTES // row_bytes))


def _cells(column: Any, place: str, name: str) -> list[object]:
    """The cells of a column of a batch. Raises HapaxError if one is too long."""
    import pyarrow as pa
    from pyarrow import compute

    used = None
    if pa.types.is_dictionary(column.type):
        # A dictionary may have a text for each row of the file; only those of this batch are looked at.
        used = column.indices.unique().drop_null()
        column, indices = column.dictionary.take(used), column.indices
    flat = column
    while pa.types.is_list(flat.type) or pa.types.is_large_list(flat.type):
        flat = flat.flatten()
    # Numbers and times are short; a structure is taken as one cell.
    longest = 0 if pa.types.is_primitive(flat.type) else flat.nbytes
    if _is_text(flat.type):
        longest = compute.max(compute.binary_length(flat)).as_py() or 0
    if longest > LONGEST_CELL:
        raise _too_long(place, name)
    shown: list[object] = with_shown_digits(column).to_pylist()
    if used is None:
        return shown
    texts = dict(zip(used.to_pylist(), shown, strict=True))
    return [texts.get(index) for index in indices.to_pylist()]


def _too_long(place: str, column: str) -> HapaxError:
    return HapaxError(
        f"{place}: a cell of the column {column} has more than {LONGEST_CELL} bytes. Shorten it, or leave the column "
        "out. Nothing was imported."
    )


def with_shown_digits(column: Any) -> Any:
    """A column of Arrow, with floats of 32 bits as the floats of 64 bits that show the same digits.

    Widened bit by bit, 3.1 would be 3.0999999046325684.
    """
    import pyarrow as pa

    return column.cast(pa.string()).cast(pa.float64()) if pa.types.is_float32(column.type) else column
