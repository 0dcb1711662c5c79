"""The review sheet: a CSV or JSONL file in which people decide on proposals, and which keeps their decisions.

Each row is a proposal. A person fills in `decision` (accept or reject), and may fill in `verb`, `by` and `note` and
edit `rules`. Additional columns are kept.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import TextIO

from hapax.engine.expansion.propose import Proposal
from hapax.grammar.errors import HapaxError
from hapax.kb.csv_text import read_cell, write_rows
from hapax.kb.unfinished import publish, unfinished

ACCEPT, REJECT, WAITING = "accept", "reject", ""
_READ_AS = {"": "", "accept": ACCEPT, "accepted": ACCEPT, "reject": REJECT, "rejected": REJECT}


@dataclass(slots=True)
class ReviewedProposal:
    """A row of the sheet: a proposal and the decision about it, all as text."""

    proposal: str
    decision: str = ""
    verb: str = ""
    """Another verb for the conclusion; empty again once `rules` has it."""
    by: str = ""
    note: str = ""
    meta: str = ""
    type: str = ""
    model: str = ""
    verbs: str = ""
    """Other verbs that the model proposed."""
    statement: str = ""
    verdict: str = ""
    remarks: str = ""
    """Sentences that the model failed to write."""
    rules: str = ""
    additional: dict[str, str] = field(default_factory=dict)


COLUMNS = tuple(column.name for column in fields(ReviewedProposal) if column.name != "additional")


class ReviewSheet:
    """The rows of a sheet, in the order of its file. A file that does not exist yet has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[ReviewedProposal] = []
        if not path.exists():
            return
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                for place, entries in self._entries(file):
                    self.rows.append(self._row(place, entries))
        except (UnicodeDecodeError, csv.Error, json.JSONDecodeError, RecursionError) as fault:
            raise HapaxError(f"{path}: the sheet cannot be read: {fault}. Save it as UTF-8, CSV or JSONL.") from fault

    @property
    def _is_jsonl(self) -> bool:
        return self.path.suffix.lower() in (".jsonl", ".ndjson")

    def _entries(self, file: TextIO) -> Iterator[tuple[int, dict[str, str]]]:
        """Each row with the number of its last line."""
        if self._is_jsonl:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, self._checked(number, json.loads(line))
            return
        # Cells beyond the header get the column "", which `_checked` refuses.
        reader = csv.DictReader(file, restkey="", restval="", strict=True)
        for row in reader:
            # A list, of the cells beyond the header, is refused below.
            cells = {name: read_cell(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
            yield reader.line_num, self._checked(reader.line_num, cells)

    def _checked(self, number: int, entries: object) -> dict[str, str]:
        if isinstance(entries, dict) and {"proposal", "decision", "rules"} <= set(entries) and "" not in entries:
            return {str(name): "" if value is None else str(value) for name, value in entries.items()}
        raise HapaxError(
            f"{self.path}:{number}: the columns proposal, decision and rules are required, and every column needs a "
            "name. Restore the columns."
        )

    def _row(self, number: int, entries: dict[str, str]) -> ReviewedProposal:
        # `pop` leaves the additional columns in `entries`.
        row = ReviewedProposal(**{name: entries.pop(name, "") for name in COLUMNS}, additional=entries)
        decision = _READ_AS.get(row.decision.strip().lower())
        if decision is None:
            raise HapaxError(
                f"{self.path}:{number}: the decision {row.decision[:40]!r} is neither accept nor reject. Write one of "
                "them, or leave it empty to decide later."
            )
        if not row.proposal:
            raise HapaxError(f"{self.path}:{number}: the row names no proposal. Remove it.")
        if any(earlier.proposal == row.proposal for earlier in self.rows):
            raise HapaxError(f"{self.path}:{number}: proposal {row.proposal} is there twice. Remove one of the rows.")
        row.decision, row.verb = decision, row.verb.strip()
        return row

    def add(self, proposal: Proposal, model: str, rules: str, statement: str) -> None:
        """Add a row for a proposal, unless the sheet has one. Its additional columns are written in any case."""
        for row in self.rows:
            if row.proposal == proposal.id:
                row.additional |= proposal.columns
                return
        self.rows.append(
            ReviewedProposal(
                proposal.id,
                meta=proposal.meta,
                type=proposal.data_type,
                model=model,
                verbs="; ".join(proposal.verbs),
                remarks="; ".join(proposal.notes),
                statement=statement,
                rules=rules,
                additional=dict(proposal.columns),
            )
        )

    def decided(self, decision: str) -> list[ReviewedProposal]:
        """The rows with that decision."""
        return [row for row in self.rows if row.decision == decision]

    def write(self) -> None:
        """Replace the file atomically: a kill leaves the old one or the new one."""
        table = [entries_of(row) for row in self.rows]
        with unfinished(self.path) as beside:
            self._write(table, beside)
            publish(beside, self.path)

    def _write(self, table: Sequence[Mapping[str, str]], path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            if self._is_jsonl:
                file.writelines(json.dumps(entries, ensure_ascii=False) + "\n" for entries in table)
            else:
                columns = dict.fromkeys(chain(COLUMNS, *table))
                rows = [[entries.get(column, "") for column in columns] for entries in table]
                write_rows(file, [columns, *rows], end="\r\n")


def entries_of(row: ReviewedProposal) -> dict[str, str]:
    """The cells of a row by column."""
    entries = asdict(row)
    additional = entries.pop("additional")
    return {**entries, **additional}
