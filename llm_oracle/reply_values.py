"""Takes the value out of an entry of a reply: without mark-up, explanation, label, template and punctuation."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from hapax.grammar.terms import Value
from hapax.llm_oracle.answers import LONGEST_LINE, LONGEST_VALUE
from hapax.llm_oracle.drop_reasons import DropReason
from hapax.llm_oracle.reply_lists import is_titled
from hapax.llm_oracle.reply_numbers import number_in
from hapax.llm_oracle.reply_prose import LEAD_IN, first_sentence, in_template, stated
from hapax.llm_oracle.reply_question import ReplyQuestion, stems

_PLAIN = re.compile(r"[A-Za-z0-9 ,'-]*")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_TAGS = re.compile(r"</?(?:b|i|em|strong|u|code|li|p|span|br)\s*/?>", re.IGNORECASE)
# `[Nile](http://...)` and `![Nile](nile.png)`.
_LINK = re.compile(r"!?\[(?P<text>[^\[\]]{1,200})\]\([^()\s]{1,300}\)")
# The signs at the end of `Nile[1]`, `Nile [^2].`, `Nile¹` and `Nile【4†source】`.
_FOOTNOTES = re.compile(r"\s*(?:\[\^?\d{1,3}\]|【[^】]{0,40}】|[¹²³⁴⁵⁶⁷⁸⁹⁰]+)+(?=\s*[.,:;]?\s*$)")
_LATEX = re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|emph)\{(?P<text>[^{}]*)\}")
# `$42$` and `$[A] = x$`, but not `between $5 and $10`.
_FORMULA = re.compile(r"\$(?P<inside>[^\s$](?:[^$\n]{0,100}[^\s$])?)\$")
# `**Nile**: a river` and `__Nile__`, with what follows.
_LEADING_BOLD = re.compile(r"(?P<sign>\*\*\*|\*\*|__)(?P<text>.+?)(?P=sign)(?P<rest>.*)", re.DOTALL)
_LEADING_ITALIC = re.compile(r"(?P<sign>[*_`])(?P<text>[^\s*_`][^*`]*?)(?P=sign)(?![\w*])(?P<rest>.*)", re.DOTALL)
_QUOTES = {
    '"': '"',
    "“": "”",
    "«": "»",
    "„": "“”",
    "‹": "›",
    "「": "」",
    "『": "』",
    "《": "》",
    "‘": "’",
    "‚": "‘’",
    "`": "`",
    "[": "]",
    "<": ">",
}
_LONE = '"“”„«»「」『』《》`'
_PARENTHESES = re.compile(r"\s*[(（](?P<inside>[^()（）]*)[)）]")
_BRACKETS = re.compile(r"(?<=[\w.’'])\s+\[[^\[\]]{2,}\]$")
# Parentheses of chemistry, as in `copper(II) oxide` and `iron(II,III) oxide`, hold such texts.
_ROMAN = re.compile(r"[IVX]{1,4}(?:,\s?[IVX]{1,4})*|\d?[+-]")
_CHEMICAL = re.compile(r"(?:poly|bis|tris|tetrakis)$", re.IGNORECASE)
# `Emma by Jane Austen`, but not `Death by chocolate`.
_BYLINE = re.compile(r",?\s+by\s+(?=[^\W\d_a-z])[^\d]{2,60}$")
# `a: b`, `a - b`, `a → b`, `a | b`, a tab, a gap of three blanks; neither `1:2` nor `a-b`.
_BREAK = re.compile(r"\s*[:：]\s+|：|\s*——?\s*|\s+[-–−]+>?\s+|\s+(?:→|=>|=|\|)\s+|\t+|\s*–\s+|\s+–\s*|\s{3,}")
# `La crème brûlée`, `l'éclair` and `der Rhein`, but not `La Paz`.
_FOREIGN_ARTICLE = re.compile(
    r"(?:(?i:il|lo|la|i|gli|le|les|el|los|las|der|die|das|o|os|as|um|uma|un|une|una|ein|eine|de|het|een)\s+|(?i:l)['’])(?=[^\W\d_A-Z])|"
    r"(?:der|die|das|den|ein|eine)\s+(?=[A-ZÄÖÜ])"
)
_OPENING_FOREIGN = re.compile(
    r"(?:(?i:il|lo|la|i|gli|le|les|el|los|las|der|die|das|den|o|os|as|um|uma|un|une|una|ein|eine|de|het|een)\s+|(?i:l)['’])(?=\w)"
)
"""Such an article before any word."""
# `the Nile`, `A dish`, `The 14th Dalai Lama`, but not the article of `The Hague`.
_ARTICLE = re.compile(r"^(?:(?:an?|the)\s+(?!la\s)(?=\S)|(?:An?|The)\s+(?=[a-z]|\d+(?:st|nd|rd|th)\s))")
OPENING_ARTICLE = re.compile(r"^The\s+(?=\S+\s+\S)")
"""The article at the beginning of a sentence, which is no part of a name of several words; `The Hague` keeps it."""
_THE = re.compile(r"The\s+(?=\S)")
_DATE = re.compile(r"[^\W\d_]{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,\s+\d{3,4}")
_DATED = re.compile(r"\s*\([^()]*\d{4}[^()]*\)")
# `1903`, `c. 1500`, `1990s`, `1914–18`, `500 bc`.
_YEARS = re.compile(r"(?:c\.\s*)?\d{3,4}s?(?:\s?[–-]\s?\d{2,4})?(?:\s+(?:bc|ad|bce|ce))?")
# The end of `Nile, which flows north` and `Nile, a river`.
_APPOSITION = re.compile(
    r"(?<=\w),\s+(?:which|who|where|whose|when|because|although|though|an?|the|known|also|located|one\s+of)\s.*$|"
    r"(?<=\w),?\s+(?:such\s+as|including|aka|a\.k\.a\.|also\s+(?:known\s+as|called))\s.*$",
    re.DOTALL,
)
_PLACED = re.compile(r"(?P<name>[^,:()]+),\s+(?P<place>[^\W\d_a-z](?!nc\b|td\b|r\b)[^,:()]*)")
"""A name, a comma, and another name: `Lake Victoria, Tanzania`."""
_ACRONYM = re.compile(r"(?:^|[\s(,])(?:[^\W\d_]\.){2,}$")
_ABBREVIATIONS = frozenset(("inc.", "jr.", "sr.", "ltd.", "co.", "corp.", "bros.", "st.", "mt."))

# `the correct answer`, `value of b`, `item 3`, `example #2`, `option a`.
_LABEL = re.compile(
    r"(?:the\s+)?(?:correct\s+|final\s+|right\s+|possible\s+)*(?:answer|value|name|item|result|example|option|entity|response)s?"
    r"(?:\s+(?:of|for)\s+\S+)?\s*#?(?:\d{0,3}|\b[a-z])",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"(?:value|answer|item|name|entity)\.\s+(?=\S)", re.IGNORECASE)
"""The word for a value in the format that a prompt shows, which small models copy: `1. value. Basil.`"""
_NOT_SO = re.compile(
    r"(?:(?:is|are|was|were|does|do|did|has|have|can)\s+)?(?:not|never)\s|(?:no|false|incorrect|wrong)\W*$|(?:isn|aren|doesn|don|wasn)['’]t\s",
    re.I,
)
"""The beginning of an explanation that denies the item."""
_NOTHING = frozenset(
    [
        "none",
        "n/a",
        "na",
        "unknown",
        "not known",
        "nothing",
        "no answer",
        "no value",
        "no values",
        "not applicable",
        "none known",
        "no known values",
        "none of the above",
        "not available",
        "no one",
        "nobody",
        "keine",
        "aucun",
        "aucune",
        "ninguno",
        "ninguna",
        "无",
        "没有",
        "null",
        "nil",
        "none exist",
        "no such value",
        "no match",
        "no results",
        "no further values",
        "no more values",
        "no others",
        "no other values",
        "i don't know",
    ]
)
_REFUSAL = re.compile(
    r"(?:as\s+of\s+[^,]{3,40},\s+)?(?:no(?:body|\s?one)?\s+(?:[^\W\d_]+\s+){0,4}(?:has|have|is|are|was|were|can|could|exists?)\b|i['’]?m\s+(?:very\s+|so\s+|truly\s+|really\s+)?sorry|i\s+am\s+(?:very\s+|so\s+|truly\s+)?sorry|sorry,|my\s+apologies|i\s+(?:do\s+)?apologi[sz]e|apologies|"
    r"unfortunately|i\s+(?:can(?:no|['’])t|can\s+not|cannot|could\s?n['’]t|could\s+not|won['’]t|will\s+not|must\s+decline|am\s+(?:not\s+able|unable)|am\s+not\s+sure|am\s+not\s+aware|do\s+not|don['’]t|have\s+no)|"
    r"i['’]m\s+(?:not|unable|afraid)|as\s+an?\s+(?:ai|large|language|artificial)|there\s+(?:is|are|was|were)\s+(?:no|not|none|currently\s+no)\b|there\s+(?:isn|aren)['’]t|"
    r"no\s+(?:countr|valu|answer|such|known|example|correct)\w*\s+\w+|none\s+of\s+\w+|it\s+is\s+not\s+(?:possible|appropriate)|it['’]s\s+not\s+(?:possible|appropriate)|"
    r"es\s+tut\s+mir\s+leid|je\s+suis\s+désolé|lo\s+siento|mi\s+dispiace|desculpe|抱歉|对不起|很抱歉|申し訳|لا\s+يوجد|عذرًا|क्षमा|извините|к\s+сожалению)",
    re.IGNORECASE,
)
# `[your answer]`, `value 1`, `<name>`, `and others`, `...`.
_PLACEHOLDER = re.compile(
    r"[\[<({]?\s*(?:your\s+|the\s+|insert\s+)?(?:value|answer|item|name|example|placeholder|option|entity)s?\s*#?\d{0,3}\s*[\])>}]?|"
    r"etc|and so on|and (?:many |so many )?(?:more|others)\W*|others|_{2,}|\.{2,}|…",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"\b(?:provid\w*|assist\w*|list|answer\w*|information|help|unable|model|ai|none|unknown|n/a|null|no\s+\w+s?)\b",
    re.IGNORECASE,
)
"""Words that tell a refusal from a title such as `i don't wanna be you anymore`."""
_DENIED = re.compile(r"\S\s+(?:is|are|was|were|does|do|did|has|have|can)(?:\s+not|n['’]t|\s+never)\b", re.IGNORECASE)
"""A negated verb behind the value."""
_CROSSED = re.compile(r"~~|[❌✗✘✖]")
_RETRACTED = re.compile(
    r"(?:[(:,;—–]|\s-)\s*(?:oops|wait|no,|sorry|correction|scratch)\b|\b(?:ignore|disregard|skip)\s+(?:this|that|it)\b|"
    r"\bleave\s+(?:this|that|it)(?:\s+one)?\s+out\b|\bperhaps\s+not\b|\brather\s+than\s+an?\s|(?:\bnot|n['’]t)\s+(?:be\s+)?(?:count(?:ed)?|qualify|fit|apply|correct|valid|a\s+valid|a\s+correct)\b",
    re.IGNORECASE,
)
"""Words with which a model takes an item back in its own explanation."""
_DATED_TITLE = re.compile(r"(?P<title>\S.*?)\s+\((?:[^()]*\s)?\d{4}\)")
"""A title with its year, behind which nothing belongs to it."""
_NAMED_SUBJECT = re.compile(r"(?P<name>[^\W\d_a-z]\S*(?:\s+[^\W\d_a-z]\S*)+)\s+[a-z]{3,}(?:s|ed)\s+\S+.*\.$")
"""A name of several words and a verb, in a list of sentences."""
_QUANTIFIER = re.compile(r"^(?:some|many|most|several|various|all)\s+(?!of\b)(?=[^\W\d_])", re.IGNORECASE)

LEADING_QUANTIFIER = re.compile(
    r"(?:[Ss]ome|[Mm]any|[Mm]ost|[Ss]everal|[Vv]arious)\s+(?=[a-z])(?!of\b)|(?:[Bb]oth|[Oo]nly|[Jj]ust|[Ee]ither)\s+(?:the\s+)?(?=\w)"
)

QUANTITIES = frozenset(("several", "many", "some", "various", "numerous", "most", "all", "both", "few", "a few"))
"""Words that stand for values without naming one."""

_VERBS = re.compile(
    r"(?P<subject>.{1,64}?)\s+(?:is|are|was|were|has|have|can|contains?|refers?|comes?|originat\w+|belongs?|means|"
    r"does|do|will|would|may|might|should|serves?|lives?|lies?|flows?|uses?|plays?|became|became|includes?)\s+\S",
    re.DOTALL,
)
_TALK = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "can",
        "could",
        "will",
        "would",
        "should",
        "may",
        "might",
        "must",
        "do",
        "does",
        "did",
        "don't",
        "i",
        "i'm",
        "i'd",
        "i'll",
        "you",
        "your",
        "you'd",
        "we",
        "they",
        "them",
        "it's",
        "that's",
        "there's",
        "here's",
        "please",
        "let",
        "hope",
        "feel",
        "note",
        "ensure",
        "remember",
        "consult",
        "be",
        "these",
        "those",
        "which",
        "who",
        "because",
        "since",
        "if",
    ]
)
_NO_SUBJECT = frozenset(
    [
        "it",
        "this",
        "that",
        "these",
        "those",
        "there",
        "here",
        "they",
        "he",
        "she",
        "we",
        "i",
        "you",
        "some",
        "all",
        "many",
        "each",
        "most",
        "note",
        "please",
        "what",
        "which",
        "who",
        "such",
        "both",
        "one",
        "another",
        "however",
        "while",
        "although",
        "if",
        "when",
    ]
)
_REASONED = re.compile(
    r"(?P<name>\S+(?:\s+\S+){0,4}?),?\s+(?:because|since|as\s+(?:it|they)|although|while|when|so\s+that|due\s+to)\s"
)
"""A name with the reason behind it: `Pilot since they must see far`."""
# The `pizza` of `pizza, which is baked`, `pizza to eat` and `pizza for eating`.
_LEADING_TEXT = re.compile(
    r"(?P<text>.+?)(?:,\s+(?=[a-z])|\s+(?:because|which|where|when|since|as\s+well|so\s+that|in\s+order|to(?=\s+[a-z])|as\s+(?:an?|the|its|their|his|her)(?=\s)|"
    r"for(?=\s+\w+ing\b))\s|;\s|$)",
    re.DOTALL,
)


LONGEST_TITLE = 160
"""Characters of a title, which may be longer than other names."""
MOST_WORDS = 8
"""Words of a value that is neither a title nor a phrase. A longer entry is a sentence."""
_PICTURES = "[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d]+"
_OUTER_PICTURES = re.compile(rf"^\s*{_PICTURES}\s+|\s*{_PICTURES}\s*$")


@dataclass(frozen=True, slots=True)
class ListStyle:
    """Common form of the items of a reply.

    `stops`: they end in full stops. `bylines`: they name the author after a title. `short`: they are single letters or
    two. `places`: a name follows after a comma in nearly all. `articles`: they begin with `The`. `calls`: they end in
    exclamation marks. `labels`: words that begin more than one item, before a colon or a dash. `mapped`: arrows lead
    from names to names, so that the value is at the arrow's head. `brief`: most have three words or fewer.
    `foreign`: all begin with an article of another language than English. `counted`: they are the data type with the
    numbers from one on. `numbered`: they are the data type with other numbers, which are names: `Article 17`.
    `names`: the items as they are, folded.
    """

    stops: bool = False
    bylines: bool = False
    short: bool = False
    places: bool = False
    articles: bool = False
    calls: bool = False
    labels: frozenset[str] = field(default_factory=frozenset)
    mapped: bool = False
    brief: bool = False
    foreign: bool = False
    counted: bool = False
    numbered: bool = False
    names: frozenset[str] = field(default_factory=frozenset)


def style_of(bodies: list[str], question: ReplyQuestion, marked: bool = False) -> ListStyle:
    """The style of a list with these items. `marked`: each has a list mark of its own."""
    plain = [body.strip().rstrip("*_\"'”’»` ") for body in bodies if body.strip()]
    stops = sum(text.endswith(".") for text in plain)
    lefts: dict[str, int] = {}
    rights: set[str] = set()
    for text in plain:
        left, _, right = broken(text[:LONGEST_LINE].replace("*", ""))
        if right:
            lefts[left.casefold()] = lefts.get(left.casefold(), 0) + 1
            rights.add(right.casefold())
    typed_numbers = _type_numbers(list(lefts), question)
    labels = frozenset(left for left, count in lefts.items() if count > 1)
    # Where most of them recur, the others are labels, too.
    if sum(lefts[left] for left in labels) > 0.5 * sum(lefts.values()):
        labels = frozenset(lefts)
    bylines = sum(_BYLINE.search(text.rstrip(".")) is not None for text in plain)
    short = sum(len(text.strip(" .")) <= 2 for text in plain)
    return ListStyle(
        stops > 1 and stops >= 0.6 * len(plain),
        bylines > 1 and bylines >= 0.5 * len(plain),
        short > 1 and short >= 0.5 * len(plain),
        _are_placed(plain, question.may_be_of_people or not marked),
        sum(text.startswith("The ") for text in plain) >= max(2, 0.6 * len(plain)),
        sum(text.endswith("!") for text in plain) >= max(2, 0.6 * len(plain)),
        labels if len(rights) > 1 else frozenset(),
        _are_mapped([broken(text[:LONGEST_LINE].replace("*", "")) for text in plain]),
        len(plain) > 2 and sum(len(text.split()) <= 3 for text in plain) >= 0.5 * len(plain),
        _have_foreign_articles([text.lstrip("*_ ") for text in plain]),
        _is_count(_type_numbers(plain, question)),
        len(typed_numbers) > 1 and None not in typed_numbers and not _is_count(typed_numbers),
        frozenset(text.strip("*_\"'“”`., ").casefold() for text in plain),
    )


def _have_foreign_articles(texts: list[str]) -> bool:
    """True if all texts begin with an article of another language; before a name, only in sentences."""
    if len(texts) < 2 or all(map(_FOREIGN_ARTICLE.match, texts)):
        return len(texts) > 1
    articles = {match.group() for text in texts if (match := _OPENING_FOREIGN.match(text))}
    return len(articles) > 1 and all(_OPENING_FOREIGN.match(text) and len(text.split()) > 3 for text in texts)


def _type_numbers(items: list[str], question: ReplyQuestion) -> list[int | None]:
    """The numbers of the items that are the data type with a number, such as `Fish 1`; None for others."""
    numbered = re.compile(rf"\W*{re.escape(question.data_type)}s?\s+#?(\d+)\W*", re.IGNORECASE)
    return [int(match[1]) if match else None for match in map(numbered.fullmatch, items)]


def _is_count(numbers: list[int | None]) -> bool:
    """True if these are the numbers from one on, which fill the form of a reply and name nothing."""
    return bool(numbers) and numbers == list(range(1, len(numbers) + 1))


def _are_mapped(items: list[tuple[str, str, str]]) -> bool:
    """True if each item is an arrow between two names. Explanations and symbols behind arrows are none."""
    for left, sign, right in items:
        head = right.rstrip(".")
        is_symbol = any(map(str.isdigit, head)) or sum(map(str.isupper, head)) >= 0.5 * len(head)
        is_name = len(head.split()) <= 4 and head[:1].isupper() >= left[:1].isupper() and not is_symbol
        if not sign.endswith(("→", ">")) or not is_name:
            return False
    return len(items) > 1


def _are_placed(texts: list[str], may_be_people: bool) -> bool:
    """True if nearly all texts are a name and its place, not a surname and first names."""
    matches = [match for text in texts if (match := _PLACED.fullmatch(_PARENTHESES.sub("", text).rstrip(".")))]
    if len({match["name"] for match in matches}) == 1:
        return False  # `Paris, Texas` and `Paris, Kentucky`
    if len(matches) < max(3, 0.8 * len(texts)):
        return False
    if not may_be_people:
        return True
    recurs = len({match["place"] for match in matches}) < len(matches)
    return recurs or sum(" " in match["name"] for match in matches) >= 0.5 * len(matches)


def broken(text: str) -> tuple[str, str, str]:
    """The text before the first colon or dash that separates, the separator, and the text after it."""
    match = _BREAK.search(text)
    # A separator at either end separates nothing.
    while match is not None and (not text[: match.start()].strip() or not text[match.end() :].strip()):
        match = _BREAK.search(text, match.end())
    if match is None:
        return text, "", ""
    return text[: match.start()].strip(), match.group().strip(), text[match.end() :].strip()


def tidy(text: str) -> str:
    """The text in NFC without invisible characters, tags, links, footnote signs and LaTeX commands."""
    if len(text) <= LONGEST_LINE and _PLAIN.fullmatch(text):
        return text.strip()  # most names: nothing below applies to them
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))[:LONGEST_LINE].strip()
    text = _without_formulas(text) if "\\" in text or "$" in text or "{" in text else text
    text = _FORMAT.sub("", text, count=1)
    text = _LATEX.sub(r"\g<text>", _LINK.sub(r"\g<text>", _TAGS.sub("", text)))
    return _FOOTNOTES.sub("", _OUTER_PICTURES.sub("", text)).strip()


def _without_formulas(text: str) -> str:
    """The text without the signs of LaTeX around and in its formulas; a lone dollar sign is a currency's."""
    text = _FORMULA.sub(r"\g<inside>", text)
    return _LATEX.sub(r"\g<text>", re.sub(r"\\[()\[\],;! ]|\{,\}", lambda sign: "," if sign[0] == "{,}" else " ", text))


