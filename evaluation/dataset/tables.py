"""The four tables of a dataset as JSON Lines or as Parquet in shards, written row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hapax.evaluation.dataset.columns import (
    ANNOTATIONS,
    FACTS,
    PROBES,
    STATEMENTS,
    DatasetTable,
    Row,
    json_line,
)
from hapax.evaluation.dataset.parquet import ParquetWriter, Size
from hapax.evaluation.dataset.rows import DatasetSource, Entry
from hapax.evaluation.dataset.sinks import Sink

ALL = "train"
"""The only split of a table that is not divided into head and long tail; hubs look for this name first."""


class SplitWriter(Protocol):
    """An open file of one split of one table."""

    def write(self, row: Row) -> None: ...

    def close(self) -> Size: ...


class TableSink(Sink):
    """Writes statements, probes, facts and annotations as tables; a split without rows has no file."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.sizes: dict[tuple[str, str], Size] = {}
        self._writers: dict[tuple[str, str], SplitWriter] = {}
        self._fact_ids: set[str] = set()

    def open_writer(self, table: DatasetTable, split: str) -> SplitWriter:
        """Open the file of one split."""
        raise NotImplementedError

    def take(self, entry: Entry) -> None:
        split = entry.record.distribution.value
        self._write(STATEMENTS, split, entry.row)
        for row in entry.probes:
            self._write(PROBES, split, row)
        # Facts are written at the end: proofs share them, and each has one row.
        self._fact_ids.update(entry.fact_ids)

    def finish(self, source: DatasetSource) -> None:
        for row in source.facts(self._fact_ids):
            self._write(FACTS, ALL, row)
        for row in source.annotations():
            self._write(ANNOTATIONS, ALL, row)
        # Closing writes the last rows, so sizes are known only afterwards.
        self.sizes = {key: writer.close() for key, writer in self._writers.items()}

    def _write(self, table: DatasetTable, split: str, row: Row) -> None:
        key = (table.name, split)
        if key not in self._writers:
            self._writers[key] = self.open_writer(table, split)
        self._writers[key].write(row)


class JsonlSink(TableSink):
    """`jsonl/statements-head.jsonl` and so on; a table with one split only is `jsonl/facts.jsonl`."""

    def open_writer(self, table: DatasetTable, split: str) -> JsonlWriter:
        place = self.folder / "jsonl"
        place.mkdir(parents=True, exist_ok=True)
        return JsonlWriter(place / (f"{table.name}.jsonl" if split == ALL else f"{table.name}-{split}.jsonl"))


class ParquetSink(TableSink):
    """Statements in `data/`, and each other table in a folder of its name."""

    def open_writer(self, table: DatasetTable, split: str) -> ParquetWriter:
        place = self.folder / ("data" if table is STATEMENTS else table.name)
        place.mkdir(parents=True, exist_ok=True)
        return ParquetWriter(place, split, table)


class JsonlWriter:
    """Writes rows as lines of one file."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="\n")
        self._rows = 0

    def write(self, row: Row) -> None:
        self._stream.write(json_line(row))
        self._rows += 1

    def close(self) -> Size:
        self._stream.close()
        return Size(self._rows)
