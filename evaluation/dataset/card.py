"""The card of a dataset for the Hugging Face Hub: what it is, how it was made, and its known faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hapax.engine.judgements import RULE_BAR, unsound_rules
from hapax.evaluation.dataset.columns import ANNOTATIONS, FACTS, PROBES, STATEMENTS, Column, DatasetTable
from hapax.evaluation.dataset.parquet import Size
from hapax.evaluation.dataset.rows import run_models
from hapax.evaluation.dataset.summary import DatasetSummary
from hapax.evaluation.dataset.tables import ParquetSink
from hapax.evaluation.dataset.yaml_text import yaml_text
from hapax.evaluation.link.lint import table_16
from hapax.evaluation.shared.domains import DISTRIBUTION_NAMES
from hapax.evaluation.shared.estimates import percent, share
from hapax.evaluation.shared.results import markdown_table
from hapax.evaluation.votes.next_items import mended_lines
from hapax.evaluation.votes.soundness import truth_lines
from hapax.grammar.words import counted

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
    "not_fresh": "are in the frozen dataset from which this one is fresh",
    "blocked": "contain a term of the block list",
    "not_in_the_sample": "were not drawn",
}
_LIMITS = """\
- Values, and the judgements on them, come from models. The critic is a model too: it accepts some false facts and
  rejects some true ones. Only the votes of people say how many statements are true.
- Rules hold in ordinary cases; an unusual value can be an exception.
- A label whose source is `rule` repeats what the rule concludes; only the column `judgement` says what people think.
- A proof shows which facts a statement rests on, not that these are true.
- Head and long tail are what the likelihood model found likely and unlikely; another model may draw the line elsewhere.
- A premise states only what concerns the generic person or thing. The other facts that the conclusion needs are in
  `facts` and in the proof; a reader who does not know them cannot see why the conclusion follows.
- All statements follow a few templates, and are in the language of their templates."""
_HARM = """\
The authors of LINK name three risks of making data in this way, which apply here, too. The search can be run with
harmful rules or values, or rank them by a model that prefers harmful values. Statements from the long tail are not
always true: whoever uses them unchecked may put false information into a system, and some of the rules are about
health, allergies or the law, where that can hurt people. And querying large models uses energy.

