"""The formats of a dataset, and where it is written in which of them.

To add a format, write its sink in a module of its own and name it in FORMATS.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option


@dataclass(frozen=True, slots=True)
class DatasetFormat:
    """One choice of `--format`."""

    sink: str
    """Subclass of Sink as `module:name`, imported when it is needed."""
    includes: tuple[str, ...] = ()
    """Formats whose files this one writes, too, so that they are not written twice."""


_ROOM = "hapax.evaluation.dataset"

FORMATS = {
    "jsonl": DatasetFormat(f"{_ROOM}.sinks:JsonlSink"),
    "parquet": DatasetFormat(f"{_ROOM}.sinks:ParquetSink"),
    "hf": DatasetFormat(f"{_ROOM}.card:HubSink", includes=("parquet",)),
    "lint": DatasetFormat(f"{_ROOM}.sinks:LintSink"),
    "lm-eval": DatasetFormat(f"{_ROOM}.harnesses:HarnessSink"),
    "inspect": DatasetFormat(f"{_ROOM}.harnesses:InspectSink"),
}
"""The formats by name, in the order in which they are written."""


@checked
@dataclass(frozen=True, slots=True)
class Target:
    """Where a dataset is written, in which formats, and whether it may replace an older one there.

    `name` is the title of the card and the first part of the names of tasks; without one, the title is the name of the
    folder, and tasks begin with `hapax`. `version` distinguishes it from other datasets of this name.
    """

    folder: Path
    formats: Annotated[
        tuple[str, ...], Option("Format to write; default: all.", name="format", choices=tuple(FORMATS))
    ] = tuple(FORMATS)
    name: Annotated[
        str | None,
        Option("Name of card and tasks; default: the folder's name, for tasks hapax."),
    ] = None
    force: Annotated[bool, Option("Replace the dataset in the folder.")] = False
    version: Annotated[str, Option("Version of the dataset, for its card.")] = "1"

    def __post_init__(self) -> None:
        if self.name is not None and not (self.name.isascii() and self.name.isidentifier()):
            raise HapaxError(f"{self.name!r} cannot begin the names of tasks. Use letters, digits and underscores.")
        if not self.version.strip() or not self.version.isprintable():
            raise HapaxError(f"{self.version!r} is not a version. Use a text such as 1.0.")

    @property
    def title(self) -> str:
        """Title of the card."""
        return self.name or self.folder.resolve().name or "hapax"

    @property
    def tasks(self) -> str:
        """First part of the names of tasks, and the name in `metadata.json`."""
        return self.name or "hapax"
