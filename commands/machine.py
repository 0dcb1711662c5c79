"""`models` and `doctor`: what this machine has."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from commands.console import DONE, FAILED, print_table
from commands.options import with_json


@click.command("models")
@with_json
def list_models(as_json: bool) -> None:
    """List the model backends and what each can do.

    \b
    hapax models
    """
    from llm_oracle.registry import list_models as listed

    models = listed()
    if as_json:
        click.echo(json.dumps([asdict(one) for one in models]))
        return
    rows = ((one.name, ", ".join(one.roles), one.abilities, "yes" if one.available else one.remedy) for one in models)
    print_table(("model", "roles", "what it does", "usable here"), rows)


@click.command()
@with_json
def doctor(as_json: bool) -> None:
    """Say what this machine lacks, and the command that installs it.

    \b
    hapax doctor
    """
    from engine.doctor import examine

    findings = examine()
    if as_json:
        click.echo(json.dumps([asdict(one) for one in findings]))
    else:
        rows = ((one.name, one.found or "missing", "" if one.ok else one.remedy) for one in findings)
        print_table(("what", "found", "what to do"), rows)
    sys.exit(DONE if all(one.ok for one in findings) else FAILED)
