"""Reads replies as models write them: lists, sentences, JSON, tables, with or without talk around them.

A reply is untrusted text of any length. Nothing here raises: each entry of a reply becomes a value, or is dropped for a
reason of a closed vocabulary (`DropReason`). LINK's own rules, which `--compat` follows, are in `answers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from hapax.grammar.terms import Value
from hapax.llm_oracle.answers import LONGEST_LINE, MOST_LINES, ParsedValue, parse_values
from hapax.llm_oracle.drop_reasons import DropReason
from hapax.llm_oracle.reply_data import WantedName, read_json, read_table
from hapax.llm_oracle.reply_lines import Mark, ReplyLine, read_lines
from hapax.llm_oracle.reply_values import (
    LEAD_IN,
    ReplyQuestion,
    in_template,
    is_refusal,
    is_sentence,
    style_of,
    tidy,
    values_of,
)

__all__ = ["READER_VERSION", "DropReason", "Reply", "ReplyQuestion", "read_reply", "read_strictly"]

READER_VERSION = 2
"""Raised whenever the same reply may give other values. Version 1 is the strict reader of `answers.parse_values`."""

LENGTH = "length"
"""Finish reason of a reply that the token limit cut off."""

_THOUGHTS = ("think", "thinking", "thought", "reasoning", "scratchpad", "reflection")
_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|end|endoftext|end_of_text|im_start|return)\|>|</s>|<end_of_turn>|\[/?INST\]"
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
_NEXT_PROMPT = re.compile(
    r"(?:#+\s*)?(?:\**)(?:(?:question|q|user|human|instruction|prompt|input|assistant)\s?\d*\s?:|"
    r"give me \d|list \d+\s|give me the correct)",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_FINAL = re.compile(
    r"\W{0,4}(?:so,?\s+|therefore,?\s+|thus,?\s+)?(?:the\s+)?(?:final\s+|correct\s+)?answer\**\s*"
    r"(?:is\b|:)\s*\**\s*:?\s*(?P<rest>\S.*)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"\s*(?:(?:assistant|answer|response|output)\s*:?\s*\n|(?:assistant|ai|bot|a)\s*:\s)", re.IGNORECASE
)
_OPENERS = re.compile(
    r"(?:sure|certainly|of course|absolutely|okay|ok|yes|gladly|great|hello|hi|here you go|understood|no problem|gerne|"
    r"bien sûr|claro|por supuesto|certamente|natürlich|当然|好的|当然可以|もちろん)"
    r"\b[\s,!.。！]*(?:here (?:you go|they are|it is))?[\s!.。！:]*",
    re.IGNORECASE,
)
_LIST_BREAK = re.compile(r"[;；、]\s*|[,，،]\s+|[,，،](?=[^\d\s])")
_ITEM_TAGS = re.compile(r"</?(?:li|ul|ol|p|br|div)\s{0,5}/?>", re.IGNORECASE)
_ENUMERATING = re.compile(
    r".{3,120}?\b(?:includes?|including|are|were|such as|would be)\s*:?\s+(?P<rest>[^,]{1,64},.*,.*)", re.DOTALL
)
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
    style = style_of([piece.body for piece in pieces if piece.dropped is None])
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
    return Reply(tuple(entries))


def _key(value: Value) -> object:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"


# --- the parts of a reply


def _pieces(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The parts of a reply in order, from whichever layout it has."""
    reasoning, answer = _without_reasoning(text)
    pieces = [ReplyPart(reasoning, reasoning, DropReason.REASONING)] if reasoning.strip() else []
    answer, rest = _first_turn(answer)
    pieces += (
        _data(answer, question, cut) or _table(answer, question, cut) or _lines(answer, question, cut and not rest)
    )
    if rest.strip():
        pieces.append(ReplyPart(rest, rest, DropReason.REMARK))
    return pieces


def _without_reasoning(text: str) -> tuple[str, str]:
    """The reasoning before the answer, and the answer, which is empty if the reasoning has no end."""
    final = list(_FINAL_CHANNEL.finditer(text))
    if final:
        return text[: final[-1].start()], text[final[-1].end() :]
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    for name in _THOUGHTS:
        for opening, closing in ((f"<{name}>", f"</{name}>"), (f"[{name}]", f"[/{name}]")):
            end = folded.rfind(closing)
            if end >= 0:
                begin = folded.find(opening)
                before = text[:begin] if begin >= 0 else ""
                return text[max(begin, 0) : end + len(closing)], before + text[end + len(closing) :]
            begin = folded.find(opening)
            if begin >= 0:
                return text[begin:], text[:begin]
    answers = re.search(r"<answer>(.*?)(?:</answer>|\Z)", text, re.DOTALL | re.IGNORECASE)
    if answers and answers[1].strip():
        return text[: answers.start()], answers[1]
    return "", text


