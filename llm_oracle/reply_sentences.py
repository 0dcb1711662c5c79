"""Takes the values out of the sentences of a reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from hapax.llm_oracle.drop_reasons import DropReason
from hapax.llm_oracle.reply_items import DECLINES, OPENERS, PRONOUN, is_talk, own_end
from hapax.llm_oracle.reply_languages import foreign_values, is_foreign, within_names
from hapax.llm_oracle.reply_lines import ReplyLine, ReplyPart
from hapax.llm_oracle.reply_lists import are_names, is_titled, listed
from hapax.llm_oracle.reply_numbers import numbers_listed
from hapax.llm_oracle.reply_prose import (
    DENIAL,
    also_named,
    in_template,
    leading_list,
    novel_name,
    novel_names,
    sentences,
    stated,
    undated,
    without_opening,
)
from hapax.llm_oracle.reply_question import ReplyQuestion, stems
from hapax.llm_oracle.reply_values import (
    LEADING_QUANTIFIER,
    OPENING_ARTICLE,
    QUANTITIES,
    denies_all,
    is_refusal,
    is_sentence,
    tidy,
)

# `Finally, `, `Another example is `, `Other herbs include `: a sentence that states a further value.
ORDINAL = re.compile(
    r"(?:(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|final|last)(?:ly)?[,:]|(?:then|next)(?:,|\s+there['’]s)|"
    r"another\s+(?:\w+\s+)?is|the\s+(?:second|third|fourth|fifth|sixth|next|last|final|other)\s+(?:\w+\s+){0,3}(?:is|was)|"
    r"(?:[\w-]+\s+){0,4}(?:ones|examples|others|options|varieties|choices)\s+(?:\w+\s+){0,4}?(?:includes?|are|were)|"
    r"(?:other|additional|further|more)\s+[^.:]{0,60}?\b(?:includes?|are|were|is))\s+",
    re.IGNORECASE,
)
_SET_OFF_TITLE = re.compile(r"(?P<sign>\*\*|\*|[\"“«])\s?(?P<name>[^*\"“”«»\n]{2,120}?)\s?(?:(?P=sign)|[”»])(?!\w)")
"""A title in a sentence, in emphasis or quotation marks."""
# The `[1][2]` of `Madrid[1][2].`
_CITATION = re.compile(r"(?<=[\w)”\"*])\s?(?:\[\d{1,3}\])+(?![\w\[])")
_BOLD_NAME = re.compile(r"\*\*(?P<name>[^*\n]{0,80}?[^*\n:])\*\*(?!\s?:)")
_JOINER = re.compile(r"(?:\s*\([^()]*\))?(?:,|;|,?\s+(?:and|or|as\s+well\s+as))?\s+(?:the\s+|an?\s+)?")
_BUT = re.compile(
    r"^(?:(?:I|It|There)(?:['’]\w{1,2})?\s[^.]{3,120}?|[^.,]{3,100}\b(?:unknown|uncertain|unclear|debated|disputed|not\s+known))"
    r",\s+but\s+(?=\S)"
)
"""The reservation before an answer: `I don't have a complete list, but Madrid lies in Spain.`"""
# The ` to humans` of `malaria to humans`.
ADJUNCT = re.compile(r"(?<=\w)\s+(?:to|in|for|at|on|into|as|from|with|by)\s.*$", re.DOTALL)
_ARTICLE = re.compile(r"^(?:(?:an?|the)\s+(?=\S)|(?:An?|The)\s+(?=[a-z]))")
_FOREIGN_ARTICLE = re.compile(
    r"^(?:(?:il|lo|la|i|gli|le|les|el|los|las|der|die|das|den|o|os|as|um|uma|de|het)\s+|l['’])(?=\w)", re.IGNORECASE
)
"""An article of another language, which is none if only one of several values has it: `La Paz`."""
_SUBJECT = re.compile(
    r"(?P<name>[^\W\d_a-z][\w'’.-]*(?:\s+(?:of|de|van|von|the)\b)?(?:\s+[^\W\d_a-z][\w'’.-]*)+(?=\s+[a-z]+)|"
    r"[^\W\d_a-z][\w'’.-]*(?:\s+[\w'’.-]+){0,2}?(?=\s+(?:is|are|was|were)\s))"
)
"""A name of several words, or the subject of a copula, with which a sentence begins."""
_LOWER_SUBJECT = re.compile(
    r"(?:The|An?)\s+(?P<name>[a-z][\w'’-]*(?:\s+[a-z][\w'’-]*){0,2}?)\s+(?:is|are|was|were|has|have|can|[a-z]{2,}(?<!s)s)\s"
)
"""The subject of a sentence about a kind: `The arctic fox changes its coat.`"""
_NO_SUBJECT = re.compile(
    r"(?:It|They|He|She|This|That|These|Those|There|Here|We|You|I|The|Its|Their|His|Her|All|Both|Some|Many|Most|Each|Other|One|In|"
    r"However|Note|Also)\b"
)
_AS = re.compile(r"\s+as\s+(?:an?|the|its|their|his|her)\s.*$")
VERDICTS = frozenset(("yes", "no", "true", "false", "ok", "okay", "maybe"))
LONGEST_LIST_LINE = 20_000
"""Characters of a single line that are read as a list with commas."""


def paragraphs(lines: Sequence[ReplyLine], question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in sentences: the values of the first line that states any, and of each template."""
    end = own_end(lines, question)
    parts: list[ReplyPart] = []
    has_values = False
    for position, line in enumerate(lines[:end]):
        is_last = position + 1 == len(lines)
        further = sentence_parts(line.raw, question, cut and is_last, has_values)
        has_values = has_values or any(part.dropped is None for part in further)
        parts += further
    return [
        *with_subjects(parts, question),
        *(ReplyPart(line.raw, line.body, DropReason.REMARK) for line in lines[end:]),
    ]


