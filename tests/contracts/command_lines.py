"""The commands of the program, as a list."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hapax import cli


def commands(command: click.Command = cli.main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command that is no group, by the words that call it."""
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from commands(inner, (*path, name))
    else:
        yield " ".join(path), command
