"""Python functions that decide computed predicates: registered by a program, or by the entry points `hapax.functions`.

A function is pure: it gives the same value for the same arguments, which is remembered. Its version is part of what
identifies a run, so that what an older one derived is derived anew.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from inspect import Parameter, signature
from math import isfinite
from typing import Any

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.plug_ins import load, package, plug_ins
from hapax.grammar.terms import ANY, TRUE, VERSION_MARK, Value, number_of
from hapax.grammar.values.functions import FUNCTIONS, Exact, ExactFunction
from hapax.grammar.values.moments import Moment, NoValue

GROUP = "hapax.functions"

_REMEMBERED = 1 << 16
"""Values that are remembered of a function."""

_registered: dict[str, str] = {}
"""By name, the operation in FUNCTIONS."""


@checked
def register_function(function: Callable[..., Any], *, name: str | None = None, version: str = "1") -> None:
    """Let a Python function decide the computed predicate of its name in the rules that this program reads from now on.

    `computed is_near(Number A, Number B)` in a rule file is then true where `is_near(a, b)` is. A predicate with one
    argument more than the function has the function's value as its last. Arguments are int, Decimal or str. The
    function must be pure. `version`: change it with the function, so that what follows from it is derived anew.
    Raises HapaxError for a function without a fixed number of arguments.
    """
    name = name or function.__name__
    try:
        parameters = list(signature(function).parameters.values())
    except ValueError:  # some functions that are written in C have none
        parameters = []
    if any(item.kind in (Parameter.VAR_POSITIONAL, Parameter.KEYWORD_ONLY) for item in parameters) or not parameters:
        raise HapaxError(f"The function {name} has no fixed number of arguments. Give it one parameter for each.")
    remembered = lru_cache(maxsize=_REMEMBERED)(partial(_called, name, function))
    operation = f"{name}{VERSION_MARK}{version}"
    FUNCTIONS[operation] = ExactFunction(remembered, len(parameters), len(parameters), ANY)
    _registered[name] = operation


def operation_of(name: str) -> str | None:
    """The operation of a registered function, or of one that a package adds; None without one."""
    if name not in _registered and (point := plug_ins(GROUP).get(name)) is not None:
        version = point.dist.version if point.dist is not None else "1"
        register_function(load(point), name=name, version=f"{package(point)} {version}")
    return _registered.get(name)


def _called(name: str, function: Callable[..., Any], *arguments: Exact) -> Exact:
    try:
        value = function(*map(_given, arguments))
    except Exception as fault:  # noqa: BLE001  the code of others can raise anything
        raise NoValue(f"{name} raises {type(fault).__name__}: {fault}") from None
    return _taken(name, value)


def _given(argument: Exact) -> Value:
    if isinstance(argument, int | Fraction):
        return number_of(Fraction(argument))
    return str(argument)


def _taken(name: str, value: Any) -> Exact:
    if isinstance(value, bool):
        return TRUE if value else "false"
    if isinstance(value, int | str | Moment):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and isfinite(value):
        return Fraction(repr(value))
    if isinstance(value, Fraction) or (isinstance(value, Decimal) and value.is_finite()):
        return Fraction(value)
    raise NoValue(f"{name} gives {value!r}, which is no value")
