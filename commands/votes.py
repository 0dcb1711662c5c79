"""`votes`: sheets for people, their answers, and what these come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from commands.console import err, out, print_pages
from commands.options import open_kb, with_chosen, with_database, with_json, with_runs
from grammar.words import counted

REPLACED_TOLD = 20
"""How many changed votes `votes import` tells one by one."""


@click.group()
def votes() -> None:
    """Have people judge statements: sheets out, answers in.

    \b
    hapax votes export statements --sample 200 --out sheets
    hapax votes import sheets/statements-voter-1.csv
    hapax votes report
    """


@votes.command()
@click.argument("kind", type=click.Choice(["statements", "predicates", "baseline"]))
@with_chosen
@with_runs
@click.option("--sample", type=click.IntRange(0), default=200, show_default=True, help="Statements; 0: all.")
@click.option("--head", type=click.IntRange(0), help="Statements of the head; with --long-tail, instead of --sample.")
@click.option("--long-tail", type=click.IntRange(0), help="Statements of the long tail.")
@click.option(
    "--draw-rules",
    type=click.IntRange(0),
    help="Rules drawn to take statements from; 0: all.  [default: 3 for predicates, else all]",
)
@click.option("--voters", type=click.IntRange(1), default=3, show_default=True, help="Votes on each question.")
@click.option("--voter", "named", multiple=True, help="A voter by name; as many as given, instead of --voters.")
@click.option("--per-sheet", type=click.IntRange(1), help="Items on a sheet at most; default: all on one.")
@click.option(
    "--template",
    "templates",
    multiple=True,
    type=click.IntRange(1, 13),
    default=(5,),
    show_default=True,
    help="Probing templates of a baseline, by number.",
)
@click.option("--new", "unjudged", is_flag=True, help="Leave out what was voted on before.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn.")
@click.option(
    "--format", "form", type=click.Choice(["html", "csv", "both"]), default="both", show_default=True, help="Files."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="sheets",
    show_default=True,
    help="Folder for the sheets.",
)
@with_database
def export(kind: str, database: str, **options: Any) -> None:
    """Write sheets on which people judge statements, the facts behind them, or LINK's questions.

    \b
    hapax votes export statements --sample 4000 --per-sheet 100
    hapax votes export predicates --head 50 --long-tail 50
    hapax votes export baseline --voter ann --voter bob --voter cy
    """
    from evaluation.votes.exporting import ExportOptions, export_sheets

    if (options["head"] is None) != (options["long_tail"] is None):
        raise click.UsageError("--head and --long-tail go together.")
    with open_kb(database, read_only=True) as kb:
        report = export_sheets(kb, ExportOptions.of(kind, options), options["out"])
    for path in report.paths:
        click.echo(path)
    err.print(escape(str(report)))


@votes.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@with_database
@click.option("--skip-faulty", is_flag=True, help="Leave faulty rows out instead of refusing all files.")
def import_(files: tuple[Path, ...], database: str, skip_faulty: bool) -> None:
    """Import sheets that were filled in: CSV files, and the JSON that the page saves.

    \b
    hapax votes import sheets/statements-voter-1.csv statements-voter-2.json
    """
    from evaluation.votes.importing import import_sheets

    with open_kb(database, existing=True) as kb:
        report = import_sheets(kb, files, skip_faulty=skip_faulty)
    for fault in report.faults:
        err.print(escape(str(fault)))
    for one in report.replaced[:REPLACED_TOLD]:
        err.print(f"[yellow]replaced:[/] {escape(str(one))}")
    if more := len(report.replaced[REPLACED_TOLD:]):
        err.print(f"and {counted(more, 'more vote')} replaced")
    err.print(
        f"{counted(len(report.votes), 'vote')} of {counted(report.voters, 'voter')}: {report.added} new, "
        f"{report.known} known, {len(report.replaced)} replaced; {counted(len(report.faults), 'fault')} left out"
    )


@votes.command()
@click.option(
    "--failures", type=click.IntRange(0), default=5, show_default=True, help="Statements found wrong that are shown."
)
@with_database
@with_json
def report(failures: int, database: str, as_json: bool) -> None:
    """Count what people said: LINK's tables 3, 4 (people), 6, 17, 19 and 20.

    \b
    hapax votes report
    hapax votes report --json
    """
    from evaluation.votes.report import VotesResult

    with open_kb(database, read_only=True) as kb:
        result = VotesResult(kb)
    if as_json:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False))
        return
    print_pages(result.pages())
    out.print()
    for line in result.failure_lines(failures):
        out.print(escape(line))
    for line in result.remarks():
        err.print(escape(line))
