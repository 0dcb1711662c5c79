"""`dataset`: the knowledge base as files that others train and evaluate with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import err, out, print_table
from commands.options import open_kb, with_chosen, with_database, with_json, with_runs
from grammar.words import counted

if TYPE_CHECKING:
    from evaluation.dataset.summary import Summary


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@with_database
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["jsonl", "parquet", "hf", "lint", "lm-eval", "inspect"]),
    help="What to write; default: all.",
)
@with_chosen
@with_runs
@click.option(
    "--sample",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="At most so many statements of each distribution; 0: all.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of what is drawn, and of the order of rows.")
@click.option(
    "--blocked",
    type=click.Path(path_type=Path),
    help="File of terms or /regular expressions/, one a line, whose statements are left out.",
)
@click.option(
    "--in-both",
    "in_both",
    type=click.Choice(["keep", "leave-out"]),
    default="keep",
    show_default=True,
    help="Statements that are in head and long tail.",
)
@click.option("--name", default="hapax", show_default=True, help="What the card and the tasks are called.")
@click.option("--force", is_flag=True, help="Replace a dataset that is in the folder.")
@with_json
def dataset(folder: Path, database: str, formats: tuple[str, ...], chosen: tuple[str, ...], **options: Any) -> None:
    """Write the statements as a dataset like LINT, with a card and with tasks for lm-evaluation-harness and Inspect.

    FOLDER is new or empty. docs/dataset.md tells what is in it.

    \b
    hapax dataset lint-of-mine --db hapax.db
    hapax dataset small --sample 500 --blocked blocked.txt --format hf --format lm-eval
    """
    from evaluation.dataset.blocked import BlockList
    from evaluation.dataset.build import FORMATS, Target, build
    from evaluation.dataset.selection import Wish

    blocked = BlockList.read(options["blocked"]) if options["blocked"] else BlockList()
    sample = options["sample"] or None
    wish = Wish(chosen, options["runs"], sample, options["seed"], options["in_both"] == "keep", blocked)
    target = Target(folder, formats or FORMATS, options["name"], options["force"])
    with open_kb(database, read_only=True) as kb, err.status("Reading") as status:
        summary = build(
            kb,
            target,
            wish,
            lambda done, total: status.update(f"Writing: {done} of {counted(total, 'statement')}"),
        )
        if options["as_json"]:
            click.echo(json.dumps(summary.to_json(), ensure_ascii=False, default=str))
        else:
            _print_summary(summary, folder)


def _print_summary(summary: Summary, folder: Path) -> None:
    from evaluation.lint import table_16_rows

    print_table(("domain", "rules", "head", "long tail", "delta"), table_16_rows(summary.tally.domains()))
    shared = counted(summary.tally.in_both, "statement is in both", "statements are in both")
    out.print(f"\n{escape(str(folder))}: {', '.join(summary.formats)}; {shared}")
    left_out = [f"{count} {reason.replace('_', ' ')}" for reason, count in summary.left_out.items() if count]
    if left_out:
        err.print(f"left out: {', '.join(left_out)}")
    for note in summary.notes:
        err.print(escape(note), soft_wrap=True)
