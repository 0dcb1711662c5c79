"""Parses replies into values by LINK's clean-up rules, in LINK's order, with a reason for every rejected line.

A reply is untrusted text of any length. Nothing here raises: each line becomes a value or a rejection.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from hapax.grammar.terms import Value
from hapax.kb.records import NO_USABLE_REPLY
from hapax.llm_oracle.protocols import NOTHING_KNOWN, CriticScore, Usage

LONGEST_VALUE = 64
"""Characters. LINK rejects longer values."""

LONGEST_LINE = 400
"""Characters of a line that are read and kept as `raw`. A longer line cannot be one short value."""

MOST_LINES = 9_999
"""Lines of a reply that are read, and most values that a call may ask for: list numbers have up to four digits."""

# `1. basil`, `2)basil`, `(3) basil`, `- basil`. Before a digit only with a blank: `1.5` is a number.
_NUMBERING = re.compile(r"\(?\d{1,4}[.)]\s*(?=[^\d\s])|\(?\d{1,4}[.)]\s+(?=\d)|[-*•]\s+(?=\S)")
_BARE_NUMBER = re.compile(r"\d{1,4}[.)]")
_PARENTHESES = re.compile(r"\s*\([^()]*\)")
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "`": "`", "*": "*"}
_LONE_QUOTES = '"“”„«»'
_ARTICLE = re.compile(r"(?:an?|the)\s+(?=\S)", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
"""Invisible characters without meaning, which would make two values of one."""

# They reorder the text on the screen, so that a value would not read as it is stored.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# `about 1,200`, `the year 1876`, `−3.5 kg`, `44 BC`; `parse_number` decides on the unit.
_NUMBER = re.compile(
    r"(?:(?:about|around|approximately|roughly|circa|c\.|ca\.|in|the\s+year|year)\s+)*"
    r"(?P<sign>[-+\u2212]?)(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?P<decimals>\.[0-9]+)?"
    r"(?:\s+(?P<unit>[^\W\d_][\w.\s]*))?",
    re.IGNORECASE,
)
_BEFORE_CHRIST = frozenset({"bc", "bce"})
_NEUTRAL_UNITS = frozenset({"ad", "ce", "years", "years old"})

_YES = frozenset({"yes", "true", "right", "correct"})
_NO = frozenset({"no", "false", "wrong", "incorrect"})
_NEGATION = re.compile(r"\bnot\b|n['’]t\b", re.IGNORECASE)

VERDICT_WORDS = (
    "yes/no",
    "true/false",
    "ja/nein nee nej nei",
    "oui/non",
    "sí sì si/no",
    "sim/não nao",
    "да/нет не",
    "так/ні",
    "tak/nie",
    "ano áno/ne nie",
    "igen/nem",
    "da/nu",
    "evet/hayır",
    "kyllä joo/ei",
    "ναι/όχι",
    "是 对 對 正确 正確/否 不 错 錯",
    "はい ええ 正しい/いいえ いえ 誤 正しく",
    "네 예 맞습니다 맞아요/아니 틀",
    "نعم/لا",
    "כן נכון/לא",
    "हाँ हां/नहीं",
    "có đúng/không sai",
    "ya benar/tidak salah",
    "ใช่/ไม่",
)
"""Words of yes and of no, language by language; a model answers in the one of a question, or in its own."""


@dataclass(frozen=True, slots=True)
class ParsedValue:
    """A line of a reply. `rejected`: why it is not a value; `value` is then the partially cleaned text."""

    value: Value
    raw: str
    position: int
    """Index of the line among the non-blank lines of the reply."""
    rejected: str | None = None


class _Rejected(Exception):  # noqa: N818  # not an error: it ends the chain of clean-up steps
    """The remainder of a line, and the reason why it is no value."""


def parse_values(text: str, variable: str, data_type: str, numeric: bool = False) -> list[ParsedValue]:
    """Parse every non-blank line of a reply into a value or a rejection, in order.

    `numeric`: the data type descends from Number, so only numbers are values. A repeated value, in any case, is
    rejected.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    parsed: list[ParsedValue] = []
    first_positions: dict[Value, int] = {}
    numbered = False
    for position, line in enumerate(lines[:MOST_LINES]):
        item = _parsed_line(line, position, variable, data_type, numeric)
        # `7.` is a value of a numeric type, unless the list is numbered and this is an item without a value.
        if _BARE_NUMBER.fullmatch(line) and (numbered or line[:-1] == str(position + 1)):
            item = ParsedValue("", line, position, "is a list number without a value")
        numbered = numbered or _NUMBERING.match(line) is not None
        if item.rejected is None:
            key = item.value.casefold() if isinstance(item.value, str) else item.value
            earlier = first_positions.setdefault(key, position)
            if earlier != position:
                item = ParsedValue(item.value, item.raw, position, f"repeats line {earlier + 1}")
        parsed.append(item)
    if len(lines) > MOST_LINES:
        reason = f"{len(lines) - MOST_LINES} lines after the first {MOST_LINES} were not read"
        parsed.append(ParsedValue("", _shortened(lines[MOST_LINES]), MOST_LINES, reason))
    return parsed


