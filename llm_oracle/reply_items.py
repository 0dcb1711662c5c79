"""Tells which lines of a reply are items of its list, and why the others are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hapax.llm_oracle.drop_reasons import DropReason
from hapax.llm_oracle.reply_lines import Mark, ReplyLine, is_heading
from hapax.llm_oracle.reply_lists import are_names
from hapax.llm_oracle.reply_prose import DENIAL, in_template, sentences
from hapax.llm_oracle.reply_question import ReplyQuestion, stems
from hapax.llm_oracle.reply_values import (
    broken,
    is_refusal,
    is_sentence,
    style_of,
    tidy,
)

OPENERS = re.compile(
    r"(?:(?:great|good|excellent|interesting)\s+(?:question|choice|topic)|sure|certainly|"
    r"of course|absolutely|okay|ok|yes|gladly|great|hello|hi|here you go|understood|no problem|gerne|"
    r"bien sûr|claro|por supuesto|certamente|natürlich|当然|好的|当然可以|もちろん)"
    r"\b[\s,!.。！]*(?:here (?:you go|they are|it is))?[\s!.。！:]*",
    re.IGNORECASE,
)
DECLINES = re.compile(
    r"\bI(?:['’]d|\s+would)?\s+(?:rather\s+not|prefer\s+not|can(?:no|['’])t|cannot|won['’]t|am\s+(?:unable|not)|do\s+not|don['’]t)\s+[a-z]"
)
"""Words with which a sentence gives no answer, wherever they stand."""


def is_kind(text: str, question: ReplyQuestion) -> bool:
    """True if a text names a kind of the data type, `Stone fruits`, rather than one of it, `the Nile River`."""
    words = text.replace("*", "").casefold().split()
    plural = {word.removesuffix("s") for word in words if word.endswith("s")} & question.type_words
    return bool(plural) or bool(words and set(words) <= question.type_words)


_QUOTED_LINE = re.compile(r"[\"“«„][^\"“”«»]{2,}[\"”»“][.,;]?")
_CLOSED = re.compile(r"[.!]\W*$")
_CROSSED_ITEM = re.compile(r"\s*(?:[❌✗✘✖❎🚫]|[-*+]\s+\[ \]\s)")
"""Bullets of items that are none of the values, beside others that are."""
PRONOUN = re.compile(r"(?:it|this|that|these|those|they|he|she|we|i|you|there|here)\b", re.IGNORECASE)
NOTES = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|key\s+points|summary|caveats?|resources?|why|how|"
    r"explanations?|reasoning|background|conclusion)\b",
    re.IGNORECASE,
)
FURTHER = re.compile(
    r"\b(?:also|other|others|more|additional|further|less|examples?|others|lists?|cases|mentions|borderline|possible|debatable)\b",
    re.IGNORECASE,
)
_NOTE = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|caveats?|explanation|reasoning|confidence|certainty|probability|score)\**\s*[:：]",
    re.IGNORECASE,
)


def is_talk(line: ReplyLine, question: ReplyQuestion) -> bool:
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
    opener = OPENERS.match(body)
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


def drop_reasons(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[DropReason | None]:
    """For each line the reason why it is not an item, None for an item."""
    end = own_end(lines, question)
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
    if not (is_refusal(before[0].body) or DECLINES.search(before[0].body)):
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


def own_end(lines: Sequence[ReplyLine], question: ReplyQuestion) -> int:
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
    is_described = len(names) == 1 and all(PRONOUN.match(lines[position].body) for position in marked)
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
        and not is_talk(lines[before], question)
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
    headings = [position for position in headings if not NOTES.match(lines[position].body)]
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
        and all(is_talk(line, question) or _is_told_of(line.body) for line in others)
    ):
        return set(names)
    items = {
        position
        for position, line in enumerate(lines)
        if not is_talk(line, question)
        and not is_refusal(line.body)
        and position not in sentence
        and position != title
        and not (line.mark is Mark.HEADING and NOTES.match(line.body))
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
    typed = all(is_kind(lines[position].body, question) for position in outer)
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


def notes_start(lines: Sequence[ReplyLine]) -> int:
    """Position of the heading of notes, such as `Key points:`, that all list marks follow; 0 if there is none."""
    marked = [position for position, line in enumerate(lines) if line.mark not in (Mark.NONE, Mark.HEADING)]
    if not marked or not marked[0]:
        return 0
    heading = lines[marked[0] - 1]
    is_noted = NOTES.match(heading.body) and heading.body.rstrip("*_ ").endswith((":", "："))
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


def _heads_aside(lines: Sequence[ReplyLine], heading: int, items: Sequence[int], question: ReplyQuestion) -> bool:
    """True if a list in other marks than the one before follows a heading that does not speak of the question."""
    before = {lines[position].mark for position in items if position < heading}
    after = {lines[position].mark for position in items if position > heading}
    words = lines[heading].body
    return bool(after) and not before & after and not stems(words) & question.known_stems and not FURTHER.search(words)


def _without_notes(lines: Sequence[ReplyLine], items: Sequence[int], question: ReplyQuestion) -> Iterator[int]:
    """The items without lists of notes, such as behind `Sources:`, and of sentences made with the items before."""
    skipped = False
    wanted = set(items)
    first = min(wanted, default=0)
    for position, line in enumerate(lines):
        if line.mark is Mark.HEADING and position > first:
            skipped = (
                _EXCLUDED.match(line.body) is not None
                or (DENIAL.search(line.body) is not None and not DENIAL.search(question.sentence))
                or NOTES.match(line.body) is not None
                or _heads_sentences(lines, position, items)
                or _heads_aside(lines, position, items, question)
            )
        is_note = line.mark is not Mark.NUMBER and _NOTE.match(line.body) is not None
        if position in wanted and not skipped and not is_note:
            yield position
