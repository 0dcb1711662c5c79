"""Contracts rest on what users see: the names that `hapax` exports, the command line, formats."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hapax

CONTRACTS = Path(__file__).parent
COMMAND_LINE = {"hapax.cli", "hapax.cli.main"}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_contracts_import_what_hapax_exports() -> None:
    """No contract imports a module below the front door, nor a name with an underscore."""
    exported = {"hapax", *COMMAND_LINE, *(f"hapax.{name}" for name in hapax.__all__)}
    files = sorted(CONTRACTS.rglob("*.py"))

    names = [(path.name, name) for path in files for name in imported(path)]
    inner = [(file, name) for file, name in names if name.split(".")[0] == "hapax" and name not in exported]

    assert len(files) > 3
    assert inner == []
    assert [
        (file, name)
        for file, name in names
        if name.rpartition(".")[2].startswith("_") and name != "__future__.annotations"
    ] == []
