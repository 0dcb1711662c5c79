"""Takes the number out of an entry of a reply: from digits of any script, with its unit, out of a sentence."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from hapax.grammar.terms import Value
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.reading.reply_question import ReplyQuestion
from hapax.llm_oracle.reading.reply_sentences import in_slot, sentences, without_opening

_FACTORS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_UNITS = {
    "kg": "kilogram", "g": "gram", "mg": "milligram", "km": "kilometer", "m": "meter", "cm": "centimeter", "l": "liter",
    "mm": "millimeter", "mi": "mile", "ft": "foot", "lb": "pound", "lbs": "pound", "s": "second", "min": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "yr": "year", "yrs": "year", "ml": "milliliter", "t": "tonne",
    "ha": "hectare", "w": "watt", "kw": "kilowatt", "v": "volt", "hz": "hertz", "k": "kelvin", "feet": "foot",
    "percent": "percentage", "sq": "square", "c": "celsius", "f": "fahrenheit", "inches": "inch",
}  # fmt: skip
_ALL_UNITS = frozenset((*_UNITS, *_UNITS.values())) | frozenset(
    [
        "day",
        "week",
        "month",
        "yard",
        "ton",
        "ounce",
        "oz",
        "dollar",
        "euro",
        "usd",
        "eur",
        "degree",
        "acre",
        "knot",
        "bar",
        "pascal",
        "joule",
        "newton",
        "cubic",
        "nautical",
        "light",
    ]
)  # fmt: skip
# Data types of quantities that may be measured in more than one unit, and words behind a unit that do not change it.
_QUANTITY_TYPES = frozenset(
    [
        "height",
        "length",
        "width",
        "depth",
        "distance",
        "altitude",
        "elevation",
        "size",
        "diameter",
        "radius",
        "area",
        "volume",
        "weight",
        "mass",
        "speed",
        "velocity",
        "temperature",
        "duration",
        "time",
        "age",
        "lifespan",
        "span",
        "price",
        "cost",
        "capacity",
        "range",
        "power",
        "voltage",
        "frequency",
        "energy",
        "density",
        "pressure",
    ]
)  # fmt: skip
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
)  # fmt: skip
_SIGNS = {
    "km/h": " kilometers per hour", "mph": " miles per hour", "m/s": " meters per second", "°C": " celsius",
    "°F": " fahrenheit", "%": " percent", "°": " degrees ", "²": " square", "′": " feet", "€": " euro", "£": " pound",
    "٫": ".", "٬": ",", "**": "", "__": "",
}  # fmt: skip
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
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMERALS = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<ones>{'|'.join(_ONES[1:10])}))?|(?P<small>{'|'.join(_ONES)}))\b",
    re.IGNORECASE,
)
_SIZE = r"[-−+]?\d[\d,]*(?:\.\d+)?"
# `12 345 678`, whatever kind of blank separates the groups.
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[ '’\u00a0\u2009\u202f]\d{3})+(?!\d)")
_HEDGES = re.compile(
    r"\b(?:about|around|approximately|approx\.|roughly|circa|ca\.|c\.|exactly|just|nearly|almost|up\s+to|AD|A\.D\.|"
    r"CE)\s+(?=\d)|[~≈]\s*|"
    r"[$€£¥]\s*(?=\d)",
    re.IGNORECASE,
)
# `5-10`, `5 kg to 10 kg`, `5 or 6`; `more than 5`, `at least 3`, `> 4`, `over 9`.
_RANGE = re.compile(
    rf"{_SIZE}(?:\s*[^\W\d_]{{1,20}}\.?)?\s*(?:[-–—]|\bto\b|\bor\b|"
    rf"\band\b)\s*{_SIZE}(?!\w*[a-z]{{2}}\s+[a-z])(?![-–/.]\d)",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"[<>≥≤]|\b(?:(?:more|less|fewer|greater|higher|lower|larger|older|longer|taller)\s+than|at\s+(?:least|most)|"
    r"(?:over|under|above|below|beyond)\s+(?=\d)|between)\b",
    re.IGNORECASE,
)
# A number with a clause behind it: `1876 by Bell`, `6 (six)`.
_LEADING = re.compile(
    rf"(?P<number>{_SIZE})(?![\d.,]*\d)(?=\s*(?:[,.;:(–—]|-\s|(?:by|in|when|and|after|with|as|because)\b|$))"
)
_MEASURED = re.compile(
    rf"(?<![\w.,–-])(?P<number>{_SIZE})(?:\s*(?P<factor>{'|'.join(_FACTORS)})\b)?(?:[\s-]*(?P<unit>[^\W\d_]{{1,20}}))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:(?<![\d.,])-)?(?<![\d.,])\d{3,4}(?![\d.,]*\d)(?!s)")
_EDGES = " \t!,;،؛，；、。।.\"'“”‘’«»*_`$ "


def plain_numbers(text: str) -> str:
    """The text with ASCII digits, negative years before Christ and no hedges; number words as digits if it has none."""
    text = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    text = _HEDGES.sub("", _THOUSANDS.sub(lambda match: re.sub(r"\D", "", match.group()), text))
    text = re.sub(r"(?<![\d.,-])(\d[\d,]*)\s*(?:B\.C\.E\.|BCE|B\.C\.|BC)(?!\w)", r"-\1", text).strip(" *_$`")
    return text if any(map(str.isdigit, text)) else _NUMERALS.sub(_from_words, text)


def _from_words(match: re.Match[str]) -> str:
    ones = (match["small"] or match["ones"] or "zero").casefold()
    return str(_ONES.index(ones) + (10 * _TENS.index(match["tens"].casefold()) + 20 if match["tens"] else 0))


def number_in(text: str, question: ReplyQuestion) -> Value | None:
    """The number that an entry states; None if it states none, or a range or a bound."""
    text = without_opening((sentences(plain_numbers(text)) or [""])[0])
    # The clause of a sentence that states another number, for something else.
    text = re.sub(
        r"(?<=\d)(\D*?),?\s+(?:while|whereas|but|although|though|compared)\s.*$", r"\1", text, flags=re.DOTALL
    )
    bare = plain_numbers(re.sub(r"\s*[(（][^()（）]*[)）]", "", text))  # `eight (8)`
    lead = re.fullmatch(
        r".{0,80}?\b(?:answer|value|it|that)(?:\s+(?:is|was|equals)|['’]s)\s*:?\s+(.+)", bare, re.IGNORECASE
    )
    left, _, right = re.sub(
        r"\s*[:：=]\s+|\s+[-–—→]+>?\s+|\s*–\s+", "\0", "" if _RANGE.match(bare) else bare, count=1
    ).partition("\0")
    for reading in filter(None, (bare, in_slot(bare, question), lead and lead[1], right, right and left)):
        number = _stated(reading, question)
        leading = _LEADING.match(reading)
        if number is None and leading and not _RANGE.match(reading) and (reading is not bare or not right):
            number = parse_number(leading["number"])
        if number is not None:
            return number
    return (
        _measured(bare, question)
        or _measured(text, question)
        or _only_number(bare, question)
        or _only_number(text, question)
    )


def _stated(text: str, question: ReplyQuestion) -> Value | None:
    """The number that a text is, with the unit of the data type or without one."""
    text = text.strip(_EDGES)
    match = _MEASURED.match(text)
    if match is None or _RANGE.match(text):
        return None
    behind = text[match.end("factor") if match["factor"] else match.end("number") :]
    words = re.findall(r"[^\W\d_]+", behind.casefold())
    words = [word for word in words if word not in _DIMENSIONS] or words
    allowed = _wanted(question) | _DIMENSIONS | set(" ".join(question.sides[1]).casefold().split())
    fits = not re.search(r"\d", behind) and len(words) <= 6 and all(_unit_names(word) & allowed for word in words)
    # A unit in another script than the question's fits, too.
    return _scaled(match, question) if fits or (len(words) == 1 and not re.search(r"[a-z]", words[0])) else None


def _scaled(match: re.Match[str], question: ReplyQuestion) -> Value | None:
    """The number times its factor, unless the data type counts in this factor."""
    size = parse_number(match["number"].rstrip(","))
    name = (match["factor"] or "").casefold()
    is_plain = size is None or not name or {name, f"{name}s"} & question.type_words
    return size if is_plain else parse_number(format(Decimal(size or 0) * _FACTORS[name], "f"))


def _unit_names(word: str) -> set[str]:
    """The forms in which a unit may stand in a data type or behind the slot."""
    word = re.sub(r"(met|lit)re(?=s?$)", r"\1er", word)
    singular = word.removesuffix("s")
    return {word, singular, _UNITS.get(word, word), _UNITS.get(singular, singular)}


def _wanted(question: ReplyQuestion) -> set[str]:
    """The units in which the question wants its number: those of its data type and directly behind the slot."""
    wanted = set(_ALL_UNITS) if question.type_words & _QUANTITY_TYPES else set()
    words = {*question.type_words, *" ".join(question.sides[1][:2]).casefold().split()} - _DIMENSIONS
    return wanted.union(*map(_unit_names, words))


def _measured(text: str, question: ReplyQuestion) -> Value | None:
    """The only number in a text that bears a unit of the data type: `13,325 ft (4,062 m)`."""
    wanted = _wanted(question)
    units = [(match, _unit_names(match["unit"].casefold())) for match in _MEASURED.finditer(text) if match["unit"]]
    fitting = [match for match, names in units if names & wanted]
    is_pure = all(names & (wanted | _ALL_UNITS) for _, names in units) and "year" not in question.type_words
    values = {_scaled(match, question) for match in fitting}
    if len(values) != 1 or not is_pure or _BOUND.search(text) or _RANGE.search(text[: fitting[-1].end()]):
        return None
    return values.pop()


def _only_number(text: str, question: ReplyQuestion) -> Value | None:
    """The only number or year in a sentence that bounds nothing: `The number of faces is 6.`"""
    is_year = "year" in question.type_words
    numbers = set(_YEAR.findall(text)) if is_year else {match["number"] for match in _MEASURED.finditer(text)}
    noun = next((re.escape(word.removesuffix("s")) for word in question.sides[1] if len(word) > 2), r"\0")
    # Behind a verb at the end, or before the noun behind the slot.
    stands = rf"(?:\b(?:is|was|are|were|equals)\s+|=\s*){_SIZE}\W*$|(?<![\w.,]){_SIZE}\s+(?:[a-z]+\s+)?{noun}"
    is_stated = (
        "between" not in text
        if is_year
        else re.search(stands, text) and not (_BOUND.search(text) or _RANGE.search(text))
    )
    return parse_number(numbers.pop()) if len(numbers) == 1 and is_stated else None


def numbers_listed(text: str, question: ReplyQuestion) -> list[str]:
    """The parts of a text that lists numbers with commas or `and`; empty if a part is none."""
    plain = re.sub(r"[{}\[\]$]", "", plain_numbers(text)).rstrip(". ")
    plain = re.sub(r",?\s+(?:because|due\s+to|since|when|during|as\s+a\s+result)\b.*$", "", plain)
    lead = re.fullmatch(
        r".{0,120}?(?::|\b(?:are|were|include|includes|in)\b)\s*((?:first\s+)?(?:in\s+)?[-−\d].*)", plain
    )
    for reading in filter(None, (plain, in_slot(plain, question), lead and lead[1])):
        parts = re.split(r"\s*(?:,\s+and\s+|;\s*|,\s+|\s+and\s+|\s+or\s+)", reading)
        parts = [
            re.sub(r"^(?:(?:then|later|again|also|finally|in|first|both|twice)\s+)+", "", part)
            for part in parts
            if part
        ]
        if len(parts) > 1 and "between" not in plain and all(_stated(part, question) is not None for part in parts):
            return parts
    return []
