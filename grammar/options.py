"""Options are declared once, with the fields of the classes that hold them; the command line is made from that."""

from __future__ import annotations

import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

from hapax.grammar.arguments import annotated_type
from hapax.grammar.errors import HapaxError

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Option:
    """The option of the command line that sets a field or parameter, beside what its type and default say.

    `name`: of the option, where it is not that of the field; `short`: another, such as `-m`. `default`: the default as
    one would type it, if it is not a plain value. `least`, `most`: the range of a number, or `above`, `below`, which it
    does not reach. `none`: the word that stands for no limit. `choices`: the texts that may be given. `read`: makes the
    value of the text, and raises HapaxError for a faulty one. `switch`: the flag has a `--no-` form, too. `path`: only
    a file or a folder; `exists`: it must be there. `in_any_folder`: a `hapax.toml` that nobody named may set it, since
    it is a setting of searches that names no file, host, model, process or budget.
    """

    help: str
    name: str = ""
    short: str = ""
    metavariable: str | None = None
    default: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None
    none: str = ""
    switch: bool = False
    path: Literal["", "file", "folder"] = ""
    exists: bool = False
    in_any_folder: bool = False

    def holds(self, number: float) -> bool:
        """True for a finite number in the range."""
        least, above = (-math.inf if limit is None else limit for limit in (self.least, self.above))
        most, below = (math.inf if limit is None else limit for limit in (self.most, self.below))
        return least <= number <= most and above < number < below

    @property
    def range(self) -> str:
        """The range in words: `a number above 0 and at most 1`."""
        limits = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        words = [f"{name} {limit:g}" for name, limit in limits.items() if limit is not None]
        return f"a number {' and '.join(words)}" if words else "a finite number"


class Declared(NamedTuple):
    """An option with the field or parameter that declares it."""

    field: str
    kind: Any
    default: Any
    option: Option

    @property
    def name(self) -> str:
        """The name of the click parameter."""
        return (self.option.name or self.field).replace("-", "_")


@cache
def declarations(target: Callable[..., Any]) -> tuple[Declared, ...]:
    """The options that a class or function declares with its fields or parameters."""
    owners = target.__mro__ if isinstance(target, type) else (target,)
    known = {name for owner in owners for name in vars(sys.modules[owner.__module__])}
    found = []
    for parameter in inspect.signature(target).parameters.values():
        written = parameter.annotation
        # What is neither annotated here nor a name of the module declares nothing, and may not be imported yet.
        if isinstance(written, str) and "Annotated[" not in written and written not in known:
            continue
        annotation = annotated_type(target, written)
        if get_origin(annotation) is Annotated:
            kind, option = get_args(annotation)
            if get_origin(kind) in (Union, types.UnionType):
                kind = next(part for part in get_args(kind) if part is not type(None))
            found.append(Declared(parameter.name, kind, parameter.default, option))
    return tuple(found)


def from_options(target: Callable[..., S], options: Mapping[str, Any], **others: Any) -> S:
    """An object of a class, or what a function returns, by the options that it declares and by other arguments.

    What was not given keeps its default.
    """
    for item in declarations(target):
        value = options.get(item.name)
        is_given = value not in (None, ()) or (item.option.none and item.name in options)
        if is_given and item.field not in others:
            others[item.field] = _converted(value, item.kind, item.option)
    return target(**others)


def _converted(value: Any, kind: Any, option: Option) -> Any:
    """The value of an option for the field: a choice as the function reads it, or as a member of an enumeration."""
    if option.choices and option.read is not None:
        return option.read(value)
    if isinstance(value, tuple):
        return tuple(_converted(part, get_args(kind)[0], option) for part in value)
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value


def check_ranges(settings: object) -> None:
    """Raise HapaxError for a number outside the range of its option, and for one that is not finite."""
    kind: Callable[..., Any] = type(settings)
    for item in declarations(kind):
        value = getattr(settings, item.field)
        if isinstance(value, int | float) and not item.option.holds(value):
            raise HapaxError(f"{item.field} is {value!r}. Set it to {item.option.range}.")


ChosenRules: TypeAlias = Annotated[tuple[str, ...], Option("Only these rules, by name.", name="rule")]
"""Names of rules; all if there are none."""

ChosenRuns: TypeAlias = Annotated[
    tuple[str, ...],
    Option("Only these runs, by the beginnings of their ids; default: complete searches and imports.", name="run"),
]
"""Beginnings of the ids of runs."""

Temperature: TypeAlias = Annotated[float, Option("Sampling temperature.", least=0)]

Seed: TypeAlias = Annotated[int, Option("Seed of all random choices.", in_any_folder=True)]
