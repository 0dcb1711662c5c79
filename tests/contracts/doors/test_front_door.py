"""Tests rest on what users see: the names that `hapax` exports, the command line, formats; unit tests apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hapax

TESTS = Path(__file__).parents[2]
UNIT = TESTS / "unit"
COMMAND_LINE = {"hapax.cli", "hapax.cli.main"}


def imported(path: Path) -> Iterator[str]:
    """Names that a file imports, or replaces by their full names."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            yield from (name.value for name in node.args[:1] if isinstance(name, ast.Constant))


def test_only_unit_tests_import_inner_names() -> None:
    """No other test imports or replaces anything below the front door, nor a name with an underscore."""
    exported = {"hapax", *COMMAND_LINE, *(f"hapax.{name}" for name in hapax.__all__)}
    files = [path for path in sorted(TESTS.rglob("*.py")) if UNIT not in path.parents]

    names = [(path.name, name) for path in files for name in imported(path)]
    inner = [(file, name) for file, name in names if name.split(".")[0] == "hapax" and name not in exported]
    marked = [(file, name) for file, name in names if name.rpartition(".")[2].startswith("_")]

    assert len(files) > 100
    assert inner == []
    assert [row for row in marked if row[1] != "__future__.annotations"] == []
