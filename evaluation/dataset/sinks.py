"""The base class of writers of a dataset in one format. Nothing heavy is imported before a dataset is written."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hapax.evaluation.dataset.formats import FORMATS

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


def open_sinks(formats: Sequence[str], folder: Path, name: str) -> list[Sink]:
    """Open a sink for each format, except for those that another of them includes."""
    # Such as parquet, whose files the layout of the Hub writes in any case.
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
