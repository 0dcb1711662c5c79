"""The formats of a dataset: JSON Lines, Parquet files and card of the Hub, tasks for lm-eval and Inspect."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from hapax.engine.judgements import RULE_BAR, unsound_rules
from hapax.engine.search.promises import StoredCertificate, stored_certificates
from hapax.evaluation.dataset.columns import (
    ANNOTATIONS,
    FACTS,
    LAYOUT,
    PROBES,
    STATEMENTS,
    Column,
    DatasetTable,
    JsonlWriter,
    ParquetWriter,
    Row,
    Size,
)
from hapax.evaluation.dataset.dataset_rows import FORMATS, DatasetSource, Entry, SelectionOptions, Target, run_models
from hapax.evaluation.link.lint_import import DomainTally, table_16, table_16_json
from hapax.evaluation.link.probing_questions import PREFIX, TEMPLATES
from hapax.evaluation.shared.estimates import percent, share
from hapax.evaluation.shared.result_tables import markdown_table
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES, StatementChoice
from hapax.evaluation.votes.soundness import truth_lines
from hapax.evaluation.votes.voting_items import mended_lines
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution
from hapax.llm_oracle.questions.prompts import CRITIC_PROMPT


class Sink:
    """Base class of writers of one format. A subclass overrides the steps that it needs.

    `folder` is the dataset's folder, `name` the dataset's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name

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
    """Open a sink for each format."""
    # Imported by name, so that no format pays for the libraries of another.
    sinks = [cast("type[Sink]", pkgutil.resolve_name(FORMATS[chosen])) for chosen in formats]
    return [sink(folder, name) for sink in sinks]


ALL = "train"
"""The only split of a table that is not divided into head and long tail; hubs look for this name first."""

Sizes = Mapping[tuple[str, str], Size]
"""Sizes of files by table and split."""


class TableSink(Sink):
    """Writes statements, probes, facts and annotations as tables; a split without rows has no file."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.sizes: Sizes = {}
        self._writers: dict[tuple[str, str], JsonlWriter | ParquetWriter] = {}
        self._fact_ids: set[str] = set()

    def open_writer(self, table: DatasetTable, split: str) -> JsonlWriter | ParquetWriter:
        """Open the file of one split."""
        raise NotImplementedError

    def take(self, entry: Entry) -> None:
        split = entry.record.distribution.value
        self.add(STATEMENTS, split, entry.row)
        for row in entry.probes:
            self.add(PROBES, split, row)
        # Facts are written at the end: proofs share them, and each has one row.
        self._fact_ids.update(entry.fact_ids)

    def finish(self, source: DatasetSource) -> None:
        for row in source.facts(self._fact_ids):
            self.add(FACTS, ALL, row)
        for row in source.annotations():
            self.add(ANNOTATIONS, ALL, row)
        self.close()

    def add(self, table: DatasetTable, split: str, row: Row) -> None:
        """Write a row into the file of its split."""
        key = (table.name, split)
        if key not in self._writers:
            self._writers[key] = self.open_writer(table, split)
        self._writers[key].write(row)

    def close(self) -> None:
        """Close all files, which writes the last rows, so that sizes are known only afterwards."""
        self.sizes = {key: writer.close() for key, writer in self._writers.items()}


class JsonlSink(TableSink):
    """`jsonl/statements-head.jsonl` and so on; a table with one split only is `jsonl/facts.jsonl`."""

    def open_writer(self, table: DatasetTable, split: str) -> JsonlWriter:
        name = f"{table.name}.jsonl" if split == ALL else f"{table.name}-{split}.jsonl"
        return JsonlWriter(self.folder / "jsonl" / name)


def yaml_text(tree: Mapping[str, Any]) -> str:
    """The tree as YAML in block style, with keys in the given order."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        """Write equal parts out instead of as anchors, which some readers do not support."""
        return True


_COUNT = len(TEMPLATES)
_ALL = f"all_{_COUNT}"
"""Name of the metric of statements all of whose questions were answered correctly."""

VERSION = 1.0
"""Version of the tasks. Raise it when a prompt or metric changes, so that results can be told apart."""

METADATA = {"version": VERSION}
_HERE = Path(__file__).parent
_QUESTION = "{{question}}"
_BASE = "_base_yaml"
"""File that the tasks include. Its name must not end in .yaml, or the harness takes it for a task."""


def group_files(
    group: str, base: str, tasks: Mapping[str, Mapping[str, Any]], averaged: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Names and texts of the files of a group of tasks, which include the file `base`.

    `averaged`: metrics of the group that are means over the documents of its tasks.
    """
    means = [{"metric": name, "aggregation": "mean", "weight_by_size": True} for name in averaged]
    content = {"group": group, "task": list(tasks), "aggregate_metric_list": means, "metadata": METADATA}
    yield f"{group}.yaml", yaml_text(content)
    for task, own in tasks.items():
        yield f"{task}.yaml", yaml_text({"include": base, "task": task, **own})


