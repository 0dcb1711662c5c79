"""Takes the values out of sentences: by the question's template, by the verb, or by the names and lists in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from hapax.llm_oracle.reading.reply_question import ReplyQuestion, stems

LONGEST_PROSE = 20_000
"""Characters of a line that are read as sentences."""
LONGEST_SENTENCE = 1_000
"""Characters of a sentence that are compared with the question."""

# --- kinds of text

_REFUSAL = re.compile(
    r"(?:none|n/a|na|unknown|not known|nothing|no answer|not applicable|none known|not available|no one|nobody|keine|"
    r"aucune?|"
    r"ningun[oa]|无|没有|null|nil|none exist|no match|no results|no others|i don't know)$|"
    r"(?:as\s+of\s+[^,]{3,40},\s+)?(?:no(?:body|\s?one)?\s+(?:[^\W\d_]+\s+){0,4}(?:has|have|is|are|was|were|can|could|"
    r"exists?)\b|"
    r"(?:i['’]?m\s+|i\s+am\s+)?(?:(?:very|so|truly|really)\s+)?sorry\b|(?:my\s+)?apologies|i\s+(?:do\s+)?apologi[sz]e|"
    r"unfortunately|"
    r"i\s+(?:can(?:no|['’])t|can\s+not|cannot|could\s?n['’]t|could\s+not|won['’]t|will\s+not|must\s+decline|"
    r"am\s+(?:not|unable)|do\s+not|don['’]t|have\s+no)|i['’]m\s+(?:not|unable|afraid)|as\s+an?\s+(?:ai|large|language|"
    r"artificial)|"
    r"there\s+(?:is|are|was|were)\s+(?:no|not|none|currently\s+no)\b|there\s+(?:isn|aren)['’]t|none\s+of\s+\w+|"
    r"no\s+(?:countr|valu|answer|such|known|example|correct|further|more|other)\w*\s+\w+|it(?:\s+is|"
    r"['’]s)\s+not\s+(?:possible|appropriate)|"
    r"es\s+tut\s+mir\s+leid|je\s+suis\s+désolé|lo\s+siento|mi\s+dispiace|desculpe|抱歉|对不起|很抱歉|申し訳|لا\s+يوجد|"
    r"عذرًا|क्षमा|извините|к\s+сожалению)",
    re.IGNORECASE,
)
# Words that names seldom hold after their first one.
_TALK = frozenset(
    [
        "is", "are", "was", "were", "has", "have", "had", "can", "could", "will", "would", "should", "may", "might",
        "must", "do", "does", "did", "don't", "i", "i'm", "i'd", "i'll", "you", "your", "you'd", "we", "they", "them",
        "it's", "that's", "there's", "here's", "please", "let", "hope", "feel", "note", "ensure", "remember", "consult",
        "be", "these", "those", "which", "who", "because", "since", "if"
    ]
)  # fmt: skip
DENIAL = re.compile(
    r"\bnot\b(?!\s+(?:only|exhaustive|complete|just|limited))|n['’]t\b|\b(?:never|neither|no\s+longer)\b", re.IGNORECASE
)
POINTING = re.compile(r"(?:it|this|that|these|those|they|he|she|we|i|you|there|here|which|who)\b", re.IGNORECASE)
VERDICTS = ("yes", "no", "true", "false", "ok", "okay", "maybe")


def is_titled(text: str) -> bool:
    """True if the longer words of a text, two or more, all begin with capitals, as in a title."""
    words = [word for word in re.findall(r"[^\W_][\w'’]*", text) if len(word) > 3]
    return len(words) > 1 and not any(word[0].islower() for word in words)


def is_refusal(text: str) -> bool:
    """True if a text says that there is no answer, or that the model does not give one."""
    # `I Can't Help Falling in Love` is a title.
    return _REFUSAL.match(text.strip(" *_\"'“”‘’`()[].!。")) is not None and not is_titled(text)


def is_sentence(text: str) -> bool:
    """True if a text reads as a sentence rather than as a name."""
    words = [word.strip("*_.,!?\"'()").replace("’", "'") for word in text.split()]
    verbs = words[1:-1] if words[-1:] == ["can"] else words[1:]  # `a watering can`
    is_name = re.search(r"[A-Z]\w*\s+do\s+[A-Z]", text) is not None  # `Rio Grande do Sul`
    return (
        len(words) > 2
        and not is_name
        and (not _TALK.isdisjoint(verbs) or words[0].casefold() in ("i", "i'm", "please", "it's"))
    )


def are_names(parts: Sequence[str], most_words: int = 6) -> bool:
    """True if texts are short enough to be names."""
    return all(len(part.split()) <= most_words for part in parts)


# --- sentences

# A mark that ends a sentence, with the beginning of the next word after it, or an ideographic one alone.
_STOP = re.compile(r"[.!?]+[\"”’»)*]*\s+(?=\W{0,6}(?P<next>[^\W_]+))|[。！？]+")
# Before a full stop: an initial or an abbreviation, as in `J.`, `Mt.`, `e.g.`, `U.S.`.
_SHORTENED = re.compile(
    r"(?:^|[\s(\"“.*_])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Mt|Ft|Jr|Sr|Prof|Gen|Col|Lt|Capt|Sgt|Rev|Hon|No|Nr|Nos|Vol|Op|Fig|"
    r"vs|"
    r"etc|[Cc]a|[Aa]pprox|Inc|Ltd|Co|Corp|Bros|e\.g|i\.e|U\.S|U\.K|D\.C)$"
)
_OPENS_SENTENCE = frozenset(
    [
        "It", "Its", "He", "She", "They", "This", "That", "These", "Those", "The", "There", "Here", "In", "On", "At",
        "As", "However", "Although", "While", "Since", "Because", "Note", "Also", "Other", "Some", "Many", "Most",
        "Their", "His", "Her", "We", "You", "If", "When", "For", "Please"
    ]
)  # fmt: skip
# `Yes, `, `I think that `, `For example, `, `To my knowledge, `, each before the statement itself.
_OPENING = re.compile(
    r"(?:(?:i\s+(?:think|believe|guess)|i['’]?\s?a?m\s+(?:fairly|quite|pretty|very)\s+(?:sure|certain|"
    r"confident)),?\s+(?:that\s+)?|"
    r"it\s+is\s+(?:\w+ly\s+)?(?:believed|known|said|thought|considered|accepted|assumed)\s+that\s+|"
    r"(?:as\s+far\s+as\s+i\s+know|to\s+(?:the\s+best\s+of\s+)?my\s+knowledge|if\s+i\s+recall\s+correctly),?\s+|"
    r"as\s+of\s+[^,]{3,30},\s+|currently,\s+|(?:then|next|finally|lastly)\s+(?=(?:there|comes|\w+\s+is)\b)|"
    r"(?:yes|sure|well|so|okay|ok|certainly|of\s+course|for\s+(?:example|instance)|e\.g\.|examples?|therefore|thus|"
    r"hence|indeed|overall|in\s+(?:short|summary|conclusion|this\s+case)|first(?:ly)?|second(?:ly)?|third(?:ly)?|"
    r"fourth|fifth|"
    r"sixth|then|next|finally|lastly|also|(?:most\s+|more\s+)?(?:recently|notably|famously)|later|technically|"
    r"historically|"
    r"traditionally|here\s+you\s+go|great\s+question|gladly|absolutely)[,.!:]+\s*)+",
    re.IGNORECASE,
)


# `1. FC Köln` is a name; the number before a single word is a list's.
_ORDINAL_NAME = re.compile(r"\s*\d{1,2}\.\s*[^\W\d_]\w*[ -]+\w")


def sentences(text: str) -> list[str]:
    """The sentences of a text. A full stop after an abbreviation or an initial ends none."""
    result: list[str] = []
    begin = 0
    for match in _STOP.finditer(text):
        following = match["next"]
        if following is not None:
            # `approx. five` goes on; a word such as `The` begins a sentence anywhere.
            is_ordinal = _ORDINAL_NAME.match(text, begin) if match.start() - begin < 4 else None
            shortened = text[match.start()] == "." and _SHORTENED.search(
                text[max(0, match.start() - 12) : match.start()]
            )
            goes_on = not (following[0].isupper() or following[0].isdigit())
            if is_ordinal or goes_on or (shortened and following not in _OPENS_SENTENCE):
                continue
        result.append(text[begin : match.end()].strip())
        begin = match.end()
    rest = text[begin:].strip()
    return [*result, rest] if rest else result


def without_opening(text: str) -> str:
    """A sentence without words such as `Yes,` and `For example,` before it."""
    match = _OPENING.match(text)
    return text[match.end() :] if match else text


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\*+|__", "", text[:LONGEST_SENTENCE]).split())


# --- lists in a sentence

# Names of ISO 3166 that hold `and`.
_COMPOUND_NAMES = re.compile(
    r"bosnia and herzegovina|trinidad and tobago|antigua and barbuda|(?:saint|st\.) kitts and nevis|"
    r"s[aã]o tom[eé] and pr[ií]ncipe|saint vincent and the grenadines|saint pierre and miquelon|"
    r"wallis and futuna|turks and caicos(?: islands)?|svalbard and jan mayen",
    re.IGNORECASE,
)
# The end of `a, b, among others`, `a, b, etc.` and `a and b, to name a few`, also in other languages.
_AND_MORE = re.compile(
    r"[,;]?\s*(?:\b(?:and\s+)?(?:among|amongst)\s+(?:many\s+)?others?|\betc\b\.?|\band\s+so\s+(?:on|forth)|"
    r"\band\s+(?:many\s+|several\s+|so\s+many\s+|a\s+few\s+)?(?:more|others)|\bto\s+name\s+(?:just\s+)?a\s+few|"
    r"\bfor\s+(?:example|instance)|\bas\s+well|\brespectively|\.{3}|…|"
    r"entre\s+(?:much[oa]s\s+|muit[oa]s\s+)?(?:otr[oa]s|outr[oa]s|autres)|(?:y|e)\s+(?:much[oa]s\s+|"
    r"muitos\s+)?(?:otr[oa]s|outr[oa]s|altr[ie])|"
    r"et\s+d['’]autres|usw\.?|u\.\s?a\.?|unter\s+anderem|und\s+(?:viele\s+)?(?:andere|weitere|mehr)|ecc\.?|enzovoort|"
    r"i\s+inne|"
    r"и\s+(?:другие|др\.?)|dan\s+lain(?:-lain|nya)?|等等|等|など(?:があります|が挙げられます)?|があります)[\s.!。]*$",
    re.IGNORECASE,
)
_JOINS = re.compile(
    r"^(?:and(?:\s+also)?|or|und|oder|et|ou|(?-i:y|e|o)|&|dan|og|och|ve|as\s+well\s+as|along\s+with|also|plus|"
    r"such\s+as|for\s+(?:example|instance)|e\.g\.)"
    r"[,:]?\s+",
    re.IGNORECASE,
)
# Between two values, and before the last of three or more; between two, single letters may belong to a name.
_PAIR = re.compile(
    r"\s+(?:and|or|und|oder|et|oraz|sowie|और|και|as\s+well\s+as|&)\s+|(?<=[\u3000-\u9fff])(?:以及|和|与|"
    r"及)(?=[\u3000-\u9fff])"
)
_LAST_PAIR = re.compile(_PAIR.pattern + r"|\s+(?:y|e|ou|o|og|och|en|и|та|i|ja|ve|và|și|dan)\s+")
_EXPLAINING = re.compile(
    r"(?:specifically|especially|particularly|in\s+particular|mainly|mostly|notably|namely|for\s+(?:example|instance)|"
    r"have|has|are|is|was|were|can|not|e\.g\.|i\.e\.|which|where|who|whose|in|near|on|at|off|due\s+to|"
    r"\w+ed\s+(?:in|by|with|from|of|as|to|for)|because|although|though|but|while|with|when|so|it|they|each|all|"
    r"also\s+(?:known|called)|known|called|formerly|born|located|[a-z]+ing\s+(?:on|with|from|in|at|of|to|by|up)|"
    r"(?-i:an?)|the\s+\w+\s+(?:of|in))\b",
    re.IGNORECASE,
)
# Commas of any script, but not the one of `1,200`; blanks around another sign.
_COMMA = re.compile(r"[,،]\s+|[,，،](?=[^\d\s])|，|、|؛\s*")
_SPACED = re.compile(r"\s+[-–—•·|/]\s+")
# The part of a list that names no value: `and many species of fish`.
_UNNAMED = re.compile(
    r"(?:(?:so\s+)?many|several|various|numerous|countless|other|some|certain|all\s+kinds\s+of|a\s+(?:variety|number|"
    r"few|range)\s+of)\s+(?=[a-z])|"
    r"(?:and|or)?$"
)
# A date, a parenthesis, or a quotation, in which commas separate nothing.
_CLOSED = re.compile(
    r"[^\W\d_]{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,\s+\d{4}\b|\([^()]*\)|（[^（）]*）|\"[^\"]*\"|“[^“”]*”|«[^«»]*»|"
    r"《[^》]*》"
)


def _split(separator: re.Pattern[str], text: str) -> list[str]:
    """The parts between separators that stand outside dates, parentheses and quotation marks."""
    hidden = _CLOSED.sub(lambda match: "\0" * len(match.group()), text)
    places = list(separator.finditer(hidden))
    begins = [0, *(match.end() for match in places)]
    ends = [*(match.start() for match in places), len(text)]
    return [text[begin:end].strip() for begin, end in zip(begins, ends, strict=True) if text[begin:end].strip()]


def listed(text: str, question: ReplyQuestion) -> list[str]:
    """The values of a text that lists them with commas or `and`; the text itself if it lists none."""
    text = _AND_MORE.sub("", text.strip()[:LONGEST_PROSE]).strip().removeprefix("• ")
    spaced = _split(_SPACED, text)
    if len(spaced) > 2 and are_names(spaced, 4):
        return spaced
    if re.search(r"[;；]\s*\S", text):
        return [_JOINS.sub("", part) for part in _split(re.compile(r"[;；]"), text)]
    parts = _split(_COMMA, text)
    # One part with an article explains a name; several are a list, `a clarinet, a violin, a double bass`.
    articled = [part for part in parts[1:] if re.match(r"(?:and\s+|or\s+)?an?\s+(?:\S+\s?){1,3}$", part)]
    named = [*parts[:1], *(articled if len(articled) > 1 else ())]
    parts = list(takewhile(lambda part: part in named or not _EXPLAINING.match(part), parts)) or [text]
    if len(parts) < 2 or re.fullmatch(r"(?:[A-Z]\.)+|Jr\.?|Sr\.?|Inc\.?|Ltd\.?|Ph\.?D\.?|M\.?D\.?|I{2,3}", parts[1]):
        return _pair(parts[0], question, False) if len(parts) < 2 else [text]
    values = [parts[0]]
    for part, following in pairwise([*parts[1:], ""]):
        joined = _JOINS.match(part)
        name = part[joined.end() :] if joined else part
        # `a, b and c, as well as d and e`
        is_open = not following or re.match(r"as\s+well|also|plus|along", following)
        values += _pair(name, question, True) if is_open and (not joined or joined.group()[:3] != "and") else [name]
    return [value for value in values if not _UNNAMED.match(value)] or values


def _pair(text: str, question: ReplyQuestion, in_list: bool) -> list[str]:
    """The two names of `France and Spain`; a name that holds `and` stays whole."""
    if _COMPOUND_NAMES.fullmatch(text.strip(" .")) or (question.has_compounds and not in_list):
        return [text]
    parts = _split(_LAST_PAIR if in_list else _PAIR, text)
    are_short = all(are_names([part], 6 if is_titled(part) else 4) for part in parts)
    return parts if len(parts) > 1 and are_short and not _EXPLAINING.match(parts[1]) else [text]


# --- the part of a sentence that states values

# `The answer is basil`, `So, the correct value of B is: basil`, `You could use basil or thyme`, `It's basil`.
_LEAD_IN = re.compile(
    r"(?:(?:so,?\s+|thus,?\s+|therefore,?\s+)?(?:the\s+|one\s+)?(?:(?:correct|final|right|possible)\s+)*"
    r"(?:answer|value)s?(?:\s+(?:of|for)\s+\S+)?\s+(?:is|are|would be|could be|=)\s*:?|"
    r"(?:(?:if|when|for)\s[^,]+,\s+)?(?:(?:you|one|we|i)\s+(?:(?:can|could|may|might|would|"
    r"will)\s+)?(?:also\s+)?(?:use|try|choose|"
    r"suggest|recommend|name|list|consider)|(?:try|consider))(?=[^,]+(?:,|\sor\s|\sand\s))|"
    r"(?:it|that|there)['’]s(?!\s+(?:not|an?|the\s+(?:most|best|first|only))\b))\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
# ` is `, ` is known as `, ` can be `, ` includes `, ` ist `.
_COPULA = re.compile(
    r"\s+(?:(?:is|are|was|were)(?:\s+(?:called|named|known\s+as|typically|usually|generally|probably|likely))?|"
    r"(?:would|could|might|may|can|must|will)\s+be|includes?|included|comprises?|remains?|"
    r"(?P<foreign>(?-i:ist|sind|est|sont|es|fue|è|sono|é|são|zijn|heißt)))(?:\s*:)?\s+",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?:it|that|this|they|these|those|here|(?:the\s+|an?\s+|some\s+|one\s+|another\s+|other\s+)?(?:\w+\s+)?"
    r"(?:examples?|answers?|ones?|options?|possibilit(?:y|ies)|values?|others))",
    re.IGNORECASE,
)
# The list in `herbs such as basil`, `herbs, including basil` and `Herbs of Italy: basil, thyme`.
_SUCH_AS = re.compile(
    r"(?:,?\s+(?:such\s+as|including|namely|like|e\.g\.,?|for\s+(?:example|instance),?)\s*:?|[:：]|\((?:e\.g\.|"
    r"for\s+example|such\s+as|including|like)[,:]?)\s*(?P<rest>[^\s(][^()]*)",
    re.IGNORECASE,
)
_COLON = re.compile(r"[^:：]{3,200}[^\W\d][:：]\s*(?P<rest>[^:：]*[,，、;][^:：]*)$")
_VAGUE = re.compile(
    r"(?:(?:in|from|by|through|at|to)\s+)?(?:many|several|various|some|a\s+(?:number|variety|few|range)\s+of|numerous|"
    r"different|multiple|most|other|certain|all|both|the\s+following|these|the|(?:[a-z]+\s)?[a-z]{2,}(?<!s)s$)\b",
    re.IGNORECASE,
)
# `composed by Verdi`, `originally written by Homer`; `spoken in Brazil`.
_PASSIVE = re.compile(
    r"(?:(?:\w+ly|often|sometimes|also|most|best|first|still)\s+)*(?P<verb>\w+(?:ed|en|wn|t|de))\s+"
    r"(?:(?P<by>(?:(?:\w+ly\s+|(?:in|on|around)\s+(?:\w+\s+)?\d{3,4}\s+)?by|(?<=credited\s)to|(?<=attributed\s)to))|"
    r"in|from|at|on|with|of|as|into|through)\s+(?P<rest>.+)",
    re.DOTALL,
)
# The time and the clause after a value: `Tosca in 1900`, `Tosca, which is an opera`, `Lincoln in 1865, Lee in 1870`.
_DATED = re.compile(
    r"\s+(?:in|on|around|since|by|from|between|during)\s+(?:(?:the\s+)?(?:(?:year|early|mid|late)[\s-]+)?|"
    r"\w+\s+(?:\d{1,2},\s+)?)\d{3,4}s?\b(?!\s+by\s)(?=\W*$|,? (?!and\b|[A-Z])).*$|"
    r"\s+(?:in|since|from)\s+(?:[A-Z][a-z]+\s+)?\d{3,4}(?=\s*(?:,|;|and\b))|"
    r"\s+(?:in|during)\s+the\s+(?:(?:early|mid|late)[\s-]+)?\w+\s+century\b.*$|"
    r",?\s+(?:because|which|where|when|who|since|(?:even\s+)?though|although|while)\s.*$|"
    r"\s+and\s+(?:is|are|was|were|has|have|had)\s.*$",
    re.DOTALL,
)
_NOT_A_NAME = re.compile(
    r"(?:not|no|incorrect|correct|wrong|true|false|unknown|unclear|an?|the\s+(?:most|best|first|only|\w+est)|very|"
    r"known|also|often|used|found|"
    r"one\s+of|some|many|several|located|made|called|considered|important|possible|essential|in|on|at|by|to|from|with|"
    r"for)\b",
    re.IGNORECASE,
)
# The words before a verb that are not a name but a part of another sentence.
_NO_SLOT = re.compile(
    r":\s|\b(?:that|which|who|to|is|are|was|were|has|have|does|do|did|not|of|and)$|^(?:no|none|nobody|nothing)\b|"
    r"\b(?:is|are|was|were|has|have)\b|(?:^|\s)(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve)\s+[a-z]+s$|"
    r"^(?:many|several|various|numerous|some|a\s+(?:number|variety|range)\s+of)\s(?-i:[a-z])|(?:\S+\s+){12}",
    re.IGNORECASE,
)
_ADJUNCT = re.compile(r"(?<=\w)\s+(?:to|in|for|at|on|into|as|from|with|by)\s.*$", re.DOTALL)
_CAPITALISED = re.compile(
    r"(?<!\w)[^\W\d_a-zß-ÿа-я][\w'’.-]*(?:\s+(?:(?:of|the|de|da|do|di|del|la|von|van|der|"
    r"den)\s+)*[^\W\d_a-zß-ÿа-я][\w'’.-]*)*"
)
_CONNECTING = re.compile(
    r"(?:\s|,|;|\([^()]*\)|\b(?:and|or|but|also|both|the|then|as\s+well\s+as|along\s+with|plus|to)\b)+"
)
_DENYING = re.compile(DENIAL.pattern + r"|\b(?:unlike|except|without|no|rather|instead)\b", re.IGNORECASE)


def in_slot(text: str, question: ReplyQuestion) -> str | None:
    """The value in a sentence that repeats the question's template; None if it does not."""
    slot = question.slot(_plain(text).strip('"“”` '))
    if slot is None or POINTING.fullmatch(slot) or question.sides[0]:
        return None if slot is None or POINTING.fullmatch(slot) else slot
    slot = re.sub(
        r"\s+(?:also|commonly|often|typically|usually|widely|generally|can|may|will|must|all|both|each)$", "", slot
    )
    is_known = stems(slot) and stems(slot) <= question.known_stems
    return None if is_known or (_NO_SLOT.search(slot) and not is_titled(slot)) else slot


