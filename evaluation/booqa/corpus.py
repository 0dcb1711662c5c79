"""The triples of a corpus, and the records of a BoOQA dataset."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

from hapax.evaluation.entailment.pairs import TypedTriple, predicate_words, surface
from hapax.evaluation.entailment.scorers import chinese_sentence
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.files.unfinished import replace_file
from hapax.kb.files.whole_files import read_text

DEV, TEST = "dev", "test"
REPORT = "report.json"
"""File beside the questions with the number of items that each step of a build dropped."""


@dataclass(frozen=True, slots=True)
class Proposition:
    """A question: a proposition, and a label that is true if the corpus states it."""

    mention: Mention
    slice: str
    sentence: int
    """Index in the slice of the sentence that states the proposition, or the positive that it was made from."""

    label: bool
    senses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ids of the synsets chosen, by the words of the positive that were looked up."""

    positive: str = ""
    """The relation that a negative replaces; empty for a positive."""

    def proposition(self, language: str) -> str:
        """The proposition as a sentence."""
        triple = self.mention.triple(language)
        return chinese_sentence(triple) if language == "ZH" else triple.sentence

    def to_json(self, language: str) -> dict[str, Any]:
        """The question under the release's keys; only negatives have `posi_upred`."""
        return {
            # The three parts in the middle are never read here.
            "r": f"({'::'.join(self.mention[:3])}::::0::0::{self.mention.subject_type}::{self.mention.object_type})",
            "partition_key": self.slice,
            "in_partition_sidx": self.sentence,
            "wn_synsets": {words: list(ids) for words, ids in self.senses.items()},
            "label": self.label,
            "proposition": self.proposition(language),
            **({"posi_upred": self.positive} if self.positive else {}),
        }


def write_questions(questions: Iterable[Proposition], path: Path, language: str) -> None:
    """Write the questions, one JSON object per line."""
    lines = (json.dumps(question.to_json(language), ensure_ascii=False) for question in questions)
    replace_file(path, "".join(f"{line}\n" for line in lines))


