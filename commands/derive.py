"""The command `derive`: apply rules to all stored facts."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.console import Left, err, leaving, print_table
from hapax.commands.options import (
    SECONDS,
    keep_rules,
    open_kb,
    print_idle,
    probability_options,
    sound_library,
    with_at_least,
    with_chosen,
    with_database,
    with_json,
    with_paths,
    with_probability,
)
from hapax.grammar.words import counted
from hapax.kb.whole_files import atomic_path

if TYPE_CHECKING:
    from hapax.api.statements import Derivation


@click.command()
@with_paths
@with_database
@with_chosen
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for statements and proofs: .jsonl or .parquet.",
)
@click.option(
    "--seconds",
    # The default is that of `BULK_LIMITS` in engine/inference/derive.py.
    type=SECONDS,
    help="Time limit of the derivation. [default: 600 for each rule]",
)
@with_probability
@with_at_least
@with_json
@leaving(Left.NOTHING)
def derive(  # noqa: PLR0917  one parameter an option
    paths: tuple[Path, ...],
    database: str,
    chosen: tuple[str, ...],
    output: Path | None,
    seconds: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Apply rules to all stored facts and their own, and store the resulting statements with their proofs.

    No model is asked. Literals about a generic variable are assumed, and all others are proved. After small changes of
    facts, only what they affect is derived anew.

    \b
    hapax derive family.rules
    hapax derive --db hapax.db
    hapax derive my.rules --rule allergy -o statements.jsonl
    hapax derive --probability --at-least 0.9 -o statements.jsonl
    """
    library, probability = sound_library(paths, database), probability_options(options)
    if not chosen:
        print_idle(library)
    # Before the derivation, which can take long.
    if output is not None:
        from hapax.evaluation.dataset.derived import check_output

        check_output(output)
    with open_kb(database, existing=not (paths and library.facts)) as kb:
        with kb.transaction():
            # The rules of the stored statements, by which later commands prove them.
            keep_rules(kb, paths, "derive", library)
            derivation = hapax.derive(library, kb, only=chosen, probability=probability, seconds=seconds)
        with leaving(Left.STORED):
            _print_report(derivation, as_json)
            if output is not None:
                with atomic_path(output) as path:
                    count = derivation.write(path)
                err.print(f"{counted(count, 'statement')} in {escape(str(output))}")


def _print_report(derivation: Derivation, as_json: bool) -> None:
    report, expected = derivation.report, derivation.expected
    if as_json:
        figures = asdict(report)
        # Without probabilities nothing is expected of any rule.
        for row, value in zip(figures["rules"], expected, strict=False):
            row["expected"] = value
        click.echo(json.dumps(figures, ensure_ascii=False))
        return
    # Rule, statements and seconds; with probabilities the expected number of true statements.
    rows = [(rule.rule, str(rule.statements), f"{rule.seconds:.2f}") for rule in report.rules]
    if expected:
        likely = [f"{value:.1f}" for value in expected]
        extended = [(*row, text) for row, text in zip(rows, likely, strict=True)]
        print_table(("rule", "statements", "seconds", "expected true"), extended)
        err.print(escape(derivation.basis), soft_wrap=True)
    elif rows:
        print_table(("rule", "statements", "seconds"), rows)
    if report.atoms:
        print_table(("derived predicate", "atoms"), ((name, str(count)) for name, count in report.atoms.items()))
    for failure in report.failures:
        err.print(escape(failure), soft_wrap=True)
    for rule in report.rules:
        if rule.left_out:
            err.print(escape(f"{rule.rule} was left out: {rule.left_out}."))
        if rule.anew:
            err.print(escape(f"{rule.rule} was derived anew, not from the changes alone: {rule.anew}."))
    err.print(f"{counted(report.facts, 'new fact')} read in {report.seconds_reading:.2f} s")
