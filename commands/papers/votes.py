"""`votes`: sheets for people, import of their answers, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.shared.common_options import opened, with_database, with_json
from hapax.commands.shared.console import note, print_json, say, show
from hapax.commands.shared.declared import Finite, declared
from hapax.commands.shared.groups import CommandGroup
from hapax.grammar.options import from_options
from hapax.grammar.writing.words import counted

with_folder = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="sheets",
    show_default=True,
    help="Folder for the sheets, which replace those of an earlier call.",
)

REPLACED_SHOWN = 20
"""Number of changed votes that `votes import` prints."""


@click.group(cls=CommandGroup, path="votes.")
def votes() -> None:
    """Have people judge statements: export sheets, import answers, report.

    \b
    hapax votes export statements --sample 200 --out sheets
    hapax votes next 50 statements
    hapax votes import sheets/statements-voter-1.csv
    hapax votes report
    """


@votes.command()
@click.argument("kind", type=click.Choice(["statements", "predicates", "baseline", "soundness"]))
@declared(hapax.SheetExportOptions)
@with_folder
@with_database
@with_json
def export(kind: str, **options: Any) -> None:
    """Write sheets on which people judge statements or the facts behind them, or answer LINK's questions.

    \b
    hapax votes export statements --sample 4000 --per-sheet 100
    hapax votes export predicates --sample 100
    hapax votes export baseline --voter ann --voter bob --voter cy
    """
    # An export records nothing, so that the same draw can be exported again.
    wanted = from_options(hapax.SheetExportOptions, options, kind=hapax.SheetKind(kind))
    report = hapax.export_sheets(opened(read_only=True), wanted, options["out"])
    print_json(report)
    # On stdout, for other programs.
    for path in report.files:
        say(path)
    note(f"{counted(report.items, 'item')} on {counted(report.sheets, 'sheet')}")


@votes.command("next")
@click.argument("count", type=click.IntRange(1), default=50)
@click.argument("kind", type=click.Choice(["facts", "statements"]), default="facts")
@click.option(
    "--precision",
    type=Finite(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Promise that the labels are meant for.",
)
@declared(hapax.SheetExportOptions, "derived")
@click.option("--anew", is_flag=True, help="Begin another draw, such as after a calibration; votes stay.")
@click.option("--voter", "named", multiple=True, help="Name of a voter; repeat for more.  [default: voter-1]")
@declared(hapax.SheetExportOptions, "forms")
@with_folder
@with_database
@with_json
def next_(count: int, kind: str, **options: Any) -> None:
    """Draw the facts or statements to judge next: those that decide a promise, and the most uncertain of the others.

    `search --precision` counts each by its chance to be drawn. `hapax serve --judge` asks in the same order.

    \b
    hapax votes next 50
    hapax votes next 100 statements --precision 0.9 --voter ann
    hapax votes next 100 statements --derived
    """
    from hapax.evaluation.votes.sheets import export_next
    from hapax.evaluation.votes.voting_items import NextOptions
    from hapax.evaluation.votes.voting_questions import FORMS

    # Checked before the knowledge base is opened.
    drawn = NextOptions.of(kind, count, options["precision"], options["anew"], options["derived"])
    forms = FORMS[options["format"]]
    kb, voters = opened(existing=True), options["named"] or ("voter-1",)
    found, paths = export_next(kb, drawn, voters, options["out"], forms)
    share, name = found.share, f"derived {kind}" if options["derived"] else kind
    counts = {"items": len(found.ids), "above": found.above, "pool": found.pool, "judged": found.judged}
    print_json({**counts, "true": [share.value, share.low, share.high], "files": paths})
    mended = share.text(1, 1, scale=100)
    if not found.ids:
        note(f"All {found.pool} {kind} of the draw are judged: {mended} % are true. Search for more.")
        return
    # On stdout, for other programs.
    for path in paths:
        say(path)
    noun = name if len(found.ids) > 1 else name.removesuffix("s")
    note(
        f"{len(found.ids)} {noun} to judge, of {found.pool} in the draw. {found.above} of them score {found.cut:.3f} "
        f"or more: whether these are true decides if a precision of {options['precision']:g} can be promised."
    )
    if found.judged:
        note(f"By {counted(found.judged, 'label')} so far {mended} % of all {found.pool} {name} are true.")


@votes.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@with_database
@declared(hapax.import_sheets)
@click.option(
    "--schemas",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of the Winograd schemas that sheets of `evaluate winograd sheets` ask about.",
)
@with_json
def import_(files: tuple[Path, ...], skip_faulty: bool, schemas: Path | None, **_: Any) -> None:
    """Import filled-in sheets: CSV files, and what Label Studio exports as JSON.

    The sheets are those that `votes export`, `votes next` and `evaluate winograd sheets` wrote.

    \b
    hapax votes import sheets/statements-voter-1.csv statements-voter-2.json
    """
    items = None if schemas is None else hapax.schema_items(schemas)
    # Schemas stand in a file, so that their votes may be the first content of a knowledge base.
    report = hapax.import_sheets(opened(existing=items is None), files, skip_faulty=skip_faulty, schemas=items)
    counts = {"votes": len(report.votes), "voters": report.voters, "new": report.added, "known": report.known}
    print_json({**counts, "replaced": list(map(str, report.replaced)), "faults": list(map(str, report.faults))})
    for fault in report.faults:
        note(fault)
    for vote in report.replaced[:REPLACED_SHOWN]:
        note(vote, "replaced:")
    if more := len(report.replaced[REPLACED_SHOWN:]):
        note(f"and {counted(more, 'more vote')} replaced")
    note(
        f"{counted(len(report.votes), 'vote')} of {counted(report.voters, 'voter')}: {report.added} new, "
        f"{report.known} known, {len(report.replaced)} replaced; {counted(len(report.faults), 'faulty row')} skipped"
    )


@votes.command()
@click.option(
    "--failures", type=click.IntRange(0), default=5, show_default=True, help="Number of statements found wrong to show."
)
@with_database
@with_json
def report(failures: int, **_: Any) -> None:
    """Count the votes: LINK's tables 3, 4 (people), 6, 17, 19 and 20.

    \b
    hapax votes report
    hapax votes report --json
    """
    show(hapax.report_votes(opened(read_only=True), failures))
