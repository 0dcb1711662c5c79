"""One export from options to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.votes.items import Askable, Draw, Drawn
from evaluation.votes.questions import Kind
from evaluation.votes.sheets import Sheet, csv_text, html_text, sheets
from grammar.errors import HapaxError
from grammar.words import counted
from kb.records import Distribution
from kb.store import KnowledgeBase
from kb.values import refusal

RULES_AUDITED = 3
"""As in appendix C."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an export is told. `per_sheet` None: all items on one sheet."""

    kind: Kind
    draw: Draw
    voters: tuple[str, ...]
    per_sheet: int | None = None
    templates: tuple[int, ...] = (5,)
    forms: tuple[str, ...] = ("html", "csv")

    @classmethod
    def of(cls, kind: str, options: Mapping[str, Any]) -> ExportOptions:
        """From the options of the command line."""
        audited = RULES_AUDITED if kind == Kind.PREDICATES and not options["chosen"] else None
        given = options["draw_rules"]
        draw = Draw(
            options["seed"],
            options["sample"] or None,
            None if options["head"] is None else (options["head"], options["long_tail"]),
            options["chosen"],
            options["runs"],
            audited if given is None else given or None,
            options["unjudged"],
        )
        return cls(
            Kind(kind),
            draw,
            options["named"] or tuple(f"voter-{number}" for number in range(1, options["voters"] + 1)),
            options["per_sheet"],
            options["templates"],
            ("html", "csv") if options["form"] == "both" else (options["form"],),
        )


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The files written, and what is on them."""

    paths: tuple[Path, ...]
    drawn: Drawn
    sheets: int

    def __str__(self) -> str:
        head, long_tail = (self.drawn.counts[each] for each in Distribution)
        judged = " that people judged" if self.drawn.judged_only else ""
        return (
            f"{head} head and {long_tail} long-tail statements{judged} drawn; "
            f"{counted(len(self.drawn.items), 'item')} on {counted(self.sheets, 'sheet')}"
        )


def export_sheets(kb: KnowledgeBase, options: ExportOptions, folder: Path) -> ExportReport:
    """Write the sheets of an export. The same knowledge base and options give the same bytes."""
    refuse_voters(options.voters)
    drawn = Askable(kb, options.kind, options.templates).drawn(options.draw)
    if not drawn.items:
        raise HapaxError(
            f"{kb.place}: nothing to ask on a sheet of {options.kind.value}. Draw more, leave --new out, or name rules "
            "with such statements."
        )
    made = sheets(options.kind, drawn.items, options.voters, options.draw.seed, options.per_sheet)
    return ExportReport(tuple(write_sheets(made, options.forms, folder)), drawn, len(made))


def write_sheets(made: Sequence[Sheet], forms: Sequence[str], folder: Path) -> list[Path]:
    """Write each sheet in each form; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for one in made:
        for form in forms:
            path = folder / f"{one.name}.{form}"
            # A spreadsheet takes a CSV for UTF-8 only if it begins with a byte order mark.
            text = html_text(one) if form == "html" else "\ufeff" + csv_text(one)
            path.write_bytes(text.encode("utf-8"))
            paths.append(path)
    return paths


def refuse_voters(voters: tuple[str, ...]) -> None:
    """Raises HapaxError for what is no name, and for a name given twice."""
    for voter in voters:
        if not voter.strip() or refusal(voter) or voter != voter.strip():
            raise HapaxError(f"{voter!r} is no name of a voter. Give a name or number without blanks at its ends.")
    if len({one.casefold() for one in voters}) < len(voters):
        raise HapaxError("Two voters have one name. Give each another --voter.")