def has_controls(text: str) -> bool:
    """True if the text holds characters that a screen would obey."""
    return any((unicodedata.category(c) in ("Cc", "Cs") and c != "\t") or c in _BIDI_CONTROLS for c in text)


def is_refusal(text: str) -> bool:
    """True if a line says that there is no answer, or that the model does not give one."""
    plain = text.strip().strip("*_\"'“”‘’`()[]").rstrip(".!。 ").casefold()
    if plain in _NOTHING:
        return True
    is_said = _REFUSAL.match(text.strip().lstrip("*_\"'“‘")) is not None and len(plain.split()) != 1
    # `I Can't Help Falling in Love` is a title.
    return is_said and not is_titled(text)


def is_sentence(text: str) -> bool:
    """True if a text reads as a sentence rather than as a name."""
    words = [word.strip("*_.,!?\"'()").replace("’", "'") for word in text.split()]
    if len(words) < 3:
        return False
    verbs = words[1:-1] if words[-1] == "can" else words[1:]  # `a watering can`
    if "do" in verbs and re.search(r"[A-Z]\w*\s+do\s+[A-Z]", text):
        verbs.remove("do")  # `Rio Grande do Sul`
    return any(word in _TALK for word in verbs) or words[0].casefold() in ("i", "i'm", "i'd", "please", "it's")


