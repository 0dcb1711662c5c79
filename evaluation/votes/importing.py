"""From filled sheets to votes: every fault is told at once, and what is stored can be stored again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from evaluation.probing.templates import TEMPLATES
from evaluation.votes.items import Askable, subject
from evaluation.votes.questions import WORDINGS, Asked, Item, Kind
from evaluation.votes.reading import FilledRow, known_kind, read_sheet
from grammar.words import counted
from kb.exchange import FactFault, FactsRejected
from kb.records import VoteRecord
from kb.store import KnowledgeBase

_Ballot = tuple[str, str]
"""Sheet and voter: whose qualification counts for which rows."""


class SheetsRejected(FactsRejected):
    """Filled sheets with faults, of which nothing was imported. `faults` holds all of them."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A vote that its voter changed."""

    before: VoteRecord
    now: VoteRecord

    def __str__(self) -> str:
        return (
            f"{self.now.voter} says {self.now.answer} where there was {self.before.answer}: "
            f"{self.now.question}, {self.now.statement_id}"
        )


@dataclass(frozen=True, slots=True)
class VotesReport:
    """What an import brought. `known`: votes that were there already."""

    votes: tuple[VoteRecord, ...]
    added: int
    known: int
    replaced: tuple[Replaced, ...]
    faults: tuple[FactFault, ...] = ()

    @property
    def voters(self) -> int:
        return len({one.voter for one in self.votes})


@dataclass
class _Checking:
    """Sheets being checked: votes and faults pile up side by side."""

    items: Mapping[Kind, Mapping[str, Item]]
    votes: dict[tuple[str, str, str], VoteRecord] = field(default_factory=dict)
    faults: list[FactFault] = field(default_factory=list)
    unqualified: set[_Ballot] = field(default_factory=set)

    def take(self, row: FilledRow) -> None:
        reason = self._reason(row)
        if reason is not None:
            self.faults.append(row.fault(reason))
        if reason is None and row.answer and (row.sheet, row.voter) not in self.unqualified:
            vote = VoteRecord(subject(row.item), row.question, row.voter, row.answer, row.comment)
            if (vote.statement_id, vote.question, vote.voter) in self.votes:
                self.faults.append(
                    row.fault(f"{row.voter} has answered {row.question!r} about {row.item} before; keep one of the two")
                )
            else:
                self.votes[vote.statement_id, vote.question, vote.voter] = vote

    def _reason(self, row: FilledRow) -> str | None:
        """What is wrong with a row that is none of the qualification."""
        kind = known_kind(row)
        item = None if kind is None else self.items[kind].get(row.item)
        if item is None and kind is Kind.SCHEMAS:
            return (
                f"{row.item} is none of the schemas at hand; import by hapax evaluate winograd import, with their file"
            )
        if item is None:
            return (
                f"{row.item or 'a row without item'} is not in this knowledge base; import into the one that the sheet "
                "was exported from"
            )
        asked = next((one for one in item.asked if one.key == row.question), None)
        if asked is None:
            return f"nobody asked {row.question!r} about {row.item}; restore the row as it was exported"
        if (row.text, row.asked) != (item.text, asked.text):
            return (
                f"{row.item} reads otherwise in this knowledge base by now; export it again and have it judged as it is"
            )
        return _answer_fault(row, asked)


def import_sheets(
    kb: KnowledgeBase, paths: Sequence[Path], *, skip_faulty: bool = False, schemas: Mapping[str, Item] | None = None
) -> VotesReport:
    """Store the votes of filled sheets. A voter's second answer to a question replaces the first, and is told.

    Raises `SheetsRejected` with every fault, and imports nothing, unless the faulty rows are to be skipped. A sheet
    whose voter failed the qualification is skipped as a whole. `schemas`: the Winograd schemas that may be on sheets,
    by id; they come from a file and not from the knowledge base.
    """
    read = [read_sheet(path) for path in paths]
    rows = [row for several, _ in read for row in several]
    faults = [fault for _, several in read for fault in several]
    faults += _lacking(rows)
    sound = []
    for row in rows:
        if reason := _broken(row):
            faults.append(row.fault(reason))
        else:
            sound.append(row)
    checking = _Checking(_known(kb, sound, schemas or {}), faults=faults)
    for ballot, several in _by_ballot(sound).items():
        if (fault := _disqualified(several)) is not None:
            checking.unqualified.add(ballot)
            checking.faults.append(fault)
    for row in sound:
        if not row.qualifies:
            checking.take(row)
    faults = sorted(checking.faults, key=lambda fault: (fault.file, fault.line))
    if faults and not skip_faulty:
        raise SheetsRejected(faults)
    return _stored(kb, tuple(checking.votes.values()), tuple(faults))


