"""Takes the value out of an entry of a reply: without mark-up, explanation, label, template and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import unescape

from hapax.grammar.terms import Value
from hapax.llm_oracle.reading.link_replies import LONGEST_LINE, LONGEST_VALUE, parse_number
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyQuestion, stems
from hapax.llm_oracle.reading.reply_sentences import (
    are_names,
    in_slot,
    is_refusal,
    is_sentence,
    is_titled,
    sentences,
    stated,
    without_opening,
)

LONGEST_TITLE = 160
"""Characters of a title, which may be longer than other names."""
MOST_WORDS = 8
"""Words of a value that is no title. A longer entry is a sentence."""

_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Invisible characters, tags, pictures at either end, and footnotes: `Nile[1]`, `Nile¹`, `Nile【4†source】`.
_DECORATION = re.compile(
    "[\u00ad\u200b\u2060\ufeff]|</?(?:b|i|em|strong|u|code|li|p|span|br)\\s*/?>|"
    "^\\s*[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d]+\\s+|\\s*[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d]+\\s*$|"
    r"\s*(?:\[\^?\d{1,3}\]|【[^】]{0,40}】|[¹²³⁴⁵⁶⁷⁸⁹⁰]+)+(?=\s*[.,:;]?\s*$)",
    re.IGNORECASE,
)
# `[Nile](http://...)`, `![Nile](nile.png)`, `\text{Nile}`, and `$[A] = x$`, but not `between $5 and $10`.
_WRAPPED = re.compile(
    r"!?\[([^\[\]]{1,200})\]\([^()\s]{1,300}\)|\\(?:text|mathrm|mathbf|textbf|textit|emph)\{([^{}]*)\}|"
    r"\$([^\s$](?:[^$\n]{0,100}[^\s$])?)\$"
)
# `**Nile**: a river` and `"Nile" (a river)`: what is set off, and what follows.
_SET_OFF = re.compile(
    r"(?:(?P<sign>\*{1,3}|__?|`)(?P<bold>[^\s*_`].*?)(?P=sign)(?![\w*])|"
    r"[\"“«„「『《](?P<quoted>[^\"”»“」』》]{1,200})[\"”»“」』》](?!\w))(?P<rest>.*)",
    re.DOTALL,
)
_EDGES = ' \t"“”«»„‹›「」『』《》`‚‘'
# `a: b`, `a - b`, `a → b`, `a | b`, a tab, a gap of three blanks; neither `1:2` nor `a-b`.
_BREAK = re.compile(r"\s*[:：]\s+|：|\s*——?\s*|\s+[-–−]+>?\s+|\s+(?:→|=>|=|\|)\s+|\t+|\s*–\s+|\s+–\s*|\s{3,}")
# Remarks in parentheses; what belongs to a name stays: `(500) Days`, `copper(II) oxide`, `2-(acetyloxy)benzoic acid`.
_PARENTHESES = re.compile(
    r"(?<=\S)\s+[(（][^()（）]*[)）]|(?<=\S)[(（](?![IVX,+\d -]{0,8}\))[^()（）]*[)）](?!\w)|"
    r"(?<=[\w.’'])\s+\[[^\[\]]{2,}\]$"
)
_QUANTIFIER = re.compile(r"^(?:some|many|most|several|various|all)\s+(?!of\b)(?=[^\W\d_])", re.IGNORECASE)
# `Emma by Jane Austen`, but not `Death by chocolate`.
_BYLINE = re.compile(r",?\s+by\s+(?=[^\W\d_a-z])[^\d]{2,60}$")
# `La crème brûlée`, `l'éclair` and `der Rhein`, but not `La Paz`.
_FOREIGN_ARTICLE = re.compile(
    r"(?:(?i:il|lo|la|i|gli|le|les|el|los|las|der|die|das|o|os|as|um|uma|un|une|una|ein|eine|de|het|een)\s+|(?i:l)['’])"
    r"(?=[^\W\d_A-Z])|(?:der|die|das|den|ein|eine)\s+(?=[A-ZÄÖÜ])"
)
# `the Nile`, `some nuts`, `The 14th Dalai Lama`, but not the article of `The Hague`.
_ARTICLE = re.compile(
    r"^(?:(?i:indeed|actually|really|simply|currently|possibly|perhaps|maybe|probably|arguably|presumably|sometimes|"
    r"also|even|"
    r"usually|often|especially|typically|commonly|mainly|mostly|occasionally|potentially|some|many|most|several|"
    r"various|all)\s+(?!of\b)(?=[^\W\d_]))?"
    r"(?:(?:an?|the)\s+(?!la\s)(?=\S)|(?:An?|The)\s+(?=[a-z]|\d+(?:st|nd|rd|th)\s))?"
)
# What follows a name: `Nile, which flows north`, `Nile, a river`; in a slot also `pizza to eat` and `pizza for eating`.
_APPOSITION = re.compile(
    r"(?<=\w),\s+(?:which|who|where|whose|when|because|although|though|an?|the|known|also|located|one\s+of)\s.*$|"
    r"(?<=\w),?\s+(?:such\s+as|including|aka|a\.k\.a\.|also\s+(?:known\s+as|called)|because|since)\s.*$",
    re.DOTALL,
)
_ADJUNCT = re.compile(
    r"(?:,\s+(?=[a-z])|,?\s+(?:because|which|where|when|since|as\s+well|so\s+that|in\s+order|to(?=\s+[a-z])|"
    r"as\s+(?:an?|the|its|their|his|her)(?=\s)|for(?=\s+\w+ing\b))\s|;\s).*$",
    re.DOTALL,
)
_PREDICATE = re.compile(
    r"(?!(?:it|this|that|these|those|there|here|they|he|she|we|i|you|some|all|many|each|most|note|please|what|which|"
    r"who|such|both|"
    r"one|another|however|while|although|if|when)\b)(?P<subject>\S+(?:\s\S+){0,4}?)\s+(?:is|are|was|were|has|have|can|"
    r"contains?|refers?|"
    r"comes?|originat\w+|belongs?|means|does|do|will|would|may|might|should|serves?|lives?|lies?|flows?|uses?|plays?|"
    r"bec[ao]mes?|"
    r"includes?)\s+\S",
    re.IGNORECASE,
)
# `the correct answer`, `value of b`, `item 3`, `option a`, and years.
_LABEL = re.compile(
    r"(?:the\s+)?(?:correct\s+|final\s+|right\s+|possible\s+)*(?:answer|value|name|item|result|example|option|entity|"
    r"response)s?"
    r"(?:\s+(?:of|for)\s+\S+)?\s*#?(?:\d{0,3}|\b[a-z])|(?:c\.\s*)?\d{3,4}s?(?:\s?[–-]\s?\d{2,4})?(?:\s+(?:bc|ad|bce|"
    r"ce))?",
    re.IGNORECASE,
)
# Words that deny an item: in its explanation, after it, or as a correction.
_NOT_SO = re.compile(
    r"(?:(?:is|are|was|were|does|do|did|has|have|can)\s+)?(?:not|never)\s|(?:no|false|incorrect|wrong)\W*$|"
    r"(?:isn|aren|doesn|don|wasn)['’]t\s",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\S\s+(?:is|are|was|were|does|do|did|has|have|can)(?:\s+not|n['’]t|\s+never)\b", re.IGNORECASE)
_RETRACTED = re.compile(
    r"~~|[❌✗✘✖]|(?:[(:,;—–]|\s-)\s*(?:oops|wait|no,|sorry|correction|scratch)\b|\b(?:ignore|disregard|skip|"
    r"leave)\s+(?:this|that|it)\b|"
    r"\bperhaps\s+not\b|\brather\s+than\s+an?\s|(?:\bnot|n['’]t)\s+(?:be\s+)?(?:count(?:ed)?|qualify|fit|apply|"
    r"(?:a\s+)?(?:correct|valid))\b",
    re.IGNORECASE,
)
# `[your answer]`, `value 1`, `<name>`, `and others`, `...`.
_PLACEHOLDER = re.compile(
    r"[\[<({]?\s*(?:your\s+|the\s+|insert\s+)?(?:value|answer|item|name|example|placeholder|option|"
    r"entity)s?\s*#?\d{0,3}\s*[\])>}]?|"
    r"(?:and\s+)?(?:so\s+(?:on|forth)|(?:(?:so\s+)?many\s+)?(?:more|others?)|etc|among\s+others)\W*|_{2,}|[.…]+|"
    r"several|many|some|various|numerous|most|all|both|a?\s?few|and|or|and/or"
)


@dataclass(frozen=True, slots=True)
class ListStyle:
    """Common form of the items of a reply.

    `counted`: they are the data type with the numbers from one on. `bylines`: they name the author after a title.
    `short`: they have one letter or two. `places`: a name follows after a comma in nearly all. `labels`: words that
    begin more than one item, before a colon or a dash. `mapped`: arrows lead from names to names, so that the value is
    at the arrow's head. `foreign`: all begin with an article of another language than English. `names`: the items.
    """

    counted: bool = False
    bylines: bool = False
    short: bool = False
    places: bool = False
    labels: frozenset[str] = frozenset()
    mapped: bool = False
    foreign: bool = False
    names: frozenset[str] = frozenset()


def style_of(bodies: Sequence[str], question: ReplyQuestion) -> ListStyle:
    """The style of a list with these items."""
    plain = [body[:LONGEST_LINE].strip().strip("*_\"'”’»` ") for body in bodies if body.strip()]
    breaks = [parts for text in plain if (parts := broken(text.replace("*", "")))[2]]
    lefts = Counter(left.casefold() for left, _, _ in breaks)
    labels = frozenset(left for left, count in lefts.items() if count > 1)
    # Where most of them recur, the others are labels, too.
    labels = frozenset(lefts) if sum(lefts[left] for left in labels) > 0.5 * len(breaks) else labels
    commas = [_PARENTHESES.sub("", text).rstrip(".").split(", ") for text in plain]
    places = [
        parts
        for parts in commas
        if len(parts) == 2 and parts[1][:1].isupper() and not re.match(r"(?:Inc|Jr|Ltd)\b", parts[1])
    ]
    # A name and its place, not a surname and first names.
    people = r"(?:er|or|ist|ian|ess|person|king|queen|president|poet|saint)$"
    may_be_people = re.search(people, question.data_type.casefold()) is not None
    are_people = may_be_people and len({parts[1] for parts in places}) == len(places)
    bylines = sum(_BYLINE.search(text.rstrip(".")) is not None for text in plain)
    short = sum(len(text.strip(" .")) <= 2 for text in plain)
    numbers = [re.fullmatch(rf"\W*{re.escape(question.data_type)}\s#?(\d+)\W*", text, re.IGNORECASE) for text in plain]
    return ListStyle(
        counted=bool(numbers)
        and [number[1] for number in numbers if number] == list(map(str, range(1, len(plain) + 1))),
        bylines=bylines > 1 and bylines >= 0.5 * len(plain),
        short=short > 1 and short >= 0.5 * len(plain),
        places=len(places) > 2
        and len(places) >= 0.8 * len(plain)
        and len({parts[0] for parts in places}) > 1
        and not are_people,
        labels=labels if len({right.casefold() for _, _, right in breaks}) > 1 else frozenset(),
        mapped=len(breaks) == len(plain) > 1 and all(map(_is_mapped, breaks)),
        foreign=len(plain) > 1 and all(map(_FOREIGN_ARTICLE.match, plain)),
        names=frozenset(text.strip("., ").casefold() for text in plain),
    )


def _is_mapped(parts: tuple[str, str, str]) -> bool:
    """True for an arrow between two names; an explanation or a symbol after it is none."""
    left, sign, right = parts
    is_name = are_names([right], 4) and right[:1].isupper() >= left[:1].isupper()
    return sign.endswith(("→", ">")) and is_name and sum(map(str.islower, right)) > 0.4 * len(right)


def broken(text: str) -> tuple[str, str, str]:
    """The text before the first colon or dash that separates, the separator, and the text after it."""
    for match in _BREAK.finditer(text):
        left, right = text[: match.start()].strip(), text[match.end() :].strip()
        if left and right:  # a separator at either end separates nothing
            return left, match.group().strip(), right
    return text, "", ""


def tidy(text: str) -> str:
    """The text in NFC without invisible characters, tags, links, footnote signs and LaTeX commands."""
    text = unicodedata.normalize("NFC", unescape(text[: 2 * LONGEST_LINE]))[:LONGEST_LINE]
    text = _WRAPPED.sub(lambda match: match[match.lastindex or 0], text) if re.search(r"[$\\\[]", text) else text
    text = re.sub(r"\\[()\[\],;! ]", " ", text.replace("{,}", ","))
    # `1. value. Basil.`: small models copy the word for a value from the format that a prompt shows.
    return re.sub(
        r"^(?:value|answer|item|name|entity)\.\s+(?=\S)", "", _DECORATION.sub("", text).strip(), flags=re.IGNORECASE
    )


def value_of(text: str, question: ReplyQuestion, style: ListStyle, marked: bool = True) -> Value | DropReason:
    """The value in an entry, or the reason why there is none. `marked`: the entry has a list mark."""
    text, raw = tidy(text), text[:LONGEST_LINE]
    if any((unicodedata.category(sign) in ("Cc", "Cs") and sign != "\t") or sign in _BIDI_CONTROLS for sign in raw):
        return DropReason.CONTROL
    if not any(map(str.isalnum, text)):
        return DropReason.EMPTY
    if question.numeric:
        number = number_in(text, question)
        return DropReason.NO_NUMBER if number is None else number
    # A title may hold the words of a denial; only its explanation takes it back.
    explanation = raw[len(broken(raw)[0]) :] if question.is_of_titles else raw
    if _RETRACTED.search(explanation) or (_DENIED.search(explanation) and not is_titled(text)):
        return DropReason.REMARK
    return _named(text, question, style, marked)


def _named(text: str, question: ReplyQuestion, style: ListStyle, marked: bool) -> Value | DropReason:
    """The value in an entry of text."""
    # `B = pizza`, `[B]: pizza`
    name = re.escape(question.variable)
    text = re.sub(rf"^[*\s]*(?:\[{name}\]\W{{0,4}}?(?:=|:|→|->)|{name}\s*=)\s*([^*]+)\**$", r"\1", text)
    set_off = _SET_OFF.match(text)
    sentence, *others = sentences(text)
    text = text if others and (is_titled(text) or (set_off and question.is_of_titles)) else sentence
    text = text if question.is_of_titles or not marked else _QUANTIFIER.sub("", text)
    slot = in_slot(text, question)
    if slot is not None:
        left, _, right = broken(slot)
        slot = (
            right if right and (left == right or _is_label(left, question, style)) else slot
        )  # `A: pizza is a dish from Italy`
        return _checked(_cleaned(_ADJUNCT.sub("", slot), question, style), question, style)
    if f"[{question.variable}]" in text[1:] or re.fullmatch(r"\W*\[[A-Z]\d?\]\W*", text):
        return DropReason.SLOT  # the question again, or a slot without a value
    name, sign, explanation = broken(text)
    set_off = _SET_OFF.match(text)
    dated = re.match(r"(\S.*?)\s+\((?:[^()]*\s)?\d{4}\)", text) if question.is_of_titles else None
    is_exact = dated is not None
    if set_off:
        name, rest = (set_off["bold"] or set_off["quoted"]).strip(), set_off["rest"].strip()
        separated = re.match(r"(?:[:：=]|[-–—→]+>?\s)\s*", rest)
        explanation = rest[separated.end() :] if separated else rest if name.endswith((":", "：")) else ""
        is_exact = set_off["quoted"] is not None or question.is_of_titles
        name = re.sub(r"\s*\([^()]*\d{4}[^()]*\)", "", name.rstrip(":： "))
        name = _unstopped(name) if set_off["quoted"] and not rest else name
    elif dated:
        name = dated[1]
    elif question.is_of_titles and sign == ":" and is_titled(explanation) and len(explanation) <= LONGEST_VALUE:
        name, explanation = text, ""
    denies = _NOT_SO.match(explanation)
    if denies and (denies.end() == len(explanation) or stems(explanation) & question.known_stems):
        return DropReason.REMARK  # `Copper: not attracted by magnets`
    if explanation and (style.mapped or _is_label(name, question, style)):
        return _named(explanation, question, style, marked)
    if is_exact:
        return _checked(" ".join(name.split()), question, style, True)
    if not question.is_of_titles:
        name = _APPOSITION.sub("", name)
        name = _subject(name, question) if marked and is_sentence(_PARENTHESES.sub("", name)) else name
        # The article at the beginning of a sentence is no part of a name of several words; `The Hague` keeps it.
        name = re.sub(r"^The\s+(?=\S+\s+\S)", "", name) if not marked else name
    return _checked(_cleaned(name, question, style), question, style) if name else DropReason.REMARK


def _subject(sentence: str, question: ReplyQuestion) -> str:
    """The value in a sentence without the template: what the question does not describe, or its subject; or empty."""
    named = stated(sentence, question)
    if named is not None and are_names([named], 5):
        return _ADJUNCT.sub("", named)
    subject = _PREDICATE.match(without_opening(sentence))
    return re.sub(r"^The\s+(?!Hague\b)", "", subject["subject"]) if subject else ""


def _is_label(text: str, question: ReplyQuestion, style: ListStyle) -> bool:
    """True if a text before a separator says what follows, instead of being the value."""
    plain = text.strip("*_\"'`[]() ").casefold()
    is_type = plain.rstrip("0123456789# ").removesuffix("s") == question.data_type.casefold().removesuffix("s")
    is_known = plain == question.variable.casefold() or plain in style.labels or is_type
    return is_known or (_LABEL.fullmatch(plain) is not None and not (question.is_of_titles and plain[:1].isdigit()))


def _cleaned(name: str, question: ReplyQuestion, style: ListStyle) -> str:
    """The name without parentheses, further parts, quotes and closing punctuation."""
    text = re.sub(r"^[\[<](.*)[\]>]$", r"\1", _DECORATION.sub("", name).strip(_EDGES))
    text = _PARENTHESES.sub("", _PARENTHESES.sub("", _unstopped(text.lstrip("*_"))))  # nested ones from the inside out
    # A reply that was cut may lack a closing parenthesis, and a value cut out of one the opening parenthesis.
    text = text if ")" in text or "）" in text else re.split(r"\s*[(（]", text)[0]
    text = text if "(" in text or "（" in text else re.sub(r"[)）]", "", text)
    text = _BYLINE.sub("", text) if style.bylines else text
    alternatives = [part.strip() for part in text.split("/")]
    # `Viking / Vikings`, or one of which is an item; other slashes belong to names: `FK Bodø/Glimt`, `AC/DC`.
    if all(alternatives) and (" / " in text or any(part.casefold() in style.names for part in alternatives)):
        text = alternatives[0] if alternatives[0].casefold() not in ("and", "or") else text
    text = _unstopped(text).replace("**", "").strip(_EDGES + "*_" if text.count("*") + text.count("_") > 1 else _EDGES)
    text = " ".join(re.sub(r"(?<=[^\W\d_]{2})\*$", "", text).split())  # a footnote, but not `Sagittarius A*`
    if question.is_of_titles:
        return text
    text = (
        _ARTICLE.sub("", text.rstrip("! "))
        if not style.foreign
        else _ARTICLE.sub("", _FOREIGN_ARTICLE.sub("", text.rstrip("! "), count=1))
    )
    text = _before_comma(text, question, style)
    types = "|".join(map(re.escape, sorted(question.type_words)))
    # `the European country of Austria`; `The Bishop Rock Lighthouse`, or the article of `the course of the [A]`
    text = re.sub(
        rf"^(?:the\s+)?(?:\w+\s+)?(?:{types})\s+(?:of\s+(?=[^\W\d_a-z])|(?:called|named|known\s+as)\s+)(?=\S)", "", text
    )
    is_typed = text.casefold().rpartition(" ")[2] in question.type_words or question.sides[0][-1:] == ["the"]
    return text[4:] if text[:4].casefold() == "the " and is_typed else text


def _unstopped(text: str) -> str:
    """The text without the punctuation that ends the item; a point that belongs to the name stays."""
    stripped = text.rstrip(" \t,;،؛，；、。।")
    is_abbreviated = re.search(
        r"(?:^|[\s(,])(?:[^\W\d_]\.){2,}$|\s(?:inc|jr|sr|ltd|co|corp|bros)\.(?:\s*\(.*\))?$", stripped, re.IGNORECASE
    )
    is_doubled = re.search(r"[^.]\.\.$", stripped)
    return stripped if is_abbreviated else stripped[:-1] if is_doubled else stripped.rstrip(". ")


def _before_comma(text: str, question: ReplyQuestion, style: ListStyle) -> str:
    """The text up to a comma, unless what follows belongs to the name: `Washington, D.C.`, `May 1, 1900`."""
    first, *others = (part.strip() for part in re.split(r",\s+|，|،", text))
    last = others[-1] if others else ""
    is_known = last.casefold() in question.sentence.casefold()
    is_name = (
        last[:1].isupper() and not re.search(r"\b[a-z]{4}|[A-Z)][₀-₉\d]", last) and last.casefold() != first.casefold()
    )
    is_name = is_name and len(others) == 1 and not style.places and are_names(others, 3) and not is_known
    # A title in capitals: `Alcohol, Tobacco, and Gaming Act`, `Emerson, Lake & Palmer`.
    is_joint = "&" in last or (is_titled(text) and re.search(r"\band\s", last) is not None and " " in last)
    is_date = re.fullmatch(r"[^\W\d_]{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,\s+\d{3,4}", text)
    return text if is_joint or is_date or is_name else first


def _checked(value: str, question: ReplyQuestion, style: ListStyle, exact: bool = False) -> Value | DropReason:
    """The value, unless it is none after all. `exact`: it was set off, so that a number may be a name."""
    folded = value.casefold()
    if not any(map(str.isalnum, value)):
        return DropReason.EMPTY
    variable = re.escape(question.variable)
    is_slot = re.search(rf"\[{variable}\b|^{variable}\s*(?:=|is\b|are\b)", value) or (
        value == question.variable and not style.short
    )
    if is_slot or style.counted or _PLACEHOLDER.fullmatch(folded):
        return DropReason.SLOT
    kind = re.fullmatch(
        rf"(an?\s+|the\s+)?{re.escape(question.data_type.casefold())}(e?s)?(?:\s+(?P<rest>.+))?", folded
    )
    # The data type with a clause or words of the question after it.
    is_described = kind and kind["rest"] and re.match(r"(?:that|which|who|whose|where|with)\b|\w+ing\s", kind["rest"])
    is_described = is_described or (kind and (kind[1] or kind[2]) and stems(kind["rest"] or "") & question.known_stems)
    if kind and (not kind["rest"] or (is_described and not question.is_of_titles)):
        return DropReason.DATA_TYPE
    if is_refusal(value) and not exact:
        return DropReason.REFUSAL
    # What is left of a list that has lost its values.
    if re.fullmatch(r"\d{1,2}|\d+(?:\.\d+){2,}\.?|\d\W*|\d[.)\s]+\d[.)]?", value) and not (style.short or exact):
        return DropReason.EMPTY
    is_long = len(value) > (LONGEST_TITLE if question.is_of_titles else LONGEST_VALUE)
    return DropReason.TOO_LONG if is_long or not (question.is_of_titles or are_names([value], MOST_WORDS)) else value


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
# Data types of quantities that may be measured in more than one unit, and words after a unit that do not change it.
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
# A number with a clause after it: `1876 by Bell`, `6 (six)`.
_LEADING = re.compile(
    rf"(?P<number>{_SIZE})(?![\d.,]*\d)(?=\s*(?:[,.;:(–—]|-\s|(?:by|in|when|and|after|with|as|because)\b|$))"
)
_MEASURED = re.compile(
    rf"(?<![\w.,–-])(?P<number>{_SIZE})(?:\s*(?P<factor>{'|'.join(_FACTORS)})\b)?(?:[\s-]*(?P<unit>[^\W\d_]{{1,20}}))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:(?<![\d.,])-)?(?<![\d.,])\d{3,4}(?![\d.,]*\d)(?!s)")
_NUMBER_EDGES = " \t!,;،؛，；、。।.\"'“”‘’«»*_`$ "


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
    text = text.strip(_NUMBER_EDGES)
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
    """The forms in which a unit may stand in a data type or after the slot."""
    word = re.sub(r"(met|lit)re(?=s?$)", r"\1er", word)
    singular = word.removesuffix("s")
    return {word, singular, _UNITS.get(word, word), _UNITS.get(singular, singular)}


def _wanted(question: ReplyQuestion) -> set[str]:
    """The units in which the question wants its number: those of its data type and directly after the slot."""
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
    # After a verb at the end, or before the noun after the slot.
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
