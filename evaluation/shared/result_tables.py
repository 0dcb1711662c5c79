"""Results of experiments as values (tables, JSON, notes), which the command line shows all alike, and their figures.

An experiment gives an `Evaluation`; `show` in commands/shared/console.py prints it, as text or as JSON.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hapax.evaluation.shared.lazy import np
from hapax.grammar.writing.notebook import Tabular
from hapax.kb.exchange.csv_text import write_rows
from hapax.kb.files.unfinished import publish, replace_file, unfinished
from hapax.llm_oracle.budget import BudgetReached, Deferred

if TYPE_CHECKING:
    from matplotlib.figure import Figure

V = TypeVar("V")


@dataclass(frozen=True)
class ResultTable(Tabular):
    """A table of text, or of numbers for a CSV file; a cell that is None is empty.

    `title`: the one under which the paper or the pages know it; it may be empty.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def texts(self) -> list[list[str]]:
        """The rows as text."""
        texts = []
        for row in self.rows:
            texts.append(["" if cell is None else str(cell) for cell in row])
        return texts

    def cells(self) -> list[list[str]]:
        """The cells, as the command line prints them."""
        return self.texts

    def write_csv(self, path: Path) -> None:
        """Write columns and rows, without the title."""
        text = StringIO()
        write_rows(text, [self.columns, *self.rows])
        replace_file(path, text.getvalue())


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = []
    # The rule between header and body is a row of its own.
    for row in (columns, ["---"] * len(columns), *rows):
        cells = [cell.replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Evaluation(Generic[V]):
    """The outcome of an experiment. `value`: everything that was measured; the rest is what the command line prints.

    `figures` is everything for programs: `--json` prints it, by way of `json_value`. `tables` each give a data frame by
    `df()`. `details` are lines printed below the tables, such as examples; `notes` say how to read the
    figures, and go to stderr.
    """

    value: V
    tables: Sequence[ResultTable]
    figures: object
    details: Sequence[str] = ()
    notes: Sequence[str] = ()

    def to_json(self) -> Any:
        """All figures as a JSON value."""
        return json_value(self.figures)

    def _repr_html_(self) -> str:
        pieces = []
        for table in self.tables:
            pieces += [f"<h4>{html.escape(table.title)}</h4>", table._repr_html_()]
        return "".join(pieces)


def json_value(value: object) -> Any:
    """The value as JSON holds it: a dataclass becomes an object, a tuple a list, a number that is not finite null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return json_value(value.value)
    if isinstance(value, Mapping):
        # json.dumps takes no enum as a key unless it is a str; None becomes "null" there.
        return {key.value if isinstance(key, Enum) else key: json_value(member) for key, member in value.items()}
    if isinstance(value, str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [json_value(member) for member in value]
    # NaN and Infinity are no JSON, though Python writes and reads them.
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by their keys, in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def for_batches(
    items: Sequence[Item],
    size: int,
    ask: Callable[[Sequence[Item]], object],
    finished: Callable[[int], None] | None = None,
) -> BudgetReached | None:
    """Call `ask` with each batch of `size` items, until a budget is reached; return that budget.

    `finished` is called with the number of items done so far.
    """
    stopped: BudgetReached | None = None
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        try:
            ask(batch)
        except BudgetReached as reached:
            # The first reason counts; later batches only add to it.
            stopped = stopped or reached
            # A deferred batch leaves a queue to be filled: the next batches must add their requests to it, too.
            if not isinstance(reached, Deferred):
                break
        if finished is not None:
            finished(start + len(batch))
    return stopped