def _first_turn(text: str) -> tuple[str, str]:
    """The model's own turn, and what it wrote after the mark that ends it."""
    text = _SPEAKER.sub("", text, count=1) if _SPEAKER.match(text) else text
    for match in _TURN_ENDS.finditer(text):
        if text[: match.start()].strip():
            return text[: match.start()], text[match.end() :]
        text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]
    return text, ""


def _data(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply that is JSON; empty if it is none."""
    if not cut and not re.search(r"[\]}]", text):
        return []
    part = read_json(text, WantedName(question.variable, question.data_type, question.numeric))
    if part is None:
        return []
    before = [ReplyPart(line, line, DropReason.PREAMBLE) for line in _filled(part.before)]
    after = [ReplyPart(line, line, DropReason.REMARK) for line in _filled(part.after)]
    if not part.values:
        return [*before, ReplyPart(text, text, DropReason.REFUSAL), *after]
    return [*before, *(ReplyPart(value, value) for value in part.values), *after]


def _filled(text: str) -> list[str]:
    return [line.raw for line in read_lines(text, MOST_LINES)]


def _table(text: str, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply with a Markdown table; empty if it has none."""
    lines = read_table(text, WantedName(question.variable, question.data_type, question.numeric))
    if lines is None:
        return []
    pieces: list[ReplyPart] = []
    seen_row = False
    for line in lines:
        seen_row = seen_row or line.cell is not None
        if line.cell is not None:
            pieces.append(ReplyPart(line.raw, line.cell))
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
    lines = read_lines(_ITEM_TAGS.sub("\n", text), MOST_LINES + 1)
    if not lines:
        return []
    if len(lines) == 1 and lines[0].mark is Mark.NUMBER and not any(map(str.isalnum, lines[0].body)):
        return [ReplyPart(lines[0].raw, lines[0].raw.replace("*", "").strip().rstrip(".)"), marked=False)]  # `1912.`
    final = _final_answer(lines)
    if final:
        return final
    if len(lines) == 1 and lines[0].mark in (Mark.NONE, Mark.HEADING):
        return _single_line(lines[0], question, cut and not text.endswith("\n"))
    reasons = _reasons(lines, question)
    pieces = [
        ReplyPart(line.raw, line.body, reason, marked=line.mark is not Mark.NONE)
        for line, reason in zip(lines, reasons, strict=True)
    ]
    if cut and not text.endswith("\n") and pieces[-1].dropped is None and not _is_whole(pieces):
        pieces[-1] = replace(pieces[-1], dropped=DropReason.CUT)
    return _with_listed_values(pieces)


def _is_whole(pieces: Sequence[ReplyPart]) -> bool:
    """True if the last item ends as the others do, in a full stop."""
    items = [piece.body.rstrip() for piece in pieces if piece.dropped is None]
    return len(items) > 1 and all(item.endswith(".") for item in items)


def _with_listed_values(pieces: Sequence[ReplyPart]) -> list[ReplyPart]:
    """The pieces, with the values of a line apart if it is the only item and lists several."""
    items = [piece for piece in pieces if piece.dropped is None]
    if len(items) != 1:
        return list(pieces)
    parts = _listed(items[0].body)
    if not all(any(map(str.isalnum, part)) for part in parts):
        return list(pieces)
    result: list[ReplyPart] = []
    for piece in pieces:
        if piece.dropped is None and len(parts) > 2:
            result += [replace(piece, body=part) for part in parts]
        else:
            result.append(piece)
    return result


def _final_answer(lines: Sequence[ReplyLine]) -> list[ReplyPart]:
    """The pieces of a reply that marks its final answer; empty if it marks none."""
    boxed = [_BOXED.search(line.raw[:LONGEST_LIST_LINE]) for line in lines]
    stated = [_FINAL.match(line.raw[:LONGEST_LINE]) for line in lines]
    if any(boxed):
        pieces: list[ReplyPart] = []
        for line, match in zip(lines, boxed, strict=True):
            if match is None:
                pieces.append(ReplyPart(line.raw, line.body, DropReason.EXPLANATION))
            else:
                parts = _listed(tidy(match[1]))
                pieces += [ReplyPart(line.raw, part) for part in (parts if len(parts) > 1 else [match[1]])]
        return pieces
    unmarked = all(line.mark in (Mark.NONE, Mark.HEADING) for line in lines)
    if len(lines) > 1 and unmarked and stated[-1] is not None:
        *earlier, last = lines
        parts = _listed(stated[-1]["rest"])
        return [
            *(ReplyPart(line.raw, line.body, DropReason.EXPLANATION) for line in earlier),
            *(ReplyPart(last.raw, part) for part in parts),
        ]
    return []


def _single_line(line: ReplyLine, question: ReplyQuestion, cut: bool) -> list[ReplyPart]:
    """The pieces of a reply of one line without a list mark: a value, a list with commas, a sentence, or talk."""
    body = line.raw.strip()
    whole = in_template(tidy(body), question)
    if whole is None and is_refusal(body):
        return [ReplyPart(line.raw, body, DropReason.REFUSAL)]
    sentences = re.split(r"(?<=[.!])\s+", body[:LONGEST_LIST_LINE])
    if len(sentences) > 1 and all(in_template(tidy(sentence), question) for sentence in sentences):
        return [ReplyPart(sentence, sentence, marked=False) for sentence in sentences]
    if body.strip(".!").casefold() in _VERDICTS:
        return [ReplyPart(line.raw, body, DropReason.REMARK)]
    if cut and not _listed(body)[1:]:
        return [ReplyPart(line.raw, body, DropReason.CUT)]
    if question.numeric or (whole is not None and "," not in whole):
        return [ReplyPart(line.raw, body, marked=False)]
    listed = whole if whole is not None else _after_lead(body, question)
    parts = _listed(listed)
    if len(parts) == 1:
        reason = DropReason.REMARK if whole is None and listed == body and _is_talk(line, question) else None
        return [ReplyPart(line.raw, parts[0] if listed != body else body, reason, marked=False)]
    longest = max(len(part.split()) for part in parts)
    if listed == body and (longest > 6 or is_sentence(parts[0])):
        return [ReplyPart(line.raw, body, DropReason.REMARK)]
    pieces = [ReplyPart(part, part, marked=False) for part in parts]
    if cut:
        pieces[-1] = replace(pieces[-1], dropped=DropReason.CUT)
    return pieces


def _after_lead(text: str, question: ReplyQuestion) -> str:
    """A line without the words before its list: `The countries are: Spain, Italy.`"""
    lead = LEAD_IN.fullmatch(text.replace("**", "")) or re.fullmatch(
        rf"(?:it(?:['’]s|\s+is)|that\s+would\s+be|(?:the|an?|one)\s+{re.escape(question.data_type)}\s+is)\s+(?P<rest>.+)",
        text,
        re.IGNORECASE | re.DOTALL,
    )
    if lead:
        return lead["rest"]
    enumerating = _ENUMERATING.fullmatch(text)
    if enumerating:
        return enumerating["rest"]
    match = re.match(r"[^:：]{1,120}[:：]\s*(?P<rest>[^:：]*[,，、;].*)", text, re.DOTALL)
    if match:
        return match["rest"]
    opener = _OPENERS.match(text)
    return text[opener.end() :] if opener and text[opener.end() :].strip() else text


_EXPLAINING = re.compile(
    r"(?:specifically|especially|particularly|in\s+particular|mainly|mostly|notably|namely|for\s+(?:example|instance)|"
    r"e\.g\.|i\.e\.|which|where|who|whose|because|although|though)\b",
    re.IGNORECASE,
)


def _listed(text: str) -> list[str]:
    """The values of a line that lists them with commas; the line itself if it lists none."""
    text = text.strip()[:LONGEST_LIST_LINE]
    if text[:1] in '"“«„' and not re.search(r"[\"”»“],", text):
        return [text]
    parts = [part.strip() for part in _LIST_BREAK.split(text) if part.strip()]
    # What such a word begins explains the value before it: `Germany, especially the Rhineland`.
    parts = list(takewhile(lambda part: part is parts[0] or not _EXPLAINING.match(part), parts))
    if len(parts) == 2 and re.fullmatch(r"(?:[A-Z]\.)+|Jr\.?|Sr\.?|Inc\.?|Ltd\.?", parts[1]):
        return [text]
    if len(parts) < 2:
        return [text]
    last = re.sub(r"^(?:and|or|und|et|y|e|&)\s+", "", parts[-1])
    joined = re.split(r"\s+and\s+", last) if last == parts[-1] and len(parts) > 2 else [last]
    return [*parts[:-1], *joined]


_NOTES = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|key\s+points|summary|caveats?)\b", re.IGNORECASE
)
_NOTE = re.compile(r"\W*(?:please\s+)?note\**\s*[:：]", re.IGNORECASE)


