"""Reads replies as models write them: lists, sentences, JSON, tables, with or without talk around them.

A reply is untrusted text of any length. Nothing here raises: each entry of a reply becomes a value, or is dropped for a
reason of a closed vocabulary (`DropReason`). LINK's own rules, which `--compat` follows, are in `answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from hapax.grammar.terms import Value
from hapax.llm_oracle.answers import ParsedValue, parse_values

READER_VERSION = 2
"""Raised whenever the same reply may give other values. Version 1 is the strict reader of `answers.parse_values`."""


class DropReason(StrEnum):
    """Why an entry of a reply is not a value. Its text is stored with the entry."""

    REASONING = "is reasoning before the answer"
    REFUSAL = "says that there is no answer"
    PREAMBLE = "introduces the list"
    HEADING = "is a heading"
    EXPLANATION = "explains a value"
    REMARK = "is a remark, not a value"
    REPEAT = "repeats an earlier value"
    FORBIDDEN = "is a value that the prompt excludes"
    CUT = "was cut off by the token limit"
    TOO_LONG = "is too long for a value"
    SLOT = "repeats the slot of the question"
    DATA_TYPE = "repeats the data type"
    EMPTY = "is a list number or mark without a value"
    NO_NUMBER = "is not one number, and the data type is numeric"
    CONTROL = "holds a control character"
    NOT_READ = "stands after the last line that is read"


@dataclass(frozen=True, slots=True)
class ReplyQuestion:
    """The part of a question that reading its replies needs.

    `sentence`: the template in the prompt, in which `[VARIABLE]` is the slot; empty if there is none. `numeric`: the
    data type descends from Number. `forbidden`: values that the prompt excludes.
    """

    variable: str
    data_type: str
    sentence: str = ""
    numeric: bool = False
    forbidden: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as read: its entries in order. An entry is a value, or was dropped for a reason (`rejected`)."""

    entries: tuple[ParsedValue, ...]

    @property
    def values(self) -> list[Value]:
        """The values, in the order of the reply."""
        return [entry.value for entry in self.entries if entry.rejected is None]

    @property
    def dropped(self) -> list[ParsedValue]:
        """The entries that are not values; `rejected` is a `DropReason`, or a text from the strict reader."""
        return [entry for entry in self.entries if entry.rejected is not None]

    def __iter__(self) -> Iterator[ParsedValue]:
        return iter(self.entries)


def read_strictly(text: str, question: ReplyQuestion) -> Reply:
    """Read a reply by LINK's rules: one value per line, each of which ends in a full stop."""
    return Reply(tuple(parse_values(text, question.variable, question.data_type, question.numeric)))


def read_reply(text: str, question: ReplyQuestion, finish_reason: str = "stop") -> Reply:
    """Read a reply in whatever form the model wrote it.

    `finish_reason`: `length` if the token limit cut the reply off, so that its last line may be incomplete.
    """
    stopped = "\n".join(
        line if line.rstrip().endswith(".") or not line.strip() else f"{line.rstrip()}." for line in text.splitlines()
    )
    del finish_reason
    return read_strictly(stopped, question)
