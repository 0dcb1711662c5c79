"""LevyHolt's data: sub-groups, pairings, splits that keep a pair with its converse, and changed copies of pairs."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, combinations
from pathlib import Path
from typing import Annotated

from hapax.evaluation.entailment.pairs import (
    EntailmentPair,
    read_pairs,
    write_levy_holt,
)
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option


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

    def to_result(self) -> ExperimentResult:
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
        released, pairings = {}, []
        for name, pairs in self.splits.items():
            splits[name] = {"pairs": len(pairs), "true": _true_pairs(sizes[name])}
            splits[name] |= {group.value: size for group, size in sizes[name].items()}
            released[name] = {pairing: _released_sizes(pairs, pairing) for pairing in RELEASED_PAIRINGS}
            for pairing, groups in RELEASED_PAIRINGS.items():
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
        return ExperimentResult(tables, figures, notes=[note])


def _released_sizes(pairs: Sequence[EntailmentPair], pairing: str) -> tuple[int, int]:
    """Numbers of true and false pairs of a released pairing."""
    labels = [pair.entailed for pair in released_subset(pairs, pairing)]
    return labels.count(True), labels.count(False)


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
@extras_named()
def split_entailments(
    *paths: str | Path,
    seed: Annotated[int, Option("Seed for assigning pairs whose converse is in another split.")] = 0,
) -> Evaluation[DataReport]:
    """Split the pairs of files again, so that each is with its converse, and count the sub-groups of each split.

    Each file is a split and gives it its name. `seed` decides where pairs go whose converse is in another file.
    """
    splits = read_splits([Path(path) for path in paths])
    return Evaluation.of(DataReport(splits, split_again(splits, seed), leaks(splits)))


@checked
@extras_named()
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
