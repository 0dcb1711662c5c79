"""`ledger`: requests that left for servers, and what they cost."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.markup import escape

import hapax
from hapax.commands.console import err, out, print_table
from hapax.commands.options import open_kb, with_database, with_json
from hapax.grammar.words import counted


@click.command()
@with_database
@click.option("--since", default="", metavar="TIME", help="First UTC time, such as 2026-11 or 2026-11-23T08:00.")
@click.option("--until", default="", metavar="TIME", help="UTC time before which the period ends.")
@click.option(
    "--reconcile",
    "export",
    metavar="CSV",
    type=click.Path(path_type=Path),
    help="Compare with a provider's usage export; exit code 1 if a figure differs.",
)
@with_json
def ledger(database: str, since: str, until: str, export: Path | None, as_json: bool) -> None:
    """List the requests that left for servers in all runs, with tokens and cost.

    A request without a whole reply was perhaps billed, and counts at the most it can use. Requests of --queue are
    queued until their results are read. docs/faults.md describes the table of --reconcile.

    \b
    hapax model ledger --db hapax.db
    hapax model ledger --reconcile usage.csv --since 2026-11 --until 2026-12
    """
    with open_kb(database, read_only=True) as kb:
        if export is not None:
            compared = hapax.reconcile(kb, export, since=since, until=until)
            _print_reconciled(compared, as_json)
            return
        contents = hapax.ledger(kb, since=since, until=until)
    if as_json:
        click.echo(json.dumps(contents.to_json()))
        return
    if not contents.spending:
        click.echo("No request left for a server.")
        return
    print_table(contents.columns, (tuple(map(_text, row)) for row in contents.cells()))
    perhaps = sum(row.perhaps for row in contents.spending)
    if perhaps:
        out.print(f"\n{counted(perhaps, 'request')} without a whole reply, counted as the most that it can cost.")


def _print_reconciled(compared: hapax.Reconciliation, as_json: bool) -> None:
    """Print a comparison; ends with exit code 1 if a figure differs."""
    if as_json:
        click.echo(json.dumps(compared.to_json()))
    else:
        print_table(compared.columns, (tuple(map(_text, row)) for row in compared.cells()))
        if compared.unknown:
            err.print(
                f"Models of the export that this knowledge base never asked: {escape(', '.join(compared.unknown))}"
            )
    if not compared.agrees:
        raise click.exceptions.Exit(1)


def _text(cell: object) -> str:
    if cell is None:
        return "unknown"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    # Four decimals at most, without zeros behind them.
    return f"{cell:.4f}".rstrip("0").rstrip(".") if isinstance(cell, float) else str(cell)
