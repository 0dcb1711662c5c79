"""Readers of Winograd schemas (WSC-273, CR-WSC-H, CR-WSC-M and plain files) that also find faulty rows.

Rows count from 0 after the header, as in the papers and the released code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from hapax.grammar.errors import HapaxError

WSC273, HUMAN, MACHINE = "WSC273", "CR-WSC-H", "CR-WSC-M"
SOURCES = (WSC273, HUMAN, MACHINE)

UNCHANGED = "kept unchanged"
"""Remedy of faults that the reader leaves in the text."""

MACHINE_FAMILY = 5
"""Consecutive pairs of CR-WSC-M that were made from one source pair (section 3.3)."""

PRONOUN_FORMS = (
    ("he", "him", "his"),
    ("she", "her", "hers"),
    ("it", "its"),
    ("they", "them", "their", "theirs"),
)
_PRONOUN = re.compile(rf"\b({'|'.join(chain.from_iterable(PRONOUN_FORMS))})\b", re.IGNORECASE)

# `so` begins a clause before `that` or a pronoun; otherwise it is an adverb (`so heavy`).
_CLAUSE = re.compile(
    r"[.;:,!?]\s+|\b(?:because|although|but|and|until)\b|\bso(?=\s+(?:that|i|we|he|she|it|they|his|her|its|their)\b)",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?:^|[.!?]\s+)$")

# `her` is possessive if a noun follows, so not before one of these words.
_NOUN_BEHIND = re.compile(r"\s+(?!(?:to|in|out|up|and|about|from|with|for)\b)\w")


class UnreadableItemsError(HapaxError):
    """A file without Winograd schemas in a supported form."""


@dataclass(frozen=True, slots=True)
class WinogradItem:
    """A sentence with a pronoun that means one of two entities.

    `pair`: identity shared by the two sentences of a schema. `family`: the WSC schema that this one was made from.
    `answer`: 0 or 1, the option meant. `place`: file and row. `source`: `WSC273`, `CR-WSC-H`, `CR-WSC-M` or the name of
    another file.
    """

    id: str
    pair: str
    source: str
    text: str
    pronoun: str
    options: tuple[str, str]
    answer: int
    place: str
    family: str
    pronoun_start: int | None = None
    """Where the pronoun begins in the text, if the file says so."""

    def to_json(self) -> dict[str, Any]:
        """The item as an object for a JSONL file; `read_file` derives ids and places from file name and row."""
        return {
            "pair": self.pair,
            "family": self.family,
            "text": self.text,
            "pronoun": self.pronoun,
            "options": list(self.options),
            "label": self.answer,
        }


Pair = tuple[WinogradItem, WinogradItem]


@dataclass(frozen=True, slots=True)
class ItemFault:
    """A problem in rows of a published file, and how the reader handles it."""

    source: str
    rows: tuple[int, ...]
    problem: str
    remedy: str
    used: bool = True
    """False if the pair is not among those that are asked."""

    def __str__(self) -> str:
        return self.line()

    def line(self, most: int | None = None) -> str:
        """The fault as a line of text that lists up to `most` row numbers."""
        rows = ", ".join(map(str, self.rows[:most]))
        if most is not None and len(self.rows) > most:
            rows += f" and {len(self.rows) - most} more"
        unused = "" if self.used else " (not used)"
        return f"{self.source} {'row' if len(self.rows) == 1 else 'rows'} {rows}{unused}: {self.problem}; {self.remedy}"

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "rows": list(self.rows),
            "what": self.problem,
            "remedy": self.remedy,
            "used": self.used,
        }


class SourceCount(NamedTuple):
    """Size of a source."""

    source: str
    sentences: int
    pairs: int
    families: int


@dataclass(slots=True)
class ItemFile:
    """Items of a file, and the faults found while reading it."""

    items: list[WinogradItem] = field(default_factory=list)
    faults: list[ItemFault] = field(default_factory=list)


def pairs_of(items: Iterable[WinogradItem]) -> list[Pair]:
    """Pairs of items with the same `pair`, in order of first appearance. Items without a partner are left out."""
    groups: dict[str, list[WinogradItem]] = {}
    for item in items:
        groups.setdefault(item.pair, []).append(item)
    return [(group[0], group[1]) for group in groups.values() if len(group) == 2]


def source_counts(items: Sequence[WinogradItem]) -> list[SourceCount]:
    """Numbers of sentences, pairs and families of pairs by source, in order of appearance."""
    counts = []
    for source in dict.fromkeys(item.source for item in items):
        sentences = [item for item in items if item.source == source]
        pairs = pairs_of(sentences)
        counts.append(SourceCount(source, len(sentences), len(pairs), len({pair[0].family for pair in pairs})))
    return counts


def replaced(text: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """Replace the two entities of a sentence by others, both at once, so that they may be swapped.

    Nothing replaces an entity that is not found, and an entity that the sentence names already replaces nothing. An
    article is capitalized at the start of a sentence and in lower case elsewhere.
    """
    substitutes: dict[str, str] = {}
    for old_entity, new_entity in zip(old, new, strict=True):
        if occurs_in(core(new_entity), text):
            continue
        if occurs_in(old_entity, text):
            substitutes.setdefault(old_entity.casefold(), new_entity)
        else:
            # The sentence may use another article, which then stays.
            substitutes[core(old_entity).casefold()] = core(new_entity)
    if not substitutes:
        return text
    # An entity may contain the other, and a regular expression takes the first alternative that matches.
    longest_first = sorted(substitutes, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)('s)?", re.IGNORECASE)

    def exchange(match: re.Match[str]) -> str:
        possessive = match.group(1) or ""
        name = substitutes[match.group(0).removesuffix(possessive).casefold()]
        if _SENTENCE_END.search(text[: match.start()]):
            name = name[0].upper() + name[1:]
        elif _DETERMINER.match(name):
            name = name[0].lower() + name[1:]
        name = name.removesuffix("'s")
        # `the boys'`, but `the boss's` and, as a name, `James's`.
        is_plural = name.endswith("s") and not name.endswith("ss") and core(name).islower()
        return name + ("'" if possessive and is_plural else possessive)

    return pattern.sub(exchange, text)


def occurs_in(option: str, text: str) -> bool:
    """True if the text contains the phrase as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None


