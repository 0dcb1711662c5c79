"""Copies of a knowledge base that are verified before they take a name, and their return."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.writing.words import counted
from hapax.kb import objects, rows, schema
from hapax.kb.atoms.derived_statements import views
from hapax.kb.connection import reading_uri, translated
from hapax.kb.files import own_files
from hapax.kb.files.asking import asking
from hapax.kb.files.unfinished import publish, unfinished
from hapax.kb.schema import TABLES
from hapax.kb.store import KnowledgeBase

COPIED_PAGES = 2_000
"""Pages that are copied between two looks of a writer at the file."""

PAUSE_SECONDS = 0.005

WAITED_SECONDS = 5.0
"""Longest wait for a process that asks models for a file that is to be replaced."""


@checked
def backup(database: str | Path, target: str | Path) -> int:
    """Copy a knowledge base into a new file, also while others write to it, and return its number of rows.

    The copy holds what was committed when it ended. It gets its name once it is verified and on disk; until then
    no file has this name. Raises HapaxError if there is no knowledge base, if the target exists, or for damages.
    """
    source, target = Path(database), Path(target)
    if not source.exists():
        raise HapaxError(f"{source}: there is no such knowledge base. Name an existing file.")
    if target.exists():
        raise HapaxError(f"{target}: this file exists. Name another file, or remove this one first.")
    with _beside(target) as partial:
        with KnowledgeBase(source, read_only=True):  # it is one, and of this version
            _copy(source, partial)
        rows = _verified(partial, source)
        publish(partial, target)
    return rows


@checked
def restore_backup(copy: str | Path, database: str | Path) -> Path | None:
    """Replace a knowledge base by a backup; return the copy of the replaced one, None if there was none.

    The backup is verified first, and stays. A run that uses the file notices that it was replaced, and ends. Raises
    HapaxError for a damaged backup and while a process asks models for the file; then nothing has changed.
    """
    copy, database = Path(copy), Path(database)
    if not database.exists():
        backup(copy, database)
        return None
    with asking(database, WAITED_SECONDS), _beside(database) as restored:
        backup(copy, restored)
        kept = _free_name(database)
        _keep(database, kept)
        # Old logs would be read as those of the new file.
        for ending in ("-wal", "-shm"):
            own_files.remove(database.with_name(database.name + ending))
        publish(restored, database)
    return kept


def _copy(source: Path, target: Path) -> None:
    """SQLite's online backup: it starts again by itself when another process writes meanwhile."""
    with (
        translated(str(target)),
        closing(sqlite3.connect(reading_uri(source), uri=True)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing, pages=COPIED_PAGES, sleep=PAUSE_SECONDS)
        # One file without a log: it can be moved and copied by any program.
        writing.execute("PRAGMA journal_mode = DELETE")


def _keep(database: Path, kept: Path) -> None:
    """Copy the file that is to be replaced, even if it is damaged."""
    with _beside(kept) as partial:
        try:
            _copy(database, partial)
        except HapaxError:
            # SQLite cannot read it; its bytes are kept as they are.
            own_files.remove(partial)
            partial.write_bytes(database.read_bytes())
        publish(partial, kept)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Like `unfinished`. Raises HapaxError if nothing can be written there."""
    try:
        with unfinished(target.resolve()) as path:
            yield path
    except OSError as error:
        raise HapaxError(
            f"{target}: it cannot be written ({error.strerror or error}). Free some space, allow writing, or name "
            "another file."
        ) from error


def _verified(path: Path, source: Path) -> int:
    with KnowledgeBase(path, read_only=True) as kb:
        found = list(damages(kb))
        if found:
            first = " ".join(filter(None, (found[0].table, found[0].row, found[0].reason.rstrip("."))))
            raise HapaxError(
                f"{source}: {counted(len(found), 'damage')}, the first: {first}.",
                Remedy("See all with {}; nothing was written.", Operation("verify", kb=source)),
            )
        return sum(kb.row_counts().values())


def _free_name(database: Path) -> Path:
    number = 1
    while (kept := database.with_name(f"{database.stem}-before-restore-{number}{database.suffix}")).exists():
        number += 1
    return kept


# --- a file against itself --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Damage:
    """A row that Hapax did not write so, or a broken structure of the file.

    `row`: the row's key; empty for a structure. `content`: the beginning of the row.
    """

    table: str
    row: str
    reason: str
    content: str = ""


def damages(kb: KnowledgeBase) -> Iterator[Damage]:
    """All damages of a knowledge base. An identity is a hash of its row's content, so a changed row shows."""
    broken = [str(line) for (line,) in kb.sql("PRAGMA integrity_check") if line != "ok"]
    if broken:
        yield from (Damage("SQLite", "", line) for line in broken)
        return  # rows of a broken file may be read wrongly
    for strange in strange_objects(kb):
        if strange.reason:
            entry = strange.object
            yield Damage("schema", f"{entry.kind} {entry.name}", strange.reason, " ".join(entry.sql.split())[:200])
    for table in TABLES:
        yield from changed_rows(kb, table)
    for name, rowid, parent, _ in kb.sql("PRAGMA foreign_key_check"):
        shown = "facts" if objects.is_of_one_predicate(name) or name == "fact_origins" else name
        yield Damage(shown, f"row {rowid}", f"it refers to a row of {parent} that is not there")


def strange_objects(kb: KnowledgeBase) -> list[objects.StrangeObject]:
    """The tables, indexes, triggers and views that Hapax did not make, or not so, and those that are gone."""
    connection = kb.connection
    try:
        made = views(connection)
    except (TypeError, ValueError):
        made = {}  # words that another program wrote
    return objects.strange_objects(connection, {"facts": schema.facts_view(connection), **made})


def changed_rows(kb: KnowledgeBase, table: rows.TableSchema[Any]) -> Iterator[Damage]:
    """Rows of a table that cannot be read, or whose identity is that of other content."""
    if not kb.has(table.name):
        return
    with translated(kb.place):
        # Row by row, since a table may be larger than the memory.
        for row in kb.connection.execute(f"{table.select} ORDER BY {table.name}.{table.order}"):
            try:
                table.check(row)
            except HapaxError as fault:
                key = [str(cell) for name, cell in zip(table.all_columns, row, strict=False) if name in table.key]
                content = ", ".join(str(cell)[:40] for cell in row if cell is not None)
                yield Damage(table.name, ", ".join(key), str(fault), content[:200])
