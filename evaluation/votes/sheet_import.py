"""Import of filled-in sheets: read and check all rows, report all faults at once, store the votes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.link.probing_questions import TEMPLATES
from hapax.evaluation.votes.sheets import COLUMNS, INSTRUCTIONS, QUALIFICATION
from hapax.evaluation.votes.voting_items import ItemSource, subject_id
from hapax.evaluation.votes.voting_questions import WORDINGS, SheetKind, VotingItem
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Setting
from hapax.grammar.writing.words import counted
from hapax.kb.exchange.csv_text import read_cell
from hapax.kb.exchange.intake import FactFault, FactsRejected
from hapax.kb.exchange.values import refusal
from hapax.kb.records import VOTES, VoteRecord
from hapax.kb.store import KnowledgeBase

_NEEDED = tuple(name for name in COLUMNS if name not in {"choices", "comment"})
_NUMBER = re.compile("[0-9]{1,7}")
_MAX_CELL = 1 << 20
"""Longest cell, as in other tables that Hapax reads; Python's own limit is 128 kB."""


_EXPORT_AGAIN = "export the project from Label Studio as JSON"


@dataclass(frozen=True, slots=True)
class FilledRow:
    """One question with its answer as it stands in the file, at `line`; `number` is its row on the sheet."""

    file: str
    line: int
    sheet: str
    kind: str
    voter: str
    number: str
    rows: str
    section: str
    item: str
    question: str
    text: str
    asked: str
    answer: str
    comment: str

    @property
    def qualifies(self) -> bool:
        """True for a question of the qualification."""
        return self.section == QUALIFICATION

    def fault(self, message: str) -> FactFault:
        return FactFault(self.file, self.line, message)


_CELLS = tuple(field.name for field in fields(FilledRow) if field.name not in {"file", "line"})


