"""Sheets on which people judge statements: written, and read when they are filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Remedy, Setting

if TYPE_CHECKING:
    from hapax.engine.judging_draw import DrawKind
    from hapax.evaluation.votes.exporting import SheetExportOptions, SheetExportReport
    from hapax.evaluation.votes.importing import VotesReport
    from hapax.evaluation.votes.next_items import NextItems, NextOptions
    from hapax.evaluation.votes.soundness import SoundnessOptions
    from hapax.kb.store import KnowledgeBase


@checked
@extras_named()
def export_sheets(kb: KnowledgeBase, options: SheetExportOptions, folder: str | Path) -> SheetExportReport:
    """Write sheets of statements, facts or LINK's questions for people to the files of a folder."""
    from hapax.api.kept_rules import kept_rules
    from hapax.evaluation.votes import exporting

    derived_by = kept_rules(kb) if options.sample.derived else None
    return exporting.export_sheets(kb, options, Path(folder), derived_by)


@extras_named()
def export_soundness(
    kb: KnowledgeBase, options: SoundnessOptions, voters: Sequence[str], folder: str | Path
) -> SheetExportReport:
    """Write a sheet of soundness for each voter, with the draw of these options, to the files of a folder."""
    from hapax.evaluation.votes import exporting
    from hapax.evaluation.votes.questions import SheetKind

    chosen = exporting.SheetExportOptions(SheetKind.SOUNDNESS, options.drawn, tuple(voters))
    return exporting.export_sheets(kb, chosen, Path(folder))


@extras_named()
def export_next(
    kb: KnowledgeBase,
    options: NextOptions,
    voters: Sequence[str],
    folder: str | Path,
    forms: Sequence[str] = ("html", "csv"),
) -> tuple[NextItems, list[Path]]:
    """Write a sheet with the items to judge next for each voter, and store with which chances they were drawn."""
    from hapax.api.kept_rules import kept_rules
    from hapax.evaluation.votes import exporting

    derived_by = kept_rules(kb) if options.kind == "derived" else None
    return exporting.export_next(kb, options, tuple(voters), Path(folder), tuple(forms), derived_by=derived_by)


@extras_named()
def next_options(kind: str, count: int, precision: float, anew: bool, derived: bool = False) -> NextOptions:
    """The options of a draw of `facts` or `statements` by those of the command line."""
    from hapax.engine.certificates import Promise
    from hapax.evaluation.votes.next_items import NextOptions
    from hapax.grammar.errors import HapaxError

    if derived and kind == "facts":
        raise HapaxError(
            "`derive` concludes statements.",
            Remedy("Draw statements, or omit {}.", Setting("options.sample.derived")),
        )
    statements: DrawKind = "derived" if derived else "soundness"
    return NextOptions("predicates" if kind == "facts" else statements, count, Promise(precision), anew)


def options_of(kind: str, options: Mapping[str, Any]) -> SheetExportOptions:
    """The options of sheets by those of the command line."""
    from hapax.evaluation.votes.exporting import SheetExportOptions

    return SheetExportOptions.of(kind, options)


@checked
@extras_named()
def import_sheets(kb: KnowledgeBase, files: Sequence[str | Path], *, skip_faulty: bool = False) -> VotesReport:
    """Store the votes of filled-in sheets. Raises FactsRejected with every fault unless `skip_faulty`."""
    from hapax.api.kept_rules import kept_rules
    from hapax.evaluation.votes import importing

    derived_by = kept_rules(kb) if any(kb.derived_counts().values()) else None
    return importing.import_sheets(kb, [Path(file) for file in files], skip_faulty=skip_faulty, derived_by=derived_by)
