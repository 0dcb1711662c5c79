"""Reads sentences of a reply: splits them, and takes the values out by the question's template or by their form."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from hapax.llm_oracle.reply_lists import (
    EXPLAINING,
    JOINS,
    LONGEST_PROSE,
    PAIR,
    are_names,
    comma_parts,
    is_titled,
    listed,
)
from hapax.llm_oracle.reply_question import FUNCTION_WORDS, ReplyQuestion, stems

# --- sentences

# A mark that ends a sentence, with the beginning of the next word behind it, or an ideographic one alone.
_STOP = re.compile(r"[.!?]+[\"”’»)*]*\s+(?=\W{0,6}(?P<next>[^\W_]+))|[。！？]+")
# Before a full stop: an initial or an abbreviation, as in `J.`, `Mt.`, `e.g.`, `U.S.`.
_SHORTENED = re.compile(
    r"(?:^|[\s(\"“.*_])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Mt|Ft|Jr|Sr|Prof|Gen|Col|Lt|Capt|Sgt|Rev|Hon|No|Nr|Nos|Vol|Op|Fig|vs|"
    r"etc|[Cc]a|[Aa]pprox|Inc|Ltd|Co|Corp|Bros|e\.g|i\.e|U\.S|U\.K|D\.C)$"
)
_OPENS_SENTENCE = frozenset(
    [
        "It",
        "Its",
        "He",
        "She",
        "They",
        "This",
        "That",
        "These",
        "Those",
        "The",
        "There",
        "Here",
        "In",
        "On",
        "At",
        "As",
        "However",
        "Although",
        "While",
        "Since",
        "Because",
        "Note",
        "Also",
        "Other",
        "Some",
        "Many",
        "Most",
        "Its",
        "Their",
        "His",
        "Her",
        "We",
        "You",
        "If",
        "When",
        "For",
        "Please",
    ]
)


_ORDINAL = re.compile(r"\s*\d{1,2}\.\s*")

_WORDS = re.compile(r"\s*[^\W\d_]\w*[ -]+\w")
"""The beginning of several words: `1. FC Köln` is a name, but the number before a single word is a list's."""


def sentences(text: str) -> list[str]:
    """The sentences of a text. A full stop behind an abbreviation or an initial ends none."""
    result: list[str] = []
    begin = 0
    for match in _STOP.finditer(text):
        following = match["next"]
        is_ordinal = following is not None and _ORDINAL.fullmatch(text, begin, match.end())
        if is_ordinal and _WORDS.match(text, match.end()):
            continue
        if following is not None:
            opens = following in _OPENS_SENTENCE
            shortened = _SHORTENED.search(text[max(0, match.start() - 12) : match.start()])
            # `approx. five` goes on; a word such as `The` begins a sentence even after an abbreviation.
            if not following[0].isupper() and not following[0].isdigit():
                continue
            if text[match.start()] == "." and shortened and not opens:
                continue
        result.append(text[begin : match.end()].strip())
        begin = match.end()
    rest = text[begin:].strip()
    return [*result, rest] if rest else result


def first_sentence(text: str) -> str:
    """An entry without the sentences that explain its value; a title of more than one sentence stays whole."""
    parts = sentences(text)
    if len(parts) < 2 or is_titled(text):
        return text
    return parts[0]


# --- the part of a sentence that states values

