"""Takes the values out of sentences that list them in languages other than English.

The words of such a sentence cannot be compared with the question's. Its values stand behind a copula or a word such as
`como`, or they are the names with capitals between its commas.
"""

from __future__ import annotations

import re
from itertools import takewhile

# Words before a list: copulas, and words for `such as`, `for example`, `including` and `among them`.
_LEADS = (
    "son|es|como|incluyen|incluyendo|incluye|destacan|figuran|encontramos|por ejemplo|"
    "sont|est|comme|tels que|telles que|citer|notamment|par exemple|comprennent|incluent|y compris|"
    "sind|ist|wie|gehören|zählen|zum beispiel|z\\. ?b\\.|beispielsweise|etwa|nämlich|heißen|"
    "sono|è|come|ad esempio|per esempio|includono|tra cui|ricordiamo|troviamo|"
    "são|é|incluem|incluindo|por exemplo|tais como|destacam-se|"
    "zijn|is|zoals|bijvoorbeeld|onder andere|waaronder|"
    "to|są|jak|takie jak|m\\.in\\.|np\\.|należą|"
    "как|являются|это|например|включают|такие как|"
    "antara lain|adalah|seperti|yaitu|meliputi|misalnya|termasuk|"
    "مثل|منها|وهي|هي|تشمل|"
    "con|mit|avec|com|aus|trouve|compte|citons|figurent|encuentran|hay|"
    "är|er|som|såsom|til exempel|till exempel|for eksempel|inkluderer"
)
_LEAD = re.compile(rf"(?:^|(?<=[\s(])|(?<=\s['’]))(?:{_LEADS})(?:\s*:)?(?:\s+|$)", re.IGNORECASE)
_IDEOGRAPHIC_LEAD = re.compile(
    r"(?:으?로는|에는|중에는)\s+|(?:包括|包含|例如|比如|分别是|主要有|有|是|为|为|如|像|に?は|として)[：:、，]?"
)
_IDEOGRAPHIC_TAIL = re.compile(
    r"\s등(?=[\s이의을])|이\s있습니다|입니다|(?:等等|等|など|といった|です|があります|がある|が挙げられます).*$",
    re.DOTALL,
)
_IDEOGRAPHIC = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_CLOSING = re.compile(
    r"[,;]?\s*(?:entre\s+(?:muchos\s+|muchas\s+|muitos\s+|muitas\s+)?(?:otros|otras|outros|outras|autres)(?:\s+\w+)?|"
    r"(?:y|e)\s+(?:muchos\s+|muitos\s+)?(?:otros|otras|outros|outras|altri|altre)(?:\s+\w+)?|et\s+(?:bien\s+)?d['’]autres|etc\.?|usw\.?|"
    r"u\.\s?a\.?|unter\s+anderem|und\s+(?:viele\s+)?(?:andere|weitere|mehr)|ecc\.?|e\s+così\s+via|tra\s+gli\s+altri|en\s+andere|"
    r"enzovoort|i\s+inne|itp\.?|itd\.?|и\s+(?:другие|др\.?|т\.\s?д\.?)|dan\s+lain(?:-lain|nya)?)\W*$",
    re.IGNORECASE,
)
"""Words at the end of a list for `among others` and `and so on`."""
_ENGLISH = re.compile(
    r"\b(?:the|of|is|are|was|were|and|or|by|with|from|that|this|it|for|at|to|has|have|be|an|as|on|there|some|you|your|"
    r"include|includes|including|such)\b",
    re.IGNORECASE,
)
_COPULA_ENDING = re.compile(r"['’][dt][ıiuü]r$")
"""The copula of Turkish behind a name: `Akdeniz'dir`."""
_SEPARATOR = re.compile(r"\s*(?:[,،;]\s+|[,،](?=[^\d\s])|[，、؛；])\s*")
_JOINED = re.compile(
    r"\s+(?:und|et|y|e|i|ou|o|u|oder|en|og|och|ja|ve|dan|и|та|ve|și|és|sowie|oraz|और|και)\s+|\s+و(?=ال)"
)
_IDEOGRAPHIC_JOINED = re.compile(r"(?:以及|还有|和|与|及|或)")
_FIRST_JOIN = re.compile(r"^(?:(?:und|et|y|e|i|ou|o|oder|en|og|och|dan|и|ve|sowie)\s+(?=\S)|(?:以及|和|与|及|还有))")
_PARTICLES = r"(?:de|da|do|di|du|del|della|des|dos|das|der|den|van|von|la|le|les|of|el|al|sur|en)"
# The names with capitals at the end and at the beginning of a text.
_LAST_NAME = re.compile(rf"[^\W\d_a-zß-ÿа-я][\w'’.-]*(?:\s+(?:{_PARTICLES}\s+)*[^\W\d_a-zß-ÿа-я][\w'’.-]*)*$")
_FIRST_NAME = re.compile(rf"[^\W\d_a-zß-ÿа-я][\w'’.-]*(?:\s+(?:{_PARTICLES}\s+)*[^\W\d_a-zß-ÿа-я][\w'’.-]*)*")
_ARTICLE = re.compile(r"^(?:(?:il|lo|la|i|gli|le|les|el|los|las|der|die|das|den|o|os|as|a|de|het|um|uma)\s+|l['’])")
_INNER_ARTICLE = re.compile(r"(?<=\s)(?:(?:il|lo|la|gli|le|les|el|los|las|der|die|das|den|os|het)\s+|l['’])(?=\w)")
MOST_WORDS = 5
MOST_CHARACTERS = 40
"""Words and characters of a value in such a list."""


