"""Defaults of options from a file, `hapax.toml`: for every command that has the option, or for one command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.markup import escape

from hapax.commands.console import err
from hapax.commands.groups import MOVED
from hapax.grammar.errors import HapaxError

CONFIGURATION = Path("hapax.toml")
"""The file in the working folder that is read without being named."""


class SearchSetting(click.Option):
    """An option that `CONFIGURATION` may set without being named: a setting of searches.

    The file may come with a folder from elsewhere, so an option is of this class only if its value names no file,
    host, model, process or budget. An option of any other class is refused, however it is called.
    """


MOST_NAMES = 5
"""Ignored options that the warning names."""


def use_defaults(context: click.Context, path: Path, *, is_named: bool) -> None:
    """Take the defaults of options from the file, and say so. A file that nobody named sets each `SearchSetting` only.

    Raises HapaxError for a file that is not TOML, for a command or option that does not exist, and for a value of
    another kind than the option takes. The option itself checks the value.
    """
    is_of_environment = context.get_parameter_source("configuration") is ParameterSource.ENVIRONMENT
    if is_of_environment and not path.is_absolute():
        # It would name another file in each folder that the user enters, a stranger's too.
        raise click.UsageError(f"HAPAX_CONFIG is {path}, which is another file in each folder. Set it to a whole path.")
    reader = _ConfigurationReader(path, is_named, str(context.invoked_subcommand))
    context.default_map = reader.defaults(context.command, _read_table(path), {}, ())
    if _has_values(context.default_map):
        err.print(f"Options from {path}", markup=False)
    if ignored := reader.ignored:
        names = ", ".join(ignored[:MOST_NAMES]) + (" ..." if len(ignored) > MOST_NAMES else "")
        err.print(
            f"[yellow]warning[/] {escape(str(path))}: ignored {escape(names)}. Nobody named this file, so it sets "
            f"search settings only. If you trust it, use hapax --config {escape(str(path))}.",
            soft_wrap=True,
        )


def _read_table(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except RecursionError:
        raise HapaxError(f"{path}: nested too deeply. Correct the file, or name another by --config.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as fault:
        raise HapaxError(f"{path}: {fault}. Correct the file, or name another by --config.") from None


def _has_values(defaults: Mapping[str, Any]) -> bool:
    """True if some command has a default; tables of commands are maps."""
    return any(_has_values(value) if isinstance(value, dict) else True for value in defaults.values())


class _ConfigurationReader:
    """Reads the tables of one file."""

    def __init__(self, path: Path, is_named: bool, called: str) -> None:
        self._path, self._is_named, self._called = path, is_named, called
        self.ignored: list[str] = []

    def defaults(
        self, command: click.Command, table: Mapping[str, Any], inherited: Mapping[str, Any], place: tuple[str, ...]
    ) -> dict[str, Any]:
        """The map for a command and those below it. `inherited`: values for all commands of the group."""
        if not isinstance(command, click.Group):
            self._check_names(table, [_options(command)], place)
            # Inherited names were checked where they stand; a command takes those that it has.
            return self._values(command, {**inherited, **table}, place)
        # Values beside the tables hold for all commands of the group.
        shared = {name: value for name, value in table.items() if not isinstance(value, dict)}
        if shared:
            self._check_names(shared, [_options(below) for below in _commands(command)], place)
        tables = {name: value for name, value in table.items() if isinstance(value, dict)}
        if not place:
            tables = self._in_todays_places(tables)
        # A table must name a command of this group.
        for name in tables:
            if name not in command.commands:
                self._fail(place, f"[{'.'.join((*place, name))}] names no command", name, command.commands)
        values = {**inherited, **shared}
        # No other command is imported for its defaults. Of a group below, the called one is not known yet.
        names = command.commands if place else {*tables, self._called}
        return {
            name: self.defaults(command.commands[name], tables.get(name, {}), values, (*place, name)) for name in names
        }

    def _in_todays_places(self, tables: dict[str, Any]) -> dict[str, Any]:
        """The tables with those of commands by their earlier names below their groups."""
        found = {name: value for name, value in tables.items() if name not in MOVED}
        for name in tables.keys() & MOVED.keys():
            group, _, own = MOVED[name].partition(" ")
            err.print(f"{self._path}: [{name}] is now [{group}.{own}].", markup=False)
            found[group] = {**found.get(group, {}), own: tables[name]}
        return found

    def _check_names(
        self, table: Mapping[str, Any], commands: Sequence[Mapping[str, click.Option]], place: tuple[str, ...]
    ) -> None:
        """Raise HapaxError for a name that is an option of none of the commands; note the names that are ignored."""
        known = {name for options in commands for name in options}
        for name in table:
            if name not in known:
                self._fail(place, f"{name} is not an option{_of(place)}", name, known)
            if not any(self._may_set(options[name]) for options in commands if name in options):
                self.ignored.append(f"[{'.'.join(place)}] {name}" if place else name)

    def _may_set(self, option: click.Option) -> bool:
        return self._is_named or isinstance(option, SearchSetting)

    def _fail(self, place: tuple[str, ...], fault: str, name: str, known: Any) -> None:
        from difflib import get_close_matches

        near = get_close_matches(name, list(known), 1)
        remedy = f"Did you mean {near[0]}?" if near else f"`hapax {' '.join((*place, '-h'))}` lists them."
        raise HapaxError(f"{self._path}: {fault}. {remedy}")

    def _values(self, command: click.Command, table: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
        options = _options(command)
        values = {}
        for name, value in table.items():
            option = options.get(name)
            # A value for all commands, of an option that this one does not have.
            if option is not None and option.name is not None and self._may_set(option):
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
    for name in group.commands:
        try:
            command = group.commands[name]
        except ModuleNotFoundError:  # its extra is not installed
            continue
        if isinstance(command, click.Group):
            yield from _commands(command)
        else:
            yield command
