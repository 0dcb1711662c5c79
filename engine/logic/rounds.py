"""Semi-naive rounds: a step joins what its tables have got since it last ran, until no table grows."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from hapax.engine.logic.compile import CompiledPremise
from hapax.grammar.rules import Rule
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
    rule: Rule | None = None
    """With the calls that it answers before its premise."""
    seen: dict[str, int] = field(default_factory=dict)
    """By table that may grow, the number of the last row that was joined."""

    @property
    def reads(self) -> Sequence[str]:
        return self.body.tables[:1] if self.grouped else self.body.tables


class Rounds:
    """Steps over tables that grow. Their rows are numbered by `ref` in the order in which they come."""

    def __init__(self, relations: Relations, at_work: list[Rule] | None = None) -> None:
        """`at_work`: a list in which the rule stands whose rows are being joined."""
        self._relations = relations
        self._at_work = [] if at_work is None else at_work
        self._steps: list[JoinStep] = []
        self._readers: dict[str, list[int]] = {}
        self._highest: dict[str, int] = {}
        """By table that may grow, the number of its last row."""
        self._columns: dict[str, Sequence[str]] = {}
        self._growth: dict[str, list[tuple[int, int]]] = {}
        """By table, each time that it grew: the number of its last row then, and the moment."""
        self._moments = count(1)
        self._pending: list[tuple[int, int]] = []
        self._awake: set[int] = set()

    def watch(self, table: str, columns: Sequence[str]) -> None:
        """Let an empty table grow by `insert`."""
        self._highest[table], self._columns[table] = 0, columns

    def insert(self, table: str, select: str) -> None:
        """Add the rows that are missing, and wake the steps that read the table."""
        if not self._relations.run(f"INSERT OR IGNORE INTO {table} ({', '.join(self._columns[table])}) {select}"):
            return
        self._highest[table] = self._relations.highest(table)
        self._growth.setdefault(table, []).append((self._highest[table], next(self._moments)))
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
        if number not in self._awake:
            self._awake.add(number)
            heapq.heappush(self._pending, (self._steps[number].layer, number))

    def run(self) -> None:
        """Run the steps until none has anything new to read: lower layers first, whole before those above them."""
        while self._pending:
            _, number = heapq.heappop(self._pending)
            self._awake.remove(number)
            step = self._steps[number]
            self._relations.check_time()
            grown = {table: self._highest[table] for table in step.reads if table in self._highest}
            before, step.seen = step.seen, grown
            if all(grown.values()):
                self._at_work[:] = [step.rule] if step.rule is not None else []
                for select in self._selects(step, before):
                    self.insert(step.target, select)

    def moment(self, table: str, ref: int) -> int:
        """The moment at which a row came."""
        growth = self._growth[table]
        return growth[bisect_left(growth, (ref, 0))][1]

    def last_before(self, table: str, moment: int) -> int:
        """The number of the last row that a table had before a moment; 0 if it had none."""
        growth = self._growth.get(table, [])
        place = bisect_left(growth, moment, key=itemgetter(1))
        return growth[place - 1][0] if place else 0

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
