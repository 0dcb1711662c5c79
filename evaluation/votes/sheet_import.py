"""Import of filled-in sheets: read and check all rows, report all faults at once, store the votes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hapax.evaluation.link.probing_questions import TEMPLATES
from hapax.evaluation.votes.sheets import INSTRUCTIONS, QUALIFICATION
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
from hapax.kb.judgement_records import VOTES, VoteRecord
from hapax.kb.store import KnowledgeBase

_CELLS = ("sheet", "kind", "voter", "row", "rows", "section", "item", "question", "text", "asked", "answer", "comment")
"""The cells of a row that an import reads; all but the comment are needed."""
_NUMBER = re.compile("[0-9]{1,7}")
_MAX_CELL = 1 << 20
"""Longest cell, as in other tables that Hapax reads; Python's own limit is 128 kB."""

_EXPORT_AGAIN = "export the project from Label Studio as JSON"


@dataclass(frozen=True, slots=True)
class FilledRow:
    """One question with its answer as it stands in the file, at `line`. `cells`: by `_CELLS`."""

    file: str
    line: int
    cells: Mapping[str, str]

    @property
    def ballot(self) -> tuple[str, str]:
        """Sheet and voter. A failed qualification disqualifies the rows of one ballot."""
        return self.cells["sheet"], self.cells["voter"]

    @property
    def kind(self) -> SheetKind | None:
        """The kind of sheet that the row names, or None if there is no such kind."""
        return SheetKind(self.cells["kind"]) if self.cells["kind"] in set(SheetKind) else None

    @property
    def qualifies(self) -> bool:
        """True for a question of the qualification."""
        return self.cells["section"] == QUALIFICATION

    def fault(self, message: str) -> FactFault:
        return FactFault(self.file, self.line, message)


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
        rows = list(_json_rows(path, text) if text.lstrip().startswith(("[", "{")) else _csv_rows(path, text))
    except UnicodeDecodeError as error:
        # The only fault of such a file: its other rows cannot be trusted either.
        line = data[: error.start].count(b"\n") + 1
        return [], [FactFault(str(path), line, "this is not UTF-8; save the sheet as CSV UTF-8")]
    except _UnreadableError as error:
        return [], [FactFault(str(path), error.line, str(error))]
    if not rows:
        return [], [FactFault(str(path), 1, "the sheet has no rows; restore the file as it was exported")]
    # Row by row: the sound rows of a sheet are still used where faulty ones are skipped.
    sound, faults = [], []
    for row in rows:
        # Only these cells are the voter's own.
        reasons = [(name, refusal(row.cells[name])) for name in ("voter", "answer", "comment")]
        own = [row.fault(f"{name}: {reason}") for name, reason in reasons if reason]
        faults += own
        sound += [] if own else [row]
    return sound, faults


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
        if missing := [name for name in _CELLS if name not in (*names, "comment")]:
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
            texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in data.items()}
            # A task that its annotator skipped or nobody opened has no answer.
            for annotation in annotations or ({"result": ()},):
                given = {"answer": "", "comment": ""}
                for result in annotation["result"]:
                    words = result["value"]["choices" if result["from_name"] == "answer" else "text"]
                    given[result["from_name"]] = " ".join([words] if isinstance(words, str) else words)
                yield _filled(path, number, texts | given)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _UnreadableError(number, f"not a task of Label Studio ({error!r}); {_EXPORT_AGAIN}") from error


def _filled(path: Path, line: int, row: Mapping[str, str]) -> FilledRow:
    cells = {}
    for name in _CELLS:
        # Texts are compared with their blanks.
        cell = row.get(name, "") if name in {"text", "asked"} else row.get(name, "").strip()
        cells[name] = cell.lower() if name in {"kind", "section", "answer"} else cell
    return FilledRow(str(path), line, cells)


class SheetsRejected(FactsRejected):
    """Filled-in sheets with faults, of which nothing was imported. `faults` holds all of them."""


@dataclass(frozen=True, slots=True)
class VotesReport:
    """Result of an import. `known`: number of votes that were stored before; `faults`: rows that were skipped.

    `replaced`: votes that their voters changed, in words.
    """

    votes: tuple[VoteRecord, ...]
    added: int
    known: int
    replaced: tuple[str, ...]
    faults: tuple[FactFault, ...] = ()

    @property
    def voters(self) -> int:
        """Number of different voters."""
        return len({vote.voter for vote in self.votes})


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
    rows, faults = _sound_rows(map(Path, files))
    ballots: dict[tuple[str, str], list[FilledRow]] = {}
    for row in rows:
        ballots.setdefault(row.ballot, []).append(row)
    # All ballots first: the rows of a qualification may stand below the others.
    failed = {ballot: fault for ballot, own in ballots.items() if (fault := _disqualification(own)) is not None}
    faults += failed.values()
    votes: dict[tuple[str, str, str], VoteRecord] = {}
    items = _items_of_rows(kb, rows, schemas or {})
    for row in rows:
        if row.qualifies:
            continue
        reason, cells = _reason(row, items), row.cells
        voter, item, question = cells["voter"], cells["item"], cells["question"]
        # Without the sheet: a voter who has filled in two sheets has still one vote on a question.
        key = (subject_id(item), question, voter)
        # A question that may stay open has no answer and is not a vote.
        is_vote = reason is None and bool(cells["answer"]) and row.ballot not in failed
        if is_vote and key in votes:
            reason = f"{voter} already answered {question!r} about {item}; keep one of the answers"
        elif is_vote:
            votes[key] = VoteRecord(*key, cells["answer"], cells["comment"])
        if reason is not None:
            faults.append(row.fault(reason))
    faults.sort(key=lambda fault: (fault.file, fault.line))
    if faults and not skip_faulty:
        raise SheetsRejected(faults)
    # Read and written in one transaction, so that no other import comes between.
    with kb.transaction():
        before = {vote.id: vote for vote in kb.votes()}
        kb.add(VOTES, votes.values())
    repeated = [(before[vote.id], vote) for vote in votes.values() if vote.id in before]
    replaced = []
    # A vote with the same answer again counts as known, even if its comment is new.
    for old, new in repeated:
        if old.answer != new.answer:
            replaced.append(f"{new.voter} changed {old.answer} to {new.answer}: {new.question}, {new.statement_id}")
    counts = (len(votes) - len(repeated), len(repeated) - len(replaced))
    return VotesReport(tuple(votes.values()), *counts, tuple(replaced), tuple(faults))


