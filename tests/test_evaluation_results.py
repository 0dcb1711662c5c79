"""Results of experiments as values: JSON without what JSON lacks, tables as text, Markdown and CSV."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.results import ResultTable, json_value, markdown_table
from hapax.kb.records import Distribution


@dataclass(frozen=True)
class Measured:
    """A dataclass that holds another."""

    distribution: Distribution
    share: Estimate


def test_json_values_have_no_dataclass_no_enum_and_no_nan() -> None:
    """Estimates that could not be measured are null, enums are their values, also as keys."""
    measured = Measured(Distribution.LONG_TAIL, Estimate(0.5, math.nan, math.inf, 2))

    value = json_value({Distribution.HEAD: (measured, "text", None, 1), "none": float("-inf")})

    share = {"value": 0.5, "low": None, "high": None, "count": 2}
    assert value == {"head": [{"distribution": "long_tail", "share": share}, "text", None, 1], "none": None}
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_a_table_writes_empty_cells_for_none(tmp_path: Path) -> None:
    """A cell that is None is empty in text and in CSV."""
    table = ResultTable("Deltas", ("rule", "delta"), [("allergy", 0.5), ("currency", None)])

    table.write_csv(tmp_path / "deltas.csv")

    assert table.texts == [["allergy", "0.5"], ["currency", ""]]
    assert (tmp_path / "deltas.csv").read_text("utf-8") == "rule,delta\nallergy,0.5\ncurrency,\n"


def test_a_cell_cannot_break_a_markdown_table() -> None:
    """A bar within a cell is escaped."""
    assert markdown_table(("x",), [("a|b",)]) == "| x |\n| --- |\n| a\\|b |"
