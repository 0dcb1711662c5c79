"""`report`: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from commands.console import err
from commands.options import open_kb, read_library, with_chosen, with_database, with_rules
from commands.whole_files import written_whole
from grammar.words import counted


@click.command()
@click.option("-o", "--output", required=True, help="The HTML file; - for stdout.")
@click.option("--run", "run_id", help="The run, by how its id begins; default: the one that was finished last.")
@with_chosen
@click.option(
    "--statements",
    type=click.IntRange(0),
    help="Statements shown of each rule and distribution.  [default: 5, fewer where there are many rules]",
)
@click.option(
    "--rejected",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Rejected values shown of each kind.",
)
@with_rules
@with_database
def report(output: str, chosen: tuple[str, ...], paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Write a run as one HTML page: rules, statements with their proofs, distributions, gates, rejected values, cost.

    The page needs nothing besides itself: no network, no script but its own. It is told in the words that the
    knowledge base stores; --rules is for what rules derive, as for `why`.

    \b
    hapax report -o report.html
    hapax report --rule allergy --statements 50 -o allergy.html
    """
    from evaluation.report.build import ReportOptions, build
    from evaluation.report.page import page

    wanted = ReportOptions(database, options["run_id"], chosen, options["statements"], options["rejected"])
    with open_kb(database, read_only=True) as kb:
        content = build(kb, read_library(paths), wanted)
    text = page(content)
    with written_whole(output) as stream:
        stream.write(text)
    if content.heading.state:
        err.print(f"[yellow]note:[/] {escape(content.heading.state)}", soft_wrap=True)
    err.print(
        f"run {escape(content.heading.run_id)}: {counted(len(content.rules), 'rule')}, "
        f"{counted(len(text.encode()) // 1000, 'kB', 'kB')}",
        soft_wrap=True,
    )
