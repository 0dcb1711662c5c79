"""Premise-hypothesis pairs: their words and files, and LevyHolt's sub-groups, pairings, splits and changed copies."""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, combinations
from pathlib import Path
from typing import Annotated, TypeVar

from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.kb.files.unfinished import replace_file
from hapax.kb.files.whole_files import read_text

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

_PAIRS = "Name a file of premises and hypotheses."
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
    rows = [line.split("\t") for line in read_text(path, _PAIRS).splitlines()]
    return _collected(path, rows, _levy_holt_pair)


def write_levy_holt(pairs: Iterable[EntailmentPair], path: Path) -> None:
    """Write LevyHolt's format. Raises HapaxError for text that would shift its columns."""
    replace_file(path, "".join(map(_levy_holt_line, pairs)))


def read_sherliic(path: Path) -> list[EntailmentPair]:
    """Read SherLIiC's CSV with its header line. A type is represented by its first example entity."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, _PAIRS), newline=""), strict=True))
    except csv.Error as fault:
        raise HapaxError(f"{path}: not valid CSV ({fault}). Correct or replace the file.") from None
    # The first line is the header.
    return _collected(path, rows[1:], _sherliic_pair, first=2)


def read_scores(path: Path) -> list[tuple[bool, float]]:
    """Read lines of `truth score`, as the paper's training code writes them: 1 or 0, and a finite number."""
    lines = read_text(
        path, "Name a file of `truth score` lines, such as the test-scores.txt of a training."
    ).splitlines()
    return _collected(path, [line.split() for line in lines], _scored)


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


class SubGroup(StrEnum):
    """The sub-groups, named as in the paper."""

    DIR_TRUE = "DirTrue"
    DIR_FALSE = "DirFalse"
    PARAPHRASES = "Paraphrases"
    UNRELATED = "Unrelated"


PAIRINGS: tuple[tuple[SubGroup, SubGroup], ...] = tuple(combinations(SubGroup, 2))
"""All six pairs of sub-groups."""

PAPER_SIZES: Mapping[str, Mapping[SubGroup, int]] = {
    split: dict(zip(SubGroup, sizes, strict=True))
    for split, sizes in {
        "train": (251, 251, 615, 3255),
        "dev": (64, 64, 155, 831),
        "test": (892, 892, 1939, 9198),
    }.items()
}
"""The sizes that the paper prints. Its authors, too, drew at random which split a pair and its converse went to."""

RELEASED_PAIRINGS: Mapping[str, tuple[SubGroup, SubGroup]] = {
    "symposi_dirposi": (SubGroup.DIR_TRUE, SubGroup.PARAPHRASES),
    "dirnegi_symnegi": (SubGroup.DIR_FALSE, SubGroup.UNRELATED),
}
"""Pairings whose files in the release are not those of the sub-groups, by name there. The first group is true."""

RELEASED_SIZES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "test": {"symposi_dirposi": (924, 1716), "dirnegi_symnegi": (918, 9172)}
}
"""Numbers of true and of false lines in the release's files, by split."""

_TRUE_GROUPS = (SubGroup.DIR_TRUE, SubGroup.PARAPHRASES)


def sub_groups(pairs: Sequence[EntailmentPair]) -> list[SubGroup]:
    """Each pair's sub-group, in order, from its label and that of its converse among `pairs`.

    A true pair is directional if a converse is false, a false pair if a converse is true.
    """
    # A set, because a pair may be repeated with another label.
    labels: defaultdict[object, set[bool]] = defaultdict(set)
    for pair in pairs:
        labels[pair.key].add(pair.entailed)
    groups = []
    for pair in pairs:
        # Without a converse a true pair is a paraphrase and a false one unrelated: this gives the paper's counts.
        converse = labels.get(pair.converse_key, set())
        if pair.entailed:
            groups.append(SubGroup.DIR_TRUE if False in converse else SubGroup.PARAPHRASES)
        else:
            groups.append(SubGroup.DIR_FALSE if True in converse else SubGroup.UNRELATED)
    return groups


def released_sub_groups(pairs: Sequence[EntailmentPair]) -> list[SubGroup | None]:
    """Each pair's sub-group as the release's two pairings of equally labelled pairs have it; None: in neither.

    A pair whose converse is missing takes the label of a pair with the same two predicates in reverse order, whatever
    its arguments; a true pair without such a pair is left out. Of several labels the last one counts. No page
    describes this: it is inferred from the sizes of the release's files, whose lines over train and dev it reproduces
    (1,018 and 4,401). Which lines are the positive ones cannot be told from these.
    """
    exact: dict[object, bool] = {}
    by_predicates: dict[tuple[str, str], bool] = {}
    for pair in pairs:
        exact[pair.key] = pair.entailed
        by_predicates[pair.premise.key[1], pair.hypothesis.key[1]] = pair.entailed
    groups: list[SubGroup | None] = []
    for pair in pairs:
        reversed_predicates = (pair.hypothesis.key[1], pair.premise.key[1])
        converse = exact.get(pair.converse_key, by_predicates.get(reversed_predicates))
        if pair.entailed:
            known = {True: SubGroup.PARAPHRASES, False: SubGroup.DIR_TRUE}
            groups.append(None if converse is None else known[converse])
        else:
            groups.append(SubGroup.DIR_FALSE if converse else SubGroup.UNRELATED)
    return groups


