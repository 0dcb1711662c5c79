"""Remedies name settings and operations; the command line has an option, a command, for each of them."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import click

import hapax
from hapax.cli import main
from hapax.commands.console import CommandLine
from hapax.engine.inference.session import LimitExceeded
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting, worded_for

ROOT = Path(__file__).parents[3]
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api")


def named(kind: str) -> set[str]:
    """The names in the sources' `Setting("...")` or `Operation("...")`."""
    names = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == kind:
                    names |= {first.value for first in node.args[:1] if isinstance(first, ast.Constant)}
    return names


def commands(group: click.Group, before: str = "hapax") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{before} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before} {name}")


def test_every_setting_has_an_option() -> None:
    """What a remedy names can be typed: the first word of its wording is an option of some command."""
    options = {
        option
        for _, command in commands(main)
        for parameter in command.get_params(click.Context(command))
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    worded = {name: CommandLine().setting(Setting(name)).strip("`").split()[0] for name in named("Setting")}

    assert len(worded) > 50
    assert {name: option for name, option in worded.items() if option not in options} == {}


def test_every_operation_is_a_command_and_a_function() -> None:
    """An operation is called by its name in Python, and typed by that of a command."""
    typed = {name for name, _ in commands(main)}
    worded = {name: CommandLine().operation(Operation(name)).strip("`") for name in named("Operation")}

    assert len(worded) > 30
    assert {name for name in worded if name not in hapax.__all__} == set()
    assert {name for name, words in worded.items() if words.partition(" --")[0] not in typed} == set()


def test_an_error_is_worded_where_it_is_shown() -> None:
    """The same error names an argument in Python and an option on the command line; its remedy stays data."""
    error = HapaxError("It took too long.", Remedy("Raise {}.", Setting("limits.seconds")))

    assert str(error) == "It took too long. Raise `limits.seconds`."
    with worded_for(CommandLine()):
        assert str(error) == "It took too long. Raise --seconds."
    assert str(error).endswith("`limits.seconds`.")


def test_an_error_of_another_process_arrives_whole() -> None:
    """An error is pickled with its remedy and its fields, whatever the arguments of its class."""
    error = LimitExceeded("The goal needs more time.", "seconds")

    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own

    assert (type(arrived), str(arrived), arrived.limit) == (LimitExceeded, str(error), "seconds")
