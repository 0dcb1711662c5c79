"""`evaluate entailment`: which predicate entails which, and whether a scorer knows the direction."""

from __future__ import annotations

import json
from pathlib import Path

import click

from commands.console import err, print_table
from commands.options import with_json
from grammar.words import counted


@click.group()
def entailment() -> None:
    """Measure directional predicate entailment on LevyHolt, SherLIiC and their like.

    \b
    hapax evaluate entailment data train.txt dev.txt --out subsets
    """


@entailment.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for the subsets of each split.")
@click.option("--seed", default=0, show_default=True, help="Draws the split of pairs whose converse is in another.")
@with_json
def data(files: tuple[Path, ...], out: Path | None, seed: int, as_json: bool) -> None:
    """Count the four sub-groups of each split, and split again so that no pair is apart from its converse.

    Each file is a split, named by its name. --out writes the splits, all pairings of sub-groups, and the twin of each
    that shows the hypothesis only. docs/entailment.md tells the form of the files.

    \b
    hapax evaluate entailment data train.txt dev.txt
    hapax evaluate entailment data train.txt dev.txt --seed 7 --out subsets
    """
    from evaluation.entailment.datasets import DataReport, read_splits, write_subsets

    report = DataReport.of(read_splits(files), seed)
    if out is not None:
        written = write_subsets(report.splits, out)
        err.print(f"{counted(written, 'file')} in {out}", markup=False)
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    for title, columns, rows in report.tables():
        print_table(columns, rows, title=title)
    err.print(report.note, markup=False, soft_wrap=True)