def released_subset(pairs: Sequence[EntailmentPair], name: str) -> list[EntailmentPair]:
    """The pairs of a pairing of `RELEASED_PAIRINGS`, in order, with the directional ones as the true ones."""
    directional, _ = chosen = RELEASED_PAIRINGS[name]
    members = []
    for pair, group in zip(pairs, released_sub_groups(pairs), strict=True):
        if group in chosen:
            members.append(replace(pair, entailed=group is directional))
    return members


def counts(pairs: Sequence[EntailmentPair]) -> dict[SubGroup, int]:
    """Number of pairs in each sub-group."""
    groups = sub_groups(pairs)
    return {group: groups.count(group) for group in SubGroup}


def subset(pairs: Sequence[EntailmentPair], chosen: Iterable[SubGroup]) -> list[EntailmentPair]:
    """The pairs of these sub-groups, in order, labelled so that a scorer can be measured on them.

    If both sub-groups have the same label, the directional one (`DirTrue` or `DirFalse`) becomes the positive class,
    as in the release's `symposi_dirposi` and `dirnegi_symnegi`.
    """
    groups = set(chosen)
    members = [(pair, group) for pair, group in zip(pairs, sub_groups(pairs), strict=True) if group in groups]
    # Both groups have one label: the directional pairs are to be told from the symmetric ones.
    if len({group in _TRUE_GROUPS for group in groups}) == 1:
        return [replace(pair, entailed=group in (SubGroup.DIR_TRUE, SubGroup.DIR_FALSE)) for pair, group in members]
    return [pair for pair, _ in members]


def pairing_name(pairing: tuple[SubGroup, SubGroup]) -> str:
    """The name of a pairing, such as `DirTrue-DirFalse`."""
    return "-".join(pairing)


def leaks(splits: Mapping[str, Sequence[EntailmentPair]]) -> int:
    """Number of pairs whose converse, or a duplicate, is in another split."""
    # By wording: a duplicate in another split leaks as much as a converse.
    homes: defaultdict[object, set[str]] = defaultdict(set)
    for name, pairs in splits.items():
        for pair in pairs:
            homes[pair.key].add(name)
    count = 0
    for name, pairs in splits.items():
        for pair in pairs:
            elsewhere = (homes[pair.key] | homes.get(pair.converse_key, set())) - {name}
            count += bool(elsewhere)
    return count


def split_again(splits: Mapping[str, Sequence[EntailmentPair]], seed: int = 0) -> dict[str, list[EntailmentPair]]:
    """Split the pairs again, with every pair in the same split as its converse (section 2, footnote 3).

    If they were in different splits, one of these is drawn for all of them, weighted by how many of them each had.
    """
    homes: defaultdict[object, list[str]] = defaultdict(list)
    for name, pairs in splits.items():
        for pair in pairs:
            homes[pair_and_converse(pair)].append(name)
    chosen: dict[object, str] = {}
    for both, names in homes.items():
        # Seeded by the pair itself, and drawn from sorted names, so that the order of lines changes nothing.
        draw = random.Random(f"{seed} {both}")  # noqa: S311  # no secret
        chosen[both] = names[0] if len(set(names)) == 1 else draw.choice(sorted(names))
    again: dict[str, list[EntailmentPair]] = {name: [] for name in splits}
    for pairs in splits.values():
        for pair in pairs:
            again[chosen[pair_and_converse(pair)]].append(pair)
    return again


def pair_and_converse(pair: EntailmentPair) -> tuple[object, ...]:
    """A key that a pair has in common with its converse."""
    return tuple(sorted(pair.key))


FULL = "full"
HYPOTHESIS_ONLY = "hypothesis-only"

Splits = Mapping[str, Sequence[EntailmentPair]]