def _stored(kb: KnowledgeBase, votes: tuple[VoteRecord, ...], faults: tuple[FactFault, ...]) -> VotesReport:
    with kb.transaction():
        before = {one.id: one for one in kb.votes()}
        kb.add_votes(votes)
    replaced = tuple(
        Replaced(before[one.id], one) for one in votes if one.id in before and before[one.id].answer != one.answer
    )
    met = sum(one.id in before for one in votes)
    return VotesReport(votes, len(votes) - met, met - len(replaced), replaced, faults)


def _known(kb: KnowledgeBase, rows: Iterable[FilledRow], schemas: Mapping[str, Item]) -> dict[Kind, Mapping[str, Item]]:
    wanted: dict[Kind, set[str]] = {}
    for row in rows:
        if (kind := known_kind(row)) is not None and not row.qualifies:
            wanted.setdefault(kind, set()).add(row.item)
    everything = tuple(one.number for one in TEMPLATES)
    return {
        kind: schemas if kind is Kind.SCHEMAS else Askable(kb, kind, everything).found(items)
        for kind, items in wanted.items()
    }


def _by_ballot(rows: Iterable[FilledRow]) -> dict[_Ballot, list[FilledRow]]:
    found: dict[_Ballot, list[FilledRow]] = {}
    for row in rows:
        found.setdefault((row.sheet, row.voter), []).append(row)
    return found


def _broken(row: FilledRow) -> str | None:
    if not row.unchanged:
        return (
            f"row {row.number or '?'} was changed since its export, beside answer, comment and voter; restore "
            "its other cells"
        )
    return None if row.voter else "nobody is named as voter; write a name or number into the cell"


def _lacking(rows: Iterable[FilledRow]) -> Iterator[FactFault]:
    """A fault for every sheet of a file of which rows are gone. A changed row is there."""
    sheets: dict[tuple[str, str], list[FilledRow]] = {}
    for row in rows:
        sheets.setdefault((row.file, row.sheet), []).append(row)
    for several in sheets.values():
        counts = {int(row.rows) for row in several if row.unchanged}
        gone = set(range(1, max(counts, default=0) + 1)) - {row.place for row in several}
        if gone:
            yield several[-1].fault(
                f"{counted(len(gone), 'row')} of sheet {several[0].sheet} not found: {_ranges(gone)}; restore what is "
                "missing"
            )


def _ranges(numbers: Iterable[int]) -> str:
    """`3, 7 to 9`."""
    ordered = sorted(numbers)
    breaks = [place for place, (one, other) in enumerate(pairwise(ordered), start=1) if other > one + 1]
    runs = [ordered[start:end] for start, end in zip([0, *breaks], [*breaks, len(ordered)], strict=True)]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def _answer_fault(row: FilledRow, asked: Asked) -> str | None:
    if not row.answer:
        return f"{row.question!r} about {row.item} has no answer; give one" if asked.required else None
    if row.answer not in asked.choices:
        return f"{row.answer[:40]!r} is none of the answers; write {' or '.join(asked.choices)}"
    return None


def _disqualified(rows: Sequence[FilledRow]) -> FactFault | None:
    """Why a voter's rows of one sheet do not count."""
    kind, given = known_kind(rows[0]), {(row.item, row.question): row for row in rows if row.qualifies}
    right = {
        (one.item.id, asked.key): answer
        for one in (WORDINGS[kind].qualification if kind else ())
        for asked, answer in zip(one.item.asked, one.answers, strict=True)
    }
    if not given:
        return rows[0].fault(f"{rows[0].voter} has no rows of the qualification; restore them, with this voter in each")
    wrong = [key for key, answer in right.items() if key not in given or given[key].answer != answer]
    if not wrong:
        return None
    return next((given[key] for key in wrong if key in given), rows[0]).fault(
        f"{rows[0].voter} failed the qualification, by {len(wrong)} of {counted(len(right), 'question')}; leave this "
        "sheet out, and give its items to somebody else"
    )
