"""Semi-naive rounds: a step joins what its tables have got since it last ran, until no table grows."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hapax.engine.logic.compile import CompiledPremise
from hapax.kb.relations import Relations


@dataclass
class JoinStep:
    """A SELECT that adds rows to a table when a table that it reads has grown. A lower layer goes first."""

    layer: int
    target: str
    body: CompiledPremise
    head: Sequence[str]
    grouped: str = ""
    """The SELECT of an aggregate: of the groups of its first table, once everything below them is derived."""
    begins_first: bool = False
    """True if the first table is the smallest, from which the others are looked up."""
    seen: dict[str, int] = field(default_factory=dict)
    """By table that may grow, the number of the last row that was joined."""

    @property
    def reads(self) -> Sequence[str]:
        return self.body.tables[:1] if self.grouped else self.body.tables


class Rounds:
    """Steps over tables that grow. Their rows are numbered by `ref` in the order in which they come."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._steps: list[JoinStep] = []
        self._readers: dict[str, list[int]] = {}
        self._highest: dict[str, int] = {}
        """By table that may grow, the number of its last row."""
        self._columns: dict[str, Sequence[str]] = {}
        self._pending: list[tuple[int, int]] = []

    def watch(self, table: str, columns: Sequence[str]) -> None:
        """Let an empty table grow by `insert`."""
        self._highest[table], self._columns[table] = 0, columns

    def insert(self, table: str, select: str) -> None:
        """Add the rows that are missing, and wake the steps that read the table."""
        if not self._relations.run(f"INSERT OR IGNORE INTO {table} ({', '.join(self._columns[table])}) {select}"):
            return
        self._highest[table] = self._relations.highest(table)
        for number in self._readers.get(table, ()):
            self._wake(number)

    def add(self, step: JoinStep) -> None:
        """Add a step, which waits for `run`."""
        self._steps.append(step)
        number = len(self._steps) - 1
        for table in set(step.reads):
            self._readers.setdefault(table, []).append(number)
        self._wake(number)

    def _wake(self, number: int) -> None:
        waiting = (self._steps[number].layer, number)
        if waiting not in self._pending:
            heapq.heappush(self._pending, waiting)

    def run(self) -> None:
        """Run the steps until none has anything new to read: lower layers first, whole before those above them."""
        while self._pending:
            step = self._steps[heapq.heappop(self._pending)[1]]
            self._relations.check_time()
            grown = {table: self._highest[table] for table in step.reads if table in self._highest}
            before, step.seen = step.seen, grown
            if all(grown.values()):
                for select in self._selects(step, before):
                    self.insert(step.target, select)

    def _selects(self, step: JoinStep, before: Mapping[str, int]) -> Iterator[str]:
        """The SELECTs of the rows that join something new."""
        body, head = step.body, step.head or ("0",)
        if step.grouped:
            yield step.grouped
        elif not all(before.get(table) for table in step.seen) or not step.seen:
            # The first time, or the first time that no table is empty.
            outer = [f"{table} AS t0" for table in body.tables[:1]]
            yield body.select_from(outer, head, ()) if step.begins_first else body.select(head)
        else:
            for place, table in enumerate(body.tables):
                if step.seen.get(table, 0) > before.get(table, 0):
                    new = [f"t{place}.ref > {before[table]}", f"t{place}.ref <= {step.seen[table]}"]
                    yield body.select_from([f"{table} AS t{place}"], head, new)
