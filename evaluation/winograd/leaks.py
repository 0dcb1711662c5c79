"""Pairs whose answers leak: those of another source word for word, and those that a prompt shows as its example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import ItemFault, Pair, SourceCount, WinogradItem, pairs_of, source_counts
from hapax.evaluation.winograd.files import read_file, read_items
from hapax.evaluation.winograd.prompts import EXEMPLARS
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
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
    """The items less those of leaked pairs. Items without a partner stay."""
    leaked = {leak.pair for leak in leaks_of(pairs_of(items))}
    return [item for item in items if item.pair not in leaked]


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


@checked
@extras_named()
def read_schemas(*paths: str | Path, skip_faulty: bool = False, skip_leaked: bool = False) -> list[WinogradItem]:
    """The Winograd schemas of files, in the order of the files, in any of the supported formats.

    `skip_faulty`: faulty rows are left out. `skip_leaked`: so are pairs of another source word for word, and those that
    a prompt shows as its example. Raises UnreadableItemsError.
    """
    items = []
    for path in paths:
        items += read_items(Path(path), skip_faulty=skip_faulty)
    return items_without_leaks(items) if skip_leaked else items


@checked
@extras_named()
def count_schemas(
    *paths: str | Path, published: bool = False, rows: int | None = None, skip_faulty: bool = False
) -> Evaluation[None]:
    """Count the schemas of files by source, and list faulty rows, at most `rows` of each fault, and leaked pairs.

    `published`: rows are read exactly as the release asks them, with their faults. `skip_faulty`: faulty rows are left
    out and listed.
    """
    items: list[WinogradItem] = []
    faults: list[ItemFault] = []
    for path in paths:
        file = read_file(Path(path), published, skip_faulty)
        items += file.items
        faults += file.faults
    counts = source_counts(items)
    leaks = leaks_of(pairs_of(items))
    notes = [counted(len(faults), "fault")]
    if leaks:
        leaked = counted(len({leak.pair for leak in leaks}), "leaked pair")
        notes.append(f"{leaked}; commands leave such pairs out with `--skip-leaked`.")
    result = ExperimentResult(
        [ResultTable("", SourceCount._fields, counts)],
        {
            "sources": [count._asdict() for count in counts],
            "faults": [fault.to_json() for fault in faults],
            "leaks": [leak.to_json() for leak in leaks],
        },
        details=[*(fault.line(rows) for fault in faults), *map(str, leaks)],
        notes=notes,
    )
    return Evaluation(None, result)
