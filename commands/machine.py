"""`models` and `doctor`: model backends and programs of this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from hapax.commands.console import DONE, FAILED, print_table
from hapax.commands.options import with_json


@click.command("models")
@with_json
def list_models(as_json: bool) -> None:
    """List the model backends and their abilities.

    \b
    hapax models
    """
    from hapax.llm_oracle.registry import list_models as registered_models

    models = registered_models()
    if as_json:
        click.echo(json.dumps([asdict(model) for model in models]))
        return
    rows = []
    for model in models:
        usable = "yes" if model.available else model.remedy
        rows.append((model.name, ", ".join(model.roles), model.abilities, usable))
    print_table(("model", "roles", "abilities", "usable here"), rows)


@click.command()
@with_json
def doctor(as_json: bool) -> None:
    """Check the programs and packages that Hapax needs, and say how to install what is missing.

    \b
    hapax doctor
    """
    from hapax.engine.doctor import examine

    findings = examine()
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        rows = []
        for finding in findings:
            state = finding.found or ("not installed" if finding.optional else "missing")
            rows.append((finding.name, state, "" if finding.ok else finding.remedy))
        print_table(("part", "found", "what to do"), rows)
    # What an extra needs may be missing without a failure: most users need no extra.
    sys.exit(DONE if all(finding.ok or finding.optional for finding in findings) else FAILED)
