"""Options are declared once, with the fields of the classes that hold them; the command line is made from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias


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


ChosenRules: TypeAlias = Annotated[tuple[str, ...], Option("Only these rules, by name.", name="rule")]
"""Names of rules; all if there are none."""

ChosenRuns: TypeAlias = Annotated[
    tuple[str, ...],
    Option("Only these runs, by the beginnings of their ids; default: complete searches and imports.", name="run"),
]
"""Beginnings of the ids of runs."""

Temperature: TypeAlias = Annotated[float, Option("Sampling temperature.", least=0)]
