"""From a reply to an answer. A reply that keeps to no format is told apart from a wrong one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluation.probing.templates import AnswerPair

_FIRST_WORD = re.compile(r"[\s\"'“”‘’*_`(\[]*([^\W\d_]+)")
_ANNOUNCED = re.compile(
    r"[\s*_]*(?:therefore,? )?(?:the |my )?answer(?: \([^)]{1,40}\))?(?: is)?[:\s\"'“*]*([^\W\d_]+)", re.IGNORECASE
)
_ECHO = re.compile(r"\W*(?:yes|true|right)\s*(?:or|/)\s*(?:no|false|wrong)\b", re.IGNORECASE)
_SHOWN = 60
"""Characters of a reply that a violation quotes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply says. `positive` is None where it gives neither answer of its pair; `violation` says why, or
    `refusal` why the model did not reply at all.
    """

    positive: bool | None
    violation: str | None = None
    refusal: str | None = None


def read_verdict(reply: str, pair: AnswerPair) -> Verdict:
    """The answer that a reply begins with: `Yes`, `**No.** Because ...`, `The answer is: true`.

    Only the question's own pair counts. `Yes` where true or false was asked is a violation, as in LINK, and so is a
    reply that argues first.
    """
    if not reply.strip():
        return Verdict(None, "empty reply")
    if _ECHO.match(reply):
        return Verdict(None, f"repeats the question: {_short(reply)}")
    match = _ANNOUNCED.match(reply) or _FIRST_WORD.match(reply)
    word = match[1].capitalize() if match else ""
    if word in pair.value:
        return Verdict(word == pair.word(True))
    if any(word in other.value for other in AnswerPair):
        return Verdict(None, f"{word} where {pair.spoken} was asked")
    return Verdict(None, f"no answer: {_short(reply)}")


def _short(reply: str) -> str:
    return " ".join(reply[: 4 * _SHOWN].split())[:_SHOWN]
