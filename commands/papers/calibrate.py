"""`calibrate`: what a critic's scores are worth, learned from facts with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.papers.link_experiments import print_result
from hapax.commands.shared.common_options import read_library, with_database, with_json, with_rules
from hapax.commands.shared.declared import declared
from hapax.commands.shared.model_options import asking, with_budget, with_opening, with_queue
from hapax.grammar.options import made


@click.command()
@with_rules
@declared(hapax.CalibrationOptions)
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def calibrate(paths: tuple[Path, ...], **options: Any) -> None:
    """Learn from labelled facts what a critic's scores are worth, and store it for `search --calibrated`.

    Measures come from labels whose keys the map did not learn from. docs/how-to/certificates.md describes the file of
    labels.

    \b
    hapax model calibrate --critic embedded --labels reference:all
    hapax model calibrate --critic hf:google/flan-t5-large --labels votes --labels labels.tsv --figure reliability
    """
    library = read_library(paths, options["database"])
    chosen = made(hapax.CalibrationOptions, options)
    with asking(options, "Calibrating", library, begun_by="hapax search") as (kb, opening, _):
        evaluation = hapax.calibrate(library, kb, chosen, opening)
    print_result(evaluation, options["as_json"])