def _reason(row: FilledRow, items: Mapping[SheetKind, Mapping[str, VotingItem]]) -> str | None:
    """The fault of a row below the qualification, or None. `items`: known items by kind and id."""
    name, key, answer = row.cells["item"], row.cells["question"], row.cells["answer"]
    item = None if row.kind is None else items[row.kind].get(name)
    if item is None and row.kind is SheetKind.SCHEMAS:
        return (
            f"{name} is not one of the given schemas; import the sheet with {Setting('schemas')} and the file of the "
            "schemas"
        )
    if item is None:
        return (
            f"{name or 'a row without item'} is not in this knowledge base; import the sheet into the one from which "
            "it was exported"
        )
    question = next((question for question in item.questions if question.key == key), None)
    if question is None:
        return f"{key!r} is not a question about {name}; restore the row as it was exported"
    if (row.cells["text"], row.cells["asked"]) != (item.text, question.text):
        return (
            f"the text of {name} was changed here or in the knowledge base; restore it, or export it again and have it "
            "judged anew"
        )
    if not answer:
        return f"{key!r} about {name} has no answer; fill it in" if question.required else None
    if answer not in question.choices:
        return f"{answer[:40]!r} is not one of the answers; write {' or '.join(question.choices)}"
    return None


def _items_of_rows(
    kb: KnowledgeBase, rows: Iterable[FilledRow], schemas: Mapping[str, VotingItem]
) -> dict[SheetKind, Mapping[str, VotingItem]]:
    """Items that the rows name, by kind and id; those that the knowledge base lacks are left out."""
    identities: dict[SheetKind, set[str]] = {}
    for row in rows:
        if row.kind is not None and not row.qualifies:
            identities.setdefault(row.kind, set()).add(row.cells["item"])
    # A baseline may ask any template.
    templates = [template.number for template in TEMPLATES]
    items: dict[SheetKind, Mapping[str, VotingItem]] = {}
    for kind, of_kind in identities.items():
        items[kind] = schemas if kind is SheetKind.SCHEMAS else ItemSource(kb, kind, templates).by_id(of_kind)
    return items


def _sound_rows(paths: Iterable[Path]) -> tuple[list[FilledRow], list[FactFault]]:
    """The rows of the files that can be used whatever their answers are, and the faults of all others."""
    sound: list[FilledRow] = []
    faults: list[FactFault] = []
    sheets: dict[tuple[str, str], list[FilledRow]] = {}
    for path in paths:
        rows, sheet_faults = read_sheet(path)
        faults += sheet_faults
        for row in rows:
            sheets.setdefault((row.file, row.cells["sheet"]), []).append(row)
            if row.cells["voter"]:
                sound.append(row)
            else:
                faults.append(row.fault("the row names no voter; write a name or number into the cell"))
    for (_, sheet), rows in sheets.items():
        counts = {int(row.cells["rows"]) for row in rows if _NUMBER.fullmatch(row.cells["rows"])}
        missing = max(counts, default=0) - len({row.cells["row"] for row in rows})
        if missing > 0:
            faults.append(rows[-1].fault(f"{counted(missing, 'row')} of sheet {sheet} not found; restore them"))
    return sound, faults


def _disqualification(rows: Sequence[FilledRow]) -> FactFault | None:
    """The fault of a ballot whose qualification is missing or failed, or None."""
    kind, voter = rows[0].kind, rows[0].cells["voter"]
    right: dict[tuple[str, str], str] = {}
    for example in WORDINGS[kind].qualification if kind else ():
        for question, answer in zip(example.item.questions, example.answers, strict=True):
            right[example.item.id, question.key] = answer
    filled = {(row.cells["item"], row.cells["question"]): row for row in rows if row.qualifies}
    if not filled:
        return rows[0].fault(f"{voter} has no rows of the qualification; restore them, with this voter in each")
    # A question of the qualification without a row is as wrong as a wrong answer.
    wrong = [key for key, answer in right.items() if key not in filled or filled[key].cells["answer"] != answer]
    if not wrong:
        return None
    # Reported at the first wrong answer; without one, all wrong answers are missing rows.
    place = next((filled[key] for key in wrong if key in filled), rows[0])
    return place.fault(
        f"{voter} failed the qualification, by {len(wrong)} of {counted(len(right), 'question')}; leave this sheet "
        "out, and give its items to somebody else"
    )