def render_values(values: Sequence[Value]) -> str:
    """Write values as the numbered list that the prompts ask for; `parse_values` is the inverse."""
    return "\n".join(f"{number}. {value}." for number, value in enumerate(values, 1))


def without_numbering(line: str) -> str:
    """A list item without its `12. `, `12) ` or dash."""
    match = _NUMBERING.match(line)
    return line[match.end() :] if match else line


def first_items(text: str, count: int | None) -> str | None:
    """The text up to its `count`-th complete item; None if it has fewer, or if no list was asked for.

    Items are the lines with a list mark if there are any. Data and reasoning have no items to count.
    """
    if text.lstrip().startswith(("{", "[", "`", "|", "<")) or "</think>" in text:
        return None
    end = 0
    finished = 0
    lines = text.split("\n")[:-1]  # the last line may still be going on
    is_marked = any(_NUMBERING.match(line.strip()) for line in lines)
    for line in lines:
        if finished == count:
            break
        end += len(line) + 1
        finished += bool(_NUMBERING.match(line.strip())) if is_marked else is_entry(line)
    return text[:end] if finished == count else None


def is_entry(line: str) -> bool:
    """True for a line that can be an item: neither blank nor an introduction such as `The answer is:`."""
    return bool(line.strip()) and not line.rstrip().endswith(":")


def without_values(text: str, excluded: Sequence[str], data_type: str = "Number") -> str:
    """The text without the lines that state an excluded value, in any case; numbers, in any form.

    `data_type`: its words are units, so `5 kilograms` states 5 if Kilograms are asked for.
    """
    texts = {" ".join(unicodedata.normalize("NFC", value).split()).casefold() for value in excluded if value.strip()}
    numbers = {parse_number(value, data_type) for value in excluded} - {None}
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not _states(line.strip(), texts, numbers, data_type))


def _states(line: str, texts: Collection[str], numbers: Collection[Value | None], data_type: str) -> bool:
    """True if a line is parsed as one of the texts or one of the numbers."""
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
    """The number that a text states; None if it does not state exactly one.

    Commas may group thousands. Words of the data type count as its unit (`5 kilograms` for Kilograms); with any other
    unit, or a factor such as `million`, the text is not a number. Years before Christ are negative.
    """
    # Long runs of digits would make a Decimal of any size.
    if len(text) > LONGEST_VALUE:
        return None
    match = _NUMBER.fullmatch(text.strip().rstrip("."))
    if match is None:
        return None
    unit = " ".join((match["unit"] or "").casefold().replace(".", "").split())
    if unit and unit not in _BEFORE_CHRIST | _NEUTRAL_UNITS | _unit_words(data_type):
        return None
    # A minus sign and BC cancel out.
    negative = (match["sign"] in ("-", "\u2212")) != (unit in _BEFORE_CHRIST)
    size = Decimal(match["whole"].replace(",", "") + (match["decimals"] or ""))
    return _shortest(size.copy_negate() if negative else size)


def parse_yes_no(text: str) -> bool | None:
    """The verdict of a free answer: its first word if that is one, else its only verdict word, else None."""
    text = _json_value(text)[:LONGEST_LINE]
    words = re.findall(r"[^\W\d_]+", text.casefold())
    if not words:
        return None
    for verdict, vocabulary in ((True, _YES), (False, _NO)):
        if words[0] in vocabulary:
            return verdict
    # `Antwort: Nein`
    for begin in (text, text.replace("：", ":").partition(":")[2]):
        said = [spoken_verdict(begin, languages) for languages in VERDICT_WORDS]
        if any(verdict is not None for verdict in said):
            return next(verdict for verdict in said if verdict is not None)
    verdicts = {word in _YES for word in words if word in _YES | _NO}
    # With a negation somewhere, a single verdict word may mean its opposite: `That is not correct`.
    return verdicts.pop() if len(verdicts) == 1 and not _NEGATION.search(text) else None


