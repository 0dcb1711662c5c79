"""The card of a dataset for the Hugging Face Hub: what it is, how it was made, and its known faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hapax.engine.judgements import RULE_BAR, unsound_rules
from hapax.evaluation.dataset.columns import ANNOTATIONS, FACTS, PROBES, STATEMENTS, Column, DatasetTable, Size
from hapax.evaluation.dataset.harnesses import page, plain, yaml_text
from hapax.evaluation.dataset.rows import run_models
from hapax.evaluation.dataset.sinks import ParquetSink
from hapax.evaluation.dataset.summary import DatasetSummary
from hapax.evaluation.link.lint import table_16
from hapax.evaluation.shared.estimates import percent, share
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES
from hapax.evaluation.votes.next_items import mended_lines
from hapax.evaluation.votes.soundness import truth_lines

TABLES = (STATEMENTS, FACTS, PROBES, ANNOTATIONS)

Sizes = Mapping[tuple[str, str], Size]
"""Sizes of the Parquet files by table and split."""

# The Hub's own names of size categories, each with its exclusive upper bound.
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
# Keys are those of `selection.REASONS`; each text follows a number: "12 contain a term of the block list".
_REASONS = {
    "other_runs": "are of runs that were not selected; by default, experiments without a gate are not",
    "wrong_type": "have a value of a wrong type by people's votes",
    "harmful": "were marked as harmful by people",
    "denied": "are false by people's votes",
    "shared": "are in head and long tail",
    "blocked": "contain a term of the block list",
    "not_in_the_sample": "were not drawn",
}


class HubSink(ParquetSink):
    """The layout of the Hugging Face Hub: Parquet files and `README.md`, the card that describes them."""

    def describe(self, summary: DatasetSummary) -> None:
        self.write("README.md", card(summary, self.sizes))


def card(summary: DatasetSummary, sizes: Sizes) -> str:
    """README.md: metadata in YAML for the Hub and for `datasets`, then the page."""
    splits = {}
    for table in TABLES:
        if own := {split: size for (name, split), size in sizes.items() if name == table.name}:
            splits[table] = own
    return page("card.md.jinja", _content(summary, splits))


def _content(summary: DatasetSummary, splits: Mapping[DatasetTable, Mapping[str, Size]]) -> dict[str, Any]:
    """The values that the template shows."""
    kb, selection = summary.source.kb, summary.source.selection
    judged = [*truth_lines(kb, selection.rules, summary.wish.runs), *mended_lines(kb), *summary.source.judged_notes]
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
        "gates": [(verdicts.gate, verdicts.judged, percent(verdicts.refused)) for verdicts in summary.gates],
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
