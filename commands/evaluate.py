"""`evaluate`: the papers' experiments."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import (
    BUDGET_REACHED,
    DONE,
    FAILED,
    err,
    number_text,
    out,
    print_pages,
    print_table,
    progress_display,
)
from commands.options import (
    Finite,
    chosen_rules,
    dry_run,
    load_models,
    open_journal,
    open_kb,
    opening_options,
    print_foreseen,
    read_library,
    search_settings,
    with_budget,
    with_chosen,
    with_database,
    with_dry_run,
    with_json,
    with_models,
    with_opening,
    with_paths,
    with_queue,
    with_rules,
    with_runs,
    with_search_settings,
)
from grammar.words import counted

if TYPE_CHECKING:
    from evaluation.ablation import AblationReport
    from evaluation.judging import Share
    from evaluation.likelihood import LikelihoodResult
    from evaluation.probing.run import ProbeResult


@click.group()
def evaluate() -> None:
    """Run the papers' experiments.

    \b
    hapax evaluate ablation --rule allergy
    hapax evaluate instruct --rule allergy
    hapax evaluate grid docs/grid.yaml --db grid.db
    hapax evaluate likelihood --out figures
    hapax evaluate probe
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    """


@evaluate.command()
@with_paths
@with_chosen
@with_search_settings
@with_models
@with_budget
@with_queue
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for figure 6: PNG, SVG and CSV.")
@with_database
@with_json
def ablation(paths: tuple[Path, ...], chosen: tuple[str, ...], out: Path | None, **options: Any) -> None:
    """Search without critic, without likelihood gate, and without both: LINK's tables 8 and 9 and figure 6.

    Truth is judged against the embedded model's atlas, so predicates outside it have no say.

    \b
    hapax evaluate ablation
    hapax evaluate ablation --rule allergy --rule currency --out figures
    """
    from evaluation.ablation import Experiment
    from evaluation.ablation import ablation as run_ablation
    from evaluation.judging import GroundTruth
    from llm_oracle.embedded.atlas import load_atlas

    library = read_library(paths)
    atlas, settings = load_atlas(), search_settings(options)
    with open_kb(options["database"]) as kb, progress_display(True) as progress:
        journal = open_journal(kb, options)
        models = load_models(library, options, journal=journal)
        experiment = Experiment(library, chosen_rules(library, chosen), models, settings)
        report = run_ablation(experiment, kb, GroundTruth(atlas.truth, atlas.type_truth), progress, journal)
    _print_ablation(report, options["as_json"])
    if out is not None:
        from engine.oracle import model_name
        from evaluation.figures import ablation_plot, write

        write(ablation_plot(report.reports, model_name(models.evaluator)), out)
    if cut := [name for name, one in report.reports.items() if one.status == "budget"]:
        err.print(
            f"A budget ended these variants, whose figures are of what was found by then: {', '.join(cut)}. The same "
            "command with a higher one goes on."
        )
        sys.exit(BUDGET_REACHED)


@evaluate.command()
@with_rules
@with_chosen
@click.option(
    "--evaluator", "evaluators", multiple=True, help="Models that measure; default: all whose scores are stored."
)
@click.option(
    "--figure",
    "numbers",
    multiple=True,
    type=click.Choice([*map(str, range(3, 14)), "all"]),
    help="LINK's figures by number; default: all that can be drawn.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for PNG, SVG and CSV files.")
@click.option("--rerank", help="Model that reranks finished statements; default: each evaluator, as in the paper.")
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def likelihood(
    paths: tuple[Path, ...], chosen: tuple[str, ...], numbers: tuple[str, ...], out: Path | None, **options: Any
) -> None:
    """Compare how likely head and long-tail statements are: LINK's delta and figures 3 to 13.

    Reads what is stored; an evaluator is asked only for what it has not scored yet. docs/evaluation.md tells what each
    figure shows and needs.

    \b
    hapax evaluate likelihood
    hapax evaluate likelihood --evaluator frequency --evaluator embedded --out figures
    hapax evaluate likelihood --figure 4 --rule allergy --out figures
    """
    from evaluation.likelihood import open_evaluators, run

    if numbers and out is None:
        raise click.UsageError("--figure needs --out, the folder to write to.")
    named = () if "all" in numbers else tuple(map(int, dict.fromkeys(numbers)))
    names, rerankers = options["evaluators"], [one for one in (options["rerank"],) if one]
    asked = [*names, *rerankers]
    with err.status("Measuring"), open_kb(options["database"], not asked, existing=True) as kb:
        journal = open_journal(kb, options)
        opening = opening_options(read_library(paths) if asked else None, options, journal)
        evaluators, reranker = open_evaluators(names, opening), next(iter(open_evaluators(rerankers, opening)), None)
        result = run(kb, evaluators, chosen, named or tuple(range(3, 14)), out, reranker=reranker, journal=journal)
    _print_likelihood(result, options["as_json"])
    sys.exit(FAILED if named and result.lacking else DONE)


@evaluate.command()
@with_database
@with_chosen
@with_runs
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that is probed.")
@click.option(
    "--ask",
    type=click.Choice(["critic", "text", "cot"]),
    default="critic",
    show_default=True,
    help="P(yes), the reply's words, or a chain of thought with two examples and then its words.",
)
@click.option("--writer", help="Model that writes negations and questions where grammar cannot.")
@click.option("--sample", type=click.IntRange(0), default=200, show_default=True, help="Statements each end; 0: all.")
@click.option("--temperature", type=Finite(0), default=0.0, show_default=True, help="Sampling temperature.")
@with_opening
@with_budget
@with_queue
@click.option("--examples", type=click.IntRange(0), default=2, show_default=True, help="Wrong answers shown each end.")
@click.option("-o", "--output", type=click.File("w", "utf-8", lazy=True), help="JSONL file for every answer.")
@with_dry_run
@with_json
def probe(database: str, chosen: tuple[str, ...], output: Any, **options: Any) -> None:
    """Ask a model 13 questions about each statement of the knowledge base: LINK's tables 4, 13 and 15.

    No rule file is needed. What was asked before is not asked again. docs/evaluation.md tells what the figures mean.

    \b
    hapax evaluate probe
    hapax evaluate probe -m hf:Qwen/Qwen2.5-7B-Instruct --ask cot --sample 100 -o answers.jsonl
    """
    from evaluation.probing import run

    if options["dry_run"]:
        with dry_run(database) as (kb, foreseeing):
            opening = opening_options(None, options, foreseeing)
            run.ProbeSession(kb, run.ProbeOptions.of(chosen, options), opening).probe(foreseeing)
        print_foreseen(foreseeing, options["as_json"])
        return
    with open_kb(database, existing=True) as kb:
        journal = open_journal(kb, options)
        session = run.ProbeSession(kb, run.ProbeOptions.of(chosen, options), opening_options(None, options, journal))
        with err.status("Loading models"):
            session.load()
        with err.status("Asking") as status:
            result = session.probe(
                journal, lambda done, total: status.update(f"Asking: {done} of {counted(total, 'statement')}")
            )
    if output is not None:
        output.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in result.answers_json())
    _print_probe(result, options["examples"], options["as_json"])
    sys.exit(BUDGET_REACHED if result.run.stopped else DONE)


@evaluate.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rules", "paths", multiple=True, required=True, type=click.Path(path_type=Path), help="LINT's rules.")
@click.option("--flips", type=click.Path(path_type=Path), help="Labels that people turned; default: the folder's file.")
@click.option("--method", default="LINK", show_default=True, help="Whose labels in that file.")
@click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta.")
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def lint(folder: Path, paths: tuple[Path, ...], flips: Path | None, **options: Any) -> None:
    """Import the statements of LINK's dataset LINT from its CSV files and count them: LINK's table 16, and delta.

    \b
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    hapax evaluate probe --db lint.db
    """
    from evaluation import lint as lints
    from llm_oracle.calls import EVALUATOR
    from llm_oracle.registry import open_model

    reader = lints.LintReader(read_library(paths), folder)
    flips = flips or (folder / lints.FLIPS_FILE if (folder / lints.FLIPS_FILE).exists() else None)
    turned = lints.read_flips(flips, options["method"]) if flips else {}
    with open_kb(options["database"]) as kb:
        journal = open_journal(kb, options)
        evaluator = open_model(options["evaluator"], EVALUATOR, opening_options(reader.library, options, journal))
        report = lints.import_lint(kb, reader, turned, evaluator, journal)
    if options["as_json"]:
        click.echo(json.dumps(lints.report_json(report)))
    else:
        print_table(("domain", "rules", "head", "long tail", "delta"), lints.table_16_rows(report.domains))
    err.print(
        f"{counted(report.repeated, 'row repeats', 'rows repeat')} an earlier one and "
        f"{counted(report.incomplete, 'lacks', 'lack')} a value: left out; "
        f"{counted(report.turned, 'label was', 'labels were')} turned by people"
    )
    err.print(lints.size_note(report), soft_wrap=True)


def _print_ablation(report: AblationReport, as_json: bool) -> None:
    if as_json:
        cells = [asdict(one) for one in report.cells]
        likelihoods = report.log_likelihoods
        told = {"cells": cells, "deltas": report.deltas, "log_likelihoods": likelihoods}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    rows = (
        (
            one.distribution.value,
            one.variant,
            str(one.statements),
            *map(_percent, (one.data_type, one.factuality, one.overall, one.facts)),
        )
        for one in report.cells
    )
    columns = ("distribution", "variant", "statements", "data type", "factuality", "overall", "true facts")
    print_table(columns, rows, title="Ours, in the layout of LINK's tables 8 and 9")
    out.print()
    deltas = ((name, number_text(delta)) for name, delta in report.deltas.items())
    print_table(("variant", "mean delta"), deltas, title="Ours: the mean of what LINK's figure 6 shows")


def _print_likelihood(result: LikelihoodResult, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        print_pages(result.tables())
    for note in result.notes():
        err.print(escape(note))


def _print_probe(result: ProbeResult, examples: int, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.to_json(examples), ensure_ascii=False))
    else:
        print_pages(result.pages())
        out.print()
        for line in result.example_lines(examples):
            out.print(escape(line))
    for line in result.remarks():
        err.print(escape(line))


def _percent(share: Share) -> str:
    return "n/a" if share.value is None else f"{100 * share.value:.2f} of {share.known}"
