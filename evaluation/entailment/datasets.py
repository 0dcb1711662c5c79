"""Data sets: read the splits, count their sub-groups beside the paper's, and write the subsets (section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from hapax.evaluation.entailment.groups import (
    PAIRINGS,
    PAPER_SIZES,
    RELEASED_PAIRINGS,
    RELEASED_SIZES,
    SubGroup,
    counts,
    leaks,
    pairing_name,
    released_subset,
    split_again,
    subset,
)
from hapax.evaluation.entailment.pairs import FAULTS_SHOWN, EntailmentPair, Skipped, read_pairs, write_levy_holt
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.words import counted

FULL = "full"
HYPOTHESIS_ONLY = "hypothesis-only"

Splits = Mapping[str, Sequence[EntailmentPair]]


@dataclass(frozen=True, slots=True)
class DataReport:
    """Sub-groups of the splits as given, and of the same pairs split again."""

    given: Splits
    splits: Splits
    """The pairs split again, so that no pair is in another split than its converse."""

    leaks: int
    """Number of pairs that `given` separates from their converse."""

    skipped: tuple[str, ...] = ()
    """Faults of the lines that were left out."""

    def to_result(self) -> ExperimentResult:
        """The counts, those that the paper prints, and a note on the effect of splitting again."""
        columns = ("split", "pairs", "true", *SubGroup)
        together = list(chain.from_iterable(self.splits.values()))
        rows = [_row(name, counts(pairs)) for name, pairs in self.splits.items()]
        if len(self.splits) > 1:
            rows.append(_row("together", counts(together)))
        tables = [ResultTable("Sub-groups, no converse in another split", columns, rows)]
        # The paper's splits are named train, dev and test; other names have no printed sizes.
        printed = [_row(name, PAPER_SIZES[name]) for name in self.splits if name in PAPER_SIZES]
        if printed:
            tables.append(ResultTable("Sub-groups as the paper prints them", columns, printed))
        tables.append(_pairings_table(self.splits))
        splits: dict[str, dict[str, int]] = {}
        for name, pairs in self.splits.items():
            sizes = counts(pairs)
            splits[name] = {"pairs": len(pairs), "true": _true_pairs(sizes)}
            splits[name] |= {group.value: size for group, size in sizes.items()}
        released: dict[str, dict[str, tuple[int, int]]] = {}
        for name, pairs in self.splits.items():
            released[name] = {pairing: _sizes(pairs, pairing) for pairing in RELEASED_PAIRINGS}
        figures = {
            "leaks": self.leaks,
            "splits": splits,
            "given": {name: {"pairs": len(pairs), **counts(pairs)} for name, pairs in self.given.items()},
            "together": counts(together),
            "released": released,
        }
        note = (
            f"{self.leaks} pairs had their converse or a duplicate in another split; none has now. Such pairs are "
            "assigned to a split at random, so the counts of directional pairs and of paraphrases in a split differ "
            "from the paper's; their sums agree."
            if self.leaks
            else "No pair has its converse in another split."
        )
        return ExperimentResult(tables, figures, notes=[*skipped_note(list(self.skipped)), note])


def read_splits(files: Sequence[Path], skipped: Skipped | None = None) -> dict[str, list[EntailmentPair]]:
    """Read each file as a split, named after the file. Raises HapaxError if two files have the same name.

    `skipped` takes the faults of faulty lines; without it they refuse the file.
    """
    names = [path.stem for path in files]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise HapaxError(
            f"Two files are named {duplicate}; a split takes its name from its file. Rename one of the files."
        )
    return {path.stem: read_pairs(path, skipped) for path in files}


def skipped_note(skipped: Skipped) -> list[str]:
    """A note on lines that were left out, if there are any."""
    if not skipped:
        return []
    more = len(skipped) - FAULTS_SHOWN
    shown = [*skipped[:FAULTS_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    return ["\n".join([f"Left out {counted(len(skipped), 'faulty line')}:", *shown])]


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
def split_entailments(*paths: str | Path, seed: int = 0, skip_faulty: bool = False) -> Evaluation[DataReport]:
    """Split the pairs of files again, so that each is with its converse, and count the sub-groups of each split.

    Each file is a split and gives it its name. `seed` decides where pairs go whose converse is in another file.
    Faulty lines refuse their file, or are left out and named in a note.
    """
    skipped: list[str] = []
    splits = read_splits([Path(path) for path in paths], skipped if skip_faulty else None)
    return Evaluation.of(DataReport(splits, split_again(splits, seed), leaks(splits), tuple(skipped)))


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


def _sizes(pairs: Sequence[EntailmentPair], released: str) -> tuple[int, int]:
    """Numbers of true and false pairs of a released pairing."""
    labels = [pair.entailed for pair in released_subset(pairs, released)]
    return labels.count(True), labels.count(False)


def _pairings_table(splits: Splits) -> ResultTable:
    """The two pairings that differ in the release: of the sub-groups, by the release's rule, and as in its files."""
    rows = []
    for split, pairs in splits.items():
        for name, groups in RELEASED_PAIRINGS.items():
            sizes = counts(pairs)
            derived = f"{sizes[groups[0]]} / {sizes[groups[1]]}"
            printed = RELEASED_SIZES.get(split, {}).get(name)
            shown = "" if printed is None else f"{printed[0]} / {printed[1]}"
            rows.append((split, pairing_name(groups), derived, name, "{} / {}".format(*_sizes(pairs, name)), shown))
    columns = ("split", "pairing", "derived", "release's", "by its rule", "its file")
    return ResultTable("Pairings of one label, directional / other", columns, rows)


def _true_pairs(sizes: Mapping[SubGroup, int]) -> int:
    return sizes[SubGroup.DIR_TRUE] + sizes[SubGroup.PARAPHRASES]


def _row(name: str, sizes: Mapping[SubGroup, int]) -> tuple[str, ...]:
    return (name, *map(str, (sum(sizes.values()), _true_pairs(sizes), *sizes.values())))
