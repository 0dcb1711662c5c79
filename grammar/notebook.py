"""Tables as pandas data frames, as Arrow tables, and as HTML in notebooks.

Imports nothing heavy, because every result is such a table.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hapax.grammar.extras import extras_named

if TYPE_CHECKING:
    import pandas as pd
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

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame. Needs the extra `evaluation`."""
        with extras_named():
            import pandas as pd

            return pd.DataFrame(list(self.cells()), columns=list(self.columns))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a column of mixed types becomes text. Needs the extra `evaluation`."""
        with extras_named():
            import pyarrow as pa

            rows = self.cells()
            arrays = []
            for place in range(len(self.columns)):
                cells = [row[place] for row in rows]
                # Arrow infers one type for a column, and refuses a column of texts and numbers.
                try:
                    arrays.append(pa.array(cells))
                except (pa.ArrowInvalid, pa.ArrowTypeError):
                    arrays.append(pa.array([None if cell is None else str(cell) for cell in cells]))
            return pa.table(arrays, names=list(self.columns))

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.cells())