Values come from models, and may be offensive or name real persons. Statements that people marked as harmful and those
that match the block list were left out and are counted above; a block list finds only the terms on it.
Do not use these statements as advice."""


class HubSink(ParquetSink):
    """The layout of the Hugging Face Hub: Parquet files and `README.md`, the card that describes them."""

    def describe(self, summary: DatasetSummary) -> None:
        self.write("README.md", card(summary, self.sizes))


def card(summary: DatasetSummary, sizes: Sizes) -> str:
    """README.md: metadata in YAML for the Hub and for `datasets`, then the page."""
    # A comment instead of a key: the Hub accepts only licences that it knows.
    head = "# license: the owner of the data chooses one and writes it here\n" + yaml_text(_head(summary, sizes))
    return f"---\n{head}---\n\n" + "\n\n".join(_sections(summary, sizes)) + "\n"


def _head(summary: DatasetSummary, sizes: Sizes) -> dict[str, Any]:
    configs, features = [], []
    for dataset_table in TABLES:
        splits = _splits(sizes, dataset_table)
        if not splits:
            continue
        default = dataset_table is STATEMENTS
        folder = "data" if default else dataset_table.name
        # A pattern, because a split has as many shards as its rows need.
        files = [{"split": split, "path": f"{folder}/{split}-*.parquet"} for split in splits]
        # The Hub shows the default configuration, and `load_dataset` loads it.
        mark = {"default": True} if default else {}
        configs.append({"config_name": dataset_table.name, **mark, "data_files": files})
        split_sizes = []
        for split, size in splits.items():
            split_sizes.append({"name": split, "num_bytes": size.num_bytes, "num_examples": size.rows})
        columns = [_feature(column) for column in dataset_table.columns]
        features.append({"config_name": dataset_table.name, "features": columns, "splits": split_sizes})
    rows = sum(size.rows for size in _splits(sizes, STATEMENTS).values())
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


def _splits(sizes: Sizes, dataset_table: DatasetTable) -> dict[str, Size]:
    return {split: size for (name, split), size in sizes.items() if name == dataset_table.name}


def _feature(column: Column) -> dict[str, Any]:
    """A column in the notation of `datasets`."""
    # Parquet holds JSON objects as texts (`columns.flat`), and `datasets` reads them as such.
    dtype = "string" if column.kind == "json" else column.kind
    if not column.many:
        return {"name": column.name, "dtype": dtype}
    return {"name": column.name, "list": [_feature(field) for field in column.fields] if column.fields else dtype}


def _sections(summary: DatasetSummary, sizes: Sizes) -> Iterator[str]:
    yield f"# {_cells((summary.target.title,))[0]}\n\n{_introduction(summary)}"
    yield f"## Statements\n\n{_counts(summary)}"
    yield f"## What was left out\n\n{_left_out(summary)}"
    yield f"## How it was made\n\n{_models(summary)}"
    yield f"### What the gates rejected\n\n{_gates(summary)}"
    yield f"## How many statements are right\n\n{_judged(summary)}"
    yield f"## Limits\n\n{_LIMITS}"
    yield f"## Risks\n\n{_HARM}"
    yield f"## Tables and columns\n\n{_columns(sizes)}"
    yield "## Licence\n\nNone is chosen yet. The owner of the data writes it into the first line of this page and here."


def _introduction(summary: DatasetSummary) -> str:
    examples = []
    for distribution, text in summary.tally.examples.items():
        # Four blanks make a block of code, in which Markdown of a model has no effect.
        examples.append(f"    {DISTRIBUTION_NAMES[distribution]}: {' '.join(text.split())}")
    target = summary.target
    return (
        f"Version {_cells((target.version,))[0]}, with the checksum `{summary.checksum}` of statements and questions, "
        "which `hapax.load_dataset` verifies.\n\n"
        "Statements of the form *If premise, then conclusion*, each an instance of a logical rule, with the facts that "
        "it rests on. The split `head` holds statements that a language model finds likely, `long_tail` those that it "
        "finds unlikely, as in the dataset LINT (*In Search of the Long-Tail: Systematic Generation of Long-Tail "
        "Inferential Knowledge via Logical Rule Guided Search*). The first statement of each:\n\n" + "\n".join(examples)
    )


def _counts(summary: DatasetSummary) -> str:
    domains = table_16(summary.tally.domains())
    shared = summary.tally.in_both
    return (
        f"{markdown_table(domains.columns, map(_cells, domains.texts))}\n\n"
        "Delta is the mean log-likelihood of head statements less that of long-tail statements under the evaluator, in "
        "nats per token, averaged over rules, with a 95 % interval if there are several rules. `n/a`: no rule has "
        f"scores in both distributions.{_circular(summary)}\n\n"
        f"{_overlap(shared)} Each text is one row. "
        f"{counted(summary.source.selection.repeats, 'further statement reads', 'further statements read')} like "
        "another of the same split, with other values that the text does not mention; their proofs are in "
        "`other_proofs`."
    )


def _circular(summary: DatasetSummary) -> str:
    """A warning of evaluators that are not independent judges."""
    names = summary.source.circular_evaluators
    if not names:
        return ""
    return (
        f" **Circular:** {_cells((', '.join(names),))[0]} ranked these statements, taught the ranker or learned from "
        "it, so this delta is no evidence of a long tail; `hapax evaluate likelihood --evaluator` asks another model."
    )


def _overlap(shared: int) -> str:
    if not shared:
        return "The splits share no text, and no rule with the same values."
    return (
        f"{counted(shared, 'text is', 'texts are')} in both splits (`in_both`), which says nothing about a difference "
        "between them; `--in-both leave-out` leaves such texts out."
    )


def _left_out(summary: DatasetSummary) -> str:
    lines = [f"- {count} {_REASONS[reason]}" for reason, count in summary.left_out.items() if count]
    if not lines:
        return "No statement of the knowledge base."
    return "Texts, counted once per distribution:\n\n" + "\n".join(lines)


def _models(summary: DatasetSummary) -> str:
    if not summary.source.runs:
        return "The knowledge base does not record which runs derived the statements."
    runs = [(run, run_models(run)) for run in summary.source.runs.values()]
    roles: dict[str, None] = {}  # a set that keeps its order
    # Runs of some commands lack roles, so the columns are the union of all roles.
    for _, models in runs:
        roles |= dict.fromkeys(models)
    rows = []
    for run, models in runs:
        rows.append(_cells((run.id, run.command, run.status, *(models.get(role, "none") for role in roles))))
    calls = summary.source.kb.call_counts()
    by_role = ": " + ", ".join(f"{role} {count}" for role, count in calls.items()) if calls else ""
    return (
        f"{markdown_table(('run', 'command', 'status', *(f'{role} model' for role in roles)), rows)}\n\n"
        "In a `search` the knowledge model proposes values for the variables of a rule, the critic judges them, and "
        "the likelihood model sorts the accepted ones into head and long tail; Prolog derives the statements. "
        "Statements of other commands were imported, and the tables below list all that was checked here. The settings "
        "of each run are in `metadata.json`, the rules in `rules.rules`. The knowledge base holds "
        f"{counted(sum(calls.values()), 'call')} to models{by_role}."
    )


def _gates(summary: DatasetSummary) -> str:
    gates = summary.gates
    if not gates:
        return "No gate has judged a value in these runs: the statements were imported as they are."
    rows = [(verdicts.gate, str(verdicts.judged), percent(verdicts.refused)) for verdicts in gates]
    return (
        f"{markdown_table(('gate', 'values judged', 'rejected, %'), rows)}\n\n"
        "All values that the critic judged in these runs, kept or not, with 95 % intervals (Wilson): whether a value "
        "is of the right type, and whether the fact that it completes is true. The thresholds are in `metadata.json`."
    )


def _judged(summary: DatasetSummary) -> str:
    """People's judgements of the statements, those left out included, and the rules that they found too often false."""
    kb, selection = summary.source.kb, summary.source.selection
    lines = [*truth_lines(kb, selection.rules, summary.wish.runs), *mended_lines(kb), *summary.source.judged_notes]
    if selection.counts.judged:
        lines.append("The votes on the statements below are in `annotations`, without names.")
    parts = (" ".join(lines), _certified(summary), _soundness(summary))
    return "\n\n".join(part for part in parts if part)


