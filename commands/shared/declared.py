"""Options of the command line: from annotated declarations, of the whole program, and with defaults of `hapax.toml`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource

from hapax.commands.shared.console import note
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


Place = tuple[str, ...]
"""The words that call a command."""

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
    defaults, ignored = dict[str, Any](), []
    for place, name, value in _entries(_read_table(path), ()):
        below = list(_options_below(_command(context.command, place, path), place))
        known = [(where, options[name]) for where, options in below if name in options]
        if not known:
            every = {option for _, options in below for option in options}
            raise _unknown(path, place, f"{name} is not an option{_of(place)}", name, every)
        settable = [(where, option) for where, option in known if is_named or isinstance(option, SearchSetting)]
        if not settable:
            ignored.append(f"[{'.'.join(place)}] {name}" if place else name)
        for where, option in settable:
            # A value for all commands may be of another kind than those take that do not run.
            if place or where[0] == context.invoked_subcommand:
                own = defaults
                for word in where:
                    own = own.setdefault(word, {})
                own[str(option.name)] = _value(option, name, value, f"{path}: {name}{_of(where)}")
    context.default_map = defaults
    if defaults:
        note(f"Options from {path}")
    if ignored:
        names = ", ".join(ignored[:MOST_NAMES]) + (" ..." if len(ignored) > MOST_NAMES else "")
        note(
            f"{path}: ignored {names}. Nobody named this file, so it sets search settings only. If you trust it, use "
            f"hapax --config {path}.",
            "warning",
        )


def _read_table(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as fault:
        reason = "nested too deeply" if isinstance(fault, RecursionError) else fault
        raise HapaxError(f"{path}: {reason}. Correct the file, or name another by --config.") from None


def _entries(table: Mapping[str, Any], place: Place) -> Iterator[tuple[Place, str, Any]]:
    """Options and values with the command or group that they are for, those of a group first."""
    tables = {name: value for name, value in table.items() if isinstance(value, dict)}
    yield from ((place, name, value) for name, value in table.items() if name not in tables)
    for name, values in tables.items():
        if not place and name in MOVED:
            note(f"Table [{name}] of the configuration is now [{MOVED[name].replace(' ', '.')}].")
            yield from _entries(values, tuple(MOVED[name].split()))
        else:
            yield from _entries(values, (*place, name))


def _command(program: click.Command, place: Place, path: Path) -> click.Command:
    """The command or group that these words call."""
    for number, name in enumerate(place):
        below = getattr(program, "commands", {})
        if name not in below:
            named = ".".join(place[: number + 1])
            raise _unknown(path, place[:number], f"[{named}] names no command", name, below)
        program = below[name]
    return program


def _unknown(path: Path, place: Place, fault: str, name: str, known: Iterable[str]) -> HapaxError:
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    remedy = f"Did you mean {near[0]}?" if near else f"`hapax {' '.join((*place, '-h'))}` lists them."
    return HapaxError(f"{path}: {fault}. {remedy}")


def _value(option: click.Option, name: str, value: Any, place: str) -> Any:
    """The value as a command line would have it: text, or a list of texts where the option may be repeated."""
    if option.is_flag and isinstance(value, bool):
        # `no-verbs = true` means `--no-verbs`, which sets the flag to false.
        return value is not (f"--{name}" in option.secondary_opts)
    if option.is_flag or isinstance(value, bool) or (isinstance(value, list) and not option.multiple):
        takes = "is true or false" if option.is_flag else "takes one value"
        raise HapaxError(f"{place} {takes}. Correct the file, or name another by --config.")
    # Text, as on a command line, so that the option itself checks and converts it.
    return [str(part) for part in value] if isinstance(value, list) else str(value)


def _of(place: Place) -> str:
    return f" of `hapax {' '.join(place)}`" if place else " of any command"


def _options_below(command: click.Command, place: Place) -> Iterator[tuple[Place, dict[str, click.Option]]]:
    """The commands of a group and of the groups in it, or a command alone, with options by their long names."""
    below = getattr(command, "commands", {})
    for name in below:
        with suppress(ModuleNotFoundError):  # its extra is not installed
            yield from _options_below(below[name], (*place, name))
    if not isinstance(command, click.Group):
        options: dict[str, click.Option] = {}
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                # `--verbs/--no-verbs` is one parameter with two names.
                names = (*parameter.opts, *parameter.secondary_opts)
                options |= {name.removeprefix("--"): parameter for name in names if name.startswith("--")}
        yield place, options


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

    by_name = {item.field: item for item in declarations(target)}
    return together(*(_click_option(by_name[name], hidden) for name in names or by_name))


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
        # Not False: click would then accept the option without a value.
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
    """The default as click takes and shows it; None if it is empty, cannot be typed, or is in the help."""
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


def _price_of(text: str) -> tuple[str, Price]:
    """A model string and its prices per million tokens of prompts and of answers, as in `MODEL=IN,OUT`."""
    # At the last `=`, since the name of a model may contain one.
    model, _, money = text.rpartition("=")
    try:
        prompts, answers = map(float, money.split(","))
    except ValueError:
        prompts = answers = math.nan
    if not model or not 0 <= prompts < math.inf or not 0 <= answers < math.inf:
        raise HapaxError(f"{text!r} should read MODEL=IN,OUT, such as openai:org/model=0.5,1.5")
    return model, Price(prompts, answers)


def _program_options(*, hidden: bool = False) -> Callable[[F], F]:
    return together(
        declared(OpeningOptions, "device", "dtype", "aliases", hidden=hidden),
        click.option(
            "--price",
            "prices",
            type=Read(_price_of),
            multiple=True,
            metavar="MODEL=IN,OUT",
            help="Price of a million tokens of prompts and of answers; overrides the alias.",
            hidden=hidden,
        ),
        declared(OpeningOptions, "proxy", "offline", "probe_again", "retry_unusable", "claims", "seed", hidden=hidden),
    )


with_program = _program_options()


def of_program(command: F) -> F:
    """The command with the program's options, which may stand before it or behind it."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        context = click.get_current_context()
        for parameter in context.command.params:
            name = parameter.name or ""
            if getattr(parameter, "hidden", False) and context.get_parameter_source(name) is ParameterSource.DEFAULT:
                options[name] = context.find_root().params.get(name, options[name])
        return command(*arguments, **options)

    # The command reads them; the program lists them.
    return _program_options(hidden=True)(run)  # type: ignore[return-value]  # click calls both by name
