"""Winograd schemas as items: readers of WSC-273, CR-WSC-H, CR-WSC-M and of plain files, and the faults of their rows.

Rows count from 0 after the header, as the papers and the released code count them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from grammar.errors import HapaxError
from kb.values import refusal

WSC273, HUMAN, MACHINE = "WSC273", "CR-WSC-H", "CR-WSC-M"
SOURCES = (WSC273, HUMAN, MACHINE)

MACHINE_FAMILY = 5
"""Pairs that CR-WSC-M holds of each source pair, one after another (section 3.3)."""

PRONOUN_FORMS = (
    ("he", "him", "his"),
    ("she", "her", "hers"),
    ("it", "its"),
    ("they", "them", "their", "theirs"),
)
_PRONOUN = re.compile(rf"\b({'|'.join(form for forms in PRONOUN_FORMS for form in forms)})\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[.;:,!?]\s+|\b(?:because|although|but|and|until)\b|\bso(?=\s+(?:that|i|we|he|she|it|they|his|her|its|their)\b)",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_NOUN_BEHIND = re.compile(r"\s+(?!(?:to|in|out|up|and|about|from|with|for)\b)\w")
"""What follows `her` where it owns something."""
_SENTENCE_END = re.compile(r"(?:^|[.!?]\s+)$")


_ANNOTATED = {"text", "pronoun", "options", "label", "mod", "mod_text"}
_GENERATED = {"text", "pronoun", "entity1", "entity2", "label", "use_tq"}


class UnreadableItemsError(HapaxError):
    """A file that holds no Winograd schemas in a form that is read."""


@dataclass(frozen=True, slots=True)
class WinogradItem:
    """One sentence with a pronoun that means one of two entities.

    `pair`: identity of the schema, whose two sentences share it. `family`: the schema of WSC that it was made from.
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

    def to_json(self) -> dict[str, Any]:
        """The item as a line of a JSONL file, which `read_items` reads back; ids and places follow from the file."""
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
    """What is wrong with rows of a published file, and what is made of them."""

    source: str
    rows: tuple[int, ...]
    what: str
    remedy: str
    used: bool = True
    """Whether the pair is among those that are asked."""

    def __str__(self) -> str:
        return self.told()

    def told(self, most: int | None = None) -> str:
        """The fault as a line, with so many of its rows by number."""
        rows = ", ".join(map(str, self.rows[:most]))
        if most is not None and len(self.rows) > most:
            rows += f" and {len(self.rows) - most} more"
        unused = "" if self.used else " (not used)"
        return f"{self.source} {'row' if len(self.rows) == 1 else 'rows'} {rows}{unused}: {self.what}; {self.remedy}"

    def to_json(self) -> dict[str, Any]:
        """The fault as a JSON object."""
        told = {"what": self.what, "remedy": self.remedy, "used": self.used}
        return {"source": self.source, "rows": list(self.rows), **told}


class SourceCount(NamedTuple):
    """How much one source holds."""

    source: str
    sentences: int
    pairs: int
    families: int


@dataclass(slots=True)
class ItemFile:
    """All that one file holds: items, and the faults found on the way."""

    items: list[WinogradItem] = field(default_factory=list)
    faults: list[ItemFault] = field(default_factory=list)


def read_items(path: Path, source: str | None = None, published: bool = False) -> list[WinogradItem]:
    """The items of a file, in its order; of one source only, where one is named.

    The annotated WSC file gives WSC273 and CR-WSC-H, the generated file the used pairs of CR-WSC-M; any other CSV or
    JSONL file with text, pronoun, options (or entity1 and entity2) and label is a source of its own. A pronoun that is
    not that of its sentence is put right; `published` leaves it. Raises UnreadableItemsError.
    """
    items = read_file(path, published).items
    return items if source is None else [item for item in items if item.source == source]


def read_file(path: Path, published: bool = False) -> ItemFile:
    """Items and faults of a file. Raises UnreadableItemsError."""
    rows = _rows(Path(path))
    columns = set.intersection(*map(set, rows)) if rows else set()
    if columns >= _ANNOTATED:
        read = _annotated(_as_text(rows), Path(path).name, published)
    elif columns >= _GENERATED:
        read = _generated(_as_text(rows), Path(path).name, published)
    elif {"text", "pronoun", "label"} <= columns and ("options" in columns or {"entity1", "entity2"} <= columns):
        read = _plain(rows, Path(path), published)
    else:
        raise UnreadableItemsError(
            f"{path} has no columns text, pronoun, options (or entity1 and entity2) and label in each row. "
            "Give a CSV file with a header or a JSONL file that names them."
        )
    read.faults.sort(key=lambda fault: (SOURCES.index(fault.source) if fault.source in SOURCES else 9, fault.rows))
    return read