def stated(text: str, question: ReplyQuestion) -> str | None:
    """The part of a sentence that names the values; None if it names none.

    It is the slot of the template, or the side of the verb that the words of the question do not describe, in whichever
    order: `The capital of Australia is Canberra` and `Canberra is the capital of Australia`.
    """
    plain = re.sub(r"\bnot\s+only\s+([^,]+?),?\s+but\s+(?:also\s+)?", r"\1, ", without_opening(_plain(text)))
    slot = in_slot(plain, question)
    if slot is not None:
        return _introduced(slot, question, _SUCH_AS) or slot
    lead = _LEAD_IN.fullmatch(plain)
    if lead:
        return lead["rest"]
    introduced = None if question.is_of_titles else _introduced(plain, question, _COLON)
    return introduced or _complement(plain, question) or _introduced(plain, question, _SUCH_AS)


def _introduced(text: str, question: ReplyQuestion, pattern: re.Pattern[str]) -> str | None:
    """The text that `such as`, `including` or a colon introduces after a description; None after a name."""
    match = pattern.search(text)
    before = text[: match.start("rest")] if match else ""
    return (
        match["rest"]
        if match and (stems(before) & question.known_stems or _VAGUE.match(before.rstrip(" :,")))
        else None
    )


def _complement(text: str, question: ReplyQuestion) -> str | None:
    """The side of a verb that is not described by words of the question."""
    for match in _COPULA.finditer(text):
        left, right = text[: match.start()].strip(), _DATED.sub("", text[match.end() :].strip())
        if match.group().strip()[:1].isupper() or re.search(r"\b(?:that|which|who)$", left):
            continue  # a title, `Wish You Were Here`, or a clause, `The metals that are magnetic are iron and nickel`
        if not are_names([left], 12) or re.match(
            r"(?:if|when|while|because|since|al?though|unless|there$)\b", left, re.IGNORECASE
        ):
            return None
        right = re.sub(r"^not\s+[^,]+?,?\s+but\s+(?:rather\s+)?", "", right)
        in_left, in_right = (len(stems(side) & question.known_stems) for side in (left, right))
        passive = _PASSIVE.match(right)
        if passive and passive["by"] and in_left:
            return passive["rest"]
        if _PRONOUN.fullmatch(left):
            return None if _NOT_A_NAME.match(right) or passive else _introduced(right, question, _SUCH_AS) or right
        is_vague = _VAGUE.match(left) is not None
        is_described = 0 < in_left >= in_right or (not in_right and (match["foreign"] or (is_vague and "," in right)))
        if is_described and not _NOT_A_NAME.match(right) and not passive:
            return _introduced(right, question, _SUCH_AS) or right
        if in_right > in_left and stems(left) - question.known_stems and are_names([left], 8):
            return None if is_vague and not is_titled(left) and not left.casefold().startswith("the ") else left
    return None


