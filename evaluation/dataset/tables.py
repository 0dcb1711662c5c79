"""The four tables as files: JSON Lines, and Parquet in shards. Both take row after row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from evaluation.dataset.columns import ANNOTATIONS, FACTS, PROBES, STATEMENTS, Column, Row, Table, flat, json_line
from evaluation.dataset.rows import Entry, Source

ALL = "train"
"""The only split of a table that does not part head and long tail; hubs look for this name first."""

ROWS_PER_SHARD = 50_000
ROWS_PER_GROUP = 1_000
"""Rows of Parquet that are held until they are written together."""

_TYPES = {"string": "string", "json": "string", "bool": "bool_", "int32": "int32", "float64": "float64"}


class Size(NamedTuple):
    """Of one split. `num_bytes`: what its columns take in memory, as `datasets` counts; 0 where nobody asks."""

    rows: int
    num_bytes: int = 0


class RowWriter(Protocol):
    """One split of one table being written."""

    def write(self, row: Row) -> None: ...

    def close(self) -> Size: ...


@dataclass
class TableSink:
    """Writes statements, probes, facts and annotations; a split without rows has no file."""

    open_writer: Callable[[Table, str], RowWriter]
    sizes: dict[tuple[str, str], Size] = field(default_factory=dict)
    _writers: dict[tuple[str, str], RowWriter] = field(default_factory=dict)
    _fact_ids: set[str] = field(default_factory=set)

    def take(self, entry: Entry) -> None:
        split = entry.record.distribution.value
        self._write(STATEMENTS, split, entry.row)
        for row in entry.probes:
            self._write(PROBES, split, row)
        self._fact_ids.update(entry.fact_ids)

    def finish(self, source: Source) -> None:
        for row in source.facts(self._fact_ids):
            self._write(FACTS, ALL, row)
        for row in source.annotations():
            self._write(ANNOTATIONS, ALL, row)
        self.sizes = {key: writer.close() for key, writer in self._writers.items()}

    def _write(self, table: Table, split: str, row: Row) -> None:
        key = (table.name, split)
        if key not in self._writers:
            self._writers[key] = self.open_writer(table, split)
        self._writers[key].write(row)


def jsonl_sink(folder: Path) -> TableSink:
    """`statements-head.jsonl` and so on; tables of one split without its name."""

    def opened(table: Table, split: str) -> JsonlWriter:
        folder.mkdir(parents=True, exist_ok=True)
        return JsonlWriter(folder / (f"{table.name}.jsonl" if split == ALL else f"{table.name}-{split}.jsonl"))

    return TableSink(opened)


def parquet_sink(folder: Path) -> TableSink:
    """Statements in `data/`, other tables in folders of their names."""

    def opened(table: Table, split: str) -> ParquetWriter:
        place = folder / ("data" if table is STATEMENTS else table.name)
        place.mkdir(parents=True, exist_ok=True)
        return ParquetWriter(place, split, table)

    return TableSink(opened)


class JsonlWriter:
    """Lines in one file."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="\n")
        self._rows = 0

    def write(self, row: Row) -> None:
        self._stream.write(json_line(row))
        self._rows += 1

    def close(self) -> Size:
        self._stream.close()
        return Size(self._rows)


class ParquetWriter:
    """`{split}-00000-of-0000N.parquet`: N is known only at the end, so shards are named then."""

    def __init__(self, folder: Path, split: str, table: Table) -> None:
        self._folder, self._split, self._table = folder, split, table
        self._schema = _schema(table)
        self._waiting: list[dict[str, Any]] = []
        self._shards: list[Path] = []
        self._rows = self._rows_in_shard = self._bytes = 0
        self._shard: Any = None

    def write(self, row: Row) -> None:
        self._waiting.append(flat(row, self._table))
        if len(self._waiting) == ROWS_PER_GROUP:
            self._flush()

    def close(self) -> Size:
        self._flush()
        self._end_shard()
        for number, path in enumerate(self._shards):
            path.rename(self._folder / f"{self._split}-{number:05}-of-{len(self._shards):05}.parquet")
        return Size(self._rows, self._bytes)

    def _flush(self) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        if not self._waiting:
            return
        if self._shard is None:
            self._shards.append(self._folder / f"{self._split}-{len(self._shards):05}.part")
            self._shard = parquet.ParquetWriter(self._shards[-1], self._schema, compression="zstd")
        group = pa.Table.from_pylist(self._waiting, schema=self._schema)
        self._shard.write_table(group)
        self._bytes += group.nbytes
        self._rows += len(self._waiting)
        self._rows_in_shard += len(self._waiting)
        self._waiting.clear()
        if self._rows_in_shard >= ROWS_PER_SHARD:
            self._end_shard()

    def _end_shard(self) -> None:
        if self._shard is not None:
            self._shard.close()
        self._shard, self._rows_in_shard = None, 0


def write_parquet(path: Path, table: Table, rows: Iterable[Row]) -> int:
    """Write rows into one file, a group of them at a time; gives how many."""
    import pyarrow as pa
    from pyarrow import parquet

    schema, waiting = _schema(table), iter(rows)
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := [flat(row, table) for row in islice(waiting, ROWS_PER_GROUP)]:
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def write_columns(path: Path, columns: Mapping[str, str], batches: Iterable[Sequence[Sequence[object]]]) -> None:
    """Write batches of rows into one file; `columns` are names and Arrow's types."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.table(list(map(list, zip(*batch, strict=True))), schema=schema))


def _schema(table: Table) -> Any:
    import pyarrow as pa

    return pa.schema([(column.name, _arrow(column)) for column in table.columns])


def _arrow(column: Column) -> Any:
    import pyarrow as pa

    if column.fields:
        one = pa.struct([(each.name, _arrow(each)) for each in column.fields])
    else:
        one = getattr(pa, _TYPES[column.kind])()
    return pa.list_(one) if column.many else one
