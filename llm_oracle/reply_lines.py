"""Splits a reply into lines with their list marks: numbers in any script, bullets, letters, headings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from hapax.llm_oracle.answers import LONGEST_LINE
from hapax.llm_oracle.drop_reasons import DropReason


class Mark(Enum):
    """The list mark with which a line begins."""

    NONE = "none"
    NUMBER = "number"
    BULLET = "bullet"
    LETTER = "letter"
    HEADING = "heading"
    """A Markdown heading, a line in bold, or a line that ends in a colon."""


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """A line that is not blank. `body`: the text after the mark; `depth`: level of indentation, from 0.

    `after_blank`: a blank line precedes it.
    """

    raw: str
    body: str
    mark: Mark = Mark.NONE
    number: int | None = None
    depth: int = 0
    after_blank: bool = False


# A code fence such as ```json, or `\begin{itemize}`.
_FENCE = re.compile(r"\s*(?:(?:```|~~~)[\w+-]*|\\(?:begin|end)\{\w+\*?\}(?:\[[^\]]*\])?)\s*$")
# `---`, `* * *`, `=====`.
_RULE = re.compile(r"\s*(?:[-*_=]\s?){3,}$")
_HASHES = re.compile(r"#{1,6}\s+")
_STARS = re.compile(r"\*\*|__")
_DECORATION = re.compile(r"(?:>\s+)+")
_CHECKBOX = re.compile(r"\[[ xX✓]\]\s+")

# A point directly before a digit is a decimal point, unless a blank follows: `1.5` has no mark, `1. 5` has.
_NUMBERED = re.compile(r"[(（]?(?P<number>\d{1,4})(?:[.)][-–]|[.)、．）]|\ufe0f?\u20e3)\**(?:\s+|(?=[^\d\s.])|$)")
# `三、` and `(十二)`.
_IDEOGRAPHIC = re.compile(r"[(（]?(?P<number>[一二三四五六七八九十]{1,3})[、.．)）]\s*")
_CIRCLED = re.compile(r"(?P<number>[①-⑳➀-➉❶-❿])\s*")
_BULLETED = re.compile(
    r"\\item\s+|(?:[-*+–—−⁃→➤]|[•‣◦▪▫●○■□▸►▶✓✔✅☑·∙]\ufe0f?(?=\s?))\ufe0f?\s+|[・･•‣◦▪▫●○■□▸►▶✓✔✅☑]\ufe0f?"
)
# One or more signs that are no letter, digit, quote, currency or punctuation, such as an emoji, and a blank.
_PICTURE = re.compile(
    r"(?P<picture>[^\w\s\"'“”‘’„«»‹›()\[\]{}*_`#$€£¥%&@+\-–—.,:;!?/\\|<>=~^°½¼¾।。、「」『』《》¡¿]{1,8})\s+"
)

# Marks that count only if they run on from line to line.
_LETTERED = re.compile(r"\(?(?P<number>[^\W\d_])[.)]\s+")
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "αβγδεζηθικλμνξοπρστυφχψω", "абвгдежзийклмнопрст", "אבגדהוזחטיכל")
_TIGHT_BULLET = re.compile(r"[-–](?=[^\W\d_])")
_ROMAN = re.compile(r"\(?(?P<number>[ivx]{1,5}|[IVX]{1,5})[.)]\s+")
_BRACKETED = re.compile(r"\[(?P<number>\d{1,3})\]\s+")
# `Value 1:`, `#2`, `3 -`, `**Answer 4**:`, `6]`.
_LOOSE_NUMBER = re.compile(
    r"\**(?:(?P<label>[#№]|[^\W\d_]{1,12}\.?(?=\s*\d))\s*)?(?P<number>\d{1,3})\**(?:\s*[:：\]]\**\s*|\s*[-–—]\s+|\s+)"
)
# The numbers in `Here: 1. basil 2. thyme, (3) sage`, but not 4.5.
_INLINE_NUMBER = re.compile(r"(?:^|(?<=[\s:：;,，(]))\(?(?P<number>\d{1,2})[.)]\s*(?=[^\s\d.]|\d{3}|(?<=\s)\d)")
_INLINE_LETTER = re.compile(r"(?:^|(?<=[\s:：;,，(]))\(?(?P<number>[a-h])\)\s*(?=\S)")
_JOINED = re.compile(r"[,;，]?(?:\s+(?:and|or))?$")
_CHINESE_DIGITS = {digit: number for number, digit in enumerate("一二三四五六七八九", 1)}
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10}


def read_lines(text: str, most: int) -> list[ReplyLine]:
    """The lines of a text that are not blank, at most `most`, without code fences and rules."""
    lines: list[ReplyLine] = []
    after_blank = False
    for raw in text.splitlines():
        if (
            lines
            and re.fullmatch(r"\s*={3,}\s*", raw[:LONGEST_LINE])
            and lines[-1].mark is Mark.NONE
            and not after_blank
        ):
            lines[-1] = replace(lines[-1], mark=Mark.HEADING)  # the title above a line of equal signs
        if not raw.strip() or _FENCE.match(raw[:LONGEST_LINE]) or _RULE.fullmatch(raw[:LONGEST_LINE]):
            after_blank = True
            continue
        for part in _inline_items(raw):
            lines.append(replace(_line(part), after_blank=after_blank))
            after_blank = False
        if len(lines) >= most:
            break
    return _with_depths(_with_running_marks(lines[:most]))


def _line(raw: str) -> ReplyLine:
    """One line with the mark that it shows by itself."""
    stripped = raw.strip()
    indent = len(raw.expandtabs(4)) - len(raw.expandtabs(4).lstrip())
    body = _DECORATION.sub("", stripped, count=1) if stripped.startswith(">") else stripped
    # A bullet before a list number: `- 1. basil`.
    body = re.sub(r"^[-*+•]\s+(?=\**\d{1,3}[.)]\**\s*[^\s\d])", "", body)
    # `1\. basil`, escaped so that Markdown reads no list.
    body = re.sub(r"^(\d{1,3})\\([.)])", r"\1\2", body)
    heading = _HASHES.match(body)
    if heading:
        body = body[heading.end() :].rstrip("# ")
    bold = _STARS.match(body)
    opened = bold.group() if bold else ""
    inner = body[len(opened) :]
    number = _number_mark(inner)
    if number is not None:
        value, end = number
        rest = inner[end:]
        again = _number_mark(rest)
        # The number twice: `1. 1. basil`.
        if again is not None and again[0] == value:
            rest = rest[again[1] :]
        # The bold sign before the number still closes after the item: `**1. Tango**`.
        closed = opened and rest.count(opened) % 2 == 1
        return ReplyLine(raw, (opened if closed else "") + rest.strip(), Mark.NUMBER, value, indent)
    if heading:
        return ReplyLine(raw, body, Mark.HEADING, None, indent)
    bullet = None if bold else _BULLETED.match(body) or _picture(body)
    if bullet:
        rest = body[bullet.end() :]
        checkbox = _CHECKBOX.match(rest)
        return ReplyLine(raw, rest[checkbox.end() :] if checkbox else rest, Mark.BULLET, None, indent)
    return ReplyLine(raw, body, Mark.HEADING if is_heading(body) else Mark.NONE, None, indent)


def is_heading(body: str) -> bool:
    """True if the whole line is bold, or it ends in a colon."""
    plain = body.strip()
    if plain.rstrip("*_ ").endswith((":", "：")):
        return True
    return len(plain) > 4 and plain[:2] in ("**", "__") and plain.endswith(plain[:2]) and plain.count(plain[:2]) == 2


def _number_mark(text: str) -> tuple[int, int] | None:
    """The number with which the text begins as a list number, and where the mark ends."""
    match = _NUMBERED.match(text)
    if match:
        return int(match["number"]), match.end()
    match = _IDEOGRAPHIC.match(text)
    if match:
        return _ideographic(match["number"]), match.end()
    match = _CIRCLED.match(text)
    return (int(unicodedata.numeric(match["number"])), match.end()) if match else None


def _picture(text: str) -> re.Match[str] | None:
    """An emoji used as a bullet."""
    match = _PICTURE.match(text)
    return match if match and any(unicodedata.category(char) == "So" for char in match["picture"]) else None


def _ideographic(text: str) -> int:
    # `二十三` is two tens and three; without a digit before it, `十` is one ten.
    tens, ten, ones = text.partition("十")
    if not ten:
        return _CHINESE_DIGITS.get(text, 0)
    return 10 * _CHINESE_DIGITS.get(tens, 1) + _CHINESE_DIGITS.get(ones, 0)


def _roman(text: str) -> int:
    total = 0
    digits = [_ROMAN_DIGITS[char] for char in text.casefold()]
    for position, digit in enumerate(digits):
        following = digits[position + 1] if position + 1 < len(digits) else 0
        total += -digit if digit < following else digit
    return total


def _inline_items(raw: str) -> Iterator[str]:
    """The parts of a line that holds several numbered items, `1. red 2. blue`; else the line itself."""
    marks = list(_INLINE_NUMBER.finditer(raw))
    numbers = [int(mark["number"]) for mark in marks]
    if len(marks) < 2:
        marks = list(_INLINE_LETTER.finditer(raw))
        numbers = [ord(mark["number"]) for mark in marks]
        numbers = numbers if "a" in {mark["number"] for mark in marks[:1]} and len(marks) > 2 else []
        marks = marks if numbers else []
    if len(marks) < 2 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        yield raw
        return
    before = raw[: marks[0].start()]
    if before.strip():
        yield before
    ends = [*(mark.start() for mark in marks[1:]), len(raw)]
    for mark, end in zip(marks, ends, strict=True):
        yield _JOINED.sub("", raw[mark.start() : end].rstrip())


def _with_running_marks(lines: Sequence[ReplyLine]) -> list[ReplyLine]:
    """The lines with marks that are marks only because they run on: a, b, c; i, ii, iii; `Value 1:`, `Value 2:`."""
    result = list(lines)
    readers: tuple[tuple[re.Pattern[str], Callable[[str], int], Mark], ...] = (
        # Before letters, since `i.` alone could be either.
        (_ROMAN, _roman, Mark.LETTER),
        (_LETTERED, _place_in_alphabet, Mark.LETTER),
        (_LOOSE_NUMBER, int, Mark.NUMBER),
    )
    if not any(line.mark in (Mark.NUMBER, Mark.BULLET) for line in lines):  # below a list they are footnotes
        readers = ((_BRACKETED, int, Mark.NUMBER), *readers)
    for pattern, number_of, mark in readers:
        matches = [
            (position, match)
            for position, line in enumerate(result)
            if line.mark in (Mark.NONE, Mark.HEADING) and (match := pattern.match(line.body))
        ]
        numbers = [number_of(match["number"]) for _, match in matches]
        if len(numbers) < 2 or numbers != list(range(1, len(numbers) + 1)):
            continue
        if len({match.groupdict().get("label") or "" for _, match in matches}) > 1:
            continue
        labels = {(match.groupdict().get("label") or "").casefold() for _, match in matches}
        if labels == {"step"} and any(line.mark is Mark.NUMBER for line in result):
            continue  # steps of reasoning above the list
        for (position, match), number in zip(matches, numbers, strict=True):
            line = result[position]
            result[position] = replace(line, body=line.body[match.end() :], mark=mark, number=number)
    plain = [position for position, line in enumerate(result) if line.mark is not Mark.HEADING]
    if len(plain) > 1 and all(_TIGHT_BULLET.match(result[position].body) for position in plain):
        for position in plain:  # `-suede`
            result[position] = replace(result[position], body=result[position].body[1:], mark=Mark.BULLET)
    return result


def _place_in_alphabet(letter: str) -> int:
    """The place of a letter in its alphabet, from 1; 0 for other signs."""
    return max(alphabet.find(letter.casefold()) for alphabet in _ALPHABETS) + 1


def _with_depths(lines: Sequence[ReplyLine]) -> list[ReplyLine]:
    """The lines with levels instead of columns; numbers may be aligned at their right, one column apart."""
    marked = [line.depth for line in lines if line.mark not in (Mark.NONE, Mark.HEADING)]
    least = min(marked, default=0)
    return [replace(line, depth=max(0, line.depth - least) // 2) for line in lines]


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply that may hold one value, or `dropped` for a reason. `marked`: it has a list mark."""

    raw: str
    body: str
    dropped: DropReason | None = None
    marked: bool = True
