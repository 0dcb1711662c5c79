"""The notebook of the docs: its cells, run in their order, print what is stored in it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = json.loads((DOCS / "notebook.ipynb").read_text("utf-8"))


def carried_out(source: str, names: dict[str, Any]) -> str:
    """The output of a cell, and then the value of its last line if that is an expression, as Jupyter shows it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102  our own cells
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # noqa: S307
    return printed.getvalue() + ("" if value is None else repr(value))


def stored(cell: dict[str, Any]) -> str:
    """The text of a cell's outputs."""
    texts = []
    for output in cell["outputs"]:
        texts += output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
    return "".join(texts)


def plain(text: str) -> str:
    """The text without ids of runs, which depend on the version."""
    return re.sub(r"\b[0-9a-f]{32}\b", "ID", text).strip()


def test_the_notebook_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each code cell, run in the folder of the docs, gives the output that is stored beside it, and no cell is empty."""
    monkeypatch.chdir(DOCS)
    names: dict[str, Any] = {}
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]

    assert len(cells) > 5
    for cell in cells:
        shown = stored(cell)
        assert shown
        assert plain(carried_out("".join(cell["source"]), names)) == plain(shown), cell["id"]
