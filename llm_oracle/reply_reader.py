"""Reads replies as models write them: lists, sentences, JSON, tables, with or without talk around them.

A reply is untrusted text of any length. Nothing here raises: each entry of a reply becomes a value, or is dropped for a
reason of a closed vocabulary (`DropReason`). LINK's own rules, which `--compat` follows, are in `answers.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, takewhile

from hapax.grammar.terms import Value
from hapax.llm_oracle.answers import LONGEST_LINE, MOST_LINES, ParsedValue, parse_values
from hapax.llm_oracle.drop_reasons import DropReason
from hapax.llm_oracle.reply_data import (
    SIDE_NAMES,
    WantedName,
    read_csv,
    read_elements,
    read_json,
    read_table,
    without_elements,
)
from hapax.llm_oracle.reply_languages import foreign_values, is_foreign, within_names
from hapax.llm_oracle.reply_lines import Mark, ReplyLine, is_heading, read_lines
from hapax.llm_oracle.reply_numbers import numbers_listed
from hapax.llm_oracle.reply_prose import (
    ReplyQuestion,
    also_named,
    are_names,
    in_template,
    is_titled,
    leading_list,
    listed,
    novel_name,
    novel_names,
    sentences,
    stated,
    stems,
    undated,
    without_opening,
)
from hapax.llm_oracle.reply_turns import first_turn, is_code, own_text, without_reasoning
from hapax.llm_oracle.reply_values import (
    LEADING_QUANTIFIER,
    OPENING_ARTICLE,
    QUANTITIES,
    broken,
    denies_all,
    is_refusal,
    is_sentence,
    style_of,
    tidy,
    values_of,
)

__all__ = [
    "READER_VERSION",
    "STRICT_READER_VERSION",
    "DropReason",
    "Reply",
    "ReplyQuestion",
    "read_reply",
    "read_strictly",
]

READER_VERSION = 12
"""Raised whenever the same reply may give other values. A search stores it with the settings of its run."""

STRICT_READER_VERSION = 1
"""The reader of `answers.parse_values`, which `--compat` uses."""

LENGTH = "length"
"""Finish reason of a reply that the token limit cut off."""

_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
# `The answer is basil`, `**Final Answer:** basil`.
_FINAL = re.compile(
    r"\W{0,4}(?:so,?\s+|therefore,?\s+|thus,?\s+)?(?:the\s+)?(?:final\s+|correct\s+)?answer\**\s*"
    r"(?:is\b|:)\s*\**\s*:?\s*(?P<rest>\S.*)",
    re.IGNORECASE,
)
_GROUP_WORDS = frozenset(
    (
        "africa",
        "asia",
        "europe",
        "america",
        "oceania",
        "australia",
        "north",
        "south",
        "east",
        "west",
        "northern",
        "southern",
    )
) | frozenset(("eastern", "western", "central", "ancient", "modern", "classical", "common", "rare", "other", "others"))
"""Words of groups by which lists of anything are grouped."""
_ADJECTIVE = re.compile(r"(?:ic|al|ory|ar|ous|ive|ern|ese|ish)s?$")
# `Finally, `, `Another example is `, `Other herbs include `: a sentence that states a further value.
_ORDINAL = re.compile(
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
_OPENERS = re.compile(
    r"(?:(?:great|good|excellent|interesting)\s+(?:question|choice|topic)|sure|certainly|"
    r"of course|absolutely|okay|ok|yes|gladly|great|hello|hi|here you go|understood|no problem|gerne|"
    r"bien sûr|claro|por supuesto|certamente|natürlich|当然|好的|当然可以|もちろん)"
    r"\b[\s,!.。！]*(?:here (?:you go|they are|it is))?[\s!.。！:]*",
    re.IGNORECASE,
)
_ITEM_TAGS = re.compile(r"</?(?:li|ul|ol|p|br|div)\s{0,5}/?>", re.IGNORECASE)
# The ` to humans` of `malaria to humans`.
_ADJUNCT = re.compile(r"(?<=\w)\s+(?:to|in|for|at|on|into|as|from|with|by)\s.*$", re.DOTALL)
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
_DECLINES = re.compile(
    r"\bI(?:['’]d|\s+would)?\s+(?:rather\s+not|prefer\s+not|can(?:no|['’])t|cannot|won['’]t|am\s+(?:unable|not)|do\s+not|don['’]t)\s+[a-z]"
)
"""Words with which a sentence gives no answer, wherever they stand."""
_VERDICTS = frozenset(("yes", "no", "true", "false", "ok", "okay", "maybe"))
MOST_CHARACTERS = 1_000_000
"""Characters of a reply that are read."""
LONGEST_LIST_LINE = 20_000
"""Characters of a single line that are read as a list with commas."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as read: its entries in order. An entry is a value, or was dropped for a reason (`rejected`)."""

    entries: tuple[ParsedValue, ...]

    @property
    def values(self) -> list[Value]:
        """The values, in the order of the reply."""
        return [entry.value for entry in self.entries if entry.rejected is None]

    @property
    def dropped(self) -> list[ParsedValue]:
        """The entries that are not values; `rejected` is a `DropReason`, or a text from the strict reader."""
        return [entry for entry in self.entries if entry.rejected is not None]

    def __iter__(self) -> Iterator[ParsedValue]:
        return iter(self.entries)


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply that may hold one value, or `dropped` for a reason. `marked`: it has a list mark."""

    raw: str
    body: str
    dropped: DropReason | None = None
    marked: bool = True


def read_strictly(text: str, question: ReplyQuestion) -> Reply:
    """Read a reply by LINK's rules: one value per line, each of which ends in a full stop."""
    return Reply(tuple(parse_values(text, question.variable, question.data_type, question.numeric)))


