"""Reads replies as models write them: lists, sentences, JSON, tables, with or without talk around them.

A reply is untrusted text of any length. Nothing here raises: each entry of a reply becomes a value, or is dropped for a
reason of a closed vocabulary (`DropReason`). LINK's own rules, which `--compat` follows, are in `link_replies.py`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from hapax.grammar.terms import Value
from hapax.llm_oracle.reading.link_replies import LONGEST_LINE, MOST_LINES, ParsedValue, parse_number, parse_values
from hapax.llm_oracle.reading.reply_lines import ReplyLine, drop_reasons, is_kind, read_lines
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyPart, ReplyQuestion, stems
from hapax.llm_oracle.reading.reply_sentences import (
    LONGEST_PROSE,
    ORDINAL,
    are_names,
    in_slot,
    is_refusal,
    is_sentence,
    listed,
    sentence_values,
    sentences,
    set_off_names,
    without_opening,
)
from hapax.llm_oracle.reading.reply_values import broken, numbers_listed, style_of, tidy, value_of

READER_VERSION = 17
"""Raised whenever the same reply may give other values. A search stores it with the settings of its run."""

STRICT_READER_VERSION = 1
"""The reader of `answers.parse_values`, which `--compat` uses."""

LENGTH = "length"
"""Finish reason of a reply that the token limit cut off."""

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


def read_strictly(text: str, question: ReplyQuestion) -> Reply:
    """Read a reply by LINK's rules: one value per line, each of which ends in a full stop."""
    return Reply(tuple(parse_values(text, question.variable, question.data_type, question.numeric)))


def read_reply(text: str, question: ReplyQuestion, finish_reason: str = "stop") -> Reply:
    """Read a reply in whatever form the model wrote it.

    `finish_reason`: `length` if the token limit cut the reply off, so that its last line may be incomplete.
    """
    text = _without_long_runs(text[:MOST_CHARACTERS].removeprefix("\ufeff"))
    try:
        parts = _parts(text, question, finish_reason == LENGTH)
    except (RecursionError, MemoryError):
        parts = [ReplyPart(text, text, DropReason.NOT_READ)]
    if len(parts) > MOST_LINES:
        parts = [*parts[:MOST_LINES], replace(parts[MOST_LINES], dropped=DropReason.NOT_READ)]
    style = style_of([part.body for part in parts if part.dropped is None], question)
    forbidden = {_key(value) for value in question.forbidden}
    seen: set[object] = set()
    entries: list[ParsedValue] = []
    for position, part in enumerate(parts):
        value = part.dropped or value_of(part.body, question, style, part.marked)
        key = _key(value)
        rejected = DropReason.FORBIDDEN if key in forbidden else DropReason.REPEAT if key in seen else None
        if isinstance(value, DropReason):
            rejected, value = value, tidy(part.body).removesuffix(".")
        else:
            seen.add(key)
        raw = part.raw.strip()
        entries.append(ParsedValue(value, raw[:LONGEST_LINE] + "…" * (len(raw) > LONGEST_LINE), position, rejected))
    return Reply(tuple(entries))


def _without_long_runs(text: str) -> str:
    """The text with runs of one character, or of blanks, cut to 200: expressions try each character of a run anew."""
    text = re.sub(r"(?P<sign>.)(?P=sign){199,}", lambda run: run["sign"] * 200, text, flags=re.DOTALL)
    # What stands on two lines stays on two lines.
    return re.sub(r"\s{200,}", lambda run: "\n\n" if "\n" in run.group() else " " * 200, text)


def _key(value: Value) -> object:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


# --- the model's own answer: without its reasoning, and without what it writes after its turn

