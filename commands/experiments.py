"""Results of experiments on the screen, as tables or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from hapax.commands.console import err, out, print_json, print_table

if TYPE_CHECKING:
    from hapax.evaluation.shared.results import Evaluation, ResultTable


def print_result(evaluation: Evaluation[Any], as_json: bool) -> None:
    """Print the figures of an experiment as JSON, or its tables and details as text; its notes to stderr."""
    result = evaluation.result
    if as_json:
        print_json(evaluation.to_json())
    else:
        print_tables(result.tables)
        if result.tables and result.details:
            out.print()
        for line in result.details:
            out.print(escape(line))
    for note in result.notes:
        err.print(escape(note), soft_wrap=True)


def print_tables(tables: Iterable[ResultTable]) -> None:
    """Print tables with a blank line between them."""
    for number, table in enumerate(tables):
        if number:
            out.print()
        print_table(table.columns, table.texts, title=table.title or None)
