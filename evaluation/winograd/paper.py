"""Figures of the CR-WSC paper, in percent, for comparison with ours. Never mix them with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

Printed = Mapping[str, tuple[float, ...]]
"""Rows of a table by their first cell."""

TABLE_1: Printed = {
    "GPT3.5 (0-s)": (73.90, 64.71, 60.73, 47.05, 50.97, 40.48),
    "GPT3.5 (1-s)": (75.00, 65.44, 63.73, 49.02, 63.41, 49.75),
    "GPT4 (0-s)": (85.92, 80.88, 53.92, 37.25, 54.63, 28.29),
    "GPT4 (1-s)": (91.91, 86.03, 76.47, 68.62, 74.63, 60.94),
}
"""Single and pair accuracy on WSC, CR-WSC-H and CR-WSC-M."""

TABLE_2_MODELS = ("GPT3.5", "Llama3.1", "Mistral-7B")
TABLE_2: Printed = {
    "Zero-shot": (60.73, 47.05, 50.97, 40.48, 31.37, 11.76, 32.43, 6.83, 30.39, 7.84, 24.39, 6.83),
    "One-shot": (62.74, 47.05, 63.41, 49.75, 64.71, 52.94, 59.27, 47.32, 50.00, 13.73, 44.63, 16.10),
    "WinoWhy": (51.96, 33.33, 57.56, 34.63, 77.45, 68.62, 72.20, 57.07, 25.49, 5.88, 47.80, 13.17),
    "ZS CoT": (40.24, 34.14, 50.98, 41.18, 45.10, 45.10, 36.10, 31.22, 23.53, 3.92, 24.63, 6.83),
    "CoT": (58.82, 41.18, 60.24, 43.90, 76.47, 64.71, 71.95, 56.09, 48.04, 13.73, 43.17, 14.63),
    "AoT": (70.58, 54.90, 68.29, 56.09, 78.43, 68.62, 71.95, 57.56, 52.94, 19.61, 42.20, 20.49),
}
"""For each model, single and pair accuracy on CR-WSC-H and CR-WSC-M."""

TABLE_3: Printed = {"Consistency": (15.68, 17.64, 10.00, 19.61, 27.45)}
TABLE_3_METHODS = ("Zero-shot?", "One-shot", "ZS CoT?", "CoT", "AoT")
"""Two headers are missing from our copy of the paper; their names follow from the order of table 2."""

TABLE_5: Printed = {
    "AoT1": (70.58, 54.90, 68.29, 56.09),
    "AoT2": (65.68, 41.17, 67.80, 42.43),
    "AoT3": (61.76, 43.137, 65.36, 41.46),
}

SENTENCES = {"WSC": (272, 136), "H": (102, 51), "M": (410, 205)}
"""Numbers of sentences and pairs that single and pair accuracies are shares of."""

FAMILIES = 51

DISAGREEMENT = 7.5
"""Percentage from appendix E that bounds the disagreement of annotators."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """A printed percentage that no whole number of right answers can give."""

    table: int
    row: str
    column: str
    value: float
    count: int

    def __str__(self) -> str:
        return f"table {self.table}, {self.row}, {self.column}: no k of {self.count} gives {self.value}"


def possible(value: float, count: int) -> bool:
    """True if some k of `count` gives the printed percentage, rounded or truncated to its digits."""
    digits = 3 if round(value, 2) != value else 2  # one value has three decimals
    # A truncated percentage may belong to a neighbour of the nearest number.
    nearest = round(value * count / 100)
    for hits in (nearest - 1, nearest, nearest + 1):
        share = 100 * hits / count
        if 0 <= hits <= count and (abs(round(share, digits) - value) < 1e-9 or 0 <= share - value < 10**-digits):
            return True
    return False


def impossible() -> Iterator[Impossible]:
    """Printed percentages that are impossible with the number of sentences, pairs or families."""
    sets = ("WSC", "H", "M")
    yield from _impossible(1, TABLE_1, list(product(sets, (0, 1))))
    model_columns = list(product(("H", "M"), (0, 1)))
    yield from _impossible(2, TABLE_2, model_columns * len(TABLE_2_MODELS))
    for method, value in zip(TABLE_3_METHODS, TABLE_3["Consistency"], strict=True):
        if not possible(value, FAMILIES):
            yield Impossible(3, "Consistency", method, value, FAMILIES)
    yield from _impossible(5, TABLE_5, model_columns)


def _impossible(table: int, printed: Printed, columns: list[tuple[str, int]]) -> Iterator[Impossible]:
    """Check a table. A column is a key of `SENTENCES` with 0 for single or 1 for pair accuracy."""
    for row, values in printed.items():
        for (name, kind), value in zip(columns, values, strict=True):
            count = SENTENCES[name][kind]
            if not possible(value, count):
                yield Impossible(table, row, f"{name} {('single', 'pair')[kind]}", value, count)
