"""`dataset`: write the knowledge base as files for training and evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.papers.link_experiments import print_tables
from hapax.commands.shared.common_options import open_kb, read_library, with_database, with_json
from hapax.commands.shared.console import err, out, working
from hapax.commands.shared.declared import declared
from hapax.grammar.options import made
from hapax.grammar.writing.words import counted

if TYPE_CHECKING:
    from hapax.evaluation.dataset.sinks import DatasetSummary


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@with_database
@declared(hapax.Target, "formats")
@declared(hapax.SelectionOptions, "rules", "runs", "sample", "seed")
@click.option(
    "--blocked",
    type=click.Path(path_type=Path),
    help="File of terms or /regular expressions/, one per line; statements that match are left out.",
)
@click.option(
    "--in-both",
    "in_both",
    type=click.Choice(["keep", "leave-out"]),
    default="leave-out",
    show_default=True,
    help="Whether to keep statements that are in both head and long tail.",
)
@declared(hapax.SelectionOptions, "judged")
@declared(hapax.Target, "version", "name", "force")
@with_json
def dataset(folder: Path, database: str, **options: Any) -> None:
    """Write the statements as a dataset like LINT, with a card and with tasks for lm-evaluation-harness and Inspect.

    FOLDER must be new or empty. docs/how-to/dataset.md describes its files.

    \b
    hapax data dataset lint-of-mine --db hapax.db
    hapax data dataset small --sample 500 --blocked blocked.txt --format hf --format lm-eval
    """
    blocked = hapax.BlockList.read(options["blocked"]) if options["blocked"] else hapax.BlockList()
    shared = options["in_both"] == "keep"
    selection = made(hapax.SelectionOptions, options, shared=shared, blocked=blocked)
    target = made(hapax.Target, options, folder=folder)
    # Those that the knowledge base keeps, for the statements of `derive`.
    library = read_library((), database)
    with open_kb(database, read_only=True) as kb, working("Reading") as show:
        written = hapax.write_dataset(
            kb,
            target,
            selection,
            rules=library,
            progress=lambda done, total: show("Writing statements", done, total),
        )
    if options["as_json"]:
        click.echo(json.dumps(written.result.figures, ensure_ascii=False, default=str))
    else:
        print_tables(written.result.tables)
        _print_summary(written.value, folder)


def _print_summary(summary: DatasetSummary, folder: Path) -> None:
    shared = counted(summary.tally.in_both, "statement is in both", "statements are in both")
    out.print(f"\n{escape(str(folder))}: {', '.join(summary.formats)}; {shared}")
    if repeats := summary.source.selection.repeats:
        err.print(f"{counted(repeats, 'statement reads', 'statements read')} like another, and shares its row")
    left_out = [f"{count} {reason.replace('_', ' ')}" for reason, count in summary.left_out.items() if count]
    if left_out:
        err.print(f"left out: {', '.join(left_out)}")
    for note in summary.notes:
        err.print(escape(note), soft_wrap=True)