def read_reply(text: str, question: ReplyQuestion, finish_reason: str = "stop") -> Reply:
    """Read a reply in whatever form the model wrote it.

    `finish_reason`: `length` if the token limit cut the reply off, so that its last line may be incomplete.
    """
    pieces = _pieces(text[:MOST_CHARACTERS], question, finish_reason == LENGTH)
    if len(pieces) > MOST_LINES:
        pieces = [*pieces[:MOST_LINES], replace(pieces[MOST_LINES], dropped=DropReason.NOT_READ)]
    items = [piece for piece in pieces if piece.dropped is None]
    style = style_of([item.body for item in items], question, all(item.marked for item in items))
    forbidden = {_key(value) for value in question.forbidden}
    seen: set[object] = set()
    entries: list[ParsedValue] = []
    for position, piece in enumerate(pieces):
        value = piece.dropped or values_of(piece.body, question, style, piece.marked)
        rejected: DropReason | None = value if isinstance(value, DropReason) else None
        if rejected is None:
            key = _key(value)
            rejected = DropReason.FORBIDDEN if key in forbidden else DropReason.REPEAT if key in seen else None
            seen.add(key)
        shown = tidy(piece.body).removesuffix(".") if isinstance(value, DropReason) else value
        entries.append(ParsedValue(shown, _shortened(piece.raw.strip()), position, rejected))
    if seen:  # beside values, a sentence such as `I know no others` is a remark
        entries = [
            replace(entry, rejected=DropReason.REMARK)
            if entry.rejected is piece.dropped is DropReason.REFUSAL
            else entry
            for entry, piece in zip(entries, pieces, strict=True)
        ]
    return Reply(tuple(entries))


def _key(value: Value) -> object:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"


# --- the parts of a reply


