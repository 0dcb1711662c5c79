"""The questions of a finished set: a proposition and whether the corpus says so, in the release's form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.booqa.corpus import Mention, read_relation, write_relation
from evaluation.entailment.prompts import chinese_sentence
from grammar.errors import HapaxError

DEV, TEST = "dev", "test"


@dataclass(frozen=True, slots=True)
class Question:
    """One proposition. `sentence` is the index in its slice of the sentence that says it, or what it was made from.

    `senses`: by replaced words, the ids of the synsets chosen for them. `positive`: the relation that a negative stands
    in for; empty for a positive.
    """

    mention: Mention
    slice: str
    sentence: int
    label: bool
    senses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    positive: str = ""

    def proposition(self, language: str) -> str:
        """As a sentence."""
        told = self.mention.told(language)
        return chinese_sentence(told) if language == "ZH" else told.sentence

    def to_json(self, language: str) -> dict[str, Any]:
        """The release's keys; `posi_upred` in negatives alone."""
        return {
            "r": write_relation(self.mention),
            "partition_key": self.slice,
            "in_partition_sidx": self.sentence,
            "wn_synsets": {words: list(ids) for words, ids in self.senses.items()},
            "label": self.label,
            "proposition": self.proposition(language),
            **({"posi_upred": self.positive} if self.positive else {}),
        }


def write_questions(questions: Iterable[Question], path: Path, language: str) -> None:
    """One JSON object a line."""
    lines = (json.dumps(one.to_json(language), ensure_ascii=False) for one in questions)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def read_questions(path: Path) -> list[Question]:
    """Our files and the release's. Raises HapaxError for a line that is no question."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a set that was built.") from None
    return [_question(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def read_set(folder: Path) -> dict[str, list[Question]]:
    """The questions of `dev.jsonl` and `test.jsonl`, or of all `.json` and `.jsonl` files, by the file's name."""
    own = [folder / f"{name}.jsonl" for name in (DEV, TEST)]
    paths = [path for path in own if path.is_file()] or sorted(
        path for path in folder.glob("*.json*") if path.name != REPORT
    )
    found = {path.stem: read_questions(path) for path in paths}
    if not any(found.values()):
        raise HapaxError(f"{folder}: holds no questions. Build them by `hapax evaluate booqa build`.")
    return {name: questions for name, questions in found.items() if questions}


REPORT = "report.json"
"""What a build dropped and why, beside the questions."""


def _question(line: str, place: str) -> Question:
    try:
        said = json.loads(line)
        if not isinstance(said["label"], bool):
            raise TypeError(f"the label is {said['label']!r}; write true or false")
        return Question(
            read_relation(said["r"]),
            str(said["partition_key"]),
            int(said["in_partition_sidx"]),
            said["label"],
            {words: tuple(map(str, ids)) for words, ids in (said.get("wn_synsets") or {}).items()},
            str(said.get("posi_upred", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        told = f"lacks {fault}" if isinstance(fault, KeyError) else str(fault)
        raise HapaxError(
            f"{place}: no question: {told}. Its keys are r, partition_key, in_partition_sidx, wn_synsets, label and "
            "proposition."
        ) from None
