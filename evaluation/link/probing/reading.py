"""Parse replies to probe questions; replies off format are kept apart from wrong answers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hapax.evaluation.link.probing.templates import AnswerPair

# `**No.** Because ...`: quotes, brackets and Markdown may stand before the word.
_FIRST_WORD = re.compile(r"[\s\"'“”‘’*_`(\[]*([^\W\d_]+)")
# `Therefore, the answer (yes or no) is: Yes`; each part but "answer" may be missing.
_ANNOUNCED = re.compile(
    r"[\s*_]*(?:therefore,? )?(?:the |my )?answer(?: \([^)]{1,40}\))?(?: is)?[:\s\"'“*]*([^\W\d_]+)", re.IGNORECASE
)
_ECHO = re.compile(r"\W*(?:yes|true|right)\s*(?:or|/)\s*(?:no|false|wrong)\b", re.IGNORECASE)
_QUOTED = 60
"""Characters of a reply that a violation quotes."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A parsed reply. Where it has neither answer of its pair, `positive` is None and `violation` says why; where the
    model refused to reply, `refusal` does.
    """

    positive: bool | None
    violation: str | None = None
    refusal: str | None = None


def parse_reply(reply: str, pair: AnswerPair) -> ParsedReply:
    """Parse the answer that a reply begins with: `Yes`, `**No.** Because ...`, `The answer is: true`.

    Only the question's own pair counts, as in LINK: `Yes` to a true-or-false question is a violation, and so is a reply
    that argues first.
    """
    if not reply.strip():
        return ParsedReply(None, "empty reply")
    # "Yes or no: ..." begins with a word of the pair, but is the question and no answer.
    if _ECHO.match(reply):
        return ParsedReply(None, f"repeats the question: {_quote(reply)}")
    # In this order, or the first word of an announcement, "The", would be taken for the answer.
    match = _ANNOUNCED.match(reply) or _FIRST_WORD.match(reply)
    word = match[1].capitalize() if match else ""
    if word in pair.value:
        return ParsedReply(word == pair.word(True))
    if any(word in wrong_pair.value for wrong_pair in AnswerPair):
        return ParsedReply(None, f"{word} where {pair.spoken} was asked")
    return ParsedReply(None, f"no answer: {_quote(reply)}")


def _quote(reply: str) -> str:
    # Cut before joining: a reply can be megabytes long.
    return " ".join(reply[: 4 * _QUOTED].split())[:_QUOTED]
