"""Read the hand-written claims and their truth from the tab-separated files beside this module."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hapax.grammar.errors import HapaxError

OUTSIDE_ATLAS = Path(__file__).parent / "outside_atlas.tsv"
UNKNOWN_PREDICATES = Path(__file__).parent / "unknown_predicates.tsv"


@dataclass(frozen=True, slots=True)
class OutsideFact:
    """A true or false fact with a predicate of the atlas, about an entity that the atlas does not have."""

    is_true: bool
    predicate: str
    arguments: tuple[str, str]


@dataclass(frozen=True, slots=True)
class FreeClaim:
    """A true or false sentence."""

    is_true: bool
    sentence: str


def outside_facts(path: Path = OUTSIDE_ATLAS) -> tuple[OutsideFact, ...]:
    """Read lines of `truth, predicate, argument, argument`. Raises HapaxError for any other line."""
    return tuple(OutsideFact(truth, row[0], (row[1], row[2])) for truth, row in _lines(path, 3))


def free_claims(path: Path = UNKNOWN_PREDICATES) -> tuple[FreeClaim, ...]:
    """Read lines of `truth, sentence`. Raises HapaxError for any other line."""
    return tuple(FreeClaim(truth, row[0]) for truth, row in _lines(path, 1))


def _lines(path: Path, width: int) -> Iterator[tuple[bool, list[str]]]:
    with path.open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) != width + 1 or row[0] not in ("true", "false") or not all(cell.strip() for cell in row):
                form = "true or false and then " + ("1 cell" if width == 1 else f"{width} cells")
                raise HapaxError(f"{path.name}:{number}: not {form}, separated by tabs. Correct the line.")
            yield row[0] == "true", row[1:]
