"""Options of the command line, made from the fields of the classes that hold them."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import click

from hapax.commands.configuration import SearchSetting
from hapax.grammar.arguments import annotated_type
from hapax.grammar.options import Option

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


def declared(settings: type, *names: str) -> Callable[[F], F]:
    """The options that these fields of a class of settings declare, in this order."""

    def decorate(command: F) -> F:
        by_name = {field.name: (field, kind, option) for field, kind, option in _options(settings)}
        # click lists options in the reverse order in which they are applied.
        for name in reversed(names):
            command = _click_option(*by_name[name])(command)
        return command

    return decorate


def values_of(settings: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a class of settings that these options set; what was not given keeps its default."""
    given = {field.name: options.get(_parameter(field, option)) for field, _, option in _options(settings)}
    return {name: value for name, value in given.items() if value is not None}


@cache
def _options(settings: type) -> tuple[tuple[Field[Any], Any, Option], ...]:
    """Each field that declares an option, with its type."""
    found = []
    for field in fields(settings):
        # Annotations are texts; others may name what is not imported yet.
        if str(field.type).startswith("Annotated["):
            parameter = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, annotation=field.type)
            kind, option = get_args(annotated_type(settings, parameter))
            found.append((field, kind, option))
    return tuple(found)


def _parameter(field: Field[Any], option: Option) -> str:
    return (option.name or field.name).replace("-", "_")


def _click_option(field: Field[Any], kind: Any, option: Option) -> Callable[[F], F]:
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    # What is empty or false by default is not shown in the help.
    default = None if field.default is MISSING or field.default == "" else field.default
    return click.option(
        f"--{_parameter(field, option).replace('_', '-')}",
        cls=SearchSetting if option.in_any_folder else click.Option,
        type=_click_type(kind, option),
        is_flag=kind is bool,
        default=default,
        show_default=kind is not bool and default is not None,
        metavar=option.metavariable,
        help=option.help,
    )


def _click_type(kind: Any, option: Option) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice([choice for choice in get_args(kind) if choice])
    if kind is int:
        if option.least is option.most is None:
            return click.INT
        least, most = (None if limit is None else int(limit) for limit in (option.least, option.most))
        return click.IntRange(least, most)
    if kind is float:
        lowest = option.least if option.above is None else option.above
        return Finite(lowest, option.most, min_open=option.above is not None)
    return click.Path(path_type=Path) if kind is Path else None
