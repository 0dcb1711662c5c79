"""The formats of a dataset. To add one, write its sink in a module of its own and name it in FORMATS.

Nothing heavy is imported before a dataset is written.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hapax.evaluation.dataset.rows import DatasetSource, Entry
    from hapax.evaluation.dataset.summary import DatasetSummary


class Sink:
    """Base class of writers of one format. A subclass overrides the steps that it needs.

    `folder` is the dataset's folder, `name` the dataset's name, `notes` what the user should know about this format.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.notes: list[str] = []

    def write(self, name: str, text: str) -> None:
        """Write a text file into the folder, with the same bytes on every system."""
        (self.folder / name).write_text(text, encoding="utf-8", newline="\n")

    def take(self, entry: Entry) -> None:
        """Write one statement."""

    def finish(self, source: DatasetSource) -> None:
        """Write what belongs to the whole dataset, and close all files."""

    def describe(self, summary: DatasetSummary) -> None:
        """Write what needs the figures of the finished dataset, such as a card."""


@dataclass(frozen=True, slots=True)
class DatasetFormat:
    """One choice of `--format`."""

    sink: str
    """Subclass of Sink as `module:name`, imported when it is needed."""
    includes: tuple[str, ...] = ()
    """Formats whose files this one writes, too, so that they are not written twice."""


_ROOM = "hapax.evaluation.dataset"

FORMATS = {
    "jsonl": DatasetFormat(f"{_ROOM}.tables:JsonlSink"),
    "parquet": DatasetFormat(f"{_ROOM}.tables:ParquetSink"),
    "hf": DatasetFormat(f"{_ROOM}.card:HubSink", includes=("parquet",)),
    "lint": DatasetFormat(f"{_ROOM}.lint_files:LintSink"),
    "lm-eval": DatasetFormat(f"{_ROOM}.harnesses:HarnessSink"),
    "inspect": DatasetFormat(f"{_ROOM}.harnesses:InspectSink"),
}
"""The formats by name, in the order in which they are written."""


def open_sinks(formats: Sequence[str], folder: Path, name: str) -> list[Sink]:
    """Open a sink for each format, except for those that another of them includes."""
    included: set[str] = set()
    for chosen in formats:
        included.update(FORMATS[chosen].includes)
    sinks = []
    for chosen in formats:
        if chosen not in included:
            # Imported by name, so that no format pays for the libraries of another.
            sink = cast("type[Sink]", pkgutil.resolve_name(FORMATS[chosen].sink))
            sinks.append(sink(folder, name))
    return sinks
