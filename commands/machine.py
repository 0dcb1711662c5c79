"""`models` and `doctor`: model backends and programs of this machine."""

from __future__ import annotations

import json
import sys

import click

import hapax
from hapax.commands.console import DONE, FAILED, print_table
from hapax.commands.options import with_json


@click.command("list")
@with_json
def list_models(as_json: bool) -> None:
    """List the model backends and their abilities.

    \b
    hapax model list
    """
    models = hapax.list_models()
    if as_json:
        click.echo(json.dumps(models.to_json()))
    else:
        print_table(models.columns, models.cells())


@click.command()
@with_json
def doctor(as_json: bool) -> None:
    """Check the programs and packages that Hapax needs, and say how to install what is missing.

    \b
    hapax doctor
    """
    examination = hapax.doctor()
    if as_json:
        click.echo(json.dumps(examination.to_json()))
    else:
        print_table(examination.columns, examination.cells())
    sys.exit(DONE if examination.passed else FAILED)
