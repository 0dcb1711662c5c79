"""Calls from Python: arguments are checked before work begins, and remedies name arguments instead of options.

`hapax.search` and the other operations of the front door are made by `python_call` from the operations of `api/`. The
command line calls the latter directly, so its messages name its own options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from hapax.grammar.arguments import (
    ArgumentRejected,
    annotated_type,
    bound_arguments,
    described,
    fits,
    in_words,
    is_named,
    is_table,
    remedy_of,
    with_article,
)

P = ParamSpec("P")
R = TypeVar("R")


def python_call(operation: Callable[P, R]) -> Callable[P, R]:
    """The operation for callers in Python.

    It raises ArgumentRejected for an argument of the wrong type.
    """
    signature = inspect.signature(operation)

    @wraps(operation)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        # Bound before the operation is called, so that a missing argument is an error of the caller and not of Hapax.
        given = bound_arguments(operation.__name__, signature, arguments, named)
        _check_arguments(operation, signature, given)
        return operation(*arguments, **named)

    return call


# --- arguments --------------------------------------------------------------------------------------------------------

_KB = ("KnowledgeBase", "Open one: hapax.KnowledgeBase(path)")
_TEXT = ("str", "Give a text")
_NAMES = ("str or list of str", "Give a name or a list of names")

EXPECTED = {
    "rules": ("Library", "Read rules with hapax.parse_rules(text) or hapax.load_rules(path)"),
    "kb": _KB,
    "models": ("Models", "Open models with hapax.open_models(name)"),
    "progress": ("function", "Give a function that takes a hapax.Progress"),
    "mine_rules.progress": ("function", "Give a function that takes a text"),
    "stream": ("text stream", 'Open the file first: with open(path, "w") as stream'),
    "*paths": ("str or Path", "Give each file or folder as an argument of its own"),
    "source": ("str or Path", "Give the name of a file"),
    "import_facts.source": ("str, Path, open file or table", "Give the name of a file"),
    "import_facts.rules": ("Library or FactRules", "Read rules with hapax.parse_rules(text) or hapax.load_rules(path)"),
    "why.text": ("str or Statement", "Give a statement, its text or its id"),
    "text": ("str", "Give a text, such as str(statement); hapax.load_rules(path) reads files of rules"),
    "engine": _TEXT,
    "only": _NAMES,
    "assume": ("str or list of str", "Give an atom, or a list of atoms, as text"),
    "rows": ("rows", "Give a list with a tuple of values for each row, or a table"),
    "grid": ("GridConfig", "Read one with hapax.read_grid(path)"),
    "theories": ("str or Path", "Give the folder of the theories"),
}
"""Type in words and remedy by the name of the argument, which means the same in every operation but those named.

Other arguments are checked against their annotations.
"""

OPTION_CLASSES = (
    *(
        "Budget",
        "CalibrationOptions",
        "ConsistencyOptions",
        "EntailmentLimits",
        "FactRules",
        "ProbabilityOptions",
        "QueryLimits",
        "QueryOptions",
        "SearchSettings",
        "OpeningOptions",
        "LikelihoodOptions",
        "LinkOptions",
        "ProbeOptions",
        "LeaderboardOptions",
    ),
    *(
        "ReportOptions",
        "SelectionOptions",
        "SheetExportOptions",
        "FlippedLabels",
        "ExpansionFiles",
        "ExpansionSettings",
        "MiningOptions",
        "InstructOptions",
    ),
    *("GraphImportOptions", "SchemaAskOptions", "SchemaExportOptions", "SchemaGenerationOptions", "SchemaSheetOptions"),
)
"""Classes of the front door that hold options, which the annotation of an argument names."""


def _expected(operation: str, parameter: inspect.Parameter) -> tuple[str, str] | None:
    """Type in words and remedy of an argument; None if its annotation says them."""
    # Annotations are texts, since all modules import `annotations` from `__future__`.
    kind = str(parameter.annotation).removesuffix(" | None")
    if kind in OPTION_CLASSES:
        return kind, f"Give hapax.{kind}(...)"
    name = f"*{parameter.name}" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else parameter.name
    # What holds for this operation alone comes first.
    return EXPECTED.get(f"{operation}.{name}") or EXPECTED.get(name)


def _is_texts(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, Sequence | set | frozenset) and all(isinstance(text, str) for text in value)
    )


CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "str or Path": lambda value: isinstance(value, str | Path),
    "str, Path, open file or table": lambda value: (
        isinstance(value, str | Path) or hasattr(value, "read") or is_table(value)
    ),
    "str or Statement": lambda value: isinstance(value, str) or is_named(value, "Statement"),
    "Library or FactRules": lambda value: is_named(value, "Library") or is_named(value, "FactRules"),
    "str or list of str": _is_texts,
    "function": callable,
    "text stream": lambda value: hasattr(value, "write"),
    "rows": lambda value: not isinstance(value, str) and (hasattr(value, "__iter__") or is_table(value)),
}
"""Tests by type in words; every other type is the name of a class."""


def _check_arguments(operation: Callable[..., Any], signature: inspect.Signature, given: dict[str, Any]) -> None:
    for name, value in given.items():
        parameter = signature.parameters[name]
        # None where it is the default means that the operation chooses.
        if value is None and parameter.default is None:
            continue
        # Of `*paths` each item is checked.
        values = value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,)
        for single in values:
            _check_argument(operation, parameter, single)


def _check_argument(operation: Callable[..., Any], parameter: inspect.Parameter, value: Any) -> None:
    expected = _expected(operation.__name__, parameter)
    if expected is None:
        annotation = annotated_type(operation, parameter)
        is_fit, kind, remedy = fits(value, annotation), in_words(annotation), remedy_of(annotation)
    else:
        kind, remedy = expected
        # Other types by the names of their classes, so that nothing is imported for a check.
        is_fit = CHECKS[kind](value) if kind in CHECKS else is_named(value, kind)
        kind = with_article(kind)
    if not is_fit:
        problem = f"{operation.__name__}: {parameter.name} is {described(value)}, not {kind}"
        raise ArgumentRejected(f"{problem}. {remedy}.")
