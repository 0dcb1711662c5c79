"""Premise and hypothesis as triples, and the files that hold them. In LevyHolt's files the hypothesis comes first."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from evaluation.entailment.wording import predicate_words, surface
from grammar.errors import HapaxError

FAULTS_SHOWN = 10
"""How many faulty lines of a file are told one by one."""

_LABELS = {"True": True, "False": False}
_ANSWERS = {"yes": True, "no": False}
_PARSED = re.compile(r"(\S*\(\S+,\S+\)) (\S+)::(\S+) (\S+)::(\S+)")
_T = TypeVar("_T")
_SHERLIIC_COLUMNS = (22, 23)
"""SherLIiC's own files, and those of the paper's release, which end in a language."""


@dataclass(frozen=True, slots=True)
class Triple:
    """A predicate with its two arguments, in words: `Person, shopped in, Location`."""

    subject: str
    predicate: str
    object: str

    @property
    def sentence(self) -> str:
        return " ".join(part for part in (self.subject, self.predicate, self.object) if part)

    @property
    def key(self) -> tuple[str, str, str]:
        """What two mentions of one triple share."""
        return (_folded(self.subject), _folded(self.predicate), _folded(self.object))


@dataclass(frozen=True, slots=True)
class TypedTriple(Triple):
    """A triple that knows its predicate as a parser wrote it, and the types of its arguments: what graphs look up."""

    relation: str = ""
    types: tuple[str, str] = ("", "")


ANYTHING = Triple("true", "", "")
"""The premise of a hypothesis-only twin, as in the release."""


@dataclass(frozen=True, slots=True)
class EntailmentPair:
    """Whether `premise` entails `hypothesis`. `place` is the file and line."""

    premise: Triple
    hypothesis: Triple
    entailed: bool
    language: str = "EN"
    place: str = ""

    @property
    def converse_key(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        return (self.hypothesis.key, self.premise.key)

    @property
    def key(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        return (self.premise.key, self.hypothesis.key)

    @property
    def swapped(self) -> bool:
        """Whether the premise names the hypothesis' arguments the other way round."""
        (subject, _, object_), (other, _, last) = self.premise.key, self.hypothesis.key
        return (subject == last or object_ == other) and subject != other and object_ != last

    @property
    def hypothesis_only(self) -> EntailmentPair:
        """The twin that gives away what the hypothesis alone tells (section 3)."""
        return replace(self, premise=ANYTHING)


def read_pairs(path: Path) -> list[EntailmentPair]:
    """SherLIiC's form where the name ends in `.csv`, else LevyHolt's. Raises HapaxError that tells all faulty lines."""
    return read_sherliic(path) if path.suffix == ".csv" else read_levy_holt(path)


def read_levy_holt(path: Path) -> list[EntailmentPair]:
    """Lines of `hypothesis TAB premise TAB True|False [TAB language]`, a triple being `subject,predicate,object`.

    Parsed triples as in entGraph's `_rels.txt`, `(shop.1,shop.in.2) john::person ikea::location`, are read, too.
    """
    return _collected(path, [line.split("\t") for line in _text(path).splitlines()], _levy_holt_pair)


def write_levy_holt(pairs: Iterable[EntailmentPair], path: Path) -> None:
    """The same form. A comma inside an argument would shift the columns and is refused."""
    path.write_text("".join(map(_levy_holt_line, pairs)), "utf-8")


def read_sherliic(path: Path) -> list[EntailmentPair]:
    """SherLIiC's CSV with its header line. The first example entity of each type stands for the type."""
    try:
        rows = list(csv.reader(io.StringIO(_text(path), newline=""), strict=True))
    except csv.Error as fault:
        raise HapaxError(f"{path}: no CSV ({fault}). Mend or replace the file.") from None
    return _collected(path, rows[1:], _sherliic_pair, first=2)


def read_scores(path: Path) -> list[tuple[bool, float]]:
    """Lines of `truth score`, as the paper's training code writes them: 1 or 0, and a finite number."""
    lines = _text(path, "Name a file of `truth score` lines, such as test-scores.txt of a training").splitlines()
    return _collected(path, [line.split() for line in lines], _scored)


