"""Groups of commands that the twelve verbs leave over, and the earlier spellings of these commands."""

from __future__ import annotations

import click

from hapax.commands.groups import CommandGroup


@click.group(
    cls=CommandGroup,
    path="data.",
    core={
        "merge": "hapax.commands.store:merge",
        "retract": "hapax.commands.retract:retract",
        "stats": "hapax.commands.store:stats",
    },
)
def data() -> None:
    """Merge, withdraw, count and publish facts and statements.

    \b
    hapax data stats --db hapax.db
    hapax data retract "uses_currency(Norway, euro)" --reason "it is the krone"
    hapax data dataset my_lint
    """


@click.group(
    cls=CommandGroup,
    path="model.",
    core={"ledger": "hapax.commands.spending:ledger", "list": "hapax.commands.machine:list_models"},
)
def model() -> None:
    """List model backends, calibrate critics, and list what was asked of servers.

    \b
    hapax model list
    hapax model calibrate --critic embedded --labels reference:all
    """


@click.group(
    cls=CommandGroup,
    path="kb.",
    core={
        "backup": "hapax.commands.store:backup",
        "mcp": "hapax.commands.agents:serve_mcp",
        "restore": "hapax.commands.store:restore",
        "verify": "hapax.commands.store:verify",
    },
)
def kb() -> None:
    """Back up, restore and verify the file of a knowledge base, and offer it to agents.

    \b
    hapax kb backup copy.db --db hapax.db
    hapax kb verify --db hapax.db
    """
