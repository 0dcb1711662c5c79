"""From a model's reply to values: LINK's clean-up rules, in LINK's order, with a reason for everything that is dropped.

A reply is untrusted text of any length. Nothing here raises: a line becomes a value or a rejection.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from grammar.terms import Value

LONGEST_VALUE = 64
"""Characters; LINK drops what is longer."""

LONGEST_LINE = 400
"""Characters of a line that are looked at and kept as `raw`; a longer line cannot hold one short value."""

MOST_LINES = 1000
"""Lines of one reply that are read: twenty times what a call asks for."""

_NUMBERING = re.compile(r"\(?\d{1,4}[.)]\s*(?=[^\d\s])|\(?\d{1,4}[.)]\s+(?=\d)|[-*•]\s+(?=\S)")
_BARE_NUMBER = re.compile(r"\d{1,4}[.)]")
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "`": "`", "*": "*"}
_LONE_QUOTES = '"“”„«»'
_ARTICLE = re.compile(r"(?:an?|the)\s+(?=\S)", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
"""Characters that nobody sees and that say nothing: with them one value would be two."""

_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_NUMBER = re.compile(
    r"(?:(?:about|around|approximately|roughly|circa|c\.|ca\.|in|the\s+year|year)\s+)*"
    r"(?P<sign>[-+\u2212]?)(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?P<decimals>\.[0-9]+)?"
    r"(?:\s+(?P<unit>[^\W\d_][\w.\s]*))?",
    re.IGNORECASE,
)
_BEFORE_CHRIST = frozenset({"bc", "bce"})
_SAYS_NOTHING = frozenset({"ad", "ce", "years", "years old"})

_YES = frozenset({"yes", "true", "right", "correct"})
_NO = frozenset({"no", "false", "wrong", "incorrect"})
_NEGATION = re.compile(r"\bnot\b|n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedValue:
    """One line of a reply. `rejected` says why it is no value; then `value` is what was left of it when it fell."""

    value: Value
    raw: str
    position: int
    """The line's place among the reply's lines that hold anything, from 0."""
    rejected: str | None = None


class _Rejected(Exception):  # noqa: N818  # not an error: the way out of the chain of clean-up steps
    def __init__(self, left: str, reason: str) -> None:
        super().__init__(reason)
        self.left = left
        self.reason = reason


def parse_values(text: str, variable: str, data_type: str, numeric: bool = False) -> list[ParsedValue]:
    """Every non-empty line of a reply as a value or a rejection, in order.

    `numeric`: the data type descends from Number, so that only numbers are values. A value that comes twice, in
    whatever case, is rejected the second time.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    parsed: list[ParsedValue] = []
    first_at: dict[Value, int] = {}
    numbered = False
    for position, line in enumerate(lines[:MOST_LINES]):
        item = _parsed_line(line, position, variable, data_type, numeric)
        if _BARE_NUMBER.fullmatch(line) and (numbered or line[:-1] == str(position + 1)):
            item = ParsedValue("", line, position, "is a list number without a value")
        numbered = numbered or _NUMBERING.match(line) is not None
        if item.rejected is None:
            key = item.value.casefold() if isinstance(item.value, str) else item.value
            earlier = first_at.setdefault(key, position)
            if earlier != position:
                item = ParsedValue(item.value, item.raw, position, f"repeats line {earlier + 1}")
        parsed.append(item)
    if len(lines) > MOST_LINES:
        reason = f"{len(lines) - MOST_LINES} lines after the first {MOST_LINES} were not read"
        parsed.append(ParsedValue("", _shortened(lines[MOST_LINES]), MOST_LINES, reason))
    return parsed


def render_values(values: Sequence[Value]) -> str:
    """Values as the numbered list that the prompts ask for; what `parse_values` reads back."""
    return "\n".join(f"{number}. {value}." for number, value in enumerate(values, 1))


def without_numbering(line: str) -> str:
    """A list item without its `12. `, `12) ` or dash."""
    match = _NUMBERING.match(line)
    return line[match.end() :] if match else line


def first_items(text: str, count: int | None) -> str | None:
    """The text up to its `count`-th finished item; None if it has not so many or no list was asked for."""
    end = 0
    finished = 0
    for line in text.split("\n")[:-1]:
        if finished == count:
            break
        end += len(line) + 1
        finished += bool(line.strip())
    return text[:end] if finished == count else None


def without_values(text: str, excluded: Sequence[str], data_type: str = "Number") -> str:
    """The text without the lines that say one of the excluded values: in whatever case, and numbers in whatever form.

    `data_type`: its words are units, so that `5 kilograms` says 5 where Kilograms are asked for.
    """
    texts = {" ".join(unicodedata.normalize("NFC", value).split()).casefold() for value in excluded if value.strip()}
    numbers = {parse_number(value, data_type) for value in excluded} - {None}
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not _says(line.strip(), texts, numbers, data_type))


def _says(line: str, texts: Collection[str], numbers: Collection[Value | None], data_type: str) -> bool:
    """Whether a line is read as one of the texts or as one of the numbers."""
    try:
        item = _list_item(line)
    except _Rejected:
        return False
    with suppress(_Rejected):
        if _text(item).casefold() in texts:
            return True
    with suppress(_Rejected):
        return _number(item, data_type) in numbers
    return False


