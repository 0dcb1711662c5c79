"""The commands `check` and `compile`, for rule files."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click
from rich.markup import escape

from hapax.api import operations
from hapax.commands.console import DONE, RULES_REJECTED, err, out, print_diagnostics
from hapax.commands.options import open_kb, read_library, with_chosen, with_json, with_paths
from hapax.grammar.errors import Severity
from hapax.grammar.words import counted


@click.command()
@with_paths
@click.option("--db", "database", default=None, envvar="HAPAX_DB", help="Also check against this knowledge base.")
@click.option("--all", "every", is_flag=True, help="Print all notes of a kind, not only the first few; JSON has all.")
@with_json
def check(paths: tuple[Path, ...], database: str | None, every: bool, as_json: bool) -> None:
    """Check rules for errors, redundancy and contradictions. PATHS: rule files or folders; default: `shipped`.

    \b
    hapax check my.rules
    hapax check --db hapax.db
    """
    checked = operations.check_files(paths, None if database is None else lambda: open_kb(database, read_only=True))
    print_diagnostics(checked.diagnostics, as_json, every)
    counts = Counter(diagnostic.severity for diagnostic in checked.diagnostics)
    if not as_json:
        for code, number, text in checked.proofs:
            out.print(escape(f"\n{code}, proof {number}:\n{text}"))
        summary = [counted(len(checked.library.rules), "rule")]
        summary += [counted(counts[severity], severity) for severity in Severity]
        err.print(", ".join(summary))
    sys.exit(RULES_REJECTED if counts[Severity.ERROR] else DONE)


@click.command()
@with_paths
@with_chosen
@click.option("--format", "form", type=click.Choice(operations.FORMS), default="prolog", show_default=True)
def compile(paths: tuple[Path, ...], chosen: tuple[str, ...], form: str) -> None:  # noqa: A001  # the verb users type
    """Print rules as a Prolog program, as rule text or as LINK's rules.json.

    \b
    hapax compile > program.pl && swipl program.pl
    hapax compile rules.json --format rules
    """
    click.echo(operations.compile_rules(read_library(paths), form, only=chosen).rstrip())
