"""Premise-hypothesis pairs as triples, the words of their predicates, and the formats of their files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from hapax.grammar.errors import HapaxError
from hapax.kb.files.unfinished import replace_file

_PREDICATE = re.compile(r"([^()]*)\((.*)\.\d,(.*)\.\d\)")
"""The prefix, and the predicate once for each argument."""

_JOINTS = re.compile(r"[.\-_]+")
_BLANKS = re.compile(r"[\s_]+")

_AUXILIARIES = frozenset({"is", "are", "would", "should", "must", "have"})


def predicate_words(predicate: str, language: str = "EN") -> tuple[str, ...]:
    """The words of a predicate in lower case: `NEG__(go.1,go.to.2)` is `do not go to`.

    Chinese words are separated by `·`, and `X` marks the object's place.
    """
    parsed = _PREDICATE.fullmatch(predicate.strip())
    if language == "ZH":
        return tuple(part for part in (parsed[2] if parsed else predicate.strip()).split("·") if part)
    if parsed is None:
        return tuple(word for word in _BLANKS.split(predicate.casefold()) if word)
    return _with_prefix(parsed[1], _split(parsed[3]))  # the second half of an English parse has the preposition


def surface(words: tuple[str, ...], language: str = "EN") -> str:
    """The words joined to the predicate of a triple, in the form that the prompts take."""
    return ("·" if language == "ZH" else " ").join(words)


def _split(text: str) -> tuple[str, ...]:
    return tuple(word for word in _JOINTS.split(text.casefold()) if word)


def _with_prefix(prefix: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """`try__(visit.1,visit.2)` is `try to visit`."""
    before = _split(prefix)
    if not before:
        return words
    if before == ("neg",):
        return (words[0], "not", *words[1:]) if words[:1] and words[0] in _AUXILIARIES else ("do", "not", *words)
    if len(before) == 1:
        before = (*before, "to")
    # A prefix that ends in the predicate's first word does not repeat it.
    return (*before, *(words[1:] if words[:1] == before[-1:] else words))


FAULTS_SHOWN = 10
"""Number of faulty lines of a file that an error message lists."""

_LABELS = {"True": True, "False": False}
_ANSWERS = {"yes": True, "no": False}
# `(shop.1,shop.in.2) john::person ikea::location`: relation, then each argument with its type, which may have blanks.
_PARSED = re.compile(r"(\S*\(\S+,\S+\)) (\S+)::\s*(\S.*?) (\S+)::\s*(\S.*)")
_T = TypeVar("_T")
_SHERLIIC_COLUMNS = (22, 23)
"""Numbers of columns of SherLIiC's own files, and of those in the paper's release, which append the language."""


@dataclass(frozen=True, slots=True)
class Triple:
    """A predicate and its two arguments, in words: `Person, shopped in, Location`."""

    subject: str
    predicate: str
    object: str

    @property
    def sentence(self) -> str:
        return " ".join(part for part in (self.subject, self.predicate, self.object) if part)

    @property
    def key(self) -> tuple[str, str, str]:
        """The parts with case and blanks folded: equal for two mentions of the same triple."""
        return (_folded(self.subject), _folded(self.predicate), _folded(self.object))


@dataclass(frozen=True, slots=True)
class TypedTriple(Triple):
    """A triple with the types of its arguments and its predicate as a parser wrote it, for graph look-ups."""

    relation: str = ""
    types: tuple[str, str] = ("", "")


UNPARSED = Triple("", "", "")
"""A side that the parser of entGraph's files made nothing of; graphs score it 0, as in the release."""

ANYTHING = Triple("true", "", "")
"""The premise of a hypothesis-only twin, as in the release."""

Key = tuple[str, str, str]
"""A triple with case and blanks folded."""


