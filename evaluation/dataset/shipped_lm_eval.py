"""Data and metrics of the tasks in this folder, for EleutherAI's lm-evaluation-harness.

A document is one of the questions about a statement. All metrics but `acc` need whole statements, so each document
gives every metric the same record, and the aggregation puts the records of a statement together. A statement of which
`--limit` has cut off a question does not count in the metrics of whole statements.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

TEMPLATES = 13
"""Number of questions about each statement of this dataset."""

POSITIVE = 0
"""Index of the positive answer among a question's two."""

Record = tuple[str, int, int, bool]
"""Statement, template, label, and True if the answer was right."""


def load(data_file: str, **_: Any) -> Any:
    """Load the questions of one distribution from the file beside this one."""
    import datasets  # here, because the metrics below are used without it, too

    return datasets.load_dataset("json", data_files={"test": str(Path(__file__).parent / data_file)})


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Score one document. The likelier answer is the model's answer; a tie goes to the positive one."""
    scores = [score for score, _ in results]
    right = scores.index(max(scores)) == doc["label"]
    record: Record = (doc["statement"], doc["template"], doc["label"], right)
    by_template = {f"template_{number:02}": record for number in range(1, TEMPLATES + 1)}
    return {"acc": float(right), **dict.fromkeys(("all_13", "positive", "negative"), record), **by_template}


def all_13(records: Iterable[Record]) -> float:
    """Share of statements all of whose questions were answered correctly: the metric of LINK's table 4."""
    return _share(records, lambda _: True)


def positive(records: Iterable[Record]) -> float:
    """Share of statements all of whose questions with a positive answer were answered correctly."""
    return _share(records, lambda label: label == POSITIVE)


def negative(records: Iterable[Record]) -> float:
    """Share of statements all of whose questions with a negative answer were answered correctly."""
    return _share(records, lambda label: label != POSITIVE)


def _share(records: Iterable[Record], counts: Callable[[int], bool]) -> float:
    by_statement: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_statement[record[0]].append(record)
    # `--limit` may cut through the questions of the last statement.
    complete = [answers for answers in by_statement.values() if len(answers) == TEMPLATES]
    right = 0
    for answers in complete:
        right += all(correct for _, _, label, correct in answers if counts(label))
    return right / len(complete) if complete else math.nan


def _accuracy(number: int, records: Iterable[Record]) -> float:
    """Share of right answers to the questions of a template."""
    answers = [right for _, template, _, right in records if template == number]
    return sum(answers) / len(answers) if answers else math.nan


# `!function utils.template_01` reads an attribute of this module.
globals().update({f"template_{number:02}": partial(_accuracy, number) for number in range(1, TEMPLATES + 1)})
