"""`evaluate instruct` and `evaluate grid`: LINK's baselines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

import hapax
from hapax.commands.papers.link_experiments import print_result
from hapax.commands.shared.common_options import sound_library, with_chosen, with_database, with_json, with_paths
from hapax.commands.shared.console import BUDGET_REACHED, DONE, out
from hapax.commands.shared.declared import declared
from hapax.commands.shared.model_options import (
    asking,
    warn_of_prices,
    with_budget,
    with_opening,
    with_queue,
)
from hapax.engine.kept_rules import chosen_rules

WORDINGS = ("paper", *map(str, range(1, 11)), "all")


@click.command()
@with_paths
@with_chosen
@declared(hapax.InstructOptions, "model")
@click.option(
    "--wording",
    "wordings",
    multiple=True,
    type=click.Choice(WORDINGS),
    default=("paper",),
    show_default=True,
    help="Long-tail wording by its number in LINK's table 11 (repeatable); paper: 1.",
)
@declared(hapax.InstructSettings, "count", "values_per_call", "calls", "temperature", "released")
@declared(hapax.InstructOptions, "evaluator", "critic")
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Statements to print per rule and distribution.",
)
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def instruct(paths: tuple[Path, ...], chosen: tuple[str, ...], **options: Any) -> None:
    """Have a model write statements by instruction only, without search, critic or ranking: LINK's baseline.

    The statements are stored as a separate method; none of their values becomes a fact. An interrupted run continues
    with the same command.

    \b
    hapax evaluate instruct --rule allergy
    hapax evaluate instruct --rule allergy --wording all -m openai:gpt-4.1 --max-calls 200
    hapax evaluate likelihood --figure 13 --out figures
    """
    # Before the file of the knowledge base is made: all rules may have errors.
    library = sound_library(paths)
    chosen_rules(library, chosen)
    with asking(options, "Loading models", library) as (kb, opening, show):
        evaluation = hapax.evaluate_instruction(
            library,
            kb,
            hapax.InstructOptions.of(options),
            opening,
            only=chosen,
            progress=lambda wording: show(f"Instructing by wording {wording}"),
        )
    # Examples first, so that the tables stand at the end of the screen.
    result = evaluation.value
    if not options["as_json"]:
        for distribution, text in result.examples(options["examples"]):
            out.print(f"[dim]{distribution.value:>9}[/]  {escape(text)}")
        if options["examples"]:
            out.print()
    print_result(evaluation, options["as_json"])
    sys.exit(BUDGET_REACHED if result.budget else DONE)


@click.command()
@click.argument("config", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def grid(config: Path, **options: Any) -> None:
    """Run every cell of LINK's tables 7 to 10 from one file, and print the tables in the paper's layout.

    docs/papers/grid.yaml is an example that runs out of the box. If a cell cannot run, the reason is printed and the
    other cells continue. An interrupted grid continues with the same command.

    \b
    hapax evaluate grid docs/papers/grid.yaml --db grid.db
    hapax evaluate likelihood --db grid.db --out figures
    """
    settings = hapax.read_grid(config)
    # The file names the models, so `with_opening` cannot compare the prices with options.
    warn_of_prices(dict(options["prices"]), settings.model_names)
    library = sound_library(settings.files)  # before the file of the knowledge base is made
    with asking(options, "Loading models", library) as (kb, opening, show):
        evaluation = hapax.evaluate_grid(
            library,
            kb,
            settings,
            opening,
            progress=lambda number, total, cell: show(f"Cell {cell}", number, total),
        )
    print_result(evaluation, options["as_json"])
    # A cell that could not run makes the command fail, unless a budget ended it.
    sys.exit(BUDGET_REACHED if evaluation.value.budget else evaluation.value.exit_code)