def _certified(summary: DatasetSummary) -> str:
    """The promises on the facts behind the statements, run by run."""
    if not summary.certificates:
        return ""
    lines = [
        f"- Run {certificate.record.run_id}, {_cells((certificate.text,))[0]}" for certificate in summary.certificates
    ]
    return "Certificates of the accepted facts, which say nothing about rules and statements:\n\n" + "\n".join(lines)


def _soundness(summary: DatasetSummary) -> str:
    """The rules of which readers found too many statements false."""
    chosen = summary.source.selection.rules
    below = [rule for rule in unsound_rules(summary.source.kb) if rule.rule in chosen]
    if not below:
        return ""
    rows = []
    for rule in below:
        estimate = share([True] * rule.sound + [False] * (rule.judged - rule.sound))
        rows.append(_cells((rule.rule, percent(estimate), str(rule.judged))))
    table = markdown_table(("rule", "true, %", "judged"), rows)
    return (
        f"By readers or models that judged samples (`hapax evaluate soundness`), fewer than {RULE_BAR:.0%} of the "
        f"statements of these rules are true, with Wilson's 95 % intervals:\n\n{table}"
    )


def _columns(sizes: Sizes) -> str:
    parts = []
    for dataset_table in TABLES:
        splits = _splits(sizes, dataset_table)
        if splits:
            numbers = ", ".join(f"{split} {size.rows}" for split, size in splits.items())
            rows = [(f"`{column.name}`", _type(column), column.about) for column in dataset_table.columns]
            text = markdown_table(("column", "type", "holds"), rows)
            parts.append(f"**{dataset_table.name}** ({numbers}): {dataset_table.about}.\n\n{text}")
    return "\n\n".join(parts)


def _type(column: Column) -> str:
    if column.fields:
        name = "record of " + ", ".join(field.name for field in column.fields)
    else:
        name = "JSON text" if column.kind == "json" else column.kind
    return f"list: {name}" if column.many else name


def _cells(row: Sequence[str]) -> tuple[str, ...]:
    """Names from rules and models as plain text in one line, with all Markdown and HTML escaped."""
    cells = []
    for cell in row:
        # Line ends would end the cell of a table; `markdown_table` escapes its bars.
        line = " ".join(cell.split()).replace("&", "&amp;").replace("<", "&lt;")
        cells.append("".join(f"\\{letter}" if letter in "\\`*_[]#!~" else letter for letter in line))
    return tuple(cells)