def parse_number(text: str, data_type: str = "Number") -> int | Decimal | None:
    """The one number that a text states, or None.

    Thousands may be grouped by commas. Words of the data type count as its unit (`5 kilograms` for Kilograms), any
    other unit or a factor such as `million` makes the text no number. Years before Christ are negative.
    """
    if len(text) > LONGEST_VALUE:
        return None
    match = _NUMBER.fullmatch(text.strip().rstrip("."))
    if match is None:
        return None
    unit = " ".join((match["unit"] or "").casefold().replace(".", "").split())
    if unit and unit not in _BEFORE_CHRIST | _SAYS_NOTHING | _unit_words(data_type):
        return None
    negative = (match["sign"] in ("-", "\u2212")) != (unit in _BEFORE_CHRIST)
    size = Decimal(match["whole"].replace(",", "") + (match["decimals"] or ""))
    return _shortest(size.copy_negate() if negative else size)


def parse_yes_no(text: str) -> bool | None:
    """What a free answer says: its first word if that decides, else the only verdict word in it, else None."""
    words = re.findall(r"[^\W\d_]+", text[:LONGEST_LINE].casefold())
    if not words:
        return None
    for verdict, vocabulary in ((True, _YES), (False, _NO)):
        if words[0] in vocabulary:
            return verdict
    verdicts = {word in _YES for word in words if word in _YES | _NO}
    return verdicts.pop() if len(verdicts) == 1 and not _NEGATION.search(text[:LONGEST_LINE]) else None


def yes_probability(yes: Sequence[float], no: Sequence[float]) -> float:
    """P(yes): softmax over the logits (or log-probabilities) of the spellings of yes and of no alone."""
    difference = _log_sum(no) - _log_sum(yes)
    return 1 / (1 + math.exp(difference)) if difference < 0 else math.exp(-difference) / (1 + math.exp(-difference))


def _log_sum(logits: Sequence[float]) -> float:
    top = max(logits)
    return top + math.log(sum(math.exp(logit - top) for logit in logits))


def _parsed_line(line: str, position: int, variable: str, data_type: str, numeric: bool) -> ParsedValue:
    raw = _shortened(line)
    try:
        item = _list_item(line)
        value: Value = _number(item, data_type) if numeric else _text(item)
        _refuse_echo(str(value), variable, data_type)
    except _Rejected as fall:
        return ParsedValue(fall.left, raw, position, fall.reason)
    return ParsedValue(value, raw, position)


def _list_item(line: str) -> str:
    """The line without numbering, quotes and full stop."""
    if len(line) > LONGEST_LINE:
        raise _Rejected("", f"has {len(line)} characters, more than {LONGEST_VALUE}")
    item = without_numbering(_unquoted(unicodedata.normalize("NFC", _INVISIBLE.sub("", line))))
    if any(unicodedata.category(c) in ("Cc", "Cs") or c in _BIDI_CONTROLS for c in item):
        raise _Rejected("", "holds a control character")
    if not item.rstrip(_LONE_QUOTES + "'’`*").endswith("."):
        raise _Rejected(item, "does not end in a full stop")
    if item.endswith("..."):
        raise _Rejected(item, "trails off")
    return _unquoted(_unquoted(item).removesuffix(".").strip())


def _text(item: str) -> str:
    """LINK's drops and cuts, in LINK's order."""
    if len(item) > LONGEST_VALUE:
        raise _Rejected(item, f"has {len(item)} characters, more than {LONGEST_VALUE}")
    if "/" in item:
        raise _Rejected(item, "names alternatives with a slash")
    if item.count(",") >= 2:
        raise _Rejected(item, "is a list: two commas or more")
    value = _without_parentheses(item.split(",", maxsplit=1)[0])
    value = _unquoted(_after_label(value))
    if not any(c.isalnum() for c in value):
        raise _Rejected(value, "is empty after clean-up")
    return " ".join(value.split())


def _number(item: str, data_type: str) -> Value:
    for reading in (item, _without_parentheses(item), _after_label(item)):
        number = parse_number(reading, data_type)
        if number is not None:
            return number
    raise _Rejected(item[:LONGEST_VALUE], f"is not a number, and {data_type} is numeric")


def _refuse_echo(value: str, variable: str, data_type: str) -> None:
    """LINK drops a value that names the variable. `Vitamin B` does not name the variable B; the slot `[B]` does."""
    name = re.escape(variable)
    if re.fullmatch(name, value) or re.search(rf"\[{name}\]|^{name}\s*(?:=|is\b|are\b)|\bvalues? of {name}\b", value):
        raise _Rejected(value, f"names the variable {variable}")
    bare = _ARTICLE.sub("", value, count=1) if _ARTICLE.match(value) else value
    if " ".join(bare.casefold().split()) == " ".join(data_type.casefold().split()):
        raise _Rejected(value, f"repeats the data type {data_type}")


def _unquoted(text: str) -> str:
    """Without surrounding quotes or asterisks, and without a lone double quote at either end."""
    text = text.strip()
    while len(text) > 1 and _PAIRS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text.strip(_LONE_QUOTES).strip()


def _without_parentheses(text: str) -> str:
    """Drops what stands in parentheses, nested too; an unclosed one takes the rest with it."""
    shorter = _PARENTHESES.sub("", text)
    while shorter != text:
        text, shorter = shorter, _PARENTHESES.sub("", shorter)
    return text.split("(")[0].replace(")", "").strip()


def _after_label(text: str) -> str:
    """What follows `:` or ` - `, where a model explains before it answers."""
    return text.rsplit(":", 1)[-1].rsplit(" - ", 1)[-1].strip()


def _unit_words(data_type: str) -> frozenset[str]:
    words = data_type.casefold().split()
    return frozenset((*words, *(word.removesuffix("s") for word in words)))


def _shortest(number: Decimal) -> int | Decimal:
    """One form per number: an integer where it is one, else a decimal without closing zeros."""
    whole = number.to_integral_value()
    return int(whole) if number == whole else Decimal(format(number, "f").rstrip("0"))


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
