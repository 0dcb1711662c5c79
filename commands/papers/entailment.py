"""`evaluate entailment`: entailments between predicates, and whether a scorer knows their direction."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.papers.link_experiments import print_result
from hapax.commands.shared.common_options import open_kb, read_library, with_database, with_json, with_rules
from hapax.commands.shared.console import err, print_json, print_table
from hapax.commands.shared.declared import Finite, declared, together
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import (
    asking,
    with_budget,
    with_dry_run,
    with_opening,
    with_queue,
)
from hapax.grammar.options import made
from hapax.grammar.writing.words import counted

FAULTS_SHOWN = 20
"""Faulty lines that `import` names; `--json` has all."""

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

with_files = click.argument("files", nargs=-1, required=True, type=FILE)


with_model_options = together(declared(hapax.ScorerOptions, "model"), with_opening, with_budget, with_database)


# The default is `STRONG` of the API.
with_at_least = click.option(
    "--at-least", type=Finite(0, 1), default=0.5, show_default=True, help="Ignore entailments with a lower score."
)


@click.group(cls=CommandGroup, path="evaluate.entailment.")
def entailment() -> None:
    """Measure directional predicate entailment on LevyHolt, SherLIiC and similar data sets.

    \b
    hapax evaluate entailment data train.txt dev.txt --out subsets
    hapax evaluate entailment score dev.txt --scorer critic --scorer prior --train train.txt
    """


@entailment.command()
@with_files
@click.option("--out", type=FOLDER, help="Folder for the subsets of each split.")
@click.option(
    "--seed", default=0, show_default=True, help="Seed for assigning pairs whose converse is in another split."
)
@with_json
def data(files: tuple[Path, ...], out: Path | None, as_json: bool, seed: int) -> None:
    """Count the four sub-groups of each split, after splitting again to keep each pair with its converse.

    Each file is a split and gives it its name. --out writes the new splits, all pairings of sub-groups, and a
    hypothesis-only twin of each. docs/papers/entailment.md describes the file formats.

    \b
    hapax evaluate entailment data train.txt dev.txt
    hapax evaluate entailment data train.txt dev.txt --seed 7 --out subsets
    """
    # Pairs move between splits, so all files are read together.
    evaluation = hapax.split_entailments(*files, seed=seed)
    if out is not None:
        written = hapax.write_entailment_splits(evaluation, out)
        err.print(f"{counted(written, 'file')} in {out}", markup=False)
    print_result(evaluation, as_json)


@entailment.command()
@with_files
@declared(hapax.EntailmentOptions, "scorers", "patterns")
@declared(hapax.EntailmentOptions, "sides")
@click.option("--no-twin", is_flag=True, help="Skip hypotheses alone, which halves the number of questions.")
@declared(hapax.EntailmentOptions, "released")
@declared(hapax.EntailmentOptions, "training")
@click.option("--out", type=FOLDER, help="Folder for the curves (PNG, SVG, CSV, TSV).")
@with_model_options
@with_queue
@with_dry_run
@with_json
def score(files: tuple[Path, ...], out: Path | None, **options: Any) -> None:
    """Measure scorers on each subset, with whole pairs and with hypotheses alone, to separate entailment from artefact.

    Answers of models are kept in the journal of --db, so no sentence is asked twice.

    \b
    hapax evaluate entailment score dev.txt --scorer random --scorer prior --train train.txt
    hapax evaluate entailment score dev.txt --scorer critic -m hf:google/flan-t5-xl --out curves
    """
    scoring = made(hapax.EntailmentOptions, options, twin=not options["no_twin"])
    with asking(options, "Scoring") as (kb, opening, show):
        # Measured to the end before anything is written: a budget that ends here leaves no partial curves.
        evaluation = hapax.score_entailments(kb, files, scoring, opening, progress=partial(show, "Scoring sentences"))
    if out is not None:
        hapax.draw_entailments(evaluation, out)
    print_result(evaluation, options["as_json"])


@entailment.command()
@with_files
@with_rules
@with_database
@with_json
def facts(files: tuple[Path, ...], paths: tuple[Path, ...], database: str, as_json: bool) -> None:
    """Store entailments between predicates as facts `entails(P, Q, Score)`, for `check`, `query --entail` and `why`.

    Lines are `premise TAB hypothesis TAB score`; a premise is an atom such as shopped_in(Person X, Shop Y). Types that
    the rules declare may be omitted.

    \b
    hapax evaluate entailment facts edges.tsv --db hapax.db
    """
    # All files are read before the knowledge base is opened: a faulty line stores nothing.
    edges = hapax.read_entailments(read_library(paths), *files)
    with open_kb(database) as kb:
        stored = hapax.store_entailments(kb, edges)
    trivial = len(edges) - stored
    if as_json:
        print_json({"stored": stored, "skipped": trivial})
        return
    remark = f"; skipped {counted(trivial, 'line')}, since every atom entails itself" if trivial else ""
    err.print(f"{counted(stored, 'entailment')} in {database}{remark}", markup=False, soft_wrap=True)


@entailment.command()
@with_rules
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that judges the sentences.")
@with_at_least
@with_dry_run
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def predicates(paths: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Ask a model which predicates of the rules entail which; store what it affirms as facts `entails(P, Q, Score)`.

    Asks about every two predicates whose arguments match by type. The score is (1 + P(yes) of the best pattern - P(yes)
    of the best antipattern) / 2.

    \b
    hapax evaluate entailment predicates --rules my.rules --dry-run
    hapax evaluate entailment predicates --rules my.rules -m hf:google/flan-t5-xl --at-least 0.8
    """
    library = read_library(paths)
    if options["dry_run"]:
        pairs = hapax.count_entailment_candidates(library)
        text = f"{counted(pairs, 'pair')} of predicates, up to 8 sentences each"
        click.echo(json.dumps({"pairs": pairs}) if as_json else text)
        return
    with asking(options, "Scoring") as (kb, opening, _):
        judging = hapax.ScorerOptions(options["model"])
        judged = hapax.judge_entailments(kb, library, judging, opening, at_least=options["at_least"])
    if as_json:
        click.echo(json.dumps(judged.to_json(), ensure_ascii=False))
        return
    rows = [(f"{edge.score:.2f}", str(edge.premise), str(edge.hypothesis)) for edge in judged.edges]
    print_table(("score", "premise", "hypothesis"), rows)
    stored = f"{len(judged.edges)} of {counted(judged.pairs, 'pair')} stored in {options['database']}"
    err.print(stored, markup=False)


@entailment.command()
@click.argument("folder", type=EXISTING_FOLDER)
@click.argument("dev_file", metavar="DEV", type=FILE)
@click.argument("test_file", metavar="TEST", type=FILE)
@click.option("--draws", type=click.IntRange(1), default=100, show_default=True, help="Draws that must be there.")
@with_json
def select(folder: Path, dev_file: Path, test_file: Path, draws: int, as_json: bool) -> None:
    """Select the best draw of a fine-tuning on DEV, and measure it on TEST, once.

    FOLDER has a folder for each draw of hyperparameters, with dev.txt and test.txt: lines of `truth score`.

    \b
    hapax evaluate entailment select gauge dev.txt test.txt
    """
    figures = hapax.select_draw(folder, dev_file, test_file, draws=draws)
    if as_json:
        click.echo(json.dumps(figures))
        return
    rows = [(name, *(f"{figure:.3f}" for figure in figures[name].values())) for name in ("dev", "test")]
    print_table(("set", "AUC50", "AUCnorm", "AUCREL", "F1"), rows, title=f"Draw {figures['draw']}")