def _as_text(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, str]]:
    """Rows as a CSV file has them, whatever file they are from."""
    return [{name: _text(one) for name, one in row.items()} for row in rows]


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else json.dumps(cell)


def pairs_of(items: Iterable[WinogradItem]) -> list[Pair]:
    """The items two by two, as their `pair` says, in order of first appearance; what has no partner is left out."""
    together: dict[str, list[WinogradItem]] = {}
    for item in items:
        together.setdefault(item.pair, []).append(item)
    return [(two[0], two[1]) for two in together.values() if len(two) == 2]


def source_counts(items: Sequence[WinogradItem]) -> list[SourceCount]:
    """Sentences, pairs and families (of pairs) by source, in order of appearance."""
    counts = []
    for source in dict.fromkeys(item.source for item in items):
        own = [item for item in items if item.source == source]
        pairs = pairs_of(own)
        counts.append(SourceCount(source, len(own), len(pairs), len({pair[0].family for pair in pairs})))
    return counts


def _rows(path: Path) -> list[Mapping[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableItemsError(f"{path} cannot be read: {error}. Give a CSV or JSONL file in UTF-8.") from error
    if path.suffix.lower() in (".jsonl", ".json"):
        return list(_json_rows(path, text))
    try:
        return list(csv.DictReader(io.StringIO(text, newline=""), restval="", strict=True))
    except csv.Error as error:
        raise UnreadableItemsError(
            f"{path} is no CSV file: {error}. Quote cells that hold quotes or line ends."
        ) from error


def _json_rows(path: Path, text: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnreadableItemsError(f"{path}:{number} is no JSON: {error}. Put one object on each line.") from error
        if not isinstance(row, dict):
            raise UnreadableItemsError(f"{path}:{number} is no JSON object. Put one object on each line.")
        yield row


def _annotated(rows: Sequence[Mapping[str, Any]], name: str, published: bool) -> ItemFile:
    """WSC-273 with its human modifications: pairs are neighbouring rows of one schema with both labels."""
    read = ItemFile()
    heads = _pair_heads(rows, name)
    for number, row in enumerate(rows):
        options = _options(row["options"], name, number)
        pair = f"{WSC273}:{heads[number]}"
        read.items.append(_item(_Place(WSC273, number, name, pair, pair), row, options))
    for head in sorted(set(heads)):
        if rows[head]["mod"].strip() and heads[head + 1 : head + 2] == [head]:
            _reversed(rows, name, head, read)
            if published:
                read.items[-2:] = _as_released(rows, head, read.items[-2:])
    _settle_pronouns(read, published)
    return read


def _pair_heads(rows: Sequence[Mapping[str, Any]], name: str) -> list[int]:
    """For each row the first row of its pair; a row without a partner is its own."""
    heads = list(range(len(rows)))
    number = 0
    while number + 1 < len(rows):
        one, two = (_entities(rows[each], name, each) for each in (number, number + 1))
        labels = [rows[each]["label"] for each in (number, number + 1)]
        if sorted(str(label).strip() for label in labels) == ["0", "1"] and _same_schema(one, two):
            heads[number + 1] = number
            number += 1
        number += 1
    return heads


def _same_schema(one: Sequence[str], two: Sequence[str]) -> bool:
    return bool({option.casefold() for option in one} & {option.casefold() for option in two})


def _reversed(rows: Sequence[Mapping[str, Any]], name: str, head: int, read: ItemFile) -> None:
    """Append the human-modified pair of the rows `head` and `head + 1`, with its faults."""
    first = _options(rows[head]["mod"], name, head)
    pair, family = f"{HUMAN}:{head}", f"{WSC273}:{head}"
    strays: dict[str, list[int]] = {}
    for number in (head, head + 1):
        row = rows[number]
        options = _options(row["mod"], name, number) if row["mod"].strip() else first
        text = row["mod_text"].strip() or replaced(row["text"], _options(row["options"], name, number), options)
        item = _item(_Place(HUMAN, number, name, pair, family), {**row, "text": text}, options)
        read.items.append(item)
        for stray in _strays(item):
            strays.setdefault(stray, []).append(number)
        if options != first:
            other = next(one for one, own in zip(first, options, strict=True) if one != own)
            read.faults.append(
                ItemFault(
                    HUMAN,
                    (number,),
                    f"the option {other!r} of the pair's first row is not in this sentence",
                    f"its own row's is taken, {options[first.index(other)]!r}",
                )
            )
    read.faults.extend(_stray_fault(HUMAN, tuple(numbers), what) for what, numbers in strays.items())


def _as_released(rows: Sequence[Mapping[str, Any]], head: int, pair: Sequence[WinogradItem]) -> list[WinogradItem]:
    """The pair as the released code asks it: small letters, options and pronoun of the first row in both sentences."""
    options = pair[0].options
    made = []
    for number, item in zip((head, head + 1), pair, strict=True):
        text = rows[number]["mod_text"]
        if not rows[head]["mod_text"].strip():
            text = rows[number]["text"].lower()
            for old, new in zip(_options(rows[head]["options"], "", head), options, strict=True):
                text = text.replace(old.lower(), new)
        made.append(replace(item, text=text, options=options, pronoun=pair[0].pronoun))
    return made


def _generated(rows: Sequence[Mapping[str, Any]], name: str, published: bool) -> ItemFile:
    """CR-WSC-M: two rows a pair, five pairs a family; a pair is used if `use_tq` is set in either row."""
    read = ItemFile()
    if len(rows) % 2:
        raise UnreadableItemsError(f"{name} has {len(rows)} rows, which are not pairs. Put two rows for each schema.")
    for head in range(0, len(rows), 2):
        flags = [str(rows[number]["use_tq"]).strip() == "1" for number in (head, head + 1)]
        pair = f"{MACHINE}:{head}"
        family = f"{MACHINE}:{head - head % (2 * MACHINE_FAMILY)}"
        items = [
            _item(_Place(MACHINE, number, name, pair, family), rows[number], _entities(rows[number], name, number))
            for number in (head, head + 1)
        ]
        if flags[0] != flags[1]:
            read.faults.append(
                ItemFault(
                    MACHINE, (head, head + 1), "one row of the pair is marked as used and one is not", "both are used"
                )
            )
        if published:
            first = rows[head]
            asked = {"pronoun": first["pronoun"], "options": (first["entity1"], first["entity2"])}
            items = [
                replace(item, text=rows[number]["text"], **asked)
                for number, item in zip((head, head + 1), items, strict=True)
            ]
        if any(flags):
            read.items += items
        strays: dict[str, list[int]] = {}
        for number, item in zip((head, head + 1), items, strict=True):
            for stray in _strays(item):
                strays.setdefault(stray, []).append(number)
        read.faults.extend(_stray_fault(MACHINE, tuple(numbers), what, any(flags)) for what, numbers in strays.items())
    _settle_pronouns(read, published)
    return read


def _plain(rows: Sequence[Mapping[str, Any]], path: Path, published: bool) -> ItemFile:
    """Any other file: pairs by their `pair` column, or neighbouring rows of one schema with both labels."""
    read = ItemFile()
    heads = [] if all(str(row.get("pair") or "") for row in rows) else _pair_heads(rows, path.name)
    for number, row in enumerate(rows):
        pair = str(row["pair"]) if not heads else f"{path.stem}:{heads[number]}"
        options = _entities(row, path.name, number)
        place = _Place(path.stem, number, path.name, pair, str(row.get("family") or pair))
        item = _item(place, row, options)
        read.items.append(item)
        read.faults.extend(
            _stray_fault(path.stem, (number,), f"the option {option!r} is not in the sentence")
            for option in options
            if not stands_in(core(option), item.text)
        )
    counts = Counter(item.pair for item in read.items)
    for number, item in enumerate(read.items):
        if counts[item.pair] > 2:
            raise UnreadableItemsError(
                f"{path.name} row {number}: the pair {item.pair!r} has {counts[item.pair]} rows. Give each pair two."
            )
    _settle_pronouns(read, published)
    return read


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an item stands, and what it belongs to."""

    source: str
    number: int
    file: str
    pair: str
    family: str


def _item(place: _Place, row: Mapping[str, Any], options: tuple[str, str]) -> WinogradItem:
    label = str(row["label"]).strip()
    where = f"{place.file} row {place.number}"
    if label not in ("0", "1"):
        raise UnreadableItemsError(f"{where}: the label is {label!r}. Write 0 or 1, the option that is meant.")
    text = " ".join(str(row["text"]).split())
    pronoun = str(row["pronoun"]).strip()
    if not text or not pronoun:
        raise UnreadableItemsError(f"{where}: the {'pronoun' if text else 'text'} is empty. Fill it in.")
    for cell in (text, pronoun, *options):
        if reason := refusal(cell):
            raise UnreadableItemsError(f"{where}: {reason}.")
    identity = f"{place.source}:{place.number}"
    return WinogradItem(identity, place.pair, place.source, text, pronoun, options, int(label), where, place.family)


def _entities(row: Mapping[str, Any], name: str, number: int) -> tuple[str, str]:
    if row.get("options") is not None:
        return _options(row["options"], name, number)
    return _two([row["entity1"], row["entity2"]], name, number)


def _options(cell: Any, name: str, number: int) -> tuple[str, str]:
    """Two options from a JSON list, or from a cell that holds one as text."""
    try:
        listed = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError):
        listed = None
    return _two(listed, name, number)


def _two(listed: Any, name: str, number: int) -> tuple[str, str]:
    if not isinstance(listed, list) or len(listed) != 2 or not all(isinstance(one, str) for one in listed):
        raise UnreadableItemsError(
            f'{name} row {number}: the options are {listed!r}. Give two, such as ["the cat", "Ann"].'
        )
    one, two = (" ".join(option.split()) for option in listed)
    if not one or not two or one.casefold() == two.casefold():
        raise UnreadableItemsError(f"{name} row {number}: the options are {listed!r}. Give two that differ.")
    return one, two


def replaced(text: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """The sentence with its two entities exchanged for others, both at once; what is not found stays.

    A name that stands there already stays too. At the start of a sentence the first letter is capital, elsewhere an
    article is small.
    """
    found = {one.casefold(): other for one, other in zip(old, new, strict=True) if not stands_in(core(other), text)}
    for one, other in zip(old, new, strict=True):
        if one.casefold() in found and not stands_in(one, text):
            del found[one.casefold()]
            found[core(one).casefold()] = core(other)
    if not found:
        return text
    longest_first = sorted(found, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)('s)?", re.IGNORECASE)

    def exchange(match: re.Match[str]) -> str:
        possessive = match.group(1) or ""
        name = found[match.group(0).removesuffix(possessive).casefold()]
        if _SENTENCE_END.search(text[: match.start()]):
            name = name[0].upper() + name[1:]
        elif _DETERMINER.match(name):
            name = name[0].lower() + name[1:]
        return name.removesuffix("'s") + possessive

    return pattern.sub(exchange, text)


def stands_in(option: str, text: str) -> bool:
    """Whether the phrase stands in the text as words of its own, in small or capital letters."""
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE) is not None


def core(option: str) -> str:
    """The phrase without its article."""
    return _DETERMINER.sub("", option) or option


def _strays(item: WinogradItem) -> list[str]:
    """What is wrong with the options of a published item; articles count, for the release replaces by them."""
    text = item.text.casefold()
    return [f"the option {option!r} is not in the sentence" for option in item.options if option.casefold() not in text]


def _stray_fault(source: str, rows: tuple[int, ...], what: str, used: bool = True) -> ItemFault:
    return ItemFault(source, rows, what, "read as it stands", used)


def pronoun_of(item: WinogradItem) -> str:
    """The pronoun that the sentence asks about: the item's own where the last clause with one has it.

    Else another form of it in that clause (him for he), else the first pronoun of the clause.
    """
    text = item.text
    for option in item.options:
        text = re.sub(rf"(?<!\w){re.escape(option)}(?!\w)", " ", text, flags=re.IGNORECASE)
    for clause in reversed(_CLAUSE.split(text)):
        found = [match.group(0) for match in _PRONOUN.finditer(clause)]
        if not found:
            continue
        own = item.pronoun.casefold()
        forms = next((forms for forms in PRONOUN_FORMS if own in forms), (own,))
        same = [one for one in found if one.casefold() == own]
        kindred = [one for one in found if one.casefold() in forms]
        return (same or kindred or found)[0]
    return item.pronoun


def clause_with(item: WinogradItem, entity: str) -> str | None:
    """The last clause that holds the pronoun, as a sentence about the entity instead: `The boy was so weak.`"""
    for clause in reversed(_CLAUSE.split(item.text)):
        match = re.search(rf"(?<!\w){re.escape(item.pronoun)}(?!\w)", clause, re.IGNORECASE)
        if match is None:
            continue
        behind = clause[match.end() :]
        owning = match.group(0).casefold() in ("his", "its", "their") or (
            match.group(0).casefold() == "her" and _NOUN_BEHIND.match(behind) is not None
        )
        small = f"{entity[0].lower()}{entity[1:]}" if _DETERMINER.match(entity) else entity
        name = f"{small}'s" if owning else small
        sentence = f"{clause[: match.start()]}{name}{behind}".strip(" .,;:!?")
        return f"{sentence[0].upper()}{sentence[1:]}."
    return None


def _settle_pronouns(read: ItemFile, published: bool) -> None:
    """Say which pronouns do not fit their sentences, and take the fitting ones unless `published`."""
    wrong: dict[tuple[str, str, str], list[int]] = {}
    for position, item in enumerate(read.items):
        if item.source == WSC273:
            continue  # its column was made from the sentences, and a clause further up may hold the pronoun
        fitting = pronoun_of(item)
        if fitting.casefold() == item.pronoun.casefold():
            continue
        row = int(item.id.rpartition(":")[2])
        wrong.setdefault((item.source, item.pronoun, fitting), []).append(row)
        if not published:
            read.items[position] = replace(item, pronoun=fitting)
    for (source, own, fitting), rows in wrong.items():
        remedy = "left as published" if published else f"{fitting!r} is taken"
        read.faults.append(
            ItemFault(source, tuple(rows), f"the pronoun asked about is {fitting!r}, not {own!r}", remedy)
        )
