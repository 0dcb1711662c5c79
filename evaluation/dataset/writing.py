"""Writing a knowledge base as a dataset. The folder appears only when everything in it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from filecmp import cmp
from pathlib import Path
from typing import NamedTuple

from hapax.engine.answers.derivation import current_rules, read_statements
from hapax.engine.answers.statement_lines import statement_lines
from hapax.engine.judgements import UNJUDGED, Judgements
from hapax.engine.kept_rules import kept_rules
from hapax.evaluation.dataset.columns import METADATA, derived_row, json_line
from hapax.evaluation.dataset.dataset_rows import (
    CHUNK,
    FORMATS,
    DatasetSource,
    SelectionOptions,
    Target,
    select,
)
from hapax.evaluation.dataset.formats import DatasetSummary, RowCounter, Sink, open_sinks
from hapax.evaluation.link.lint_import import table_16
from hapax.evaluation.shared.result_tables import Evaluation
from hapax.evaluation.votes.voting_items import judged_derived
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Variable
from hapax.grammar.writing.printing import format_library
from hapax.grammar.writing.words import counted
from hapax.kb.exchange.values import encode_tree
from hapax.kb.files.unfinished import exchange, unfinished
from hapax.kb.records import StatementRecord
from hapax.kb.store import KnowledgeBase

DERIVED_FILE = "derived.jsonl"
"""The statements that `derive` concluded, with their proofs."""


@checked
def write_dataset(
    kb: KnowledgeBase,
    target: Target | str | Path,
    selection: SelectionOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    rules: Library | None = None,
) -> Evaluation[DatasetSummary]:
    """Write statements as a dataset to a new or empty folder, in all formats, or as a `Target` says.

    `selection`: which statements; None: those of whole searches and imports. `progress` is called with the statements
    written so far and their total. `rules`: those of `derive`, whose statements go into `derived.jsonl`; None: those
    that the knowledge base keeps. Raises HapaxError if the folder holds
    anything but a dataset to replace, and if no statement is left to write. Needs the extra `evaluation`.
    """
    if not isinstance(target, Target):
        target = Target(Path(target))
    options = selection or SelectionOptions()
    library = rules or kept_rules(kb) or Library()
    may_be_there = _check_folder(target)
    source = DatasetSource(kb, select(kb, options), options.judged)
    has_ends = bool(source.selection.texts)
    # In the order of FORMATS, so that the order in which a user names them changes no byte. Without statements of head
    # and long tail most formats would be empty.
    formats = tuple(name for name in FORMATS if name in (target.formats if has_ends else ("jsonl",)))
    place = target.folder.resolve()
    with _new_folder(place) as folder:
        sinks = open_sinks(formats, folder, target.tasks)
        counter = _fed(sinks, source, progress)
        notes = source.judged_notes
        for forms in source.forms.values():
            notes += forms.notes
        derived = write_current(folder / DERIVED_FILE, kb, library, options, source.selection.judgements)
        notes += [*_derived_notes(derived, has_ends)]
        figures = (target, options, source, counter, formats, tuple(notes), derived.written)
        summary = DatasetSummary(*figures)
        # Last, because a card states what the other steps counted.
        for sink in sinks:
            sink.describe(summary)
        # encode_tree writes numbers exactly, but in one line; the second pass indents them.
        tree = json.loads(encode_tree(summary.to_json()))
        _write(folder / METADATA, json.dumps(tree, ensure_ascii=False, indent=2) + "\n")
        _write(folder / "rules.rules", rules_text(source.library))
        # Compared only now: the same command run again, as after a kill, is no conflict and needs no --force.
        if may_be_there and not _is_same(folder, place):
            raise HapaxError(
                f"{target.folder}: the folder already holds another dataset.",
                Remedy("Name another one, or replace it with {}.", Setting("target.force")),
            )
    # LINK's table 16 counts statements by domain.
    tables = [table_16(summary.tally.domains.counts())]
    return Evaluation(summary, tables, summary.to_json(), notes=summary.notes)


def _fed(sinks: Sequence[Sink], source: DatasetSource, progress: Callable[[int, int], None] | None) -> RowCounter:
    """Feed every format in one pass, so that proofs are read and put into words once; count the rows."""
    counter = RowCounter()
    for number, entry in enumerate(source.entries(), 1):
        counter.take(entry)
        for sink in sinks:
            sink.take(entry)
        # Once per chunk is often enough for a display.
        if progress is not None and number % CHUNK == 0:
            progress(number, len(source.selection.texts))
    for sink in sinks:
        sink.finish(source)
    return counter


class DerivedCounts(NamedTuple):
    """Numbers of derived statements: written, left out because people deny them, and not up to date."""

    written: int
    denied: int
    out_of_date: int


def write_current(
    path: Path, kb: KnowledgeBase, library: Library, options: SelectionOptions, found: Judgements
) -> DerivedCounts:
    """Write the statements that `derive` stored to a `.jsonl` file, unless there are none, each with its judgement."""
    stored = {name: count for name, count in kb.derived_counts().items() if count}
    chosen = {name: count for name, count in stored.items() if not options.rules or name in options.rules}
    rules = [rule for rule in current_rules(kb, library) if rule.name in chosen]
    # The statements of a rule are current or stale together, so whole rules are left out.
    left_out = sum(chosen.values()) - sum(chosen[rule.name] for rule in rules)
    if not rules:
        return DerivedCounts(0, 0, left_out)
    judged = judged_derived(kb, library, found)
    judged_rules = {record.rule for record, _ in judged.values()}
    written = denied = 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for rule in rules:
            if not options.blocked.patterns and rule.name not in judged_rules:  # spares reading each statement
                for lines in statement_lines(kb, library, rule, _unjudged_line):
                    stream.write("".join(lines))
                    written += len(lines)
                continue
            for record in read_statements(kb, library, rule):
                _, judgement = judged.get(record.id, (record, UNJUDGED))
                if judgement.is_true is False and options.judged == "drop":
                    denied += 1
                elif not options.blocked.blocks([record.text]):
                    stream.write(json_line({**derived_row(record), "judgement": judgement.word}))
                    written += 1
    return DerivedCounts(written, denied, left_out)


def _unjudged_line(record: StatementRecord) -> str:
    return json_line({**derived_row(record), "judgement": None})


def _derived_notes(derived: DerivedCounts, has_ends: bool) -> Iterator[str]:
    if not has_ends:
        yield "No search has stored a statement, so that head and long tail are empty and have no files."
    if derived.written:
        written = counted(derived.written, "statement")
        yield f"{DERIVED_FILE}: {written} of hapax derive, which have no likelihood and no end"
    if derived.denied:
        yield (
            f"{DERIVED_FILE}: {counted(derived.denied, 'statement')} that people deny left out. See "
            f"{Setting('selection.judged')}."
        )
    if derived.out_of_date:
        yield (
            f"{counted(derived.out_of_date, 'statement')} that hapax derive stored left out: facts or rules "
            f"have changed since. Run {Operation('derive')} again."
        )


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
        # The parser wants the comparison of a `computed` predicate, and none is stored.
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
                # `Vehicle V` in a place for an Object needs `Vehicle < Object`, or the text would not pass the checks.
                if isinstance(term, Variable) and not library.is_subtype(term.data_type, expected):
                    subtypes.add((term.data_type, expected))
    return subtypes


def _check_folder(target: Target) -> bool:
    """True if the folder holds a dataset that may only be replaced by the same one.

    Raises HapaxError for one that is neither new nor empty and holds none.
    """
    folder = target.folder
    # Resolved first, because the parent of `.` is `.` itself.
    if not folder.resolve().parent.is_dir():
        raise HapaxError(f"{folder}: its folder does not exist. Create {folder.resolve().parent} first.")
    if folder.exists() and not folder.is_dir():
        raise HapaxError(f"{folder}: this is a file. Name a new or empty folder.")
    if not folder.exists() or not any(folder.iterdir()):
        return False
    # --force must never delete a folder that is not a dataset.
    if not (folder / METADATA).is_file():
        raise HapaxError(f"{folder}: the folder is not empty and holds no dataset. Name a new or empty folder.")
    return not target.force


def _is_same(new: Path, place: Path) -> bool:
    """True if two folders hold the same files, as after a command that was killed when all was written."""
    names = _names_below(new)
    if names != _names_below(place):
        return False
    files = (name for name in names if (new / name).is_file())
    # A shallow comparison would take files of equal size and time for equal.
    return all(cmp(new / name, place / name, shallow=False) for name in files)


def _names_below(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*")}


@contextmanager
def _new_folder(place: Path) -> Iterator[Path]:
    """An empty folder that takes the place's name when the block succeeds, and is removed when it fails."""
    try:
        with unfinished(place) as new:
            new.mkdir()
            yield new
            exchange(new, place)
    except OSError as fault:
        raise HapaxError(
            f"{place.parent}: the dataset cannot be written there ({fault.strerror}). Make the folder writable, or "
            "name another one."
        ) from fault