def is_foreign(text: str) -> bool:
    """True if a sentence of several words is in another language than English."""
    if _IDEOGRAPHIC.search(text):
        return True
    words = re.findall(r"[^\W\d_]+", text)
    return len(words) > 3 and len(_ENGLISH.findall(text)) < 2 and not re.search(r"\b(?:the|and|are|was)\b", text, re.I)


_AGENT = re.compile(
    r"(?:fue|fueron|foi|foram|été|stat[oa]|wurden?|werd)\b[^.]*?\b(?:por|par|pelo|pela|von|da|dal|dalla|door)\s+(?P<name>"
    + _FIRST_NAME.pattern
    + ")"
)
"""The agent of a passive: `fue pintado por Pablo Picasso`."""


def foreign_values(text: str) -> list[str]:
    """The values that a sentence in another language than English lists; empty if it lists fewer than three.

    A line that is only a list is no sentence.
    """
    if not is_foreign(text):
        return []
    agent = _AGENT.search(text)
    if agent:
        return [agent["name"].rstrip(".")]
    text = _COPULA_ENDING.sub("", _CLOSING.sub("", text.strip().rstrip(".!。！ ")))
    is_ideographic = _IDEOGRAPHIC.search(text) is not None
    if is_ideographic:
        joined, leads, text = _IDEOGRAPHIC_JOINED, _IDEOGRAPHIC_LEAD, _IDEOGRAPHIC_TAIL.sub("", text)
    else:
        joined, leads = _JOINED, _LEAD
    parts = [part for part in _SEPARATOR.split(text) if part]
    if len(parts) < 2:
        return _joined_in_arabic(text)
    behind = _behind_lead(parts, leads)
    last = _FIRST_JOIN.sub("", behind[-1])
    pair = _pair(last, joined)
    values = [*behind[:-1], *(pair if last == behind[-1] and len(pair) == 2 else [last])]
    if not is_ideographic:
        is_joined = len(values) > len(behind) or last != behind[-1]
        values = within_names(values, can_end=is_joined and behind == parts)
    values = _from_article(values)
    if len(values) < 3 or (values[0] == parts[0] and values[-1] in behind[-1][-len(values[-1]) :]):
        return []
    if any(len(value) > MOST_CHARACTERS or len(value.split()) > MOST_WORDS for value in values):
        return []
    return [_ARTICLE.sub("", value) for value in values]


def _joined_in_arabic(text: str) -> list[str]:
    """The words at the end of a sentence in Arabic that the prefix for `and` joins, with the one before them."""
    words = text.split()
    joined = list(takewhile(lambda word: len(word) > 3 and word.startswith("و"), reversed(words)))[::-1]
    if len(joined) < 2 or len(joined) == len(words):
        return []
    return [words[-len(joined) - 1], *(word[1:] for word in joined)]


def _pair(text: str, joined: re.Pattern[str]) -> list[str]:
    """The two parts of a text around its joining word; the `en` of Dutch joins only where no other word does."""
    others = [match for match in joined.finditer(text) if match.group().strip() != "en"]
    place = others[0] if others else joined.search(text)
    return [text[: place.start()], text[place.end() :]] if place else [text]


def _from_article(values: list[str]) -> list[str]:
    """The values, the first one from its article on if all others have one: `Se usan sobre todo el cáñamo, el yute`."""
    first, *others = values
    if not others or not all(map(_ARTICLE.match, others)):
        return values
    uncapitalised = first[:1].lower() + first[1:]
    if _ARTICLE.match(uncapitalised):
        return [uncapitalised, *others]
    inner = list(_INNER_ARTICLE.finditer(first))
    return [first[inner[-1].start() :], *others] if inner else values


def _behind_lead(parts: list[str], leads: re.Pattern[str]) -> list[str]:
    """The parts behind the last word that introduces a list: in the first two parts, or where a later one begins."""
    for position in range(len(parts) - 2, -1, -1):
        part = parts[position]
        lead = leads.match(part)
        if position < 2:
            for later in leads.finditer(part):
                lead = later
        colon = re.search(r"[:：]\s*(?=\S)", part)
        end = max(colon.end() if colon else 0, lead.end() if lead else 0)
        if end:
            rest = part[end:].strip()
            return [rest, *parts[position + 1 :]] if rest else parts[position + 1 :]
    return parts


_WITHIN = ("and", "of", "the", "y", "e", "et", "und", "i", "en", "og", "och")
"""Words in lower case that stand within a name: `Trinidad y Tobago`."""


def within_names(values: list[str], can_end: bool) -> list[str]:
    """The values without the words of the sentence before and behind them, if they are names with capitals.

    `can_end`: the sentence may go on behind the list.
    """
    if not all(_FIRST_NAME.match(_ARTICLE.sub("", value)) for value in values[1:]):
        return values
    first, *others, last = values
    name = _LAST_NAME.search(first)
    before = first[: name.start()].split() if name else []
    if name and any(word[:1].islower() and word not in _WITHIN for word in before):
        first = name.group()
    last = _ARTICLE.sub("", last)
    ended = _FIRST_NAME.match(last)
    if can_end and ended and re.match(r"\s+(?!and\b|of\b|the\b|or\b)[^\W\d_A-Z]\w*\s+\w", last[ended.end() :]):
        last = ended.group()
    return [first, *others, last]
