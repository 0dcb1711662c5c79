"""Writers of a dataset's formats: their base class, the tables as JSON Lines and Parquet, and the files of LINT."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from hapax.evaluation.dataset.columns import (
    ANNOTATIONS,
    CONTRADICTS,
    FACTS,
    PROBES,
    STATEMENTS,
    DatasetTable,
    ParquetWriter,
    Row,
    Size,
    json_line,
)
from hapax.evaluation.dataset.formats import FORMATS
from hapax.evaluation.dataset.rows import DatasetSource, Entry
from hapax.evaluation.link.lint import FLIPS_FILE
from hapax.grammar.link_json import inexpressible_parts, to_link_json
from hapax.grammar.remedies import Setting
from hapax.grammar.words import counted
from hapax.kb.csv_text import write_rows
from hapax.kb.records import Distribution

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


ALL = "train"
"""The only split of a table that is not divided into head and long tail; hubs look for this name first."""


class SplitWriter(Protocol):
    """An open file of one split of one table."""

    def write(self, row: Row) -> None: ...

    def close(self) -> Size: ...


class TableSink(Sink):
    """Writes statements, probes, facts and annotations as tables; a split without rows has no file."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.sizes: dict[tuple[str, str], Size] = {}
        self._writers: dict[tuple[str, str], SplitWriter] = {}
        self._fact_ids: set[str] = set()

    def open_writer(self, table: DatasetTable, split: str) -> SplitWriter:
        """Open the file of one split."""
        raise NotImplementedError

    def take(self, entry: Entry) -> None:
        split = entry.record.distribution.value
        self._write(STATEMENTS, split, entry.row)
        for row in entry.probes:
            self._write(PROBES, split, row)
        # Facts are written at the end: proofs share them, and each has one row.
        self._fact_ids.update(entry.fact_ids)

    def finish(self, source: DatasetSource) -> None:
        for row in source.facts(self._fact_ids):
            self._write(FACTS, ALL, row)
        for row in source.annotations():
            self._write(ANNOTATIONS, ALL, row)
        # Closing writes the last rows, so sizes are known only afterwards.
        self.sizes = {key: writer.close() for key, writer in self._writers.items()}

    def _write(self, table: DatasetTable, split: str, row: Row) -> None:
        key = (table.name, split)
        if key not in self._writers:
            self._writers[key] = self.open_writer(table, split)
        self._writers[key].write(row)


class JsonlSink(TableSink):
    """`jsonl/statements-head.jsonl` and so on; a table with one split only is `jsonl/facts.jsonl`."""

    def open_writer(self, table: DatasetTable, split: str) -> JsonlWriter:
        place = self.folder / "jsonl"
        place.mkdir(parents=True, exist_ok=True)
        return JsonlWriter(place / (f"{table.name}.jsonl" if split == ALL else f"{table.name}-{split}.jsonl"))


class ParquetSink(TableSink):
    """Statements in `data/`, and each other table in a folder of its name."""

    def open_writer(self, table: DatasetTable, split: str) -> ParquetWriter:
        place = self.folder / ("data" if table is STATEMENTS else table.name)
        place.mkdir(parents=True, exist_ok=True)
        return ParquetWriter(place / f"{split}-00000-of-00001.parquet", table)


class JsonlWriter:
    """Writes rows as lines of one file."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="\n")
        self._rows = 0

    def write(self, row: Row) -> None:
        self._stream.write(json_line(row))
        self._rows += 1

    def close(self) -> Size:
        self._stream.close()
        return Size(self._rows)


METHOD = "LINK"
"""Key of the labels in `flip_label_data.json`: readers of LINT, ours included, look for LINK's."""

_ENDS = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "longtail"}
_BAD_IN_NAMES = frozenset('/\\:*?"<>|\0')


class LintSink(Sink):
    """A CSV of values for each rule and distribution, `rules.json`, and the labels that people flipped.

    Rules whose names cannot be file names are left out. `notes` lists them, and the rules that LINK's JSON cannot hold.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / "lint", name)
        self._rows: dict[tuple[str, Distribution], int] = {}
        self._flipped: dict[str, dict[str, list[int]]] = {}
        self._unnamed: set[str] = set()

    def take(self, entry: Entry) -> None:
        rule, distribution = entry.rule, entry.record.distribution
        if not _is_file_name(rule.name):
            self._unnamed.add(rule.name)
            return
        number = self._rows.get((rule.name, distribution), 0)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{rule.name}_value_cache.csv_{_ENDS[distribution]}"
        # Opened anew for each row: a large library needs more files than a process may keep open.
        with path.open("a", encoding="utf-8", newline="") as stream:
            if number == 0:
                write_rows(stream, [[variable.name for variable in rule.variables]])
            values = dict(entry.record.substitution)
            row = []
            for variable in rule.variables:
                # Generic variables have no value; LINK writes their names, such as `PersonX`.
                generic_name = "".join(variable.data_type.split()) + variable.name
                row.append(str(values.get(variable.name, generic_name)))
            write_rows(stream, [row])
        self._rows[rule.name, distribution] = number + 1
        if entry.row["label"] == CONTRADICTS:
            # LINK's file lists the rows of a CSV, counted from 0.
            flipped = self._flipped.setdefault(rule.name, {end: [] for end in _ENDS.values()})
            flipped[_ENDS[distribution]].append(number)

    def finish(self, source: DatasetSource) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(self._unnamed):
            self.notes.append(f"lint: rule {name} is left out, because no file can have its name")
        fitting, unfitting = [], []
        for rule in sorted(source.library.rules, key=lambda rule: rule.name):
            if rule.name in self._unnamed:
                continue
            # The values of such a rule are written all the same; only rules.json lacks the rule.
            if reasons := ", ".join(inexpressible_parts(rule)):
                unfitting.append(f"{rule.name} ({reasons})")
            else:
                fitting.append(rule)
        if unfitting:
            self.notes.append(
                f"lint/rules.json cannot hold {counted(len(unfitting), 'rule')}: {', '.join(unfitting)}. Read "
                f"the dataset with {Setting('rules')} rules.rules instead, which holds all of them."
            )
        self.write("rules.json", to_link_json(replace(source.library, rules=tuple(fitting))))
        if self._flipped:
            self.write(FLIPS_FILE, json.dumps({METHOD: dict(sorted(self._flipped.items()))}, indent=2) + "\n")


def _is_file_name(name: str) -> bool:
    # 100 characters leave room for the suffix within the 255 bytes of most file systems.
    return not _BAD_IN_NAMES & set(name) and not name.startswith(".") and name.isprintable() and len(name) <= 100