_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
_THOUGHT = re.compile(r"[<\[](?P<end>/?)(?:think|thinking|thought|reasoning|scratchpad|reflection)[>\]]", re.IGNORECASE)
# Marks by which chat templates end a turn: `<|im_end|>`, `<|user|>`, `</s>`, `[/INST]`.
_TURN_END = re.compile(r"<\|(?!channel\b|message\b)\w{1,30}\|>|</?s>|<(?:end|start)_of_turn>|\[/?INST\]")
# `Assistant: `, `Answer:` on a line of its own, or the question again with `A: ` after it.
_SPEAKER = re.compile(
    r"\s*(?:(?:q|question)\s*:[^\n]{1,500}\n\s*(?=(?:a|answer)\s*:))?"
    r"(?:(?:#+\s*)?(?:assistant|answer|response|output)\s*:?\s*\n|(?:assistant|answer|ai|bot|a)\s*:\s)",
    re.IGNORECASE,
)
# The line with which a base model goes on with another prompt, code, or the rest of a web page.
_NEXT_PROMPT = re.compile(
    r"(?:#{1,6}\s*|\*\*)?(?:(?:question|q|user|human|instruction|prompt|input|assistant|exercise|problem|task|example|"
    r"sentence|"
    r"statement|context|passage|topic)\s?\d*\s?:|(?:question|exercise|problem)\s\d+\W*$|"
    r"(?:instruction|response|human|user|assistant)\s*:?\s*$|give me \d|list \d+\s|give me the correct|"
    r"(?:def|class)\s+\w+\s?[(:]|import\s+\w+\s*$|#include\b|(?:=+\s*)?(?:share\s+(?:this|on)\b|posted\s+(?:by|in|"
    r"on)\b|filed\s+under\b|"
    r"tagged\b|tags\s*:|related\s+(?:posts?|articles?|stories)\W*$|leave\s+a\s+(?:reply|comment)|add\s+to\s+cart|"
    r"customer\s+reviews|"
    r"(?:\d+\s+)?comments?\W*$|re\s*:\s|previous\s+(?:post|article)|next\s+(?:post|article)|copyright\b|©|"
    r"all\s+rights\s+reserved|"
    r"(?:external\s+links|see\s+also|references)\W*$|(?:thanks\s+in\s+advance|cheers|best\s+regards|regards|"
    r"sincerely)\b[^.]{0,30}$))",
    re.IGNORECASE,
)
# `[[Nile]]` and `[[Nile (river)|Nile]]`, but not `[["Nile", "Egypt"]]`.
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\"',]{1,200}\|)?(?P<text>[^\[\]|\"',\d][^\[\]|\"',]{0,200})\]\]")


def own_turn(text: str) -> tuple[str, str, str]:
    """The reasoning before the answer, the answer, and what the model wrote after the mark that ends its turn."""
    *_, final = [None, *_FINAL_CHANNEL.finditer(text)]
    thoughts = list(_THOUGHT.finditer(text))
    ends = [mark.end() for mark in thoughts if mark["end"]]
    reasoning, own = "", text
    if final:
        reasoning, own = text[: final.start()], text[final.end() :]
    elif thoughts:
        begin, end = 0 if thoughts[0]["end"] else thoughts[0].start(), ends[-1] if ends else len(text)
        reasoning, own = text[begin:end], text[:begin] + text[end:]
    own = _WIKI_LINK.sub(r"\g<text>", own)
    speaker = _SPEAKER.match(own)
    begin = speaker.end() if speaker else 0
    for match in _TURN_END.finditer(own):
        if own[begin : match.start()].strip():
            return reasoning, own[begin : match.start()], own[match.end() :]
        begin = match.end()  # a mark before any text begins the turn
    return reasoning, own[begin:], ""


def _own_lines(lines: Sequence[ReplyLine], question: ReplyQuestion) -> int:
    """The number of lines up to that with which a base model goes on with something else."""
    numbers = [(place, line.number) for place, line in enumerate(lines) if line.number]
    for place, line in enumerate(lines):
        slots = re.findall(r"\[([A-Z]\d?)\]", line.body)
        is_other = bool(slots) and not line.is_marked and (line.after_blank or slots[0] != question.variable)
        if place and is_other:
            return place
        if place and not line.raw[:1].isspace() and _NEXT_PROMPT.match(line.raw.strip()):
            # A line inside a numbered list, whose next number follows, is a part of the list.
            last = max((number for at, number in numbers if at < place), default=None)
            if last is None or all(number != last + 1 for at, number in numbers if at > place):
                return place
    return len(lines)


# --- the parts of a reply


