"""Semi-naive rounds: a step joins what its tables have got since it last ran, until no table grows."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from hapax.engine.logic.compile import CompileContext, CompiledPremise
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import AggregateDeclaration
from hapax.grammar.rules import Rule
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.sql_arithmetic import Cell

MOST_ROUNDS = 100
"""Rounds beyond one for each group in which a smallest or largest value may still improve."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """Columns, as SQL, of a table of smallest or largest values: a better row of a group replaces the others.

    `value`: the column of the value. `as_good`, `better`: conditions on the values of the rows `o` and `n`.
    """

    function: str
    value: str
    groups: tuple[str, ...]
    as_good: str
    better: str

    @classmethod
    def of(cls, aggregate: AggregateDeclaration | None, context: CompileContext) -> Improvement | None:
        """The columns for an aggregate whose values further rows only improve; None for other rules."""
        if aggregate is None or not aggregate.is_improved:
            return None
        names = [variable.name for variable in aggregate.atom.variables]
        columns = [f"a{place}" for place in range(1, len(names) + 1)]
        value = columns.pop(names.index(aggregate.result))
        sign = "<" if aggregate.function == "min" else ">"
        values = Cell(f"o.{value}"), Cell(f"n.{value}")
        compare = context.arithmetic.comparison
        as_good = f"(o.{value} = n.{value} OR {compare(sign, *values)})"
        return cls(f"{aggregate.function}_of_tags", value, tuple(columns), as_good, compare(sign, *values))

    def same_group(self) -> list[str]:
        return [f"o.{column} = n.{column}" for column in self.groups]

    def select(self, select: str, table: str, columns: Sequence[str]) -> str:
        """The best row of each group of a SELECT, unless the table has one that is as good."""
        best = [f"{self.function}({name}) AS {name}" if name == self.value else name for name in columns]
        grouping = f" GROUP BY {', '.join(self.groups)}" if self.groups else ""
        known = " AND ".join([*self.same_group(), self.as_good])
        return (
            f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(best)} FROM ({select}){grouping}) AS n "  # noqa: S608
            f"WHERE n.{self.value} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {table} AS o WHERE {known})"
        )

    def worse(self, table: str) -> str:
        """The statement that deletes the rows of which a group has a better one."""
        known = " AND ".join([*self.same_group(), self.better])
        return f"DELETE FROM {table} AS n WHERE EXISTS (SELECT 1 FROM {table} AS o WHERE {known})"  # noqa: S608  ours


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
    """The rule, with the calls that it answers before its premise."""
    better: Improvement | None = None
    """Set for an aggregate whose values further rows only improve."""
    repeats: bool = False
    """True for the SELECT of an aggregate that reads its own atoms: it runs until it gives the same ones again."""
    runs: int = 0
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
        self._unsettled: dict[str, JoinStep] = {}
        """By table, the step of which it may have rows that better ones have replaced."""
        self._pending: list[tuple[int, int]] = []
        self._awake: set[int] = set()

    def watch(self, table: str, columns: Sequence[str]) -> None:
        """Let an empty table grow by `insert`."""
        self._highest[table], self._columns[table] = 0, columns

    def insert(self, table: str, select: str) -> int:
        """Add the rows that are missing, and wake the steps that read the table; returns their number."""
        added = self._relations.run(f"INSERT OR IGNORE INTO {table} ({', '.join(self._columns[table])}) {select}")
        if not added:
            return 0
        self._highest[table] = self._relations.highest(table)
        self._growth.setdefault(table, []).append((self._highest[table], next(self._moments)))
        for number in self._readers.get(table, ()):
            self._wake(number)
        return added

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
            self._settle(step.layer)
            self._relations.check_time()
            grown = {table: self._highest[table] for table in step.reads if table in self._highest}
            before, step.seen = step.seen, grown
            if all(grown.values()):
                self._at_work[:] = [step.rule] if step.rule is not None else []
                for select in self._selects(step, before):
                    self._run(step, select)
        self._settle()

    def _run(self, step: JoinStep, select: str) -> None:
        if step.better is not None:
            columns = self._columns[step.target]
            if self.insert(step.target, step.better.select(select, step.target, columns)):
                self._unsettled[step.target] = step
                self._refuse_endless(step)
        elif step.repeats:
            self._repeat(step, select)
        else:
            self.insert(step.target, select)

    def _refuse_endless(self, step: JoinStep) -> None:
        """Raise HapaxError once values have improved in more rounds than paths without a cycle have steps."""
        step.runs += 1
        if step.runs % MOST_ROUNDS:
            return
        # Now and then, so that rows that better ones have replaced do not pile up; each group then has one.
        self._settle()
        if step.runs > MOST_ROUNDS + self._relations.row_count(step.target):
            raise HapaxError(
                f"{_subject(step)} does not end: after {step.runs:,} rounds its values still improve, along a cycle of "
                "facts. Leave out the facts by which a value improves on the way back to itself, or limit the value."
            )

    def _repeat(self, step: JoinStep, select: str) -> None:
        """Run a SELECT that reads its target until it gives the same rows again, which replace those of before."""
        columns = self._columns[step.target]
        key, name = ", ".join(columns), step.target.removeprefix("temp.")
        made, now = f"temp.made_{name}", f"temp.now_{name}"
        self._relations.run(f"CREATE TEMP TABLE IF NOT EXISTS made_{name} ({key})")
        self._relations.run(f"CREATE TEMP TABLE IF NOT EXISTS now_{name} ({key})")
        for runs in count(1):
            self._relations.check_time()
            self._relations.run(f"DELETE FROM {now}")  # noqa: S608  ours
            self._relations.run(f"INSERT INTO {now} {select}")
            gone = f"({key}) IN (SELECT {key} FROM {made}) AND ({key}) NOT IN (SELECT {key} FROM {now})"  # noqa: S608
            changed = self._relations.run(f"DELETE FROM {step.target} WHERE {gone}")  # noqa: S608  ours
            changed += self.insert(step.target, f"SELECT {key} FROM {now}")  # noqa: S608  ours
            self._relations.run(f"DELETE FROM {made}")  # noqa: S608  ours
            self._relations.run(f"INSERT INTO {made} SELECT {key} FROM {now}")  # noqa: S608  ours
            if not changed:
                return
            if runs > 1 + self._relations.row_count(step.target):
                raise HapaxError(
                    f"{_subject(step)} has no value: something is a part of itself along a cycle of facts. Leave out a "
                    "fact of the cycle."
                )

    def _settle(self, below: float = math.inf) -> None:
        """Delete the rows that better ones have replaced, in tables whose layer is complete."""
        for table, step in list(self._unsettled.items()):
            if step.better is not None and step.layer < below:
                self._relations.run(step.better.worse(table))
                del self._unsettled[table]

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
        if step.better is not None:
            head = [f"{cell} AS {column}" for cell, column in zip(head, self._columns[step.target], strict=True)]
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


def _subject(step: JoinStep) -> str:
    aggregate = step.rule.aggregate if step.rule is not None else None
    return f"The aggregate {aggregate.atom.indicator}" if aggregate is not None else "An aggregate"
