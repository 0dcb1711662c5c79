"""Splits a text that lists values in a line: with commas, `and`, semicolons or slashes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise, takewhile

from hapax.llm_oracle.reply_question import ReplyQuestion

LONGEST_PROSE = 20_000
"""Characters of a single line that are read as sentences."""

_COMPOUND_NAMES = frozenset(
    (
        "bosnia and herzegovina",
        "trinidad and tobago",
        "antigua and barbuda",
        "saint kitts and nevis",
        "st. kitts and nevis",
        "são tomé and príncipe",
        "sao tome and principe",
        "saint vincent and the grenadines",
        "saint pierre and miquelon",
        "wallis and futuna",
        "turks and caicos islands",
        "turks and caicos",
        "svalbard and jan mayen",
    )
)
"""Names of ISO 3166 that hold `and`."""


def is_titled(text: str) -> bool:
    """True if the longer words of a text all begin with capitals, as in a title."""
    words = [word for word in re.findall(r"[^\W_][\w'’]*", text) if len(word) > 3]
    return len(words) > 1 and not any(word[0].islower() for word in words)


# The end of `a, b, among others`, `a, b, etc.` and `a and b, to name a few`.
_AND_MORE = re.compile(
    r"[,;]?\s*(?:\b(?:and\s+)?(?:among|amongst)\s+(?:many\s+)?others?|\betc\b\.?|\band\s+so\s+(?:on|forth)|"
    r"\band\s+(?:many\s+|several\s+|so\s+many\s+|a\s+few\s+)?(?:more|others)|\bto\s+name\s+(?:just\s+)?a\s+few|"
    r"\bfor\s+(?:example|instance)|\bas\s+well|\brespectively|\.{3}|…)[\s.!]*$",
    re.IGNORECASE,
)
JOINS = re.compile(
    r"^(?:and(?:\s+also)?|or|und|oder|et|ou|(?-i:y|e|o)|&|as\s+well\s+as|along\s+with|also|plus|such\s+as|for\s+(?:example|instance)|e\.g\.)"
    r"[,:]?\s+",
    re.IGNORECASE,
)
_ARTICLED = re.compile(r"(?:and\s+|or\s+)?an?\s+(?:\S+\s?){1,3}$")
_FURTHER_PART = re.compile(r"as\s+well|also|plus|such|along")
"""The beginning of a last part that adds to a list which may have ended in `and` before."""
PAIR = re.compile(
    r"\s+(?:and|or|und|oder|et|oraz|sowie|और|και|as\s+well\s+as|&)\s+|(?<=[\u4e00-\u9fff])[和与及](?=[\u4e00-\u9fff])"
)
_LAST_PAIR = re.compile(PAIR.pattern + r"|\s+(?:y|e|ou|o|og|och|en|и|та|i|ja|ve|và|și|dan)\s+")
"""Before the last of three or more values; between two, single letters may belong to a name."""
EXPLAINING = re.compile(
    r"(?:specifically|especially|particularly|in\s+particular|mainly|mostly|notably|namely|for\s+(?:example|instance)|"
    r"have|has|are|is|was|were|can|not|e\.g\.|i\.e\.|which|where|who|whose|in|near|on|at|off|due\s+to|\w+ed\s+(?:in|by|with|from|of|as|to|for)|because|although|though|but|while|with|when|so|it|they|each|all|also\s+(?:known|called)|known|called|formerly|born|located|[a-z]+ing\s+(?:on|with|from|in|at|of|to|by|up)|(?-i:an?)|the\s+\w+"
    r"\s+(?:of|in))\b",
    re.IGNORECASE,
)
# What belongs to the name before the comma: `Jr.`, `Ph.D.`, `III`.
_SUFFIX = re.compile(r"(?:[A-Z]\.)+|Jr\.?|Sr\.?|Inc\.?|Ltd\.?|Ph\.?D\.?|M\.?D\.?|I{2,3}")
_SPACED_MARK = re.compile(r"\s+[-–—•·|/]\s+")
# Commas of any script, but not the one of `1,200`.
_COMMA = re.compile(r"[,،]\s+|[,，،](?=[^\d\s])|，|、")


def listed(text: str, question: ReplyQuestion) -> list[str]:
    """The values of a text that lists them with commas or `and`; the text itself if it lists none."""
    text = _AND_MORE.sub("", text.strip()[:LONGEST_PROSE]).strip().removeprefix("• ")
    if _is_enclosed(text):
        return [text]
    if re.search(r"[;；]\s*\S", text):
        return [JOINS.sub("", part, count=1) for part in re.split(r"\s*[;；]\s*", text) if part.strip()]
    parts = _split(_SPACED_MARK, text)
    if len(parts) > 2 and are_names(parts, 4):
        return parts
    parts = comma_parts(text)
    # One part with an article explains a name; several are a list, `a clarinet, a violin, a double bass`.
    articled = [part for part in parts[1:] if _ARTICLED.match(part)]
    named = articled if len(articled) > 1 else []
    explained = takewhile(lambda part: part is parts[0] or part in named or not EXPLAINING.match(part), parts)
    parts = list(explained) or [text]
    if len(parts) == 2 and _SUFFIX.fullmatch(parts[1]):
        return [text]
    last = JOINS.sub("", parts[-1], count=1)
    is_further = _FURTHER_PART.match(parts[-1])
    in_list = len(parts) > 2 or (len(parts) == 2 and not question.has_compounds)
    joined = _pair(last, question, in_list) if last == parts[-1] or is_further else [last]
    # `a, b and c, as well as d and e`
    earlier = [
        _pair(part, question, True) if _FURTHER_PART.match(following) else [part] for part, following in pairwise(parts)
    ]
    values = (*(JOINS.sub("", part, count=1) for part in chain.from_iterable(earlier)), *joined)
    values = tuple(value for value in values if value and value not in ("and", "or"))
    named = [value for value in values if not _UNNAMED.match(value)]
    return named if len(values) > 2 and named else list(values)


_UNNAMED = re.compile(
    r"(?:(?:so\s+)?many|several|various|numerous|countless|other|some|certain|all\s+kinds\s+of|a\s+(?:variety|number|few|range)\s+of)"
    r"\s+(?=[a-z])"
)
"""The part of a list that names no value: `and many species of fish`."""


def _is_enclosed(text: str) -> bool:
    """True if one pair of quotation marks encloses the whole text."""
    return len(text) > 2 and text[0] in '"“«„' and not re.search(r"[\"”»“].*\w", text[1:])


def comma_parts(text: str) -> list[str]:
    """The parts between commas that stand outside parentheses and quotation marks."""
    return _split(_COMMA, text)


def _split(separator: re.Pattern[str], text: str) -> list[str]:
    """The parts between separators that stand outside dates, parentheses and quotation marks."""
    # Dates, parentheses and quotations are blanked at the same length, so that places in `hidden` are places in `text`.
    hidden = re.sub(
        r"[^\W\d_]{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,\s+\d{4}\b|\([^()]*\)|（[^（）]*）|\"[^\"]*\"|“[^“”]*”|«[^«»]*»",
        lambda match: "\0" * len(match.group()),
        text,
    )
    parts: list[str] = []
    begin = 0
    for match in separator.finditer(hidden):
        parts.append(text[begin : match.start()])
        begin = match.end()
    return [part.strip() for part in (*parts, text[begin:]) if part.strip()]


def _pair(text: str, question: ReplyQuestion, in_list: bool) -> list[str]:
    """The two names of `France and Spain`; a name that holds `and` stays whole."""
    if text.strip(" .").casefold() in _COMPOUND_NAMES or (question.is_of_titles and not in_list):
        return [text]
    if question.has_compounds and not in_list:
        return [text]
    parts = _split(_LAST_PAIR if in_list else PAIR, text)
    if len(parts) == 2 and EXPLAINING.match(parts[1]):
        return parts[:1]  # `the liver and stored in the gallbladder`
    if len(parts) < 2 or any(len(part.split()) > (6 if is_titled(part) else 4) or not part for part in parts):
        return [text]
    return parts


def are_names(parts: Sequence[str], most_words: int = 6) -> bool:
    """True if parts of a line are short enough to be names."""
    return all(len(part.split()) <= most_words for part in parts)
