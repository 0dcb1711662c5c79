"""Sheets as files: a CSV for a spreadsheet, and one HTML page for a browser, without anything from outside.

Every row carries what was asked and a check of it, so that an import finds rows that somebody changed.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from evaluation.votes.questions import WORDINGS, Example, Item, Kind
from kb.records import content_id

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
"""Between the choices of a cell."""

_FORMULA = r"[=+\-@\t\r\n＝＋－＠]"
"""How a cell begins that a spreadsheet may take for a formula."""
_DANGEROUS = re.compile(f"'*{_FORMULA}")
_DISARMED = re.compile(f"'+{_FORMULA}")


@dataclass(frozen=True, slots=True)
class Row:
    """One question on a sheet. `number` counts from 1; `check` is computed from all the rest and the sheet's id."""

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
        return row_check(sheet, rows, (str(self.number), self.item, self.question, self.text, self.asked))


@dataclass(frozen=True, slots=True)
class Sheet:
    """What one person gets: the qualification, then items in an order of their own. `voter` may be written over."""

    kind: Kind
    voter: str
    part: int
    parts: int
    items: tuple[Item, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        sections = (
            *((QUALIFICATION, one.item) for one in WORDINGS[self.kind].qualification),
            *((ITEM, one) for one in self.items),
        )
        asked = ((section, item, one) for section, item in sections for one in item.asked)
        return tuple(
            Row(number, section, item.id, one.key, item.text, one.text, one.choices, one.required, one.main)
            for number, (section, item, one) in enumerate(asked, start=1)
        )

    @property
    def id(self) -> str:
        rows = [[row.item, row.question, row.text, row.asked] for row in self.rows]
        return "s-" + content_id("sheet", self.kind, self.voter, self.part, rows)[:12]

    @property
    def name(self) -> str:
        """The beginning of the file's name."""
        part = f"-part-{self.part:0{len(str(self.parts))}}" if self.parts > 1 else ""
        return f"{self.kind.value}{part}-{re.sub(r'[^0-9A-Za-z]+', '-', self.voter).strip('-') or 'voter'}"


def row_check(sheet: str, rows: int, cells: Sequence[str]) -> str:
    """The check of a row; the letter keeps it from being read as a number."""
    return "c-" + content_id("row", sheet, rows, *cells)[:10]


def sheets(kind: Kind, items: Sequence[Item], voters: Sequence[str], seed: int, per_sheet: int | None) -> list[Sheet]:
    """A sheet for each voter, and parts where there are more items than `per_sheet`.

    Each voter has the items of a part in another order, so that no statement is always judged last.
    """
    mixed = _shuffled(items, f"{seed} parts")
    size = per_sheet or max(len(mixed), 1)
    parts = [mixed[start : start + size] for start in range(0, len(mixed), size)]
    return [
        Sheet(kind, voter, number, len(parts), tuple(_shuffled(part, f"{seed} {voter}")))
        for number, part in enumerate(parts, start=1)
        for voter in voters
    ]


def _shuffled(items: Sequence[Item], seed: str) -> list[Item]:
    mixed = list(items)
    random.Random(seed).shuffle(mixed)  # noqa: S311  # drawn again by anybody, not secret
    return mixed


# -- CSV


def csv_text(sheet: Sheet) -> str:
    """The sheet as CSV with its instructions above the questions."""
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for text in _instructions(sheet.kind):
        told = {"section": INSTRUCTIONS, "text": disarmed(text)}
        writer.writerow(told.get(name, "") for name in COLUMNS)
    rows, identity = sheet.rows, sheet.id
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
        writer.writerow(map(disarmed, cells))
    return stream.getvalue()


def _instructions(kind: Kind) -> tuple[str, ...]:
    wording = WORDINGS[kind]
    examples = (
        f"Example: {one.item.text} {' '.join(_answered(one))} {one.reason}".rstrip() for one in wording.examples
    )
    how = "Fill in the column answer; write your own name or number into every cell of the column voter."
    return (wording.title, how, *wording.instructions, *examples)


def _answered(example: Example) -> Iterator[str]:
    for asked, answer in zip(example.item.asked, example.answers, strict=True):
        yield f"{asked.text} {answer}."


def disarmed(cell: str) -> str:
    """The cell so that no spreadsheet takes it for a formula: with an apostrophe before it. `restored` undoes it."""
    return f"'{cell}" if _DANGEROUS.match(cell) else cell


def restored(cell: str) -> str:
    """The cell as it was before `disarmed`."""
    return cell[1:] if _DISARMED.match(cell) else cell


# -- HTML


def html_text(sheet: Sheet) -> str:
    """The sheet as one page that asks for nothing from outside; its policy allows its own script and style alone."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent
    script, style = ((folder / f"sheet.{ending}").read_text("utf-8") for ending in ("js", "css"))
    page = Environment(autoescape=True, loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True)
    wording, rows = WORDINGS[sheet.kind], sheet.rows
    return page.get_template("sheet.html").render(
        wording=wording,
        sheet=sheet,
        groups=list(_groups(sheet, rows)),
        examples=[(one, list(zip(one.item.asked, one.answers, strict=True))) for one in wording.examples],
        data=_island(sheet, rows),
        script=script,
        style=style,
        script_hash=_policy_hash(script),
        style_hash=_policy_hash(style),
    )


def _groups(sheet: Sheet, rows: Sequence[Row]) -> Iterator[tuple[str, int, tuple[str, ...], list[Row]]]:
    """Section, number in the section, lines to read and questions of each item."""
    items = {one.id: one for one in (*(each.item for each in WORDINGS[sheet.kind].qualification), *sheet.items)}
    for section, of_section in groupby(rows, lambda row: row.section):
        for number, (identity, of_item) in enumerate(groupby(of_section, lambda row: row.item), start=1):
            yield section, number, items[identity].lines, list(of_item)


def _island(sheet: Sheet, rows: Sequence[Row]) -> dict[str, Any]:
    """What the page's script needs to write the answers down."""
    identity = sheet.id
    return {
        "format": FORMAT,
        "sheet": identity,
        "kind": sheet.kind.value,
        "name": sheet.name,
        "rows": [
            {
                "row": row.number,
                "rows": len(rows),
                "section": row.section,
                "item": row.item,
                "question": row.question,
                "text": row.text,
                "asked": row.asked,
                "required": row.required,
                "check": row.check(identity, len(rows)),
            }
            for row in rows
        ],
    }


def _policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
