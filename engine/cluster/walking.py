"""Rules searched ahead of the search that counts, so that the workers have requests to answer.

A walk searches some rules in a knowledge base in memory, with the workers as its models, and throws away what it finds:
the answers stay in the workers' shards. A walk that fails costs time alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.cluster.routing import Pending
from engine.report import SearchProgress, SearchSettings
from engine.search import search
from grammar.errors import HapaxError
from grammar.rules import Library
from kb.records import FactRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import Journal
from llm_oracle.protocols import Models

WALKS_PER_WORKER = 4
"""At least so many walks for each worker, where the rules suffice, so that all are busy to the end."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What all walks of a run have in common. `given`: the facts that users gave; `models` lead to the workers."""

    library: Library
    given: tuple[FactRecord, ...]
    models: Models
    settings: SearchSettings


def walk(ahead: Ahead, names: Sequence[str]) -> str:
    """Search the rules with these names, for the workers' sake; gives why it ended early, if it did."""
    try:
        with KnowledgeBase() as kb:
            kb.add_facts(ahead.given)
            rules = [ahead.library.rule(name) for name in names]
            search(ahead.library, rules, kb, ahead.models, ahead.settings, journal=Journal(kb))
    except HapaxError as fault:
        return str(fault)
    return ""


class Walkers(Protocol):
    """Where walks are done: at most `count` at a time."""

    @property
    def count(self) -> int: ...

    def begin(self, names: Sequence[str]) -> Pending: ...


@dataclass
class Walking:
    """The walks of a run: rules in the order of the search, ahead of those that it has in hand.

    `done` and `failed` count walks; one that the search caught up with before it began is neither.
    """

    names: Sequence[str]
    together: int
    walkers: Walkers
    done: int = 0
    failed: int = 0
    faults: dict[str, None] = field(default_factory=dict)
    _reached: int = 0
    _next: int = 0
    _begun: list[Pending] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Rules in one walk."""
        return max(1, min(self.together, len(self.names) // (WALKS_PER_WORKER * self.walkers.count)))

    def reached(self, names: Sequence[str]) -> None:
        """The search has these rules in hand now, and needs no help with them. May be told in another thread."""
        self._reached = self.names.index(names[-1]) + 1 if self.names else 0

    def advance(self) -> None:
        """See to walks that are over, and begin others in their place."""
        going_on = []
        for one in self._begun:
            if one.done():
                self._finish(one)
            else:
                going_on.append(one)
        self._next = max(self._next, self._reached)
        while self._next < len(self.names) and len(going_on) < self.walkers.count:
            names = self.names[self._next : self._next + self.size]
            self._next += len(names)
            going_on.append(self.walkers.begin(names))
        self._begun = going_on

    def _finish(self, one: Pending) -> None:
        try:
            fault = one.result()
        except HapaxError as gone:
            fault = str(gone)
        self.failed += bool(fault)
        self.done += not fault
        if fault:
            self.faults[fault] = None

    def end(self) -> None:
        """The search is over; so are all walks."""
        self._next = len(self.names)
        for one in self._begun:
            one.cancel()
        self._begun = []


@dataclass(frozen=True, slots=True)
class Watched:
    """A display of progress; `walking` learns from it where the search is."""

    display: SearchProgress
    walking: Walking

    def started(self, rules: int, calls: int) -> None:
        self.display.started(rules, calls)

    def searching(self, rules: Sequence[str], calls: int) -> None:
        self.walking.reached(rules)
        self.display.searching(rules, calls)

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        self.display.advanced(calls, hits, accepted, rejected)
