"""Writing a knowledge base as a dataset. The folder appears only when everything in it is written."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hapax.evaluation.dataset.formats import FORMATS, Target
from hapax.evaluation.dataset.frozen import METADATA, Checksum
from hapax.evaluation.dataset.rows import DatasetSource
from hapax.evaluation.dataset.selection import CHUNK, SelectionOptions, select
from hapax.evaluation.dataset.sinks import open_sinks
from hapax.evaluation.dataset.summary import DatasetSummary, RowCounter
from hapax.grammar.errors import HapaxError
from hapax.grammar.printing import format_library
from hapax.grammar.rules import Library, PredicateKind
from hapax.grammar.terms import Variable
from hapax.kb.store import KnowledgeBase
from hapax.kb.values import encode_tree


def build(
    kb: KnowledgeBase, target: Target, options: SelectionOptions, progress: Callable[[int, int], None] | None = None
) -> DatasetSummary:
    """Write the dataset. `progress` gets the number of statements written so far, and of all.

    Raises HapaxError if the folder holds anything but a dataset to replace, and if no statement is left to write.
    """
    _check_folder(target)
    source = DatasetSource(kb, select(kb, options))
    formats = tuple(name for name in FORMATS if name in target.formats)
    with _new_folder(target.folder.resolve()) as folder:
        sinks = open_sinks(formats, folder, target.name)
        counter, checksum = RowCounter(), Checksum()
        total = len(source.selection.texts)
        for number, entry in enumerate(source.entries(), 1):
            counter.take(entry)
            checksum.take_statement(entry.row)
            for row in entry.probes:
                checksum.take_question(row)
            for sink in sinks:
                sink.take(entry)
            # Once per chunk is often enough for a display.
            if progress is not None and number % CHUNK == 0:
                progress(number, total)
        for sink in sinks:
            sink.finish(source)
        notes: list[str] = []
        for _, _, forms in source.forms.values():
            notes += forms.notes
        for sink in sinks:
            notes += sink.notes
        summary = DatasetSummary(target, options, source, counter, checksum.hexdigest(), formats, tuple(notes))
        # Last, because a card states what the other steps counted.
        for sink in sinks:
            sink.describe(summary)
        # encode_tree writes numbers exactly, but in one line; the second pass indents them.
        tree = json.loads(encode_tree(summary.to_json()))
        _write(folder / METADATA, json.dumps(tree, ensure_ascii=False, indent=2) + "\n")
        _write(folder / "rules.rules", rules_text(source.library))
    return summary


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def rules_text(library: Library) -> str:
    """The library's rules as rule text, with the predicates and subtypes that they need.

    A knowledge base stores no subtypes, so these are inferred from the rules. Nor does it store the comparison of a
    computed predicate, so such a predicate becomes `given`, under a comment that says so.
    """
    indicators: set[str] = set()
    for rule in library.rules:
        indicators.update(atom.indicator for atom in rule.atoms)
    signatures, comments = [], ""
    for signature in library.signatures:
        if signature.indicator not in indicators:
            continue
        if signature.kind is PredicateKind.COMPUTED and signature.definition is None:
            comments += f"# {signature.indicator} was computed; its comparison is in the rule file of the search.\n"
            signatures.append(replace(signature, kind=PredicateKind.GIVEN))
        else:
            signatures.append(signature)
    rules = sorted(library.rules, key=lambda rule: rule.name)
    subtypes = tuple(sorted(_inferred_subtypes(library)))
    return comments + format_library(
        replace(library, rules=tuple(rules), signatures=tuple(signatures), subtypes=subtypes)
    )


def _inferred_subtypes(library: Library) -> set[tuple[str, str]]:
    """Pairs of a variable's type and the other type that a predicate expects in its place."""
    subtypes = set()
    for rule in library.rules:
        for atom in rule.atoms:
            expected_types = library.signature(atom.indicator).argument_types
            for term, expected in zip(atom.arguments, expected_types, strict=True):
                if isinstance(term, Variable) and not library.is_subtype(term.data_type, expected):
                    subtypes.add((term.data_type, expected))
    return subtypes


def _check_folder(target: Target) -> None:
    """Raises HapaxError unless the folder is new, empty, or a dataset that is to be replaced."""
    folder = target.folder
    if not folder.resolve().parent.is_dir():
        raise HapaxError(f"{folder}: its folder does not exist. Create {folder.resolve().parent} first.")
    if folder.exists() and not folder.is_dir():
        raise HapaxError(f"{folder}: this is a file. Name a new or empty folder.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    # --force must never delete a folder that is not a dataset.
    if not (folder / METADATA).is_file():
        raise HapaxError(f"{folder}: the folder is not empty and holds no dataset. Name a new or empty folder.")
    if not target.force:
        raise HapaxError(f"{folder}: the folder already holds a dataset. Name another one, or replace it with --force.")


@contextmanager
def _new_folder(place: Path) -> Iterator[Path]:
    """An empty folder that takes the place's name when the block succeeds, and is removed when it fails."""
    try:
        # On the same file system as the place, so that a rename suffices.
        waiting = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as fault:
        raise HapaxError(
            f"{place.parent}: the dataset cannot be written there ({fault.strerror}). Make the folder writable, or "
            "name another one."
        ) from fault
    try:
        new, old = waiting / "new", waiting / "old"
        new.mkdir()
        yield new
        if place.exists():
            place.rename(old)
        new.rename(place)
    except BaseException:
        # The second rename failed: put the older dataset back.
        if not place.exists() and (waiting / "old").exists():
            (waiting / "old").rename(place)
        raise
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
