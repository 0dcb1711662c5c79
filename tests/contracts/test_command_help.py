"""Help texts: each command has an example that it would accept, takes its options from a file, and prints JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from cli_fixture import invoke

from hapax.cli import main

ROOT = Path(__file__).parents[2]

WITHOUT_JSON = {
    "compile": "prints Prolog, rules or LINK's JSON",
    "datasette": "prints JSON anyway",
    "export": "prints facts in a format of --format",
    "fmt": "prints or writes rule text",
    "lsp": "speaks a protocol",
    "mcp": "speaks a protocol",
    "serve": "serves pages, each table of which is there as JSON",
}
"""Commands without --json, each with its reason."""


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """All commands that are no groups, by the words that call them."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


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


def words_of(line: str) -> list[str]:
    """The words of an example up to a comment; a redirection is one of them."""
    return shlex.split(line, comments=True)


_FILE = re.compile(r"[\w./*-]+\.(?:rules|csv|jsonl?|tsv|txt|ya?ml|sqlite)")
CONFIGURED: Mapping[str, str | int | list[str]] = {
    "db": "configured.db",
    "rules": ["configured.rules"],
    "knowledge": "scripted:configured.json",
    "critic": "scripted:configured.json",
    "likelihood": "scripted:configured.json",
    "evaluator": "scripted:configured.json",
    "model": "scripted:configured.json",
    "aliases": "configured.yaml",
    "max-calls": 7654,
    "max-tokens": 7654,
    "max-cost": 7654,
}
"""Options that people set for all commands in a file: knowledge base, rules, models, aliases and budget."""


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command that can be configured for all commands, by their long names."""
    found = {}
    for option in command.params:
        if isinstance(option, click.Option):
            found |= {name[2:]: option for name in option.opts if name[2:] in CONFIGURED and not option.is_flag}
    return found


def bare(name: str) -> list[str]:
    """The first example of a command without the options and rules that are configured."""
    command, words = COMMANDS[name], iter(words_of(examples(name)[0]))
    configured = {spelling for option in options_of(command).values() for spelling in option.opts}
    are_typed = any(isinstance(argument, click.Argument) and argument.name == "paths" for argument in command.params)
    kept: list[str] = []
    for word in words:
        if word == ">":  # the shell's
            break
        if word in configured:
            next(words)
        # Rules that are typed as arguments would come before those of the file.
        elif not are_typed or not word.endswith((".rules", "rules/")) or (kept and kept[-1].startswith("-")):
            kept.append(word)
    return kept


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if options_of(command)])
def test_every_command_takes_its_options_from_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that hapax.toml sets for all commands reaches each command that has such an option."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HAPAX_DB", raising=False)
    command, received = COMMANDS[name], dict[str, Any]()
    options = options_of(command)
    lines = [f"{option} = {value!r}".replace("'", '"') for option, value in CONFIGURED.items()]
    Path("hapax.toml").write_text("\n".join(lines) + "\n", "utf-8")
    for file in ("configured.rules", "configured.json", "configured.yaml", "configured.db"):
        Path(file).touch()
    words = bare(name)
    for folder in ("booqa", "probing_set"):
        Path(folder).mkdir()
    for word in words:
        if _FILE.fullmatch(word):
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            Path(word).touch()
    monkeypatch.setattr(command, "callback", lambda **values: received.update(values))

    result = invoke("--config", "hapax.toml", *name.split(), *words)

    assert result.exit_code == 0, result.output
    for long_name, option in options.items():
        expected = CONFIGURED[long_name]
        # Where rules are arguments, --rules fills these.
        value = received["paths" if long_name == "rules" and not option.expose_value else option.name or ""]
        shown = value[0] if isinstance(value, tuple | list) else value
        assert str(shown) in (str(expected), str(float(expected)) if isinstance(expected, int) else expected[0]), (
            long_name
        )


def test_a_command_that_reports_prints_json() -> None:
    """--json is everywhere, except where the output is itself data, text or a conversation."""
    without = {name for name, command in COMMANDS.items() if not any("--json" in item.opts for item in command.params)}

    assert without == {*WITHOUT_JSON}
