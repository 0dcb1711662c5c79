"""The command `retract`: withdraw facts, bring them back, and list what is withdrawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

import hapax
from hapax.commands.console import Left, err, leaving, out, print_texts
from hapax.commands.options import open_kb, read_library, with_database, with_json, with_rules
from hapax.grammar.words import counted

if TYPE_CHECKING:
    from hapax.kb.records import StatementRecord
    from hapax.kb.store import KnowledgeBase


@click.command()
@click.argument("facts", nargs=-1)
@click.option("--reason", default="", help="Reason for the withdrawal; it is stored with it.")
@click.option("--undo", is_flag=True, help="Bring withdrawn facts back.")
@click.option("--list", "listing", is_flag=True, help="List the facts that are withdrawn.")
@with_rules
@with_database
@with_json
def retract(  # noqa: PLR0917  one parameter an option
    facts: tuple[str, ...],
    reason: str,
    undo: bool,
    listing: bool,
    paths: tuple[Path, ...],
    database: str,
    as_json: bool,
) -> None:
    """Withdraw facts, named as atoms or by id, and with them all statements that rest on them alone.

    A statement with another proof stays, with that proof. Searches do not bring back what you withdrew; --undo does,
    and so does importing the fact.

    \b
    hapax data retract 'is_ingredient_in(butter, hummus)' --reason 'read the recipe'
    hapax data retract --undo 'is_ingredient_in(butter, hummus)'
    hapax data retract --list
    """
    _check_usage(facts, reason, undo, listing)
    if listing:
        with open_kb(database, read_only=True) as kb:
            _print_withdrawals(kb, as_json)
        return
    library = read_library(paths, database)
    with leaving(Left.WHOLE), open_kb(database, existing=True) as kb:
        change = hapax.restore(facts, library, kb) if undo else hapax.retract(facts, library, kb, reason=reason)
    if as_json:
        click.echo(json.dumps(change.to_json(), ensure_ascii=False))
        return
    for atom in change.to_json()["facts"]:
        out.print(f"{'restored' if undo else 'withdrawn'}: {escape(atom)}", soft_wrap=True)
    _print_statements("no longer holds", change.fallen)
    _print_statements("holds by another proof", change.reproved)
    _print_statements("holds again", change.risen)
    # Of statements that `derive` stored only the numbers are known.
    for rule, (before, now) in change.derived.items():
        out.print(f"derived by {escape(rule)}: {counted(now, 'statement')}, {before} before", soft_wrap=True)
    err.print(f"{counted(len(change.facts), 'fact')} {'restored' if undo else 'withdrawn'}")


def _check_usage(facts: Sequence[str], reason: str, undo: bool, listing: bool) -> None:
    """Raise UsageError for options that do not go together."""
    if listing and (facts or undo or reason):
        raise click.UsageError("--list takes neither facts nor --undo nor --reason.")
    if not listing and not facts:
        raise click.UsageError("Name the facts, such as 'is_ingredient_in(butter, hummus)', or use --list.")
    if undo and reason:
        raise click.UsageError("--undo takes no --reason.")
    if facts and not undo and not reason.strip():
        raise click.UsageError("A withdrawal needs --reason TEXT.")


def _print_statements(outcome: str, statements: Sequence[StatementRecord]) -> None:
    # By id: a statement has a row for each run and end.
    print_texts(outcome, list({statement.id: statement.text for statement in statements}.values()))


def _print_withdrawals(kb: KnowledgeBase, as_json: bool) -> None:
    withdrawn = hapax.withdrawn_facts(kb)
    if as_json:
        click.echo(json.dumps([item.to_json() for item in withdrawn], ensure_ascii=False))
        return
    for item in withdrawn:
        out.print(f"{escape(item.atom)}, {escape(item.text)}", soft_wrap=True)
    err.print(f"{counted(len(withdrawn), 'fact')} withdrawn")
