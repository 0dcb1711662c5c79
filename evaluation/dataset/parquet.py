"""Tables of a dataset as Parquet files, whole or in shards. pyarrow is slow to import: only what needs it does so."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hapax.evaluation.dataset.columns import Column, DatasetTable, Row, flat
from hapax.kb.unfinished import publish

ROWS_PER_SHARD = 50_000
ROWS_PER_GROUP = 1_000
"""Rows of Parquet that are collected in memory and written together."""

# Names of pyarrow's functions; that for booleans has an underscore, as `pa.bool` does not exist.
_TYPES = {"string": "string", "json": "string", "bool": "bool_", "int32": "int32", "float64": "float64"}


class Size(NamedTuple):
    """Size of one split. `num_bytes` is that of its columns in memory, as `datasets` counts; 0 for JSON Lines."""

    rows: int
    num_bytes: int = 0


class ParquetWriter:
    """Writes rows as shards `{split}-00000-of-0000N.parquet`.

    N is known only at the end, so shards get their names then.
    """

    def __init__(self, folder: Path, split: str, table: DatasetTable) -> None:
        self._folder, self._split, self._table = folder, split, table
        self._schema = _schema(table)
        self._waiting: list[dict[str, Any]] = []
        self._shards: list[Path] = []  # complete ones and the open one, under provisional names
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
            publish(path, self._folder / f"{self._split}-{number:05}-of-{len(self._shards):05}.parquet")
        return Size(self._rows, self._bytes)

    def _flush(self) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        if not self._waiting:
            return
        if self._shard is None:
            self._shards.append(self._folder / f"{self._split}-{len(self._shards):05}.part")
            # Opened with the first row, so that a split without rows has no file.
            self._shard = parquet.ParquetWriter(self._shards[-1], self._schema, compression="zstd")
        group = pa.Table.from_pylist(self._waiting, schema=self._schema)
        self._shard.write_table(group)
        self._bytes += group.nbytes  # uncompressed, as `datasets` states it in its cards
        self._rows += len(self._waiting)
        self._rows_in_shard += len(self._waiting)
        self._waiting.clear()
        if self._rows_in_shard >= ROWS_PER_SHARD:
            self._end_shard()

    def _end_shard(self) -> None:
        if self._shard is not None:
            self._shard.close()
        self._shard, self._rows_in_shard = None, 0


def write_parquet(path: Path, table: DatasetTable, rows: Iterable[Row]) -> int:
    """Write rows into one file, group by group, and return their number."""
    import pyarrow as pa  # slow to import, and not needed for JSON Lines
    from pyarrow import parquet

    schema, waiting = _schema(table), iter(rows)
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := [flat(row, table) for row in islice(waiting, ROWS_PER_GROUP)]:
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def _schema(table: DatasetTable) -> Any:
    import pyarrow as pa

    return pa.schema([(column.name, _arrow(column)) for column in table.columns])


def _arrow(column: Column) -> Any:
    import pyarrow as pa

    if column.fields:
        arrow_type = pa.struct([(field.name, _arrow(field)) for field in column.fields])
    else:
        arrow_type = getattr(pa, _TYPES[column.kind])()
    return pa.list_(arrow_type) if column.many else arrow_type
