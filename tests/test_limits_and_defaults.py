"""Limits and defaults of grammar, kb and engine, on which results depend, in `tests/golden/limits_and_defaults.txt`."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import ModuleType

from golden_fixture import compared
from kb_contents import checksum

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("grammar", "kb", "engine")
WITH_EXTRAS = ("engine.cluster.on_ray",)
"""Modules that need a package which the default installation lacks."""
LONGEST = 150
"""Characters of a value that is shown whole."""


def modules() -> Iterator[ModuleType]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if name not in WITH_EXTRAS:
                yield importlib.import_module(f"hapax.{name}")


def written(value: object) -> str | None:
    """The value as text, the same in every run; None if it has no number in it and is not True or False."""
    if isinstance(value, Enum):
        return None
    if isinstance(value, bool | int | float | Fraction | Decimal):
        return repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _members(type(value).__name__, {each.name: getattr(value, each.name) for each in fields(value)}.items())
    if isinstance(value, Mapping):
        return _members("", ((_name(key), each) for key, each in value.items()))
    if isinstance(value, AbstractSet):
        return _members("", ((text, each) for text, each in sorted((str(each), each) for each in value)))
    if isinstance(value, tuple | list):
        return _members("", ((str(place), each) for place, each in enumerate(value)))
    return None


def _name(key: object) -> str:
    return written(key) or str(key)


def _members(name: str, members: Iterable[tuple[str, object]]) -> str | None:
    texts = [f"{key} {text}" for key, value in members if (text := written(value)) is not None]
    return f"{name}({', '.join(texts)})" if texts else None


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{len(text)} characters, {checksum([text])}"


def constants(module: ModuleType) -> Iterator[str]:
    """The constants that the module defines itself."""
    for statement in ast.parse(inspect.getsource(module)).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for name in (
            node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)
        ):
            text = written(getattr(module, name))
            if text is not None:
                yield f"  {name} = {shortened(text)}"


def defaults(module: ModuleType) -> Iterator[str]:
    """The defaults of the functions, methods and dataclasses that the module defines."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value):
            yield from _parameters(name, value)
        if inspect.isclass(value):
            for each in vars(value).values():
                function = getattr(each, "__func__", each)
                if is_dataclass(value) and function is value.__init__:
                    continue  # its defaults are those of the fields
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    yield from _parameters(f"{name}.{function.__name__}", function)
            if is_dataclass(value):
                yield from (f"  {name}.{text}" for each in fields(value) if (text := _field(each)))


def _parameters(name: str, function: Callable[..., object]) -> Iterator[str]:
    for parameter in inspect.signature(function).parameters.values():
        text = None if parameter.default is parameter.empty else written(parameter.default)
        if text is not None:
            yield f"  {name}({parameter.name} = {shortened(text)})"


def _field(field: Field[object]) -> str:
    factory = field.default_factory
    # A function may be a clock.
    made = factory() if inspect.isclass(factory) else MISSING
    value = written(field.default if made is MISSING else made)
    flags = [name for name in ("init", "repr", "compare") if not getattr(field, name)]
    parts = [*([f"= {shortened(value)}"] if value is not None else []), *(f"no {flag}" for flag in flags)]
    return f"{field.name} {', '.join(parts)}" if parts else ""


def test_limits_and_defaults_change_only_with_their_list() -> None:
    """Each limit and each default is listed with its value, so that none changes by accident."""
    lines = []
    for module in modules():
        found = [*constants(module), *defaults(module)]
        lines += [module.__name__.removeprefix("hapax."), *found] if found else []
    compared("limits_and_defaults", "\n".join(lines) + "\n")
