"""Splits a reply into lines with their list marks, and tells which lines are items and why the others are none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hapax.llm_oracle.reading.link_replies import LONGEST_LINE
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyQuestion, stems
from hapax.llm_oracle.reading.reply_sentences import (
    DENIAL,
    POINTING,
    are_names,
    in_slot,
    is_refusal,
    is_sentence,
    sentences,
)
from hapax.llm_oracle.reading.reply_values import broken, style_of, tidy


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """A line that is not blank. `body`: the text after its mark; `depth`: level of indentation, from 0.

    `mark`: number, bullet, letter, or heading for a Markdown heading, a line in bold, or one that ends in a colon; else
    empty. `after_blank`: a blank line precedes it.
    """

    raw: str
    body: str
    mark: str = ""
    number: int | None = None
    depth: int = 0
    after_blank: bool = False

    @property
    def is_marked(self) -> bool:
        """True if it begins with a number, bullet or letter."""
        return self.mark not in ("", "heading")

    @property
    def introduces(self) -> bool:
        """True if it ends in a colon."""
        return self.body.rstrip("*_ ").endswith((":", "："))


# A code fence such as ```json, `\begin{itemize}`, or a rule such as `---` and `* * *`.
_NO_TEXT = re.compile(r"\s*(?:(?:```|~~~)[\w+-]*|\\(?:begin|end)\{\w+\*?\}(?:\[[^\]]*\])?|(?:[-*_=]\s?){3,})\s*")
# A point directly before a digit is a decimal point, unless a blank follows: `1.5` has no mark, `1. 5` has.
_NUMBERED = re.compile(
    r"[(（]?(?P<number>\d{1,4}|[一二三四五六七八九十]{1,3})(?:\\?[.)][-–]?|[、．）]|\ufe0f?\u20e3)\**(?:\s+|"
    r"(?=[^\d\s.])|$)|"
    r"[①-⑳➀-➉❶-❿]\s*"
)
_BULLETED = re.compile(
    r"\\item\s+|(?:[-*+–—−⁃→➤]|[•‣◦▪▫●○■□▸►▶✓✔✅☑·∙]\ufe0f?(?=\s?))\ufe0f?\s+(?:\[[ xX✓]\]\s+)?|"
    r"[・･•‣◦▪▫●○■□▸►▶✓✔✅☑]\ufe0f?"
)
# A sign that is no letter, digit, quote, currency or punctuation, such as an emoji, and a blank.
_PICTURE = re.compile(r"[^\w\s\"'“”‘’„«»‹›()\[\]{}*_`#$€£¥%&@+\-–—.,:;!?/\\|<>=~^°½¼¾।。、「」『』《》¡¿]{1,8}\s+")
_CROSSED = re.compile(r"\s*(?:[❌✗✘✖❎🚫]|[-*+]\s+\[ \]\s)")
# Marks only if they run on from line to line: `a)`, `ii.`, `Value 1:`, `#2`, `3 -`, `[4]`, `**Answer 5**:`.
_RUNNING = re.compile(
    r"[*(\[]{0,3}(?:(?P<label>[#№]|[^\W\d_]{1,12}\.?(?=\s*\d))\s*)?(?P<number>\d{1,3}|[^\W\d_]{1,5})"
    r"(?:[.)\]]\**\s+|\**\s*[:：\]]\**\s*|\s*[-–—]\s+|(?<=\d)\**\s+)"
)
_SEQUENCES = (
    list(map(str, range(1, 1000))),
    ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv"],
    *map(list, ("abcdefghijklmnopqrstuvwxyz", "αβγδεζηθικλμνξοπρστυφχψω", "абвгдежзийклмнопрст", "אבגדהוזחטיכל")),
)  # fmt: skip
# The numbers in `Here: 1. basil 2. thyme, (3) sage`, but not 4.5.
_INLINE = re.compile(
    r"(?:^|(?<=[\s:：;,，(]))\(?(?:(?P<number>\d{1,2})[.)]\s*(?=[^\s\d.]|\d{3}|(?<=\s)\d)|(?P<letter>[a-h])\)\s*(?=\S))"
)


def read_lines(text: str, most: int) -> list[ReplyLine]:
    """The lines of a text that are not blank, at most `most`, without code fences and rules."""
    lines: list[ReplyLine] = []
    after_blank = False
    for raw in text.splitlines():
        if len(lines) >= most:
            break
        parts = () if not raw.strip() or _NO_TEXT.fullmatch(raw[:LONGEST_LINE]) else _inline_items(raw)
        after_blank = not parts or after_blank
        for part in parts:
            lines.append(replace(_line(part), after_blank=after_blank))
            after_blank = False
    lines = _with_running_marks(lines[:most])
    # Levels instead of columns; numbers may be aligned at their right, one column apart.
    least = min((line.depth for line in lines if line.is_marked), default=0)
    return [replace(line, depth=max(0, line.depth - least) // 2) for line in lines]


def _line(raw: str) -> ReplyLine:
    """A line with the mark that it shows by itself."""
    columns = raw[:LONGEST_LINE].expandtabs(4)
    indent = len(columns) - len(columns.lstrip())
    body = re.sub(r"^(?:>\s+)+", "", raw.strip())
    # A bullet before a list number: `- 1. basil`.
    body = re.sub(r"^[-*+•]\s+(?=\**\d{1,3}[.)]\**\s*[^\s\d])", "", body)
    unhashed = re.sub(r"^#{1,6}\s+", "", body)
    opened = unhashed[:2] if unhashed[:2] in ("**", "__") else ""
    number = _NUMBERED.match(unhashed[len(opened) :])
    if number:
        rest = unhashed[len(opened) + number.end() :].removeprefix(number.group())  # `1. 1. basil`
        # The bold sign before the number may close after the item: `**1. Tango**`.
        closed = opened and rest.count(opened) % 2 == 1
        value = int(number["number"]) if (number["number"] or "").isdecimal() else None
        return ReplyLine(raw, (opened if closed else "") + rest.strip(), "number", value, indent)
    picture = _PICTURE.match(body)
    is_bullet = picture and any(unicodedata.category(sign) == "So" for sign in picture.group())
    bullet = None if opened else _BULLETED.match(body) or (picture if is_bullet else None)
    if bullet:
        return ReplyLine(raw, body[bullet.end() :], "bullet", None, indent)
    mark = "heading" if unhashed != body or is_heading(body) else ""
    return ReplyLine(raw, unhashed.rstrip("# ") if unhashed != body else body, mark, None, indent)


def is_heading(body: str) -> bool:
    """True if the whole line is bold, or it ends in a colon."""
    is_bold = re.fullmatch(r"(\*\*|__)(?:(?!\1).)+\1", body.strip()) is not None
    return is_bold or body.rstrip("*_ ").endswith((":", "："))


def _inline_items(raw: str) -> list[str]:
    """The parts of a line that holds several numbered items, `1. red 2. blue`; else the line itself."""
    found = list(_INLINE.finditer(raw))
    for name, fewest in (("number", 2), ("letter", 3)):
        marks = [mark for mark in found if mark[name]]
        values = [int(mark[name], 36) for mark in marks]
        if len(marks) >= fewest and all(later - value == 1 for value, later in pairwise(values)):
            begins = (
                [0, *(mark.start() for mark in marks)]
                if raw[: marks[0].start()].strip()
                else [mark.start() for mark in marks]
            )
            parts = [raw[begin:end] for begin, end in pairwise([*begins, len(raw)])]
            return [re.sub(r"[,;，]?(?:\s+(?:and|or))?\s*$", "", part) for part in parts]
    return [raw]


def _with_running_marks(lines: Sequence[ReplyLine]) -> list[ReplyLine]:
    """The lines with marks that are marks only because they run on: a, b, c; i, ii, iii; `Value 1:`, `Value 2:`."""
    result = list(lines)
    is_list = any(line.is_marked for line in lines)
    matches = {
        place: match for place, line in enumerate(lines) if not line.is_marked and (match := _RUNNING.match(line.body))
    }
    for sequence in _SEQUENCES:
        run = {place: match for place, match in matches.items() if match["number"].casefold() in sequence}
        numbers = [match["number"].casefold() for match in run.values()]
        labels = {match["label"] for match in run.values()}
        # Below a list `[1]` is a footnote, and `Step 1` above it is reasoning.
        is_aside = any((is_list and match[0][0] == "[") or match["label"] in ("Step", "step") for match in run.values())
        if len(run) > 1 and numbers == sequence[: len(run)] and len(labels) == 1 and not is_aside:
            for number, (place, match) in enumerate(run.items(), 1):
                mark = "number" if match["number"].isdecimal() else "letter"
                result[place] = replace(lines[place], body=lines[place].body[match.end() :], mark=mark, number=number)
    return result


# --- items

_OPENER = re.compile(
    r"(?:(?:great|good|excellent|interesting)\s+(?:question|choice|topic)|sure|certainly|of course|absolutely|okay|ok|"
    r"yes|"
    r"gladly|great|hello|hi|here you go|understood|no problem|gerne|bien sûr|claro|por supuesto|certamente|natürlich|"
    r"当然可以|"
    r"当然|好的|もちろん)(?:[\s,!.。！:]+|$)(?:here (?:you go|they are|it is)\W*)?",
    re.IGNORECASE,
)
# Headings above notes and above counterexamples.
NOTES = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|key\s+(?:points|facts)|summary|caveats?|"
    r"resources?|why|how|"
    r"explanations?|reasoning|background|conclusion|considerations|important|remember|fun\s+facts?)\b|"
    r"\W*(?:(?:foods?|things|items|what|those|\w+)\s+(?:to|that\s+(?:do|are|is))\s+(?:not|avoid)\b|not\b|avoid\b|"
    r"never\b|"
    r"do\s?n[o'’]t\b|unsafe\b|incorrect\b|excluded?\b|non-?examples?\b)",
    re.IGNORECASE,
)
_NOTE = re.compile(
    r"\W*(?:please\s+)?(?:notes?|sources?|references?|disclaimer|tips?|caveats?|explanation|reasoning|confidence|"
    r"certainty|"
    r"probability|score)\**\s*[:：]|[:：]|\(.*\)\.?$|\[\d{1,3}\]\s",
    re.IGNORECASE,
)
# Words before a list that is no answer: a question back, or steps to find one.
_ADVISES = re.compile(
    r"\b(?:could|can|would)\s+you\s+(?:please\s+)?(?:clarify|specify|provide\s+more|tell\s+me\s+more|"
    r"be\s+more\s+specific)|"
    r"\bplease\s+(?:clarify|specify|provide\s+more|consider|contact|reach|seek|consult)\b|"
    r"\b(?:these|following|some)\s+(?:\w+\s+)?(?:steps|tips|instructions|guidelines|strategies|suggestions|"
    r"resources)\s*[:.]?\W*$",
    re.IGNORECASE,
)


def drop_reasons(lines: Sequence[ReplyLine], question: ReplyQuestion) -> list[DropReason | None]:
    """For each line the reason why it is not an item, None for an item."""
    items = _items(lines, question)
    first = min(items, default=len(lines))
    if 0 < first < len(lines) and _declines(lines[:first], question):
        return [DropReason.REFUSAL] * len(lines)
    # Items crossed out in a list of others are counterexamples; a list of nothing else marks its items so.
    crossed = {place for place in items if _CROSSED.match(lines[place].raw)}
    reasons: list[DropReason | None] = []
    for place, line in enumerate(lines):
        if place in items:
            reasons.append(DropReason.REMARK if place in crossed and len(crossed) < len(items) else None)
        elif is_refusal(line.body):
            reasons.append(DropReason.REFUSAL)
        elif place < first:
            reasons.append(DropReason.PREAMBLE)
        elif line.mark == "heading":
            reasons.append(DropReason.HEADING)
        else:
            is_apart = line.mark == "" and line.after_blank
            reasons.append(DropReason.REMARK if is_apart else DropReason.EXPLANATION)
    return reasons


def _declines(before: Sequence[ReplyLine], question: ReplyQuestion) -> bool:
    """True if a refusal stands before a list that is introduced without a word of the question: advice, for example."""
    introduction = (sentences(before[-1].body) or [""])[-1]
    if _ADVISES.search(introduction):
        return not _ADVISES.search(f"these {question.data_type}s:")
    is_own = re.match(r"(?:here|below)\b", introduction, re.IGNORECASE) or stems(introduction) & question.known_stems
    return is_refusal(before[0].body) and not is_own and introduction != sentences(before[0].body)[0]


def is_talk(line: ReplyLine, question: ReplyQuestion) -> bool:
    """True if a line without a list mark is talk rather than a value."""
    body = line.body.strip()
    if in_slot(tidy(body), question) is not None:
        return False
    opener = _OPENER.match(body)
    is_opener = opener and (opener.end() == len(body) or opener.group().rstrip()[-1] in "!,.。！:")
    if (
        _NOTE.match(body)
        or is_opener
        or line.introduces
        or body.endswith(("?", "？"))
        or (body.endswith("。") and len(body) > 12)
    ):
        return True
    body = re.sub(r"\s+\([^()]*\)(?=\W*$)", "", body)
    name = broken(body)[0]
    short = name if are_names([name], 5) else body
    return not are_names([short], 8) or is_sentence(short)


def _items(lines: Sequence[ReplyLine], question: ReplyQuestion) -> set[int]:
    """Positions of the lines that are items: those of the outermost list, or of the lists below its group names."""
    marked = [place for place, line in enumerate(lines) if line.is_marked]
    names = [place for place, line in enumerate(lines) if line.mark == "heading" and not line.introduces]
    names = [place for place in names if not NOTES.match(lines[place].body)]
    noted = marked[0] - 1 if marked else 0
    if noted > 0 and lines[noted].introduces and NOTES.match(lines[noted].body):
        return _unmarked_items(lines[:noted], names, question)
    if not marked:
        return _unmarked_items(lines, names, question)
    # Names in bold above bullets about them, or short lines above indented bullets.
    heads = [place for place in names if lines[place + 1 : place + 2] and lines[place + 1].mark != "heading"]
    heads = heads or [
        place
        for place, (line, following) in enumerate(pairwise(lines))
        if line.mark == "" and are_names([line.body], 5) and following.is_marked and following.raw[:1].isspace()
    ]
    are_bullets = all(lines[place].mark == "bullet" for place in marked)
    is_described = len(heads) == 1 and all(POINTING.match(lines[place].body) for place in marked)
    is_above = are_bullets and (len(heads) > 1 or is_described) and heads[0] < marked[0]
    bodies = [lines[place].body for place in marked]
    if is_above and (len(marked) == len(heads) or _are_explanations(bodies, question)):
        return set(heads)
    items = _outer_items(lines, marked, question)
    before = items[0] - 1
    # The number 1 may have stood in the prompt, so that the reply begins with its text.
    is_second = lines[items[0]].number == 2 and before >= 0 and lines[before].mark == ""
    items = [before, *items] if is_second and not is_talk(lines[before], question) else items
    return set(_without_notes(lines, items, question))


def _unmarked_items(lines: Sequence[ReplyLine], names: Sequence[int], question: ReplyQuestion) -> set[int]:
    """Items of a reply without list marks: its lines in bold if text stands below them, else all that is no talk."""
    for pattern, share in ((r"\*\*[^*\n:]{2,60}\*\*,?\s+[a-z].*", 0.6), (r"[\"“«„][^\"“”«»]{2,}[\"”»“][.,;]?", 0.5)):
        found = {place for place, line in enumerate(lines) if re.fullmatch(pattern, line.body.strip())}
        if len(found) > 1 and len(found) >= share * len(lines):
            return found  # paragraphs that begin with a name in bold, or lines in quotation marks
    others = [place for place, line in enumerate(lines) if line.mark == "" and not is_talk(line, question)]
    phrases = [place for place in others if _is_phrase(lines[place].body)]
    if (
        names
        and (len(names) > 1 or not others)
        and len(phrases) >= 0.5 * len(others)
        and len(others) <= 2 * len(names) + 1
    ):
        return set(names)
    return set(others)


def _outer_items(lines: Sequence[ReplyLine], marked: Sequence[int], question: ReplyQuestion) -> list[int]:
    """The marked lines that are items, without the explanations below them and the group names above them."""
    # By mark and indentation, in the order of their first lines, so that the outermost list comes first.
    kinds: dict[tuple[str, int], list[int]] = {}
    for place in marked:
        kinds.setdefault((lines[place].mark, lines[place].depth), []).append(place)
    outer = next(iter(kinds.values()))
    outermost = set(outer)
    below = [place for place in marked if place not in outermost]
    if not below:
        return outer
    groups = [place for place in outer if lines[place].introduces]
    bodies = [lines[place].body for place in below]
    is_named = all(is_kind(lines[place].body, question) or is_heading(lines[place].body) for place in outer)
    are_numbers = {lines[place].mark for place in marked} == {"number"}
    are_brief = are_names(bodies, 4) and not any(":" in body or body.endswith(".") for body in bodies)
    if not groups and len(outer) > 1 and (is_named or are_numbers) and are_brief and len(below) >= 2 * len(outer):
        groups = outer
    parents = {place - 1 for place in below} & outermost
    if not groups or (2 * len(groups) < len(outer) and parents != set(groups)) or _are_explanations(bodies, question):
        return outer
    return sorted([*_outer_items(lines, below, question), *(outermost - set(groups))])


def is_kind(text: str, question: ReplyQuestion) -> bool:
    """True if a text names a kind of the data type, `Stone fruits`, rather than one of it, `the Nile River`."""
    words = text.replace("*", "").casefold().split()
    plural = {word.removesuffix("s") for word in words if word.endswith("s")} & question.type_words
    return bool(plural) or (bool(words) and set(words) <= question.type_words)


def _are_explanations(bodies: Sequence[str], question: ReplyQuestion) -> bool:
    """True if most of these lines are sentences, or parts under labels that recur, instead of names."""
    labels = style_of(bodies, question).labels
    telling = 0
    for body in bodies:
        plain = re.sub(r"\*|_", "", body).strip()
        label, _, explained = broken(plain)
        is_name = explained and label.casefold() not in labels and are_names([label], 4)  # `Manchego: a hard cheese.`
        is_prose = is_sentence(plain) or not are_names([plain], 7) or (plain.endswith(".") and _is_phrase(plain))
        telling += not is_name and bool(label.casefold() in labels or is_prose)
    return telling >= 0.5 * len(bodies)


def _is_phrase(text: str) -> bool:
    """True if a text is longer than a name, or of three words and ends like a sentence."""
    return not are_names([text], 4) or (text.endswith(".") and not are_names([text], 2))


def _without_notes(lines: Sequence[ReplyLine], items: Sequence[int], question: ReplyQuestion) -> Iterator[int]:
    """The items without lists of notes, such as after `Sources:`, and of sentences made with the items before."""
    wanted = set(items)
    before = [lines[place].body for place in items[:10]]
    skipped = False
    for place, line in enumerate(lines):
        if line.mark == "heading" and place > items[0]:
            denies = DENIAL.search(line.body) is not None and not DENIAL.search(question.sentence)
            following = next((item for item in items if item > place), place)
            is_aside = (
                _is_phrase(lines[following].body) and are_names(before, 4) and lines[following].body[-1:] in ".!?"
            )
            skipped = denies or is_aside or NOTES.match(line.body) is not None
        if place in wanted and not skipped and (line.mark == "number" or not _NOTE.match(line.body)):
            yield place