def with_subjects(parts: Sequence[ReplyPart], question: ReplyQuestion, related: bool = False) -> list[ReplyPart]:
    """The parts of a reply in which each sentence tells about another name: that name is the value."""
    if (
        len(parts) > 2
        and stems(parts[0].raw.partition(" ")[0]) <= question.known_stems
        and parts[0].dropped is not None
    ):
        return [parts[0], *with_subjects(parts[1:], question, related=True)]  # `Spain has many cities.`
    # Each sentence has to begin with a name of its own, and the first one to speak of the question.
    bodies = (without_opening(part.raw) for part in parts)
    subjects = [_SUBJECT.match(text) or _LOWER_SUBJECT.match(text) for text in bodies]
    names = [name for match in subjects if match and not _NO_SUBJECT.match(name := match["name"].removeprefix("The "))]
    related = related or (bool(parts) and bool(stems(parts[0].raw) & question.known_stems))
    stated_values = sum(part.dropped is None for part in parts)
    if (
        len(names) < len(parts)
        or len(set(names)) < max(2, len(parts))
        or not related
        or stated_values > 1
        or (stated_values and len(parts) < 3)
        or any(stems(name) <= question.known_stems for name in names)
        or question.numeric
        or question.is_of_titles
    ):
        return list(parts)
    return [
        replace(part, body=name, dropped=DropReason.REMARK if DENIAL.search(part.raw) else None)
        for part, name in zip(parts, names, strict=True)
    ]


def sentence_parts(text: str, question: ReplyQuestion, cut: bool, has_values: bool = False) -> list[ReplyPart]:
    """The parts of a line in sentences. `has_values`: others have stated values, so that only the template counts."""
    bold = [] if has_values else bold_names(text[:LONGEST_LIST_LINE], question)
    if len(bold) > 1:
        return [ReplyPart(text, name, marked=False) for name in bold]
    numbers = numbers_listed(tidy(text), question) if question.numeric and not has_values else []
    if numbers:
        return [ReplyPart(text, number, marked=False) for number in numbers]
    parts: list[ReplyPart] = []
    refused = is_denied = False
    own = [_without_reservation(sentence) for sentence in sentences(text.strip()[:LONGEST_LIST_LINE])]
    names = [without_opening(sentence).rstrip(".") for sentence in own]
    if len(own) > 2 and are_names(names, 3) and not question.numeric and not any(map(PRONOUN.match, names)):
        return [ReplyPart(name, name, marked=False) for name in names if name.casefold() not in VERDICTS]
    for position, sentence in enumerate(own):
        if sentence.endswith(("?", "？")) and position + 1 < len(own) and not question.is_of_phrases:
            parts.append(ReplyPart(sentence, sentence, DropReason.REMARK))  # the question again
            continue
        more = also_named(sentence, question) if has_values else []
        if more:
            parts += [ReplyPart(sentence, name, marked=False) for name in more]
            continue
        is_direct = in_template(without_opening(tidy(sentence)), question, whole=has_values) is not None
        if is_denied or (has_values and not is_direct and not ORDINAL.match(sentence)):
            parts.append(ReplyPart(sentence, sentence, DropReason.EXPLANATION))
        elif not is_direct and (is_refusal(sentence) or DECLINES.search(sentence) or denies_all(sentence, question)):
            refused = True
            # `None. Mercury is the closest planet.`
            is_denied = position == 0 and (len(sentence.split()) == 1 or denies_all(sentence, question))
            parts.append(ReplyPart(sentence, sentence, DropReason.REFUSAL))
        else:
            stated_here = _stated_parts(sentence, question, refused)
            has_values = has_values or any(part.dropped is None for part in stated_here)
            if cut and position + 1 == len(own):
                stated_here[-1] = replace(stated_here[-1], dropped=stated_here[-1].dropped or DropReason.CUT)
            parts += stated_here
    return parts