def values_of(text: str, question: ReplyQuestion, style: ListStyle, marked: bool = True) -> Value | DropReason:
    """The value in an entry, or the reason why there is none. `marked`: the entry has a list mark."""
    tidied = tidy(text)
    if has_controls(text[:LONGEST_LINE]):
        return DropReason.CONTROL
    if _CROSSED.search(text):
        return DropReason.REMARK
    if not any(char.isalnum() for char in tidied):
        return DropReason.EMPTY
    if question.numeric:
        number = None if is_refusal(tidied) else number_in(tidied, question)
        return (DropReason.REFUSAL if is_refusal(tidied) else DropReason.NO_NUMBER) if number is None else number
    return _text(tidied, question, style, marked)


# --- texts


def _text(text: str, question: ReplyQuestion, style: ListStyle, marked: bool) -> Value | DropReason:
    # `[B: pizza] is a dish`
    text = re.sub(rf"\[{re.escape(question.variable)}\s*[:=]\s*([^\[\]]+)\]", r"\1", text)
    dropped = _no_value(text, question, marked)
    if dropped is None and style.brief and marked and not question.is_of_titles and _is_advice(text):
        return DropReason.REMARK
    if dropped is not None:
        return dropped
    if question.is_of_titles and _is_quoted(text) and text.count(text[0]) == text.count(text[-1]):
        return _checked(" ".join(_unstopped(_without_quotes(text), ListStyle()).split()), question, style, exact=True)
    text = first_sentence(text)
    if marked and not question.is_of_titles:
        text = _QUANTIFIER.sub("", text)
    slot = in_template(text, question)
    if slot is not None:
        return _checked(_cleaned(_leading(slot, question, style), question, style), question, style)
    clause = question.shortened_predicate
    described = clause.fullmatch(text) if clause and not question.is_of_titles else None
    text = described["name"].rstrip(":–—- ") if described else text
    text = _assigned(text, question)
    if f"[{question.variable}]" in text.removeprefix(f"[{question.variable}]"):
        return DropReason.SLOT  # the question again
    name, exact = _named(text, question, style)
    if name is None:
        return DropReason.REMARK
    if exact:
        return _checked(" ".join(_without_quotes(name).split()), question, style, exact)
    return _from_name(name, question, style, marked)


