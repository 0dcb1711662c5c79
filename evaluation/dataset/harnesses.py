"""A dataset as tasks for EleutherAI's lm-evaluation-harness and for UK AISI's Inspect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from hapax.evaluation.dataset.columns import Row, json_line
from hapax.evaluation.dataset.rows import DatasetSource, Entry
from hapax.evaluation.dataset.sinks import Sink
from hapax.evaluation.link.probing.asking import PREFIX, TEMPLATES
from hapax.evaluation.shared.results import markdown_table
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES
from hapax.grammar.words import counted
from hapax.kb.records import Distribution
from hapax.llm_oracle.prompts import CRITIC_PROMPT


class Function(str):
    """Name of a function in a Python file beside the YAML, such as `utils.load`."""

    __slots__ = ()


def yaml_text(tree: Mapping[str, Any]) -> str:
    """The tree as YAML in block style, with keys in the given order."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        """Write equal parts out instead of as anchors, which some readers do not support."""
        return True


# A SafeDumper refuses subclasses of str that have no representer of their own.
_Dumper.add_representer(Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))


_COUNT = len(TEMPLATES)
_ALL = f"all_{_COUNT}"
"""Name of the metric of statements all of whose questions were answered correctly."""

VERSION = 1.0
"""Version of the tasks. Raise it when a prompt or metric changes, so that results can be told apart."""

METADATA = {"version": VERSION}
_HERE = Path(__file__).parent
_QUESTION = "{{question}}"
_BASE = "_base_yaml"
"""File that the tasks include. Its name must not end in .yaml, or the harness takes it for a task."""


def group_files(
    group: str, base: str, tasks: Mapping[str, Mapping[str, Any]], averaged: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Names and texts of the files of a group of tasks, which include the file `base`.

    `averaged`: metrics of the group that are means over the documents of its tasks.
    """
    means = [{"metric": name, "aggregation": "mean", "weight_by_size": True} for name in averaged]
    content = {"group": group, "task": list(tasks), "aggregate_metric_list": means, "metadata": METADATA}
    yield f"{group}.yaml", yaml_text(content)
    for task, own in tasks.items():
        yield f"{task}.yaml", yaml_text({"include": base, "task": task, **own})


def page(template: str, content: Mapping[str, Any]) -> str:
    """A page in Markdown by a template of this folder, in which nothing is escaped but by the filter `plain`."""
    environment = Environment(  # noqa: S701  # Markdown
        loader=PackageLoader("hapax.evaluation.dataset", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = plain
    environment.globals |= {"counted": counted, "table": _table}
    return environment.get_template(template).render(content)


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    return markdown_table(list(columns), [[str(cell) for cell in row] for row in rows])


def plain(text: str) -> str:
    """A name from rules or models as plain text in one line, with all Markdown and HTML escaped."""
    # Line ends would end the cell of a table; `markdown_table` escapes its bars.
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]#!~" else letter for letter in line)


class _QuestionSink(Sink):
    """Writes the questions of each distribution into a file of their own, a line per question."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._streams: dict[Distribution, TextIO] = {}

    def take(self, entry: Entry) -> None:
        distribution = entry.record.distribution
        if distribution not in self._streams:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{distribution.value}.jsonl"
            self._streams[distribution] = path.open("w", encoding="utf-8", newline="\n")
        for row in entry.probes:
            self._streams[distribution].write(json_line(self.line(row)))

    def line(self, row: Row) -> Row:
        """The line that stands for a row of the table `probes`."""
        return row

    def close(self) -> list[Distribution]:
        """Close the files, and return the distributions that have questions."""
        for stream in self._streams.values():
            stream.close()
        return [distribution for distribution in Distribution if distribution in self._streams]


class HarnessSink(_QuestionSink):
    """`lm_eval/`: two groups of tasks over the same questions, one in LINK's wording and one in the critic's.

    The names of all tasks begin with the dataset's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / "lm_eval", name)

    def finish(self, _: DatasetSource) -> None:
        present = self.close()  # a distribution without questions gets no task
        self.write("utils.py", _shipped("shipped_lm_eval.py"))
        self.write(_BASE, yaml_text(_base()))
        prompts = self._prompts()
        for group, prompt in prompts.items():
            tasks = {}
            for distribution in present:
                data = {"data_file": f"{distribution.value}.jsonl"}
                tasks[f"{group}_{distribution.value}"] = {"dataset_kwargs": data, **prompt}
            for name, text in group_files(group, _BASE, tasks, ("acc", _ALL, "positive", "negative")):
                self.write(name, text)
        content = {"name": self.name, "groups": prompts, "present": present, "count": _COUNT}
        self.write("README.md", page("tasks.md.jinja", {**content, "names": DISTRIBUTION_NAMES}))

    def _prompts(self) -> dict[str, dict[str, Any]]:
        """Prompt and answers by group."""
        # The harness fills in the question of each line, by Jinja.
        # No blank at the end: the harness puts one between prompt and choice.
        link = {"doc_to_text": f"{PREFIX}\n{_QUESTION}\nAnswer:", "doc_to_choice": "answers"}
        critic = {"doc_to_text": CRITIC_PROMPT.format(claim=_QUESTION), "doc_to_choice": ["yes", "no"]}
        return {self.name: link, f"{self.name}_critic": critic}


class InspectSink(_QuestionSink):
    """`inspect/`: samples as Inspect reads them, and a file of tasks."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / "inspect", name)

    def line(self, row: Row) -> Row:
        return sample(row)

    def finish(self, _: DatasetSource) -> None:
        self.close()
        self.write("task.py", _shipped("shipped_inspect.py"))


def sample(row: Row) -> dict[str, Any]:
    """A question with the fields of Inspect's `Sample`; the target is the letter of the right choice."""
    metadata = ("statement", "rule", "domain", "distribution", "template")
    return {
        "input": f"{PREFIX}\n{row['question']}",
        "choices": row["answers"],
        "target": "AB"[row["label"]],
        "id": row["id"],
        "metadata": {name: row[name] for name in metadata},
    }


def _base() -> dict[str, Any]:
    # `acc` is the harness's own; the functions of utils.py compute the others from whole statements.
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    for name in (_ALL, "positive", "negative", *(f"template_{template.number:02}" for template in TEMPLATES)):
        metrics.append({"metric": name, "aggregation": Function(f"utils.{name}"), "higher_is_better": True})
    return {
        "custom_dataset": Function("utils.load"),
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_target": "label",  # the index of the right answer, for either prompt
        "process_results": Function("utils.process_results"),
        "metric_list": metrics,
        "metadata": METADATA,
    }


def _shipped(name: str) -> str:
    """The text of a file that is part of a dataset, with the number of templates of this dataset."""
    # A shipped file runs where Hapax is not installed, so the number is written into it.
    text = (_HERE / name).read_text(encoding="utf-8")
    return re.sub(r"^TEMPLATES = \d+$", f"TEMPLATES = {_COUNT}", text, count=1, flags=re.MULTILINE)
