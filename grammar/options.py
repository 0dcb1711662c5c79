"""Options are declared once, with the fields of the classes that hold them; the command line is made from that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """The option of the command line that sets a field, beside what the field's type and default say.

    `name`: of the option, where it is not that of the field. `least`, `most`: the range of a number, `above`: what it
    must exceed. `in_any_folder`: a `hapax.toml` that nobody named may set it, since it is a setting of searches that
    names no file, host, model, process or budget.
    """

    help: str
    name: str = ""
    metavariable: str | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    in_any_folder: bool = False