def _no_value(text: str, question: ReplyQuestion, marked: bool) -> DropReason | None:
    """The reason why an entry holds no value by its words: refused, denied, taken back, or a slot without a value."""
    if is_refusal(text) and not (marked and question.is_of_titles and not _DECLINED.search(text)):
        return DropReason.REFUSAL
    denied = _DENIED.search(text) and not is_titled(text) and not question.is_of_phrases
    # A title may hold the words of a retraction; only its explanation takes it back.
    explanation = text[len(broken(text)[0]) :] if question.is_of_titles else text
    if denied or _RETRACTED.search(explanation):
        return DropReason.REMARK
    if denies_all(text, question) and not question.is_of_titles:
        return DropReason.REFUSAL
    return DropReason.SLOT if re.fullmatch(r"\W*\[[A-Z]\d?\]\W*", text) else None  # the slot of any variable


_ADVISING = re.compile(
    r"\s(?:you|your|until|whenever|everything|well|it|them|every|possible|enjoy|carefully|regularly|properly|enough|plenty|"
    r"gently|then|avoid|as\s+needed)\b"
)


def _is_advice(text: str) -> bool:
    """True if an entry in a list of short names is an instruction: `Stir well and serve hot`."""
    first, *others = text.rstrip(".! ").split()
    return (
        not broken(text)[2]
        and len(others) > 2
        and first[:1].isupper()
        and all(map(str.islower, others))
        and bool(_ADVISING.search(text))
    )


