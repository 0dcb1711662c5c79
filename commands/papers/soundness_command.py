"""`evaluate soundness`: how many statements are true, by readers or by a model."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

import hapax
from hapax.commands.papers.link_experiments import print_result
from hapax.commands.shared.common_options import open_kb, with_database, with_json
from hapax.commands.shared.console import BUDGET_REACHED, DONE, err
from hapax.commands.shared.declared import declared
from hapax.commands.shared.model_options import (
    asking,
    with_budget,
    with_dry_run,
    with_opening,
    with_queue,
)
from hapax.grammar.options import made


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@with_database
@declared(hapax.SoundnessOptions, "rules", "runs")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder to write sheets for people to.")
@click.option(
    "--voter", "voters", multiple=True, help="Name of a reader with a sheet (repeatable).  [default: voter-1]"
)
@declared(hapax.SoundnessOptions, "model", "way", "sample", "bar")
@with_opening
@with_budget
@with_queue
@with_dry_run
@with_json
def soundness(files: tuple[Path, ...], **options: Any) -> None:
    """Measure how many statements are true: by sheets that people fill in, or by a model.

    Without --out the votes on the sheets so far are counted; FILES are filled-in sheets, imported first. Rules below
    the bar of 0.9 are also reported by `hapax check --db`.

    \b
    hapax evaluate soundness --out sheets --voter ann
    hapax evaluate soundness sheets/soundness-ann.csv
    hapax evaluate soundness -m openai:gpt-4.1 --ask cot --max-calls 300
    """
    if options["out"] is not None and (files or options["model"]):
        raise click.UsageError("--out writes sheets and measures nothing. Leave out the files and --model.")
    # Checked before anything is opened or written.
    measured = made(hapax.SoundnessOptions, options)
    if options["out"] is not None:
        with open_kb(options["database"], read_only=True) as kb:
            # By the same draw the votes are counted later.
            voters = options["voters"] or ("voter-1",)
            drawn = hapax.SheetExportOptions(hapax.SheetKind.SOUNDNESS, measured.drawn, voters)
            exported = hapax.export_sheets(kb, drawn, options["out"])
        click.echo("\n".join(map(str, exported.paths)))
        err.print(escape(str(exported)))
        return
    with asking(options, "Judging", existing=True) as (kb, opening, show):
        # First, so that their votes count; a dry run stores none.
        if files and not options["dry_run"]:
            hapax.import_sheets(kb, files)
        evaluation = hapax.evaluate_soundness(
            kb,
            measured,
            opening,
            progress=partial(show, "Judging statements"),
        )
    print_result(evaluation, options["as_json"])
    sys.exit(BUDGET_REACHED if evaluation.value.stopped else DONE)
