"""Export of sheets: from options to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hapax.evaluation.votes.items import FACT, STATEMENT, DrawnItems, ItemSource, SampleOptions
from hapax.evaluation.votes.next_items import NextItems, NextOptions, next_items
from hapax.evaluation.votes.questions import SheetKind
from hapax.evaluation.votes.sheets import VotingSheet, csv_text, labelling_config, sheets, tasks_text
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, made
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.words import counted
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import replace_file
from hapax.kb.values import refusal

RULES_AUDITED = 3
"""Number of rules that an audit draws, as in appendix C."""


def sheet_forms(form: str) -> tuple[str, ...]:
    """The forms of sheets that `json`, `csv` or `both` names."""
    return ("json", "csv") if form == "both" else (form,)


SheetForms: TypeAlias = Annotated[
    tuple[str, ...],
    Option(
        "Format of the sheets: CSV for a spreadsheet, JSON for Label Studio.",
        name="format",
        default="both",
        choices=("json", "csv", "both"),
        read=sheet_forms,
    ),
]


@checked
@dataclass(frozen=True, slots=True)
class SheetExportOptions:
    """Options of an export. `per_sheet`: largest number of items on a sheet, or None for all on one."""

    kind: SheetKind
    sample: SampleOptions
    voters: tuple[str, ...]
    per_sheet: Annotated[int | None, Option("Largest number of items on a sheet; default: all on one.", least=1)] = None
    templates: Annotated[
        tuple[int, ...],
        Option("Number of a probing template of a baseline; repeat for more.", name="template", least=1, most=13),
    ] = (5,)
    forms: SheetForms = ("json", "csv")

    @classmethod
    def of(cls, kind: str, options: Mapping[str, Any]) -> SheetExportOptions:
        """Read the options of the command line."""
        rules_drawn = options["draw_rules"]
        if rules_drawn is None and kind == SheetKind.PREDICATES and not options["rule"]:
            rules_drawn = RULES_AUDITED
        # The command has checked that both are given or none.
        ends = None if options["head"] is None else (options["head"], options["long_tail"])
        # 0 asks for all rules.
        drawn = {"per_distribution": ends, "rules_drawn": rules_drawn or None, "evenly": kind == SheetKind.SOUNDNESS}
        voters = options["named"] or tuple(f"voter-{number}" for number in range(1, options["voters"] + 1))
        return made(cls, options, kind=SheetKind(kind), sample=made(SampleOptions, options, **drawn), voters=voters)


@dataclass(frozen=True, slots=True)
class SheetExportReport:
    """The files written, and the items on them."""

    paths: tuple[Path, ...]
    drawn: DrawnItems
    sheets: int

    def __str__(self) -> str:
        head, long_tail = (self.drawn.counts[distribution] for distribution in Distribution)
        judged = " that people judged" if self.drawn.judged_only else ""
        drawn = f"{head} head and {long_tail} long-tail statements{judged}"
        if self.drawn.derived:
            drawn = counted(self.drawn.derived, "derived statement")
        return f"{drawn} drawn; {counted(len(self.drawn.items), 'item')} on {counted(self.sheets, 'sheet')}"


@checked
@extras_named()
def export_sheets(kb: KnowledgeBase, options: SheetExportOptions, folder: str | Path) -> SheetExportReport:
    """Write sheets of statements, facts or LINK's questions for people to the files of a folder.

    The same knowledge base and options give the same bytes. Raises HapaxError for bad names of voters, and if there is
    nothing to ask.
    """
    check_voter_names(options.voters)
    drawn = ItemSource(kb, options.kind, options.templates).draw(options.sample)
    if not drawn.items:
        raise HapaxError(
            f"{kb.place}: there is nothing to ask on a sheet of {options.kind.value}.",
            Remedy("Draw more, omit {}, or name rules with such statements.", Setting("options.sample.unjudged")),
        )
    drawn_sheets = sheets(options.kind, drawn.items, options.voters, options.sample.seed, options.per_sheet)
    return SheetExportReport(tuple(write_sheets(drawn_sheets, options.forms, Path(folder))), drawn, len(drawn_sheets))


def export_next(
    kb: KnowledgeBase, options: NextOptions, voters: tuple[str, ...], folder: Path, forms: tuple[str, ...]
) -> tuple[NextItems, list[Path]]:
    """Give out the next items of a draw on a sheet for each voter; no files if all items are judged."""
    check_voter_names(voters)
    found = next_items(kb, options)
    if not found.ids:
        return found, []
    kind, prefix = SheetKind.SOUNDNESS, STATEMENT
    if options.kind == "predicates":
        kind, prefix = SheetKind.PREDICATES, FACT
    by_id = ItemSource(kb, kind).by_id({prefix + identity for identity in found.ids})
    items = [by_id[prefix + identity] for identity in found.ids if prefix + identity in by_id]
    if not items:
        raise HapaxError(
            f"{kb.place}: none of the {len(found.ids)} items to judge next can be read.",
            Remedy("Check the file by {}.", Operation("verify")),
        )
    return found, write_sheets(sheets(kind, items, voters, 0, None), forms, folder)


def write_sheets(voting_sheets: Sequence[VotingSheet], forms: Sequence[str], folder: Path) -> list[Path]:
    """Write each sheet in each form, with Label Studio's configuration beside JSON, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for sheet in voting_sheets:
        for form in forms:
            path = folder / f"{sheet.name}.{form}"
            # A spreadsheet takes a CSV for UTF-8 only if it begins with a byte order mark.
            text = tasks_text(sheet) if form == "json" else "\ufeff" + csv_text(sheet)
            replace_file(path, text)
            paths.append(path)
    if "json" in forms:
        for kind in sorted({sheet.kind for sheet in voting_sheets}):
            path = folder / f"{kind.value}-label-studio.xml"
            replace_file(path, labelling_config(kind))
            paths.append(path)
    return paths


def check_voter_names(voters: tuple[str, ...]) -> None:
    """Raises HapaxError for a text that cannot be a name, and for a name given twice."""
    for voter in voters:
        if not voter.strip() or refusal(voter) or voter != voter.strip():
            raise HapaxError(
                f"{voter!r} cannot be the name of a voter. Give a name or number without blanks around it."
            )
    # Without case, because file systems may ignore it in the names of the sheets.
    if len({voter.casefold() for voter in voters}) < len(voters):
        raise HapaxError(
            "Two voters have the same name.", Remedy("Give each {} a different name.", Setting("options.voters"))
        )
