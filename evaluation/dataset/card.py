"""The card of a dataset, as hubs show it: what it is, how it was made, what is known of its faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluation.card_text import table
from evaluation.dataset.columns import ANNOTATIONS, FACTS, PROBES, STATEMENTS, Column, Table
from evaluation.dataset.rows import run_models
from evaluation.dataset.summary import Summary
from evaluation.dataset.tables import Size
from evaluation.dataset.yaml_text import yaml_text
from evaluation.lint import table_16_rows
from evaluation.probing.tables import SPOKEN, percent
from grammar.words import counted

TABLES = (STATEMENTS, FACTS, PROBES, ANNOTATIONS)

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_REASONS = {
    "other_runs": "are of runs that were not asked for; experiments without a gate are not, unless named",
    "wrong_type": "have a value of a wrong type by people's votes",
    "harmful": "were marked as harmful by people",
    "shared": "are in head and long tail",
    "blocked": "hold what the block list names",
    "not_in_the_sample": "were not drawn",
}
_LIMITS = """\
- Values, and the judgements on them, come from models. The critic is a model too: what it lets pass can be false, and
  what it refuses can be true. Only what people have judged says how many statements are true.
- Rules hold as rules; a value that is out of the ordinary can break one.
- A label whose source is `rule` says what the rule concludes. Nobody has checked it.
- A proof shows what a statement rests on, not that this is so.
- Head and long tail are what the likelihood model found likely and unlikely; another model may part them elsewhere.
- A premise tells only what concerns the generic person or thing. The facts that the conclusion also needs are in
  `facts` and in the proof, and a reader who does not know them cannot see why the conclusion follows.
- All statements follow a few templates, and are in the language of their templates."""
_HARM = """\
The authors of LINK name three risks of this way of making data, and they hold here. The search can be turned to rules
or values that harm, or be ranked by a model that prefers such values. Statements from the long tail are not always
true; whoever uses them unchecked may bring false information into a system, and some of the rules are about health,
allergies or the law, where that can hurt. And asking large models costs energy.