def _json_value(text: str) -> str:
    """The verdict of `{"correct": false}`, which is not in its name; any other text as it is."""
    begin, end = text.find("{"), text.rfind("}")
    if not 0 <= begin < end <= LONGEST_LINE:
        return text
    with suppress(ValueError, RecursionError):
        read = json.loads(text[begin : end + 1])
        values = [value for value in read.values() if isinstance(value, bool | str)] if isinstance(read, dict) else []
        return " ".join(str(value) for value in sorted(values, key=lambda value: isinstance(value, str)))
    return text


def spoken_verdict(text: str, languages: str) -> bool | None:
    """The verdict of a text that begins with yes or no, by an entry of `VERDICT_WORDS`; None if it does not."""
    said = unicodedata.normalize("NFC", text).casefold().lstrip(_BEFORE_WORDS)
    for verdict, words in zip((True, False), languages.split("/"), strict=True):
        for word in words.split():
            following = said[len(word) : len(word) + 1]
            is_whole = not following.isalnum() and not unicodedata.category(following or " ").startswith("M")
            # Scripts without capitals may go on without a blank.
            if said.startswith(word) and (is_whole or word == word.upper()):
                return verdict
    return None


_BEFORE_WORDS = " \t\r\n\"'`*_#>([{-–—:.,!¡¿«»„“”‘’「」『』【】（："
"""Blanks and marks that may stand before the word of an answer."""


# A line end, or the comma in `1. yes, 2. no` and `{"1": "yes", "2": "no"}`.
_VERDICT_END = re.compile(r"\n|,\s*(?=\W{0,3}\d{1,3}[.):\"])")
# `3. Yes`, `**3:** no`, `(3) Yes, it is.`
_NUMBERED_VERDICT = re.compile(r"\W*(\d{1,3})\W+(.*)")


def numbered_verdicts(text: str, count: int) -> list[bool | None]:
    """The verdicts of an answer's numbered lines on so many claims; None for a claim of which no line says anything."""
    verdicts: list[bool | None] = [None] * count
    for line in _VERDICT_END.split(text)[:MOST_LINES]:
        found = _NUMBERED_VERDICT.match(line[:LONGEST_LINE])
        place = int(found[1]) - 1 if found else -1
        if found and 0 <= place < count and verdicts[place] is None:
            verdicts[place] = parse_yes_no(found[2])
    return verdicts


LEAST_MASS_OF_PROBE = 0.5
"""Probability of yes and no together from which a model counts as answering by its first token: it is likelier to do so
than to begin in another way, such as with a thought."""

LEAST_MASS = 0.1
"""Probability of yes and no together below which a first token is no answer. A model that answers in this way may
hesitate, but what it says once in ten times is not what it says; the ratio of two tiny numbers is noise."""


@dataclass(frozen=True, slots=True)
class FirstToken:
    """P(yes) by the likeliest first tokens of an answer. `mass`: the probability of yes and no together."""

    probability: float
    mass: float

    @classmethod
    def of_logits(cls, yes: Sequence[float], no: Sequence[float], total: float) -> FirstToken:
        """By the logits of the spellings of yes and no, and the log of the sum over the whole vocabulary."""
        mass = math.exp(min(0.0, _log_sum((*yes, *no)) - total))
        return cls(yes_probability(yes, no), mass)

    def score(self, usage: Usage) -> CriticScore:
        """The score of a claim, or why it has none."""
        if self.mass >= LEAST_MASS:
            return CriticScore(self.probability, usage)
        reason = f"{NO_USABLE_REPLY}the answer begins with yes or no with a probability of {self.mass:.2g} only"
        return CriticScore(NOTHING_KNOWN, usage, reason)


KNOWN_CLAIM = "Paris is the capital of France."
KNOWN_FALSEHOOD = "Paris is the capital of Spain."


def tells_apart(words: str, judged: Callable[[str], FirstToken | None]) -> bool:
    """True if a critic answers in these words, and finds a known claim likelier than a known falsehood."""
    true = judged(KNOWN_CLAIM)
    # Yes must be seen in a language that no question has.
    is_seen = true is not None and (words == VERDICT_WORDS[0] or true.probability > 0.5)
    if true is None or not is_seen or true.mass < LEAST_MASS_OF_PROBE:
        return False
    false = judged(KNOWN_FALSEHOOD)
    return false is not None and false.mass >= LEAST_MASS_OF_PROBE and true.probability > false.probability


