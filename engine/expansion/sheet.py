"""The sheet of proposals: a CSV or JSONL file in which people decide, and the memory of what they decided.

One row a proposal. A person fills `decision` (accept or reject), and may fill `verb`, `by` and `note` and edit `rules`.
Columns that Hapax does not know are kept.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TextIO

from engine.expansion.propose import Proposal
from grammar.errors import HapaxError

ACCEPT, REJECT, WAITING = "accept", "reject", ""
_READ_AS = {"": "", "accept": ACCEPT, "accepted": ACCEPT, "reject": REJECT, "rejected": REJECT}


@dataclass(slots=True)
class Row:
    """A proposal and what was decided about it; everything is text.

    `verb`: what the conclusion should say instead, empty once it does; `verbs`: what else the model said; `remarks`:
    sentences that a model could not write.
    """

    proposal: str
    decision: str = ""
    verb: str = ""
    by: str = ""
    note: str = ""
    meta: str = ""
    type: str = ""
    model: str = ""
    verbs: str = ""
    statement: str = ""
    verdict: str = ""
    remarks: str = ""
    rules: str = ""
    other: dict[str, str] = field(default_factory=dict)


COLUMNS = tuple(one.name for one in fields(Row) if one.name != "other")


class Sheet:
    """The rows of a file, in its order. A file that is not there yet has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
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
        """Each row with the line at which it ends."""
        if self._is_jsonl:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, self._checked(number, json.loads(line))
            return
        reader = csv.DictReader(file, restkey="", restval="", strict=True)
        for row in reader:
            yield reader.line_num, self._checked(reader.line_num, row)

    def _checked(self, number: int, entries: object) -> dict[str, str]:
        if isinstance(entries, dict) and {"proposal", "decision", "rules"} <= set(entries) and "" not in entries:
            return {str(name): "" if value is None else str(value) for name, value in entries.items()}
        raise HapaxError(
            f"{self.path}:{number}: a row has at least the columns proposal, decision and rules, and a name for each "
            "column. Take back what changed the columns."
        )

    def _row(self, number: int, entries: dict[str, str]) -> Row:
        row = Row(**{name: entries.pop(name, "") for name in COLUMNS}, other=entries)
        decision = _READ_AS.get(row.decision.strip().lower())
        if decision is None:
            raise HapaxError(
                f"{self.path}:{number}: the decision {row.decision[:40]!r} is neither accept nor reject. Write one of "
                "them, or nothing to decide later."
            )
        if not row.proposal or any(one.proposal == row.proposal for one in self.rows):
            fault = f"proposal {row.proposal} stands twice" if row.proposal else "the row names no proposal"
            raise HapaxError(f"{self.path}:{number}: {fault}. Take one row out.")
        row.decision, row.verb = decision, row.verb.strip()
        return row

    def add(self, proposal: Proposal, model: str, rules: str, statement: str) -> None:
        """A row for a proposal, unless the sheet has it."""
        if all(row.proposal != proposal.id for row in self.rows):
            self.rows.append(
                Row(
                    proposal.id,
                    meta=proposal.meta,
                    type=proposal.data_type,
                    model=model,
                    verbs="; ".join(proposal.verbs),
                    remarks="; ".join(proposal.notes),
                    statement=statement,
                    rules=rules,
                )
            )

    def decided(self, decision: str) -> list[Row]:
        """The rows with that decision."""
        return [row for row in self.rows if row.decision == decision]

    def write(self) -> None:
        """Replaces the file at once, so that a kill leaves the old one or the new one."""
        table = [entries_of(row) for row in self.rows]
        beside = self.path.with_name(f"{self.path.name}.new")
        with beside.open("w", encoding="utf-8", newline="") as file:
            if self._is_jsonl:
                file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in table)
            else:
                columns = dict.fromkeys((*COLUMNS, *(name for one in table for name in one)))
                writer = csv.DictWriter(file, columns, restval="")  # ends lines with \r\n, and so quotes both
                writer.writeheader()
                writer.writerows(table)
        beside.replace(self.path)


def entries_of(row: Row) -> dict[str, str]:
    """The row as the file has it."""
    entries = asdict(row)
    other = entries.pop("other")
    return {**entries, **other}
