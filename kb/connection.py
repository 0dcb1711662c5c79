"""Opening of database files: checks, creation, and translation of SQLite errors into HapaxError.

Readers never wait for a writer (WAL); writers wait for each other up to a minute. An acknowledged answer survives a
power cut (`synchronous=FULL`), at about 0.2 ms per commit, which is little compared with the model call that it saves.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Operation, Remedy
from hapax.kb import objects, schema
from hapax.kb.files import own_files, system
from hapax.kb.files.unfinished import publish, unfinished

BUSY_SECONDS = 60.0

_MEMORY = "file::memory:"

_SIGNAL_SECONDS = 0.2
"""Longest wait inside SQLite, in which no signal is handled."""

_STEPS = 200_000
"""Steps of SQLite's virtual machine, a few milliseconds, after which Python may handle signals."""

_RESCUING = threading.Lock()

# Identities are hashes, so every batch writes to pages all over the indexes. A connection caches 64 MB of pages, and
# the WAL is copied into the file at about 64 MB, when most of its pages were written many times.
CACHE_KIB = 64 * 1024
CHECKPOINT_PAGES = 16_000

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""Last bytes of a rollback journal that ends with the name of a super-journal (https://sqlite.org/fileformat.html)."""

# With 0.02 seconds between them, 4 seconds in all.
_WAL_ATTEMPTS = 200

# Part of the error's text, the fact, the remedy. By text, since errors that Python itself raises have no SQLite code.
_REMEDIES = (
    ("closed database", "the knowledge base was closed", "Open it again before you use it."),
    ("locked", "another process has been writing for a long time", "End it, or try again when it is done."),
    ("not a database", "the file is not an SQLite database", "Name another file, or move this one away."),
    ("readonly", "the file may not be written", "Allow writing to it, or copy it to a folder where you may write."),
    ("unable to open", "the file cannot be opened or created", "Allow writing in its folder, or name another file."),
    ("full", "the disk is full", Remedy("Free some space and run the same {} again; nothing stored is lost.", CALL)),
    (
        "disk I/O error",
        "the disk failed to read or write",
        Remedy(
            "Check free space, quotas and file size limits, and run the same {} again; nothing stored is lost.", CALL
        ),
    ),
    ("malformed", "the file is damaged", "Restore it from a copy, or rescue it with `sqlite3 FILE .recover`."),
)


def open_database(path: Path | None, read_only: bool = False) -> sqlite3.Connection:
    """Open the database at `path`; None opens a new one in memory.

    With `read_only` no file is created, and opening works beside a writer and in a folder without write permission.
    Raises HapaxError for a file that is not a knowledge base, or one of another version.
    """
    if path is None:
        connection = _connected(_MEMORY)
        schema.create(connection)
        return connection
    place = str(path)
    with translated(place):
        _check_path(path, read_only)
        connection = _connected(reading_uri(path) if read_only else _writing_uri(path))
        try:
            if not _is_made(connection, place):
                if read_only:
                    # A process that was killed at its start left an empty file.
                    connection.close()
                    open_database(path).close()
                    return _connected(reading_uri(path))
                _make(connection, place)
            _check_facts(connection, place)
            if not read_only:
                for strange in objects.strange_objects(connection):
                    if strange.changes_writes:
                        raise _not_written(path, strange.object, strange.reason)
        except BaseException:
            connection.close()
            raise
        return connection


def _check_facts(connection: sqlite3.Connection, place: str) -> None:
    """Raise HapaxError if the view of facts is another program's: it may take any time to be read."""
    connection.execute("BEGIN")
    found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'facts'").fetchone()
    expected = schema.facts_view(connection)
    connection.execute("ROLLBACK")
    if found != (expected,):
        raise HapaxError(
            f"{place}: the view facts is not as this version of Hapax makes it.",
            "Put a backup in its place, or import its facts into a new file.",
        )


class _Stop(threading.local):
    """The exception of a signal handler or a time limit that stopped the SQL statement of this thread."""

    fault: BaseException | None = None


_STOP = _Stop()


def obey_signals(connection: sqlite3.Connection, check_time: Callable[[], None] = lambda: None) -> None:
    """Let Ctrl-C and SIGTERM, and exceptions of `check_time`, end each long statement of the connection.

    `stoppable` and `translated` raise these exceptions in place of SQLite's error.
    """
    connection.set_progress_handler(_signal_check(check_time).__next__, _STEPS)


def _signal_check(check_time: Callable[[], None]) -> Iterator[int]:
    """Progress handler for SQLite: yields 0 to continue, and 1 to stop after a signal's handler has raised.

    Python runs signal handlers when a function starts or resumes, and SQLite swallows exceptions of its callbacks. So
    this is a generator: it resumes inside its `try` and catches the handler's exception there.
    """
    while True:
        try:
            if _STOP.fault is None:
                check_time()
            yield int(_STOP.fault is not None)
        except GeneratorExit:
            return
        except BaseException as error:  # noqa: BLE001  `stoppable` raises it again
            _STOP.fault = error


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise the exception that stopped a statement in place of the error that SQLite made of it."""
    try:
        yield
    except (sqlite3.Error, HapaxError):
        fault, _STOP.fault = _STOP.fault, None
        if fault is not None:
            raise fault from None
        raise


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate SQLite errors into HapaxError with place, fact and remedy."""
    try:
        with stoppable():
            yield
    except sqlite3.Error as error:
        for sign, fact, remedy in _REMEDIES:
            if sign in str(error):
                raise HapaxError(f"{place}: {fact} ({error}).", remedy) from error
        raise HapaxError(f"{place}: SQLite says: {error}. Check the file with `sqlite3 FILE .schema`.") from error


def begin(connection: sqlite3.Connection, seconds: float | None = None) -> None:
    """Begin a transaction that writes, after waiting for other writers up to `seconds`; None: BUSY_SECONDS.

    Between short waits in SQLite, Python handles signals, so that SIGTERM need not wait for the lock.
    """
    ends = system.monotonic() + (BUSY_SECONDS if seconds is None else seconds)
    connection.execute(f"PRAGMA busy_timeout = {int(_SIGNAL_SECONDS * 1000)}")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or system.monotonic() >= ends:
                    raise
            else:
                return
    finally:
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def identity(path: Path) -> tuple[int, int] | None:
    """Device and number of the file at `path`, which renaming and writing do not change; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def rescued(connection: sqlite3.Connection, path: Path) -> Path:
    """Copy the database as the connection sees it into a new file beside `path`, and return the copy's name.

    SQLite keeps the last commits of a file that was renamed or deleted in a log that nobody reads any more. A later
    copy of this process replaces the earlier one. Raises HapaxError if it cannot be written.
    """
    copy = path.with_name(f"{path.stem}-rescued-{system.process_id()}{path.suffix}")
    # The name of the copy is that of the process, which several threads share.
    with _RESCUING, unfinished(copy) as partial:
        with translated(str(copy)):
            connection.execute("VACUUM INTO ?", (str(partial),))
        publish(partial, copy)
    return copy


def _check_path(path: Path, read_only: bool) -> None:
    if str(path) == ":memory:":  # which SQLite takes for no file
        raise HapaxError(
            f"{path}: this is no file. Name a file; `hapax.KnowledgeBase()` is a knowledge base in memory."
        )
    try:
        # For its errors alone: a loop of symbolic links is a RuntimeError here (Python 3.11), and `exists` hides it.
        path.resolve()
        kind = path.stat().st_mode if path.exists() else None
    except (OSError, RuntimeError) as error:
        raise HapaxError(f"{path}: the path cannot be followed ({error}). Name another file.") from error
    if kind is not None and not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise HapaxError(f"{path}: this is a pipe, socket or device, not a file. Name a file.")
    if path.is_dir():
        raise HapaxError(f"{path}: this is a folder. Name a file in it, such as {path / 'hapax.db'}.")
    if not path.resolve().parent.is_dir():
        raise HapaxError(f"{path}: its folder does not exist. Create the folder {path.resolve().parent} first.")
    if read_only and not path.exists():
        raise HapaxError(
            f"{path}: there is no such knowledge base. Import facts or run a search first, or name an existing file."
        )


def _check_logs(path: Path) -> None:
    """Raise HapaxError for a link, a pipe and the like in place of a log that SQLite keeps beside the file.

    Also for a rollback journal that names a further file, which SQLite would delete when it rolls back.
    """
    path = path.resolve()
    journal, *others = (path.with_name(f"{path.name}{ending}") for ending in ("-journal", "-wal", "-shm"))
    try:
        for log in (journal, *others):
            own_files.check_file(log)
        with os.fdopen(own_files.open_file(journal, os.O_RDONLY), "rb") as stream:
            stream.seek(-len(_JOURNAL_MAGIC), os.SEEK_END)
            names_another = stream.read() == _JOURNAL_MAGIC
    except FileNotFoundError:
        return
    except own_files.ForeignFileError as fault:
        raise HapaxError(f"{fault.filename}: {fault.strerror}. Move it away, or put a copy in its place.") from fault
    except OSError:
        return  # shorter than the sign, or unreadable for SQLite, too
    if names_another:
        raise HapaxError(
            f"{journal}: this journal names a further file, which SQLite would delete. Hapax writes no such journal.",
            Remedy("Move it away, and check {} with {}.", path.name, Operation("verify")),
        )


def _connected(uri: str) -> sqlite3.Connection:
    # Without an isolation level Python begins no transactions of its own, which would be deferred.
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        obey_signals(connection)
        connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from a stranger
        # Under NORMAL a power cut may undo the last commits, and with them answers that were paid for.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # SQLite opens the file only now
    except UnicodeDecodeError as error:  # SQLite's message quotes the damaged schema, and Python cannot read it
        connection.close()
        raise sqlite3.DatabaseError("malformed database schema, which is not UTF-8") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _writing_uri(path: Path) -> str:
    _check_logs(path)
    return f"{path.resolve().as_uri()}?mode=rwc"


def reading_uri(path: Path) -> str:
    """URI with which SQLite reads the file without writing next to it. Raises HapaxError as `_check_logs` does."""
    _check_logs(path)
    uri = path.resolve().as_uri()
    try:
        _connected(f"{uri}?mode=ro").close()
    except sqlite3.OperationalError:
        # In a folder without write permission SQLite cannot create the WAL's index. Without a WAL there is no writer,
        # so the file can be read as immutable.
        if path.with_name(path.name + "-wal").exists():
            raise
        return f"{uri}?immutable=1"
    return f"{uri}?mode=ro"


def sweep(path: Path) -> None:
    """Have SQLite remove an empty WAL and its index, which a reader creates but may not remove itself.

    Does nothing if another process uses the file, or if it may not be written.
    """
    log = path.with_name(path.name + "-wal")
    try:
        if log.stat().st_size == 0:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (OSError, sqlite3.Error):
        return  # leftover files are useless but harmless


def _is_made(connection: sqlite3.Connection, place: str) -> bool:
    """True if the file has the tables of this version; False if it is empty.

    Raises HapaxError for a file of another program or of another version of Hapax.
    """
    # Before any of them is read, the list of versions, too: it may never end.
    if calculated := objects.calculated_tables(connection):
        raise HapaxError(
            f"{place}: the rows of {calculated[0].name} are calculated here, not stored, so Hapax did not write this "
            "file. Name another file."
        )
    # Read before the versions: another process may be creating both.
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    versions = set()
    if "_sqlite_migrations" in tables:
        listed = connection.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = 'hapax'")
        versions = {str(name) for (name,) in listed}
    if not versions and tables - {"_sqlite_migrations"}:
        raise HapaxError(f"{place}: this SQLite file belongs to another program. Name another file.")
    if strange := versions - {schema.VERSION}:
        raise HapaxError(
            f"{place}: another version of Hapax wrote this file (it knows {', '.join(sorted(strange))}).",
            Remedy(
                "Update Hapax, or export its facts with that version ({}), and import them into a new file.",
                Operation("export_facts"),
            ),
        )
    return bool(versions)


def _not_written(path: Path, entry: objects.SchemaObject, reason: str) -> HapaxError:
    # Quoted, since a stranger chose the name and the user may paste the line into a shell.
    file = shlex.quote(str(path))
    remedy = f"Take its rows into a new file: {Operation('merge', path, kb='NEW.db')}"
    if entry.kind in ("trigger", "index"):
        name = entry.name.replace('"', '""')
        drop = shlex.quote(f'DROP {entry.kind.upper()} "{name}"')
        remedy += f", or remove it: `sqlite3 {file} {drop}`"
    return HapaxError(f"{path}: nothing was written, because of {entry}: {reason}. {remedy}.")


def _make(connection: sqlite3.Connection, place: str) -> None:
    """Create the tables of an empty file."""
    _use_wal(connection)
    # When two processes open a new file, the second must wait here and then find nothing left to do.
    begin(connection)
    try:
        if not _is_made(connection, place):
            schema.create(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _use_wal(connection: sqlite3.Connection) -> None:
    """Turn on WAL. SQLite ignores its busy timeout here, so a second process that opens a new file must retry."""
    for attempt in range(_WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _WAL_ATTEMPTS - 1:
                raise
            system.sleep(0.02)
        else:
            return
