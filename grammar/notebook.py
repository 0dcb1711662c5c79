"""Tables in notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

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