def _novel_names(text: str, question: ReplyQuestion) -> str | None:
    """The list of the capitalised names in a sentence about the question that the question does not hold itself.

    None if they stand in more than one place of the sentence, or if it denies something.
    """
    constants = stems(" ".join(_CAPITALISED.findall(question.sentence)))
    if (len(stems(text) & question.known_stems) < 2 and not constants & stems(text)) or question.is_of_titles:
        return None
    names = [match for match in _CAPITALISED.finditer(text) if match.group() not in _OPENS_SENTENCE]
    names = [name for name in names if stems(name.group()) and not stems(name.group()) & question.known_stems]
    gaps = [text[name.end() : following.start()] for name, following in pairwise(names)]
    if names and not names[0].start() and " " not in names[0].group() and not (gaps and _CONNECTING.fullmatch(gaps[0])):
        names, gaps = names[1:], gaps[1:]  # a capital only because the sentence begins
    is_list = names and all(map(_CONNECTING.fullmatch, gaps)) and not _DENYING.search(text)
    return ", ".join(name.group().rstrip(".") for name in names) if is_list else None


# --- sentences in other languages

_FOREIGN_LEAD = re.compile(
    r"(?:^|(?<=[\s('’]))(?:son|es|como|incluyen|incluyendo|incluye|destacan|figuran|encontramos|por ejemplo|sont|est|"
    r"comme|tels que|"
    r"telles que|citer|notamment|par exemple|comprennent|incluent|y compris|sind|ist|wie|gehören|zählen|zum beispiel|"
    r"z\. ?b\.|"
    r"beispielsweise|etwa|nämlich|heißen|sono|è|come|ad esempio|per esempio|includono|tra cui|ricordiamo|troviamo|são|"
    r"é|incluem|"
    r"incluindo|por exemplo|tais como|destacam-se|zijn|is|zoals|bijvoorbeeld|onder andere|waaronder|to|są|jak|"
    r"takie jak|m\.in\.|np\.|"
    r"należą|как|являются|это|например|включают|такие как|antara lain|adalah|seperti|yaitu|meliputi|misalnya|termasuk|"
    r"con|mit|avec|com|"
    r"aus|compte|citons|figurent|encuentran|hay|är|er|som|såsom|til exempel|till exempel|for eksempel|"
    r"inkluderer)(?:\s*:)?\s+|"
    r"(?:으?로는|에는|중에는)\s+|(?:包括|包含|例如|比如|分别是|主要有|有|是|为|如|には?)[：:、，]?|[:：]\s*",
    re.IGNORECASE,
)
_FOREIGN_ARTICLE = re.compile(
    r"^(?:(?:il|lo|la|i|gli|le|les|el|los|las|der|die|das|den|o|os|as|um|uma|de|het|een)\s+|l['’])(?=\w)", re.IGNORECASE
)
_IDEOGRAPHIC = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_ENGLISH = re.compile(
    r"\b(?:the|of|are|was|were|and|or|by|with|from|that|this|it|for|at|has|have|be|an|there|some|you|your|includes?|"
    r"such)\b",
    re.IGNORECASE,
)


