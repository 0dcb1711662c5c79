"""Check a file against itself: SQLite's structures, every row's identity, and the references between tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb import objects, rows, schema
from hapax.kb.atoms.derived_statements import views
from hapax.kb.connection import translated
from hapax.kb.schema import TABLES
from hapax.kb.store import KnowledgeBase


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
