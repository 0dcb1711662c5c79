"""Tables as data frames of pandas and polars, as Arrow tables, and as HTML in notebooks.

Imports nothing heavy, because every result is such a table.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.terms import CutDecimal

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

    def cells(self) -> Sequence[Sequence[Any]]:
        """The rows of the table."""
        raise NotImplementedError

    def df(self) -> pd.DataFrame:
        """The rows as a pandas data frame, its columns as in `arrow`. Needs the extra `evaluation`."""
        with extras_named():
            import pandas as pd

            return pd.DataFrame(dict(self._typed_columns()), columns=list(self.columns))

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table. Needs the extra `evaluation`.

        Numbers are int64, or float64 where that is exact; a column of mixed types becomes text.
        """
        with extras_named():
            import pyarrow as pa

            arrays = []
            for _, cells in self._typed_columns():
                # Arrow infers one type for a column, and refuses a column of texts and numbers.
                try:
                    arrays.append(pa.array(cells))
                except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                    arrays.append(pa.array([None if cell is None else str(cell) for cell in cells]))
            return pa.table(arrays, names=list(self.columns))

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
        """Each column with its cells; numbers with decimals are floats, unless that would change one of them.

        A number whose decimals do not end, such as a third, is the nearest float.
        """
        rows = self.cells()
        for place, name in enumerate(self.columns):
            cells = [row[place] for row in rows]
            numbers = [cell for cell in cells if isinstance(cell, int | float | Decimal)]
            decimals = [cell for cell in numbers if isinstance(cell, Decimal)]
            written = (cell for cell in decimals if not isinstance(cell, CutDecimal))
            is_exact = all(Decimal(repr(float(cell))) == cell for cell in written)
            if decimals and is_exact and len(numbers) == len(cells) - cells.count(None):
                cells = [None if cell is None else float(cell) for cell in cells]
            yield name, cells

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.cells())
