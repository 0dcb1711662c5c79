"""Arguments of calls from Python, checked against their annotations before work begins."""

from __future__ import annotations

import ast
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
from importlib import import_module
from pathlib import Path
from typing import Any, ForwardRef, TypeVar, Union, get_args, get_origin

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extra_missing
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
        check_call(target, target.__qualname__, signature(), arguments[skipped:], named)
        try:
            return called(*arguments, **named)
        except ModuleNotFoundError as error:
            missing = extra_missing(error)
            if missing is None:
                raise
            raise missing from error

    if isinstance(target, type):
        target.__init__ = call  # type: ignore[misc]  # the class stays the same for isinstance and pickle
        return target
    return call  # type: ignore[return-value]


def check_call(
    target: Callable[..., Any],
    name: str,
    signature: inspect.Signature,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> None:
    """Raise ArgumentRejected if a call has unknown, missing or unfit arguments."""
    try:
        bound = signature.bind(*arguments, **named).arguments
    except TypeError as error:
        parameters = ", ".join(signature.parameters)
        raise ArgumentRejected(f"{name}: {error}. Its arguments are {parameters}.") from None
    for argument, given in bound.items():
        parameter = signature.parameters[argument]
        # Of `*paths` each item is checked.
        for value in given if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (given,):
            # None is accepted where it is the default, also by an annotation without None.
            if _is_named_in(parameter.annotation, value) or (value is None and parameter.default is None):
                continue
            annotation = annotated_type(target, parameter)
            if not fits(value, annotation):
                problem = f"{name}: {argument} is {described(value)}, not {in_words(annotation)}"
                remedy = _READ_RULES if annotation is str and isinstance(value, Path) else remedy_of(annotation)
                raise ArgumentRejected(f"{problem}.", f"{remedy}.")


def _is_named_in(annotation: Any, value: Any) -> bool:
    """True if an annotation such as `Library | FactRules` names a class of the value, so that nothing is evaluated."""
    if not isinstance(annotation, str):
        return False
    # A bool is an int to Python, but a mistake where a number is wanted.
    kinds = (bool,) if isinstance(value, bool) else type(value).__mro__
    return not {kind.__name__ for kind in kinds}.isdisjoint(annotation.split(" | "))


# --- types ------------------------------------------------------------------------------------------------------------


class _ImportedForTypes(dict[str, Any]):
    """Names that modules import for type checkers alone, as references to what is not loaded before it is needed."""

    def __init__(self, modules: Iterable[str]) -> None:
        super().__init__()
        self._modules = tuple(modules)

    def __missing__(self, name: str) -> Any:
        for module in reversed(self._modules):
            home, original = _homes(module).get(name, ("", ""))
            if home:
                return ForwardRef(original, module=home) if original else _Namespace(home)
        return ForwardRef(name)


class _Namespace:
    """A module that is imported for type checkers alone, such as `pd`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return ForwardRef(name, module=self._module)


@cache
def _homes(module: str) -> dict[str, tuple[str, str]]:
    """The names that a module imports, also for type checkers alone: each a module, and a name in it or ""."""
    homes: dict[str, tuple[str, str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                home = (node.module or "", alias.name) if isinstance(node, ast.ImportFrom) else (alias.name, "")
                homes[alias.asname or alias.name] = home
    return homes


def _loaded(reference: ForwardRef) -> Any:
    """The object of a reference; itself if nothing says where it is defined, or its library is not installed."""
    if reference.__forward_module__ is None:
        return reference
    try:
        return getattr(import_module(reference.__forward_module__), reference.__forward_arg__)
    except (ImportError, AttributeError):
        return reference


def annotated_type(target: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type that a parameter is annotated with; Any without one, or for one that cannot be read here."""
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty or parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return Any
    if not isinstance(annotation, str):
        return annotation
    # An inherited __init__ has annotations that are names of its base class's module.
    owners = target.__mro__ if isinstance(target, type) else (target,)
    modules = [name for owner in owners if (name := owner.__module__).partition(".")[0] not in sys.stdlib_module_names]
    loaded = [vars(sys.modules[name]) for name in modules]
    # The last mapping answers for every name, with a ForwardRef if need be: nothing after it would be read.
    names = ChainMap(*loaded, vars(builtins), vars(collections.abc), vars(typing), _ImportedForTypes(modules))
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
    if isinstance(kind, ForwardRef):
        # By name first, so that nothing is imported for a value that fits.
        return is_named(value, kind.__forward_arg__) or (
            not isinstance(loaded := _loaded(kind), ForwardRef) and fits(value, loaded)
        )
    return _fits_collection(value, origin, parts) if origin is not None else _fits_class(value, kind)


ARROW = "__arrow_c_stream__"
"""Method of tables of polars, pyarrow, DuckDB and others, by which they give their columns to each other."""


def is_table(value: object) -> bool:
    """True for a table in memory, from whatever library: iterating it may give columns, and not rows."""
    return any(hasattr(value, name) for name in (ARROW, "itertuples", "columns"))


def texts(value: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several as a tuple, for arguments that may be either."""
    return (value,) if isinstance(value, str) else tuple(value)


def is_named(value: Any, name: str) -> bool:
    """Tell if a value is of a class of this name, without importing the class."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


def _fits_collection(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is tuple or issubclass(origin, collections.abc.Sequence):
        # A list stands for a tuple, and so does any other collection for a sequence; a text is one value.
        is_collection = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
        return is_collection and all(fits(element, parts[0]) for element in value)
    if issubclass(origin, typing.IO):
        return hasattr(value, "read") or hasattr(value, "write")
    if origin is collections.abc.Iterable:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return isinstance(value, origin)


def _fits_class(value: Any, kind: Any) -> bool:
    if kind is int:
        # NumPy's integers are Integral, too. A bool is an int to Python, but a mistake where a number is wanted.
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if getattr(kind, "_is_protocol", False):  # its methods are its business; a plain value has none of them
        return type(value).__module__ != "builtins"
    return isinstance(value, kind)


# --- words ------------------------------------------------------------------------------------------------------------


def in_words(kind: Any) -> str:
    """A type as messages name it, with its article: `a str or None`."""
    words = " or ".join(dict.fromkeys(_names(kind)))
    return words if words.startswith("None") else with_article(words)


def remedy_of(kind: Any) -> str:
    """The remedy for an argument of this type: the way to make its first alternative."""
    names = _names(kind)
    if "Path" in names and "str" in names:
        return "Give the name of a file or folder"
    first = get_args(kind)[0] if get_origin(kind) in (Union, types.UnionType) else kind
    first = _loaded(first) if isinstance(first, ForwardRef) else first
    is_ours = isinstance(first, type) and first.__module__.startswith("hapax.")
    name = names[0]
    return REMEDIES.get(name, f"Give hapax.{name}(...)" if is_ours else f"Give {with_article(name)}")


def _names(kind: Any) -> list[str]:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        names = []
        for part in get_args(kind):
            names += _names(part)
        return names
    if origin is typing.Literal:
        return list(dict.fromkeys(type(part).__name__ for part in get_args(kind)))
    if origin is typing.Annotated:
        return _names(get_args(kind)[0])
    if isinstance(kind, ForwardRef):
        loaded = _loaded(kind)
        return [kind.__forward_arg__] if isinstance(loaded, ForwardRef) else _names(loaded)
    if kind is type(None):
        return ["None"]
    name = getattr(origin or kind, "__name__", str(kind)).replace("Sequence", "list")
    is_collection = isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping)
    return [f"{name} of {' or '.join(_names(get_args(kind)[0]))}" if is_collection else name]


def described(value: Any) -> str:
    """A value in a message: a plain value with its type, anything else by its type alone."""
    if value is None:
        return "None"
    name = type(value).__name__
    if isinstance(value, str | int | float):
        return f"{with_article(name)} ({reprlib.repr(value)})"
    return with_article(name)
