"""Tasks of UK AISI's Inspect with the questions about each statement of this dataset.

`inspect eval task.py@head --model ...` and `inspect eval task.py@long_tail --model ...`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import Metric, SampleScore, accuracy, choice, grouped, metric, stderr
from inspect_ai.solver import multiple_choice

TEMPLATES = 13
"""Number of questions about each statement of this dataset."""


@metric(name=f"all_{TEMPLATES}")
def all_right() -> Metric:
    """Share of statements all of whose questions were answered correctly; incomplete statements do not count."""

    def share(scores: list[SampleScore]) -> float:
        by_statement: dict[str, list[bool]] = defaultdict(list)
        for score in scores:
            statement = str((score.sample_metadata or {})["statement"])
            by_statement[statement].append(score.score.as_float() == 1.0)
        # `--limit` may cut through the questions of the last statement.
        whole = [answers for answers in by_statement.values() if len(answers) == TEMPLATES]
        return sum(map(all, whole)) / len(whole) if whole else float("nan")

    return share


@task
def head() -> Task:
    """Questions about head statements."""
    return _questions("head")


@task
def long_tail() -> Task:
    """Questions about long-tail statements."""
    return _questions("long_tail")


def _questions(distribution: str) -> Task:
    return Task(
        dataset=json_dataset(str(Path(__file__).parent / f"{distribution}.jsonl")),
        solver=multiple_choice(),
        scorer=choice(),
        metrics=[
            grouped(accuracy(), "template", all_label="accuracy", name_template="template {group_name}"),
            # The questions about one statement are not independent cases.
            stderr(cluster="statement"),
            all_right(),
        ],
    )
