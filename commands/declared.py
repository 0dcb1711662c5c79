"""Options of the command line, made from the fields and parameters whose annotations declare them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from hapax.commands.configuration import SearchSetting
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Declared, Option, declarations

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
