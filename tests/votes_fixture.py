"""People who fill in sheets of votes, as CSV files and in Label Studio."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

Answer = Callable[[dict[str, str]], str]
"""From a row's cells to what a person answers; the qualification answers itself."""

WRONG: dict[tuple[str, str], dict[str, str]] = {
    ("statements", "qualification:2"): {"data type B": "no"},
    ("statements", "qualification:3"): {"entailment": "no"},
    ("predicates", "qualification:2"): {"audit Q3": "no", "audit Q4": "no"},
    ("predicates", "qualification:3"): {"audit Q1": "no", "audit Q3": "no", "audit Q4": "no"},
    ("baseline", "qualification:2"): {"baseline 5": "no"},
    ("schemas", "qualification:1"): {"schema label 1": "first", "schema label 2": "second"},
    ("soundness", "qualification:2"): {"soundness": "rule"},
}
"""Right answers of the qualification other than yes, by sheet and item."""


def answered(row: dict[str, str], answer: Answer) -> str:
    if row["section"] == "qualification":
        return WRONG.get((row["kind"], row["item"]), {}).get(row["question"], "yes")
    return answer(row)


def fill_csv(path: Path, answer: Answer, **cells: str) -> Path:
    """Answer every question of a CSV sheet; `cells` overwrites others in every row."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, names = list(reader), list(reader.fieldnames or ())
    for row in rows:
        if row["section"] != "instructions":
            row.update(cells, answer=answered(row, answer))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def fill_tasks(path: Path, answer: Answer, comment: str = "") -> Path:
    """Answer every question of a sheet in JSON, and save it as Label Studio exports a project."""
    tasks = json.loads(path.read_text("utf-8"))
    for number, task in enumerate(tasks, start=1):
        chosen = answered(task["data"], answer)
        results = []
        if chosen:
            results.append({"from_name": "answer", "type": "choices", "value": {"choices": [chosen]}})
        if comment:
            results.append({"from_name": "comment", "type": "textarea", "value": {"text": [comment]}})
        annotation = {"completed_by": 1, "was_cancelled": False, "result": results}
        task.update(id=number, annotations=[annotation] if results else [])
    saved = path.with_suffix(".exported.json")
    saved.write_text(json.dumps(tasks), "utf-8")
    return saved