def _is_talk(line: ReplyLine, question: ReplyQuestion) -> bool:
    """True if a line without a list mark is talk rather than a value."""
    body = line.body.strip()
    if in_template(tidy(body), question) is not None:
        return False
    if _NOTE.match(body):
        return True
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
    end = next((number for number, line in enumerate(lines) if number and _is_next_prompt(line)), len(lines))
    own = list(lines[:end])
    items = _item_positions(own, question)
    first = min(items, default=len(own))
    reasons: list[DropReason | None] = []
    for position, line in enumerate(own):
        if position in items:
            reasons.append(None)
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


def _is_next_prompt(line: ReplyLine) -> bool:
    """True if a base model goes on with the next prompt here."""
    return line.mark in (Mark.NONE, Mark.HEADING) and _NEXT_PROMPT.match(line.body) is not None


def _item_positions(lines: Sequence[ReplyLine], question: ReplyQuestion) -> set[int]:
    """Positions of the lines that are items: those of the outermost list, or of the lists below its group names."""
    marked = [position for position, line in enumerate(lines) if line.mark not in (Mark.NONE, Mark.HEADING)]
    headings = [position for position, line in enumerate(lines) if line.mark is Mark.HEADING]
    if not marked:
        return _unmarked_items(lines, headings, question)
    names = [position for position in headings if not lines[position].body.rstrip("*_ ").endswith((":", "："))]
    bulleted = all(lines[position].mark is Mark.BULLET for position in marked)
    if bulleted and len(names) > 1 and names[0] < marked[0] and _are_explanations([lines[p].body for p in marked]):
        return {position for position in names if _heads_marked(lines, position)}
    items = _outer_items(lines, marked)
    before = items[0] - 1
    # The number 1 may have stood in the prompt, so that the reply begins with its text.
    if (
        lines[items[0]].number == 2
        and before >= 0
        and lines[before].mark is Mark.NONE
        and not _is_talk(lines[before], question)
    ):
        items = [before, *items]
    return set(_without_notes(lines, items))