def _pieces(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in order, from whichever layout it has."""
    reasoning, answer = without_reasoning(text)
    pieces = [ReplyPart(reasoning, reasoning, DropReason.REASONING)] if reasoning.strip() else []
    answer, rest = first_turn(answer)
    data = _data(answer, question, cut) or _table(answer, question, cut)
    if not data:
        has_texts = re.search(r"[\[(]\s*[\"']", answer) is not None
        own, further = ("", answer) if is_code(answer) and not has_texts else own_text(without_elements(answer))
        rest = further + rest
        data = _lines(own, question, cut and not rest)
    pieces += data
    if rest.strip():
        pieces.append(ReplyPart(rest, rest, DropReason.REMARK))
    return pieces


def _data(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply that is JSON, YAML or elements of XML; empty if it is none of them."""
    wanted = WantedName(question.variable, question.data_type, question.numeric)
    part = read_elements(text, wanted)
    if part is None and (cut or re.search(r"[\]}]|```ya?ml", text)):
        part = read_json(without_elements(text), wanted)
    if part is None:
        return []
    before = [ReplyPart(line, line, DropReason.PREAMBLE) for line in _filled(part.before)]
    after = [ReplyPart(line, line, DropReason.REMARK) for line in _filled(part.after)]
    if not part.values:
        return [*before, ReplyPart(text, text, DropReason.REFUSAL), *after]
    values = list(part.values)
    if len(values) == 1 and not question.is_of_titles and not question.numeric:
        inner = listed(values[0], question)
        values = inner if len(inner) > 2 and are_names(inner, 5) else values
    return [*before, *(ReplyPart(value, body) for value, body in _unmarked(values)), *after]


def _unmarked(values: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each value with its text, which is without list marks if all have them."""
    lines = [read_lines(value, 2) for value in values]
    are_marked = all(len(parts) == 1 and parts[0].mark is Mark.NUMBER and parts[0].body for parts in lines)
    for value, parts in zip(values, lines, strict=True):
        yield value, parts[0].body if are_marked else value


def _filled(text: str) -> list[str]:
    return [line.raw for line in read_lines(text, MOST_LINES)]


def _table(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply with a table in Markdown or in CSV; empty if it has none."""
    wanted = WantedName(question.variable, question.data_type, question.numeric)
    lines = read_table(text, wanted) or read_csv(text, wanted)
    if lines is None:
        return []
    pieces: list[ReplyPart] = []
    seen_row = False
    is_judged = any(_TICKED_CELL.search(line.raw) for line in lines)
    for line in lines:
        seen_row = seen_row or line.cell is not None
        if line.cell is not None:
            denied = is_judged and _CROSSED_CELL.search(line.raw) is not None
            pieces.append(ReplyPart(line.raw, line.cell, DropReason.REMARK if denied else None))
        elif "|" in line.raw:
            pieces.append(ReplyPart(line.raw, line.raw, DropReason.HEADING))
        else:
            pieces.append(ReplyPart(line.raw, line.raw, DropReason.REMARK if seen_row else DropReason.PREAMBLE))
    if cut and not text.endswith("\n") and pieces[-1].dropped is None and not pieces[-1].raw.rstrip().endswith("|"):
        pieces[-1] = replace(pieces[-1], dropped=DropReason.CUT)
    return pieces


# --- lines


def _lines(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply in lines: its list, or its lines if it has none."""
    lines = _without_frame(_unbroken(read_lines(_ITEM_TAGS.sub("\n", text), MOST_LINES + 1)), question)
    if not lines:
        return []
    cut = cut and not text.endswith("\n")
    special = (
        _chosen(lines)
        or _records(lines, question)
        or _rows(lines)
        or _lists(lines, question)
        or _lone_number(lines, question, cut)
        or _noted(lines, question)
    )
    special = special or _final_answer(lines[: _own_end(lines, question)], question)
    if special:
        return special
    if len(lines) == 1 and lines[0].mark in (Mark.NONE, Mark.HEADING):
        return _with_subjects(_prose(lines[0].raw, question, cut), question)
    reasons = _reasons(lines, question)
    if all(line.mark in (Mark.NONE, Mark.HEADING) for line in lines) and reasons.count(None) < 2:
        return _paragraphs(lines, question, cut)
    pieces = [
        ReplyPart(line.raw, line.body, reason, marked=line.mark is not Mark.NONE)
        for line, reason in zip(lines, reasons, strict=True)
    ]
    if cut and pieces[-1].dropped is None and not _is_whole(pieces):
        pieces[-1] = replace(pieces[-1], dropped=DropReason.CUT)
    pieces = _with_members(_with_slots(_with_listed_values(pieces, question), question), question)
    return _with_closing_values(pieces, question)


def _unbroken(lines: Sequence[ReplyLine]) -> list[ReplyLine]:
    """The lines, with a list in commas that goes on in the next line as one line."""
    result: list[ReplyLine] = []
    for line in lines:
        earlier = result[-1] if result else None
        goes_on = earlier is not None and earlier.mark is line.mark is Mark.NONE and not line.after_blank
        if earlier is not None and goes_on and earlier.body.rstrip().endswith(",") and earlier.body.count(",") > 1:
            result[-1] = replace(earlier, raw=f"{earlier.raw} {line.raw}", body=f"{earlier.body} {line.body}")
        else:
            result.append(line)
    return result


def _lone_number(lines: Sequence[ReplyLine], question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply of one line that begins with a number which is no list number; empty if it is none."""
    first = lines[0]
    if len(lines) == 1 and first.mark is Mark.NUMBER and not any(map(str.isalnum, first.body)):
        return [ReplyPart(first.raw, first.raw.replace("*", "").strip().rstrip(".)"), marked=False)]  # `1912.`
    if len(lines) == 1 and first.number is not None and first.number > 1 and question.numeric:
        return _prose(first.raw, question, cut)  # `1912. The ship hit an iceberg.`
    return []


def _noted(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces of a reply in sentences with a list of notes below it; empty if it has none."""
    noted = _noted_from(lines)
    notes = [ReplyPart(line.raw, line.body, DropReason.REMARK) for line in lines[noted:]]
    return [*_paragraphs(lines[:noted], question, False), *notes] if noted else []


_LEAST_OF_REMARK = 4
"""Words of a sentence that may name further values."""


def _with_closing_values(pieces: Sequence[ReplyPart], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces, with the values of sentences below the list that name others: `Other herbs include basil.`"""
    last = max((position for position, piece in enumerate(pieces) if piece.dropped is None), default=len(pieces))
    result = list(pieces[: last + 1])
    for piece in pieces[last + 1 :]:
        is_remark = piece.dropped in (DropReason.REMARK, DropReason.EXPLANATION) and not piece.marked
        names: list[str] = []
        for sentence in sentences(piece.raw.strip()) if is_remark and not _NOTES.match(piece.body) else ():
            names += _further_names(sentence, question)
        result += [ReplyPart(piece.raw, name, marked=False) for name in names] or [piece]
    return result


def _further_names(sentence: str, question: ReplyQuestion) -> list[str]:
    """The values of a sentence that says of them what a list says of its items; empty if it says something else."""
    if len(sentence.split()) < _LEAST_OF_REMARK or question.numeric or _CONTRARY.search(sentence):
        return []
    if question.is_of_titles:
        is_further = _ALSO_DID.search(sentence)
        return _bold_names(sentence, question) if is_further else []
    label, sign, rest = broken(sentence)
    if sign in (":", "：") and len(label.split()) <= 4 and _FURTHER.search(label) and len(listed(rest, question)) > 1:
        return listed(rest.rstrip("."), question)
    more = _ORDINAL.match(sentence) if re.match(r"(?:other|additional|further)\b", sentence, re.IGNORECASE) else None
    named = stated(sentence, question) if more else None
    if named:
        return listed(named, question)
    # Below a list a sentence with `also` often tells about something else: two words of the question must recur.
    is_same = len(stems(sentence) & question.known_stems) > 1
    return also_named(sentence, question) if is_same else []


_ALSO_DID = re.compile(
    r"\b(?:also|additionally|other|another)\b(?:\s+(?!(?:for|at|in|with|from|as|to|on|by)\b)[\w'’]+){0,6}?,?:?\s*(?:\*|[\"“«])",
    re.IGNORECASE,
)
"""The beginning of a sentence that names a further title: `She also wrote the novella *Lady Susan*`."""
_CONTRARY = re.compile(
    r"\b(?:not|never|but|however|although|though|unlike|no longer|incorrect|wrong)\b|n['’]t\b", re.IGNORECASE
)


def _with_slots(pieces: Sequence[ReplyPart], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces, with the values apart where an item repeats the template with several in its slot."""
    result: list[ReplyPart] = []
    for piece in pieces:
        slot = None if piece.dropped or question.numeric else in_template(tidy(piece.body), question)
        parts = [] if slot is None else listed(slot, question)
        if len(parts) > 1 and are_names(parts, 4) and not question.is_of_titles and not any(map(is_sentence, parts)):
            result += [replace(piece, body=part) for part in parts]
        else:
            result.append(piece)
    return result


def _with_members(pieces: Sequence[ReplyPart], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces, with the members of groups apart if each item is a group with its members: `Fish: cod, hake`.

    An explanation may list names, too (`Pizza: dough, cheese`), so that the groups must show that they are some: by the
    word of the data type, or by plurals.
    """
    items = [(piece, *broken(tidy(piece.body).replace("*", ""))) for piece in pieces if piece.dropped is None]
    if len(items) < 2 or question.numeric or question.is_of_titles or not all(right for *_, right in items):
        return list(pieces)
    members = [listed(right, question) if right else [] for _, _, _, right in items]
    counts = [len(parts) for parts in members]
    # A group of one is no group; some groups have only one member, so that the mean decides.
    if sum(counts) < 1.6 * len(items) or not all(
        are_names(parts, 4) and not any(map(is_sentence, parts)) for parts in members
    ):
        return list(pieces)
    groups = [left.casefold().split() for _, left, _, _ in items]
    typed = any(_is_kind(left, question) for _, left, _, _ in items)
    # "ss" ends a singular: bass, brass, moss.
    plural = sum(words[-1].endswith("s") and not words[-1].endswith("ss") for words in groups) > 0.5 * len(groups)
    repeated = set(map(str.casefold, chain.from_iterable(members)))
    adjectives = sum(_ADJECTIVE.search(words[-1]) is not None for words in groups) > 0.5 * len(groups)
    bold = all(piece.body.startswith("**") and not piece.raw.lstrip()[:1].isdigit() for piece, *_ in items)
    # Members belong to one group, while explanations share their words: "dough" is in each of the pizzas.
    if not (typed or plural or adjectives or (bold and min(counts) > 1) or _is_known_group(groups)) or len(
        repeated
    ) < 0.9 * sum(counts):
        return list(pieces)
    result: list[ReplyPart] = []
    inside = iter(members)
    for piece in pieces:
        if piece.dropped is None:
            result += [replace(piece, body=part) for part in next(inside)]
        else:
            result.append(piece)
    return result


def _is_kind(text: str, question: ReplyQuestion) -> bool:
    """True if a text names a kind of the data type, `Stone fruits`, rather than one of it, `the Nile River`."""
    words = text.replace("*", "").casefold().split()
    plural = {word.removesuffix("s") for word in words if word.endswith("s")} & question.type_words
    return bool(plural) or bool(words and set(words) <= question.type_words)


def _is_known_group(groups: Sequence[Sequence[str]]) -> bool:
    """True if two of the groups are parts of the world, by which lists are often grouped, or of any list."""
    return sum(bool(_GROUP_WORDS & set(words)) for words in groups) > 1


def _without_frame(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyLine]:
    """The lines without words with which most of them begin, if these have a verb: `You could try ceviche`."""
    if question.is_of_titles or question.numeric or len(lines) < 3:
        return list(lines)
    starts = Counter(tuple(line.body.split()[:2]) for line in lines if len(line.body.split()) > 2)
    start, count = starts.most_common(1)[0] if starts else ((), 0)
    framed = [line.body for line in lines if tuple(line.body.split()[:2]) == start]
    if count < 3 or count < 0.6 * len(lines) or any(in_template(tidy(body), question) is not None for body in framed):
        return list(lines)
    frame = _common_beginning([body.split() for body in framed])
    # Two words stand for a value: the frame must make a sentence with it, and each line must go on after it.
    if not is_sentence(" ".join([*frame, "x", "x"])) or any(len(body.split()) == len(frame) for body in framed):
        return list(lines)
    return [
        replace(line, body=_ADJUNCT.sub("", " ".join(line.body.split()[len(frame) :]))) if line.body in framed else line
        for line in lines
    ]


def _common_beginning(texts: Sequence[Sequence[str]]) -> list[str]:
    """The words with which all texts begin."""
    columns = takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False))
    return [words[0] for words in columns]


_CHOICE = re.compile(
    r"\W*(?:the\s+)?(?:correct\s+)?answer\W*(?:is)?\W*\(?(?P<letter>[A-Ea-e])\b(?![\w'’])", re.IGNORECASE
)


def _chosen(lines: Sequence[ReplyLine]) -> list[ReplyPart]:
    """The pieces of a question with choices and its answer, `Answer: B`: the choice; empty if the reply is none."""
    choices = {chr(ord("a") + line.number - 1): line for line in lines if line.mark is Mark.LETTER and line.number}
    match = _CHOICE.match(lines[-1].body)
    if len(choices) < 2 or match is None or len(choices) + 1 < len(lines) - 1:
        return []
    chosen = choices.get(match["letter"].casefold())
    is_value = chosen is not None and chosen.body.strip(". ").casefold() not in _VERDICTS
    return [
        ReplyPart(line.raw, line.body, None if line is chosen and is_value else DropReason.REMARK) for line in lines
    ]


def _records(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces of a reply of records, `Country: Chile` above `Reason: ...`; empty if it is none."""
    fields = [broken(line.body.replace("*", "")) if line.mark is Mark.NONE else ("", "", "") for line in lines]
    counts = Counter(label.casefold() for label, sign, _ in fields if sign in (":", "：") and len(label.split()) <= 3)
    wanted = WantedName(question.variable, question.data_type, question.numeric)
    # A single label that recurs, such as `Answer`, makes a list and no records.
    recurring = [label for label, count in counts.items() if count > 1]
    if not recurring and len(lines) == len(counts) > 1:
        best = max(counts, key=wanted.fit)
        recurring = (
            [*counts] if wanted.fit(best) and all(SIDE_NAMES.search(name) for name in counts if name != best) else []
        )
    if len(recurring) < 2 or sum(counts[label] for label in recurring) < 0.8 * len(lines):
        return []
    best = max(recurring, key=wanted.fit)
    return [
        ReplyPart(
            line.raw,
            value if label.casefold() == best else line.body,
            None if label.casefold() == best else DropReason.EXPLANATION,
        )
        for line, (label, _, value) in zip(lines, fields, strict=True)
    ]


def _rows(lines: Sequence[ReplyLine]) -> list[ReplyPart]:
    """The first fields of rows that semicolons divide, without a row of names above them; empty if there are none."""
    counts = {line.raw.count(";") for line in lines}
    if (
        len(lines) < 3
        or len(counts) > 1
        or 0 in counts
        or any("; " in line.raw or line.mark is not Mark.NONE for line in lines)
    ):
        return []
    return [ReplyPart(line.raw, line.raw.partition(";")[0]) for line in lines]


def _lists(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The values of lines that each list several in commas below a heading; empty if there are other lines."""
    if question.numeric or question.is_of_titles or len(lines) < 2:
        return []
    values = [listed(line.body.rstrip("."), question) for line in lines]
    are_lists = [
        line.mark is Mark.NONE
        and len(names) > 2
        and are_names(names, 4)
        and not broken(line.body)[2]
        and not any(map(is_sentence, names))
        for line, names in zip(lines, values, strict=True)
    ]
    # Rows such as `Rome, Italy, Europe` follow each other; a list of values stands alone below its heading.
    are_headings = [
        not is_list and line.mark in (Mark.HEADING, Mark.NONE) and len(line.body.split()) <= 5
        for line, is_list in zip(lines, are_lists, strict=True)
    ]
    if len(lines) % 2 or not all(are_headings[::2]) or not all(are_lists[1::2]):
        return []
    pieces: list[ReplyPart] = []
    for line, is_list, names in zip(lines, are_lists, values, strict=True):
        if is_list:
            pieces += [ReplyPart(line.raw, name, marked=False) for name in names]
        else:
            pieces.append(ReplyPart(line.raw, line.body, DropReason.HEADING))
    return pieces


def _is_whole(pieces: Sequence[ReplyPart]) -> bool:
    """True if the value of the last item is complete: it ends as the others do, or its explanation has begun."""
    items = [piece.body.rstrip() for piece in pieces if piece.dropped is None]
    explained = [bool(broken(item.replace("*", ""))[2]) for item in items]
    if len(items) > 1 and explained[-1] and sum(explained) > 0.5 * len(items):
        return True  # the value of `3. James Cook - He made three voyages in the Pac` is whole
    return len(items) > 1 and all(item.endswith(".") for item in items)


def _with_listed_values(pieces: Sequence[ReplyPart], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces, with the values of a line apart if it is the only item and lists several."""
    items = [piece for piece in pieces if piece.dropped is None]
    if len(items) != 1:
        return list(pieces)
    parts = listed(items[0].body, question)
    if not all(any(map(str.isalnum, part)) for part in parts):
        return list(pieces)
    result: list[ReplyPart] = []
    for piece in pieces:
        if piece.dropped is None and len(parts) > 2:
            result += [replace(piece, body=part) for part in parts]
        else:
            result.append(piece)
    return result


def _final_answer(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces of a reply that marks its final answer; empty if it marks none."""
    boxed = [_BOXED.search(line.raw[:LONGEST_LIST_LINE]) for line in lines]
    answers = [_FINAL.match(line.raw[:LONGEST_LINE]) for line in lines]
    if any(boxed):
        pieces: list[ReplyPart] = []
        for line, match in zip(lines, boxed, strict=True):
            if match is None:
                pieces.append(ReplyPart(line.raw, line.body, DropReason.EXPLANATION))
            else:
                parts = listed(tidy(match[1]), question)
                pieces += [ReplyPart(line.raw, part) for part in (parts if len(parts) > 1 else [match[1]])]
        return pieces
    # "The answer is" below a list may be its last item's explanation, unless the lines above are sentences.
    unmarked = all(line.mark in (Mark.NONE, Mark.HEADING) for line in lines)
    reasoned = lines[-1].mark is Mark.NONE and all(
        is_sentence(line.body) or len(line.body.split()) > (3 if line.body.endswith(".") else 4) for line in lines[:-1]
    )
    if len(lines) > 1 and (unmarked or reasoned) and answers[-1] is not None:
        *earlier, last = lines
        parts = listed(answers[-1]["rest"], question)
        return [
            *(ReplyPart(line.raw, line.body, DropReason.EXPLANATION) for line in earlier),
            *(ReplyPart(last.raw, part) for part in parts),
        ]
    return []


# --- prose


def _paragraphs(lines: Sequence[ReplyLine], question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in sentences: the values of the first line that states any, and of each template."""
    end = _own_end(lines, question)
    parts: list[ReplyPart] = []
    for position, line in enumerate(lines[:end]):
        is_last = position + 1 == len(lines)
        has_values = any(part.dropped is None for part in parts)
        parts += _prose(line.raw, question, cut and is_last, has_values)
    return [
        *_with_subjects(parts, question),
        *(ReplyPart(line.raw, line.body, DropReason.REMARK) for line in lines[end:]),
    ]


def _with_subjects(parts: Sequence[ReplyPart], question: ReplyQuestion, related: bool = False) -> list[ReplyPart]:
    """The parts of a reply in which each sentence tells about another name: that name is the value."""
    if (
        len(parts) > 2
        and stems(parts[0].raw.partition(" ")[0]) <= question.known_stems
        and parts[0].dropped is not None
    ):
        return [parts[0], *_with_subjects(parts[1:], question, related=True)]  # `Spain has many cities.`
    # Each sentence has to begin with a name of its own, and the first one to speak of the question.
    told = [without_opening(part.raw) for part in parts]
    subjects = [_SUBJECT.match(text) or _LOWER_SUBJECT.match(text) for text in told]
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
    return [replace(part, body=name, dropped=None) for part, name in zip(parts, names, strict=True)]


def _prose(text: str, question: ReplyQuestion, cut: bool, has_values: bool = False) -> list[ReplyPart]:
    """The parts of a line in sentences. `has_values`: others have stated values, so that only the template counts."""
    bold = [] if has_values else _bold_names(text[:LONGEST_LIST_LINE], question)
    if len(bold) > 1:
        return [ReplyPart(text, name, marked=False) for name in bold]
    numbers = numbers_listed(tidy(text), question) if question.numeric and not has_values else []
    if numbers:
        return [ReplyPart(text, number, marked=False) for number in numbers]
    parts: list[ReplyPart] = []
    refused = is_denied = False
    own = [_without_reservation(sentence) for sentence in sentences(text.strip()[:LONGEST_LIST_LINE])]
    names = [without_opening(sentence).rstrip(".") for sentence in own]
    if len(own) > 2 and are_names(names, 3) and not question.numeric and not any(map(_PRONOUN.match, names)):
        return [ReplyPart(name, name, marked=False) for name in names if name.casefold() not in _VERDICTS]
    for position, sentence in enumerate(own):
        if sentence.endswith(("?", "？")) and position + 1 < len(own) and not question.is_of_phrases:
            parts.append(ReplyPart(sentence, sentence, DropReason.REMARK))  # the question again
            continue
        more = also_named(sentence, question) if has_values else []
        if more:
            parts += [ReplyPart(sentence, name, marked=False) for name in more]
            continue
        is_direct = in_template(without_opening(tidy(sentence)), question, whole=has_values) is not None
        if is_denied or (has_values and not is_direct and not _ORDINAL.match(sentence)):
            parts.append(ReplyPart(sentence, sentence, DropReason.EXPLANATION))
        elif not is_direct and (is_refusal(sentence) or _DECLINES.search(sentence) or denies_all(sentence, question)):
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


def _bold_names(text: str, question: ReplyQuestion) -> list[str]:
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
    if body.strip(".! ").casefold() in _VERDICTS:
        return [ReplyPart(sentence, sentence, DropReason.REMARK)]
    if question.numeric:
        bodies = numbers_listed(body, question) or [body]
        return [ReplyPart(sentence, number, marked=False) for number in bodies]
    body = _CITATION.sub("", body)
    foreign = [] if in_template(body, question) is not None else foreign_values(body)
    if foreign:
        return [ReplyPart(sentence, value, marked=False) for value in foreign]
    named = stated(body, question)
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
    return is_name or plain.casefold() in _VERDICTS


def _names_in(named: str, question: ReplyQuestion, is_bare: bool) -> list[str]:
    """The values that a part of a sentence lists; the part itself if it lists none."""
    values = listed(named, question)
    if len(values) == 2 and not is_bare and "," in named and not re.search(r"\b(?:and|or)\b|&", named):
        return values[:1]  # `in Brussels, Belgium`
    if len(values) > 1 and not is_bare and not any(_ADJUNCT.search(value) for value in values[:-1]):
        values[-1] = _ADJUNCT.sub("", values[-1])  # `malaria, dengue and Zika to humans`
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
    opener = _OPENERS.match(plain)
    if opener:
        plain = plain[opener.end() :]
    plain = question.without_beginning(plain)
    values = listed(plain, question)
    if len(values) < 2 and _is_told(plain, question):
        return None
    if _PRONOUN.match(plain) and not is_titled(plain):
        return None
    if not plain.strip() or (_is_talk(ReplyLine(plain, plain), question) and len(values) < 3):
        return None
    if len(values) > 1 and (not are_names(values) or is_sentence(values[0])):
        return None
    return plain


def _is_told(text: str, question: ReplyQuestion) -> bool:
    """True if a text is a sentence by its length and its words in lower case, of whatever language."""
    words = re.split(r"[,(:;–—]|\s-\s", text)[0].split()
    lower = sum(word[0].islower() and len(word) > 2 for word in words[1:])
    return len(words) > 4 and lower > 2 and text.rstrip().endswith((".", "!")) and not question.is_of_titles


_QUOTED_LINE = re.compile(r"[\"“«„][^\"“”«»]{2,}[\"”»“][.,;]?")
_CLOSED = re.compile(r"[.!]\W*$")
_CROSSED_ITEM = re.compile(r"\s*(?:[❌✗✘✖❎🚫]|[-*+]\s+\[ \]\s)")
"""Bullets of items that are none of the values, beside others that are."""
_CROSSED_CELL = re.compile(r"[❌✗✘✖]|\|\s*no\s*(?:\||$)", re.IGNORECASE)
_TICKED_CELL = re.compile(r"[✅✓✔]|\|\s*yes\s*(?:\||$)", re.IGNORECASE)
"""Cells of a table that say if the value of their row is right."""
_PRONOUN = re.compile(r"(?:it|this|that|these|those|they|he|she|we|i|you|there|here)\b", re.IGNORECASE)
_NOTES = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|key\s+points|summary|caveats?|resources?|why|how)\b",
    re.IGNORECASE,
)
_FURTHER = re.compile(
    r"\b(?:also|other|others|more|additional|further|less|examples?|others|lists?|cases|mentions|borderline|possible|debatable)\b",
    re.IGNORECASE,
)
_NOTE = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|caveats?|explanation|reasoning|confidence|certainty|probability|score)\**\s*[:：]",
    re.IGNORECASE,
)


def _is_talk(line: ReplyLine, question: ReplyQuestion) -> bool:
    """True if a line without a list mark is talk rather than a value."""
    body = line.body.strip()
    if in_template(tidy(body), question) is not None:
        return False
    if _NOTE.match(body):
        return True
    if body.startswith((":", "：")):
        return True  # the explanation in a list of definitions
    body = re.sub(r"\s+\([^()]*\)(?=\W*$)", "", body)
    words = body.split()
    opener = _OPENERS.match(body)
    if opener and (not body[opener.end() :].strip() or body[opener.end() - 1 : opener.end()] in "!,。！,"):
        return True
    if (body.endswith(("?", "？", ":", "：")) and len(words) > 1) or body.endswith((":", "：")):
        return True
    if re.fullmatch(r"\(.*\)\.?", body) or re.match(r"\[\d{1,3}\]\s", body):
        return True
    if body.endswith(("。", "！", "？")) and len(body) > 12:
        return True
    named = re.split(r"\s+[-–—]\s+|:\s+", body)[0]
    short = named if len(named) < len(body) and len(named.split()) <= 5 else body
    return len(short.split()) > 8 or is_sentence(short)


def _reasons(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[DropReason | None]:
    """For each line the reason why it is not an item, None for an item."""
    end = _own_end(lines, question)
    own = list(lines[:end])
    items = _item_positions(own, question)
    first = min(items, default=len(own))
    if first < len(own) and _declines_all(own[:first], question):
        return [DropReason.REFUSAL] * len(lines)
    # Items crossed out in a list of others are counterexamples; a list of nothing else marks its items so.
    crossed = {position for position in items if _CROSSED_ITEM.match(own[position].raw)}
    reasons: list[DropReason | None] = []
    for position, line in enumerate(own):
        if position in items:
            reasons.append(DropReason.REMARK if position in crossed and len(crossed) < len(items) else None)
        elif is_refusal(line.body):
            reasons.append(DropReason.REFUSAL)
        elif position < first:
            reasons.append(DropReason.PREAMBLE)
        elif line.mark is Mark.HEADING:
            reasons.append(DropReason.HEADING)
        elif line.mark is Mark.NONE and line.after_blank:
            reasons.append(DropReason.REMARK)
        else:
            reasons.append(DropReason.EXPLANATION)
    return [*reasons, *[DropReason.REMARK] * (len(lines) - end)]


def _declines_all(before: Sequence[ReplyLine], question: ReplyQuestion) -> bool:
    """True if a refusal stands before a list that is introduced without a word of the question: advice, for example."""
    if not before:
        return False
    if _ASKS_BACK.search(before[0].body) or _STEPS_BELOW.search(before[-1].body):
        return not _STEPS_BELOW.search(f"these {question.data_type.casefold()}s:")
    if not (is_refusal(before[0].body) or _DECLINES.search(before[0].body)):
        return False
    introduction = sentences(before[-1].body)[-1]
    if re.search(r"\bplease\s+(?:consider|contact|reach|call|seek|consult)\b", introduction, re.IGNORECASE):
        return True
    if re.match(r"(?:here|below)\b", introduction, re.IGNORECASE):
        return False
    return introduction != sentences(before[0].body)[0] and not stems(introduction) & question.known_stems


_ASKS_BACK = re.compile(
    r"\b(?:could|can|would)\s+you\s+(?:please\s+)?(?:clarify|specify|provide\s+more|tell\s+me\s+more|be\s+more\s+specific)|"
    r"\bwhat\s+(?:do|exactly\s+do)\s+you\s+mean|\bplease\s+(?:clarify|specify|provide\s+more)",
    re.IGNORECASE,
)
"""A question back, below which the possible meanings may be listed."""
_STEPS_BELOW = re.compile(
    r"\b(?:these|following|some)\s+(?:\w+\s+)?(?:steps|tips|instructions|guidelines|strategies|suggestions|resources)\s*[:.]?\W*$",
    re.IGNORECASE,
)
"""The introduction of a list that tells how to find the answer."""


def _own_end(lines: Sequence[ReplyLine], question: ReplyQuestion) -> int:
    """Position of the line where a base model goes on with another question's slot; their number if it does not."""
    for position, line in enumerate(lines):
        is_marked = line.mark not in (Mark.NONE, Mark.HEADING)
        slots = re.findall(r"\[([A-Z]\d?)\]", line.body)
        if position and not is_marked and slots and (line.after_blank or slots[0] != question.variable):
            return position
    return len(lines)


def _item_positions(lines: Sequence[ReplyLine], question: ReplyQuestion) -> set[int]:
    """Positions of the lines that are items: those of the outermost list, or of the lists below its group names."""
    marked = [position for position, line in enumerate(lines) if line.mark not in (Mark.NONE, Mark.HEADING)]
    headings = [position for position, line in enumerate(lines) if line.mark is Mark.HEADING]
    if not marked:
        return _unmarked_items(lines, headings, question)
    names = [position for position in headings if not lines[position].body.rstrip("*_ ").endswith((":", "："))]
    heads = [position for position in range(len(lines) - 1) if _heads_details(lines, position)]
    if len(heads) > 1 and heads[0] < marked[0]:
        inner = [lines[position].body for position in marked]
        if len(inner) == len(heads) or _are_explanations(inner, question):
            return set(heads)
    bulleted = all(lines[position].mark is Mark.BULLET for position in marked)
    is_described = len(names) == 1 and all(_PRONOUN.match(lines[position].body) for position in marked)
    if (
        bulleted
        and names
        and (len(names) > 1 or is_described)
        and names[0] < marked[0]
        and _are_explanations([lines[p].body for p in marked], question)
    ):
        return {position for position in names if _heads_marked(lines, position)}
    items = _outer_items(lines, marked, question)
    before = items[0] - 1
    # The number 1 may have stood in the prompt, so that the reply begins with its text.
    if (
        lines[items[0]].number == 2
        and before >= 0
        and lines[before].mark is Mark.NONE
        and not _is_talk(lines[before], question)
    ):
        items = [before, *items]
    return set(_without_notes(lines, items, question))


def _heads_details(lines: Sequence[ReplyLine], position: int) -> bool:
    """True if an indented bullet follows a short line without a mark."""
    line, following = lines[position], lines[position + 1]
    return (
        line.mark is Mark.NONE
        and len(line.body.split()) <= 5
        and following.mark is Mark.BULLET
        and following.raw[:1].isspace()
    )


def _heads_marked(lines: Sequence[ReplyLine], position: int) -> bool:
    following = lines[position + 1 : position + 2]
    return bool(following) and following[0].mark is not Mark.HEADING


def _unmarked_items(lines: Sequence[ReplyLine], headings: Sequence[int], question: ReplyQuestion) -> set[int]:
    """Items of a reply without list marks: its lines in bold if text stands below them, else all that is no talk."""
    described = _described_lines(lines)
    if described:
        return described
    leading = {position for position, line in enumerate(lines) if _BOLD_START.match(line.body)}
    if len(leading) > 1 and len(leading) >= 0.6 * len(lines) and all(lines[p].after_blank for p in leading - {0}):
        return leading
    names = [position for position in headings if not lines[position].body.rstrip("*_ ").endswith((":", "："))]
    quoted = {position for position, line in enumerate(lines) if _QUOTED_LINE.fullmatch(line.body.strip())}
    if len(quoted) > 1 and len(quoted) >= 0.5 * len(lines):
        return quoted
    # Among short lines, a long one that ends like a sentence is a remark on the list.
    others = [line for line in lines if line.mark is Mark.NONE]
    short = sum(len(line.body.split()) <= 4 and not line.body.endswith(".") for line in others)
    sentence = {
        position
        for position, line in enumerate(lines)
        if short > 0.6 * len(others) and len(line.body.split()) > 4 and _CLOSED.search(line.body)
    }
    # A single exclamation at the end wishes the reader luck; names such as "Yahoo!" are seldom alone in that.
    if not any(line.body.endswith("!") for line in others[:-1]) and others and others[-1].body.endswith("!"):
        sentence.add(max(position for position, line in enumerate(lines) if line.mark is Mark.NONE))
    title = 0 if lines and stems(lines[0].body) <= question.known_stems and _names_type(lines[0].body, question) else -1
    if (
        names
        and (len(names) > 1 or not others)
        and all(_is_talk(line, question) or _is_told_of(line.body) for line in others)
    ):
        return set(names)
    items = {
        position
        for position, line in enumerate(lines)
        if not _is_talk(line, question) and not is_refusal(line.body) and position not in sentence and position != title
    }
    below = items - set(headings)
    return below if len(below) > 1 and len(below) >= len(headings) else items


_BOLD_START = re.compile(r"\*\*[^*\n:]{2,60}\*\*,?\s+[a-z]")
"""A name in bold with which the sentence of a paragraph begins."""


def _is_told_of(text: str) -> bool:
    """True if a line below a name tells about it: it is long, or ends like a sentence."""
    words = len(text.split())
    return words > 4 or (words > 2 and text.endswith("."))


def _described_lines(lines: Sequence[ReplyLine]) -> set[int]:
    """Positions of names each of which begins a block of lines, above its description; empty if blocks differ.

    One line before the blocks may introduce them, and one behind them may close the reply.
    """
    starts = [position for position, line in enumerate(lines) if position == 0 or line.after_blank]
    blocks = list(pairwise([*starts, len(lines)]))
    if blocks and blocks[0] == (0, 1):
        blocks = blocks[1:]
    if blocks and blocks[-1][1] - blocks[-1][0] == 1:
        blocks = blocks[:-1]
    if len(blocks) < 2 or any(end - start < 2 for start, end in blocks):
        return set()
    for start, end in blocks:
        name, *description = lines[start:end]
        is_name = len(name.body.split()) <= 5 and not name.body.rstrip("*_ ").endswith((".", ":", "：", "!", "?"))
        if not is_name or not any(len(line.body.split()) > 4 for line in description):
            return set()
    return {start for start, _ in blocks}


def _names_type(text: str, question: ReplyQuestion) -> bool:
    """True if a text of several words holds the data type, as a title of a list does."""
    return len(text.split()) > 1 and bool(stems(text) & stems(question.data_type))


def _outer_items(lines: Sequence[ReplyLine], marked: Sequence[int], question: ReplyQuestion) -> list[int]:
    """The marked lines that are items, without the explanations below them and the group names above them."""
    # By mark and indentation, in the order of their first lines, so that the outermost list comes first.
    kinds: dict[tuple[Mark, int], list[int]] = {}
    for position in marked:
        kinds.setdefault((lines[position].mark, lines[position].depth), []).append(position)
    outer, *inner = list(kinds.values())
    if not inner:
        return list(outer)
    below = [position for position in marked if position not in outer]
    depth = lines[outer[0]].depth
    # A list of another kind that begins on its own, behind the first one, is a further list.
    apart = all(
        lines[position].depth == depth
        and position > outer[-1]
        and lines[below[0] - 1].mark in (Mark.NONE, Mark.HEADING)
        for position in below
    )
    if apart:
        return list(marked)
    groups = [position for position in outer if lines[position].body.rstrip("*_ ").endswith((":", "："))]
    # A numbered list below each number holds the items, while bullets may explain.
    nested = {lines[position].mark for position in marked} == {Mark.NUMBER} and len(below) >= 2 * len(outer) > 2
    if not groups and nested and are_names([lines[position].body for position in below], 4):
        groups = list(outer)
    if not groups and _are_group_names(lines, outer, below, question):
        groups = list(outer)
    singles = [position for position in outer if position not in groups]
    are_parents = [position for position in outer if position + 1 in below] == groups
    if (
        groups
        and (len(groups) >= 0.5 * len(outer) or are_parents)
        and not _are_explanations([lines[position].body for position in below], question)
    ):
        return sorted([*_outer_items(lines, below, question), *singles])
    return list(outer)


def _are_group_names(
    lines: Sequence[ReplyLine], outer: Sequence[int], below: Sequence[int], question: ReplyQuestion
) -> bool:
    """True if all outer lines are in bold, or hold the data type, and have two names or more below each."""
    typed = all(_is_kind(lines[position].body, question) for position in outer)
    for position, following in zip(outer, [*outer[1:], len(lines)], strict=True):
        inner = [lines[number].body for number in below if position < number < following]
        if not (typed or is_heading(lines[position].body)) or len(inner) < 2:
            return False
        if any(len(body.split()) > 4 or ":" in body or body.endswith(".") for body in inner):
            return False
    return len(outer) > 1


def _are_explanations(bodies: Sequence[str], question: ReplyQuestion) -> bool:
    """True if most of these lines are sentences, or parts under labels that recur, instead of names."""
    labels = style_of(list(bodies), question).labels
    telling = 0
    for body in bodies:
        plain = body.replace("*", "").replace("_", " ").strip()
        label, _, explained = broken(plain)
        label = label.casefold()
        if explained and label not in labels and len(label.split()) <= 4:
            continue  # `Manchego: a hard cheese.`
        long = len(plain.split()) > 2 and plain.endswith(".")
        telling += label in labels or is_sentence(plain) or long or len(plain.split()) > 7
    return telling >= 0.5 * len(bodies)


def _noted_from(lines: Sequence[ReplyLine]) -> int:
    """Position of the heading of notes, such as `Key points:`, that all list marks follow; 0 if there is none."""
    marked = [position for position, line in enumerate(lines) if line.mark not in (Mark.NONE, Mark.HEADING)]
    if not marked or not marked[0]:
        return 0
    heading = lines[marked[0] - 1]
    is_noted = _NOTES.match(heading.body) and heading.body.rstrip("*_ ").endswith((":", "："))
    return marked[0] - 1 if is_noted else 0


def _heads_sentences(lines: Sequence[ReplyLine], heading: int, items: Sequence[int]) -> bool:
    """True if a list of sentences follows a heading with a colon, and the list before it is of names."""
    before = [lines[position].body for position in items if position < heading]
    after = [lines[position].body for position in items if position > heading]
    if not lines[heading].body.rstrip("*_ ").endswith((":", "：", "?")) or not before or not after:
        return False
    return are_names([body.rstrip(".") for body in before], 4) and all(
        len(body.split()) > 4 and body.rstrip().endswith((".", "!", "?")) for body in after
    )


_EXCLUDED = re.compile(
    r"\W*(?:(?:foods?|things|items|what|those|\w+)\s+(?:to|that\s+(?:do|are|is))\s+(?:not|avoid)\b|not\b|avoid\b|never\b|do\s?n[o'’]t\b|unsafe\b|incorrect\b|"
    r"excluded?\b|non-?examples?\b)",
    re.IGNORECASE,
)
"""The beginning of a heading above counterexamples."""


_NEGATED = re.compile(r"\bnot\b(?!\s+(?:only|exhaustive|complete|just|limited))|n['’]t\b", re.IGNORECASE)
"""The denial in a heading such as `Sometimes mentioned, but not transcontinental:`."""


def _heads_aside(lines: Sequence[ReplyLine], heading: int, items: Sequence[int], question: ReplyQuestion) -> bool:
    """True if a list in other marks than the one before follows a heading that does not speak of the question."""
    before = {lines[position].mark for position in items if position < heading}
    after = {lines[position].mark for position in items if position > heading}
    words = lines[heading].body
    return bool(after) and not before & after and not stems(words) & question.known_stems and not _FURTHER.search(words)


def _without_notes(lines: Sequence[ReplyLine], items: Sequence[int], question: ReplyQuestion) -> Iterator[int]:
    """The items without lists of notes, such as behind `Sources:`, and of sentences made with the items before."""
    skipped = False
    wanted = set(items)
    first = min(wanted, default=0)
    for position, line in enumerate(lines):
        if line.mark is Mark.HEADING and position > first:
            skipped = (
                _EXCLUDED.match(line.body) is not None
                or (_NEGATED.search(line.body) is not None and not _NEGATED.search(question.sentence))
                or _NOTES.match(line.body) is not None
                or _heads_sentences(lines, position, items)
                or _heads_aside(lines, position, items, question)
            )
        is_note = line.mark is not Mark.NUMBER and _NOTE.match(line.body) is not None
        if position in wanted and not skipped and not is_note:
            yield position
