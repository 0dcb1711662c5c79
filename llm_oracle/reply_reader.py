"""Reads replies as models write them: lists, sentences, JSON, tables, with or without talk around them.

A reply is untrusted text of any length. Nothing here raises: each entry of a reply becomes a value, or is dropped for a
reason of a closed vocabulary (`DropReason`). LINK's own rules, which `--compat` follows, are in `answers.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

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
from hapax.llm_oracle.reply_items import FURTHER, NOTES, drop_reasons, is_kind, notes_start, own_end
from hapax.llm_oracle.reply_lines import Mark, ReplyLine, ReplyPart, read_lines
from hapax.llm_oracle.reply_lists import are_names, listed
from hapax.llm_oracle.reply_prose import DENIAL, also_named, in_template, sentences, stated
from hapax.llm_oracle.reply_question import ReplyQuestion, stems
from hapax.llm_oracle.reply_sentences import (
    ADJUNCT,
    LONGEST_LIST_LINE,
    ORDINAL,
    VERDICTS,
    bold_names,
    paragraphs,
    sentence_parts,
    with_subjects,
)
from hapax.llm_oracle.reply_turns import first_turn, is_code, own_text, without_reasoning
from hapax.llm_oracle.reply_values import (
    broken,
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

READER_VERSION = 14
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
_ITEM_TAGS = re.compile(r"</?(?:li|ul|ol|p|br|div)\s{0,5}/?>", re.IGNORECASE)
_LONG_RUN = re.compile(r"(?P<sign>.)(?P=sign){199,}", re.DOTALL)
_LONG_BLANKS = re.compile(r"\s{200,}")
MOST_CHARACTERS = 1_000_000
"""Characters of a reply that are read."""


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


def read_strictly(text: str, question: ReplyQuestion) -> Reply:
    """Read a reply by LINK's rules: one value per line, each of which ends in a full stop."""
    return Reply(tuple(parse_values(text, question.variable, question.data_type, question.numeric)))


def read_reply(text: str, question: ReplyQuestion, finish_reason: str = "stop") -> Reply:
    """Read a reply in whatever form the model wrote it.

    `finish_reason`: `length` if the token limit cut the reply off, so that its last line may be incomplete.
    """
    text = text[:MOST_CHARACTERS]
    try:
        pieces = _pieces(_without_long_runs(text), question, finish_reason == LENGTH)
    except (RecursionError, MemoryError):
        pieces = [ReplyPart(text, text, DropReason.NOT_READ)]
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


def _without_long_runs(text: str) -> str:
    """The text with runs of one character, or of blanks, cut to 200: expressions try each character of a run anew."""
    text = _LONG_RUN.sub(lambda run: run["sign"] * 200, text)
    # What stands on two lines stays on two lines.
    return _LONG_BLANKS.sub(lambda run: "\n\n" if "\n" in run.group() else " " * 200, text)


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
    values = list(part.values[: MOST_LINES + 1])
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


_CROSSED_CELL = re.compile(r"[❌✗✘✖]|\|\s*no\s*(?:\||$)", re.IGNORECASE)
_TICKED_CELL = re.compile(r"[✅✓✔]|\|\s*yes\s*(?:\||$)", re.IGNORECASE)
"""Cells of a table that say if the value of their row is right."""

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
    special = special or _final_answer(lines[: own_end(lines, question)], question)
    if special:
        return special
    if len(lines) == 1 and lines[0].mark in (Mark.NONE, Mark.HEADING):
        return with_subjects(sentence_parts(lines[0].raw, question, cut), question)
    reasons = drop_reasons(lines, question)
    if all(line.mark in (Mark.NONE, Mark.HEADING) for line in lines) and reasons.count(None) < 2:
        return paragraphs(lines, question, cut)
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
        return sentence_parts(first.raw, question, cut)  # `1912. The ship hit an iceberg.`
    return []


def _noted(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces of a reply in sentences with a list of notes below it; empty if it has none."""
    noted = notes_start(lines)
    notes = [ReplyPart(line.raw, line.body, DropReason.REMARK) for line in lines[noted:]]
    return [*paragraphs(lines[:noted], question, False), *notes] if noted else []


_LEAST_OF_REMARK = 4
"""Words of a sentence that may name further values."""


def _with_closing_values(pieces: Sequence[ReplyPart], question: ReplyQuestion) -> list[ReplyPart]:
    """The pieces, with the values of sentences below the list that name others: `Other herbs include basil.`"""
    last = max((position for position, piece in enumerate(pieces) if piece.dropped is None), default=len(pieces))
    result = list(pieces[: last + 1])
    for piece in pieces[last + 1 :]:
        is_remark = piece.dropped in (DropReason.REMARK, DropReason.EXPLANATION) and not piece.marked
        names: list[str] = []
        for sentence in sentences(piece.raw.strip()) if is_remark and not NOTES.match(piece.body) else ():
            names += _further_names(sentence, question)
        result += [ReplyPart(piece.raw, name, marked=False) for name in names] or [piece]
    return result


def _further_names(sentence: str, question: ReplyQuestion) -> list[str]:
    """The values of a sentence that says of them what a list says of its items; empty if it says something else."""
    if len(sentence.split()) < _LEAST_OF_REMARK or question.numeric or _CONTRARY.search(sentence):
        return []
    if question.is_of_titles:
        is_further = _ALSO_DID.search(sentence)
        return bold_names(sentence, question) if is_further else []
    label, sign, rest = broken(sentence)
    if sign in (":", "：") and len(label.split()) <= 4 and FURTHER.search(label) and len(listed(rest, question)) > 1:
        return listed(rest.rstrip("."), question)
    more = ORDINAL.match(sentence) if re.match(r"(?:other|additional|further)\b", sentence, re.IGNORECASE) else None
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
_CONTRARY = re.compile(DENIAL.pattern + r"|\b(?:but|however|although|though|unlike|incorrect|wrong)\b", re.IGNORECASE)


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
    typed = any(is_kind(left, question) for _, left, _, _ in items)
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


def _is_known_group(groups: Sequence[Sequence[str]]) -> bool:
    """True if two of the groups are parts of the world, by which lists are often grouped, or of any list."""
    numbered = len({words[0] for words in groups}) == 1 and all(words[-1].isdigit() for words in groups)  # `Day 1`
    return numbered or sum(bool(_GROUP_WORDS & set(words)) for words in groups) > 1


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
        replace(line, body=ADJUNCT.sub("", " ".join(line.body.split()[len(frame) :]))) if line.body in framed else line
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
    is_value = chosen is not None and chosen.body.strip(". ").casefold() not in VERDICTS
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
