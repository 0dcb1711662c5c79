"""Files as splits, what is in them beside the paper's counts, and the subsets that the experiments use (section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.entailment.groups import (
    PAIRINGS,
    PAPER_SIZES,
    SubGroup,
    counts,
    leaks,
    pairing_name,
    split_again,
    subset,
)
from evaluation.entailment.pairs import EntailmentPair, read_pairs, write_levy_holt
from grammar.errors import HapaxError

FULL = "full"
HYPOTHESIS_ONLY = "hypothesis-only"

Splits = Mapping[str, Sequence[EntailmentPair]]


@dataclass(frozen=True, slots=True)
class DataReport:
    """Splits as they came and as split again, with how many pairs were apart from their converse."""

    given: Splits
    splits: Splits
    leaks: int

    @classmethod
    def of(cls, given: Splits, seed: int) -> DataReport:
        """Split again by `seed`."""
        return cls(given, split_again(given, seed), leaks(given))

    def tables(self) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Titles, columns and rows: counts of what is there, and the paper's beside them in a table of their own."""
        columns = ("split", "pairs", "true", *SubGroup)
        yield "Sub-groups, no converse in another split", columns, [*self._rows(self.splits)]
        printed = [name for name in self.splits if name in PAPER_SIZES]
        if printed:
            yield "Sub-groups as the paper prints them", columns, [_paper_row(name) for name in printed]

    @property
    def note(self) -> str:
        """What splitting again did."""
        return (
            f"{self.leaks} pairs had their converse or themselves in another split; now none has. Which split such "
            "pairs go to is drawn, so single counts of directional pairs and paraphrases differ from the paper's, and "
            "their sums do not."
            if self.leaks
            else "No pair has its converse in another split."
        )

    def to_json(self) -> dict[str, Any]:
        """Every count."""
        return {
            "leaks": self.leaks,
            "splits": {
                name: {"pairs": len(pairs), "true": sum(one.entailed for one in pairs), **counts(pairs)}
                for name, pairs in self.splits.items()
            },
            "given": {name: {"pairs": len(pairs), **counts(pairs)} for name, pairs in self.given.items()},
            "together": counts(_together(self.splits)),
        }

    def _rows(self, splits: Splits) -> Iterator[tuple[str, ...]]:
        for name, pairs in splits.items():
            yield _row(name, pairs)
        if len(splits) > 1:
            yield _row("together", _together(splits))


def read_splits(files: Sequence[Path]) -> dict[str, list[EntailmentPair]]:
    """Each file as a split of its own name. Raises HapaxError for two of one name."""
    names = [path.stem for path in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise HapaxError(f"Two files are named {twice}, so that their splits could not be told apart. Rename one.")
    return {path.stem: read_pairs(path) for path in files}


def subsets(pairs: Sequence[EntailmentPair]) -> Iterator[tuple[str, list[EntailmentPair]]]:
    """The full set and the six pairings by name; those that lack one of the two labels are left out."""
    chosen = [(FULL, list(pairs)), *((pairing_name(one), subset(pairs, one)) for one in PAIRINGS)]
    yield from ((name, found) for name, found in chosen if {one.entailed for one in found} == {True, False})


def write_subsets(splits: Splits, folder: Path) -> int:
    """`SUBSET/SPLIT.txt` and `SUBSET-hypothesis-only/SPLIT.txt` in LevyHolt's form; how many files that makes."""
    written = 0
    for split, pairs in splits.items():
        for name, found in subsets(pairs):
            for place, rows in ((name, found), (f"{name}-{HYPOTHESIS_ONLY}", [one.hypothesis_only for one in found])):
                (folder / place).mkdir(parents=True, exist_ok=True)
                write_levy_holt(rows, folder / place / f"{split}.txt")
                written += 1
    return written


def _together(splits: Splits) -> list[EntailmentPair]:
    return [one for pairs in splits.values() for one in pairs]


def _row(name: str, pairs: Sequence[EntailmentPair]) -> tuple[str, ...]:
    return (name, *map(str, (len(pairs), sum(one.entailed for one in pairs), *counts(pairs).values())))


def _paper_row(name: str) -> tuple[str, ...]:
    sizes = PAPER_SIZES[name]
    true = sizes[SubGroup.DIR_TRUE] + sizes[SubGroup.PARAPHRASES]
    return (name, *map(str, (sum(sizes.values()), true, *sizes.values())))
