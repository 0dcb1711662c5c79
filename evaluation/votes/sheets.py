"""Sheets as files: a CSV for a spreadsheet, and JSON for Label Studio.

Every row carries its question and a checksum, by which an import finds rows that were changed by accident.
"""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hapax.evaluation.votes.questions import WORDINGS, SheetKind, VotingItem, WorkedExample
from hapax.kb.csv_text import write_rows
from hapax.kb.records import content_id

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


# -- Label Studio


def tasks_text(sheet: VotingSheet) -> str:
    """The sheet as tasks for Label Studio, in JSON: one for each question."""
    rows, identity = sheet.rows, sheet.id  # both are computed anew at each access
    tasks = []
    for row in rows:
        data = {
            "sheet": identity,
            "kind": sheet.kind.value,
            "voter": sheet.voter,
            "row": row.number,
            "rows": len(rows),
            "section": row.section,
            "item": row.item,
            "question": row.question,
            "text": row.text,
            "asked": row.asked,
            "choices": [{"value": choice} for choice in row.choices],
            "check": row.check(identity, len(rows)),
        }
        tasks.append({"data": data})
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def labelling_config(kind: SheetKind) -> str:
    """The labelling interface of Label Studio for sheets of a kind, with their instructions."""
    wording = WORDINGS[kind]
    headers = []
    for text in (wording.title, *wording.instructions, *map(_example_text, wording.examples)):
        headers.append(f'  <Header value="{escape(text)}" size="5"/>\n')
    return (
        f"<View>\n{''.join(headers)}"
        '  <Text name="text" value="$text"/>\n'
        '  <Text name="asked" value="$asked"/>\n'
        '  <Choices name="answer" toName="text" value="$choices" choice="single-radio"/>\n'
        '  <TextArea name="comment" toName="text" placeholder="Comment"/>\n'
        "</View>\n"
    )