def denies_all(text: str, question: ReplyQuestion) -> bool:
    """True if a text says that no entity of the question is an answer: `No mammals breathe through gills.`"""
    match = re.match(r"no\s+(?P<what>\w+(?:\s+\w+)?)", text, re.IGNORECASE)
    return match is not None and bool(stems(match["what"]) & question.known_stems)


def _assigned(text: str, question: ReplyQuestion) -> str:
    """The text behind the variable that it assigns, `B = pizza`; the text itself if it assigns none."""
    name = re.escape(question.variable)
    match = re.match(rf"\[?{name}\]?(?:\s+(?:is|are)\s+|\s*=\s*)(?P<rest>\S.*)", text, re.DOTALL) or re.match(
        rf"\W{{0,4}}\[{name}\]\W{{0,4}}?\s*(?:=|:|→|->)\s*(?P<rest>[^*_]*[^*_\s])", text
    )
    if match and stems(match["rest"]) - question.known_stems and not re.search(r"\b[A-Z]\b", match["rest"]):
        return match["rest"]
    return text


def _from_name(name: str, question: ReplyQuestion, style: ListStyle, marked: bool) -> Value | DropReason:
    """The value in the part of an entry that names it."""
    shortened = _shortened(name, question, style, marked)
    if isinstance(shortened, DropReason):
        return shortened
    if not marked and not question.is_of_titles:
        shortened = OPENING_ARTICLE.sub("", shortened).rstrip("! ")
    return _checked(_cleaned(shortened, question, style), question, style)


