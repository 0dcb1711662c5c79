"""The group `evaluate` with LINK's experiments, `model calibrate` and `data dataset`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

import hapax
from hapax.commands.shared.common_options import (
    opened,
    read_library,
    sound_library,
    with_chosen,
    with_database,
    with_json,
    with_paths,
    with_rules,
)
from hapax.commands.shared.console import BUDGET_REACHED, DONE, FAILED, note, out, show, working
from hapax.commands.shared.declared import declared
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import asking, warn_of_prices, with_asking, with_dry_run
from hapax.engine.kept_rules import chosen_rules
from hapax.grammar.options import from_options
from hapax.grammar.writing.words import counted

FOLDER = click.Path(file_okay=False, path_type=Path)


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
@click.option("--out", "folder", type=FOLDER, help="Folder for PNG, SVG and CSV files.")
@with_asking
def likelihood(
    paths: tuple[Path, ...], chosen: tuple[str, ...], numbers: tuple[str, ...], folder: Path | None, **options: Any
) -> None:
    """Compare how likely head and long-tail statements are: LINK's delta and figures 3 to 13.

    Uses stored statements and scores; an evaluator is asked only for missing scores. docs/papers/evaluation.md
    describes what each figure shows and needs.

    \b
    hapax evaluate likelihood
    hapax evaluate likelihood --evaluator frequency --evaluator embedded --out figures
    hapax evaluate likelihood --figure 4 --rule allergy --out figures
    """
    if numbers and folder is None:
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
            out=folder,
        )
        evaluation = hapax.evaluate_likelihood(kb, measurement, journal=opening.journal)
    show(evaluation)
    # A figure that was asked for by number must be written; of "all", those that can be drawn are enough.
    sys.exit(FAILED if named and evaluation.value.unavailable else DONE)


@evaluate.command("long-tail")
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
@with_asking
def long_tail(paths: tuple[Path, ...], chosen: tuple[str, ...], judges: tuple[str, ...], **options: Any) -> None:
    """Tell which measure of likelihood finds the long tail: every judge against every ranker and measure.

    The stored statements are split into thirds by each model and measure, and each split is judged by all models.
    docs/papers/long_tail.md explains the measures and shows a study.

    \b
    hapax evaluate long-tail
    hapax evaluate long-tail --judge embedded --judge frequency --judge smollm2
    """
    from hapax.evaluation.link.figures import open_evaluators

    with asking(options, "Loading models", read_library(paths), existing=True) as (kb, opening, tell):
        models = open_evaluators(judges, opening)
        # Either step may take minutes.
        tell("Measuring")
        evaluation = hapax.evaluate_long_tail(kb, models, only=chosen, seed=options["seed"], journal=opening.journal)
    show(evaluation)


@evaluate.command()
@declared(
    hapax.ProbeOptions,
    *("rules", "runs", "model", "way", "compat", "variants", "writer", "sample", "temperature"),
)
@click.option(
    "--examples", type=click.IntRange(0), default=2, show_default=True, help="Wrong answers to show per distribution."
)
# `lazy`: the file is opened when the first answer is written, so that a failure keeps an earlier one.
@click.option("-o", "--output", type=click.File("w", "utf-8", lazy=True), help="JSONL file for every answer.")
@with_dry_run
@with_asking
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
    probing = from_options(hapax.ProbeOptions, options)
    with asking(options, "Loading models", existing=True) as (kb, opening, tell):
        progress, wrong = partial(tell, "Asking about statements"), options["examples"]
        evaluation = hapax.evaluate_probe(kb, probing, opening, progress=progress, wrong=wrong)
    if output is not None:
        output.writelines(json.dumps(answer, ensure_ascii=False) + "\n" for answer in evaluation.value.answers_json())
    show(evaluation)
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
@with_asking
def lint(folder: Path, paths: tuple[Path, ...], flips: Path | None, **options: Any) -> None:
    """Import the statements of LINK's dataset LINT from its CSV files and count them: LINK's table 16, and delta.

    The files are those that LINK's code writes; docs/papers/evaluation.md describes them.

    \b
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    hapax evaluate probe --db lint.db
    """
    from hapax.evaluation.link.figures import open_evaluators

    library, labels = read_library(paths), hapax.FlippedLabels(flips, options["method"])
    with asking(options, "Measuring", library) as (kb, opening, _):
        # One name gives one model.
        (evaluator,) = open_evaluators([options["evaluator"]], opening)
        evaluation = hapax.import_lint(kb, library, folder, evaluator, flips=labels, journal=opening.journal)
    show(evaluation)


# --- baselines --------------------------------------------------------------------------------------------------------


@click.command()
@with_paths
@with_chosen
@declared(hapax.InstructOptions, "model")
@click.option(
    "--wording",
    "wordings",
    multiple=True,
    type=click.Choice(("paper", *map(str, range(1, 11)), "all")),
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
@with_asking
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
    library, instruction = sound_library(paths), hapax.InstructOptions.from_options(options)
    chosen_rules(library, chosen)
    with asking(options, "Loading models", library) as (kb, opening, tell):

        def progress(wording: int) -> None:
            tell(f"Instructing by wording {wording}")

        evaluation = hapax.evaluate_instruction(library, kb, instruction, opening, only=chosen, progress=progress)
    # Examples first, so the tables come last on the screen.
    for distribution, text in evaluation.value.examples(options["examples"]):
        out.print(f"[dim]{distribution.value:>9}[/]  {escape(text)}")
    if options["examples"]:
        out.print()
    show(evaluation)
    sys.exit(BUDGET_REACHED if evaluation.value.budget else DONE)


@click.command()
@click.argument("config", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@with_asking
def grid(config: Path, **options: Any) -> None:
    """Run every cell of LINK's tables 7 to 10 from one file, and print the tables in the paper's layout.

    docs/papers/grid.yaml is an example that runs out of the box. If a cell cannot run, the reason is printed and the
    other cells continue. An interrupted grid continues with the same command.

    \b
    hapax evaluate grid docs/papers/grid.yaml --db grid.db
    hapax evaluate likelihood --db grid.db --out figures
    """
    settings = hapax.read_grid(config)
    # The file names the models, so no option can be compared with the prices.
    warn_of_prices(dict(options["prices"]), settings.model_names)
    library = sound_library(settings.files)  # before the file of the knowledge base is made
    with asking(options, "Loading models", library) as (kb, opening, tell):

        def progress(number: int, total: int, cell: object) -> None:
            tell(f"Cell {cell}", number, total)

        evaluation = hapax.evaluate_grid(library, kb, settings, opening, progress=progress)
    show(evaluation)
    # A cell that could not run makes the command fail, unless a budget ended it.
    sys.exit(BUDGET_REACHED if evaluation.value.budget else evaluation.value.exit_code)


# --- judgements and datasets ------------------------------------------------------------------------------------------


@click.command()
@with_database
@declared(hapax.SoundnessOptions, "rules", "runs", "bar")
@with_json
def soundness(**options: Any) -> None:
    """Measure how many statements are true, by the votes on sheets of soundness.

    Rules below the bar of 0.9 are also reported by `hapax check --db`.

    \b
    hapax votes export soundness --voter ann
    hapax votes import sheets/soundness-ann.csv
    hapax evaluate soundness
    """
    show(hapax.evaluate_soundness(opened(read_only=True), from_options(hapax.SoundnessOptions, options)))


@click.command()
@with_rules
@declared(hapax.CalibrationOptions)
@with_asking
def calibrate(paths: tuple[Path, ...], **options: Any) -> None:
    """Learn from labelled facts what a critic's scores are worth, and store it for `search --calibrated`.

    Measures come from labels whose keys the map did not learn from. docs/how-to/certificates.md describes the file of
    labels.

    \b
    hapax model calibrate --critic embedded --labels reference:all
    hapax model calibrate --critic hf:google/flan-t5-large --labels votes --labels labels.tsv
    """
    library, chosen = read_library(paths, options["database"]), from_options(hapax.CalibrationOptions, options)
    with asking(options, "Calibrating", library, begun_by="hapax search") as (kb, opening, _):
        evaluation = hapax.calibrate(library, kb, chosen, opening)
    show(evaluation)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@with_database
@declared(hapax.Target, "formats")
@declared(hapax.SelectionOptions, "rules", "runs", "sample", "seed")
@click.option(
    "--blocked",
    type=click.Path(path_type=Path),
    help="File of terms or /regular expressions/, one per line; statements that match are left out.",
)
@click.option(
    "--in-both",
    "in_both",
    type=click.Choice(["keep", "leave-out"]),
    default="leave-out",
    show_default=True,
    help="Whether to keep statements that are in both head and long tail.",
)
@declared(hapax.SelectionOptions, "judged")
@declared(hapax.Target, "version", "name", "force")
@with_json
def dataset(folder: Path, database: str, **options: Any) -> None:
    """Write the statements as a dataset like LINT, with a card and with tasks for lm-evaluation-harness and Inspect.

    FOLDER must be new or empty. docs/how-to/dataset.md describes its files.

    \b
    hapax data dataset lint-of-mine --db hapax.db
    hapax data dataset small --sample 500 --blocked blocked.txt --format hf --format lm-eval
    """
    blocked = hapax.BlockList.read(options["blocked"]) if options["blocked"] else hapax.BlockList()
    shared = options["in_both"] == "keep"
    selection = from_options(hapax.SelectionOptions, options, shared=shared, blocked=blocked)
    target = from_options(hapax.Target, options, folder=folder)
    # Those that the knowledge base keeps, for the statements of `derive`.
    library, kb = read_library((), database), opened(read_only=True)
    with working("Reading") as tell:
        progress = partial(tell, "Writing statements")
        written = hapax.write_dataset(kb, target, selection, rules=library, progress=progress)
    show(written)
    summary = written.value
    both = counted(summary.tally.in_both, "statement is in both", "statements are in both")
    out.print(f"\n{escape(str(folder))}: {', '.join(summary.formats)}; {both}")
    if repeats := summary.source.selection.repeats:
        note(f"{counted(repeats, 'statement reads', 'statements read')} like another, and shares its row")
    left_out = [f"{count} {reason.replace('_', ' ')}" for reason, count in summary.left_out.items() if count]
    if left_out:
        note(f"left out: {', '.join(left_out)}")
