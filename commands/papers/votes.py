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
from hapax.grammar.writing.words import counted

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
@declared(hapax.SampleOptions, "rules", "runs", "total")
@click.option("--head", type=click.IntRange(0), help="Head statements to draw; with --long-tail, instead of --sample.")
@click.option("--long-tail", type=click.IntRange(0), help="Long-tail statements to draw.")
@click.option(
    # LINK, too, had facts judged for 3 rules (its table 6).
    "--draw-rules",
    type=click.IntRange(0),
    help="Rules to draw before their statements; 0: all.  [default: 3 for predicates, else all]",
)
@click.option(
    "--voters", type=click.IntRange(1), default=3, show_default=True, help="Voters, each with a sheet of all items."
)
@click.option("--voter", "named", multiple=True, help="Name of a voter, instead of --voters; repeat for more.")
@declared(hapax.SheetExportOptions, "per_sheet", "templates")
@declared(hapax.SampleOptions, "derived", "unjudged", "seed")
@declared(hapax.SheetExportOptions, "forms")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="sheets",
    show_default=True,
    help="Folder for the sheets.",
)
@with_database
@with_json
def export(kind: str, **options: Any) -> None:
    """Write sheets on which people judge statements or the facts behind them, or answer LINK's questions.

    \b
    hapax votes export statements --sample 4000 --per-sheet 100
    hapax votes export predicates --head 50 --long-tail 50
    hapax votes export baseline --voter ann --voter bob --voter cy
    """
    # One of them alone would leave open how many of the other distribution are wanted.
    if (options["head"] is None) != (options["long_tail"] is None):
        raise click.UsageError("Give --head and --long-tail together.")
    # An export records nothing, so that the same draw can be exported again.
    sheets = hapax.SheetExportOptions.from_options(kind, options)
    report = hapax.export_sheets(opened(read_only=True), sheets, options["out"])
    counts = {distribution.value: count for distribution, count in report.drawn.counts.items()}
    print_json({"files": report.paths, "sheets": report.sheets, "items": len(report.drawn.items), "drawn": counts})
    # On stdout, for other programs.
    for path in report.paths:
        say(path)
    note(report)


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
@declared(hapax.SampleOptions, "derived")
@click.option("--anew", is_flag=True, help="Begin another draw, such as after a calibration; votes stay.")
@click.option("--voter", "named", multiple=True, help="Name of a voter; repeat for more.  [default: voter-1]")
@declared(hapax.SheetExportOptions, "forms")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="sheets",
    show_default=True,
    help="Folder for the sheets, which replace those of an earlier call.",
)
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
    from hapax.evaluation.votes.sheets import export_next, sheet_forms
    from hapax.evaluation.votes.voting_items import NextOptions

    # Checked before the knowledge base is opened.
    drawn = NextOptions.of(kind, count, options["precision"], options["anew"], options["derived"])
    forms = sheet_forms(options["format"])
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
