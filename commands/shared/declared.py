"""Options of the command line: from annotated declarations, of the whole program, and with defaults of `hapax.toml`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource
from rich.markup import escape

from hapax.commands.shared.console import err
from hapax.commands.shared.groups import MOVED
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Declared, Option, declarations
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Price

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


F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


class Finite(click.FloatRange):
    """A finite number in a range. A bare `FloatRange` accepts `nan`, which is neither below nor above a limit."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class NumberOr(click.IntRange):
    """A whole number in a range, or a word, which is None."""

    def __init__(self, word: str, least: int | None, most: int | None) -> None:
        super().__init__(least, most)
        self.word = word
        if not word.isdigit():
            self.name = f"number or {word}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:  # type: ignore[override]
        """The number, None for the word, or a usage error."""
        return None if value == self.word else int(super().convert(value, param, ctx))


class Read(click.ParamType[Any]):
    """A value that a function makes of a text."""

    name = "text"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or a usage error."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except HapaxError as fault:
            self.fail(str(fault), param, ctx)


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Join options into one decorator that adds them in this order."""

    def decorate(command: F) -> F:
        # click lists options in the reverse order in which they are applied.
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def declared(target: Callable[..., Any], *names: str, hidden: bool = False) -> Callable[[F], F]:
    """The options that a class or function declares with these fields or parameters, in this order.

    Without names, all that it declares. `hidden`: understood, but not listed.
    """

    def decorate(command: F) -> F:
        by_name = {item.field: item for item in declarations(target)}
        # click lists options in the reverse order in which they are applied.
        for name in reversed(names or tuple(by_name)):
            command = _click_option(by_name[name], hidden)(command)
        return command

    return decorate


def _click_option(item: Declared, hidden: bool) -> Callable[[F], F]:
    kind, option = item.kind, item.option
    is_repeated = get_origin(kind) is tuple and option.read is None
    default = _default(item)
    long = f"--{item.name.replace('_', '-')}"
    return click.option(
        *filter(None, (option.short, f"{long}/--no-{long[2:]}" if option.switch else long)),
        item.name,
        cls=SearchSetting if option.in_any_folder else click.Option,
        type=_click_type(get_args(kind)[0] if is_repeated else kind, option),
        # Not False: click would then let the option stand without its value.
        is_flag=True if kind is bool else None,
        multiple=is_repeated,
        required=item.default is inspect.Parameter.empty,
        # For click None would be a default, too, and what is required has none.
        **({} if default is None else {"default": default}),
        show_default=default is not None and (kind is not bool or option.switch),
        metavar=option.metavariable,
        help=option.help,
        hidden=hidden,
    )


def _default(item: Declared) -> Any:
    """The default as click takes and shows it; None for an empty one, one that cannot be typed, or one that is told."""
    if "default:" in item.option.help:
        return None
    default = item.default
    if isinstance(default, tuple):
        default = tuple(map(_typed, default))
    default = _typed(default)
    is_plain = isinstance(default, bool | int | float | str | tuple | Path) and item.option.read is None
    return item.option.default or (default if is_plain and default not in ("", ()) else None)


def _typed(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _click_type(kind: Any, option: Option) -> Any:
    choices = option.choices
    if get_origin(kind) is Literal:
        choices = tuple(choice for choice in get_args(kind) if choice)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        choices = tuple(member.value for member in kind)
    if choices:
        return click.Choice(tuple(map(str, choices)))
    if option.read is not None:
        return Read(option.read)
    if kind is int:
        least, most = (None if limit is None else int(limit) for limit in (option.least, option.most))
        if least is most is None:
            return click.INT
        return NumberOr(option.none, least, most) if option.none else click.IntRange(least, most)
    if kind is float:
        lowest = option.least if option.above is None else option.above
        highest = option.most if option.below is None else option.below
        return Finite(lowest, highest, min_open=option.above is not None, max_open=option.below is not None)
    if kind is Path:
        is_file, is_folder = option.path != "folder", option.path != "file"
        return click.Path(exists=option.exists, file_okay=is_file, dir_okay=is_folder, path_type=Path)
    return None


class PriceOf(click.ParamType[tuple[str, Price]]):
    """`MODEL=IN,OUT`: a model string and its prices per million tokens of prompts and of answers."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Price]:
        """The model and its price, or a usage error."""

        # At the last `=`, since the name of a model may contain one.
        model, equals, money = str(value).rpartition("=")
        listed = money.split(",")
        if not equals or not model or len(listed) != 2:
            self.fail(f"{value!r} should read MODEL=IN,OUT, such as openai:org/model=0.5,1.5", param, ctx)
        amount = Finite(0)
        prompts, answers = (amount.convert(part, param, ctx) for part in listed)
        return model, Price(prompts, answers)


def _program_options(*, hidden: bool = False) -> Callable[[F], F]:
    return together(
        declared(OpeningOptions, "device", "dtype", "aliases", hidden=hidden),
        click.option(
            "--price",
            "prices",
            type=PriceOf(),
            multiple=True,
            metavar="MODEL=IN,OUT",
            help="Price of a million tokens of prompts and of answers; overrides the alias.",
            hidden=hidden,
        ),
        declared(OpeningOptions, "proxy", "offline", "probe_again", "retry_unusable", "claims", "seed", hidden=hidden),
    )


with_program = _program_options()


def of_program(command: F) -> F:
    """The command with the program's options, as they stand before it, in the environment, or in a file for it.

    A command line that has them behind the command is understood, too, and told where they belong.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        from hapax.commands.shared.console import err

        context = click.get_current_context()
        late = []
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and parameter.hidden and parameter.name is not None:
                source = context.get_parameter_source(parameter.name)
                if source is ParameterSource.DEFAULT:
                    options[parameter.name] = context.find_root().params.get(parameter.name, options[parameter.name])
                elif source is ParameterSource.COMMANDLINE:
                    late.append(parameter.opts[0])
        if late:
            err.print(f"{', '.join(late)}: write options of models before the command, `hapax {late[0]} ...`.")
        return command(*arguments, **options)

    # The command reads them; the program lists them.
    return _program_options(hidden=True)(run)  # type: ignore[return-value]  # click calls both by name
