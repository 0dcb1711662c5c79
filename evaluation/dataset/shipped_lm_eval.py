"""Data and metrics of the tasks beside this file, for EleutherAI's lm-evaluation-harness. Part of a dataset.

A document is one of the 13 questions about a statement. All metrics but `acc` look at whole statements, so each
document gives every metric the same record and the aggregation puts the records of a statement together. A statement
of which `--limit` has cut off a question does not count in the metrics of whole statements.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATES = 13
POSITIVE = 0
"""The place of the positive answer among a question's two."""

Record = tuple[str, int, int, bool]
"""Statement, template, label, and whether the answer was right."""


def load(data_file: str, **_: Any) -> Any:
    """The questions of one distribution, from the file beside this one, wherever the folder lies."""
    import datasets

    return datasets.load_dataset("json", data_files={"test": str(Path(__file__).parent / data_file)})


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """The likelier answer is the model's answer; a tie goes to the positive one."""
    scores = [score for score, _ in results]
    right = scores.index(max(scores)) == doc["label"]
    record: Record = (doc["statement"], doc["template"], doc["label"], right)
    by_template = {f"template_{number:02}": record for number in range(1, TEMPLATES + 1)}
    return {"acc": float(right), **dict.fromkeys(("all_13", "positive", "negative"), record), **by_template}


def all_13(records: Iterable[Record]) -> float:
    """The share of statements of which all 13 questions were answered right: the metric of LINK's table 4."""
    return _share(records, lambda _: True)


def positive(records: Iterable[Record]) -> float:
    """The share of statements of which all questions with a positive answer were answered right."""
    return _share(records, lambda label: label == POSITIVE)


def negative(records: Iterable[Record]) -> float:
    """The share of statements of which all questions with a negative answer were answered right."""
    return _share(records, lambda label: label != POSITIVE)


def _share(records: Iterable[Record], asked: Callable[[int], bool]) -> float:
    by_statement: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_statement[record[0]].append(record)
    whole = [several for several in by_statement.values() if len(several) == TEMPLATES]
    right = sum(all(one[3] for one in several if asked(one[2])) for several in whole)
    return right / len(whole) if whole else math.nan


def _template(number: int) -> Callable[[Iterable[Record]], float]:
    def accuracy(records: Iterable[Record]) -> float:
        answers = [right for _, template, _, right in records if template == number]
        return sum(answers) / len(answers) if answers else math.nan

    return accuracy


template_01, template_02, template_03, template_04, template_05, template_06, template_07 = map(_template, range(1, 8))
template_08, template_09, template_10, template_11, template_12, template_13 = map(_template, range(8, TEMPLATES + 1))
