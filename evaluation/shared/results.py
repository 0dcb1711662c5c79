"""Results of experiments as values: tables, a JSON value and notes, which the command line shows all alike.

An experiment gives an `Evaluation`; `commands.console.print_result` prints its `result`, as text or as JSON.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from hapax.grammar.notebook import Tabular
from hapax.kb.csv_text import write_rows
from hapax.kb.unfinished import replace_file

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


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The outcome of an experiment.

    `figures` is everything for programs: `--json` prints it, by way of `json_value`. `details` are lines printed below
    the tables, such as examples; `notes` tell a reader how to take the figures, and go to stderr.
    """

    tables: Sequence[ResultTable]
    figures: object
    details: Sequence[str] = ()
    notes: Sequence[str] = ()


class Measured(Protocol):
    """Measures of an experiment."""

    def to_result(self) -> ExperimentResult:
        """The tables, with all figures."""


M = TypeVar("M", bound=Measured)


@dataclass(frozen=True)
class Evaluation(Generic[V]):
    """The outcome of an experiment. `value`: everything that was measured; `result`: what the command line prints."""

    value: V
    result: ExperimentResult

    @classmethod
    def of(cls, value: M) -> Evaluation[M]:
        """The outcome with this value, which says itself how it is shown."""
        return Evaluation(value, value.to_result())

    @property
    def tables(self) -> Sequence[ResultTable]:
        """The tables; each gives a data frame by `df()`."""
        return self.result.tables

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on the figures, such as what a budget left out."""
        return self.result.notes

    def to_json(self) -> Any:
        """All figures as a JSON value."""
        return json_value(self.result.figures)

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
