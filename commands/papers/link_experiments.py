"""`evaluate`: the papers' experiments."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.shared.common_options import read_library, with_chosen, with_database, with_json, with_rules
from hapax.commands.shared.console import BUDGET_REACHED, DONE, FAILED, err, out, print_json, print_table
from hapax.commands.shared.declared import declared
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import (
    asking,
    with_budget,
    with_dry_run,
    with_opening,
    with_queue,
)
from hapax.grammar.options import made

if TYPE_CHECKING:
    from hapax.evaluation.shared.result_tables import Evaluation, ResultTable


def print_result(evaluation: Evaluation[Any], as_json: bool) -> None:
    """Print the figures of an experiment as JSON, or its tables and details as text; its notes to stderr."""
    result = evaluation.result
    if as_json:
        print_json(evaluation.to_json())
    else:
        print_tables(result.tables)
        if result.tables and result.details:
            out.print()
        for line in result.details:
            out.print(escape(line))
    for note in result.notes:
        err.print(escape(note), soft_wrap=True)


def print_tables(tables: Iterable[ResultTable]) -> None:
    """Print tables with a blank line between them."""
    for number, table in enumerate(tables):
        if number:
            out.print()
        print_table(table.columns, table.texts, title=table.title or None)


@click.group(cls=CommandGroup, path="evaluate.")
def evaluate() -> None:
    """Run the papers' experiments.

    \b
    hapax evaluate instruct --rule allergy
    hapax evaluate grid docs/papers/grid.yaml --db grid.db
    hapax evaluate likelihood --out figures
    hapax evaluate long-tail
    hapax evaluate probe
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    """


@evaluate.command()
@with_rules
@with_chosen
@click.option(
    "--evaluator",
    "evaluators",
    multiple=True,
    help="Model that measures (repeatable); default: all with stored scores.",
)
@click.option(
    "--figure",
    "numbers",
    multiple=True,
    type=click.Choice([*map(str, range(3, 14)), "all"]),
    help="Number of a figure in LINK (repeatable); default: all that can be drawn.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for PNG, SVG and CSV files.")
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def likelihood(
    paths: tuple[Path, ...], chosen: tuple[str, ...], numbers: tuple[str, ...], out: Path | None, **options: Any
) -> None:
    """Compare how likely head and long-tail statements are: LINK's delta and figures 3 to 13.

    Uses stored statements and scores; an evaluator is asked only for missing scores. docs/papers/evaluation.md
    describes what each figure shows and needs.

    \b
    hapax evaluate likelihood
    hapax evaluate likelihood --evaluator frequency --evaluator embedded --out figures
    hapax evaluate likelihood --figure 4 --rule allergy --out figures
    """
    if numbers and out is None:
        raise click.UsageError("--figure needs --out, the folder to write to.")
    from hapax.evaluation.link.figures import open_evaluators

    # Figures that were asked for by number.
    named = () if "all" in numbers else tuple(map(int, dict.fromkeys(numbers)))
    # Without a model nothing is stored, so the file is opened for reading only and needs no rules.
    asks_models = bool(options["evaluators"])
    library = read_library(paths) if asks_models else None
    with asking(options, "Measuring", library, read_only=not asks_models, existing=True) as (kb, opening, _):
        measurement = hapax.LikelihoodOptions(
            evaluators=open_evaluators(options["evaluators"], opening),
            rules=chosen,
            figure_numbers=named or tuple(range(3, 14)),
            out=out,
        )
        evaluation = hapax.evaluate_likelihood(kb, measurement, journal=opening.journal)
    print_result(evaluation, options["as_json"])
    # A figure that was asked for by number must be written; of "all", those that can be drawn are enough.
    sys.exit(FAILED if named and evaluation.value.unavailable else DONE)


@evaluate.command("long-tail")
@with_database
@with_rules
@with_chosen
@click.option(
    "--judge",
    "judges",
    multiple=True,
    default=("embedded", "frequency"),
    show_default=True,
    help="Model that ranks and judges (repeatable), such as smollm2 or frequency; two or more.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for the figure: PNG, SVG and CSV."
)
@with_opening
@with_budget
@with_queue
@with_json
def long_tail(
    paths: tuple[Path, ...],
    chosen: tuple[str, ...],
    judges: tuple[str, ...],
    out: Path | None,
    **options: Any,
) -> None:
    """Tell which measure of likelihood finds the long tail: every judge against every ranker and measure.

    The stored statements are split into thirds by each model and measure, and each split is judged by all models.
    docs/papers/long_tail.md explains the measures and shows a study.

    \b
    hapax evaluate long-tail
    hapax evaluate long-tail --judge embedded --judge frequency --judge smollm2 --out figures
    """
    from hapax.evaluation.link.figures import open_evaluators

    with asking(options, "Loading models", read_library(paths), existing=True) as (kb, opening, show):
        models = open_evaluators(judges, opening)
        # Either step may take minutes.
        show("Measuring")
        evaluation = hapax.evaluate_long_tail(kb, models, only=chosen, seed=options["seed"], journal=opening.journal)
    print_result(evaluation, options["as_json"])
    if out is not None:
        evaluation.value.draw(out)


@evaluate.command()
@with_database
@declared(
    hapax.ProbeOptions,
    *("rules", "runs", "model", "way", "compat", "variants", "writer", "sample", "temperature"),
)
@with_opening
@with_budget
@with_queue
@click.option(
    "--examples", type=click.IntRange(0), default=2, show_default=True, help="Wrong answers to show per distribution."
)
# `lazy`: the file is opened when the first answer is written, so that a failure keeps an earlier one.
@click.option("-o", "--output", type=click.File("w", "utf-8", lazy=True), help="JSONL file for every answer.")
@with_dry_run
@with_json
def probe(output: Any, **options: Any) -> None:
    """Ask a model 13 questions about each statement of the knowledge base: LINK's tables 4, 13 and 15.

    No rule file is needed, and no question is asked twice. docs/papers/evaluation.md explains the figures.

    \b
    hapax evaluate probe
    hapax evaluate probe -m hf:Qwen/Qwen2.5-7B-Instruct --ask cot --sample 100 -o answers.jsonl
    hapax evaluate probe -m openai:gpt-4.1 --compat released --ask cot
    """
    if options["compat"] and not options["ask"]:
        options["ask"] = "text"
    probing = made(hapax.ProbeOptions, options)
    with asking(options, "Loading models", existing=True) as (kb, opening, show):
        evaluation = hapax.evaluate_probe(
            kb,
            probing,
            opening,
            progress=partial(show, "Asking about statements"),
            wrong=options["examples"],
        )
    if output is not None:
        output.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in evaluation.value.answers_json())
    print_result(evaluation, options["as_json"])
    sys.exit(BUDGET_REACHED if evaluation.value.stopped else DONE)


@evaluate.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--rules",
    "paths",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="LINT's rule file or folder (repeatable).",
)
@click.option(
    "--flips", type=click.Path(path_type=Path), help="File of labels that people flipped; default: the folder's."
)
@click.option("--method", default="LINK", show_default=True, help="Method in that file whose labels are used.")
@click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta.")
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def lint(folder: Path, paths: tuple[Path, ...], flips: Path | None, **options: Any) -> None:
    """Import the statements of LINK's dataset LINT from its CSV files and count them: LINK's table 16, and delta.

    The files are those that LINK's code writes; docs/papers/evaluation.md describes them.

    \b
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    hapax evaluate probe --db lint.db
    """
    from hapax.evaluation.link.figures import open_evaluators

    library = read_library(paths)
    labels = hapax.FlippedLabels(flips, options["method"])
    with asking(options, "Measuring", library) as (kb, opening, _):
        # One name gives one model.
        (evaluator,) = open_evaluators([options["evaluator"]], opening)
        evaluation = hapax.import_lint(kb, library, folder, evaluator, flips=labels, journal=opening.journal)
    print_result(evaluation, options["as_json"])
