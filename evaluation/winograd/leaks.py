"""Pairs whose answers leak: those of another source word for word, and those that a prompt shows as its example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.evaluation.shared.results import ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import ItemFault, Pair, SourceCount, WinogradItem, pairs_of, source_counts
from hapax.evaluation.winograd.files import read_file
from hapax.evaluation.winograd.prompts import EXEMPLARS
from hapax.grammar.words import counted

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PairLeak:
    """A pair whose answers are given away. `items`: ids of its sentences."""

    pair: str
    items: tuple[str, str]
    problem: str

    def __str__(self) -> str:
        return f"{self.items[0]} and {self.items[1]}: {self.problem}"

    def to_json(self) -> dict[str, Any]:
        return {"pair": self.pair, "items": list(self.items), "what": self.problem}


def leaks_of(pairs: Iterable[Pair]) -> list[PairLeak]:
    """Leaked pairs, in order; a pair that leaks in both ways is listed once for each.

    Sentences are compared by their words, in any case. Of equal pairs of two sources the first is the original: a set
    that reverses the concepts of another comes after it. Repetitions within a source are not leaks.
    """
    examples = [(method.value, f" {_words(text)} ") for (method, _), text in EXEMPLARS.items()]
    originals: dict[tuple[str, str], WinogradItem] = {}
    leaks = []
    for first, second in pairs:
        sentences = (_words(first.text), _words(second.text))
        items = (first.id, second.id)
        original = originals.setdefault(sentences, first)
        if original.source != first.source:
            leaks.append(PairLeak(first.pair, items, f"word for word the pair of {original.id}"))
        # A method's two wordings may show different examples.
        showing: dict[str, None] = {}
        for method, text in examples:
            # With blanks around, so that no part of a word matches.
            if all(f" {sentence} " in text for sentence in sentences):
                showing[method] = None
        if showing:
            leaks.append(PairLeak(first.pair, items, f"the worked example of the prompts for {', '.join(showing)}"))
    return leaks


def without_leaks(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that do not leak."""
    leaked = {leak.pair for leak in leaks_of(pairs)}
    return [pair for pair in pairs if pair[0].pair not in leaked]


def items_without_leaks(items: Sequence[WinogradItem]) -> list[WinogradItem]:
    """The items less those of leaked pairs and their rewordings. Items without a partner stay."""
    leaked = {leak.pair for leak in leaks_of(pairs_of(items))}
    bases = {item.base for item in items if item.pair in leaked and item.base}
    return [item for item in items if item.pair not in leaked and item.base not in bases]


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def file_result(
    paths: Iterable[Path], published: bool = False, most: int | None = None, skip_faulty: bool = False
) -> ExperimentResult:
    """Sizes of the sources in files, their faults with up to `most` row numbers each, and their leaked pairs."""
    items: list[WinogradItem] = []
    faults: list[ItemFault] = []
    for path in paths:
        file = read_file(path, published, skip_faulty)
        items += file.items
        faults += file.faults
    counts = source_counts(items)
    leaks = leaks_of(pairs_of(items))
    notes = [counted(len(faults), "fault")]
    if leaks:
        leaked = counted(len({leak.pair for leak in leaks}), "leaked pair")
        notes.append(f"{leaked}; commands leave such pairs out with `--skip-leaked`.")
    return ExperimentResult(
        [ResultTable("", SourceCount._fields, counts)],
        {
            "sources": [count._asdict() for count in counts],
            "faults": [fault.to_json() for fault in faults],
            "leaks": [leak.to_json() for leak in leaks],
        },
        details=[*(fault.line(most) for fault in faults), *map(str, leaks)],
        notes=notes,
    )
