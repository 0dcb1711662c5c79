"""Pairs of Winograd sentences as a task for UK AISI's Inspect. Part of an export.

`inspect eval task.py -T source=SOURCE -T method=METHOD --model ...`; README.md lists sources and methods.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

HERE = Path(__file__).parent


@scorer(metrics={"single": [mean()], "pair": [mean(), stderr()], "unparsed": [mean()]})
def strict_reading() -> Scorer:
    """Single and pair accuracy by the strict reading of the reply. Unreadable answers are wrong."""
    spec = importlib.util.spec_from_file_location("winograd_reading", HERE / "reading.py")
    if spec is None or spec.loader is None:
        raise ImportError("reading.py is missing in the folder of task.py. Export the tasks again.")
    reading: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reading)

    async def score(state: TaskState, target: Target) -> Score:
        options = state.metadata["options"]
        answers = reading.read_strictly(state.output.completion, (options[0], options[1]))
        rights = [answer == gold for answer, gold in zip(answers, state.metadata["gold"], strict=True)]
        chosen = ["-" if answer is None else options[answer] for answer in answers]
        value = {"single": sum(rights) / 2, "pair": float(all(rights)), "unparsed": answers.count(None) / 2}
        return Score(value=value, answer=f"1. {chosen[0]} 2. {chosen[1]}", explanation=f"right: {target.text}")

    return score


@task
def winograd(source: str = "", method: str = "zero-shot") -> Task:
    """Pairs of a source, asked by a method; without `source`, those of the first source."""
    found = sorted(HERE.glob(f"{source or '*'}--{method}.jsonl"))
    if not found:
        names = ", ".join(sorted(path.stem for path in HERE.glob("*--*.jsonl")))
        raise FileNotFoundError(f"No samples of {source or 'any source'} by {method}. Available: {names}.")
    return Task(dataset=json_dataset(str(found[0])), solver=generate(), scorer=strict_reading())
