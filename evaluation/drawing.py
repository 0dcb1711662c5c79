"""How every figure is written: PNG, SVG and the CSV of what it draws, the same bytes for the same data."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind readers tell apart."""

_STYLE: Any = {"svg.hashsalt": "hapax", "svg.fonttype": "none", "text.parse_math": False, "font.size": 8.0}

Table = tuple[Sequence[str], list[Sequence[object]]]
"""The columns and rows of a CSV file; None is an empty cell."""


def write_figure(stem: Path, draw: Callable[[], Figure], table: Table) -> tuple[Path, ...]:
    """Write `stem.png`, `stem.svg` and `stem.csv`, with the folders above."""
    import matplotlib as mpl

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg, data = (stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "svg", "csv"))
    with mpl.rc_context(_STYLE):
        figure = draw()
        figure.savefig(png, dpi=150)
        figure.savefig(svg, metadata={"Date": None})
    write_table(table, data)
    return png, svg, data


def single(size: tuple[float, float], draw: Callable[[Any], None]) -> Callable[[], Figure]:
    """A figure of one pair of axes, on which `draw` draws; width and height in inches."""

    def figure() -> Figure:
        from matplotlib.figure import Figure

        made = Figure(figsize=size, layout="constrained")
        draw(made.add_subplot())
        return made

    return figure


def write_table(table: Table, path: Path) -> None:
    """Write columns and rows as CSV."""
    columns, rows = table
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