def _shortened(name: str, question: ReplyQuestion, style: ListStyle, marked: bool) -> str | DropReason:
    """The name without an apposition and, in a sentence, without the predicate."""
    if not question.is_of_titles:
        name = _APPOSITION.sub("", name)
        counted = _before_comma(_PARENTHESES.sub("", name), question, style)
        if len(counted.split()) > MOST_WORDS and not is_sentence(name):
            return DropReason.TOO_LONG
        reasoned = None if name.split(" ")[0].endswith("ing") else _REASONED.match(name)
        name = reasoned["name"] if reasoned and not is_titled(name) else name
    named = _NAMED_SUBJECT.fullmatch(name) if style.stops and not question.is_of_titles else None
    if named:
        return named["name"]
    is_name = question.is_of_phrases or (question.is_of_titles and is_titled(name))
    if not marked or is_name or not is_sentence(_PARENTHESES.sub("", name)):
        return name
    subject = _subject(name, question, style)
    if subject is None:
        return DropReason.REMARK
    words = subject.split()
    has_article = words[0] == "The" and len(words) > 1 and (style.articles or len(words) > 2)
    return " ".join(words[1:]) if has_article else subject


def _leading(slot: str, question: ReplyQuestion, style: ListStyle) -> str:
    """The value at the beginning of a slot, without label, article and explanation."""
    left, _, right = broken(slot)
    if right and is_label(left, question, style):
        slot = right  # `A: pizza is a dish from Italy`
    article = _ARTICLE.match(slot) or LEADING_QUANTIFIER.match(slot) or (style.articles and _THE.match(slot))
    slot = slot[article.end() :] if article and not question.is_of_titles else slot
    match = _LEADING_TEXT.match(slot)
    return match["text"] if match else slot


def _subject(sentence: str, question: ReplyQuestion, style: ListStyle) -> str | None:
    """The value in a sentence without the template: the part that the question does not describe, or its subject."""
    slot = stated(sentence, question)
    if slot is not None and len(slot.split()) <= 5:
        return _leading(slot, question, style)
    subject = _VERBS.match(sentence)
    words = subject["subject"].split() if subject else []
    if not words or len(words) > 5 or words[0].casefold().strip(",") in _NO_SUBJECT:
        return None
    return " ".join(words)


def _named(text: str, question: ReplyQuestion, style: ListStyle) -> tuple[str | None, bool]:
    """The part of an entry that names the value, and True if it stands in quotes, so that nothing is cut off."""
    lead = LEAD_IN.fullmatch(text.replace("**", ""))
    if lead:
        text = lead["rest"]
    bold = _LEADING_BOLD.match(text) or _LEADING_ITALIC.match(text)
    return _named_in_bold(text, bold, question, style) if bold else _named_plainly(text, question, style)


def _named_in_bold(
    text: str, bold: re.Match[str], question: ReplyQuestion, style: ListStyle
) -> tuple[str | None, bool]:
    """As `_named`, of an entry that begins in bold or italics."""
    inner, rest = bold["text"].strip(), bold["rest"].strip()
    separated = inner.endswith((":", "：")) or bool(re.match(r"[:：=]|[-–—]+\s", rest))
    after = re.sub(r"^(?:[:：=]|[-–—]+)\s*", "", rest)
    inner = inner.rstrip(":： ")
    if separated and _denies(after, question):
        return None, False
    if separated and after and is_label(inner, question, style):
        return _named(after, question, style)
    if (
        re.match(r"[\w'’]", rest)
        and not bold["text"].endswith((":", "："))
        and not bold["rest"].startswith((" ", "\t"))
    ):
        return text.replace(bold["sign"], ""), False  # a part of a word is bold
    if question.is_of_titles and not style.bylines and "(" in inner:
        return _DATED.sub("", inner), True
    return inner, _is_quoted(inner) or (not question.is_of_titles and _is_joint(inner))


def _is_joint(name: str) -> bool:
    """True if a name in emphasis lists words: `Ministry of Food, Agriculture and Fisheries`."""
    return is_titled(name) and re.search(r",[^(]*\b(?:and|&|or)\s[^(]*$", name) is not None


def _named_plainly(text: str, question: ReplyQuestion, style: ListStyle) -> tuple[str | None, bool]:
    """As `_named`, of an entry without emphasis at its beginning."""
    quoted = _quoted_beginning(text)
    if quoted is not None:
        return quoted, True
    left, sign, right = broken(text)
    if not right:
        dated = _DATED_TITLE.match(text) if question.is_of_titles else None
        return (dated["title"], True) if dated else (text, False)
    if _denies(right, question):
        return None, False  # `Copper: not attracted by magnets`
    if style.mapped or is_label(left, question, style):
        return _named(right, question, style)
    dated = _DATED_TITLE.match(text) if question.is_of_titles else None
    if dated:
        return dated["title"], True
    if question.is_of_titles and sign == ":" and _is_title(right):
        return _PARENTHESES.sub("", text), True
    return (left, False) if len(left) <= LONGEST_VALUE + 20 else (None, False)


