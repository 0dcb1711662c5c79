"""Sheets as files: a CSV for a spreadsheet, and a self-contained HTML page for a browser.

Every row carries its question and a checksum, by which an import finds rows that were changed by accident.
"""

from __future__ import annotations

import base64
import hashlib
import io
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from hapax.evaluation.votes.questions import WORDINGS, SheetKind, VotingItem, WorkedExample
from hapax.kb.csv_text import write_rows
from hapax.kb.records import content_id

FORMAT = "hapax votes 1"
QUALIFICATION, ITEM, INSTRUCTIONS = "qualification", "item", "instructions"
COLUMNS = (
    "sheet",
    "kind",
    "voter",
    "row",
    "rows",
    "section",
    "item",
    "question",
    "text",
    "asked",
    "choices",
    "answer",
    "comment",
    "check",
)
PARTED_BY = " / "
"""Separates the choices in a cell."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One question on a sheet. `number` counts from 1."""

    number: int
    section: str
    item: str
    question: str
    text: str
    asked: str
    choices: tuple[str, ...]
    required: bool
    main: bool

    def check(self, sheet: str, rows: int) -> str:
        """Checksum of the row on the sheet of this id and number of rows."""
        return row_check(sheet, rows, (str(self.number), self.item, self.question, self.text, self.asked))


@dataclass(frozen=True, slots=True)
class VotingSheet:
    """The sheet of one person: the qualification, then items in this person's order. The voter may change the name."""

    kind: SheetKind
    voter: str
    part: int
    parts: int
    items: tuple[VotingItem, ...]

    @property
    def rows(self) -> tuple[SheetRow, ...]:
        """All questions of the sheet."""
        sections = [(QUALIFICATION, example.item) for example in WORDINGS[self.kind].qualification]
        sections += [(ITEM, item) for item in self.items]
        rows: list[SheetRow] = []
        for section, item in sections:
            for question in item.questions:
                rows.append(
                    SheetRow(
                        number=len(rows) + 1,
                        section=section,
                        item=item.id,
                        question=question.key,
                        text=item.text,
                        asked=question.text,
                        choices=question.choices,
                        required=question.required,
                        main=question.main,
                    )
                )
        return tuple(rows)

    @property
    def id(self) -> str:
        # Of the content: a sheet that asks something else has another id, and its checksums do not fit this one.
        rows = [[row.item, row.question, row.text, row.asked] for row in self.rows]
        return "s-" + content_id("sheet", self.kind, self.voter, self.part, rows)[:12]

    @property
    def name(self) -> str:
        """Name of the sheet's files, without suffix."""
        # Leading zeros keep the parts in order in a folder.
        part = f"-part-{self.part:0{len(str(self.parts))}}" if self.parts > 1 else ""
        # Any text may be a voter's name, but not a part of a file's.
        return f"{self.kind.value}{part}-{re.sub(r'[^0-9A-Za-z]+', '-', self.voter).strip('-') or 'voter'}"


def row_check(sheet: str, rows: int, cells: Sequence[str]) -> str:
    """Checksum of a row's cells."""
    # The letter keeps spreadsheets from reading the checksum as a number.
    # Ten hexadecimal digits find accidents; against forgery they are not meant.
    return "c-" + content_id("row", sheet, rows, *cells)[:10]


def sheets(
    kind: SheetKind, items: Sequence[VotingItem], voters: Sequence[str], seed: int, per_sheet: int | None
) -> list[VotingSheet]:
    """Make a sheet for each voter, in parts of at most `per_sheet` items.

    Each voter has the items of a part in another order, so that no statement is always judged last.
    """
    # Parts are the same for all voters, so that a part's questions get votes of all.
    # Shuffled before they are cut, or the first part would hold all head statements.
    shuffled = _shuffled(items, f"{seed} parts")
    size = per_sheet or max(len(shuffled), 1)
    parts = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    voting_sheets = []
    for number, part in enumerate(parts, start=1):
        # The voter is part of the seed, so that everybody has another order, and the same at every export.
        for voter in voters:
            in_order = tuple(_shuffled(part, f"{seed} {voter}"))
            voting_sheets.append(VotingSheet(kind, voter, number, len(parts), in_order))
    return voting_sheets