def _heads_marked(lines: Sequence[ReplyLine], position: int) -> bool:
    following = lines[position + 1 : position + 2]
    return bool(following) and following[0].mark is not Mark.HEADING


def _unmarked_items(lines: Sequence[ReplyLine], headings: Sequence[int], question: ReplyQuestion) -> set[int]:
    """Items of a reply without list marks: its lines in bold if text stands below them, else all that is no talk."""
    names = [position for position in headings if not lines[position].body.rstrip("*_ ").endswith((":", "："))]
    others = [line for line in lines if line.mark is Mark.NONE]
    if (
        names
        and (len(names) > 1 or not others)
        and all(_is_talk(line, question) or len(line.body.split()) > 4 for line in others)
    ):
        return set(names)
    return {
        position for position, line in enumerate(lines) if not _is_talk(line, question) and not is_refusal(line.body)
    }


def _outer_items(lines: Sequence[ReplyLine], marked: Sequence[int]) -> list[int]:
    """The marked lines that are items, without the explanations below them and the group names above them."""
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
    if (
        groups
        and len(groups) >= 0.5 * len(outer)
        and not _are_explanations([lines[position].body for position in below])
    ):
        singles = [position for position in outer if position not in groups]
        return sorted([*_outer_items(lines, below), *singles])
    return list(outer)


def _are_explanations(bodies: Sequence[str]) -> bool:
    """True if most of these lines are sentences, or parts under labels that recur, instead of names."""
    labels = style_of(list(bodies)).labels
    telling = 0
    for body in bodies:
        plain = body.replace("*", "").replace("_", " ").strip()
        label = re.split(r"[:：]\s", plain)[0].casefold()
        long = len(plain.split()) > 2 and plain.endswith(".")
        telling += label in labels or is_sentence(plain) or long or len(plain.split()) > 7
    return telling > 0.5 * len(bodies)


def _without_notes(lines: Sequence[ReplyLine], items: Iterable[int]) -> Iterator[int]:
    """The items without the lists of notes that follow a heading such as `Note:` or `Sources:`."""
    skipped = False
    wanted = set(items)
    first = min(wanted, default=0)
    for position, line in enumerate(lines):
        if line.mark is Mark.HEADING and position > first:
            skipped = _NOTES.match(line.body) is not None
        is_note = line.mark is not Mark.NUMBER and _NOTE.match(line.body) is not None
        if position in wanted and not skipped and not is_note:
            yield position
