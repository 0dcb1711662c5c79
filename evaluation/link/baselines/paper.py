"""LINK's tables 3 and 7 to 10 as printed, in percent; shown beside our own figures, never mixed with them.

Its models, rules and judges (people, three votes per statement) differ from ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COLUMNS = ("Data Type", "Factuality", "Overall")

Row = tuple[str, float, float, float]
"""A method and its three accuracies in percent."""


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of the paper. `first`: heading of its first column."""

    number: int
    title: str
    first: str
    rows: tuple[Row, ...]


TABLE_3 = PrintedTable(
    3,
    "long-tail statements",
    "",
    (("ChatGPT", 85.40, 67.50, 56.44), ("GPT4", 91.80, 84.82, 78.23), ("LINK", 94.23, 88.71, 83.95)),
)
TABLE_7 = PrintedTable(
    7,
    "temperatures",
    "Temperature",
    (("0.5", 89.05, 93.21, 82.94), ("0.7", 89.00, 92.33, 82.25), ("1.0", 88.08, 91.75, 81.00)),
)
TABLE_8 = PrintedTable(
    8,
    "critic and reranker, long tail",
    "",
    (
        ("LINK", 93.42, 97.50, 91.33),
        ("    w/o critic", 52.58, 52.08, 33.00),
        ("    w/o critic+reranker", 75.42, 73.92, 58.25),
        ("LINK with GPT4", 92.75, 96.17, 89.25),
        ("    w/o critic", 63.00, 58.17, 40.00),
        ("    w/o critic+reranker", 88.33, 83.50, 74.50),
    ),
)
TABLE_9 = PrintedTable(
    9,
    "critic and reranker, head",
    "",
    (
        ("LINK", 95.17, 97.75, 93.00),
        ("    w/o critic", 80.33, 73.50, 59.75),
        ("    w/o critic+reranker", 76.66, 74.83, 59.33),
        ("LINK with GPT4", 92.17, 98.08, 90.83),
        ("    w/o critic", 91.00, 80.42, 72.08),
        ("    w/o critic+reranker", 88.17, 85.33, 75.58),
    ),
)
TABLE_10 = PrintedTable(
    10,
    "knowledge models",
    "",
    (("Zero-shot GPT4", 85.44, 88.42, 74.39), ("LINK", 93.42, 97.50, 91.33), ("LINK with GPT4", 92.75, 96.17, 89.25)),
)
GRID: Mapping[int, PrintedTable] = {table.number: table for table in (TABLE_7, TABLE_8, TABLE_9, TABLE_10)}