def _foreign_values(text: str, question: ReplyQuestion) -> list[str]:
    """The values that a sentence in another language lists; empty if it lists fewer than three."""
    is_foreign = _IDEOGRAPHIC.search(text) or (len(text.split()) > 3 and not _ENGLISH.search(text))
    text = re.sub(
        r"\s등(?=[\s이의을]).*$|이\s있습니다|입니다|です", "", _AND_MORE.sub("", text.strip().rstrip(".!。！ "))
    )
    parts = _split(_COMMA, text)
    for place in (1, 0) if is_foreign and len(parts) > 1 else ():
        leads = list(_FOREIGN_LEAD.finditer(parts[place]))
        if leads:
            rest = parts[place][leads[-1].end() :]
            parts = [rest, *parts[place + 1 :]] if rest else parts[place + 1 :]
            break
    values = [*parts[:-1], *_pair(_JOINS.sub("", parts[-1]), question, True)] if len(parts) > 1 else []
    is_list = is_foreign and len(values) > 2 and are_names(values, 5) and max(map(len, values)) <= 40
    return [_FOREIGN_ARTICLE.sub("", value) for value in values] if is_list else []


# --- the values of a sentence

# The beginning of a sentence that states a further value: `Another example is`, `Other herbs include`.
ORDINAL = re.compile(
    r"(?:(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|final|last)(?:ly)?[,:]|(?:then|next)(?:,|"
    r"\s+there['’]s)|"
    r"another\s+(?:\w+\s+)?is|the\s+(?:second|third|fourth|fifth|sixth|next|last|final|other)\s+(?:\w+\s+){0,3}(?:is|"
    r"was)|"
    r"(?:[\w-]+\s+){0,4}(?:ones|examples|others|options|varieties|choices)\s+(?:\w+\s+){0,4}?(?:includes?|are|were)|"
    r"(?:other|additional|further|more)\s+[^.:]{0,60}?\b(?:includes?|are|were|is))\s+",
    re.IGNORECASE,
)
# Names in bold in a sentence, and titles in emphasis or quotation marks.
_BOLD_NAME = re.compile(r"\*\*(?P<name>[^*\n]{0,80}?[^*\n:])\*\*(?!\s?:)")
_SET_OFF_TITLE = re.compile(r"(?P<sign>\*\*|\*|[\"“«])\s?(?P<name>[^*\"“”«»\n]{2,120}?)\s?(?:(?P=sign)|[”»])(?!\w)")


