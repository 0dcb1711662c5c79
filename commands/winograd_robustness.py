"""`evaluate winograd reword` and `robustness`: sentences in other words, and the answers that stay the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

import hapax
from hapax.commands.console import err
from hapax.commands.experiments import print_result
from hapax.commands.options import open_kb, with_database, with_json
from hapax.commands.winograd import ASK, with_files, with_skip_faulty, with_skip_leaked, with_sources
from hapax.evaluation.winograd.data import METHODS

# Written out, so that `--help` does not import the evaluation.
KINDS = ("voice", "tense", "number", "order", "synonym", "names", "adverb", "context")


@click.command()
@with_files
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Kind of rewording; repeatable.  [default: all]"
)
@click.option("--seed", default=0, show_default=True, help="Seed of the choice of names, adverbs and contexts.")
@with_skip_faulty
@with_skip_leaked
@click.option(
    "--out", "target", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSONL file to write."
)
@with_json
def reword(paths: tuple[Path, ...], kinds: tuple[str, ...], target: Path, as_json: bool, **options: Any) -> None:
    """Reword the sentences of Winograd files without changing their meaning, for `robustness`.

    docs/winograd.md says where the published files are from.

    \b
    voice    The cat was chased by the dog.     tense    The dog chases the cat.
    number   The dogs chased the cats.          order    Because it was angry, the dog ...
    synonym  The hound chased the cat.          names    Alice thanked Helen.
    adverb   Apparently, the dog chased ...     context  Rain fell all day. The dog ...

    A rewording is kept if its sentence is parsed to the same events as the original. Needs the extra `english`.

    \b
    hapax evaluate winograd reword wsc_273_annotated_final.csv --out reworded.jsonl
    hapax evaluate winograd reword train.c.txt --kind voice --kind order --out reworded.jsonl
    """
    evaluation = hapax.reword_schemas(paths, kinds, **options)
    hapax.write_rewordings(evaluation, target)
    print_result(evaluation, as_json)
    err.print(escape(f"{target}: {len(evaluation.value.items)} sentences"))


@click.command()
@with_files
@with_sources
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(METHODS),
    help="Method of resolving pronouns (repeatable).  [default: patterns, unless --asked]",
)
@click.option("--asked", is_flag=True, help="Measure the answers of models, too, that `ask` stored in the database.")
@with_skip_faulty
@with_skip_leaked
@with_database
@with_json
def robustness(paths: tuple[Path, ...], methods: tuple[str, ...], asked: bool, **options: Any) -> None:
    """Measure accuracy and answers kept under rewording, by method, with McNemar's test against the originals.

    The files hold originals with their rewordings: those that `reword` writes, or a perturbed set as published.

    \b
    hapax evaluate winograd robustness reworded.jsonl --method reasoner
    hapax evaluate winograd ask reworded.jsonl -m smollm2 --method likelihood
    hapax evaluate winograd robustness reworded.jsonl --asked
    """
    items = hapax.read_schemas(*paths, skip_faulty=options["skip_faulty"], skip_leaked=options["skip_leaked"])
    items = [item for item in items if not options["source"] or item.source in options["source"]]
    if asked:
        with open_kb(options["database"], read_only=True, begun_by=ASK) as kb:
            evaluation = hapax.measure_robustness(items, methods, kb=kb)
    else:
        # Something must resolve the pronouns: the patterns need neither a model nor an extra.
        evaluation = hapax.measure_robustness(items, methods or METHODS[:1])
    print_result(evaluation, options["as_json"])
