"""Sheets, from options to files and back: a CSV for a spreadsheet, JSON for Label Studio, and the votes on both."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.shared.result_tables import grouped
from hapax.evaluation.votes.voting_items import (
    FACT,
    STATEMENT,
    ItemSource,
    NextItems,
    NextOptions,
    SheetExportOptions,
    next_items,
    subject_id,
)
from hapax.evaluation.votes.voting_questions import WORDINGS, SheetKind, VotingItem
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.exchange.csv_text import read_cell, write_rows
from hapax.kb.exchange.intake import FactFault, FactsRejected
from hapax.kb.exchange.values import refusal
from hapax.kb.files.unfinished import replace_file
from hapax.kb.judgement_records import VOTES, VoteRecord
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase

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
)
PARTED_BY = " / "
"""Separates the choices in a cell."""


@dataclass(frozen=True, slots=True)
class VotingSheet:
    """The sheet of one person: the qualification, then items in this person's order. The voter may change the name."""

    kind: SheetKind
    voter: str
    part: int
    parts: int
    items: tuple[VotingItem, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The cells of all questions, by their columns."""
        sections = [(QUALIFICATION, example.item) for example in WORDINGS[self.kind].qualification]
        sections += [(ITEM, item) for item in self.items]
        asked = [(section, item, question) for section, item in sections for question in item.questions]
        # Of the content: a sheet that asks something else has another id.
        content = [[item.id, question.key, item.text, question.text] for _, item, question in asked]
        identity = "s-" + content_id("sheet", self.kind, self.voter, self.part, content)[:12]
        rows = []
        for number, (section, item, question) in enumerate(asked, start=1):
            rows.append(
                {
                    "sheet": identity,
                    "kind": self.kind.value,
                    "voter": self.voter,
                    "row": number,
                    "rows": len(asked),
                    "section": section,
                    "item": item.id,
                    "question": question.key,
                    "text": item.text,
                    "asked": question.text,
                    "choices": question.choices,
                }
            )
        return rows

    @property
    def name(self) -> str:
        """Name of the sheet's files, without suffix."""
        # Leading zeros keep the parts in order in a folder.
        part = f"-part-{self.part:0{len(str(self.parts))}}" if self.parts > 1 else ""
        # Any text may be a voter's name, but not a part of a file's.
        return f"{self.kind.value}{part}-{re.sub(r'[^0-9A-Za-z]+', '-', self.voter).strip('-') or 'voter'}"

    def text(self, form: str) -> str:
        """The sheet as a file: `json` has a task for each question; `csv` has the instructions above the questions."""
        if form == "json":
            tasks = [
                {"data": {**row, "choices": [{"value": choice} for choice in row["choices"]]}} for row in self.rows
            ]
            return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"
        how = "Fill in the column answer, and write your own name or number into every cell of the column voter."
        title, *texts = _texts(self.kind)
        # A spreadsheet keeps rows only, so instructions are rows that an import passes over.
        rows: list[dict[str, Any]] = [{"section": INSTRUCTIONS, "text": text} for text in (title, how, *texts)]
        rows += [{**row, "choices": PARTED_BY.join(row["choices"])} for row in self.rows]
        lines, stream = [[str(row.get(name, "")) for name in COLUMNS] for row in rows], io.StringIO()
        write_rows(stream, [COLUMNS, *lines], end="\r\n", quotes_all=True)
        # A spreadsheet takes a CSV for UTF-8 only if it begins with a byte order mark.
        return "\ufeff" + stream.getvalue()


def _texts(kind: SheetKind) -> list[str]:
    """Title, instructions and examples of a kind of sheet."""
    wording = WORDINGS[kind]
    texts = [wording.title, *wording.instructions]
    for example in wording.examples:
        asked = zip(example.item.questions, example.answers, strict=True)
        answered = " ".join(f"{question.text} {answer}." for question, answer in asked)
        texts.append(f"Example: {example.item.text} {answered} {example.reason}".rstrip())
    return texts


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


@dataclass(frozen=True, slots=True)
class SheetExportReport:
    """The files written, and the numbers of items and of sheets."""

    files: tuple[Path, ...]
    items: int
    sheets: int


@checked
def export_sheets(kb: KnowledgeBase, options: SheetExportOptions, folder: str | Path) -> SheetExportReport:
    """Write sheets of statements, facts or LINK's questions for people to the files of a folder.

    The same knowledge base and options give the same bytes. Raises HapaxError for bad names of voters, and if there is
    nothing to ask.
    """
    check_voter_names(options.voters)
    items = ItemSource(kb, options.kind).draw(options)
    if not items:
        raise HapaxError(
            f"{kb.place}: there is nothing to ask on a sheet of {options.kind.value}.",
            Remedy("Draw more, omit {}, or name rules with such statements.", Setting("options.unjudged")),
        )
    drawn = sheets(options.kind, items, options.voters, options.seed, options.per_sheet)
    return SheetExportReport(tuple(write_sheets(drawn, options.forms, Path(folder))), len(items), len(drawn))


def export_next(
    kb: KnowledgeBase, options: NextOptions, voters: tuple[str, ...], folder: Path, forms: tuple[str, ...]
) -> tuple[NextItems, list[Path]]:
    """Give out the next items of a draw on a sheet for each voter; no files if all items are judged."""
    check_voter_names(voters)
    found = next_items(kb, options)
    if not found.ids:
        return found, []
    is_of_facts = options.kind == "predicates"
    kind, prefix = (SheetKind.PREDICATES, FACT) if is_of_facts else (SheetKind.SOUNDNESS, STATEMENT)
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
    texts = {folder / f"{sheet.name}.{form}": sheet.text(form) for sheet in voting_sheets for form in forms}
    for kind in sorted({sheet.kind for sheet in voting_sheets}) if "json" in forms else ():
        headers = [f'  <Header value="{escape(text)}" size="5"/>\n' for text in _texts(kind)]
        texts[folder / f"{kind.value}-label-studio.xml"] = (
            f"<View>\n{''.join(headers)}"
            '  <Text name="text" value="$text"/>\n'
            '  <Text name="asked" value="$asked"/>\n'
            '  <Choices name="answer" toName="text" value="$choices" choice="single-radio"/>\n'
            '  <TextArea name="comment" toName="text" placeholder="Comment"/>\n'
            "</View>\n"
        )
    for path, text in texts.items():
        replace_file(path, text)
    return list(texts)


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


# --- filled-in sheets -------------------------------------------------------------------------------------------------

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


class _UnreadableError(Exception):
    """The file is not a sheet."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _file_rows(path: Path) -> tuple[list[FilledRow], list[FactFault]]:
    """The rows of a file whose own cells can be stored, and the faults of the file or of the other rows.

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
    ballots = grouped(rows, lambda row: row.ballot)
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
        raise FactsRejected(faults)
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
    named: dict[SheetKind, set[str]] = {}
    for row in rows:
        if row.kind is not None and not row.qualifies:
            named.setdefault(row.kind, set()).add(row.cells["item"])
    items: dict[SheetKind, Mapping[str, VotingItem]] = {SheetKind.SCHEMAS: schemas}
    for kind in named.keys() - items.keys():
        items[kind] = ItemSource(kb, kind).by_id(named[kind])
    return items


def _sound_rows(paths: Iterable[Path]) -> tuple[list[FilledRow], list[FactFault]]:
    """The rows of the files that can be used whatever their answers are, and the faults of all others."""
    sound: list[FilledRow] = []
    faults: list[FactFault] = []
    sheets: dict[tuple[str, str], list[FilledRow]] = {}
    for path in paths:
        rows, sheet_faults = _file_rows(path)
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
