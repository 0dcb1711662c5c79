"""The closed vocabulary of reasons why an entry of a reply is not a value."""

from __future__ import annotations

from enum import StrEnum


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
