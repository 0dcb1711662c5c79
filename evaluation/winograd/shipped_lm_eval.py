"""Data and metrics of the tasks in this folder, for EleutherAI's lm-evaluation-harness. Part of an export.

A document is a pair of sentences, so that metrics can judge whole pairs.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

Record = tuple[str, bool]
"""Family of a pair, and True if both sentences were answered right."""


def load(data_file: str, **_: Any) -> Any:
    """Pairs of a source, from a file in the folder of this one, wherever that folder is."""
    import datasets

    return datasets.load_dataset("json", data_files={"test": str(Path(__file__).parent / data_file)})


def process_generated(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Scores of a written reply by the strict reading."""
    answers = _reading().read_strictly(results[0], tuple(doc["options"]))
    return _scored(doc, answers)


def process_choice(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Scores of the likeliest of the four pairs of answers."""
    scores = [score for score, _ in results]
    # Choices are numbered 2 * first answer + second answer.
    best = scores.index(max(scores))
    return _scored(doc, (best // 2, best % 2))


def consistency(records: Iterable[Record]) -> float:
    """Share of families with right answers to every pair."""
    families: dict[str, bool] = {}
    for family, right in records:
        families[family] = families.get(family, True) and right
    return sum(families.values()) / len(families) if families else math.nan


def _scored(doc: Mapping[str, Any], answers: Sequence[int | None]) -> dict[str, Any]:
    rights = [answer == gold for answer, gold in zip(answers, doc["gold"], strict=True)]
    return {
        "single": sum(rights) / 2,
        "pair": float(all(rights)),
        "unparsed": sum(answer is None for answer in answers) / 2,
        "consistency": (doc["family"], all(rights)),
    }


@lru_cache
def _reading() -> Any:
    """The module `reading.py` in this folder."""
    # The harness loads this file by its path, so a plain import would not find the module.
    spec = importlib.util.spec_from_file_location("winograd_reading", Path(__file__).with_name("reading.py"))
    if spec is None or spec.loader is None:
        raise ImportError("reading.py is missing in the folder of utils.py. Export the tasks again.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
