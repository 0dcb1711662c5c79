"""A corpus of triples as slices of some days: reading it, and keeping each slice in a file of its own.

A line of the corpus is one triple, or a sentence of the release with all of its triples.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.entailment.pairs import TypedTriple
from evaluation.entailment.wording import predicate_words, surface
from grammar.errors import HapaxError

DAYS = 3
"""The length of a slice in the release."""

UNDATED, REPEATED = "undated", "sentence repeated"

BUFFERED = 100_000
"""Sentences kept in memory before they are written to their slices' files."""

_NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
_MONTHS = {name: number for number, name in enumerate(_NAMES.split(), 1)}
_DATES = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?!\d).*"),
    re.compile(r"(?P<name>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4})(?!\d).*"),
    re.compile(r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})日.*"),
    re.compile(r"(?P<month>\d{1,2})-(?P<day>\d{1,2})(?!\d).*"),
)
"""ISO, the release's English and Chinese dates, and Chinese as written; the last two may have no year."""

Pair = tuple[str, str, str, str]
"""Two entities in small letters, and their types: what makes mentions speak of the same."""


class Mention(NamedTuple):
    """One triple as a sentence has it. `relation`: the predicate as it stands in the corpus, parsed or not."""

    relation: str
    subject: str
    object: str
    subject_type: str
    object_type: str

    @property
    def pair(self) -> Pair:
        return (self.subject.casefold(), self.object.casefold(), self.subject_type, self.object_type)

    @property
    def types(self) -> tuple[str, str]:
        return self.subject_type, self.object_type

    def told(self, language: str) -> TypedTriple:
        """As scorers take it. Underscores in arguments are blanks."""
        words = surface(predicate_words(self.relation, language), language)
        subject, object_ = (one.replace("_", " ") for one in (self.subject, self.object))
        return TypedTriple(subject, words, object_, self.relation, self.types)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in its slice. `index` counts the slice's sentences from 0; `text` may be empty."""

    slice: str
    index: int
    document: str
    text: str
    triples: tuple[Mention, ...]


def slice_of(written: str, days: int = DAYS) -> str | None:
    """The slice of a date, such as `2008_04-21_04-23`, or `07-26_07-28` where no year is given; None for no date.

    As in the release each year begins its own slices, the last ends with it, and every February has 29 days.
    """
    found = next((match for form in _DATES if (match := form.fullmatch(written.strip()))), None)
    if found is None:
        return None
    parts = {"year": "", "month": "", **found.groupdict()}
    month = _MONTHS.get(parts["name"], 0) if "name" in parts else int(parts["month"])
    new_year = date(2000, 1, 1)
    try:
        number = (date(2000, month, int(parts["day"])) - new_year).days
    except ValueError:
        return None
    first = number - number % days
    ends = (new_year + timedelta(day) for day in (first, min(first + days - 1, 365)))
    return "_".join([*filter(None, [parts["year"]]), *(f"{end:%m-%d}" for end in ends)])


def sentences(paths: Iterable[Path], days: int, dropped: Counter[str]) -> Iterator[Sentence]:
    """The corpus in order, without sentences that have no date, or stood there before; `dropped` counts their triples.

    Raises HapaxError for a line that is neither a triple nor a sentence of the release.
    """
    seen: set[bytes] = set()
    counts: Counter[str] = Counter()
    for path in paths:
        for _, lines in groupby(_lines(path), key=_sentence_key):
            first, *more = lines
            triples = tuple(triple for line in (first, *more) for triple in line.triples)
            key = slice_of(first.date, days)
            if key is None:
                dropped[UNDATED] += len(triples)
                continue
            digest = hashlib.blake2b(first.text.encode(), digest_size=8).digest()
            if first.text and digest in seen:
                dropped[REPEATED] += len(triples)
                continue
            seen.add(digest)
            yield Sentence(key, counts[key], first.document, first.text, triples)
            counts[key] += 1


class _Line(NamedTuple):
    place: int
    date: str
    document: str
    text: str
    triples: tuple[Mention, ...]
    whole: bool = False