@dataclass(frozen=True, slots=True)
class EntailmentPair:
    """A premise, a hypothesis, and the label `entailed`. `place` is the file and line.

    `verbal`: the predicates begin with a verb in the present, as in SherLIiC's files, so that they can be negated.
    """

    premise: Triple
    hypothesis: Triple
    entailed: bool
    language: str = "EN"
    place: str = ""
    verbal: bool = False

    @property
    def converse_key(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        return (self.hypothesis.key, self.premise.key)

    @property
    def key(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        return (self.premise.key, self.hypothesis.key)

    @property
    def swapped(self) -> bool:
        """True if the premise has the hypothesis' arguments in reverse order."""
        subject, _, object_ = self.premise.key
        hypothesis_subject, _, hypothesis_object = self.hypothesis.key
        # One matching argument is enough: the other may be worded differently.
        crosses = subject == hypothesis_object or object_ == hypothesis_subject
        return crosses and subject != hypothesis_subject and object_ != hypothesis_object

    @property
    def hypothesis_only(self) -> EntailmentPair:
        """The twin without a premise, which measures how much the hypothesis alone reveals (section 3)."""
        return replace(self, premise=ANYTHING)


class VisibleSides(StrEnum):
    """The sides of a pair that a scorer sees."""

    BOTH = "both"
    HYPOTHESIS = "hypothesis"
    PREMISE = "premise"

    def of(self, pair: EntailmentPair) -> EntailmentPair:
        """The pair without the side that is not shown."""
        if self is VisibleSides.HYPOTHESIS:
            return pair.hypothesis_only
        return replace(pair, hypothesis=ANYTHING) if self is VisibleSides.PREMISE else pair


def read_pairs(path: Path) -> list[EntailmentPair]:
    """Read SherLIiC's format if the name ends in `.csv`, else LevyHolt's. Raises HapaxError with the faulty lines."""
    if path.suffix == ".csv":
        return read_sherliic(path)
    return read_levy_holt(path)


def read_levy_holt(path: Path) -> list[EntailmentPair]:
    """Read lines of `hypothesis TAB premise TAB True|False [TAB language]`; a triple is `subject,predicate,object`.

    Also accepts sentences, written `sentence,,` as in SherLIiC's files, and parsed triples as in entGraph's
    `_rels.txt`: `(shop.1,shop.in.2) john::person ikea::location`, of which one side may be empty.
    """
    rows = [line.split("\t") for line in _text(path).splitlines()]
    return _collected(path, rows, _levy_holt_pair)


def write_levy_holt(pairs: Iterable[EntailmentPair], path: Path) -> None:
    """Write LevyHolt's format. Raises HapaxError for text that would shift its columns."""
    replace_file(path, "".join(map(_levy_holt_line, pairs)))


def read_sherliic(path: Path) -> list[EntailmentPair]:
    """Read SherLIiC's CSV with its header line. A type is represented by its first example entity."""
    try:
        rows = list(csv.reader(io.StringIO(_text(path), newline=""), strict=True))
    except csv.Error as fault:
        raise HapaxError(f"{path}: not valid CSV ({fault}). Correct or replace the file.") from None
    # The first line is the header.
    return _collected(path, rows[1:], _sherliic_pair, first=2)


def read_scores(path: Path) -> list[tuple[bool, float]]:
    """Read lines of `truth score`, as the paper's training code writes them: 1 or 0, and a finite number."""
    lines = _text(path, "Name a file of `truth score` lines, such as the test-scores.txt of a training").splitlines()
    return _collected(path, [line.split() for line in lines], _scored)


def _text(path: Path, remedy: str = "Name a file of premises and hypotheses") -> str:
    try:
        return path.read_text("utf-8-sig")  # with or without a byte order mark
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). {remedy}.") from None


def _collected(
    path: Path,
    rows: Sequence[Sequence[str]],
    read: Callable[[Sequence[str], str], _T],
    first: int = 1,
) -> list[_T]:
    """The values that `read` returns for all rows but empty ones.

    Raises one HapaxError for all faulty rows.
    """
    values: list[_T] = []
    faults: list[str] = []
    for number, row in enumerate(rows, first):
        if not any(cell.strip() for cell in row):  # an empty line still counts in line numbers
            continue
        try:
            values.append(read(row, f"{path.name}:{number}"))
        except ValueError as fault:
            faults.append(f"{path}:{number}: {fault}")
    if faults:
        more = len(faults) - FAULTS_SHOWN
        lines = [*faults[:FAULTS_SHOWN], *([f"and {more} more faulty lines"] if more > 0 else [])]
        raise HapaxError("\n".join(lines))
    if not values:
        raise HapaxError(f"{path}: the file contains no data. Name another file.")
    return values


def _levy_holt_pair(fields: Sequence[str], place: str) -> EntailmentPair:
    if len(fields) not in (3, 4):
        raise ValueError(
            f"{len(fields)} fields between tabs; write hypothesis, premise, True or False and, optionally, a language."
        )
    hypothesis, premise, label, *language = (field.strip() for field in fields)
    if label not in _LABELS:
        raise ValueError(f"the label is {label!r}; write True or False.")
    # In entGraph's files a side that could not be parsed is empty beside one that was.
    is_parsed = any(_PARSED.fullmatch(side) for side in (premise, hypothesis))
    premise_triple, hypothesis_triple = (
        UNPARSED if is_parsed and not side else _triple(side) for side in (premise, hypothesis)
    )
    return EntailmentPair(premise_triple, hypothesis_triple, _LABELS[label], "".join(language) or "EN", place)


def _triple(text: str) -> Triple:
    parsed = _PARSED.fullmatch(text)
    if parsed is not None:
        relation, subject, subject_type, object_, object_type = parsed.groups()
        words = surface(predicate_words(relation))
        # A parse joins the words of an argument by hyphens.
        subject, object_ = subject.replace("-", " "), object_.replace("-", " ")
        return TypedTriple(subject, words, object_, relation, (subject_type, object_type))
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3 and parts[-2:] == ["", ""]:
        # A whole sentence in the place of the subject, as in SherLIiC's files, with commas of its own.
        parts = [text.strip().removesuffix(",").strip().removesuffix(",").strip(), "", ""]
    if len(parts) != 3:
        raise ValueError(f"{text!r} is not a triple; write subject,predicate,object.")
    if not any(parts):
        raise ValueError("a triple is empty; write subject,predicate,object.")
    return Triple(*parts)


def _levy_holt_line(pair: EntailmentPair) -> str:
    fields = []
    for triple in (pair.hypothesis, pair.premise):
        parts = (triple.subject, triple.predicate, triple.object)
        for part in parts:
            if part != part.strip() or any(sign in part for sign in ",\t\n\r"):
                raise HapaxError(
                    f"{pair.place or pair.hypothesis.sentence}: {part!r} contains a comma, a tab, a line break or "
                    "outer blanks, which LevyHolt's format cannot represent. Remove them."
                )
        fields.append(",".join(parts))
    return "\t".join([*fields, str(pair.entailed), pair.language]) + "\n"


def _sherliic_pair(row: Sequence[str], place: str) -> EntailmentPair:
    if len(row) not in _SHERLIIC_COLUMNS:
        raise ValueError(f"{len(row)} columns; SherLIiC's files have {' or '.join(map(str, _SHERLIIC_COLUMNS))}.")
    answer = row[17]
    if answer not in _ANSWERS:
        raise ValueError(f"the answer in column 18 is {answer!r}; write yes or no.")
    # Columns, from 0: 6 and 8 the premise, 10 and 12 the hypothesis (middle and end of a sentence), 13 and 14 whether
    # these have their arguments reversed, 15 and 16 examples of either type.
    examples = row[15].split(" / ")[0].strip(), row[16].split(" / ")[0].strip()
    premise = _sherliic_triple(row[6], row[8], examples, row[13] == "True")
    hypothesis = _sherliic_triple(row[10], row[12], examples, row[14] == "True")
    language = row[22] if len(row) > 22 else "EN"
    return EntailmentPair(premise, hypothesis, _ANSWERS[answer], language, place, verbal=True)


def _sherliic_triple(middle: str, end: str, examples: tuple[str, str], swapped: bool) -> Triple:
    left, right = reversed(examples) if swapped else examples
    return Triple(left, middle.strip(), f"{right} {end.strip()}".strip())


def _scored(fields: Sequence[str], place: str) -> tuple[bool, float]:  # noqa: ARG001  # one shape for all readers
    truth, score = fields if len(fields) == 2 else ("", "")
    if truth not in ("0", "1"):
        raise ValueError("write 1 or 0, a space and the score.")
    number = float(score)
    if not math.isfinite(number):
        raise ValueError(f"the score is {score}; write a finite number.")
    return truth == "1", number


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
