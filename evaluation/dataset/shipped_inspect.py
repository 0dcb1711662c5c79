"""The 13 questions about each statement as tasks of UK AISI's Inspect. Part of a dataset.

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


@metric
def all_13() -> Metric:
    """The share of statements of which all 13 questions were answered right; cut statements do not count."""

    def share(scores: list[SampleScore]) -> float:
        by_statement: dict[str, list[bool]] = defaultdict(list)
        for one in scores:
            by_statement[str((one.sample_metadata or {})["statement"])].append(one.score.as_float() == 1.0)
        whole = [answers for answers in by_statement.values() if len(answers) == TEMPLATES]
        return sum(map(all, whole)) / len(whole) if whole else float("nan")

    return share


@task
def head() -> Task:
    """Head statements."""
    return _asked("head")


@task
def long_tail() -> Task:
    """Long-tail statements."""
    return _asked("long_tail")


def _asked(distribution: str) -> Task:
    return Task(
        dataset=json_dataset(str(Path(__file__).parent / f"{distribution}.jsonl")),
        solver=multiple_choice(),
        scorer=choice(),
        metrics=[
            grouped(accuracy(), "template", all_label="accuracy", name_template="template {group_name}"),
            stderr(cluster="statement"),
            all_13(),
        ],
    )