def _parts(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in order, from whichever layout it has."""
    reasoning, answer, rest = own_turn(text)
    parts = [ReplyPart(reasoning, reasoning, DropReason.REASONING)] if reasoning.strip() else []
    parts += (
        read_data(answer, question) or read_table(answer, question, cut) or _lines(answer, question, cut and not rest)
    )
    return [*parts, ReplyPart(rest, rest, DropReason.REMARK)] if rest.strip() else parts


# --- lines


def _lines(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in lines: its list, or its sentences if it has none."""
    # Tags of elements that enclose lines; a name in `<...>` without an end stays.
    inline = ("b", "i", "em", "strong", "u", "code", "span", "sub", "sup", "small", "a", "font", "mark", "s")
    closed = {"br", *re.findall(r"</([A-Za-z][\w-]{0,40})>", text)}.difference(inline)
    text = re.sub(
        r"</?([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?/?>", lambda tag: "\n" if tag[1] in closed else tag.group(), text
    )
    lines = read_lines(text, MOST_LINES + 1)
    end = _own_lines(lines, question)
    rest = [ReplyPart(line.raw, line.body, DropReason.REMARK) for line in lines[end:]]
    lines, cut = lines[:end], cut and not rest and not text.endswith("\n")
    special = lines and (_final_answer(lines, question) or _list_lines(lines, question))
    if not lines or special:
        return [*(special or ()), *rest]
    reasons = drop_reasons(lines, question)
    is_prose = not any(line.is_marked for line in lines) and reasons.count(None) < 2
    if is_prose or (
        len(lines) == 1 and question.numeric and (lines[0].number or 2) > 1
    ):  # `1912. The ship hit an iceberg.`
        return [*_paragraphs(lines, question, cut), *rest]
    parts = [
        ReplyPart(line.raw, line.body, reason, line.mark != "") for line, reason in zip(lines, reasons, strict=True)
    ]
    if cut and parts[-1].dropped is None and not _is_whole(parts):
        parts[-1] = replace(parts[-1], dropped=DropReason.CUT)
    return [*_apart(parts, question), *rest]


# `The answer is basil`, `**Final Answer:** basil`, `\boxed{basil}`.
_FINAL = re.compile(
    r"\W{0,4}(?:so,?\s+|therefore,?\s+|thus,?\s+)?(?:the\s+)?(?:final\s+|correct\s+)?answer\**\s*(?:is\b|"
    r":)\s*\**\s*:?\s*(\S.*)",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")


def _final_answer(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The parts of a reply that marks its final answer below its reasoning; empty if it marks none."""
    boxed = next((match for line in lines if (match := _BOXED.search(line.raw[:LONGEST_LINE]))), None)
    final = boxed or _FINAL.match(lines[-1].raw[:LONGEST_LINE])
    # "The answer is" below a list may be its last item's explanation, unless the lines above are sentences.
    is_reasoned = (
        len(lines) > 1
        and not lines[-1].is_marked
        and all(len(line.body.split()) > 4 or line.introduces for line in lines[:-1])
    )
    choice = re.match(r"\(?([A-E])(?:\W*$|[).:])", final[1]) if final else None
    choice = choice if any(line.mark == "letter" for line in lines) else None
    if final is None or not (boxed or is_reasoned or choice):
        return []
    chosen = [
        line.body
        for line in lines
        if choice and line.mark == "letter" and line.number == ord(choice[1].casefold()) - 96
    ]
    values = chosen or listed(tidy(final[1]), question)
    return [
        *(ReplyPart(line.raw, line.body, DropReason.EXPLANATION) for line in lines),
        *(ReplyPart(final.group(), value) for value in values),
    ]


def _list_lines(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[ReplyPart]:
    """The values of lines that each list several in commas below a heading; empty if there are other lines."""
    parts: list[ReplyPart] = []
    for heading, line in zip(lines[::2], lines[1::2], strict=False):
        names = listed(line.body.rstrip("."), question)
        is_list = line.mark == "" and len(names) > 2 and are_names(names, 4) and not any(map(is_sentence, names))
        if not is_list or heading.is_marked or not are_names([heading.body], 5) or heading.body.count(",") > 1:
            return []
        parts.append(ReplyPart(heading.raw, heading.body, DropReason.HEADING))
        parts += [ReplyPart(line.raw, name, marked=False) for name in names]
    return [] if question.numeric or question.is_of_titles or len(lines) % 2 else parts


def _is_whole(parts: Sequence[ReplyPart]) -> bool:
    """True if the value of the last item is complete: it ends as the others do, or its explanation has begun."""
    items = [part.body.rstrip() for part in parts if part.dropped is None]
    explained = [bool(broken(item.replace("*", ""))[2]) for item in items]
    # The value of `3. James Cook - He made three voyages in the Pac` is whole.
    is_explained = explained[-1] and sum(explained) > 0.5 * len(items)
    return len(items) > 1 and (is_explained or all(item.endswith(".") for item in items))


# Words of groups by which lists of anything are grouped: parts of the world, adjectives, plurals but for `bass`.
_GROUP = re.compile(
    r".*\b(?:africa|asia|europe|america|oceania|australia|north|south|east|west|central|ancient|modern|classical|"
    r"common|rare|others?|"
    r"\w+(?:ic|al|ory|ar|ous|ive|ern|ese|ish)|\w+(?<!s)s|\w+\s\d+)$",
    re.IGNORECASE,
)


def _apart(parts: Sequence[ReplyPart], question: ReplyQuestion) -> list[ReplyPart]:
    """The parts, with the values apart where an item lists several: as the only item, in a slot, or as members."""
    items = [part for part in parts if part.dropped is None]
    members = _members(items, question)
    result: list[ReplyPart] = []
    for part in parts:
        values: list[str] = []
        if part.dropped is None and members:
            values = members.pop(0)
        elif part.dropped is None and not question.is_of_titles and not question.numeric:
            slot = in_slot(tidy(part.body), question)
            values = listed(slot or part.body, question) if slot or len(items) == 1 else []
            is_list = len(values) > (1 if slot else 2) and are_names(values, 4) and not any(map(is_sentence, values))
            values = values if is_list else []
        result += [replace(part, body=value) for value in values] or [part]
    return result


def _members(items: Sequence[ReplyPart], question: ReplyQuestion) -> list[list[str]]:
    """The members of each item if each is a group with its members: `Fish: cod, hake`; else empty.

    An explanation may list names, too (`Pizza: dough, cheese`), so that the groups must show that they are some: by the
    word of the data type, by plurals or adjectives, or in bold.
    """
    pieces = [broken(tidy(item.body).replace("*", "")) for item in items]
    members = [listed(right.rstrip("."), question) for _, _, right in pieces]
    names = [name for part in members for name in part]
    are_named = sum(_GROUP.match(left) is not None for left, _, _ in pieces) > 0.5 * len(pieces)
    are_named = are_named or any(is_kind(left, question) for left, _, _ in pieces)
    are_bold = all(item.body.startswith("**") and not item.raw.lstrip()[:1].isdigit() for item in items)
    are_groups = are_named or (are_bold and min(map(len, members), default=0) > 1)
    # Members belong to one group, while explanations share their words: "dough" is in each of the pizzas.
    are_distinct = len({name.casefold() for name in names}) >= 0.9 * len(names) >= 1.44 * len(items)
    is_whole = len(items) > 1 and all(right for _, _, right in pieces) and not question.is_of_titles
    is_list = is_whole and are_groups and are_distinct and are_names(names, 4) and not any(map(is_sentence, names))
    return members if is_list and not question.numeric else []


# --- sentences


def _paragraphs(lines: Sequence[ReplyLine], question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in sentences: the values of the first line that states any, and of each template."""
    parts: list[ReplyPart] = []
    for line in lines:
        has_values = any(part.dropped is None for part in parts)
        parts += _sentence_parts(line.raw.strip()[:LONGEST_PROSE], question, has_values)
    if cut and parts[-1].dropped is None:
        parts[-1] = replace(parts[-1], dropped=DropReason.CUT)
    return parts


def _sentence_parts(text: str, question: ReplyQuestion, has_values: bool) -> list[ReplyPart]:
    """The parts of a line in sentences. `has_values`: others have stated values, so that only the template counts."""
    names = [] if has_values or question.numeric else set_off_names(text, question)
    own = sentences(text)
    if len(names) > 1:
        return [ReplyPart(text, name, marked=False) for name in names]
    parts: list[ReplyPart] = []
    refused = False
    for sentence in own:
        body = without_opening(tidy(sentence))
        is_direct = in_slot(body, question) is not None
        is_about = not refused or len(stems(body) & question.known_stems) > 1
        values: list[str] = []
        reason = DropReason.REMARK
        if has_values and not is_direct and not ORDINAL.match(sentence):
            reason = DropReason.EXPLANATION
        elif not is_direct and is_refusal(sentence):
            refused, reason = True, DropReason.REFUSAL
        elif is_about and not sentence.endswith(("?", "？")):
            values = (
                numbers_listed(body, question) or [body]
                if question.numeric
                else sentence_values(tidy(sentence), question)
            )
        has_values = has_values or bool(values)
        parts += [ReplyPart(sentence, value, marked=False) for value in values] or [
            ReplyPart(sentence, sentence, reason)
        ]
    return parts


# --- data: JSON, also broken or cut off, tables, CSV

MOST_DATA = 200_000
"""Characters of a reply that are read as data."""
MOST_REPAIRED = 20_000
"""Characters of broken JSON that are repaired."""
MOST_BRACKETS = 200
"""Brackets of broken JSON: each that is open costs a frame of the stack."""

_GENERIC_NAMES = ("value", "answer", "name", "item", "result", "example", "entity", "title", "text", "label")
# Names of what data says beside its values, and of the parts of a call of a tool that carry what it is called with.
_SIDE_NAMES = re.compile(
    r"(?:^|_)(?:reason|explan|notes?$|descri|confiden|comment|detail|source|prob|score|categor|count$|total|status|"
    r"type$|class$|"
    r"question|prompt|sentence|format|variable)|^(?:#|no|nr|id|index|rank|number|position|order|№)\.?$",
    re.IGNORECASE,
)
_CARRIERS = ("arguments", "parameters", "input", "function", "output", "data", "response", "properties", "tool_input")
# `Here: ["`, `x = [{"`, or a bracket at the beginning of a line; not the `[` of `see [B]`.
_BEGIN = re.compile(r"(?:^|[:：=\](]|(?<=\s))[ \t]*(?=[\[{]\s*[\"'{\[])|^[ \t]*(?=[\[{])", re.MULTILINE)
_FENCED = re.compile(r"(?:```|~~~)(?P<language>[\w+-]*)[ \t]*\n(?P<inside>.*?)(?:\n[ \t]*(?:```|~~~)|\Z)", re.DOTALL)
_INLINE_TAG = re.compile(
    r"</?(?:b|i|em|strong|u|code|span|br|sub|sup|small|a|font|mark|s)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE
)
# `|---|:--:|`, the line below the header of a table in Markdown.
_RULE_ROW = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
# `$1,200`, `-3`, `5 kg (est.)`.
_QUANTITY = re.compile(r"[^\w\s]{0,2}\s*[-−]?\d[\d.,]*\s*(?:[^\d\s][^\d]{0,20})?(?:\(.*\))?")


def _fit(name: str, question: ReplyQuestion) -> int:
    """Rank of a key or header as a name of the values: 0 if it names something else, higher is better."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()
    words = [re.sub(r"(?<!s)s$", "", word) for word in re.findall(r"[^\W_]+", spaced)]
    wanted = [re.sub(r"(?<!s)s$", "", word) for word in question.data_type.casefold().split()]
    if name.strip("[]*_` ") == question.variable or words == wanted:
        return 4
    if wanted and wanted[-1] in words:
        return 3
    return 2 if words and words[-1] in _GENERIC_NAMES else 0


def read_data(answer: str, question: ReplyQuestion) -> list[ReplyPart]:
    """The parts of a reply that is JSON; empty if it is none."""
    text = answer[:MOST_DATA]
    # A list of objects may have list marks: `1. {"name": "basil"}`.
    text = re.sub(r"^[^\S\n]*(?:\d{1,3}[.)]|[-*•])\s+(?=\{\s*\")", "", text, flags=re.MULTILINE)
    begin = _BEGIN.search(text)
    inside = text[begin.end() :] if begin else ""
    end = max(inside.rfind("]"), inside.rfind("}")) + 1
    # One element without quotes is a slot, a link or a footnote.
    if (
        begin is None
        or re.match(r"\[[^\[\]{}\"',]*\](?!\s*$)", inside)
        or not re.search(r"[\"',\d]", inside[:end] or inside)
    ):
        return []
    end = end if end and not re.match(r"[\s,]*[\"'{\[]", inside[end:]) else len(inside)
    data = parsed(inside[:end])
    if data is None:
        return []
    # `["1. basil", "2. thyme"]`
    values = [
        re.sub(r"^\s*\d{1,3}[.)]\s+(?=\D)", "", value) for value in islice(_values(data, question), MOST_LINES + 1)
    ]
    parts = [ReplyPart(value, value) for value in values if value.strip()]
    return [
        *_aside(text[: begin.end()], DropReason.PREAMBLE),
        *(parts or [ReplyPart(answer, answer, DropReason.REFUSAL)]),
        *_aside(inside[end:], DropReason.REMARK),
    ]


def _aside(text: str, reason: DropReason) -> list[ReplyPart]:
    return [ReplyPart(line.raw, line.raw, reason) for line in read_lines(text, MOST_LINES)]


def parsed(text: str) -> list[Any] | dict[str, Any] | None:
    """The data that a text is, repaired where it is broken or cut off; None if it cannot be."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        text = text[:MOST_REPAIRED]
        if text.count("[") + text.count("{") > MOST_BRACKETS:
            return None
        import json_repair

        # One object per line is one list; a last text that is cut off is not known.
        joined = re.sub(r"([\]}])\s*\n\s*(?=[\[{])", r"\1,", text)
        joined = f"[{joined}]" if joined != text and text.startswith("{") else text
        data = json_repair.loads(re.sub(r",?\s*(?:[\"'][^\"'\]}]*|\w+)$", "", joined), skip_json_loads=True)
    return data if isinstance(data, list | dict) else None


def _values(data: Any, question: ReplyQuestion) -> Iterator[str]:
    """The values in a list or an object."""
    if isinstance(data, list):
        rows = [list(map(str, row)) for row in data if isinstance(row, list)]
        if len(rows) == len(data) > 1 and {len(row) for row in rows} in ({2}, {3}):
            column = _value_column([], rows, question)
            data = [row[column] for row in rows]
        for part in data:
            yield from _values(part, question)
    elif isinstance(data, dict):
        yield from _values_of_object(data, question)
    elif data not in (None, "") and not isinstance(data, bool):
        yield str(data)


def _values_of_object(data: dict[str, Any], question: ReplyQuestion) -> Iterator[str]:
    carried = next((part for name, part in data.items() if name.casefold() in _CARRIERS and part), None)
    if isinstance(carried, str):
        carried = parsed(carried) if carried.lstrip().startswith(("{", "[")) else None
    main = {name: part for name, part in data.items() if not _SIDE_NAMES.search(name) and part is not None}
    nested = [part for part in main.values() if isinstance(part, list | dict)]
    best = max(data, key=lambda name: (_fit(name, question), isinstance(data[name], list | dict)), default="")
    if len(data) > 1 and all(isinstance(part, dict | bool) for part in data.values()):  # the values are the names
        yield from (name for name, part in data.items() if part)
    elif carried or (_fit(best, question) and data[best] is not None):
        value = carried or data[best]
        if isinstance(value, str) and best.casefold().endswith("s") and not question.numeric:
            value = re.split(r"\s*[;\n]\s*|,\s+(?:and\s+)?|\s+and\s+(?=[^,]+$)", value)
        yield from _values(value, question)
    elif nested or all(re.fullmatch(r"\D*\d+", name) for name in data):  # `1`, `value_2`
        yield from _values(nested or list(data.values()), question)
    elif question.numeric:
        yield from (str(part) for part in data.values() if parse_number(str(part), question.data_type) is not None)
    elif len(main) < len(data) or len(data) == 1:  # a record
        yield from map(str, list(main.values())[:1])
    else:
        yield from data


# --- tables

_ROW = re.compile(r"<tr\b[^<>]{0,200}>(?P<cells>(?:(?!</?tr\b).)*)</tr>", re.IGNORECASE | re.DOTALL)


# Cells of a table that say if the value of their row is right.
_CROSSED_CELL = re.compile(r"[❌✗✘✖]|\|\s*no\s*(?:\||$)", re.IGNORECASE)
_TICKED_CELL = re.compile(r"[✅✓✔]|\|\s*yes\s*(?:\||$)", re.IGNORECASE)


def read_table(answer: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply with a table in Markdown or in CSV; empty if it has none. `cut`: by the token limit."""
    fence = _FENCED.search(answer[:MOST_DATA])
    text = _ROW.sub(_piped, fence["inside"] if fence else answer[:MOST_DATA])
    cut = cut and not answer.endswith(("\n", "|"))
    lines = [line for line in text.splitlines() if line.strip()][: MOST_LINES + 1]
    piped = [place for place, line in enumerate(lines) if "|" in line]
    is_ruled = any("-" in lines[place] and _RULE_ROW.fullmatch(lines[place][:1000]) for place in piped)
    if len(piped) > 1 and (is_ruled or all(lines[place].strip().startswith("|") for place in piped)):
        rows = {
            place: re.split(r"(?<!\\)\|", lines[place].strip().removeprefix("|").removesuffix("|")) for place in piped
        }
        return _table(lines, rows, is_ruled, question, cut)
    for delimiter in (",", ";", "\t", "  "):
        rows = {place: _csv_cells(line, delimiter) for place, line in enumerate(lines)}
        width = len(rows[0]) if rows else 0
        is_headed = width > 1 and any(_fit(cell, question) > 1 and len(cell.split()) <= 3 for cell in rows[0])
        is_plain = delimiter == ";" and len(rows) > 2 and width > 1 and "; " not in text
        is_list = re.match(r"\s*(?:\(?\d{1,3}[.)]|[-*•])\s|[^,;]*:", lines[0]) if lines else True
        if (is_headed or is_plain) and len(rows) > 1 and not is_list and {len(row) for row in rows.values()} == {width}:
            return _table(lines, rows, is_headed, question, cut)
    return []


def _csv_cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line in CSV, or of columns that blanks part; none of a line that is no CSV."""
    if delimiter == "  ":
        return re.split(r"\s{2,}", line.strip())
    try:
        # Line by line, so that an open quotation mark does not swallow the lines below.
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a cell is longer than the module's limit
        return []


def _piped(row: re.Match[str]) -> str:
    """A row of an HTML table as one of Markdown."""
    cells = re.split(
        r"</t[dh]>", re.sub(r"<t[dh]\b[^<>]{0,200}>", "", row["cells"].replace("|", "/")), flags=re.IGNORECASE
    )
    return "\n| " + " | ".join(" ".join(_INLINE_TAG.sub("", cell).split()) for cell in cells[:-1]) + " |\n"


def _table(
    lines: Sequence[str], rows: dict[int, list[str]], is_headed: bool, question: ReplyQuestion, cut: bool
) -> list[ReplyPart]:
    """A part for each line of a table, and for those around it. `rows`: cells by position."""
    cells = {place: [cell.strip() for cell in row] for place, row in rows.items()}
    rules = {place for place in cells if "-" in lines[place] and _RULE_ROW.fullmatch(lines[place][:1000])}
    first = min(cells)
    headers = {place for place in cells if place + 1 in rules} | {first} if is_headed else set()
    data = [row for place, row in cells.items() if place not in headers | rules]
    column = _value_column(cells[first] if is_headed else [], data, question)
    found = {place: row[column] for place, row in cells.items() if column < len(row) and place not in headers | rules}
    is_judged = any(map(_TICKED_CELL.search, lines))
    parts: list[ReplyPart] = []
    for place, line in enumerate(lines):
        around = DropReason.PREAMBLE if place <= min(found, default=place) else DropReason.REMARK
        reason = DropReason.REMARK if is_judged and _CROSSED_CELL.search(line) else None
        reason = reason if place in found else DropReason.HEADING if "|" in line else around
        reason = DropReason.CUT if cut and place == len(lines) - 1 and reason is None else reason
        parts.append(ReplyPart(line, found.get(place) or line, reason))
    return parts


def _value_column(header: Sequence[str], data: Sequence[Sequence[str]], question: ReplyQuestion) -> int:
    """Index of the column with the values: the best header, else the first column that does not number the rows."""
    fits = [_fit(name, question) for name in header]
    # A generic header such as `Name` does not promise a column of numbers.
    if fits and max(fits) > (2 if question.numeric else 0):
        return fits.index(max(fits))
    width = max(map(len, data), default=0)
    columns = [[row[place].strip("*_` ") for row in data if place < len(row)] for place in range(width)]
    are_numbers = [all(map(_QUANTITY.fullmatch, texts)) for texts in columns]
    for place, texts in enumerate(columns):
        counts_rows = texts == list(map(str, range(1, len(texts) + 1)))
        is_side = place < len(header) and re.fullmatch(r"(?:#|no|nr|id|index|rank)\.?", header[place].casefold())
        if not is_side and not counts_rows and (question.numeric == are_numbers[place] or all(are_numbers)):
            return place
    return 0