def _denies(explanation: str, question: ReplyQuestion) -> bool:
    """True if an explanation says that the item is no answer: `Copper: not attracted by magnets`, `Whale: no`."""
    match = _NOT_SO.match(explanation)
    return match is not None and (match.end() == len(explanation) or bool(stems(explanation) & question.known_stems))


def is_label(text: str, question: ReplyQuestion, style: ListStyle) -> bool:
    """True if a text before a separator says what follows, instead of being the value."""
    plain = text.strip("*_\"'`[]() ").casefold()
    if plain == question.variable.casefold() or plain in style.labels or _LABEL.fullmatch(plain):
        return True
    if _YEARS.fullmatch(plain) and not question.is_of_titles:
        return True  # `1903: Marie Curie`
    words = plain.rstrip("0123456789# ").split()
    if style.numbered and plain[-1:].isdigit():
        return False  # `Article 17: right to erasure`
    return bool(words) and " ".join(words) in (question.data_type.casefold(), f"{question.data_type.casefold()}s")


def _is_title(text: str) -> bool:
    """True if the words of a text are capitalised as in a title."""
    words = [word for word in text.split() if len(word) > 3] or text.split()
    return len(text) <= LONGEST_VALUE and all(not word[:1].islower() for word in words) and not text.endswith(".")


def _is_quoted(text: str) -> bool:
    return len(text) > 2 and text[-1] in _QUOTES.get(text[0], "")


def _quoted_beginning(text: str) -> str | None:
    """The text in the quotation marks with which an entry begins; None if it begins otherwise or goes on as a word."""
    closing = _QUOTES.get(text[:1])
    if closing is None or text[0] in "[<":
        return None
    match = re.match(rf"(.[^{re.escape(closing)}]{{1,200}}|.)[{re.escape(closing)}](?P<rest>.*)", text, re.DOTALL)
    if match is None or re.match(r"[\w]", match["rest"]):
        return None
    inside = match[1][1:].strip()
    is_whole = not match["rest"].strip() and inside.endswith((".", ",")) and not inside.endswith("..")
    return _unstopped(inside, ListStyle()) if is_whole else inside


def _without_quotes(text: str) -> str:
    text = text.strip()
    while len(text) > 1 and (text[-1] in _QUOTES.get(text[0], "") or (text[0] == text[-1] and text[0] in "'*_")):
        text = text[1:-1].strip()
    return text.strip(_LONE).strip()


_HEDGE = re.compile(
    r"^(?:indeed|actually|really|simply|currently|possibly|perhaps|maybe|probably|arguably|presumably|sometimes|occasionally|potentially|mainly|mostly|also|even|"
    r"usually|often|especially|typically|commonly)\s+(?=\w)",
    re.I,
)
"""A word of doubt before a value."""
_TYPE_BEFORE = (
    r"(?:the\s+)?(?:[^\W\d_]+\s+)?(?:{type})\s+(?:of\s+(?=[^\W\d_a-z])|(?:called|named|known\s+as)\s+)(?P<name>\S.*)"
)
"""The data type before a name: `the European country of Austria`."""
_FOOTNOTE = re.compile(r"(?<=[^\W\d_]{2})\*$")
"""An asterisk after a word, as of a footnote or half of an emphasis; names such as `Sagittarius A*` keep theirs."""


def _cleaned(name: str, question: ReplyQuestion, style: ListStyle) -> str:
    """The name without parentheses, further parts, quotes and closing punctuation."""
    text = _without_quotes(_OUTER_PICTURES.sub("", name.strip()))
    text = _without_quotes(_unstopped(text, style))
    text = _without_parentheses(text)
    if style.bylines:
        text = _BYLINE.sub("", text)
    text = _unstopped(text, style) if not style.stops else text.rstrip(",; ")
    text = _before_comma(_first_alternative(text, style), question, style)
    text = " ".join(_without_quotes(_FOOTNOTE.sub("", text.replace("**", ""))).split())
    if not question.is_of_titles:
        text = _OPENING_FOREIGN.sub("", text, count=1) if style.foreign else text
        text = _HEDGE.sub("", text.rstrip("! ") if style.calls else text)
        text = _ARTICLE.sub("", text)
    types = "|".join(map(re.escape, sorted(question.type_words)))
    if text.startswith("The ") and text.casefold().split()[-1] in question.type_words and not question.is_of_titles:
        text = text[4:]  # `The Bishop Rock Lighthouse`
    of_type = re.match(_TYPE_BEFORE.format(type=types), text)
    text = of_type["name"] if of_type and not question.is_of_titles else text
    # The sentence has the article itself: "the whole course of the [A]".
    return text[4:] if question.has_article and text[:4].casefold() == "the " else text


def _without_parentheses(text: str) -> str:
    """The text without remarks in parentheses; those that belong to a name stay: `(500) Days`, `copper(II) oxide`."""

    def rest(match: re.Match[str]) -> str:
        follows = text[match.end() :]
        attached = match.start() > 0 and not match.group()[:1].isspace()
        # (500) Days of Summer
        if match.start() == 0 and re.match(r"[^\S\n]*\w", follows):
            return match.group()
        # copper(II), part(s)of, 2-(acetyloxy)benzoic acid
        if (
            attached
            and (
                not match["inside"]  # sorted()
                or _ROMAN.fullmatch(match["inside"])
                or re.match(r"\w", follows)
                or _CHEMICAL.search(text[: match.start()])
            )
        ):
            return match.group()
        return ""

    text = _BRACKETS.sub("", text)
    shorter = _PARENTHESES.sub(rest, text)
    # Nested ones go from the inside out.
    while shorter != text:
        text = shorter
        shorter = _PARENTHESES.sub(rest, text)
    # A reply that was cut may lack a closing parenthesis, and a value cut out of one the opening parenthesis.
    opened = max(text.rfind("("), text.rfind("（"))
    if opened > max(text.rfind(")"), text.rfind("）")):
        text = text[:opened]
    elif opened < 0:
        text = text.replace(")", "").replace("）", "")
    return text.strip()


