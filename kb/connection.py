"""Opening the file: what may be opened, how it is migrated, and how SQLite's faults are told.

WAL, so that readers never wait for a writer; `synchronous=FULL`, so that an answer once acknowledged survives a power
cut (about 0.2 ms a commit, nothing beside the model call that it keeps); writers wait for each other up to
a minute.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlite_utils import Database

from grammar.errors import HapaxError
from kb import rows, schema

BUSY_SECONDS = 60.0
CACHE_KIB = 64 * 1024
CHECKPOINT_PAGES = 16_000
"""Identities are hashes, so every batch writes all over the indexes: a connection keeps 64 MB of pages, and the WAL is
carried into the file at some 64 MB, when most of its pages have been written several times."""

_WAL_ATTEMPTS = 200

_REMEDIES = (
    ("locked", "another process has been writing for a long time", "End it, or try again when it is done."),
    ("not a database", "the file is no SQLite database", "Name another file, or move this one away."),
    ("readonly", "the file may not be written", "Allow writing, or copy it to a folder of your own."),
    ("unable to open", "the file cannot be opened or created", "Allow writing in its folder, or name another."),
    ("full", "the disk is full", "Free some space and run the same command again; nothing kept is lost."),
    (
        "disk I/O error",
        "the disk did not take or give what it was asked to",
        "Look for space, quota and limits on the size of files, and run the same command again; nothing kept is lost.",
    ),
    ("malformed", "the file is damaged", "Restore it from a copy, or rescue it with `sqlite3 FILE .recover`."),
)


def open_database(path: Path | None, read_only: bool = False) -> Database:
    """The database at `path`, migrated; None: a new one in memory. Raises HapaxError for what is no knowledge base.

    Reading only never creates a file, and works beside a writer and in a folder that may not be written.
    """
    place = str(path) if path else "the knowledge base in memory"
    with translated(place):
        if path is None:
            database = _connected("file::memory:")
        else:
            _check_path(path, read_only)
            database = _connected(reading_uri(path)) if read_only else _connected(f"{path.resolve().as_uri()}?mode=rwc")
        try:
            if _needs_migration(database, place):
                if path and read_only:
                    database.close()
                    _bring_up_to_date(path)
                    return _connected(reading_uri(path))
                _migrate(database, place)
        except BaseException:
            database.close()
            raise
        return database


def _bring_up_to_date(path: Path) -> None:
    """Migrate a file that one only wants to read."""
    try:
        open_database(path).close()
    except HapaxError as fault:
        raise HapaxError(
            f"{path}: an earlier version of Hapax wrote this file, and reading it brings it up to date first. {fault}"
        ) from fault


@contextmanager
def translated(place: str) -> Iterator[None]:
    """SQLite's errors as HapaxError with place, fact and remedy."""
    try:
        yield
    except sqlite3.Error as error:
        for sign, fact, remedy in _REMEDIES:
            if sign in str(error):
                raise HapaxError(f"{place}: {fact} ({error}). {remedy}") from error
        raise HapaxError(f"{place}: SQLite says: {error}. Check the file with `sqlite3 FILE .schema`.") from error


def _check_path(path: Path, read_only: bool) -> None:
    if path.is_dir():
        raise HapaxError(f"{path}: this is a folder. Name a file in it, such as {path / 'hapax.db'}.")
    if not path.resolve().parent.is_dir():
        raise HapaxError(f"{path}: its folder does not exist. Create the folder {path.resolve().parent} first.")
    if read_only and not path.exists():
        raise HapaxError(f"{path}: there is no such knowledge base. Run a search first, or name one that is there.")


def _connected(uri: str) -> Database:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from a stranger
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the file at last
    except BaseException:
        connection.close()
        raise
    return Database(connection, recursive_triggers=False, execute_plugins=False, strict=True)


def reading_uri(path: Path) -> str:
    """The URI under which SQLite can read the file without writing beside it."""
    uri = path.resolve().as_uri()
    try:
        _connected(f"{uri}?mode=ro").close()
    except sqlite3.OperationalError:
        # In a folder that may not be written SQLite cannot make the WAL's index. Without a WAL nobody is writing.
        if path.with_name(path.name + "-wal").exists():
            raise
        return f"{uri}?immutable=1"
    return f"{uri}?mode=ro"


def sweep(path: Path) -> None:
    """Have SQLite remove an empty WAL and its index, which a reader makes and may not remove itself.

    Nothing happens where somebody else is using the file, or where it may not be written.
    """
    log = path.with_name(path.name + "-wal")
    try:
        if log.stat().st_size == 0:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (OSError, sqlite3.Error):
        return  # they are of no use, and do no harm


def _needs_migration(database: Database, place: str) -> bool:
    """Raises HapaxError when the file belongs to another program or to a later Hapax."""
    tables = set(database.table_names())  # read first: another process may be creating them just now
    applied = {migration.name for migration in schema.migrations.applied(database)}
    if not applied and tables - {schema.migrations.migrations_table}:
        raise HapaxError(f"{place}: this SQLite file belongs to another program. Name another file.")
    if strange := {table.name for table in rows.TABLES} & set(database.view_names()):
        raise HapaxError(
            f"{place}: {', '.join(sorted(strange))} is computed here, not stored, so this file is none of Hapax's. "
            "Name another file."
        )
    known = _known_migrations()
    if later := applied - known:
        raise HapaxError(
            f"{place}: a later version of Hapax wrote this file (it knows {', '.join(sorted(later))}). "
            "Update Hapax, or name another file."
        )
    return bool(known - applied)


def _known_migrations() -> set[str]:
    """All migrations this version knows: what would be pending in an empty database."""
    empty = Database(memory=True, execute_plugins=False)
    try:
        return {migration.name for migration in schema.migrations.pending(empty)}
    finally:
        empty.close()


def _migrate(database: Database, place: str) -> None:
    _use_wal(database.conn)
    # Not `atomic()`, which begins deferred: of two processes that open a new file, the second has to wait and then see
    # that nothing is left to do.
    database.conn.execute("BEGIN IMMEDIATE")
    try:
        if _needs_migration(database, place):
            schema.migrations.apply(database)
        database.conn.execute("COMMIT")
    except BaseException:
        database.rollback()
        raise


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for its busy timeout here, so two processes that open a new file need patience."""
    for attempt in range(_WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _WAL_ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            return
