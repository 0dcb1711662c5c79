"""`stats`, `import`, `export` and `merge`: the knowledge base as a file."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.markup import escape

from commands.console import err, out, print_table
from commands.options import open_kb, with_database, with_json
from commands.search import _by_name
from commands.whole_files import written_whole
from grammar.words import counted

PREDICATES_SHOWN = 10
"""How many predicates `import` counts one by one."""


@click.command()
@with_database
@with_json
def stats(database: str, as_json: bool) -> None:
    """Count what the knowledge base holds.

    \b
    hapax stats --db hapax.db
    """
    with open_kb(database, read_only=True) as kb:
        counts, roles, refusals = kb.counts(), kb.call_counts(), kb.refusals()
        derived = kb.derived_counts()
    if as_json:
        refused = [dict(zip(("role", "reason", "count"), one, strict=True)) for one in refusals]
        click.echo(json.dumps({**counts, "derived": derived, "calls_by_role": roles, "refused": refused}))
        return
    print_table(("what", "how many"), ((name, str(count)) for name, count in counts.items()))
    if derived:
        told = counted(sum(derived.values()), "statement")
        out.print(f"\n{told} of {counted(len(derived), 'rule')}, stored by hapax derive.")
    if roles:
        out.print(f"\nThe calls are those of all runs to all models: {_by_name(roles)}.")
    for role, reason, count in refusals:
        out.print(escape(f"{counted(count, 'call')} to the {role} model refused: {reason}"))


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@with_database
@click.option("--skip-faulty", is_flag=True, help="Leave faulty lines out instead of refusing the file.")
def import_(file: Path, database: str, skip_faulty: bool) -> None:
    """Import given facts from CSV or JSONL.

    \b
    hapax import facts.csv --db my.db
    """
    with open_kb(database) as kb:
        report = kb.import_facts(file, skip_faulty=skip_faulty)
    for fault in report.faults:
        err.print(escape(str(fault)))
    for warning in report.warnings:
        err.print(f"[yellow]warning:[/] {escape(warning)}")
    for indicator, count in list(report.predicates.items())[:PREDICATES_SHOWN]:
        err.print(f"{count} of {escape(indicator)}")
    if len(report.predicates) > PREDICATES_SHOWN:
        err.print(f"and others of {counted(len(report.predicates) - PREDICATES_SHOWN, 'more predicate')}")
    left_out = counted(len(report.faults), "faulty line")
    err.print(f"{counted(report.read, 'fact')} read, {report.added} of them new; {left_out} left out")


@click.command()
@with_database
@click.option("--format", "form", type=click.Choice(["prolog", "csv", "jsonl"]), default="prolog", show_default=True)
@click.option("--predicate", help="Only this predicate's facts.")
@click.option("-o", "--output", default="-", help="File; default: stdout.")
def export(database: str, form: str, predicate: str | None, output: str) -> None:
    """Export facts as a Prolog program, CSV or JSONL.

    \b
    hapax export --format prolog -o facts.pl
    hapax export --format csv --predicate is_ingredient_in
    """
    with open_kb(database, read_only=True) as kb, written_whole(output) as stream:
        report = kb.export_facts(form, stream, predicate)
    for left_out in report.left_out:
        err.print(escape(f"left out {left_out.fact.predicate}: {left_out.reason}"))
    err.print(f"{counted(report.written, 'fact')} exported")


@click.command()
@click.argument("other", type=click.Path(path_type=Path))
@with_database
def merge(other: Path, database: str) -> None:
    """Take everything that another knowledge base holds into this one.

    \b
    hapax merge colleague.db --db hapax.db
    """
    with open_kb(database) as kb:
        report = kb.merge(other)
    for name, count in report.added.items():
        click.echo(f"{counted(count, name.removesuffix('s'), name)} added")
    for conflict in report.conflicts:
        err.print(f"[yellow]conflict:[/] {escape(str(conflict))}")
