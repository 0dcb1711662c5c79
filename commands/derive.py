"""`derive`: everything that rules say of the stored facts, in bulk."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from commands.console import err, print_table
from commands.options import (
    chosen_rules,
    open_kb,
    read_library,
    refuse_faulty,
    with_chosen,
    with_database,
    with_json,
    with_paths,
)
from commands.whole_files import filled_whole, replaced_whole
from grammar.words import counted

if TYPE_CHECKING:
    from engine.bulk import Derived, Engine
    from grammar.rules import Library, Rule
    from kb import KnowledgeBase
    from kb.records import StatementRecord


@click.command()
@with_paths
@with_database
@with_chosen
@click.option(
    "--engine",
    type=click.Choice(["auto", "sql", "prolog"]),
    default="auto",
    show_default=True,
    help="auto: SQL, and Prolog for what SQL would not decide exactly.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Statements and proofs: .jsonl or .parquet."
)
@click.option(
    "--tables",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the joined relations as Parquet and the joins as SQL, for DuckDB.",
)
@with_json
def derive(  # noqa: PLR0917  one parameter an option
    paths: tuple[Path, ...],
    database: str,
    chosen: tuple[str, ...],
    engine: Engine,
    output: Path | None,
    tables: Path | None,
    as_json: bool,
) -> None:
    """Derive everything that rules say of the stored facts, and store it with what it rests on.

    No model is asked. Literals about a generic variable are told, all others are proved. What was derived of a rule
    before is replaced.

    \b
    hapax derive --db hapax.db
    hapax derive my.rules --rule allergy -o statements.jsonl
    hapax derive --tables bulk
    """
    from engine.bulk import derive_all
    from engine.derive import relevant_library
    from evaluation.derived import check_ending, write_derived, write_tables

    library = read_library(paths)
    refuse_faulty(library)
    rules = chosen_rules(library, chosen)
    if chosen:
        library = relevant_library(library, *rules)
    if output is not None:
        check_ending(output)
    with open_kb(database, existing=True) as kb:
        derived = derive_all(kb, library, rules, engine)
        _print_derived(derived, as_json)
        if output is not None:
            with closing(_statements(kb, library, rules)) as found, replaced_whole(output) as path:
                count = write_derived(path, found)
            err.print(f"{counted(count, 'statement')} in {escape(str(output))}")
        if tables is not None:
            with filled_whole(tables) as folder:
                count = write_tables(folder, kb, library, rules)
            err.print(f"{counted(count, 'table')} and rules.sql in {escape(str(tables))}")


def _statements(kb: KnowledgeBase, library: Library, rules: Sequence[Rule]) -> Generator[StatementRecord]:
    from engine.bulk import read_statements

    for rule in rules:
        yield from read_statements(kb, library, rule)


def _print_derived(derived: Derived, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(derived), ensure_ascii=False))
        return
    print_table(
        ("rule", "statements", "engine", "seconds"),
        ((one.rule, str(one.statements), one.engine, f"{one.seconds:.2f}") for one in derived.rules),
    )
    if derived.atoms:
        print_table(("derived predicate", "atoms"), ((name, str(count)) for name, count in derived.atoms.items()))
    for one in derived.rules:
        if one.reason:
            err.print(escape(f"{one.rule} was left to Prolog: {one.reason}."))
    err.print(f"{counted(derived.facts, 'new fact')} read in {derived.seconds_reading:.2f} s")