# `The answer is basil`, `So, the correct value of B is: basil`.
LEAD_IN = re.compile(
    r"(?:so,?\s+|thus,?\s+|therefore,?\s+)?(?:the\s+|one\s+)?(?:(?:correct|final|right|possible)\s+)*"
    r"(?:answer|value)s?(?:\s+(?:of|for)\s+\S+)?\s+(?:is|are|would be|could be|=)\s*:?\s+(?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
# ` is `, ` is known as `, ` can be `, ` includes `, ` ist `.
_COPULA = re.compile(
    r"\s+(?:(?:is|are|was|were)(?:\s+(?:called|named|known\s+as|typically|usually|generally|probably|likely))?|"
    r"(?:would|could|might|may|can|must|will)\s+be|includes?|included|comprises?|remains?|"
    r"(?P<foreign>(?-i:ist|sind|est|sont|es|fue|è|sono|é|são|zijn)))"
    r"(?:\s*:)?\s+",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?:(?:i\s+(?:think|believe|guess)|yes|well|so|sure|of course|certainly|okay|ok)[,.!:]?\s+)?(?:that\s+)?"
    r"(?:it|that|this|they|these|those|here|(?:the\s+|an?\s+|some\s+|one\s+)?(?:\w+\s+)?"
    r"(?:examples?|answers?|ones?|options?|possibilit(?:y|ies)|values?))",
    re.IGNORECASE,
)
_ADVISED = re.compile(
    r"(?:(?:if|when|for)\s[^,]+,\s+)?(?:(?:you|one|we|i)\s+(?:(?:can|could|may|might|would|will)\s+)?(?:also\s+)?(?:use|try|choose|"
    r"suggest|recommend|name|list|consider)|(?:try|consider))\s+(?P<rest>[^,]+(?:,|\sor\s|\sand\s).+)",
    re.IGNORECASE | re.DOTALL,
)
"""Advice that lists values: `You could use cumin, coriander or turmeric`."""
_CONTRACTED = re.compile(r"(?:yes,?\s+|well,?\s+)?(?:it|that|there)['’]s\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
# The list in `herbs such as basil`, `herbs, including basil` and `herbs: basil`.
_SUCH_AS = re.compile(
    r"(?:,?\s+(?:such\s+as|including|namely|like|e\.g\.,?|for\s+(?:example|instance),?)\s*:?|[:：])\s*(?P<rest>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
# `Herbs of Italy: basil, thyme`: one colon, and a list behind it.
_INTRODUCED = re.compile(r"(?P<before>[^:：]{3,200}[^\W\d])[:：]\s*(?P<rest>[^:：]*[,，、;]\s*[^:：]*)", re.DOTALL)
_IN_PARENTHESES = re.compile(
    r"\((?:e\.g\.|for\s+example|for\s+instance|such\s+as|including|like)[,:]?\s+(?P<rest>[^()]+)\)", re.IGNORECASE
)
_FOLLOWED = re.compile(
    r"(?P<first>[^\W\d_a-z][\w'’.-]*(?:\s+[^\W\d_a-z][\w'’.-]*){0,3})\s+(?:is|are|was|were|has|have|comes?|leads?)\b[^.;]*?,?\s+"
    r"(?:closely\s+)?followed\s+by\s+(?P<rest>[^.;]+)"
)
_RANGED = re.compile(
    r"\b(?:rang(?:es?|ing|ed)|var(?:y|ies|ying)|extends?|everything)\s+from\s+(?P<first>[^.;]+?)\s+to\s+(?P<rest>[^.;]+)"
)
"""Two ends of a range of kinds: `It ranges from the trumpet to the tuba`."""
_OTHER_ONES = re.compile(
    r"(?:[\w-]+\s+){0,4}(?:ones|examples|[Oo]thers|options|varieties|choices)\s+(?:(?!that\b|which\b|of\b)\w+\s+){0,4}?(?:includes?|are|were)\s+(?P<rest>.+)",
    re.DOTALL,
)
_NOT_ONLY = re.compile(r"\bnot\s+only\s+(?P<first>[^,]+?),?\s+but\s+(?:also\s+)?", re.IGNORECASE)
_INSTEAD = re.compile(r"not\s+[^,]+?,?\s+but\s+(?:rather\s+)?(?P<rest>.+)", re.DOTALL)
_VAGUE = re.compile(
    r"(?:(?:in|from|by|through|at|to)\s+)?(?:many|several|various|some|a\s+(?:number|variety|few|range)\s+of|numerous|"
    r"different|multiple|most|other|certain|all|both|the\s+following|these|the)\b",
    re.IGNORECASE,
)
_KIND = re.compile(r"(?:[a-z]+\s)?[a-z]{2,}(?<!s)s")
"""A plural of one or two words that names a kind: `metals` of `metals such as silver`."""
_MANNER = r"(?:(?:\w+ly|often|sometimes|also|most|best|first|still)\s+)*"
# `composed by Verdi`, `originally written by Homer`.
_PASSIVE = re.compile(
    rf"{_MANNER}\w+(?:ed|en|wn|t|de)\s+(?:(?:\w+ly\s+|(?:in|on|around)\s+(?:\w+\s+)?\d{{3,4}}\s+)?by|(?<=credited\s)to|(?<=attributed\s)to)\s+(?P<rest>.+)",
    re.DOTALL,
)
# `spoken in Brazil`.
_PARTICIPLE = re.compile(
    rf"{_MANNER}(?P<verb>\w+(?:ed|en|wn|t))\s+(?:in|from|at|on|with|of|as|into|through)\s+(?P<rest>.+)", re.DOTALL
)
_SUBORDINATE = re.compile(r"(?:if|when|while|because|since|although|though|unless)\b", re.IGNORECASE)
# `Yes, `, `I think that `, `For example, `, `To my knowledge, `, each before the statement itself.
_OPENING = re.compile(
    r"(?:(?:i\s+(?:think|believe|guess)|i['’]?\s?a?m\s+(?:fairly|quite|pretty|very)\s+(?:sure|certain|confident)),?\s+(?:that\s+)?|"
    r"it\s+is\s+(?:\w+ly\s+)?(?:believed|known|said|thought|considered|accepted|assumed)\s+that\s+|"
    r"(?:as\s+far\s+as\s+i\s+know|to\s+(?:the\s+best\s+of\s+)?my\s+knowledge|if\s+i\s+recall\s+correctly),?\s+|as\s+of\s+[^,]{3,30},\s+|currently,\s+|(?:then|next|finally|lastly)\s+(?=(?:there|comes|\w+\s+is)\b)|(?:yes|sure|well|so|okay|ok|certainly|of\s+course|for\s+(?:example|instance)|e\.g\.|examples?|therefore|thus|"
    r"hence|indeed|overall|in\s+(?:short|summary|conclusion|this\s+case)|first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|fifth|sixth|"
    r"seventh|eighth|ninth|tenth|then|next|finally|lastly|also|(?:most\s+|more\s+)?(?:recently|notably|famously)|later|unfortunately|sadly|technically|historically|traditionally)[,.!:]+\s*)+",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\b(?:that|which|who)$|\b(?:that|which|who|whose|where|when)\b", re.IGNORECASE)
# What stands behind `Tosca` in `Tosca in 1900`, `Tosca in the 19th century` and `Tosca, which is an opera`.
DATED = re.compile(
    r"\s+(?:in|on|around|since|by|from|between|during)\s+(?:(?:the\s+)?(?:(?:year|early|mid|late)[\s-]+)?|\w+\s+(?:\d{1,2},\s+)?)\d{3,4}s?\b(?!\s+by\s).*$|"
    r"\s+(?:in|during)\s+the\s+(?:(?:early|mid|late)[\s-]+)?\w+\s+century\b.*$|"
    r",?\s+(?:because|which|where|when|who|since|(?:even\s+)?though|although|while)\s.*$|"
    r"\s+and\s+(?:is|are|was|were|has|have|had)\s.*$",
    re.DOTALL,
)
"""The time and the clause behind a value."""


_LISTED_DATE = re.compile(r"\s+(?:in|on|since|from)\s+(?:[A-Z][a-z]+\s+)?\d{3,4}(?=\s*(?:,|;|and\b|[.!]?$))")


def undated(text: str) -> str:
    """The text without the time and the clause behind a value, or behind each that semicolons separate."""
    dated = _LISTED_DATE.findall(text)
    text = _LISTED_DATE.sub("", text) if len(dated) > 1 else text  # `Lincoln in 1865, Garfield in 1881`
    return "; ".join(DATED.sub("", part) for part in re.split(r";\s+", text))


MOST_DESCRIBING = 12
"""Words before the verb of a sentence that states values."""
_NOT_A_NAME = re.compile(
    r"(?:not|no|incorrect|correct|wrong|true|false|unknown|unclear|an?|the\s+(?:most|best|first|only|\w+est)|very|known|also|often|used|found|one\s+of|some|many|several|located|"
    r"made|called|considered|important|possible|essential|in|on|at|by|to|from|with|for)\b",
    re.IGNORECASE,
)


_ADVERBS = re.compile(
    r"\s+(?:also|commonly|often|typically|usually|famously|widely|generally|always|sometimes|can|may|will|must|all|both|each)$"
)
_MANY = re.compile(r"(?:many|several|various|numerous|a\s+(?:number|variety|range)\s+of)\b", re.IGNORECASE)
_COUNTED = re.compile(
    r"(?:^|,\s+)(?:there\s+(?:is|are)\s+)?(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+[a-z]+s$",
    re.IGNORECASE,
)
"""A number of entities instead of a name: `nine countries`."""
_NO_SLOT = re.compile(
    r":\s|\b(?:that|which|who|to|is|are|was|were|has|have|does|do|did|not|of|and)$|^(?:no|none|nobody|nothing)\b|"
    r"\b(?:is|are|was|were|has|have)\b",
    re.IGNORECASE,
)
"""The words before a verb that are not a name but a part of another sentence."""


def in_template(text: str, question: ReplyQuestion, whole: bool = False) -> str | None:
    """The value in a sentence that repeats the question's template; None if it does not. `whole`: all of it."""
    plain = _plain(text).strip('"“”` ')
    is_before = question.sentence.startswith(f"[{question.variable}]")
    for pattern in question.templates:
        found = None if whole and not pattern.is_whole else pattern.slot(plain)
        if found is None:
            continue
        slot = found.strip().rstrip(":–—-").strip('`"“” ')
        if _POINTING.fullmatch(slot):
            continue
        if not is_before:
            return slot
        slot = _ADVERBS.sub("", slot)
        if _COUNTED.search(slot):
            continue
        vague = _MANY.match(slot) and not is_titled(slot)  # `Many metals are magnetic, such as iron`
        if not pattern.is_whole and stems(slot) and stems(slot) <= question.known_stems:
            continue  # `Fish is served with lemon` for `[A] is served with fish`
        if len(slot.split()) <= MOST_DESCRIBING and not _NO_SLOT.search(slot) and not vague:
            return slot
    return None


def _plain(text: str) -> str:
    return " ".join(text.replace("**", "").replace("*", "").replace("__", "").split())


def without_opening(text: str) -> str:
    """A sentence without words such as `Yes,` and `For example,` before it."""
    match = _OPENING.match(text)
    return text[match.end() :] if match else text


def stated(text: str, question: ReplyQuestion) -> str | None:
    """The part of a sentence that names the values; None if it names none.

    It is the slot of the template, or the side of the verb that the words of the question do not describe, in whichever
    order: `The capital of Australia is Canberra` and `Canberra is the capital of Australia`.
    """
    plain = without_opening(_plain(text))
    plain = plain if _POINTING.match(plain) else _NOT_ONLY.sub(r"\g<first>, ", plain)
    slot = in_template(plain, question)
    if slot is not None:
        return _enumerated(slot, question) or slot
    lead = LEAD_IN.fullmatch(plain) or _ADVISED.fullmatch(plain) or _CONTRACTED.fullmatch(plain)
    if lead:
        return None if lead.re is _CONTRACTED and _NOT_A_NAME.match(lead["rest"]) else lead["rest"]
    others = _OTHER_ONES.match(plain)
    if others and not _NOT_A_NAME.match(others["rest"]):
        return others["rest"]
    inside = _IN_PARENTHESES.search(plain)
    if inside and plain[inside.end() :][:1] != "," and stems(plain[: inside.start()]) & question.known_stems:
        return inside["rest"]
    ranked = _FOLLOWED.match(plain)
    if ranked:
        return f"{ranked['first']}, {ranked['rest']}"
    ranged = None if question.numeric else _RANGED.search(plain)
    if ranged and stems(plain[: ranged.start()]) & question.known_stems:
        return ", ".join((*listed(ranged["first"], question), *listed(ranged["rest"], question)))
    introduced = _INTRODUCED.fullmatch(plain)
    if introduced and stems(introduced["before"]) & question.known_stems and not question.is_of_titles:
        return introduced["rest"]
    return _complement(plain, question) or _enumerated(plain, question) or _object(plain, question)


def _object(text: str, question: ReplyQuestion) -> str | None:
    """The object of an active sentence about a passive question: `Lions eat zebras` for `[A] is eaten by lions`."""
    if not question.sentence.startswith(f"[{question.variable}]"):
        return None
    # The participle of a passive, or the verb behind the slot, as in `[A] borders Spain`.
    asked = re.search(r"(\w+)\s+by\s", question.sentence) or re.match(
        r"\S+\s+(?:(?:is|are|was|were)\s+)?(\w+)", question.sentence
    )
    words = text.split()
    for place in range(1, min(len(words) - 1, 6)):
        verb, subject = words[place], words[:place]
        if subject[-1] in _BEFORE_VERBS:
            subject = subject[:-1]
        agent = " ".join(subject)
        is_agent = stems(agent) <= question.known_stems if stems(agent) else _PRONOUN.fullmatch(agent) is not None
        beginning = verb[: max(3, len(verb) - 2)]
        if is_agent and verb.islower() and len(verb) > 2 and asked and asked[1].startswith(beginning):
            return " ".join(words[place + 1 :])
    return None


_BEFORE_VERBS = ("also", "mainly", "often", "mostly", "usually", "typically")


def _enumerated(text: str, question: ReplyQuestion) -> str | None:
    """The text that `such as`, `including` or a colon introduces behind a description; None behind a name."""
    match = _SUCH_AS.search(text)
    if match is None:
        return None
    before = text[: match.start()]
    described = stems(before) & question.known_stems or _VAGUE.match(before) or _KIND.fullmatch(before)
    return match["rest"] if described else None


def _complement(text: str, question: ReplyQuestion) -> str | None:
    """The side of a verb that is not described by words of the question."""
    # A verb in capitals is a part of a title: `Wish You Were Here`.
    matches = [match for match in _COPULA.finditer(text[:LONGEST_PROSE]) if not match.group().strip()[:1].isupper()]
    clause_end = (text.find(",") + 1 or len(text)) - 1
    for match in matches:
        left, right = text[: match.start()].strip(), undated(text[match.end() :].strip())
        relative = _RELATIVE.search(left)
        follows = any(match.end() <= later.start() < clause_end for later in matches)
        if (
            relative
            and relative.start()
            and (relative.end() == len(left) or (follows and not _COPULA.search(f"{left[relative.end() :]} ")))
        ):
            continue  # the verb of a clause: `The metals that are magnetic are iron and nickel`
        if len(left.split()) > MOST_DESCRIBING or _SUBORDINATE.match(left) or left.casefold() == "there":
            return None
        instead = _INSTEAD.match(right)
        right = question.without_beginning(instead["rest"] if instead else right)
        passive = _PASSIVE.match(right)
        described_left = len(stems(left) & question.known_stems)
        if _PRONOUN.fullmatch(left) or (described_left and _PRONOUN.match(left) and not passive):
            predicate = passive or _PARTICIPLE.match(right)
            if _NOT_A_NAME.match(right) or (
                predicate and not stems(predicate.group().split()[0]) & question.known_stems
            ):
                return None
            return _enumerated(right, question) or right
        if passive and described_left:
            return passive["rest"]
        includes = match.group().strip().startswith(("incl", "compris"))
        value = _undescribed(left, _THE.sub("", right) if includes else right, question, bool(match["foreign"]))
        if value is not None:
            return value or None
    return None


def _undescribed(left: str, right: str, question: ReplyQuestion, is_foreign: bool) -> str | None:
    """The side of a copula that the question does not describe; empty if it names nothing, None if both or none is.

    `is_foreign`: the copula is of another language, whose words cannot be compared with the question's.
    """
    described_left = len(stems(left) & question.known_stems)
    described_right = len(stems(right) & question.known_stems)
    participle = _PARTICIPLE.match(right)
    ends_in_slot = question.sentence.endswith(f"[{question.variable}]")
    if participle and (described_left or ends_in_slot) and stems(participle["verb"]) & question.known_stems:
        if not described_left:
            return participle["rest"]  # `The Torah was written in Hebrew` for `the Bible was written in [L]`
        right = participle["rest"]  # `Olive oil is produced in Spain` for `[C] produces olive oil`
        described_right = 0
    if _VAGUE.match(left) and stems(right) <= question.known_stems:
        return ""  # `Several languages are written from right to left`
    is_vague = _VAGUE.match(left) is not None and len(listed(right, question)) > 2
    is_described = 0 < described_left >= described_right or (not described_right and (is_vague or is_foreign))
    if is_described and not _NOT_A_NAME.match(right) and not _PARTICIPLE.match(right):
        return _enumerated(right, question) or right
    is_new = bool(stems(left) - question.known_stems)
    if described_right > described_left and is_new and 0 < len(left.split()) <= 8:
        return "" if _MANY.match(left) and not is_titled(left) else left
    return None


_CIRCUMSTANCE = re.compile(
    r"^(?:because|since|as|although|while|if|when|in|at|on|within|among|throughout|across)\s+(?!(?-i:[A-Z]))[^,]{3,80},\s+",
    re.IGNORECASE,
)
"""The clause before the list with which a sentence begins: `Because they dissolve in fat, vitamin A, ...`"""
_PREDICATE = re.compile(r"(?:is|are|was|were|can|may|could|will|has|have|had|do|does|did|all|both|each)$")


def leading_list(text: str, question: ReplyQuestion) -> str | None:
    """The list with which a sentence begins, up to the predicate behind its last name; None if it begins otherwise."""
    plain = _CIRCUMSTANCE.sub("", without_opening(_plain(text)))
    first, *others = comma_parts(plain) or [""]
    *names, last = [first, *takewhile(lambda part: not EXPLAINING.match(part), others)]
    joined = JOINS.match(last)
    pair = PAIR.search(last) if joined is None else None
    if pair:  # `France, Italy and Spain share`
        names.append(last[: pair.start()])
    joined = joined or pair
    if len(names) < 2 or joined is None or question.is_of_titles:
        return None
    words = last[joined.end() :].split()
    ends = [
        position
        for position, word in enumerate(words)
        if position
        and (
            _PREDICATE.match(word)
            or (position + 1 < len(words) and word.islower() and stems(word) & question.known_stems)
        )
    ]
    end = ends[0] if ends else 0
    names.append(" ".join(words[:end]))
    is_vague = _VAGUE.match(names[0]) is not None and not names[0].casefold().startswith("the ")
    described = [name for name in names if any(map(str.islower, name.split()))]
    if not end or is_vague or _PRONOUN.match(names[0]) or not are_names(described, 4):
        return None
    if any(":" in name for name in names):
        return None
    return ", ".join(names)


def novel_name(text: str, question: ReplyQuestion) -> str | None:
    """The only capitalised name in a sentence about the question that the question does not hold itself."""
    constants = stems(" ".join(re.findall(r"\b[^\W\d_a-z][\w'’]*", question.fixed_words)))
    if len(stems(text) & question.known_stems) < 2 and not constants & stems(text):
        return None
    names: list[str] = []
    for match in re.finditer(
        r"(?<!\w)[^\W\d_a-z][\w'’.-]*(?:\s+(?:(?:of|the|and|de|la|von|van|der)\s+)*[^\W\d_a-z][\w'’.-]*)*", text
    ):
        name = match.group().strip(".,")
        if (
            not stems(name) & question.known_stems
            and name.casefold() not in FUNCTION_WORDS
            and name not in _OPENS_SENTENCE
            and not re.match(r"I\b", name)
            and name.casefold() not in ("no", "none", "yes", "not", "nobody", "nothing", "only", "both")
        ):
            names.append(name)
    return names[0] if len(names) == 1 and names[0] != text.strip(". ") else None


_CAPITALISED = re.compile(
    r"(?<!\w)[^\W\d_a-z][\w'’.-]*(?:\s+(?:(?:of|the|de|la|von|van|der)\s+)*[^\W\d_a-z][\w'’.-]*)*"
)
_CONNECTING = re.compile(
    r"(?:\s|,|;|\([^()]*\)|\b(?:and|or|but|also|both|the|then|as\s+well\s+as|along\s+with|together\s+with|plus|to)\b)+|"
    r"[^A-Z]*,?\s(?:as\s+well\s+as|along\s+with|together\s+with)\s(?:the\s)?"
)
"""The words between the names of a list in a sentence."""
_LISTS_ON = re.compile(r",?\s(?:and|as\s+well\s+as|along\s+with)\s(?:the\s)?[A-Z]|,\s(?:the\s)?[A-Z]\S+(?:,|\sand\s)")
DENIAL = re.compile(
    r"\bnot\b(?!\s+(?:only|exhaustive|complete|just|limited))|n['’]t\b|\b(?:never|neither|no\s+longer)\b", re.IGNORECASE
)
"""A denial in a heading or sentence: `Sometimes mentioned, but not transcontinental:`."""
_DENYING = re.compile(DENIAL.pattern + r"|\b(?:unlike|except|without|no|rather|instead)\b", re.IGNORECASE)


def novel_names(text: str, question: ReplyQuestion) -> str | None:
    """The list of the capitalised names in a sentence about the question that the question does not hold itself.

    None if they stand in more than one place of the sentence, or if it denies something.
    """
    if len(stems(text) & question.known_stems) < 2 or _DENYING.search(text) or question.is_of_titles:
        return None
    matches = [
        match
        for match in _CAPITALISED.finditer(text)
        if stems(match.group()) and not stems(match.group()) & question.known_stems
    ]
    if matches and not matches[0].start() and not _LISTS_ON.match(text[matches[0].end() :]):
        matches = matches[1:]  # a capital only because the sentence begins
    gaps = [text[match.end() : following.start()] for match, following in pairwise(matches)]
    if len(matches) < 2 or not all(map(_CONNECTING.fullmatch, gaps)):
        return None
    return ", ".join(match.group().rstrip(".") for match in matches)


_SO_DO = re.compile(r"so\s+(?:do|does|did|is|are|was|were|can)\s+(?P<names>[^.]+?)\W*$", re.IGNORECASE)
_ALSO = re.compile(
    r"(?P<names>\S[^.;:]{1,120}?)\s+(?:(?:is|are|was|were|can|may|have|has)\s+)?(?:also\s+(?P<said>\w.*)|"
    r"do(?:es)?\s+(?:so|too|as\s+well|the\s+same)\b|(?P<again>\w+)\s+(?:there|here),?\s+(?:too|as\s+well)\b)",
    re.DOTALL,
)
_THE_SAME = re.compile(r"\b(?:so|there|here|region|area|group|family|category|examples?|qualify|count|belong|fit)\b")
_POINTING = re.compile(r"(?:it|this|that|these|those|they|he|she|we|i|you|there|here|which|who)\b", re.IGNORECASE)


def also_named(sentence: str, question: ReplyQuestion) -> list[str]:
    """The names of which a sentence says what the one before it says of others: `So does rhubarb`."""
    if not question.sentence.startswith(f"[{question.variable}]") or question.numeric or question.is_of_titles:
        return []
    plain = _plain(sentence)
    match = _SO_DO.fullmatch(plain) or _ALSO.match(plain)
    subject = "" if match is None else _THE.sub("", match["names"])
    if match is None or _POINTING.match(subject) or _VAGUE.match(subject) or _DENYING.search(plain):
        return []
    if re.search(r"[\"“]|['’]s\s", subject):
        return []  # `Tolman's theory also explains ...`
    said = "" if match.re is _SO_DO else match["said"] or match["again"] or ""
    if said and not stems(said) & question.known_stems and not _THE_SAME.search(said):
        return []
    names = [_THE.sub("", name) for name in listed(subject, question)]
    are_new = not any(stems(name) <= question.known_stems for name in names)
    return names if are_names(names, 4) and are_new else []


_THE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
