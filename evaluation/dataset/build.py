"""A knowledge base as a dataset, from options to files. Nothing appears at the folder before all of it is written."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from evaluation.dataset.card import card
from evaluation.dataset.harnesses import HarnessSink, InspectSink
from evaluation.dataset.lint_files import LintSink
from evaluation.dataset.rows import Entry, Source
from evaluation.dataset.selection import CHUNK, Wish, select
from evaluation.dataset.summary import Summary, Tally
from evaluation.dataset.tables import TableSink, jsonl_sink, parquet_sink
from grammar.errors import HapaxError
from grammar.printing import format_library
from grammar.rules import Library, PredicateKind, PredicateSignature
from grammar.terms import Variable
from kb.store import KnowledgeBase
from kb.values import encode_tree

METADATA = "metadata.json"
"""In every dataset; by it a folder is known as one that may be replaced."""

FORMATS = ("jsonl", "parquet", "hf", "lint", "lm-eval", "inspect")


class Sink(Protocol):
    """One format being written: each entry in turn, and then what belongs to the whole."""

    def take(self, entry: Entry) -> None: ...

    def finish(self, source: Source) -> None: ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where a dataset goes. `name`: what its card and tasks are called; `force`: an older dataset there is replaced."""

    folder: Path
    formats: tuple[str, ...] = FORMATS
    name: str = "hapax"
    force: bool = False

    def __post_init__(self) -> None:
        if not (self.name.isascii() and self.name.isidentifier()):
            raise HapaxError(f"{self.name!r} cannot begin the names of tasks. Use letters, digits and underscores.")


def build(kb: KnowledgeBase, target: Target, wish: Wish, progress: Callable[[int, int], None] | None = None) -> Summary:
    """Write the dataset. `progress` is told statements done and statements in all.

    Raises HapaxError for a folder that holds something else, and where nothing is left to write.
    """
    _refuse(target)
    source = Source(kb, select(kb, wish))
    with _appearing(target) as folder:
        sinks = _sinks(folder, target)
        tally = Tally()
        total = len(source.selection.places)
        for number, entry in enumerate(source.entries(), 1):
            tally.take(entry)
            for sink in sinks.values():
                sink.take(entry)
            if progress is not None and number % CHUNK == 0:
                progress(number, total)
        for sink in sinks.values():
            sink.finish(source)
        summary = _summary(target, wish, source, tally, sinks)
        _write_whole(folder, summary)
    return summary


def _sinks(folder: Path, target: Target) -> dict[str, Sink]:
    makers: dict[str, Callable[[], Sink]] = {
        "jsonl": lambda: jsonl_sink(folder / "jsonl"),
        "parquet": lambda: parquet_sink(folder),
        "lint": lambda: LintSink(folder / "lint"),
        "lm-eval": lambda: HarnessSink(folder / "lm_eval", target.name),
        "inspect": lambda: InspectSink(folder / "inspect"),
    }
    wanted = {*target.formats, *(["parquet"] if "hf" in target.formats else [])}
    return {name: make() for name, make in makers.items() if name in wanted}


def _summary(target: Target, wish: Wish, source: Source, tally: Tally, sinks: dict[str, Sink]) -> Summary:
    tables, lint = sinks.get("parquet"), sinks.get("lint")
    improvised = [note for _, _, forms in source.forms.values() for note in forms.notes]
    notes = (*improvised, *(lint.notes if isinstance(lint, LintSink) else ()))
    formats = tuple(one for one in FORMATS if one in target.formats)
    return Summary(
        target.name, wish, source, tally, formats, tables.sizes if isinstance(tables, TableSink) else {}, notes
    )


def _write_whole(folder: Path, summary: Summary) -> None:
    """What every dataset has, and the card of the Hugging Face layout."""
    told = json.dumps(json.loads(encode_tree(summary.to_json())), ensure_ascii=False, indent=2)
    texts = {METADATA: told + "\n", "rules.rules": rules_text(summary.source.library)}
    if "hf" in summary.formats:
        texts["README.md"] = card(summary)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def rules_text(library: Library) -> str:
    """The rules with the predicates that they name.

    A knowledge base keeps neither subtypes, which are told from the rules' use of them, nor the comparison of a
    computed predicate, which here is one whose facts are given.
    """
    named = {atom.indicator for rule in library.rules for atom in rule.atoms}
    used = [one for one in library.signatures if one.indicator in named]
    lost = [one.indicator for one in used if _lacks_definition(one)]
    known = (replace(one, kind=PredicateKind.GIVEN) if _lacks_definition(one) else one for one in used)
    rules = sorted(library.rules, key=lambda rule: rule.name)
    told = "".join(f"# {one} was computed; its comparison is in the rule file of the search.\n" for one in lost)
    whole = replace(library, rules=tuple(rules), signatures=tuple(known), subtypes=tuple(sorted(_subtypes(library))))
    return told + format_library(whole)


def _subtypes(library: Library) -> set[tuple[str, str]]:
    """Each type that a rule puts where a predicate wants another."""
    return {
        (term.data_type, wanted)
        for rule in library.rules
        for atom in rule.atoms
        for term, wanted in zip(atom.arguments, library.signature(atom.indicator).argument_types, strict=True)
        if isinstance(term, Variable) and not library.is_subtype(term.data_type, wanted)
    }


def _lacks_definition(signature: PredicateSignature) -> bool:
    return signature.kind is PredicateKind.COMPUTED and signature.definition is None


def _refuse(target: Target) -> None:
    """Raises HapaxError unless the folder is new, empty, or a dataset that is to be replaced."""
    folder = target.folder
    if not folder.resolve().parent.is_dir():
        raise HapaxError(f"{folder}: its folder does not exist. Create {folder.resolve().parent} first.")
    if folder.exists() and not folder.is_dir():
        raise HapaxError(f"{folder}: this is a file. Name a new or empty folder.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / METADATA).is_file():
        raise HapaxError(f"{folder}: the folder holds something else. Name a new or empty one.")
    if not target.force:
        raise HapaxError(f"{folder}: there is a dataset already. Name another folder, or replace it with --force.")


@contextmanager
def _appearing(target: Target) -> Iterator[Path]:
    """A folder beside the target that takes its place when the block ends well, and goes when it does not."""
    place = target.folder.resolve()
    try:
        waiting = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as fault:
        raise HapaxError(
            f"{place.parent}: the dataset cannot be written there ({fault.strerror}). Allow writing, or name a folder "
            "elsewhere."
        ) from fault
    try:
        new, old = waiting / "new", waiting / "old"
        new.mkdir()
        yield new
        if place.exists():
            place.rename(old)
        new.rename(place)
    except BaseException:
        if not place.exists() and (waiting / "old").exists():
            (waiting / "old").rename(place)
        raise
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
