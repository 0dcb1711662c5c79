"""Arguments of calls from Python, checked against their annotations before work begins."""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import numbers
import reprlib
import sys
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.writing.words import with_article

C = TypeVar("C", bound=Callable[..., Any])


class ArgumentRejected(HapaxError, TypeError):  # noqa: N818  # named after the situation, as all our errors are
    """An argument of the wrong type, or a name that nothing has. The message says how to make the right one."""


REMEDIES = {
    "GridConfig": "Read one with hapax.read_grid(path)",
    "IO": 'Open the file first: with open(path, "w") as stream',
    "Models": "Open models with hapax.open_models(name)",
    "str": "Give a text",
    "int": "Give a whole number",
    "float": "Give a number",
    "bool": "Give True or False",
    "Path": "Give a pathlib.Path",
    "Callable": "Give a function",
    "CriticRule": "Give a rule, such as hapax.CriticRule.parse('0.75')",
    "KnowledgeBase": "Open one: hapax.KnowledgeBase(path)",
    "Library": "Read rules with hapax.parse_rules(text) or hapax.load_rules(path)",
    "TableMapping": "Read one with hapax.TableMapping.read(path), or make one with hapax.TableMapping.of",
    "tuple of Distribution": "Give a tuple of hapax.Distribution.HEAD and hapax.Distribution.LONG_TAIL",
}
"""Remedy by the name of a type. A class of Hapax is called, and other types are named."""


_READ_RULES = "Give a text; hapax.load_rules(path) reads files of rules"
"""Remedy for a path in the place of a text."""


def checked(target: C) -> C:
    """Decorator: the class or function raises ArgumentRejected for arguments that do not fit its annotations.

    The import error of an optional library becomes an ExtraMissing, which names what installs it.
    """
    # The signature of a class leaves out the `self` of its __init__, and so do the arguments that are compared with it.
    called: Callable[..., Any] = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    skipped = int(isinstance(target, type))
    # Read for the first call: a program imports many functions, and calls few of them.
    signature = cache(lambda: inspect.signature(target))

    @wraps(called)
    def call(*arguments: Any, **named: Any) -> Any:
        _check_call(target, signature(), arguments[skipped:], named)
        with extras_named():
            return called(*arguments, **named)

    if isinstance(target, type):
        target.__init__ = call  # type: ignore[misc]  # the class stays the same for isinstance and pickle
        return target
    return call  # type: ignore[return-value]


def _check_call(
    target: Callable[..., Any], signature: inspect.Signature, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Raise ArgumentRejected if a call has unknown, missing or unfit arguments."""
    name = target.__qualname__
    try:
        bound = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        parameters = ", ".join(signature.parameters)
        raise ArgumentRejected(f"{name}: {error}. Its arguments are {parameters}.") from None
    for argument, given in bound.items():
        parameter = signature.parameters[argument]
        # Of `*paths` each item is checked.
        for value in given if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (given,):
            kind = annotated_type(target, parameter.annotation)
            # None is accepted where it is the default, also by an annotation without None.
            is_default = value is None and parameter.default is None
            if not is_default and parameter.kind is not inspect.Parameter.VAR_KEYWORD and not fits(value, kind):
                words = " or ".join(dict.fromkeys(_names(kind)))
                wanted = words if words.startswith("None") else with_article(words)
                remedy = _READ_RULES if kind is str and isinstance(value, Path) else _remedy(kind)
                raise ArgumentRejected(f"{name}: {argument} is {described(value)}, not {wanted}.", f"{remedy}.")


# --- types ------------------------------------------------------------------------------------------------------------


class _Unloaded(type):
    """A class, or its module, that is imported for type checkers alone; a value is of it that has a class so named."""

    def __getattr__(cls, name: str) -> _Unloaded:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Unloaded(name, (), {})


class _UnloadedNames(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return _Unloaded(name, (), {})


@cache
def annotated_type(target: Callable[..., Any], annotation: Any) -> Any:
    """The type of an annotation of a class or function; Any without one."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    # An inherited __init__ has annotations that are names of its base class's module.
    owners = target.__mro__ if isinstance(target, type) else (target,)
    loaded = [vars(sys.modules[owner.__module__]) for owner in owners if owner is not object]
    # The last mapping answers for every name.
    names = ChainMap(*loaded, vars(builtins), vars(collections.abc), vars(typing), _UnloadedNames())
    return eval(annotation, {"__builtins__": {}}, names)  # noqa: S307  # an annotation of our own source


def fits(value: Any, kind: Any) -> bool:
    """True if a value is of an annotated type. Choices among values of a type are checked by the operation itself."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if origin is typing.Annotated:
        return fits(value, parts[0])
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is typing.Literal:
        return any(isinstance(value, type(part)) for part in parts)
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is tuple or origin is collections.abc.Sequence:
        # A list stands for a tuple, and so does any other collection for a sequence; a text is one value.
        is_collection = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
        return is_collection and all(fits(element, parts[0]) for element in value)
    if origin is collections.abc.Iterable:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return _is_of(value, origin or kind)


def _is_of(value: Any, kind: type) -> bool:
    """True if a value is of a class, or of another class of its name, so that it need not be imported."""
    if kind in (int, float):
        # NumPy's numbers count, too. A bool is an int to Python, but a mistake where a number is wanted.
        number = numbers.Integral if kind is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    if issubclass(kind, typing.IO):
        return hasattr(value, "read") or hasattr(value, "write")
    if getattr(kind, "_is_protocol", False):  # its methods are its business; a plain value has none of them
        return type(value).__module__ != "builtins"
    return isinstance(value, kind) or kind.__name__ in [known.__name__ for known in type(value).__mro__]


ARROW = "__arrow_c_stream__"
"""Method of tables of polars, pyarrow, DuckDB and others, by which they give their columns to each other."""


def is_table(value: object) -> bool:
    """True for a table in memory, from whatever library: iterating it may give columns, and not rows."""
    return any(hasattr(value, name) for name in (ARROW, "itertuples", "columns"))


def texts(value: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several as a tuple, for arguments that may be either."""
    return (value,) if isinstance(value, str) else tuple(value)


# --- words ------------------------------------------------------------------------------------------------------------


def _remedy(kind: Any) -> str:
    """The remedy for an argument of this type: the way to make its first alternative."""
    names = _names(kind)
    if "Path" in names and "str" in names:
        return "Give the name of a file or folder"
    first = get_args(kind)[0] if get_origin(kind) in (Union, types.UnionType) else kind
    is_ours = isinstance(first, _Unloaded) or getattr(first, "__module__", "").startswith("hapax.")
    name = names[0]
    return REMEDIES.get(name, f"Give hapax.{name}(...)" if is_ours else f"Give {with_article(name)}")


def _names(kind: Any) -> list[str]:
    """The names of a type's alternatives."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return list(chain.from_iterable(map(_names, parts)))
    if origin is typing.Literal:
        return list(dict.fromkeys(type(part).__name__ for part in parts))
    if origin is typing.Annotated:
        return _names(parts[0])
    if kind is type(None):
        return ["None"]
    name = getattr(origin or kind, "__name__", str(kind)).replace("Sequence", "list")
    is_collection = isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping)
    return [f"{name} of {' or '.join(_names(parts[0]))}" if is_collection else name]


def described(value: Any) -> str:
    """A value in a message: a plain value with its type, anything else by its type alone."""
    if value is None:
        return "None"
    name = type(value).__name__
    if isinstance(value, str | int | float):
        return f"{with_article(name)} ({reprlib.repr(value)})"
    return with_article(name)