def _sentence_key(line: _Line) -> tuple[object, ...]:
    """Triples that follow one another with one text and document are one sentence; any other line is its own."""
    return (line.document, line.date, line.text) if line.text and not line.whole else (line.place,)


def _lines(path: Path) -> Iterator[_Line]:
    try:
        with path.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield _line(line, path, number)
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a corpus of triples.") from None


def _line(line: str, path: Path, number: int) -> _Line:
    try:
        said = json.loads(line)
        if not isinstance(said, dict):
            raise TypeError("no JSON object")
        if "rels" in said:
            triples = tuple(read_relation(one["r"]) for one in said["rels"])
            return _Line(number, _text(said["date"]), _text(said["articleId"]), _text(said["s"]), triples, whole=True)
        first, second = said["types"]
        one = Mention(*map(_word, (said["predicate"], said["subject"], said["object"], first, second)))
        return _Line(number, _text(said["date"]), _text(said["document"]), _text(said.get("sentence", "")), (one,))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        told = f"lacks {fault}" if isinstance(fault, KeyError) else str(fault)
        raise HapaxError(
            f"{path}:{number}: {told}. A line is a triple "
            '{"subject": "...", "predicate": "...", "object": "...", "types": ["...", "..."], "date": "2008-04-21", '
            '"document": "..."} or a sentence of the release.'
        ) from None


def _text(value: object) -> str:
    """A string or number as text. Halves of surrogate pairs, which no file can hold, raise ValueError."""
    if not isinstance(value, (str, int)):
        raise TypeError(f"{value!r} is no text")
    text = str(value)
    text.encode()
    return text


def _word(value: object) -> str:
    """A part of a triple. `::` stands between the parts of a record."""
    if not isinstance(value, str) or not value.strip() or "::" in value:
        raise ValueError(f"{value!r} is no part of a triple, which is text without '::'")
    return _text(value).strip()


def read_relation(text: object) -> Mention:
    """The release's `(predicate::subject::object::..::..::..::type::type)`. Raises ValueError for anything else."""
    parts = text[1:-1].split("::") if isinstance(text, str) and text[:1] + text[-1:] == "()" else []
    if len(parts) != 8:
        raise ValueError(f"{text!r} is no relation (predicate::subject::object::..::..::..::type::type)")
    return Mention(*(_word(parts[place]) for place in (0, 1, 2, 6, 7)))


def write_relation(one: Mention) -> str:
    """The same form. Of its three parts in the middle one is empty and two are 0: nothing here reads them."""
    return f"({one.relation}::{one.subject}::{one.object}::::0::0::{one.subject_type}::{one.object_type})"


class SlicedCorpus:
    """A folder with a file for each slice, which is read again and again without the rest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, found: Iterable[Sentence], folder: Path) -> SlicedCorpus:
        """Written in one go; no more than `BUFFERED` sentences are kept in memory."""
        folder.mkdir(parents=True, exist_ok=True)
        corpus = cls(folder)
        waiting: defaultdict[str, list[str]] = defaultdict(list)
        for number, one in enumerate(found, 1):
            row = (one.index, one.document, one.text, one.triples)
            waiting[one.slice].append(json.dumps(row, ensure_ascii=False))
            if number % BUFFERED == 0:
                corpus._append(waiting)
                waiting.clear()
        corpus._append(waiting)
        return corpus

    @property
    def slices(self) -> list[str]:
        return sorted(path.stem for path in self.folder.iterdir())

    def read(self, slice_key: str) -> list[Sentence]:
        """The sentences of one slice, in order."""
        with (self.folder / f"{slice_key}.jsonl").open(encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
        return [
            Sentence(slice_key, index, document, text, tuple(Mention(*triple) for triple in triples))
            for index, document, text, triples in rows
        ]

    def _append(self, waiting: Mapping[str, Sequence[Any]]) -> None:
        for slice_key, lines in waiting.items():
            with (self.folder / f"{slice_key}.jsonl").open("a", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
