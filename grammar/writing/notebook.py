"""Tables as data frames of pandas and polars, as Arrow tables, and as HTML in notebooks.

Imports nothing heavy, because every result is such a table.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.terms import CutDecimal
from hapax.grammar.values.moments import MOMENTS, Timed, iso_text, moment_of

if TYPE_CHECKING:
    import pandas as pd
    import polars  # noqa: ICN001  as below
    import pyarrow as pa

ROWS_SHOWN = 20
"""Rows of a table in a notebook; the rest is counted."""


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An HTML table of the first rows, every cell escaped."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = []
    for row in rows[:ROWS_SHOWN]:
        cells = "".join(f"<td>{html.escape('' if cell is None else str(cell))}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    more = f"<p>{len(rows):,} rows, the first {ROWS_SHOWN} shown</p>" if len(rows) > ROWS_SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"


class ArrowStream(Protocol):
    """A table of any library that passes its columns on by Arrow's PyCapsule protocol: polars, pyarrow, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The capsule of a stream of record batches."""


class Tabular:
    """Something with columns and rows: its data frames and its table in a notebook."""

    columns: Sequence[str]
    kinds: Sequence[str] = ()
    """Of the columns' values, such as Date; empty if none is known."""

    def cells(self) -> Sequence[Sequence[Any]]:
        """The rows of the table."""
        raise NotImplementedError

    def df(self) -> pd.DataFrame:
        """The rows as a pandas data frame, its columns as in `arrow`. Needs the extra `evaluation`."""
        with extras_named():
            import pandas as pd
            import pyarrow as pa

            frame: dict[str, Any] = {}
            for name, cells in self._typed_columns():
                array = _array(cells)
                # As objects of Python, dates and times would have no methods of a column.
                frame[name] = array.to_pandas(date_as_object=False) if pa.types.is_temporal(array.type) else cells
            return pd.DataFrame(frame, columns=list(self.columns))

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table. Needs the extra `evaluation`.

        Numbers are int64, or float64 where that is exact; a column of mixed types becomes text. Dates, times and
        durations have types of their own.
        """
        with extras_named():
            import pyarrow as pa

            return pa.table([_array(cells) for _, cells in self._typed_columns()], names=list(self.columns))

    def parquet(self, path: str | Path) -> None:
        """Write the table that `arrow` gives into a Parquet file."""
        with extras_named():
            from pyarrow import parquet

            parquet.write_table(self.arrow(), path)

    def pl(self) -> polars.DataFrame:
        """The rows as a data frame of polars, which has to be installed, with columns as in `arrow`."""
        try:
            import polars  # noqa: ICN001  `pl` is the method
        except ModuleNotFoundError as error:
            raise HapaxError("polars is not installed. Run `pip install polars`, or take .df() or .arrow().") from error
        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)  # noqa: S101  that of a table
        return frame

    def _typed_columns(self) -> Iterator[tuple[str, list[Any]]]:
        """Each column with its cells of one type, where they can have one without a loss."""
        # Turned once: each reading of many answers costs time.
        columns = list(map(list, zip(*self.cells(), strict=True))) or [[] for _ in self.columns]
        kinds = self.kinds or ("",) * len(columns)
        for name, kind, cells in zip(self.columns, kinds, columns, strict=True):
            yield name, _typed(cells, kind)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.cells())


def _typed(cells: list[Any], kind: str) -> list[Any]:
    """The cells of a column, of one type where that loses nothing.

    Numbers with decimals are floats, unless that would change one of them; a number whose decimals do not end, such as
    a third, is the nearest float. Among moments with a zone those without one are of UTC, as in rules.
    """
    if kind in MOMENTS:
        moments = [(cell, moment_of(cell)) for cell in cells if isinstance(cell, str)]
        timed = {text: moment.to_python(kind) for text, moment in moments if moment is not None}
        cells = [timed[cell] if isinstance(cell, str) and timed.get(cell) is not None else cell for cell in cells]
    types = set(map(type, cells)) - {type(None)}
    if types & {Decimal, CutDecimal} and types <= {int, float, Decimal, CutDecimal}:
        if all(cell is None or _is_float(cell) for cell in cells):
            return [None if cell is None else float(cell) for cell in cells]
    elif types == {datetime} and any(cell and cell.tzinfo for cell in cells):
        return [cell.replace(tzinfo=UTC) if cell and cell.tzinfo is None else cell for cell in cells]
    return cells


def _is_float(number: Decimal | float) -> bool:
    """True if a float shows the same digits, or if the number has no last digit."""
    # By Decimal, since a huge integer has no float.
    return isinstance(number, CutDecimal | float) or Decimal(repr(float(Decimal(number)))) == number


def _array(cells: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    # Arrow infers one type for a column, and refuses a column of texts and numbers. It would cut date-times to dates.
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if not {date, datetime} <= set(map(type, cells)):
            return pa.array(cells)
    return pa.array([None if cell is None else _text(cell) for cell in cells])


def _text(cell: Any) -> str:
    return iso_text(cell) if isinstance(cell, Timed) else str(cell)
