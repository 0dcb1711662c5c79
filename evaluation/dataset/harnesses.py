"""Task folders that other programs run: EleutherAI's lm-evaluation-harness and UK AISI's Inspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from evaluation.dataset.columns import Row, json_line
from evaluation.dataset.rows import Entry, Source
from evaluation.dataset.yaml_text import Function, yaml_text
from evaluation.probing.asking import PREFIX
from evaluation.probing.tables import SPOKEN
from evaluation.probing.templates import TEMPLATES
from kb.records import Distribution
from llm_oracle.prompts import CRITIC_PROMPT

_METRICS = """\
The model's answer is the likelier one of the two. `acc` is the share of right answers, `all_13` that of statements of
which all 13 were answered right (LINK, section 4), `positive` and `negative` the same of the questions with such an
answer, `template_01` to `template_13` the accuracy by question. LINK's delta is (`all_13` of the long tail - `all_13`
of the head) / `all_13` of the head. A group's figures weigh each task by its questions.

The 13 questions of a statement stand together. A statement of which `--limit` cuts off some counts in `acc` alone."""

VERSION = 1.0
"""Of the tasks: it rises when a prompt or metric changes, so that results can be told apart."""

_HERE = Path(__file__).parent
_QUESTION = "{{question}}"
_BASE = "_base_yaml"
"""Included by the tasks; the harness takes no file for a task whose name does not end in .yaml."""


@dataclass
class _Questions:
    """The files of one folder, a line a question."""

    folder: Path
    _streams: dict[Distribution, TextIO] = field(default_factory=dict)

    def write(self, distribution: Distribution, row: Row) -> None:
        if distribution not in self._streams:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{distribution.value}.jsonl"
            self._streams[distribution] = path.open("w", encoding="utf-8", newline="\n")
        self._streams[distribution].write(json_line(row))

    def close(self) -> list[Distribution]:
        """The distributions that have questions."""
        for stream in self._streams.values():
            stream.close()
        return [each for each in Distribution if each in self._streams]

    def text(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8", newline="\n")


class HarnessSink:
    """`lm_eval/`: two groups over the same questions, one in LINK's words and one in those of the critic.

    `name` is the first part of all task names.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._questions = _Questions(folder)
        self._name = name

    def take(self, entry: Entry) -> None:
        for row in entry.probes:
            self._questions.write(entry.record.distribution, row)

    def finish(self, _: Source) -> None:
        present = self._questions.close()
        self._questions.text("utils.py", _shipped("shipped_lm_eval.py"))
        self._questions.text(_BASE, yaml_text(_base()))
        for group, prompt in self._prompts().items():
            tasks = {f"{group}_{each.value}": each for each in present}
            self._questions.text(f"{group}.yaml", yaml_text(_group(group, list(tasks))))
            for task, distribution in tasks.items():
                self._questions.text(f"{task}.yaml", yaml_text(_task(task, distribution, prompt)))
        self._questions.text("README.md", "\n".join(self._readme(present)) + "\n")

    def _prompts(self) -> dict[str, dict[str, Any]]:
        return {
            self._name: {"doc_to_text": f"{PREFIX}\n{_QUESTION}\nAnswer:", "doc_to_choice": "answers"},
            f"{self._name}_critic": {
                "doc_to_text": CRITIC_PROMPT.format(claim=_QUESTION),
                "doc_to_choice": ["yes", "no"],
            },
        }

    def _readme(self, present: list[Distribution]) -> Iterator[str]:
        name = self._name
        yield f"# Tasks of `{name}` for lm-evaluation-harness\n"
        yield "```"
        yield f"lm-eval validate --tasks {name} --include_path lm_eval"
        yield f"lm-eval run --model hf --model_args pretrained=MODEL --tasks {name} --include_path lm_eval"
        yield "```\n"
        yield "Nothing is downloaded: the questions lie beside the tasks. `--include_path` is this folder.\n"
        yield "| task | asks |"
        yield "| --- | --- |"
        for group in self._prompts():
            words = "LINK's words, and its two answers" if group == name else "the words of LINK's critic, yes or no"
            for each in present:
                yield f"| `{group}_{each.value}` | the 13 questions about each {SPOKEN[each]} statement, in {words} |"
        yield ""
        yield _METRICS


class InspectSink:
    """`inspect/`: samples as Inspect reads them, and a file of tasks."""

    def __init__(self, folder: Path) -> None:
        self._questions = _Questions(folder)

    def take(self, entry: Entry) -> None:
        for row in entry.probes:
            self._questions.write(entry.record.distribution, sample(row))

    def finish(self, _: Source) -> None:
        self._questions.close()
        self._questions.text("task.py", _shipped("shipped_inspect.py"))


def sample(row: Row) -> dict[str, Any]:
    """A question with the fields of Inspect's `Sample`; the target is the letter of the right choice."""
    told = ("statement", "rule", "domain", "distribution", "template")
    return {
        "input": f"{PREFIX}\n{row['question']}",
        "choices": row["answers"],
        "target": "AB"[row["label"]],
        "id": row["id"],
        "metadata": {name: row[name] for name in told},
    }


def _base() -> dict[str, Any]:
    metrics = ["all_13", "positive", "negative", *(f"template_{one.number:02}" for one in TEMPLATES)]
    own = [{"metric": one, "aggregation": Function(f"utils.{one}"), "higher_is_better": True} for one in metrics]
    return {
        "custom_dataset": Function("utils.load"),
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_target": "label",
        "process_results": Function("utils.process_results"),
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}, *own],
        "metadata": {"version": VERSION},
    }


def _task(task: str, distribution: Distribution, prompt: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "include": _BASE,
        "task": task,
        "dataset_kwargs": {"data_file": f"{distribution.value}.jsonl"},
        **prompt,
    }


def _group(group: str, tasks: list[str]) -> dict[str, Any]:
    averaged = ("acc", "all_13", "positive", "negative")
    return {
        "group": group,
        "task": tasks,
        "aggregate_metric_list": [{"metric": one, "aggregation": "mean", "weight_by_size": True} for one in averaged],
        "metadata": {"version": VERSION},
    }


def _shipped(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
