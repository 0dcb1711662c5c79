"""Winograd schemas (WSC-273, CR-WSC-H, CR-WSC-M and plain files): their words, reading of files, and faults of rows."""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, grouped
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.writing.words import counted
from hapax.kb.exchange.values import refusal
from hapax.kb.files.whole_files import read_text

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


ROWS_SHOWN = 12
"""Row numbers listed for each fault; JSON has all."""


@dataclass(frozen=True, slots=True)
class WinogradItem:
    """A sentence with a pronoun that means one of two entities.

    `pair`: identity shared by the two sentences of a schema. `family`: the WSC schema that this one was made from.
    `answer`: 0 or 1, the option meant. `place`: file and row. `source`: `WSC273`, `CR-WSC-H`, `CR-WSC-M` or the name of
    another file. `pronoun_start`: where the pronoun begins in the text, if the file says so.
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

    @property
    def row(self) -> int:
        """The row in its file, from 0 after the header."""
        # Ids are `SOURCE:ROW`, and a source may have a colon.
        return int(self.id.rpartition(":")[2])

    def to_json(self) -> dict[str, Any]:
        """The item as an object for a JSONL file; `SchemaFile` derives ids and places from file name and row."""
        names = {"pair": self.pair, "family": self.family, "text": self.text, "pronoun": self.pronoun}
        return {**names, "options": list(self.options), "label": self.answer}


Pair = tuple[WinogradItem, WinogradItem]


@dataclass(frozen=True, slots=True)
class ItemFault:
    """A problem in rows of a published file, and how the reader handles it."""

    source: str
    rows: tuple[int, ...]
    what: str
    remedy: str

    def __str__(self) -> str:
        rows = ", ".join(map(str, self.rows[:ROWS_SHOWN]))
        if len(self.rows) > ROWS_SHOWN:
            rows += f" and {len(self.rows) - ROWS_SHOWN} more"
        return f"{self.source} {'row' if len(self.rows) == 1 else 'rows'} {rows}: {self.what}; {self.remedy}"


def pairs_of(items: Iterable[WinogradItem]) -> list[Pair]:
    """Pairs of items with the same `pair`, in order of first appearance. Items without a partner are left out."""
    groups = grouped(items, lambda item: item.pair).values()
    return [(group[0], group[1]) for group in groups if len(group) == 2]


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


# Columns by which the two published files are recognized.
_ANNOTATED = {"text", "pronoun", "options", "label", "mod", "mod_text"}
_GENERATED = {"text", "pronoun", "entity1", "entity2", "label", "use_tq"}

Row = Mapping[str, str]
"""A row by its columns; numbers, lists and nulls of a JSONL file as JSON writes them."""


def _rows(path: Path) -> list[Row]:
    text = read_text(path, "Give a CSV or JSONL file.")
    if path.suffix.lower() not in (".jsonl", ".json"):
        try:
            # A row that ends early has empty cells.
            return list(csv.DictReader(io.StringIO(text, newline=""), restval="", strict=True))
        except csv.Error as error:
            remedy = "Quote cells that contain quotes or line breaks."
            raise HapaxError(f"{path} is not a CSV file: {error}. {remedy}") from error
    rows: list[Row] = []
    # Not `splitlines`, which would also split JSON texts at separators such as U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                cells = json.loads(line).items()
            except (ValueError, AttributeError, RecursionError) as error:
                fault = f"{path}:{number} is not a JSON object: {error}. Put one object on each line."
                raise HapaxError(fault) from error
            texts = {name: "" if cell is None else json.dumps(cell) for name, cell in cells}
            rows.append(texts | {name: cell for name, cell in cells if isinstance(cell, str)})
    return rows


class SchemaFile:
    """A file of schemas: its items in order, and the faults found in it, those of known sources first.

    The annotated WSC file contains WSC273 and CR-WSC-H, and the generated file contains CR-WSC-M, of which only used
    pairs are read. Any other CSV or JSONL file with text, pronoun, options (or entity1 and entity2) and label is a
    source of its own. A pronoun that does not fit its sentence is corrected. Raises HapaxError.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._rows = _rows(self.path)
        self.items: list[WinogradItem] = []
        self.faults: list[ItemFault] = []
        # Columns that all rows have, because objects of a JSONL file may differ.
        columns = set.intersection(*map(set, self._rows)) if self._rows else set()
        if columns >= _ANNOTATED:
            self._read_annotated()
        elif columns >= _GENERATED:
            self._read_generated()
        elif {"text", "pronoun", "label"} <= columns and ("options" in columns or {"entity1", "entity2"} <= columns):
            self._read_plain()
        else:
            raise HapaxError(
                f"{self.path}: not every row has text, pronoun, label and options (or entity1 and entity2). "
                "Give a CSV file with these columns in its header, or a JSONL file with these fields."
            )
        self._check()
        order = [*SOURCES, self.path.stem]
        self.faults.sort(key=lambda fault: (order.index(fault.source), fault.rows))

    def _read_annotated(self) -> None:
        """WSC-273 with its human modifications. Pairs are adjacent rows of one schema with different labels."""
        heads = self._pair_heads(range(len(self._rows)))
        for number in heads:
            pair = f"{WSC273}:{heads[number]}"
            self.items.append(self._item(number, self._options(number), (WSC273, pair, pair)))
        for head in sorted(set(heads.values())):
            modified = self._rows[head]["mod"]
            # Only rows with a partner were modified; the modification is in columns of the same two rows.
            if not modified.strip() or heads.get(head + 1) != head:
                continue
            # The second row may leave its options out, and then shares those of the first.
            first = self._two(modified, head)
            place = (HUMAN, f"{HUMAN}:{head}", f"{WSC273}:{head}")
            for number in (head, head + 1):
                row = self._rows[number]
                options = self._two(row["mod"], number) if row["mod"].strip() else first
                text = row["mod_text"].strip() or replaced(row["text"], self._options(number), options)
                self.items.append(self._item(number, options, place, text))
                if options != first:
                    differs = 0 if first[0] != options[0] else 1
                    problem = f"the option {first[differs]!r} of the pair's first row is not in this sentence"
                    used = f"the option of this row is used, {options[differs]!r}"
                    self.faults.append(ItemFault(HUMAN, (number,), problem, used))

    def _read_generated(self) -> None:
        """CR-WSC-M: two rows per pair, five pairs per family. A pair is used if `use_tq` is set in either row."""
        rows = self._rows
        if len(rows) % 2:
            raise HapaxError(
                f"{self.path.name} has {len(rows)} rows, which is an odd number. Give two rows for each schema."
            )
        for head in range(0, len(rows), 2):
            flags = [rows[number]["use_tq"].strip() == "1" for number in (head, head + 1)]
            # Two rows for each pair: the family has the number of its first row.
            place = (MACHINE, f"{MACHINE}:{head}", f"{MACHINE}:{head - head % (2 * MACHINE_FAMILY)}")
            if flags[0] != flags[1]:
                problem = "one row of the pair is marked as used and one is not"
                self.faults.append(ItemFault(MACHINE, (head, head + 1), problem, "both are used"))
            if any(flags):
                self.items += (self._item(number, self._options(number), place) for number in (head, head + 1))

    def _read_plain(self) -> None:
        """Any other file: pairs by their `pair` field, or else adjacent rows of one schema with different labels."""
        source = self.path.stem
        heads = self._pair_heads(number for number, row in enumerate(self._rows) if not row.get("pair"))
        for number, row in enumerate(self._rows):
            pair = f"{source}:{heads[number]}" if number in heads else row["pair"]
            self.items.append(self._item(number, self._options(number), (source, pair, row.get("family") or pair)))
        counts = Counter(item.pair for item in self.items)
        for item in self.items:
            if counts[item.pair] > 2:
                problem = f"the pair {item.pair!r} has {counts[item.pair]} rows"
                raise HapaxError(f"{item.place}: {problem}. Give each pair two rows.")

    def _pair_heads(self, numbers: Iterable[int]) -> dict[int, int]:
        """First row of each of these rows' pairs, by number; a row without a partner is its own first row."""
        heads = {number: number for number in numbers}
        for number, head in heads.items():
            # A gap in the numbers, where a row was left out, parts its neighbours.
            if head != number or number + 1 not in heads:
                continue
            labels = {self._rows[place]["label"].strip() for place in (number, number + 1)}
            first, second = ({option.casefold() for option in self._options(place)} for place in (number, number + 1))
            if labels == {"0", "1"} and first & second:
                heads[number + 1] = number
        return heads

    def _item(
        self, number: int, options: tuple[str, str], place: tuple[str, str, str], modified: str | None = None
    ) -> WinogradItem:
        """The item of a row. `place`: its source, pair and family; `modified`: a text in place of the row's."""
        source, pair, family = place
        row, where = self._rows[number], f"{self.path.name} row {number}"
        label = row["label"].strip()
        if label not in ("0", "1"):
            raise HapaxError(f"{where}: the label is {label!r}. Write 0 or 1, the number of the option that is meant.")
        text, pronoun = " ".join((modified or row["text"]).split()), row["pronoun"].strip()
        if not text or not pronoun:
            raise HapaxError(f"{where}: the {'pronoun' if text else 'text'} is empty. Fill it in.")
        for cell in (text, pronoun, *options):
            if reason := refusal(cell):
                raise HapaxError(f"{where}: {reason}.")
        # `pronoun_loc` counts characters of the text as written.
        stated = row.get("pronoun_loc", "")
        is_there = modified is None and stated.isdecimal() and text == row["text"]
        start = int(stated) if is_there else None
        identity = f"{source}:{number}"
        return WinogradItem(identity, pair, source, text, pronoun, options, int(label), where, family, start)

    def _options(self, number: int) -> tuple[str, str]:
        """The two options of a row."""
        row = self._rows[number]
        return self._two(row.get("options") or json.dumps([row.get("entity1", ""), row.get("entity2", "")]), number)

    def _two(self, cell: str, number: int) -> tuple[str, str]:
        """Two options from a cell that contains a JSON list."""
        try:
            listed = json.loads(cell)
        except (ValueError, RecursionError):
            listed = None
        where = f"{self.path.name} row {number}: the options are {listed!r}."
        if not isinstance(listed, list) or len(listed) != 2 or not all(isinstance(option, str) for option in listed):
            raise HapaxError(f'{where} Give two texts, such as ["the cat", "Ann"].')
        first, second = (" ".join(option.split()) for option in listed)
        if not first or not second or first.casefold() == second.casefold():
            raise HapaxError(f"{where} Give two different texts.")
        return first, second

    def _check(self) -> None:
        """Report options that are not in their sentences, and pronouns that do not fit; these are corrected."""
        found: dict[tuple[str, str, str, str], list[int]] = {}
        for position, item in enumerate(self.items):
            for option in item.options:
                # Articles count, since the released code replaces options together with their articles.
                if item.source != WSC273 and option.casefold() not in item.text.casefold():
                    # Once for each pair.
                    fault = (item.source, item.pair, f"the option {option!r} is not in the sentence", UNCHANGED)
                    found.setdefault(fault, []).append(item.row)
            # WSC's pronouns were taken from the sentences; an earlier clause may contain the right one. So may it where
            # a file states the place.
            start = item.pronoun_start
            is_stated = start is not None and item.text[start:].casefold().startswith(item.pronoun.casefold())
            fitting = item.pronoun if item.source == WSC273 or is_stated else pronoun_of(item)
            if fitting.casefold() != item.pronoun.casefold():
                problem = f"the pronoun asked about is {fitting!r}, not {item.pronoun!r}"
                found.setdefault((item.source, "", problem, f"{fitting!r} is used"), []).append(item.row)
                self.items[position] = replace(item, pronoun=fitting)
        for (source, _, problem, remedy), rows in found.items():
            self.faults.append(ItemFault(source, tuple(rows), problem, remedy))