def yes_probability(yes: Sequence[float], no: Sequence[float]) -> float:
    """P(yes): softmax over the logits (or log-probabilities) of the spellings of yes and no alone."""
    difference = _log_sum(no) - _log_sum(yes)
    # Two forms of the same value: `exp` gets no positive argument, so that it cannot overflow.
    return 1 / (1 + math.exp(difference)) if difference < 0 else math.exp(-difference) / (1 + math.exp(-difference))


def _log_sum(logits: Sequence[float]) -> float:
    top = max(logits)  # subtracted, so that exp cannot overflow
    return top + math.log(sum(math.exp(logit - top) for logit in logits))


def _parsed_line(line: str, position: int, variable: str, data_type: str, numeric: bool) -> ParsedValue:
    raw = _shortened(line)
    try:
        item = _list_item(line)
        value: Value = _number(item, data_type) if numeric else _text(item)
        _reject_echo(str(value), variable, data_type)
    except _Rejected as rejection:
        remainder, reason = rejection.args
        return ParsedValue(remainder, raw, position, reason)
    return ParsedValue(value, raw, position)


def _list_item(line: str) -> str:
    """The line without numbering, quotes and full stop."""
    if len(line) > LONGEST_LINE:
        raise _Rejected("", f"has {len(line)} characters, more than {LONGEST_VALUE}")
    # NFC, so that an accented letter has one form, whether it was written as one or as two characters.
    item = without_numbering(_unquoted(unicodedata.normalize("NFC", _INVISIBLE.sub("", line))))
    if any(unicodedata.category(c) in ("Cc", "Cs") or c in _BIDI_CONTROLS for c in item):
        raise _Rejected("", "holds a control character")
    if not item.rstrip(_LONE_QUOTES + "'’`*").endswith("."):
        raise _Rejected(item, "does not end in a full stop")
    if item.endswith("..."):
        raise _Rejected(item, "trails off")
    # Quotes may stand outside the full stop or inside it.
    return _unquoted(_unquoted(item).removesuffix(".").strip())


def _text(item: str) -> str:
    """Apply LINK's rejections and cuts, in LINK's order."""
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
    # Before any cut, because a comma may group thousands.
    for reading in (item, _without_parentheses(item), _after_label(item)):
        number = parse_number(reading, data_type)
        if number is not None:
            return number
    raise _Rejected(item[:LONGEST_VALUE], f"is not a number, and {data_type} is numeric")


def _reject_echo(value: str, variable: str, data_type: str) -> None:
    """Reject a value that names the variable, as LINK does, or the data type.

    `Vitamin B` does not name the variable B; the slot `[B]` does.
    """
    name = re.escape(variable)
    if re.fullmatch(name, value) or re.search(rf"\[{name}\]|^{name}\s*(?:=|is\b|are\b)|\bvalues? of {name}\b", value):
        raise _Rejected(value, f"names the variable {variable}")
    bare = _ARTICLE.sub("", value, count=1) if _ARTICLE.match(value) else value
    if " ".join(bare.casefold().split()) == " ".join(data_type.casefold().split()):
        raise _Rejected(value, f"repeats the data type {data_type}")


def _unquoted(text: str) -> str:
    """Remove surrounding quotes or asterisks, and a lone double quote at either end."""
    text = text.strip()
    while len(text) > 1 and _PAIRS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text.strip(_LONE_QUOTES).strip()


def _without_parentheses(text: str) -> str:
    """Remove text in parentheses, nested ones too; an unclosed one removes the rest of the text."""
    shorter = _PARENTHESES.sub("", text)
    while shorter != text:
        text, shorter = shorter, _PARENTHESES.sub("", shorter)
    return text.split("(")[0].replace(")", "").strip()


def _after_label(text: str) -> str:
    """The text after `:` or ` - `, before which a model may have explained."""
    return text.rsplit(":", 1)[-1].rsplit(" - ", 1)[-1].strip()


def _unit_words(data_type: str) -> frozenset[str]:
    words = data_type.casefold().split()
    return frozenset((*words, *(word.removesuffix("s") for word in words)))


def _shortest(number: Decimal) -> int | Decimal:
    """The unique form of a number: an integer if it is one, else a decimal without trailing zeros."""
    whole = number.to_integral_value()
    return int(whole) if number == whole else Decimal(format(number, "f").rstrip("0"))


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