def _without_reservation(sentence: str) -> str:
    """The part of a sentence that follows its reservation, unless that is a refusal."""
    rest = _BUT.sub("", sentence)
    return sentence if is_refusal(rest) else rest


def bold_names(text: str, question: ReplyQuestion) -> list[str]:
    """The names in bold of a text in sentences, without the question's own words; empty if other text is in bold.

    Titles may be in italics or quotation marks instead.
    """
    if question.numeric:
        return []
    if question.is_of_titles:
        titles = [match.group("name").strip(" ,.") for match in _SET_OFF_TITLE.finditer(text)]
        return titles if len(text) > sum(map(len, titles)) + 3 * len(titles) else []
    matches = list(_BOLD_NAME.finditer(text))
    if in_template(text, question) is not None:  # `... by the **liver** and stored in the **gallbladder**`
        gaps = [text[match.end() : following.start()] for match, following in pairwise(matches)]
        joined = len(list(takewhile(_JOINER.fullmatch, gaps)))
        matches = matches[: joined + 1]
    bold = [match["name"].strip() for match in matches]
    capitals = [name for name in bold if name[:1].isupper()]
    bold = capitals if len(capitals) > 1 and len(capitals) >= 0.5 * len(bold) else bold  # `the **longest coast**`
    if len(text) < 2 * sum(map(len, bold)) or not are_names(bold, 5) or any(map(is_sentence, bold)):
        return []
    names = [name.rstrip(",") for name in bold if not stems(name) or stems(name) - question.known_stems]
    return list(dict.fromkeys(_ARTICLE.sub("", name) for name in names))


def _stated_parts(sentence: str, question: ReplyQuestion, refused: bool) -> list[ReplyPart]:
    """The values that a sentence states, or the sentence as a remark. `refused`: the reply has declined before."""
    body = tidy(sentence)
    if body.strip(".! ").casefold() in VERDICTS:
        return [ReplyPart(sentence, sentence, DropReason.REMARK)]
    if question.numeric:
        bodies = numbers_listed(body, question) or [body]
        return [ReplyPart(sentence, number, marked=False) for number in bodies]
    body = _CITATION.sub("", body)
    foreign = [] if in_template(body, question) is not None else foreign_values(body)
    if foreign:
        return [ReplyPart(sentence, value, marked=False) for value in foreign]
    reasoned = None if question.is_of_titles else _REASONED_NAME.match(body)
    named = reasoned["name"] if reasoned else stated(body, question)
    is_bare = named is None
    if refused and (is_bare or not _answers_still(body, question)):
        return [ReplyPart(sentence, sentence, DropReason.REMARK)]
    named = named or leading_list(body, question) or _novel(body, question) or _bare(body, question)
    if named is None:
        return [ReplyPart(sentence, sentence, DropReason.REMARK)]
    values = _stated_values(body, named, question, is_bare)
    return [ReplyPart(sentence, sentence if value == body else value, marked=False) for value in values] or [
        ReplyPart(sentence, sentence, DropReason.REMARK)
    ]


_SLOT_ARTICLE = re.compile(r"The\s+(?!Hague\b|Bronx\b)(?=\w)")
_REASONED_NAME = re.compile(r"(?P<name>[^\W\d_a-z][^,;:]{1,40}),\s+(?:because|since)\s")
"""A name before its reason, as the whole answer: `The Sargasso Sea, because it has no coasts.`"""