@dataclass(frozen=True, slots=True)
class DataReport:
    """Sub-groups of the splits as given, and of the same pairs split again, without a converse in another split.

    `leaks`: number of pairs that `given` separates from their converse.
    """

    given: Splits
    splits: Splits
    leaks: int

    def evaluation(self) -> Evaluation[DataReport]:
        """The counts, those that the paper prints, and a note on the effect of splitting again."""
        sizes = {name: counts(pairs) for name, pairs in self.splits.items()}
        together = counts(list(chain.from_iterable(self.splits.values())))
        rows = {**sizes, **({"together": together} if len(sizes) > 1 else {})}
        # The paper's splits are named train, dev and test; other names have no printed sizes.
        printed = {name: PAPER_SIZES[name] for name in sizes if name in PAPER_SIZES}
        tables = [_sizes_table("Sub-groups, no converse in another split", rows)]
        if printed:
            tables.append(_sizes_table("Sub-groups as the paper prints them", printed))
        splits: dict[str, dict[str, int]] = {}
        released: dict[str, dict[str, tuple[int, int]]] = {}
        pairings = []
        for name, pairs in self.splits.items():
            splits[name] = {"pairs": len(pairs), "true": _true_pairs(sizes[name])}
            splits[name] |= {group.value: size for group, size in sizes[name].items()}
            released[name] = {}
            for pairing, groups in RELEASED_PAIRINGS.items():
                labels = [pair.entailed for pair in released_subset(pairs, pairing)]
                released[name][pairing] = (labels.count(True), labels.count(False))
                of_groups = [sizes[name][group] for group in groups]
                numbers = (of_groups, released[name][pairing], RELEASED_SIZES.get(name, {}).get(pairing, ()))
                derived, by_rule, in_file = (" / ".join(map(str, both)) for both in numbers)
                pairings.append((name, pairing_name(groups), derived, pairing, by_rule, in_file))
        columns = ("split", "pairing", "derived", "release's", "by its rule", "its file")
        tables.append(ResultTable("Pairings of one label, directional / other", columns, pairings))
        figures = {
            "leaks": self.leaks,
            "splits": splits,
            "given": {name: {"pairs": len(pairs), **counts(pairs)} for name, pairs in self.given.items()},
            "together": together,
            "released": released,
        }
        note = (
            f"{self.leaks} pairs had their converse or a duplicate in another split; none has now. Such pairs are "
            "assigned to a split at random, so the counts of directional pairs and of paraphrases in a split differ "
            "from the paper's; their sums agree."
            if self.leaks
            else "No pair has its converse in another split."
        )
        return Evaluation(self, tables, figures, notes=[note])


def _true_pairs(sizes: Mapping[SubGroup, int]) -> int:
    return sizes[SubGroup.DIR_TRUE] + sizes[SubGroup.PARAPHRASES]


def _sizes_table(title: str, splits: Mapping[str, Mapping[SubGroup, int]]) -> ResultTable:
    rows = [(name, sum(sizes.values()), _true_pairs(sizes), *sizes.values()) for name, sizes in splits.items()]
    return ResultTable(title, ("split", "pairs", "true", *SubGroup), rows)


def read_splits(files: Sequence[Path]) -> dict[str, list[EntailmentPair]]:
    """Read each file as a split, named after the file. Raises HapaxError if two files have the same name."""
    names = [path.stem for path in files]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise HapaxError(
            f"Two files are named {duplicate}; a split takes its name from its file. Rename one of the files."
        )
    return {path.stem: read_pairs(path) for path in files}


def subsets(pairs: Sequence[EntailmentPair], released: bool = False) -> Iterator[tuple[str, list[EntailmentPair]]]:
    """The full set and the six pairings of sub-groups, by name. A subset without both labels is omitted.

    `released`: also the release's two pairings that differ from those of the sub-groups, by their names there.
    """
    by_name = {FULL: list(pairs)}
    for pairing in PAIRINGS:
        by_name[pairing_name(pairing)] = subset(pairs, pairing)
    if released:
        for name in RELEASED_PAIRINGS:
            by_name[name] = released_subset(pairs, name)
    for name, chosen in by_name.items():
        # Without positives, or without negatives, precision and recall measure nothing.
        if {pair.entailed for pair in chosen} == {True, False}:
            yield name, chosen


@checked
def split_entailments(
    *paths: str | Path,
    seed: Annotated[int, Option("Seed for assigning pairs whose converse is in another split.")] = 0,
) -> Evaluation[DataReport]:
    """Split the pairs of files again, so that each is with its converse, and count the sub-groups of each split.

    Each file is a split and gives it its name. `seed` decides where pairs go whose converse is in another file.
    """
    splits = read_splits([Path(path) for path in paths])
    return DataReport(splits, split_again(splits, seed), leaks(splits)).evaluation()


@checked
def write_entailment_splits(evaluation: Evaluation[DataReport], folder: str | Path) -> int:
    """Write the new splits, all pairings of sub-groups and hypothesis-only twins; return the number of files.

    The files are `SUBSET/SPLIT.txt` and `SUBSET-hypothesis-only/SPLIT.txt` in LevyHolt's format. The release's own two
    pairings are among the subsets.
    """
    written, folder = 0, Path(folder)
    for split, pairs in evaluation.value.splits.items():
        for name, chosen in subsets(pairs, released=True):
            twins = [pair.hypothesis_only for pair in chosen]
            # The twins have the same labels, so a scorer of hypotheses alone is measured on the same task.
            for subfolder, rows in ((name, chosen), (f"{name}-{HYPOTHESIS_ONLY}", twins)):
                (folder / subfolder).mkdir(parents=True, exist_ok=True)
                write_levy_holt(rows, folder / subfolder / f"{split}.txt")
                written += 1
    return written