def read_sheet(path: Path) -> tuple[list[FilledRow], list[FactFault]]:
    """Read a file: its rows, and faults of the file or of rows that cannot be read.

    Raises HapaxError if the file cannot be opened.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HapaxError(f"{path}: {error.strerror}. Name a file that can be read.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The only fault of such a file: its other rows cannot be trusted either.
        line = data[: error.start].count(b"\n") + 1
        return [], [FactFault(str(path), line, "this is not UTF-8; save the sheet as CSV UTF-8")]
    try:
        rows = list(_json_rows(path, text) if text.lstrip().startswith(("[", "{")) else _csv_rows(path, text))
    except _UnreadableError as error:
        return [], [FactFault(str(path), error.line, str(error))]
    if not rows:
        return [], [FactFault(str(path), 1, "the sheet has no rows; restore the file as it was exported")]
    faults = []
    for row in rows:
        # Only these cells are the voter's own.
        for name, cell in (("voter", row.voter), ("answer", row.answer), ("comment", row.comment)):
            if reason := refusal(cell):
                faults.append(row.fault(f"{name}: {reason}"))
    # Row by row: the sound rows of a sheet are still used where faulty ones are skipped.
    faulty = {fault.line for fault in faults}
    return [row for row in rows if row.line not in faulty], faults


class _UnreadableError(Exception):
    """The file is not a sheet."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _csv_rows(path: Path, text: str) -> Iterator[FilledRow]:
    limit = csv.field_size_limit(_MAX_CELL)  # global to the process, so it is restored below
    try:
        # Some spreadsheets write semicolons or tabs, whatever separator they have read.
        header = text.partition("\n")[0]
        delimiter = max(",;\t", key=header.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        names = [name.strip().lower() for name in next(reader, [])]
        if missing := [name for name in _NEEDED if name not in names]:
            raise _UnreadableError(1, f"no column {missing[0]!r}; restore the first row as it was exported")
        # reader.line_num is the last line of a row, and a row with line ends in its cells has several.
        line = reader.line_num + 1
        for cells in reader:
            row = dict(zip(names, map(read_cell, cells), strict=False))
            if any(cells) and row.get("section", "").strip() != INSTRUCTIONS:
                yield _filled(path, line, row)
            line = reader.line_num + 1
    except csv.Error as error:
        raise _UnreadableError(reader.line_num, f"not valid CSV: {error}; save the sheet as CSV UTF-8") from error
    finally:
        csv.field_size_limit(limit)


def _json_rows(path: Path, text: str) -> Iterator[FilledRow]:
    """The rows of tasks that Label Studio exported; their lines are the numbers of the tasks in the file."""
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(getattr(error, "lineno", 1), f"not valid JSON; {_EXPORT_AGAIN}") from error
    for number, task in enumerate(tasks, start=1):
        try:
            data, annotations = task["data"], task.get("annotations", ())
            # A task that its annotator skipped or nobody opened has no answer.
            for annotation in annotations or ({"result": ()},):
                yield _filled(path, number, _texts(data) | _given(annotation))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _UnreadableError(number, f"not a task of Label Studio ({error!r}); {_EXPORT_AGAIN}") from error


def _texts(data: Mapping[str, object]) -> dict[str, str]:
    """The data of a task as texts."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in data.items()}


def _given(annotation: Mapping[str, Any]) -> dict[str, str]:
    """The answer and the comment of somebody."""
    given = {"answer": "", "comment": ""}
    for result in annotation["result"]:
        words = result["value"]["choices" if result["from_name"] == "answer" else "text"]
        given[result["from_name"]] = " ".join([words] if isinstance(words, str) else words)
    return given


def _filled(path: Path, line: int, row: Mapping[str, str]) -> FilledRow:
    cells = {}
    for name in _CELLS:
        cell = row.get("row" if name == "number" else name, "")
        # Texts are compared with their blanks.
        cell = cell if name in {"text", "asked"} else cell.strip()
        cells[name] = cell.lower() if name in {"kind", "section", "answer"} else cell
    return FilledRow(str(path), line, **cells)


def known_kind(row: FilledRow) -> SheetKind | None:
    """The kind of sheet that the row names, or None if there is no such kind."""
    return SheetKind(row.kind) if row.kind in set(SheetKind) else None


_Ballot = tuple[str, str]
"""Sheet and voter. A failed qualification disqualifies the rows of one ballot."""


class SheetsRejected(FactsRejected):
    """Filled-in sheets with faults, of which nothing was imported. `faults` holds all of them."""


@dataclass(frozen=True, slots=True)
class ReplacedVote:
    """A vote that its voter changed."""

    before: VoteRecord
    now: VoteRecord

    def __str__(self) -> str:
        return (
            f"{self.now.voter} changed {self.before.answer} to {self.now.answer}: "
            f"{self.now.question}, {self.now.statement_id}"
        )


@dataclass(frozen=True, slots=True)
class VotesReport:
    """Result of an import. `known`: number of votes that were stored before; `faults`: rows that were skipped."""

    votes: tuple[VoteRecord, ...]
    added: int
    known: int
    replaced: tuple[ReplacedVote, ...]
    faults: tuple[FactFault, ...] = ()

    @property
    def voters(self) -> int:
        """Number of different voters."""
        return len({vote.voter for vote in self.votes})


@dataclass
class _VoteCheck:
    """Collects the votes and the faults of rows. `items`: known items by kind and id."""

    items: Mapping[SheetKind, Mapping[str, VotingItem]]
    votes: dict[tuple[str, str, str], VoteRecord] = field(default_factory=dict)
    faults: list[FactFault] = field(default_factory=list)
    unqualified: set[_Ballot] = field(default_factory=set)

    def take(self, row: FilledRow) -> None:
        reason = self._reason(row)
        if reason is not None:
            self.faults.append(row.fault(reason))
        # A question that may stay open has no answer and is not a vote.
        elif row.answer and (row.sheet, row.voter) not in self.unqualified:
            vote = VoteRecord(subject_id(row.item), row.question, row.voter, row.answer, row.comment)
            # Without the sheet: a voter who has filled in two sheets has still one vote on a question.
            key = (vote.statement_id, vote.question, vote.voter)
            if key in self.votes:
                self.faults.append(
                    row.fault(
                        f"{row.voter} already answered {row.question!r} about {row.item}; keep one of the answers"
                    )
                )
            else:
                self.votes[key] = vote

    def _reason(self, row: FilledRow) -> str | None:
        """The fault of a row below the qualification, or None."""
        kind = known_kind(row)
        item = None if kind is None else self.items[kind].get(row.item)
        if item is None and kind is SheetKind.SCHEMAS:
            return (
                f"{row.item} is not one of the given schemas; import the sheet with {Setting('schemas')} and the file "
                "of the schemas"
            )
        if item is None:
            return (
                f"{row.item or 'a row without item'} is not in this knowledge base; import the sheet into the one from "
                "which it was exported"
            )
        questions = {question.key: question for question in item.questions}
        question = questions.get(row.question)
        if question is None:
            return f"{row.question!r} is not a question about {row.item}; restore the row as it was exported"
        if (row.text, row.asked) != (item.text, question.text):
            return (
                f"the text of {row.item} was changed here or in the knowledge base; restore it, or export it again and "
                "have it judged anew"
            )
        if not row.answer:
            return f"{row.question!r} about {row.item} has no answer; fill it in" if question.required else None
        if row.answer not in question.choices:
            return f"{row.answer[:40]!r} is not one of the answers; write {' or '.join(question.choices)}"
        return None


@checked
@extras_named()
def import_sheets(
    kb: KnowledgeBase,
    files: Sequence[str | Path],
    *,
    skip_faulty: Annotated[bool, Option("Skip faulty rows instead of rejecting all files.")] = False,
    schemas: Mapping[str, VotingItem] | None = None,
) -> VotesReport:
    """Store the votes of filled-in sheets. A voter's new answer to a question replaces the stored one.

    `schemas`: the Winograd schemas that may be on sheets, by id, as `schema_items` reads them from a file. Raises
    FactsRejected with every fault, and stores nothing, unless `skip_faulty`. A sheet whose voter failed the
    qualification counts as one fault, and is skipped as a whole.
    """
    sound, faults = _sound_rows(map(Path, files))
    ballots: dict[_Ballot, list[FilledRow]] = {}
    for row in sound:
        ballots.setdefault((row.sheet, row.voter), []).append(row)
    check = _VoteCheck(_items_of_rows(kb, sound, schemas or {}), faults=faults)
    # All ballots first: the rows of a qualification may stand below the others.
    for ballot, ballot_rows in ballots.items():
        if (fault := _disqualification(ballot_rows)) is not None:
            check.unqualified.add(ballot)
            check.faults.append(fault)
    for row in sound:
        if not row.qualifies:
            check.take(row)
    sorted_faults = sorted(check.faults, key=lambda fault: (fault.file, fault.line))
    if sorted_faults and not skip_faulty:
        raise SheetsRejected(sorted_faults)
    votes = tuple(check.votes.values())
    # Read and written in one transaction, so that no other import comes between.
    with kb.transaction():
        before = {vote.id: vote for vote in kb.votes()}
        kb.add(VOTES, votes)
    repeated = [vote for vote in votes if vote.id in before]
    replaced = tuple(ReplacedVote(before[vote.id], vote) for vote in repeated if before[vote.id].answer != vote.answer)
    # A vote with the same answer again counts as known, even if its comment is new.
    added, unchanged = len(votes) - len(repeated), len(repeated) - len(replaced)
    return VotesReport(votes, added, unchanged, replaced, tuple(sorted_faults))


def _items_of_rows(
    kb: KnowledgeBase, rows: Iterable[FilledRow], schemas: Mapping[str, VotingItem]
) -> dict[SheetKind, Mapping[str, VotingItem]]:
    """Items that the rows name, by kind and id; those that the knowledge base lacks are left out."""
    identities: dict[SheetKind, set[str]] = {}
    for row in rows:
        if (kind := known_kind(row)) is not None and not row.qualifies:
            identities.setdefault(kind, set()).add(row.item)
    # A baseline may ask any template.
    templates = [template.number for template in TEMPLATES]
    items: dict[SheetKind, Mapping[str, VotingItem]] = {}
    for kind, of_kind in identities.items():
        source = ItemSource(kb, kind, templates)
        items[kind] = schemas if kind is SheetKind.SCHEMAS else source.by_id(of_kind)
    return items


def _sound_rows(paths: Iterable[Path]) -> tuple[list[FilledRow], list[FactFault]]:
    """The rows of the files that can be used whatever their answers are, and the faults of all others."""
    rows: list[FilledRow] = []
    faults: list[FactFault] = []
    for path in paths:
        sheet_rows, sheet_faults = read_sheet(path)
        rows += sheet_rows
        faults += sheet_faults
    faults += _missing_rows(rows)
    sound = []
    for row in rows:
        if not row.voter:
            faults.append(row.fault("the row names no voter; write a name or number into the cell"))
        else:
            sound.append(row)
    return sound, faults


def _missing_rows(rows: Iterable[FilledRow]) -> Iterator[FactFault]:
    """A fault for each sheet in a file that lacks some of its rows."""
    sheets: dict[tuple[str, str], list[FilledRow]] = {}
    for row in rows:
        sheets.setdefault((row.file, row.sheet), []).append(row)
    for sheet_rows in sheets.values():
        counts = {int(row.rows) for row in sheet_rows if _NUMBER.fullmatch(row.rows)}
        missing = max(counts, default=0) - len({row.number for row in sheet_rows})
        if missing > 0:
            yield sheet_rows[-1].fault(
                f"{counted(missing, 'row')} of sheet {sheet_rows[0].sheet} not found; restore them"
            )


def _disqualification(rows: Sequence[FilledRow]) -> FactFault | None:
    """The fault of a ballot whose qualification is missing or failed, or None."""
    kind = known_kind(rows[0])
    right: dict[tuple[str, str], str] = {}
    for example in WORDINGS[kind].qualification if kind else ():
        for question, answer in zip(example.item.questions, example.answers, strict=True):
            right[example.item.id, question.key] = answer
    filled = {(row.item, row.question): row for row in rows if row.qualifies}
    voter = rows[0].voter
    if not filled:
        return rows[0].fault(f"{voter} has no rows of the qualification; restore them, with this voter in each")
    # A question of the qualification without a row is as wrong as a wrong answer.
    wrong = [key for key, answer in right.items() if key not in filled or filled[key].answer != answer]
    if not wrong:
        return None
    # Reported at the first wrong answer; without one, all wrong answers are missing rows.
    place = next((filled[key] for key in wrong if key in filled), rows[0])
    return place.fault(
        f"{voter} failed the qualification, by {len(wrong)} of {counted(len(right), 'question')}; leave this sheet "
        "out, and give its items to somebody else"
    )
