"""Records on an open connection, without the file behind it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.kb import schema
from hapax.kb.atoms.sql_arithmetic import ExactArithmetic
from hapax.kb.atoms.symbols import Symbols
from hapax.kb.connection import translated
from hapax.kb.rows import TableSchema

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
