"""`evaluate instruct` and `evaluate grid`: what LINK is compared with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import BUDGET_REACHED, DONE, err, out, print_pages
from commands.options import (
    Finite,
    chosen_rules,
    open_journal,
    open_kb,
    opening_options,
    read_library,
    refuse_faulty,
    warn_of_prices,
    with_budget,
    with_chosen,
    with_database,
    with_json,
    with_opening,
    with_paths,
    with_queue,
)

if TYPE_CHECKING:
    from evaluation.baselines.session import InstructResult

WORDINGS = ("paper", *map(str, range(1, 11)), "all")


@click.command()
@with_paths
@with_chosen
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that is instructed.")
@click.option(
    "--wording",
    "wordings",
    multiple=True,
    type=click.Choice(WORDINGS),
    default=("paper",),
    show_default=True,
    help="How the long tail is asked for: by number in LINK's table 11; the paper's section 3.1 uses 1.",
)
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="Statements each end of a rule.")
@click.option(
    "--values", "values_per_call", type=click.IntRange(1), default=50, show_default=True, help="Statements per call."
)
@click.option("--calls", type=click.IntRange(1), default=8, show_default=True, help="Calls each end of a rule at most.")
@click.option("--temperature", type=Finite(0), default=0.7, show_default=True, help="Sampling temperature.")
@click.option("--released", is_flag=True, help="Spell the prompt as LINK's released code does, not as its table 2.")
@click.option("--bias", is_flag=True, help="Also put a logit bias on the values of rows that came again.")
@click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta.")
@click.option("--critic", help="Model that judges the statements; default: votes if there are, else what is known.")
@click.option("--examples", type=click.IntRange(0), default=2, show_default=True, help="Statements printed each end.")
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def instruct(paths: tuple[Path, ...], chosen: tuple[str, ...], **options: Any) -> None:
    """Have a model write statements by instruction only, without search, critic or ranking: LINK's baseline.

    The default instruction gives the head, a long-tail wording behind it the long tail. Statements are stored beside
    those of searches, as a method of their own; no value of theirs becomes a fact. The same command goes on where it
    was interrupted and asks nothing twice.

    \b
    hapax evaluate instruct --rule allergy
    hapax evaluate instruct --rule allergy --wording all -m openai:gpt-4.1 --max-calls 200
    hapax evaluate likelihood --figure 13 --out figures
    """
    from evaluation.baselines.session import InstructOptions, run_instruct

    library = read_library(paths)
    refuse_faulty(library)
    rules = chosen_rules(library, chosen)
    with open_kb(options["database"]) as kb:
        journal = open_journal(kb, options)
        with err.status("Loading models") as status:
            result = run_instruct(
                kb,
                InstructOptions.of(options),
                opening_options(library, options, journal),
                rules,
                lambda wording: status.update(f"Instructing by wording {wording}"),
            )
    if options["as_json"]:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        _print_examples(result, options["examples"])
        print_pages(result.pages())
    for line in result.remarks():
        err.print(escape(line), soft_wrap=True)
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

    The file names models, variants, temperatures and rules; docs/grid.yaml is one that runs at once. A cell that
    cannot run is told with its reason, and the others go on. The same command goes on where it was interrupted and asks
    nothing twice.

    \b
    hapax evaluate grid docs/grid.yaml --db grid.db
    hapax evaluate likelihood --db grid.db --out figures
    """
    from evaluation.baselines.config import read_config
    from evaluation.baselines.grid import GridRun

    settings = read_config(config)
    warn_of_prices(dict(options["prices"]), settings.asked)
    library = read_library(settings.files)
    refuse_faulty(library)
    with open_kb(options["database"]) as kb:
        journal = open_journal(kb, options)
        seed = options["seed"] if settings.seed is None else settings.seed
        opening = opening_options(library, {**options, "seed": seed}, journal)
        run = GridRun(settings, kb, opening)
        with err.status("Loading models") as status:
            result = run.result(lambda number, total, cell: status.update(f"Cell {number} of {total}: {cell}"))
    if options["as_json"]:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        print_pages(result.pages())
    for line in result.remarks():
        err.print(escape(line), soft_wrap=True)
    sys.exit(BUDGET_REACHED if result.budget else result.exit_code)


def _print_examples(result: InstructResult, count: int) -> None:
    for distribution, text in result.examples(count):
        out.print(f"[dim]{distribution.value:>9}[/]  {escape(text)}")
    if count:
        out.print()