def page(template: str, content: Mapping[str, Any]) -> str:
    """A page in Markdown by a template of this folder, in which nothing is escaped but by the filter `plain`."""
    environment = Environment(  # noqa: S701  # Markdown
        loader=PackageLoader("hapax.evaluation.dataset", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = plain
    environment.globals |= {"counted": counted, "table": _table}
    return environment.get_template(template).render(content)


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    return markdown_table(list(columns), [[str(cell) for cell in row] for row in rows])


def plain(text: str) -> str:
    """A name from rules or models as plain text in one line, with all Markdown and HTML escaped."""
    # Line ends would end the cell of a table; `markdown_table` escapes its bars.
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]#!~" else letter for letter in line)


class _QuestionSink(TableSink):
    """Writes the questions of each distribution into a file of their own, a line per question."""

    def open_writer(self, _: DatasetTable, split: str) -> JsonlWriter:
        return JsonlWriter(self.folder / f"{split}.jsonl")

    def take(self, entry: Entry) -> None:
        for row in entry.probes:
            self.add(PROBES, entry.record.distribution.value, self.line(row))

    def line(self, row: Row) -> Row:
        """The line that stands for a row of the table `probes`."""
        return row


class HarnessSink(_QuestionSink):
    """`lm_eval/`: two groups of tasks over the same questions, one in LINK's wording and one in the critic's.

    The names of all tasks begin with the dataset's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / "lm_eval", name)

    def finish(self, _: DatasetSource) -> None:
        self.close()
        # A distribution without questions gets no task.
        present = [distribution for distribution in Distribution if (PROBES.name, distribution.value) in self.sizes]
        self.write("utils.py", (_HERE / "shipped_lm_eval.py").read_text("utf-8"))
        self.write(_BASE, (_HERE / "tasks.yaml").read_text("utf-8"))
        # The harness fills in the question of each line, by Jinja. No blank at the end: it puts one between prompt and
        # choice.
        link = {"doc_to_text": f"{PREFIX}\n{_QUESTION}\nAnswer:", "doc_to_choice": "answers"}
        critic = {"doc_to_text": CRITIC_PROMPT.format(claim=_QUESTION), "doc_to_choice": ["yes", "no"]}
        prompts: dict[str, dict[str, Any]] = {self.name: link, f"{self.name}_critic": critic}
        for group, prompt in prompts.items():
            tasks = {}
            for distribution in present:
                data = {"data_file": f"{distribution.value}.jsonl"}
                tasks[f"{group}_{distribution.value}"] = {"dataset_kwargs": data, **prompt}
            for name, text in group_files(group, _BASE, tasks, ("acc", _ALL, "positive", "negative")):
                self.write(name, text)
        content = {"name": self.name, "groups": prompts, "present": present, "count": _COUNT}
        self.write("README.md", page("tasks.md.jinja", {**content, "names": DISTRIBUTION_NAMES}))


class InspectSink(_QuestionSink):
    """`inspect/`: samples as Inspect reads them, and a file of tasks."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / "inspect", name)

    def line(self, row: Row) -> Row:
        """A question with the fields of Inspect's `Sample`; the target is the letter of the right choice."""
        metadata = ("statement", "rule", "domain", "distribution", "template")
        return {
            "input": f"{PREFIX}\n{row['question']}",
            "choices": row["answers"],
            "target": "AB"[row["label"]],
            "id": row["id"],
            "metadata": {name: row[name] for name in metadata},
        }

    def finish(self, _: DatasetSource) -> None:
        self.close()
        self.write("task.py", (_HERE / "shipped_inspect.py").read_text("utf-8"))


@dataclass
class RowCounter:
    """Counts rows as they are written. It keeps one example text of each distribution, and no other row."""

    domains: DomainTally = field(default_factory=lambda: DomainTally({}))
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)
    in_both: int = 0
    examples: dict[Distribution, str] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        record, row = entry.record, entry.row
        self.domains.rules[record.rule] = row["domain"]
        self.domains.take(record, row["evaluator_model"])
        self.labels[row["label"], row["label_source"]] += 1
        # Such a statement has a row in each distribution; it is counted at the first of them.
        self.in_both += row["in_both"] and record.distribution is Distribution.HEAD
        self.examples.setdefault(record.distribution, record.text)


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset in figures. `notes`: choices, and rows that a format cannot hold."""

    target: Target
    wish: SelectionOptions
    source: DatasetSource
    tally: RowCounter
    formats: tuple[str, ...]
    notes: tuple[str, ...] = ()
    derived: int = 0
    """Statements of `derive`, in a file of their own."""

    @property
    def left_out(self) -> dict[str, int]:
        return self.source.selection.left_out

    @property
    def certificates(self) -> list[StoredCertificate]:
        """The promises on the facts that the runs behind the statements accepted."""
        return stored_certificates(self.source.kb, self.source.runs)

    def to_json(self) -> dict[str, Any]:
        """The content of `metadata.json`, which `--json` prints."""
        labels, runs = [], []
        for (label, source), count in sorted(self.tally.labels.items()):
            labels.append({"label": label, "source": source, "statements": count})
        for run in self.source.runs.values():
            attributes = {name: getattr(run, name) for name in ("id", "command", "started", "status")}
            runs.append({**attributes, "settings": dict(run.settings)})
        return {
            "name": self.target.tasks,
            "layout": LAYOUT,
            "version": self.target.version,
            "rankers": [{"name": ranker.name, "taught_by": ranker.taught_by} for ranker in self.source.rankers],
            "formats": list(self.formats),
            "seed": self.wish.seed,
            "sample": self.wish.sample,
            "rules": sorted({place.rule for place in self.source.selection.places}),
            "table_16": table_16_json(self.tally.domains.counts()),
            "in_both": self.tally.in_both,
            "repeats": self.source.selection.repeats,
            "derived": self.derived,
            "labels": labels,
            "left_out": self.left_out,
            "judged": {**self.source.selection.counts.to_json(), "choice": self.wish.judged},
            "certificates": [certificate.to_json() for certificate in self.certificates],
            "notes": list(self.notes),
            "runs": runs,
        }


TABLES = (STATEMENTS, FACTS, PROBES, ANNOTATIONS)

# The Hub's own names of size categories, each with its exclusive upper bound.
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
# Keys are those of `dataset_rows.REASONS`; each text follows a number: "12 contain a term of the block list".
_REASONS = {
    "other_runs": "are of runs that were not selected; by default, experiments without a gate are not",
    "wrong_type": "have a value of a wrong type by people's votes",
    "harmful": "were marked as harmful by people",
    "denied": "are false by people's votes",
    "shared": "are in head and long tail",
    "blocked": "contain a term of the block list",
    "not_in_the_sample": "were not drawn",
}


class HubSink(TableSink):
    """The layout of the Hugging Face Hub: Parquet files, and the card `README.md`.

    Statements are in `data/`, each other table is in a folder of its name.
    """

    def open_writer(self, table: DatasetTable, split: str) -> ParquetWriter:
        place = self.folder / ("data" if table is STATEMENTS else table.name)
        return ParquetWriter(place / f"{split}-00000-of-00001.parquet", table)

    def describe(self, summary: DatasetSummary) -> None:
        splits = {}
        for table in TABLES:
            if own := {split: size for (name, split), size in self.sizes.items() if name == table.name}:
                splits[table] = own
        # Metadata in YAML for the Hub and for `datasets`, then the page.
        self.write("README.md", page("card.md.jinja", _content(summary, splits)))


def _content(summary: DatasetSummary, splits: Mapping[DatasetTable, Mapping[str, Size]]) -> dict[str, Any]:
    """The values that the template shows."""
    kb, selection = summary.source.kb, summary.source.selection
    judged = [
        *truth_lines(kb, StatementChoice(selection.rules, summary.wish.runs)),
        *mended_lines(kb),
        *summary.source.judged_notes,
    ]
    if selection.counts.judged:
        judged.append("The votes on the statements below are in `annotations`, without names.")
    unsound = []
    for rule in unsound_rules(kb):
        if rule.rule in selection.rules:
            estimate = share([True] * rule.sound + [False] * (rule.judged - rule.sound))
            unsound.append((plain(rule.rule), percent(estimate), rule.judged))
    models = {run.id: run_models(run) for run in summary.source.runs.values()}
    # Runs of some commands lack roles, so the columns are the union of all roles.
    roles = list(dict.fromkeys(role for by_role in models.values() for role in by_role))
    runs = []
    for run in summary.source.runs.values():
        named = (models[run.id].get(role, "none") for role in roles)
        runs.append([plain(cell) for cell in (run.id, run.command, run.status, *named)])
    domains = table_16(summary.tally.domains.counts())
    tables = []
    for table, sizes in splits.items():
        rows = [(f"`{column.name}`", _type(column), column.about) for column in table.columns]
        tables.append((table, sizes, rows))
    return {
        "head": yaml_text(_head(summary, splits)),
        "summary": summary,
        "source": summary.source,
        "tally": summary.tally,
        "names": DISTRIBUTION_NAMES,
        "domain_columns": domains.columns,
        "domain_rows": [map(plain, row) for row in domains.texts],
        "reasons": _REASONS,
        "run_columns": ("run", "command", "status", *(f"{role} model" for role in roles)),
        "runs": runs,
        "calls": kb.call_counts(),
        "judged": judged,
        "bar": f"{RULE_BAR:.0%}",
        "unsound": unsound,
        "tables": tables,
    }


def _head(summary: DatasetSummary, splits: Mapping[DatasetTable, Mapping[str, Size]]) -> dict[str, Any]:
    """The metadata of the Hub. A comment takes the place of the licence: the Hub accepts only those that it knows."""
    configs, features = [], []
    for table, sizes in splits.items():
        default = table is STATEMENTS
        folder = "data" if default else table.name
        files = [{"split": split, "path": f"{folder}/{split}-*.parquet"} for split in sizes]
        # The Hub shows the default configuration, and `load_dataset` loads it.
        mark = {"default": True} if default else {}
        configs.append({"config_name": table.name, **mark, "data_files": files})
        split_sizes = []
        for split, size in sizes.items():
            split_sizes.append({"name": split, "num_bytes": size.num_bytes, "num_examples": size.rows})
        columns = [_feature(column) for column in table.columns]
        features.append({"config_name": table.name, "features": columns, "splits": split_sizes})
    rows = sum(size.rows for size in splits.get(STATEMENTS, {}).values())
    size_category = next((name for limit, name in _SIZES if rows < limit), "n>10M")
    return {
        "language": ["en"],
        "pretty_name": summary.target.title,
        "size_categories": [size_category],
        "task_categories": ["text-classification"],
        "task_ids": ["natural-language-inference"],
        "tags": ["synthetic", "hapax", "long-tail"],
        "configs": configs,
        "dataset_info": features,
    }


def _feature(column: Column) -> dict[str, Any]:
    """A column in the notation of `datasets`."""
    # Parquet holds JSON objects as texts (`columns.flat`), and `datasets` reads them as such.
    dtype = "string" if column.kind == "json" else column.kind
    if not column.many:
        return {"name": column.name, "dtype": dtype}
    return {"name": column.name, "list": [_feature(field) for field in column.fields] if column.fields else dtype}


def _type(column: Column) -> str:
    """The type of a column in words."""
    name: str = "JSON text" if column.kind == "json" else column.kind
    if column.fields:
        name = "record of " + ", ".join(field.name for field in column.fields)
    return f"list: {name}" if column.many else name