def read_questions(path: Path) -> list[Proposition]:
    """Read a file of `write_questions` or of the release. Raises HapaxError for a line that is not a question."""
    lines = read_text(path, "Name a set that was built.").splitlines()
    return [_question(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def read_set(folder: Path) -> dict[str, list[Proposition]]:
    """The questions in `dev.jsonl` and `test.jsonl`, else in all `.json` and `.jsonl` files, by file name."""
    built = [folder / f"{name}.jsonl" for name in (DEV, TEST)]
    # The release names its files otherwise, and a build leaves its report beside them.
    paths = [path for path in built if path.is_file()] or sorted(
        path for path in folder.glob("*.json*") if path.name != REPORT
    )
    sets = {path.stem: read_questions(path) for path in paths}
    if not any(sets.values()):
        raise HapaxError(
            f"{folder}: the folder contains no questions.", Remedy("Build some with {}.", Operation("build_questions"))
        )
    return {name: questions for name, questions in sets.items() if questions}


def _question(line: str, place: str) -> Proposition:
    try:
        content = json.loads(line)
        # Only JSON's own truth values: the text "false" would count as true.
        if not isinstance(content["label"], bool):
            raise TypeError(f"the label is {content['label']!r}; write true or false")
        return Proposition(
            read_relation(content["r"]),
            str(content["partition_key"]),
            int(content["in_partition_sidx"]),
            content["label"],
            {words: tuple(map(str, ids)) for words, ids in (content.get("wn_synsets") or {}).items()},
            str(content.get("posi_upred", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        problem = f"key {fault} is missing" if isinstance(fault, KeyError) else str(fault)
        raise HapaxError(
            f"{place}: not a question: {problem}. Write an object with the keys r, partition_key, in_partition_sidx, "
            "wn_synsets, label and proposition."
        ) from None


DAYS = 3
"""Length of a slice, as in the release."""

UNDATED, REPEATED = "undated", "sentence repeated"

BUFFERED = 100_000
"""Number of sentences kept in memory before they are appended to the files of their slices."""

_NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
_MONTHS = {name: number for number, name in enumerate(_NAMES.split(), 1)}
_DATES = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?!\d).*"),
    re.compile(r"(?P<name>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4})(?!\d).*"),
    re.compile(r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})日.*"),
    re.compile(r"(?P<month>\d{1,2})-(?P<day>\d{1,2})(?!\d).*"),
)
"""Formats of dates: ISO, English, Chinese, and month and day alone. The last two may lack the year."""

Pair = tuple[str, str, str, str]
"""Two entities in lower case, and their types. Mentions with the same pair are about the same entities."""


class Mention(NamedTuple):
    """A triple as it occurs in a sentence. `relation` is the predicate as the corpus has it, parsed or not."""

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

    def triple(self, language: str) -> TypedTriple:
        """The mention in words, for scorers. Underscores in arguments become blanks."""
        words = surface(predicate_words(self.relation, language), language)
        subject, object_ = self.subject.replace("_", " "), self.object.replace("_", " ")
        return TypedTriple(subject, words, object_, self.relation, self.types)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a slice. `index` counts the sentences of the slice from 0; `text` may be empty."""

    slice: str
    index: int
    document: str
    text: str
    triples: tuple[Mention, ...]


def slice_of(written: str) -> str | None:
    """The slice of a date, such as `2008_04-21_04-23`, or `07-26_07-28` without a year; None if it is not a date.

    As in the release, slices start anew each year, the last one ends with the year, and every February has 29 days.
    """
    match = next(filter(None, (form.fullmatch(written.strip()) for form in _DATES)), None)
    if match is None:
        return None
    parts = {"year": "", "month": "", **match.groupdict()}
    # An unknown name gives month 0, which `date` refuses below.
    month = _MONTHS.get(parts["name"], 0) if "name" in parts else int(parts["month"])
    new_year = date(2000, 1, 1)  # a leap year
    try:
        number = (date(2000, month, int(parts["day"])) - new_year).days
    except ValueError:
        return None
    first = number - number % DAYS  # slices begin anew on 1 January
    # Day 365 is 31 December of a leap year: the last slice is cut off there.
    ends = (new_year + timedelta(day) for day in (first, min(first + DAYS - 1, 365)))
    return "_".join([*filter(None, [parts["year"]]), *(f"{end:%m-%d}" for end in ends)])


def sentences(paths: Iterable[Path], dropped: Counter[str]) -> Iterator[Sentence]:
    """The sentences of the corpus in order, without undated and repeated ones; `dropped` counts the triples of these.

    Raises HapaxError for a line that is neither a triple nor a sentence of the release.
    """
    digests: set[bytes] = set()  # of the texts, which may not fit in memory
    counts: Counter[str] = Counter()
    for path in paths:
        # Only successive lines make up a sentence; one without text, or with all of its triples, stands alone.
        for _, lines in groupby(
            _lines(path),
            key=lambda line: (line.document, line.date, line.text) if line.text and not line.whole else line.place,
        ):
            first, *others = lines
            # Successive lines with the same sentence carry a triple each.
            triples = tuple(chain(first.triples, *(line.triples for line in others)))
            key = slice_of(first.date)
            if key is None:
                dropped[UNDATED] += len(triples)
                continue
            # Eight bytes: among 100 million sentences the chance of any equal pair is below 0.1 %.
            digest = hashlib.blake2b(first.text.encode(), digest_size=8).digest()
            if first.text and digest in digests:
                dropped[REPEATED] += len(triples)
                continue
            # Empty texts share a digest, but are never compared.
            digests.add(digest)
            yield Sentence(key, counts[key], first.document, first.text, triples)
            counts[key] += 1


class _Line(NamedTuple):
    place: int
    date: str
    document: str
    text: str
    triples: tuple[Mention, ...]
    whole: bool = False


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
        content = json.loads(line)
        if not isinstance(content, dict):
            raise TypeError("not a JSON object")
        if "rels" in content:
            triples = tuple(read_relation(mention["r"]) for mention in content["rels"])
            return _Line(
                number, _text(content["date"]), _text(content["articleId"]), _text(content["s"]), triples, whole=True
            )
        first, second = content["types"]
        mention = Mention(*map(_word, (content["predicate"], content["subject"], content["object"], first, second)))
        text = _text(content.get("sentence", ""))
        return _Line(number, _text(content["date"]), _text(content["document"]), text, (mention,))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        problem = f"key {fault} is missing" if isinstance(fault, KeyError) else str(fault)
        raise HapaxError(
            f"{path}:{number}: {problem}. Write a triple "
            '{"subject": "...", "predicate": "...", "object": "...", "types": ["...", "..."], "date": "2008-04-21", '
            '"document": "..."} or a sentence of the release.'
        ) from None


def _text(value: object) -> str:
    """A string or number as text. Raises ValueError for half a surrogate pair, and TypeError for other values."""
    if not isinstance(value, (str, int)):
        raise TypeError(f"{value!r} is not text")
    text = str(value)
    text.encode()  # a surrogate alone cannot be written to a file
    return text


def _word(value: object) -> str:
    """A part of a triple: text without `::`, which separates the parts in the release's format."""
    if not isinstance(value, str) or not value.strip() or "::" in value:
        raise ValueError(f"{value!r} is not a part of a triple, which is text without '::'")
    return _text(value).strip()


def read_relation(text: object) -> Mention:
    """Read the release's `(predicate::subject::object::..::..::..::type::type)`. Raises ValueError for other text."""
    parts = text[1:-1].split("::") if isinstance(text, str) and text[:1] + text[-1:] == "()" else []
    if len(parts) != 8:
        raise ValueError(f"{text!r} is not a relation (predicate::subject::object::..::..::..::type::type)")
    return Mention(*(_word(parts[place]) for place in (0, 1, 2, 6, 7)))


class SlicedCorpus:
    """A folder with a file for each slice, so that a slice can be read repeatedly without the rest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, sentences: Iterable[Sentence], folder: Path) -> SlicedCorpus:
        """Write the sentences into the folder, keeping at most `BUFFERED` of them in memory."""
        folder.mkdir(parents=True, exist_ok=True)
        corpus = cls(folder)
        waiting: defaultdict[str, list[str]] = defaultdict(list)
        for number, sentence in enumerate(sentences, 1):
            row = (sentence.index, sentence.document, sentence.text, sentence.triples)
            waiting[sentence.slice].append(json.dumps(row, ensure_ascii=False))
            if number % BUFFERED == 0:
                corpus._append(waiting)
                waiting.clear()
        corpus._append(waiting)
        return corpus

    @property
    def slices(self) -> list[str]:
        # Slice names begin with year, month and day, so sorted names are in the order of time.
        return sorted(path.stem for path in self.folder.iterdir())

    def read(self, slice_key: str) -> list[Sentence]:
        """The sentences of a slice, in order."""
        with (self.folder / f"{slice_key}.jsonl").open(encoding="utf-8") as stream:
            sentences = []
            for line in stream:
                index, document, text, triples = json.loads(line)
                mentions = tuple(Mention(*triple) for triple in triples)
                sentences.append(Sentence(slice_key, index, document, text, mentions))
        return sentences

    def _append(self, waiting: Mapping[str, Sequence[Any]]) -> None:
        for slice_key, lines in waiting.items():
            # Opened for each batch: a corpus may have more slices than a process may keep files open.
            with (self.folder / f"{slice_key}.jsonl").open("a", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