def core(option: str) -> str:
    """The phrase without its article."""
    return _DETERMINER.sub("", option) or option


def options_as_named(item: WinogradItem) -> tuple[str, str] | None:
    """The two options in the words of the sentence; None if it does not name both.

    A sentence may have `the younger ones` for `the younger students`, `one of the tellers` for `the teller`, `a man
    juggling melons` for `the juggler`, and another spelling of a name.
    """
    named = [_as_named(option, item.text) for option in item.options]
    return (named[0], named[1]) if named[0] and named[1] else None


def _as_named(option: str, text: str) -> str | None:
    if occurs_in(core(option), text):
        return option
    *modifiers, noun = core(option).split()
    forms = [rf"one of the {re.escape(core(option))}e?s"]
    if noun.endswith(("er", "or")):
        forms.append(rf"(?:an?|the) (?:man|woman|person|boy|girl) {re.escape(noun[:-2])}ing\b[^,;.!?]*")
    if modifiers:
        forms.append(rf"(?:the )?{re.escape(' '.join(modifiers))} ones?")
    for form in forms:
        if found := re.search(rf"(?<!\w)(?:{form})(?!\w)", text, re.IGNORECASE):
            return found[0]
    if modifiers or not noun[0].isupper() or option != noun:
        return None
    # A name only: common words that are spelled alike are other words.
    alike = difflib.get_close_matches(noun, re.findall(r"(?<!\w)[A-Z]\w{4,}", text), 1, cutoff=0.85)
    return alike[0] if alike else None


def pronoun_of(item: WinogradItem) -> str:
    """The pronoun that the sentence asks about, from the last clause with a pronoun.

    In that clause it is the item's pronoun, or else another form of it (him for he), or else the first pronoun.
    """
    text = item.text
    # Options may contain pronouns themselves ("his uncle").
    for option in item.options:
        text = re.sub(rf"(?<!\w){re.escape(option)}(?!\w)", " ", text, flags=re.IGNORECASE)
    for clause in reversed(_CLAUSE.split(text)):
        pronouns = [match.group(0) for match in _PRONOUN.finditer(clause)]
        if not pronouns:
            continue
        published = item.pronoun.casefold()
        forms = next((forms for forms in PRONOUN_FORMS if published in forms), (published,))
        same = [pronoun for pronoun in pronouns if pronoun.casefold() == published]
        other_forms = [pronoun for pronoun in pronouns if pronoun.casefold() in forms]
        return (same or other_forms or pronouns)[0]
    return item.pronoun


def pronoun_place(item: WinogradItem) -> re.Match[str] | None:
    """The pronoun in the sentence: where the file says, or else its first occurrence in the last clause that has it.

    None if no clause has it. On WSC-273, without what the file says, the rule finds 269 of 273 places.
    """
    word = re.escape(item.pronoun)
    # At a stated place the pronoun may touch other words, as in languages that are written without blanks.
    stated = re.compile(word, re.IGNORECASE)
    if item.pronoun_start is not None and (match := stated.match(item.text, item.pronoun_start)):
        return match
    pronoun = re.compile(rf"(?<!\w){word}(?!\w)", re.IGNORECASE)
    for start, end in reversed(_clauses(item.text)):
        # Searched in the whole sentence, so that what stands around the pronoun can be read off the match.
        if match := pronoun.search(item.text, start, end):
            return match
    return None


def _clauses(text: str) -> list[tuple[int, int]]:
    """Starts and ends of the clauses of a text."""
    boundaries = [boundary.span() for boundary in _CLAUSE.finditer(text)]
    starts = [0, *(end for _, end in boundaries)]
    ends = [*(start for start, _ in boundaries), len(text)]
    return list(zip(starts, ends, strict=True))


def in_place_of(pronoun: re.Match[str], entity: str) -> str:
    """The entity in the form of the pronoun that it replaces: `the boy's` for `his`, without a capital article."""
    behind = pronoun.string[pronoun.end() :]
    lower = pronoun.group().casefold()
    owning = lower in ("his", "its", "their") or (lower == "her" and _NOUN_BEHIND.match(behind) is not None)
    name = f"{entity[0].lower()}{entity[1:]}" if _DETERMINER.match(entity) else entity
    if _SENTENCE_END.search(pronoun.string[: pronoun.start()]):
        name = f"{name[0].upper()}{name[1:]}"
    return f"{name}'s" if owning else name


def clause_with(item: WinogradItem, entity: str) -> str | None:
    """The clause with the pronoun, turned into a sentence about the entity: `The boy was so weak.`"""
    pronoun = pronoun_place(item)
    if pronoun is None:
        return None
    # The first clause that ends behind the pronoun's beginning contains it.
    start, end = next(span for span in _clauses(item.text) if pronoun.start() < span[1])
    before, behind = item.text[start : pronoun.start()], item.text[pronoun.end() : end]
    sentence = f"{before}{in_place_of(pronoun, entity)}{behind}".strip(" .,;:!?")
    return f"{sentence[0].upper()}{sentence[1:]}."
