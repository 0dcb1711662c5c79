"""`evaluate soundness`: how many statements are true, by the votes of readers."""

from __future__ import annotations

from typing import Any

import click

import hapax
from hapax.commands.papers.link_experiments import print_result
from hapax.commands.shared.common_options import open_kb, with_database, with_json
from hapax.commands.shared.declared import declared
from hapax.grammar.options import made


@click.command()
@with_database
@declared(hapax.SoundnessOptions, "rules", "runs", "bar")
@with_json
def soundness(database: str, as_json: bool, **options: Any) -> None:
    """Measure how many statements are true, by the votes on sheets of soundness.

    Rules below the bar of 0.9 are also reported by `hapax check --db`.

    \b
    hapax votes export soundness --voter ann
    hapax votes import sheets/soundness-ann.csv
    hapax evaluate soundness
    """
    measured = made(hapax.SoundnessOptions, options)
    with open_kb(database, read_only=True) as kb:
        print_result(hapax.evaluate_soundness(kb, measured), as_json)