def read_pairs(paths: Iterable[str | Path]) -> list[Pair]:
    """The pairs of files, in the order of the files."""
    return list(chain.from_iterable(pairs_of(SchemaFile(path).items) for path in paths))


@checked
def read_schemas(*paths: str | Path) -> list[WinogradItem]:
    """The Winograd schemas of files, in the order of the files, in any of the supported formats.

    Raises HapaxError.
    """
    return list(chain.from_iterable(SchemaFile(path).items for path in paths))


@checked
def count_schemas(*paths: str | Path) -> Evaluation[None]:
    """Count the schemas of files by source, and list faulty rows, the first of each fault in the text."""
    files = [SchemaFile(path) for path in paths]
    faults = list(chain.from_iterable(file.faults for file in files))
    by_source = grouped(chain.from_iterable(file.items for file in files), lambda item: item.source)
    names, rows = ("source", "sentences", "pairs", "families"), []
    for source, items in by_source.items():
        pairs = pairs_of(items)
        rows.append((source, len(items), len(pairs), len({pair[0].family for pair in pairs})))
    figures = {"sources": [dict(zip(names, row, strict=True)) for row in rows], "faults": faults}
    table, notes = ResultTable("", names, rows), [counted(len(faults), "fault")]
    return Evaluation(None, [table], figures, details=list(map(str, faults)), notes=notes)
