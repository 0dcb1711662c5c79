"""A SQLite file that reads and writes frozen records, whatever the table: connection, transactions, generic access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy
from hapax.kb import connection, values
from hapax.kb.connection import AppliedMigrations, open_database, sweep, translated
from hapax.kb.rows import OnConflict, TableSchema

R = TypeVar("R")


class FileMoved(HapaxError):  # noqa: N818  says what happened, not that something is faulty
    """The file was renamed, deleted or replaced while it was open; what was written is in a copy."""


# Below SQLite's limit on parameters in every build.
_IDS_PER_QUERY = 500


class RecordStore:
    """An open database file; `path` None keeps it in memory. Use it as a context manager, or `close` it.

    Raises HapaxError when the file is not a knowledge base, is of a later version, or may not be read or written.
    """

    def __init__(self, path: str | Path | None = None, *, read_only: bool = False) -> None:
        self.path = Path(path) if path is not None else None
        self.migrated = AppliedMigrations()
        """The migrations that opening the file has applied."""
        self.database = open_database(self.path, read_only, self.migrated)
        self._read_only = read_only
        self.unreadable: dict[str, None] | None = None
        """Faults of rows that were left out, each once; None: the first such row is an error."""
        self._identity = connection.identity(self.path) if self.path and not read_only else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def place(self) -> str:
        """Name of this database in messages."""
        return str(self.path) if self.path else "the knowledge base in memory"

    @property
    def is_read_only(self) -> bool:
        return self._read_only

    def close(self) -> None:
        """Close the file, and remove its -wal and -shm files unless another process uses them."""
        self.database.close()
        # SQLite removes the files when the last writer closes, but a reader may not.
        if self._read_only and self.path is not None:
            sweep(self.path)

    @contextmanager
    def transaction(self, seconds: float | None = None) -> Iterator[None]:
        """Make all writes inside visible at once, or undo them if an exception leaves the block. Nests.

        Takes the write lock at its beginning, so what is read inside is still true when it is written. `seconds`: how
        long to wait for it; None: a minute. Raises HapaxError if the file was moved, deleted or replaced; what was
        written is then in a copy, which the message names.
        """
        with translated(self.place):
            if self.database.conn.in_transaction:
                # A savepoint, as SQLite does not nest transactions; the outer one commits.
                with self.database.atomic():
                    yield
                return
            # Begun deferred, a write after a read fails at once if another process wrote in between, in spite
            # of the timeout.
            connection.begin(self.database.conn, seconds)
            try:
                yield
                self.database.conn.execute("COMMIT")
            except BaseException:
                self.database.rollback()
                raise
            # After the commit: a file may be moved at any time, and its copy then has these writes, too.
            self._check_place()

    def _check_place(self) -> None:
        """Raise HapaxError if the path no longer names the file that is open."""
        if self.path is None or self._identity is None or connection.identity(self.path) == self._identity:
            return
        copy = connection.rescued(self.database.conn, self.path)
        raise FileMoved(
            f"{self.path}: the file was renamed, deleted or replaced while it was being written, so nothing more is "
            f"asked or stored. Everything stored so far is in {copy}.",
            Remedy("Rename it to {}, and run the same {} again.", self.path.name, CALL),
        )

    def add(self, table: TableSchema[R], records: Iterable[R], on_conflict: OnConflict = OnConflict.KEEP) -> int:
        """Write records in one transaction; returns the number of new or changed rows of the main table."""
        records = list(records)
        if not records:
            return 0
        changed = []
        with self.transaction():
            for part in table.tables:
                rows = [part.row(record) for record in records]
                changed.append(self.write(part.insert(on_conflict), rows))
        return changed[0]

    def select(self, table: TableSchema[R], condition: str = "", parameters: Sequence[object] = ()) -> list[R]:
        """Records in the order they were first written. `condition` begins with WHERE and contains no values."""
        sql = f"{table.select} {condition} ORDER BY {table.name}.rowid"
        return list(self.read_rows(table, self.query(sql, parameters)))

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

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT of ours."""
        with translated(self.place):
            return self.database.conn.execute(sql, tuple(parameters)).fetchall()

    def write(self, sql: str, parameters: Sequence[Sequence[object]]) -> int:
        """Execute a statement of ours once for each set of parameters; returns the number of changed rows."""
        with translated(self.place):
            return self.database.conn.executemany(sql, parameters).rowcount
