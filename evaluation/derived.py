"""Statements of a bulk derivation as a file: JSON Lines or one Parquet file, written row after row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.dataset.columns import Column, Row, Table, json_line
from grammar.errors import HapaxError
from kb.records import StatementRecord

if TYPE_CHECKING:
    from grammar.rules import Library, Rule
    from kb.store import KnowledgeBase

DERIVED = Table(
    "derived",
    "one row a statement that rules derive from the facts",
    (
        Column("id", "identity of the statement"),
        Column("rule", "name of the rule"),
        Column("statement", "premise and conclusion as one sentence"),
        Column("premise", "the premise in words"),
        Column("conclusion", "the conclusion in words"),
        Column("substitution", "value by variable", "json"),
        Column("proof", "steps that name their premises by index, the root first", "json"),
    ),
)


def derived_row(record: StatementRecord) -> Row:
    """One statement as a row of `DERIVED`."""
    values: dict[str, Any] = {
        "id": record.id,
        "rule": record.rule,
        "statement": record.text,
        "premise": record.premise,
        "conclusion": record.conclusion,
        "substitution": dict(record.substitution),
        "proof": record.proof,
    }
    return values


def write_derived(path: Path, records: Iterable[StatementRecord]) -> int:
    """Write statements to a `.jsonl` or `.parquet` file; gives how many. Raises HapaxError for another ending."""
    rows = map(derived_row, records)
    if path.suffix == ".parquet":
        from evaluation.dataset.tables import write_parquet

        return write_parquet(path, DERIVED, rows)
    check_ending(path)
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json_line(row))
            count += 1
    return count


def check_ending(path: Path) -> None:
    """Raises HapaxError for a file that is named neither .jsonl nor .parquet."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise HapaxError(f"{path}: statements are written as .jsonl or .parquet. Name the file so.")


def write_tables(folder: Path, kb: KnowledgeBase, library: Library, rules: Sequence[Rule]) -> int:
    """Write the relations that the rules' joins read as Parquet, the joins as `rules.sql`; gives how many tables."""
    from engine.bulk import export_tables
    from evaluation.dataset.tables import write_columns

    folder.mkdir(parents=True, exist_ok=True)
    written: list[str] = []

    def write(name: str, columns: Sequence[str], batches: Iterator[list[tuple[Any, ...]]]) -> None:
        kinds = {column: "string" if column == "symbol" else "int64" for column in columns}
        write_columns(folder / f"{name}.parquet", kinds, batches)
        written.append(name)

    (folder / "rules.sql").write_text(export_tables(kb, library, rules, write), encoding="utf-8")
    return len(written)
