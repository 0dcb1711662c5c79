"""Figures as PNG, SVG and the CSV of their data, and the bins of histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.results import ResultTable
from hapax.kb.unfinished import publish, unfinished

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bin_edges(low: float, high: float, bins: int) -> list[float]:
    """Edges of equal bins from `low` to `high`; around the value if both are equal."""
    return [float(edge) for edge in np.histogram_bin_edges([low, high], bins)]


def bin_counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Number of values in each bin; values beyond the edges count in the first and last bin."""
    # np.histogram would drop values beyond the edges.
    clipped = np.clip(np.asarray(values, dtype=float), edges[0], edges[-1])
    return [int(count) for count in np.histogram(clipped, edges)[0]]


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Palette of Okabe and Ito, for readers with any colour vision."""

# Without a salt and with "Date", matplotlib writes a different SVG on each run.
_STYLE: Any = {"svg.hashsalt": "hapax", "svg.fonttype": "none", "text.parse_math": False, "font.size": 8.0}


def file_name(text: str) -> str:
    """The text as part of a file name: runs of other characters than letters and digits become a hyphen."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text).split())


def write_figure(stem: Path, draw: Callable[[], Figure], table: ResultTable) -> tuple[Path, ...]:
    """Write `stem.png`, `stem.svg` and `stem.csv`; missing folders are made."""
    import matplotlib as mpl  # slow to import, and needed for figures only

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg, data = (stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "svg", "csv"))
    with mpl.rc_context(_STYLE):
        figure = draw()
        for path, options in ((png, {"dpi": 150}), (svg, {"metadata": {"Date": None}})):
            with unfinished(path) as written:
                figure.savefig(written, **options)
                publish(written, path)
    table.write_csv(data)
    return png, svg, data


def single(size: tuple[float, float], draw: Callable[[Any], None]) -> Callable[[], Figure]:
    """A figure with one pair of axes, drawn by `draw`; `size`: width and height in inches."""

    def figure() -> Figure:
        from matplotlib.figure import Figure

        # Not by pyplot, which keeps each figure in a global list until it is closed.
        drawing = Figure(figsize=size, layout="constrained")
        draw(drawing.add_subplot())
        return drawing

    return figure