def _stated_values(body: str, named: str, question: ReplyQuestion, is_bare: bool) -> list[str]:
    """The values in the part of a sentence that names them. `is_bare`: the sentence is nothing but names."""
    if not is_bare and not question.is_of_titles:
        named = undated(re.sub(r"\s+\([^()]*\)", "", named))
    values = _names_in(named, question, is_bare)
    if len(values) > 2 and is_bare and not question.is_of_titles:
        values = within_names(values, can_end=True)  # `Sommeliers recommend Malbec, Syrah and Merlot with it`
    if len(values) > 1 and is_bare:
        values[0] = novel_name(values[0], question) or values[0]  # `Puccini composed Tosca, Turandot and ...`
    if values and not question.is_of_titles:  # a lone `and` has none
        values = [_AS.sub("", _ARTICLE.sub("", value)) for value in values]
        values[0] = LEADING_QUANTIFIER.sub("", OPENING_ARTICLE.sub("", values[0]))
        if not question.has_compounds and in_template(body, question) is not None:
            values[0] = _SLOT_ARTICLE.sub("", values[0])
        if in_template(body, question) is None and (len(values) == 1 or not is_bare):
            values = [value for value in values if not _is_echo(value, question)]
    return [value for value in values if value.casefold() not in QUANTITIES]


def _novel(body: str, question: ReplyQuestion) -> str | None:
    """The names in a sentence about the question that the question does not hold; none of another language."""
    name = novel_name(body, question)
    if is_foreign(body):
        return name if name and len(name) > _LONGEST_ARTICLE else None
    return name or novel_names(body, question)


_LONGEST_ARTICLE = 3
"""Letters of an article of another language, with which a sentence may begin."""


_YET = re.compile(
    r"\b(?:but|however|though|although|that said|still|possibl[ey]|likely|probably|perhaps|"
    r"(?:it|that|this|one|answer)\s+(?:might|may|could))\b",
    re.IGNORECASE,
)
"""Words with which a reply answers after all."""


def _answers_still(sentence: str, question: ReplyQuestion) -> bool:
    """True if a sentence behind a refusal answers after all: by words of the question, or `but` or `possibly`."""
    return len(stems(sentence) & question.known_stems) > 1 or _YET.search(sentence) is not None


def _is_echo(value: str, question: ReplyQuestion) -> bool:
    """True if a value is yes or no, or a name of the question itself, of which a sentence of other words speaks."""
    plain = value.strip("\"“”'.,! ")
    is_name = plain[:1].isupper() and re.search(rf"\b{re.escape(plain)}\b", question.fixed_words) is not None
    return is_name or plain.casefold() in VERDICTS


def _names_in(named: str, question: ReplyQuestion, is_bare: bool) -> list[str]:
    """The values that a part of a sentence lists; the part itself if it lists none."""
    values = listed(named, question)
    if len(values) == 2 and not is_bare and "," in named and not re.search(r"\b(?:and|or)\b|&", named):
        return values[:1]  # `in Brussels, Belgium`
    if len(values) > 1 and not is_bare and not any(ADJUNCT.search(value) for value in values[:-1]):
        values[-1] = ADJUNCT.sub("", values[-1])  # `malaria, dengue and Zika to humans`
    if len(values) > 1 and not are_names(values, 8):
        return [named]
    has_articles = len(values) > 1 and all(map(_FOREIGN_ARTICLE.match, values)) and not question.is_of_titles
    return [_FOREIGN_ARTICLE.sub("", value) for value in values] if has_articles else values


def _bare(text: str, question: ReplyQuestion) -> str | None:
    """A sentence that is a name or a list of names, without the words before it; None if it is none."""
    plain = without_opening(text)
    lead = re.match(r"[^:：]{1,120}[:：]\s*(?P<rest>[^:：]*[,，、;].*)", plain, re.DOTALL)
    if lead and not question.is_of_titles:
        plain = lead["rest"]
    opener = OPENERS.match(plain)
    if opener:
        plain = plain[opener.end() :]
    plain = question.without_beginning(plain)
    values = listed(plain, question)
    if len(values) < 2 and _is_told(plain, question):
        return None
    if PRONOUN.match(plain) and not is_titled(plain):
        return None
    if not plain.strip() or (is_talk(ReplyLine(plain, plain), question) and len(values) < 3):
        return None
    if len(values) > 1 and (not are_names(values) or is_sentence(values[0])):
        return None
    return plain


def _is_told(text: str, question: ReplyQuestion) -> bool:
    """True if a text is a sentence by its length and its words in lower case, of whatever language."""
    words = re.split(r"[,(:;–—]|\s-\s", text)[0].split()
    lower = sum(word[0].islower() and len(word) > 2 for word in words[1:])
    return len(words) > 4 and lower > 2 and text.rstrip().endswith((".", "!")) and not question.is_of_titles