def _text(path: Path, remedy: str = "Name a file of premises and hypotheses") -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). {remedy}.") from None


def _collected(
    path: Path, rows: Sequence[Sequence[str]], read: Callable[[Sequence[str], str], _T], first: int = 1
) -> list[_T]:
    """What each row says, or one error that tells all faulty ones. Empty lines say nothing."""
    found: list[_T] = []
    faults: list[str] = []
    for number, row in enumerate(rows, first):
        if not any(cell.strip() for cell in row):
            continue
        try:
            found.append(read(row, f"{path.name}:{number}"))
        except ValueError as fault:
            faults.append(f"{path}:{number}: {fault}")
    if faults:
        more = len(faults) - FAULTS_SHOWN
        told = [*faults[:FAULTS_SHOWN], *([f"and {more} more faulty lines"] if more > 0 else [])]
        raise HapaxError("\n".join(told))
    if not found:
        raise HapaxError(f"{path}: holds no line of data. Name another file.")
    return found


def _levy_holt_pair(fields: Sequence[str], place: str) -> EntailmentPair:
    if len(fields) not in (3, 4):
        raise ValueError(
            f"has {len(fields)} fields between tabs; it takes hypothesis, premise, True or False, language."
        )
    hypothesis, premise, label, *language = (field.strip() for field in fields)
    if label not in _LABELS:
        raise ValueError(f"the label is {label!r}; write True or False.")
    return EntailmentPair(_triple(premise), _triple(hypothesis), _LABELS[label], "".join(language) or "EN", place)


def _triple(text: str) -> Triple:
    parsed = _PARSED.fullmatch(text)
    if parsed is not None:
        relation, subject, subject_type, object_, object_type = parsed.groups()
        words = surface(predicate_words(relation))
        return TypedTriple(_plain(subject), words, _plain(object_), relation, (subject_type, object_type))
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3:
        raise ValueError(f"{text!r} is no triple; write subject,predicate,object.")
    if not any(parts):
        raise ValueError("a triple is empty; write subject,predicate,object.")
    return Triple(*parts)


def _plain(argument: str) -> str:
    return argument.replace("-", " ")


def _levy_holt_line(pair: EntailmentPair) -> str:
    triples = [(one.subject, one.predicate, one.object) for one in (pair.hypothesis, pair.premise)]
    for part in (part for triple in triples for part in triple):
        if part != part.strip() or any(sign in part for sign in ",\t\n\r"):
            raise HapaxError(
                f"{pair.place or pair.hypothesis.sentence}: {part!r} holds a comma, a tab, a line break or outer "
                "blanks, for which the form has no place. Take them out."
            )
    return "\t".join([*map(",".join, triples), str(pair.entailed), pair.language]) + "\n"


def _sherliic_pair(row: Sequence[str], place: str) -> EntailmentPair:
    if len(row) not in _SHERLIIC_COLUMNS:
        raise ValueError(f"has {len(row)} columns; SherLIiC's files have {' or '.join(map(str, _SHERLIIC_COLUMNS))}.")
    answer = row[17]
    if answer not in _ANSWERS:
        raise ValueError(f"the answer in column 18 is {answer!r}; write yes or no.")
    examples = row[15].split(" / ")[0].strip(), row[16].split(" / ")[0].strip()
    premise = _sherliic_triple(row[6], row[8], examples, row[13] == "True")
    hypothesis = _sherliic_triple(row[10], row[12], examples, row[14] == "True")
    return EntailmentPair(premise, hypothesis, _ANSWERS[answer], row[22] if len(row) > 22 else "EN", place)


def _sherliic_triple(middle: str, end: str, examples: tuple[str, str], swapped: bool) -> Triple:
    left, right = reversed(examples) if swapped else examples
    return Triple(left, middle.strip(), f"{right} {end.strip()}".strip())


def _scored(fields: Sequence[str], place: str) -> tuple[bool, float]:  # noqa: ARG001  # one shape for all readers
    truth, score = fields if len(fields) == 2 else ("", "")
    if truth not in ("0", "1"):
        raise ValueError("write 1 or 0, a blank, and the score.")
    number = float(score)
    if not math.isfinite(number):
        raise ValueError(f"the score is {score}; write a finite number.")
    return truth == "1", number


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
