"""Measures the reader of replies on the corpus in `tests/replies`: `python -m tools.replies [--misses]`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hapax.llm_oracle.answers import parse_number
from hapax.llm_oracle.reply_reader import Reply, ReplyQuestion, read_reply, read_strictly

CORPUS = Path(__file__).parent.parent / "tests" / "replies"
SETS = (
    "development",
    "development3",
    "development4",
    "development5",
    "development6",
    "development7",
    "development8",
    "development9",
    "development10",
    "development11",
    "development12",
    "development13",
    "development14",
    "development15",
    "development16",
    "evaluation",
    "unseen",
    "unseen2",
    "unseen3",
    "unseen4",
    "unseen5",
)
"""The unseen sets are for measuring alone: their misses are not listed, and no reply of them is read for a change."""


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A reply of the corpus with the values that are truly in it."""

    manner: str
    question: ReplyQuestion
    text: str
    finish_reason: str
    values: tuple[Any, ...]

    @property
    def read(self) -> Reply:
        return read_reply(self.text, self.question, self.finish_reason)


@dataclass(frozen=True, slots=True)
class ReaderScore:
    """Numbers of true values, of those that were read, and of accepted texts that are no values."""

    true: int
    read: int
    junk: int

    @property
    def recall(self) -> float:
        """Share of the true values that were read."""
        return self.read / self.true if self.true else 1.0

    @property
    def junk_share(self) -> float:
        """Share of the accepted values that are none."""
        return self.junk / (self.read + self.junk) if self.read + self.junk else 0.0


def corpus(name: str) -> list[WrittenReply]:
    """The replies of one set of the corpus."""
    entries = yaml.safe_load((CORPUS / f"{name}.yaml").read_text(encoding="utf-8"))
    return [_written(entry) for entry in entries]


def _written(entry: Mapping[str, Any]) -> WrittenReply:
    data_type, sentence = entry["ask"]
    variable = sentence[sentence.index("[") + 1 : sentence.index("]")]
    numeric = entry.get("numeric", False)
    question = ReplyQuestion(variable, data_type, sentence, numeric, tuple(entry.get("forbidden", ())))
    values = [parse_number(str(value)) if numeric else str(value) for value in entry["values"]]
    return WrittenReply(entry["manner"], question, entry["reply"], entry.get("finish", "stop"), tuple(values))


def misses(written: WrittenReply, reply: Reply) -> tuple[list[Any], list[Any]]:
    """The true values that were not read, and the accepted texts that are no values."""
    missing = Counter(written.values)
    missing.subtract(reply.values)
    lost = [value for value, count in missing.items() if count > 0]
    return lost, [value for value, count in missing.items() if count < 0]


def score(replies: list[WrittenReply], strict: bool = False) -> ReaderScore:
    """The reader's score on replies; `strict`: of the reader that `--compat` uses."""
    true = read = junk = 0
    for written in replies:
        reply = read_strictly(written.text, written.question) if strict else written.read
        lost, false = misses(written, reply)
        true += len(written.values)
        read += len(written.values) - len(lost)
        junk += len(false)
    return ReaderScore(true, read, junk)


def main() -> None:
    """Print the figures of all sets, for both readers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--misses",
        choices=[name for name in SETS if not name.startswith("unseen")],
        help="list what is misread in this set",
    )
    options = parser.parse_args()
    for subset in SETS:
        replies = corpus(subset)
        for name, strict in (("reader", False), ("strict reader", True)):
            measured = score(replies, strict)
            print(
                f"{subset:12} {name:14} {len(replies)} replies: {measured.recall:.3f} of {measured.true} true values, "
                f"{measured.junk_share:.3f} of the accepted are none ({measured.junk})"
            )
    for written in corpus(options.misses) if options.misses else ():
        lost, false = misses(written, written.read)
        if lost or false:
            print(f"{written.manner}: lost {lost}, accepted {false}")


if __name__ == "__main__":
    main()
