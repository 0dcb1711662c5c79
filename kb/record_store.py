"""A SQLite file that reads and writes frozen records, whatever the table: connection, transactions, generic access."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy
from hapax.kb import schema
from hapax.kb.atoms.sql_arithmetic import ExactArithmetic
from hapax.kb.atoms.symbols import Symbols
from hapax.kb.connection import begin, identity, open_database, rescued, sweep, translated
from hapax.kb.exchange import values
from hapax.kb.rows import OnConflict, TableSchema

if TYPE_CHECKING:
    from sqlite_utils import Database


R = TypeVar("R")


class OpenRecords:
    """Reads and writes rows by the SQL of our own modules on an open connection. `place`: its name in messages."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self.connection, self.place = connection, place
        self.unreadable: dict[str, None] | None = None
        """Faults of rows that were left out, each once; None: the first such row is an error."""

    @cached_property
    def symbols(self) -> Symbols:
        """The constants and their tags."""
        return Symbols(self.connection)

    @cached_property
    def arithmetic(self) -> ExactArithmetic:
        """The functions with which SQL on this connection calculates."""
        return ExactArithmetic(self.symbols)

    def has(self, table: str) -> bool:
        """True if the file has a table or view of this name."""
        return bool(self.sql("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def make(self, table: str) -> None:
        """Create a table of `schema.LATE`, if it is not there yet."""
        if not self.has(table):
            for sql in schema.LATE[table]:
                self.sql(sql)

    def read_rows(self, table: TableSchema[R], rows: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """The records of rows. Raises HapaxError for one that cannot be read, unless `unreadable` names it."""
        for row in rows:
            try:
                record = table.read(row)
            except HapaxError as fault:
                self.leave_out(fault)
            else:
                yield record

    def leave_out(self, fault: HapaxError, subject: str = "") -> None:
        """Record the fault of a part that is left out in `unreadable`; raise the fault if that is None."""
        if self.unreadable is None:
            raise fault
        self.unreadable[f"{subject}{fault}"] = None

    def sql(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT of ours."""
        with translated(self.place):
            return self.connection.execute(sql, tuple(parameters)).fetchall()

    def write(self, sql: str, parameters: Sequence[Sequence[object]]) -> int:
        """Execute a statement of ours once for each set of parameters; returns the number of changed rows."""
        with translated(self.place):
            return self.connection.executemany(sql, parameters).rowcount


class FileMoved(HapaxError):  # noqa: N818  says what happened, not that something is faulty
    """The file was renamed, deleted or replaced while it was open; what was written is in a copy."""


# Below SQLite's limit on parameters in every build.
_IDS_PER_QUERY = 500


class RecordStore(OpenRecords):
    """An open database file; `path` None keeps it in memory. Use it as a context manager, or `close` it.

    Raises HapaxError when the file is not a knowledge base, is of a later version, or may not be read or written.
    """

    def __init__(self, path: str | Path | None = None, *, read_only: bool = False) -> None:
        self.path = Path(path) if path is not None else None
        connection = open_database(self.path, read_only)
        super().__init__(connection, str(path) if path is not None else "the knowledge base in memory")
        self.is_read_only = read_only
        self._identity = identity(self.path) if self.path and not read_only else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def database(self) -> Database:
        """The file for sqlite-utils, which describes and changes tables of any program."""
        # Only here: it imports pandas, which takes longer than a command.
        from sqlite_utils import Database

        return Database(self.connection, recursive_triggers=False, execute_plugins=False)

    def close(self) -> None:
        """Close the file, and remove its -wal and -shm files unless another process uses them."""
        self.connection.close()
        # SQLite removes the files when the last writer closes, but a reader may not.
        if self.is_read_only and self.path is not None:
            sweep(self.path)

    @contextmanager
    def transaction(self, seconds: float | None = None) -> Iterator[None]:
        """Make all writes inside visible at once, or undo them if an exception leaves the block. Nests.

        Takes the write lock at its beginning, so what is read inside is still true when it is written. `seconds`: how
        long to wait for it; None: a minute. Raises HapaxError if the file was moved, deleted or replaced; what was
        written is then in a copy, which the message names.
        """
        with translated(self.place):
            is_inner = self.connection.in_transaction
            if is_inner:
                # A savepoint, as SQLite does not nest transactions; the outer one commits.
                self.connection.execute("SAVEPOINT part")
            else:
                # Begun deferred, a write after a read fails at once if another process wrote in between, in spite
                # of the timeout.
                begin(self.connection, seconds)
            try:
                yield
                self.connection.execute("RELEASE part" if is_inner else "COMMIT")
            except BaseException:
                self.symbols.forget()
                if is_inner and self.connection.in_transaction:
                    self.connection.execute("ROLLBACK TO part")
                    self.connection.execute("RELEASE part")
                else:
                    self.connection.rollback()
                raise
            if not is_inner:
                # After the commit: a file may be moved at any time, and its copy then has these writes, too.
                self._check_place()

    def _check_place(self) -> None:
        """Raise HapaxError if the path no longer names the file that is open."""
        if self.path is None or self._identity is None or identity(self.path) == self._identity:
            return
        copy = rescued(self.connection, self.path)
        raise FileMoved(
            f"{self.path}: the file was renamed, deleted or replaced while it was being written, so nothing more is "
            f"asked or stored. Everything stored so far is in {copy}.",
            Remedy("Rename it to {}, and run the same {} again.", self.path.name, CALL),
        )

    def add(self, table: TableSchema[R], records: Iterable[R], on_conflict: OnConflict | None = None) -> int:
        """Write records in one transaction; returns the number of new or changed rows.

        `on_conflict`: what happens to those whose key exists; None: what the table says.
        """
        records = list(records)
        if not records:
            return 0
        rows = [table.row(record) for record in records]
        with self.transaction():
            if table.is_late:
                self.make(table.name)
            return self.write(table.insert(on_conflict or table.on_conflict), rows)

    def select(self, table: TableSchema[R], condition: str = "", parameters: Sequence[object] = ()) -> list[R]:
        """Records in the order they were first written. `condition` begins with WHERE and contains no values."""
        if table.is_late and not self.has(table.name):
            return []
        sql = f"{table.select} {condition} ORDER BY {table.name}.{table.order}"
        return list(self.read_rows(table, self.sql(sql, parameters)))

    def select_in(self, table: TableSchema[R], column: str, wanted: Iterable[str]) -> list[R]:
        """Records whose `column` is one of the wanted texts."""
        # No cell contains a lone surrogate, and SQLite would refuse it as a parameter.
        keys = [key for key in dict.fromkeys(wanted) if values.refusal(key) is None]
        records: list[R] = []
        for start in range(0, len(keys), _IDS_PER_QUERY):
            chunk = keys[start : start + _IDS_PER_QUERY]
            records += self.select(table, f"WHERE {table.name}.{column} IN ({','.join('?' * len(chunk))})", chunk)
        return records

    def matching(self, table: TableSchema[R], **columns: str | None) -> list[R]:
        """Records with these texts in these columns; a column given as None is not compared."""
        wanted = {name: value for name, value in columns.items() if value is not None}
        if any(values.refusal(value) for value in wanted.values()):
            return []
        condition = " AND ".join(f"{table.name}.{name} = ?" for name in wanted)
        return self.select(table, f"WHERE {condition}" if condition else "", list(wanted.values()))

    def first(self, table: TableSchema[R], **columns: str) -> R | None:
        """The first record with these texts in these columns."""
        records = self.matching(table, **columns)
        return records[0] if records else None