def set_off_names(text: str, question: ReplyQuestion) -> list[str]:
    """The names in bold of a text in sentences, without the question's own words; empty if other text is in bold.

    Titles may be in italics or quotation marks instead.
    """
    pattern = _SET_OFF_TITLE if question.is_of_titles else _BOLD_NAME
    names = [match["name"].strip(" ,.") for match in pattern.finditer(text)]
    if question.is_of_titles:
        return names if len(text) > sum(map(len, names)) + 3 * len(names) else []
    capitals = [name for name in names if name[:1].isupper()]
    names = capitals if len(capitals) > 1 and 2 * len(capitals) >= len(names) else names  # `the **longest coast**`
    if len(text) < 2 * sum(map(len, names)) or not are_names(names, 5) or any(map(is_sentence, names)):
        return []
    return [name for name in dict.fromkeys(names) if not stems(name) or stems(name) - question.known_stems]


def sentence_values(text: str, question: ReplyQuestion) -> list[str]:
    """The values that a sentence states; empty if it states none."""
    body = re.sub(r"(?<=[\w)”\"*])\s?(?:\[\d{1,3}\])+(?![\w\[])", "", text[:LONGEST_PROSE]).strip()
    is_repeated = in_slot(body, question) is not None
    foreign = [] if is_repeated else _foreign_values(body, question)
    if foreign:
        return foreign
    named = stated(body, question)
    is_bare = named is None
    # `France and Spain`
    pair = body if are_names([body], 6) and _PAIR.search(body) and not is_sentence(body) else None
    named = named or pair or _novel_names(body, question) or _bare(body, question) or ""
    if not is_bare and not question.is_of_titles:
        named = _DATED.sub("", re.sub(r"\s+\([^()]*\)", "", named))
    values = listed(named, question)
    if len(values) == 2 and not is_bare and "," in named and not _PAIR.search(named):
        values = values[:1]  # `in Brussels, Belgium`
    if len(values) > 1 and not is_bare and not any(_ADJUNCT.search(value) for value in values[:-1]):
        values[-1] = _ADJUNCT.sub("", values[-1])  # `malaria, dengue and Zika to humans`
    values = [
        re.sub(r"^(?:an?|the|An?|The(?=\s[a-z]))\s+|\s+as\s+(?:an?|the|its|their)\s.*$", "", value) for value in values
    ]
    values[:1] = [
        re.sub(
            r"^The\s+(?!Hague\b|Bronx\b)(?=\w)|^(?:some|many|most|both|only|just|either)\s+(?=[a-z])",
            "",
            value,
            flags=re.I,
        )
        for value in values[:1]
    ]
    # Of other words than the template's, a sentence may speak of a name of the question itself.
    known = () if is_repeated or (is_bare and len(values) > 1) else tuple(re.findall(r"\w+", question.sentence.title()))
    is_list = are_names(values, 8)
    return [
        value
        for value in values
        if is_list and value not in known and value.strip("., !").casefold() not in ("", *VERDICTS)
    ]


def _bare(text: str, question: ReplyQuestion) -> str | None:
    """A sentence that is a name or a list of names, without the words before it; None if it is none."""
    lead = re.match(r"[^:：]{1,120}[:：]\s*(?P<rest>[^:：]*[,，、;].*)", without_opening(text), re.DOTALL)
    plain = lead["rest"] if lead and not question.is_of_titles else without_opening(text)
    values = listed(plain, question)
    words = re.split(r"[,(:;–—]|\s-\s", plain)[0].split()
    lower = sum(word[0].islower() and len(word) > 2 for word in words[1:])
    is_told = len(values) == 1 and (
        len(words) > 8 or (len(words) > 4 and lower > 2 and plain.rstrip().endswith((".", "!")))
    )
    is_talk = is_sentence(plain) and (len(values) < 3 or is_sentence(values[0]))
    is_other = POINTING.match(plain) or is_talk or not (len(values) == 1 or are_names(values))
    return None if (is_told and not question.is_of_titles) or (is_other and not is_titled(plain)) else plain
