"""Questions and their files, in the release's format: a proposition and whether the corpus states it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hapax.evaluation.booqa.corpus import Mention, read_relation, write_relation
from hapax.evaluation.entailment.prompts import chinese_sentence
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.unfinished import replace_file

DEV, TEST = "dev", "test"
REPORT = "report.json"
"""File beside the questions with the number of items that each step of a build dropped."""


@dataclass(frozen=True, slots=True)
class Proposition:
    """A question: a proposition, and a label that is true if the corpus states it."""

    mention: Mention
    slice: str
    sentence: int
    """Index in the slice of the sentence that states the proposition, or the positive that it was made from."""

    label: bool
    senses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ids of the synsets chosen, by the words of the positive that were looked up."""

    positive: str = ""
    """The relation that a negative replaces; empty for a positive."""

    def proposition(self, language: str) -> str:
        """The proposition as a sentence."""
        triple = self.mention.triple(language)
        return chinese_sentence(triple) if language == "ZH" else triple.sentence

    def to_json(self, language: str) -> dict[str, Any]:
        """The question under the release's keys; only negatives have `posi_upred`."""
        return {
            "r": write_relation(self.mention),
            "partition_key": self.slice,
            "in_partition_sidx": self.sentence,
            "wn_synsets": {words: list(ids) for words, ids in self.senses.items()},
            "label": self.label,
            "proposition": self.proposition(language),
            **({"posi_upred": self.positive} if self.positive else {}),
        }


def write_questions(questions: Iterable[Proposition], path: Path, language: str) -> None:
    """Write the questions, one JSON object per line."""
    lines = (json.dumps(question.to_json(language), ensure_ascii=False) for question in questions)
    replace_file(path, "".join(f"{line}\n" for line in lines))


def read_questions(path: Path) -> list[Proposition]:
    """Read a file of `write_questions` or of the release. Raises HapaxError for a line that is not a question."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a set that was built.") from None
    return [_question(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def read_set(folder: Path) -> dict[str, list[Proposition]]:
    """The questions in `dev.jsonl` and `test.jsonl`, else in all `.json` and `.jsonl` files, by file name."""
    built = [folder / f"{name}.jsonl" for name in (DEV, TEST)]
    # The release names its files otherwise, and a build leaves its report beside them.
    paths = [path for path in built if path.is_file()] or sorted(
        path for path in folder.glob("*.json*") if path.name != REPORT
    )
    sets = {path.stem: read_questions(path) for path in paths}
    if not any(sets.values()):
        raise HapaxError(
            f"{folder}: the folder contains no questions.", Remedy("Build some with {}.", Operation("build_questions"))
        )
    return {name: questions for name, questions in sets.items() if questions}


def _question(line: str, place: str) -> Proposition:
    try:
        content = json.loads(line)
        # Only JSON's own truth values: the text "false" would count as true.
        if not isinstance(content["label"], bool):
            raise TypeError(f"the label is {content['label']!r}; write true or false")
        return Proposition(
            read_relation(content["r"]),
            str(content["partition_key"]),
            int(content["in_partition_sidx"]),
            content["label"],
            {words: tuple(map(str, ids)) for words, ids in (content.get("wn_synsets") or {}).items()},
            str(content.get("posi_upred", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        problem = f"key {fault} is missing" if isinstance(fault, KeyError) else str(fault)
        raise HapaxError(
            f"{place}: not a question: {problem}. Write an object with the keys r, partition_key, in_partition_sidx, "
            "wn_synsets, label and proposition."
        ) from None