Values come from models and may be offensive or name persons. What people marked as harmful and what a block list names
was left out and is counted above; a list finds only what is on it. Do not use these statements as advice."""


def card(summary: Summary) -> str:
    """README.md: a head in YAML for hubs and `datasets`, then the page."""
    head = "# license: the owner of the data chooses one and writes it here\n" + yaml_text(_head(summary))
    return f"---\n{head}---\n\n" + "\n\n".join(_sections(summary)) + "\n"


def _head(summary: Summary) -> dict[str, Any]:
    present = [(one, splits) for one in TABLES if (splits := _splits(summary, one))]
    return {
        "language": ["en"],
        "pretty_name": summary.name,
        "size_categories": [_size(sum(one.rows for one in _splits(summary, STATEMENTS).values()))],
        "task_categories": ["text-classification"],
        "task_ids": ["natural-language-inference"],
        "tags": ["synthetic", "hapax", "long-tail"],
        "configs": [_config(one, splits) for one, splits in present],
        "dataset_info": [
            {
                "config_name": one.name,
                "features": [_feature(column) for column in one.columns],
                "splits": [
                    {"name": split, "num_bytes": size.num_bytes, "num_examples": size.rows}
                    for split, size in splits.items()
                ],
            }
            for one, splits in present
        ],
    }


def _config(one: Table, splits: dict[str, Size]) -> dict[str, Any]:
    folder = "data" if one is STATEMENTS else one.name
    files = [{"split": split, "path": f"{folder}/{split}-*.parquet"} for split in splits]
    return {"config_name": one.name, **({"default": True} if one is STATEMENTS else {}), "data_files": files}


def _splits(summary: Summary, one: Table) -> dict[str, Size]:
    return {split: size for (name, split), size in summary.sizes.items() if name == one.name}


def _feature(column: Column) -> dict[str, Any]:
    """As `datasets` writes its features."""
    dtype = "string" if column.kind == "json" else column.kind
    if not column.many:
        return {"name": column.name, "dtype": dtype}
    return {"name": column.name, "list": [_feature(each) for each in column.fields] if column.fields else dtype}


def _size(rows: int) -> str:
    return next((name for limit, name in _SIZES if rows < limit), "n>10M")


def _sections(summary: Summary) -> Iterator[str]:
    yield f"# {summary.name}\n\n{_introduction(summary)}"
    yield f"## Statements\n\n{_counts(summary)}"
    yield f"## What was left out\n\n{_left_out(summary)}"
    yield f"## How it was made\n\n{_models(summary)}"
    yield f"### What the gates refused\n\n{_gates(summary)}"
    yield f"## How right it is\n\n{_judged(summary)}"
    yield f"## Limits\n\n{_LIMITS}"
    yield f"## Risks\n\n{_HARM}"
    yield f"## Tables and columns\n\n{_columns(summary)}"
    yield "## Licence\n\nNone is chosen yet. The owner of the data writes it into the first line of this page and here."


def _introduction(summary: Summary) -> str:
    examples = "\n".join(f"    {SPOKEN[end]}: {' '.join(text.split())}" for end, text in summary.tally.examples.items())
    return (
        "Statements of the form *If premise, then conclusion*, each an instance of a logical rule, with what it rests "
        "on. The split `head` holds statements that a language model finds likely, `long_tail` those that it finds "
        "unlikely, as in the dataset LINT (*In Search of the Long-Tail: Systematic Generation of Long-Tail Inferential "
        "Knowledge via Logical Rule Guided Search*). The first of each:\n\n"
        f"{examples}"
    )


def _counts(summary: Summary) -> str:
    columns = ("domain", "rules", "head", "long tail", "delta")
    shared = summary.tally.in_both
    return (
        f"{table(columns, map(_cells, table_16_rows(summary.tally.domains())))}\n\n"
        "Delta is how much likelier the head is than the long tail under the evaluator, in nats a token: the mean over "
        "rules, with a 95 % interval over rules where there are several. `n/a`: an end of each rule has no score.\n\n"
        f"{counted(shared, 'statement is', 'statements are')} in both splits (`in_both`): the search keeps the middle "
        "of a small pool at both ends. They tell nothing about a difference between the splits."
    )


def _left_out(summary: Summary) -> str:
    lines = [f"- {count} {_REASONS[reason]}" for reason, count in summary.left_out.items() if count]
    if not lines:
        return "No statement of the knowledge base."
    return "Statements, counted once a distribution:\n\n" + "\n".join(lines)


def _models(summary: Summary) -> str:
    if not summary.source.runs:
        return "The knowledge base does not tell which runs derived the statements."
    roles = tuple(dict.fromkeys(role for run in summary.source.runs.values() for role in run_models(run)))
    rows = [
        (run.id, run.command, run.status, *(run_models(run).get(role, "none") for role in roles))
        for run in summary.source.runs.values()
    ]
    told = table(("run", "command", "status", *(f"{role} model" for role in roles)), map(_cells, rows))
    calls = summary.source.kb.call_counts()
    spent = f"The knowledge base holds {counted(sum(calls.values()), 'call')} to models"
    by_role = ": " + ", ".join(f"{role} {count}" for role, count in calls.items()) if calls else ""
    return (
        f"{told}\n\nIn a `search` the knowledge model proposes values for the variables of a rule, the critic judges "
        "them, and the likelihood model sorts what remains into head and long tail; Prolog derives the statements. "
        "Statements of other commands came from elsewhere, and only what the tables below say was checked here. The "
        f"settings of each run are in `metadata.json`, the rules in `rules.rules`. {spent}{by_role}."
    )


def _gates(summary: Summary) -> str:
    gates = summary.gates
    if not gates:
        return "No gate has judged a value in these runs: the statements were imported as they are."
    rows = [(one.gate, str(one.judged), percent(one.refused)) for one in gates]
    return (
        f"{table(('gate', 'values judged', 'refused, %'), rows)}\n\n"
        "All values that the critic judged in these runs, kept or not, with 95 % intervals (Wilson): whether they are "
        "of the right type, and whether what they make of a predicate is true. The thresholds are in `metadata.json`."
    )


def _judged(summary: Summary) -> str:
    affirmed = summary.affirmed
    if not affirmed.count:
        return "Nobody has judged these statements. How many of them are false is not known."
    turned = round(affirmed.count * (1 - affirmed.value))
    return (
        f"People have judged {counted(affirmed.count, 'statement')}; of these {percent(affirmed)} % have a conclusion "
        f"that follows, by majority. The labels of the other {turned} are turned to `contradiction`. The votes are in "
        "`annotations`, without names."
    )


def _columns(summary: Summary) -> str:
    parts = []
    for one in TABLES:
        splits = _splits(summary, one)
        if splits:
            sizes = ", ".join(f"{split} {size.rows}" for split, size in splits.items())
            rows = [(f"`{column.name}`", _type(column), column.about) for column in one.columns]
            parts.append(f"**{one.name}** ({sizes}): {one.about}.\n\n{table(('column', 'type', 'holds'), rows)}")
    return "\n\n".join(parts)


def _type(column: Column) -> str:
    one = "record of " + ", ".join(each.name for each in column.fields) if column.fields else column.kind
    one = "JSON text" if column.kind == "json" else one
    return f"list: {one}" if column.many else one


def _cells(row: tuple[str, ...]) -> tuple[str, ...]:
    """Names from rules and models as plain text in one line: nothing of them is Markdown or HTML."""
    return tuple(_plain(cell) for cell in row)


def _plain(text: str) -> str:
    told = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{one}" if one in "\\`*_[]#!~" else one for one in told)
