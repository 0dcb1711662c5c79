"""Help texts: each command has an example that it would accept, takes its options from a file, and prints JSON."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from command_lines import commands

from hapax.cli import main

WITHOUT_JSON = {
    "rules compile": "prints Prolog, rules or LINK's JSON",
    "export": "prints facts in a format of --format",
    "rules fmt": "prints or writes rule text",
    "rules lsp": "speaks a protocol",
    "kb mcp": "speaks a protocol",
    "init": "writes files",
    "shell": "answers one goal after another",
    "serve": "serves pages, each table of which is there as JSON",
}
"""Commands without --json, each with its reason."""


COMMANDS = dict(commands())


def examples(name: str) -> list[str]:
    """The lines in the help of a command that call it, without its name."""
    text = COMMANDS[name].help or ""
    return re.findall(rf"^ *(?:\\S+=\\S+ )?hapax {re.escape(name)}(?: (.*))?$", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_examples_that_it_accepts(name: str) -> None:
    """The help shows the command at work, with options and arguments that it has."""
    command = COMMANDS[name]

    assert examples(name)
    for line in examples(name):
        words = shlex.split(line, comments=True)
        words = words[: words.index(">")] if ">" in words else words
        # With the settings of the program, since a command keeps the help option of its first context.
        context = click.Context(command, info_name=name, parent=click.Context(main, **main.context_settings))
        given, left_over, _ = command.make_parser(context).parse_args(words)
        assert not left_over, line
        assert {option.name for option in command.params if option.required} <= given.keys(), line


def test_a_command_is_called_by_its_own_name() -> None:
    """Where the program says a command is, there is one of that name."""
    assert {name: command.name for name, command in COMMANDS.items()} == {name: name.split()[-1] for name in COMMANDS}


def test_the_list_of_commands_shows_the_help_of_each() -> None:
    """The list is read from the sources of the commands, and says what click would say of the commands themselves."""
    context = click.Context(main)
    listed, made = (click.HelpFormatter(width=100) for _ in range(2))
    main.format_commands(context, listed)
    click.Group.format_commands(main, context, made)

    assert listed.getvalue() == made.getvalue()


def test_a_command_that_reports_prints_json() -> None:
    """--json is everywhere, except where the output is itself data, text or a conversation."""
    without = {name for name, command in COMMANDS.items() if not any("--json" in item.opts for item in command.params)}

    assert without == {*WITHOUT_JSON}