def _unstopped(text: str, style: ListStyle) -> str:
    """The text without the punctuation that ends the item; a point that belongs to the name stays."""
    stripped = text.rstrip(" \t,;،؛，；、。।")
    if not stripped.endswith("."):
        return stripped
    if stripped.endswith(".."):
        return (
            stripped.rstrip(".") + "."
            if stripped.endswith("..") and not stripped.endswith("...")
            else stripped.rstrip(". ")
        )
    last = stripped.split()[-1].casefold()
    if _ACRONYM.search(stripped) or (last in _ABBREVIATIONS and not style.stops and last != stripped.casefold()):
        return stripped
    return stripped[:-1].rstrip()


def _first_alternative(text: str, style: ListStyle) -> str:
    """The first of alternatives that slashes separate: with blanks around them, or one of which is an item, too.

    Other slashes belong to names: `FK Bodø/Glimt`, `Amoxicillin/clavulanate`, `AC/DC`.
    """
    parts = [part.strip() for part in text.split("/")]
    if len(parts) < 2 or not all(parts):
        return text
    if {part.casefold() for part in parts} <= {"and", "or"}:
        return ""
    is_choice = " / " in text or any(part.casefold() in style.names for part in parts)
    return parts[0] if is_choice else text


def _before_comma(text: str, question: ReplyQuestion, style: ListStyle) -> str:
    """The text up to a comma, unless what follows belongs to the name: `Washington, D.C.`"""
    parts = [part.strip() for part in re.split(r",\s+|，|،", text)]
    if len(parts) == 1:
        return text
    if question.is_of_titles or (len(parts) <= 4 and "&" in parts[-1]):
        return text
    if len(parts) == 2 and _DATE.fullmatch(text):
        return text
    # A title in capitals that ends in `and` and several words: `Alcohol, Tobacco, and Gaming Act`.
    if len(parts) > 2 and re.match(r"(?:and|&)(?:\s+\S+){2}", parts[-1]) and is_titled(text):
        return text
    belongs = (
        len(parts) == 2
        and not style.places
        and parts[1][:1].isupper()
        and len(parts[1].split()) <= 3
        and not re.search(r"[A-Z)][₀-₉\d]", parts[1])
        and _is_title(parts[1].rstrip("."))
    )
    return text if belongs and parts[1].casefold() not in question.sentence.casefold() else parts[0]


def _is_data_type(folded: str, question: ReplyQuestion) -> bool:
    """True if a value is the data type, as it is or with a clause or words of the question behind it."""
    name = re.escape(" ".join(question.data_type.casefold().split()))
    if re.fullmatch(rf"(?:(?:an?|the)\s+)?{name}", folded):
        return True
    match = re.fullmatch(rf"(?P<article>(?:an?|the)\s+)?{name}(?P<plural>e?s)?(?:\s+(?P<rest>.+))?", folded)
    if match is None or question.is_of_titles:
        return False
    rest = match["rest"] or ""
    is_clause = re.match(r"(?:that|which|who|whose|where|with)\b|\w+ing\s", rest) is not None
    is_described = bool(match["article"] or match["plural"]) and bool(stems(rest) & question.known_stems)
    return not rest or is_clause or (len(rest.split()) > 1 and is_described)


def _is_unfilled(value: str, folded: str, question: ReplyQuestion, style: ListStyle) -> bool:
    """True if a value stands for values without naming one: `and so on`, `several`, `[B]`, `Fish 1`."""
    if re.fullmatch(r"[.…\s]*(?:and\s+)?(?:so\s+on|so\s+forth|many\s+more|more|others?|etc|among\s+others)\W*", folded):
        return True
    if (style.counted or folded in QUANTITIES) and not question.is_of_titles:
        return True
    name = re.escape(question.variable)
    if re.search(rf"\[{name}\b", value) or re.fullmatch(rf"{name}\s*(?:=|is\b|are\b).*", value):
        return True
    return _PLACEHOLDER.fullmatch(value) is not None or (value == question.variable and not style.short)


def _checked(value: str, question: ReplyQuestion, style: ListStyle, exact: bool = False) -> Value | DropReason:
    """The value, unless it is none after all. `exact`: it stood in quotes, or in emphasis."""
    if not any(char.isalnum() for char in value):
        return DropReason.EMPTY
    folded = " ".join(value.casefold().split())
    if _is_unfilled(value, folded, question, style):
        return DropReason.SLOT
    if _is_data_type(folded, question):
        return DropReason.DATA_TYPE
    if folded in _NOTHING:
        return DropReason.REFUSAL
    if re.fullmatch(r"\d{1,2}", value) and (style.short or (exact and question.is_of_titles)):
        return value
    if re.fullmatch(r"\d{1,2}|\d+(?:\.\d+){2,}\.?|\d\W*|\d[.)\s]+\d[.)]?", value):
        return DropReason.EMPTY  # what is left of a list that has lost its values
    longest = LONGEST_TITLE if question.is_of_titles else LONGEST_VALUE
    return value if len(value) <= longest else DropReason.TOO_LONG
