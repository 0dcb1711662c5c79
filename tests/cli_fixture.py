"""Hapax commands, run in the process of the tests, and their list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click
from click.testing import CliRunner, Result

from hapax import cli

EVERY_END = ("--keep-share", "0.5", "--measure", "paper")
"""Options of a search whose ends hold most of what it finds: LINK's."""


def invoke(*arguments: object, answers: str = "", environment: Mapping[str, str] | None = None) -> Result:
    """Run a command line, with `answers` on its standard input, and return its exit code and output."""
    return CliRunner(env=environment).invoke(cli.main, [str(argument) for argument in arguments], input=answers)


def run(*arguments: object, code: int = 0) -> Result:
    """Run a command line and fail unless it ends with this exit code."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    return result


def commands(command: click.Command = cli.main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command that is no group, by the words that call it."""
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from commands(inner, (*path, name))
    else:
        yield " ".join(path), command