def _shuffled(items: Sequence[VotingItem], seed: str) -> list[VotingItem]:
    shuffled = list(items)
    # Seeded by a text, which Python hashes the same way in every process, unlike `hash`.
    random.Random(seed).shuffle(shuffled)  # noqa: S311  # reproducible, not secret
    return shuffled


# -- CSV


def csv_text(sheet: VotingSheet) -> str:
    """The sheet as CSV, with its instructions above the questions."""
    stream = io.StringIO()
    lines: list[Sequence[str]] = [COLUMNS]
    wording = WORDINGS[sheet.kind]
    how = "Fill in the column answer, and write your own name or number into every cell of the column voter."
    for text in (wording.title, how, *wording.instructions, *map(_example_text, wording.examples)):
        # A spreadsheet keeps rows only, so instructions are rows that an import passes over.
        instruction = {"section": INSTRUCTIONS, "text": text}
        lines.append([instruction.get(name, "") for name in COLUMNS])
    rows, identity = sheet.rows, sheet.id  # both are computed anew at each access
    for row in rows:
        cells = (
            identity,
            sheet.kind.value,
            sheet.voter,
            str(row.number),
            str(len(rows)),
            row.section,
            row.item,
            row.question,
            row.text,
            row.asked,
            PARTED_BY.join(row.choices),
            "",
            "",
            row.check(identity, len(rows)),
        )
        lines.append(cells)
    write_rows(stream, lines, end="\r\n", quotes_all=True)
    return stream.getvalue()


def _example_text(example: WorkedExample) -> str:
    answered = " ".join(
        f"{question.text} {answer}." for question, answer in zip(example.item.questions, example.answers, strict=True)
    )
    return f"Example: {example.item.text} {answered} {example.reason}".rstrip()


# -- HTML


def html_text(sheet: VotingSheet) -> str:
    """The sheet as a page that loads nothing; its policy allows no script and no style but its own."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent
    script, style = ((folder / f"sheet.{ending}").read_text("utf-8") for ending in ("js", "css"))
    page = Environment(autoescape=True, loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True)
    wording, rows = WORDINGS[sheet.kind], sheet.rows
    examples = []
    for example in wording.examples:
        examples.append((example, list(zip(example.item.questions, example.answers, strict=True))))
    return page.get_template("sheet.html").render(
        wording=wording,
        sheet=sheet,
        groups=list(_groups(sheet, rows)),
        examples=examples,
        data=_island(sheet, rows),  # as JSON in an element that no browser runs
        script=script,
        style=style,
        script_hash=_policy_hash(script),
        style_hash=_policy_hash(style),
    )


def _groups(sheet: VotingSheet, rows: Sequence[SheetRow]) -> Iterator[tuple[str, int, tuple[str, ...], list[SheetRow]]]:
    """Section, number in the section, lines to read and questions of each item."""
    items = {item.id: item for item in sheet.items}
    items |= {example.item.id: example.item for example in WORDINGS[sheet.kind].qualification}
    for section, of_section in groupby(rows, lambda row: row.section):
        for number, (identity, of_item) in enumerate(groupby(of_section, lambda row: row.item), start=1):
            yield section, number, items[identity].lines, list(of_item)


def _island(sheet: VotingSheet, rows: Sequence[SheetRow]) -> dict[str, Any]:
    """Data from which the page's script writes the file of answers."""
    identity = sheet.id  # computed anew at each access
    cells = []
    for row in rows:
        same_names = ("section", "item", "question", "text", "asked", "required")
        own = {name: getattr(row, name) for name in same_names}
        cells.append({"row": row.number, "rows": len(rows), **own, "check": row.check(identity, len(rows))})
    return {"format": FORMAT, "sheet": identity, "kind": sheet.kind.value, "name": sheet.name, "rows": cells}


def _policy_hash(text: str) -> str:
    """The form in which a Content-Security-Policy names the one script or style that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
