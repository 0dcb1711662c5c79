"""The sheet on which a person answers `yes` or `no` to each acquired rule, and its answers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hapax.evaluation.winograd.reasoner.acquiring import AcquiredRuleRecord
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.csv_text import read_cell, write_rows

SHEET = "review.csv"
COLUMNS = ("rule", "it is meant if", "right", "wrong", "example", "verdict (yes or no)")
_VERDICTS = ("", "yes", "no")


@dataclass(frozen=True, slots=True)
class RuleReview:
    """A person's answers. `rows`: the rows of the sheet that have a verdict, by the name of their rule."""

    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def refused(self) -> frozenset[str]:
        """Names of the rules with the verdict `no`."""
        return frozenset(name for name, row in self.rows.items() if row[-1] == "no")


def read_review(path: Path) -> RuleReview:
    """The answers on a sheet that `learn` has written."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets write a byte order mark
        # Some spreadsheets write semicolons or tabs, whatever separator they have read.
        delimiter = max(",;\t", key=text.partition("\n")[0].count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        lines = [[read_cell(cell) for cell in cells] for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HapaxError(f"{path}: the sheet cannot be read: {error}. Save it as CSV in UTF-8.") from error
    if not lines or tuple(lines[0]) != COLUMNS:
        raise HapaxError(f"{path}:1: the columns are not {', '.join(COLUMNS)}. Restore the first row.")
    rows = {}
    for number, cells in enumerate(lines[1:], 2):
        row = (*cells[: len(COLUMNS) - 1], *(cell.strip().lower() for cell in cells[len(COLUMNS) - 1 :]))
        if not any(row):
            continue
        if len(row) != len(COLUMNS) or row[-1] not in _VERDICTS:
            raise HapaxError(
                f"{path}: row {number} has no verdict yes or no in the last of {len(COLUMNS)} columns. Write one of "
                "them, or leave the cell empty."
            )
        if row[-1]:
            rows[row[0]] = row
    return RuleReview(rows)


def review_sheet(records: Iterable[AcquiredRuleRecord], library: Library, review: RuleReview) -> str:
    """Accepted rules for a person, in words, with record, example and verdict; and all other rows with a verdict."""
    target = io.StringIO()
    rows: list[tuple[object, ...]] = [COLUMNS]
    kept = dict(review.rows)
    for record in records:
        if record.accepted:
            rule = record.rule
            verdict = kept.pop(rule.name, ("",))[-1]
            rows.append((rule.name, rule.words(library), record.support, record.exceptions, record.example, verdict))
    # Verdicts on rules that were not accepted this time are kept for the next.
    rows.extend(kept.values())
    write_rows(target, rows, end="\r\n")
    return target.getvalue()
