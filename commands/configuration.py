"""Defaults of options from a file, `hapax.toml`: for every command that has the option, or for one command."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from hapax.grammar.errors import HapaxError

CONFIGURATION = Path("hapax.toml")
"""The file in the working folder that is read without being named."""

DIRECTING_KEYS = ("aliases", "proxy")
"""Options that say where keys are sent. A folder from elsewhere must not set them: its file has to be named."""


def read_defaults(path: Path, commands: click.Group, *, is_named: bool) -> dict[str, Any]:
    """Click's map of defaults from the file: a value by name of parameter, inside its command.

    `is_named`: the user named the file, so that it may also set `DIRECTING_KEYS`. Raises HapaxError for a file that is
    no TOML, for a command or option that does not exist, and for a value of another kind than the option takes.
    Whether the value itself is valid is for the option to say.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: {fault}. Correct the file, or name another by --config.") from None
    return _ConfigurationReader(path, is_named).defaults(commands, table, {}, ())


class _ConfigurationReader:
    """Reads the tables of one file."""

    def __init__(self, path: Path, is_named: bool) -> None:
        self._path, self._is_named = path, is_named

    def defaults(
        self, command: click.Command, table: Mapping[str, Any], inherited: Mapping[str, Any], place: tuple[str, ...]
    ) -> dict[str, Any]:
        """The map for a command and those below it. `inherited`: values for all commands of the group."""
        if not isinstance(command, click.Group):
            self._check_names(table, _options(command), place)
            # Inherited names were checked where they stand; a command takes those that it has.
            return self._values(command, {**inherited, **table}, place)
        # Values beside the tables hold for all commands of the group.
        shared = {name: value for name, value in table.items() if not isinstance(value, dict)}
        options: set[str] = set()
        for below in _commands(command):
            options.update(_options(below))
        self._check_names(shared, options, place)
        tables = {name: value for name, value in table.items() if isinstance(value, dict)}
        # A table must name a command of this group.
        for name in tables:
            if name not in command.commands:
                self._fail(place, f"[{'.'.join((*place, name))}] names no command", name, command.commands)
        values = {**inherited, **shared}
        return {
            name: self.defaults(below, tables.get(name, {}), values, (*place, name))
            for name, below in command.commands.items()
        }

    def _check_names(self, table: Mapping[str, Any], options: Any, place: tuple[str, ...]) -> None:
        for name in table:
            if name not in options:
                self._fail(place, f"{name} is not an option{_of(place)}", name, options)
            if name in DIRECTING_KEYS and not self._is_named:
                raise HapaxError(
                    f"{self._path}: {name} says where keys are sent, so this file must be named. If you trust it, add "
                    f"--config {self._path} before the command, or set HAPAX_CONFIG."
                )

    def _fail(self, place: tuple[str, ...], fault: str, name: str, known: Any) -> None:
        near = get_close_matches(name, list(known), 1)
        remedy = f"Did you mean {near[0]}?" if near else f"`hapax {' '.join((*place, '-h'))}` lists them."
        raise HapaxError(f"{self._path}: {fault}. {remedy}")

    def _values(self, command: click.Command, table: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
        options = _options(command)
        values = {}
        for name, value in table.items():
            option = options.get(name)
            # A value for all commands, of an option that this one does not have.
            if option is not None and option.name is not None:
                values[option.name] = self._value(option, name, value, place)
        return values

    def _value(self, option: click.Option, name: str, value: Any, place: tuple[str, ...]) -> Any:
        """The value as a command line would have it: text, or a list of texts where the option may be repeated."""
        if option.is_flag:
            if not isinstance(value, bool):
                self._refuse(name, place, "is true or false")
            # `no-verbs = true` means `--no-verbs`, which sets the flag to false.
            return not value if f"--{name}" in option.secondary_opts else value
        # Else `true` would become the text `True`.
        if isinstance(value, bool):
            self._refuse(name, place, "takes a value")
        if option.multiple:
            return [str(part) for part in (value if isinstance(value, list) else [value])]
        if isinstance(value, list):
            self._refuse(name, place, "takes one value")
        # Text, as on a command line, so that the option itself checks and converts it.
        return str(value)

    def _refuse(self, name: str, place: tuple[str, ...], fault: str) -> None:
        raise HapaxError(f"{self._path}: {name}{_of(place)} {fault}. Correct the file, or name another by --config.")


def _of(place: tuple[str, ...]) -> str:
    return f" of `hapax {' '.join(place)}`" if place else " of any command"


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names, without the two signs in front."""
    options: dict[str, click.Option] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            # `--verbs/--no-verbs` is one parameter with two names.
            names = (*parameter.opts, *parameter.secondary_opts)
            options.update({name.removeprefix("--"): parameter for name in names if name.startswith("--")})
    return options


def _commands(group: click.Group) -> Iterator[click.Command]:
    """The commands of a group and of the groups in it."""
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _commands(command)
        else:
            yield command
