"""Takes the number out of an entry of a reply: from digits of any script, with its unit, out of a sentence."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from itertools import pairwise

from hapax.grammar.terms import Value
from hapax.llm_oracle.answers import parse_number
from hapax.llm_oracle.reply_prose import LEAD_IN, first_sentence, in_template, sentences, without_opening
from hapax.llm_oracle.reply_question import ReplyQuestion, stems

_UNITS = {
    "kg": "kilogram", "g": "gram", "mg": "milligram", "km": "kilometer", "m": "meter", "cm": "centimeter", "l": "liter",
    "mm": "millimeter", "mi": "mile", "ft": "foot", "lb": "pound", "lbs": "pound", "s": "second", "min": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "yr": "year", "yrs": "year", "kmh": "kilometer", "ml": "milliliter",
    "t": "tonne", "ha": "hectare", "w": "watt", "kw": "kilowatt", "v": "volt", "hz": "hertz", "k": "kelvin",
    "feet": "foot", "metre": "meter", "kilometre": "kilometer", "centimetre": "centimeter", "litre": "liter",
    "percent": "percentage", "sq": "square", "c": "celsius", "f": "fahrenheit",
}  # fmt: skip
_QUANTITY_TYPES = frozenset(
    [
        "height", "length", "width", "depth", "distance", "altitude", "elevation", "size", "diameter", "radius", "area",
        "volume", "weight", "mass", "speed", "velocity", "temperature", "duration", "time", "age", "lifespan", "span",
        "price", "cost", "capacity", "range", "power", "voltage", "frequency", "energy", "density", "pressure",
    ]
)  # fmt: skip
"""Data types of quantities that may be measured in more than one unit."""
# `12 345 678`, whatever kind of blank separates the groups.
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[ '’\u00a0\u2009\u202f]\d{3})+(?!\d)")
_SIGNS = {
    "km/h": " kilometers per hour",
    "mph": " miles per hour",
    "m/s": " meters per second",
    "°C": " celsius",
    "° C": " celsius",
    "°F": " fahrenheit",
    "° F": " fahrenheit",
    "%": " percent",
    "°": " degrees ",
    "²": " square",
    "′": " feet",
    "€": " euro",
    "£": " pound",
}
_FURTHER_UNITS = frozenset(
    [
        "day", "week", "month", "inch", "yard", "ton", "ounce", "oz", "dollar", "euro", "usd", "eur", "degree", "acre",
        "knot", "bar", "pascal", "joule", "newton", "cubic", "nautical", "metric", "light",
    ]
)  # fmt: skip
_FACTORS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_DIMENSIONS = frozenset(
    [
        "tall",
        "long",
        "high",
        "deep",
        "wide",
        "old",
        "away",
        "in",
        "length",
        "height",
        "width",
        "depth",
        "of",
        "above",
        "sea",
        "level",
        "per",
        "people",
        "inhabitants",
        "residents",
        "total",
    ]
)

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = dict(
    zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10), strict=True)
)
_WORDS = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<ones>{'|'.join(_ONES[1:10])}))?|(?P<small>{'|'.join(_ONES)}))\b",
    re.IGNORECASE,
)

_SIZE = r"[-−+]?\d[\d,]*(?:\.\d+)?"
# `1876 by Bell`, `44 BC, in`, `6 (six)`: a number with a clause behind it.
_LEADING = re.compile(
    rf"(?P<number>{_SIZE})(?![\d.,]*\d)(?P<bc>\s+BC(?:E)?\b)?\s*(?:[,.;(–—]|by\b|in\b|when\b|and\b|after\b|with\b|$)"
)
# `about 3.5 million km`.
_QUANTITY = re.compile(
    rf"(?P<number>(?:(?:about|around|approximately|roughly|circa|c\.|ca\.|exactly|just|nearly|almost)\s+)*{_SIZE})"
    rf"(?:\s*(?P<factor>{'|'.join(_FACTORS)})\b)?(?:[\s-]*(?P<unit>[^\W\d_].*))?",
    re.IGNORECASE,
)
# The numbers with units in `13,325 ft (4,062 m)`.
_MEASURED = re.compile(
    rf"(?<![\w.,–-])(?P<number>{_SIZE})(?:\s*(?P<factor>{'|'.join(_FACTORS)})\b)?[\s-]*(?P<unit>[^\W\d_]{{1,20}})",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",?\s+(?:while|whereas|but|although|though|compared)\s.*$", re.DOTALL)
"""The clause of a sentence that states another number, for something else."""
_REASON = re.compile(r",?\s+(?:because|due\s+to|owing\s+to|since|when|during|as\s+a\s+result)\b.*$", re.DOTALL)
"""The clause that gives the reason or the time behind numbers."""
_ABOUT = re.compile(
    r"^(?:(?:about|around|approximately|roughly|circa|c\.|ca\.|exactly|just|nearly|almost|up\s+to)\s+)+", re.IGNORECASE
)
_STATED = re.compile(rf"^[^\d]{{3,150}}\b(?:is|was|are|were|equals)\s+(?P<number>{_SIZE})\W*$")
"""A sentence that ends in its only number: `The number of faces is 6.`"""
# `5-10`, `5 kg to 10 kg`, `5 or 6`.
_RANGE = re.compile(
    rf"{_SIZE}(?:\s*[^\W\d_]{{1,20}}\.?)?\s*(?:[-–—]|\bto\b|\bor\b|\band\b)\s*{_SIZE}(?!\w*[a-z]{{2}}\s+[a-z])(?![-–/.]\d)",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")
# `more than 5`, `at least 3`, `> 4`, `over 9`.
_BOUND = re.compile(
    r"[<>≥≤]|\b(?:(?:more|less|fewer|greater|higher|lower|larger|older|longer|taller)\s+than|at\s+(?:least|most)|"
    r"(?:over|under|above|below|beyond)\s+(?=\d)|between)\b",
    re.IGNORECASE,
)
# `1876` and `-753`, but neither `1990s` nor a part of `12345` or `1,876`.
_YEAR = re.compile(r"(?:(?<![\d.,])-)?(?<![\d.,])\d{3,4}(?![\d.,]*\d)(?!s)")
_ERA_BEFORE = re.compile(r"\b(?:AD|A\.D\.|CE)\s+(?=\d)")
_BEFORE_CHRIST = re.compile(r"(?<![\d.,-])(?P<year>\d[\d,]*)\s*(?:B\.C\.E\.|BCE|B\.C\.|BC)(?!\w)")
_HEDGES_BEFORE = re.compile(
    r"\b(?:about|around|approximately|roughly|circa|ca\.|c\.|exactly|just|nearly|almost)\s+(?=\d)", re.IGNORECASE
)
# A colon, an arrow, or a dash with a blank beside it; the hyphen of `a-b` is none.
_BREAK = re.compile(r"\s*[:：]\s*|\s*——?\s*|\s+[-–−=→]+>?\s+|\s*–\s+|\s+–\s*|\t+")
_PARENTHESES = re.compile(r"\s*[(（][^()（）]*[)）]")
_BOLD = re.compile(r"(?P<sign>\*\*|__)(?P<text>.+?)(?P=sign)")
_EDGES = " \t!,;،؛，；、。।.\"'“”‘’«»*_`$€£¥ "


def number_in(text: str, question: ReplyQuestion) -> Value | None:
    """The number that an entry states; None if it states none or a range."""
    plain = _signed(ascii_digits(text.replace("**", "").replace("__", ""))).strip().strip("*_$`")
    first = _ASIDE.sub("", without_opening(first_sentence(plain)))
    bold = _BOLD.match(text)
    first = _spelled(first) if not re.search(r"\d", _PARENTHESES.sub("", first)) else first
    readings = [first, *_slot_readings(first, question), *_slot_readings(_PARENTHESES.sub("", first), question)]
    readings.append(_signed(ascii_digits(bold["text"])).rstrip(":") if bold else "")
    readings += _broken(first)
    for reading in readings:
        number = stated_number(reading, question)
        if number is not None:
            return number
    for reading in (first, _PARENTHESES.sub("", first)):
        measured = _measured(reading, question)
        if measured is not None:
            return measured
    emphasised = _BOLD.findall(text) if text.count("**") == 2 else []
    if (
        len(emphasised) == 1
        and (number := stated_number(_signed(ascii_digits(emphasised[0][1])), question)) is not None
    ):
        return number
    counted = _counted(first, question)
    if counted is not None:
        return counted
    computed = re.search(rf"=\s*({_SIZE})(?:\s+[^\W\d_]+)?\W*$", first)
    if computed:
        return parse_number(computed[1])
    stated = _STATED.search(_PARENTHESES.sub("", first))
    if stated and not _BOUND.search(first):
        return parse_number(stated["number"])
    # Years of birth and death in parentheses are of another statement.
    years = _YEAR.findall(_PARENTHESES.sub("", first)) or _YEAR.findall(first_sentence(plain))
    return parse_number(years[0]) if "year" in question.type_words and len(set(years)) == 1 else None


def _counted(text: str, question: ReplyQuestion) -> Value | None:
    """The only number that stands before the noun behind the slot, whatever the subject: `Most cats have 18 toes`."""
    behind = re.findall(r"[^\W\d_]{3,}", question.sentence.partition(f"[{question.variable}]")[2])[:1]
    if not behind or "year" in question.type_words or _BOUND.search(text) or _RANGE.search(text):
        return None
    noun = re.escape(behind[0].removesuffix("s"))
    plain = _WORDS.sub(_from_words, _HEDGES_BEFORE.sub("", _PARENTHESES.sub("", text)))
    numbers = set(re.findall(rf"(?<![\w.,])({_SIZE})\s+(?:[a-z]+\s+)?{noun}", plain))
    return parse_number(numbers.pop()) if len(numbers) == 1 else None


def _signed(text: str) -> str:
    """The text with years before Christ as negative numbers, and no word of approximation before a number."""
    text = _HEDGES_BEFORE.sub("", _ERA_BEFORE.sub("", text))
    return _BEFORE_CHRIST.sub(r"-\g<year>", text)


def numbers_listed(text: str, question: ReplyQuestion) -> list[str]:
    """The parts of a line that lists numbers with commas or `and`; empty if a part is none."""
    plain = re.sub(r"[{}\[\]$]", "", ascii_digits(text.replace("**", "")))
    slot = in_template(plain, question)
    lead = re.fullmatch(r"[^:]{0,120}(?::|\b(?:are|were|include|includes)\b)\s*(?P<rest>[-−\d].*)", plain)
    repeated = _repeated(plain, question) or _years(plain, question)
    if repeated:
        return repeated
    for reading in (plain, slot and _REASON.sub("", slot), lead["rest"] if lead else None):
        parts = [part for part in re.split(r"\s*(?:,\s+and\s+|;\s*|,\s+|\s+and\s+|\s+or\s+)", reading or "") if part]
        numbers = [stated_number(part, question) for part in parts]
        if len(parts) > 1 and all(number is not None for number in numbers):
            return [part.rstrip(".") for part in parts] if not re.search(r"\bbetween\b", plain) else []
    return []


def _repeated(text: str, question: ReplyQuestion) -> list[str]:
    """The numbers of clauses that repeat the words before the slot: `One began in 1914, and another began in 1939`."""
    head = question.sentence.partition(f"[{question.variable}]")[0].split()[-2:]
    if len(head) < 2:
        return []
    numbers = re.findall(rf"\b{re.escape(' '.join(head))}\s+({_SIZE})(?![\w.,]*\d)", text, re.IGNORECASE)
    return numbers if len(set(numbers)) > 1 and len(set(numbers)) == len(set(_DIGITS.findall(text))) else []


_BETWEEN_YEARS = re.compile(r"(?:\s|[,;]|\b(?:and|or|in|then|later|again|also|finally|lastly|both|once\s+more)\b)+")
"""The words between the years of a list."""


def _years(text: str, question: ReplyQuestion) -> list[str]:
    """The years of a sentence about the question that lists them: `It won twice: first in 1958, then in 1962`."""
    is_about = len(stems(text) & question.known_stems) > 1 and "year" in question.type_words
    matches = list(_YEAR.finditer(text))
    gaps = [text[match.end() : following.start()] for match, following in pairwise(matches)]
    if len(matches) < 2 or not is_about or not all(map(_BETWEEN_YEARS.fullmatch, gaps)) or len(sentences(text)) > 1:
        return []
    return [match.group() for match in matches] if len(matches) == len(_DIGITS.findall(text)) else []


def _slot_readings(text: str, question: ReplyQuestion) -> list[str]:
    """The slot of the template in a text, and the text after `the answer is`, as far as they state a number."""
    readings: list[str] = []
    slot = in_template(text, question)
    if slot is not None:
        measured = _MEASURED.match(_ABOUT.sub("", _spelled(slot)))
        if measured and _names(measured["unit"].casefold()) & _wanted(question) and not _RANGE.match(slot):
            readings.append(measured.group())
        slot = _ABOUT.sub("", slot)
        leading = _LEADING.match(slot)
        readings += [slot, f"{leading['number']}{leading['bc'] or ''}".rstrip(",") if leading else slot]
    lead = LEAD_IN.fullmatch(text) or re.fullmatch(r"(?:it|that)(?:\s+(?:is|was)|['’]s)\s+(?P<rest>.+)", text, re.I)
    if lead:
        leading = _LEADING.match(lead["rest"])
        readings += [lead["rest"], f"{leading['number']}{leading['bc'] or ''}".rstrip(",") if leading else ""]
    leading = _LEADING.match(text)
    if leading and re.match(r"\s*[,;(]", text[leading.end("bc") if leading["bc"] else leading.end("number") :]):
        readings.append(f"{leading['number']}{leading['bc'] or ''}")
    return [reading for reading in readings if not _RANGE.match(reading)]


def _broken(text: str) -> list[str]:
    """The parts before and after a separator; none of a range."""
    match = _BREAK.search(text)
    if match is None or _RANGE.match(text):
        return []
    left, right = text[: match.start()], text[match.end() :]
    following = _BREAK.search(right)
    return [left, right, right[: following.start()] if following else right] if left.strip() else []


def stated_number(text: str, question: ReplyQuestion) -> Value | None:
    """The number that a text is, with the unit of the data type or without one."""
    text = _PARENTHESES.sub("", _spelled(text)).strip().strip(_EDGES).lstrip("~≈ ")
    number = parse_number(text, question.data_type)
    if number is not None:
        return number
    match = _QUANTITY.fullmatch(text)
    if match is None or (match["unit"] and not _fits(match["unit"], question)):
        return None
    return _scaled(match["number"], match["factor"], question)


def _from_words(match: re.Match[str]) -> str:
    if match["small"]:
        return str(_ONES.index(match["small"].casefold()))
    return str(_TENS[match["tens"].casefold()] + (_ONES.index(match["ones"].casefold()) if match["ones"] else 0))


def _spelled(text: str) -> str:
    """The text with the names of signs, and with digits if its only numbers are words: `eight legs`."""
    if not any(map(str.isdigit, _PARENTHESES.sub("", text))):
        text = _WORDS.sub(_from_words, _PARENTHESES.sub("", text))
    text = _THOUSANDS.sub(lambda match: re.sub(r"[\s'’]", "", match.group()), text)
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    return text


def _scaled(number: str, factor: str | None, question: ReplyQuestion) -> Value | None:
    """The number times its factor, unless the data type counts in this factor."""
    size = parse_number(number)
    name = (factor or "").casefold()
    if size is None or name not in _FACTORS or {name, f"{name}s"} & question.type_words:
        return size
    return parse_number(format(Decimal(size) * _FACTORS[name], "f"))


def _names(word: str) -> set[str]:
    """The forms in which a unit may stand in a data type or behind the slot."""
    word = re.sub(r"(met|lit)re(?=s?$)", r"\1er", word)
    singular = word.removesuffix("s")
    return {word, singular, _UNITS.get(word, word), _UNITS.get(singular, singular)}


def _wanted(question: ReplyQuestion) -> set[str]:
    """The units in which the question wants its number: those of its data type and directly behind the slot."""
    behind = question.sentence.partition(f"[{question.variable}]")[2].casefold().split()
    wanted = set(question.type_words)
    if wanted & _QUANTITY_TYPES:  # the question names no unit, so that the reply's own is taken
        wanted |= _UNITS.keys() | set(_UNITS.values()) | _FURTHER_UNITS
    for word in (*question.type_words, *behind[:2]):
        if word not in _DIMENSIONS:
            wanted |= _names(word)
    return wanted


def _fits(unit: str, question: ReplyQuestion) -> bool:
    """True if a text behind a number is the unit of the data type, or stands in the template behind the slot."""
    after = question.sentence.partition(f"[{question.variable}]")[2].casefold().split()
    allowed = _wanted(question) | set(after) | _DIMENSIONS
    words = unit.casefold().replace(".", "").split()
    if not re.search(r"[a-zà-ÿ]", unit.casefold()):
        return len(words) == 1  # a unit in another script than the question's
    own = [word for word in words if word not in _DIMENSIONS] or words
    return all(_names(word) & allowed for word in own) and len(words) <= 6


def _measured(text: str, question: ReplyQuestion) -> Value | None:
    """The only number in a text that bears a unit of the data type: `13,325 ft (4,062 m)`."""
    if "year" in question.type_words:
        return None  # `eight years apart`
    text = _spelled(text)
    wanted = _wanted(question)
    units = wanted | _UNITS.keys() | set(_UNITS.values())
    with_unit = 0
    values: set[tuple[str, str | None]] = set()
    end = 0
    for match in _MEASURED.finditer(text):
        names = _names(match["unit"].casefold())
        with_unit += bool(names & units)
        if names & wanted:
            values.add((match["number"], match["factor"]))
            end = match.end()
    if with_unit < len(_DIGITS.findall(text)) or _RANGE.search(text[:end]) or _BOUND.search(text):
        return None  # a range, a bound, or another number
    if len(values) != 1:
        return None
    number, factor = values.pop()
    return _scaled(number, factor, question)


def ascii_digits(text: str) -> str:
    """The text with the digits of all scripts as 0 to 9, and the Arabic separators as point and comma."""
    plain = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    return plain.replace("٫", ".").replace("٬", ",")
