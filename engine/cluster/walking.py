"""Rules searched ahead of the real search, so that the workers always have requests to answer.

A walk searches some rules in a knowledge base in memory, with the workers as its models, and discards its result: the
answers stay in the workers' shards. A walk that fails costs nothing but time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hapax.engine.cluster.calling import Pending
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.records import FactRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models

WALKS_PER_WORKER = 4
"""Walks for each worker at least, if there are enough rules, so that all workers are busy to the end."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """Common data of all walks of a run. `given`: the facts that users gave; `models` ask the workers."""

    library: Library
    given: tuple[FactRecord, ...]
    models: Models
    settings: SearchSettings


def walk(ahead: Ahead, names: Sequence[str]) -> str:
    """Search the rules with these names, and return the error that ended it early, or an empty text."""
    try:
        with KnowledgeBase() as kb:
            kb.add_facts(ahead.given)
            rules = [ahead.library.rule(name) for name in names]
            search(SearchJob(ahead.library, rules, kb, ahead.models, ahead.settings, Journal(kb)))
    except HapaxError as fault:
        return str(fault)
    return ""


class Walkers(Protocol):
    """Processes that walk, at most `count` walks at a time."""

    @property
    def count(self) -> int: ...

    def begin(self, names: Sequence[str]) -> Pending: ...


@dataclass
class Walking:
    """The walks of a run, which keep ahead of the rules that the search itself has reached.

    `names`: of the rules, in the order of the search. `together`: the most rules in one walk. `done` and `failed` count
    walks; rules that the search reached before a walk began are in neither.
    """

    names: Sequence[str]
    together: int
    walkers: Walkers
    done: int = 0
    failed: int = 0
    faults: dict[str, None] = field(default_factory=dict)
    _reached: int = 0
    _next: int = 0
    _walks: list[Pending] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of rules in one walk."""
        return max(1, min(self.together, len(self.names) // (WALKS_PER_WORKER * self.walkers.count)))

    def reached(self, names: Sequence[str]) -> None:
        """Leave out these rules, whose search begins now. May be called from another thread."""
        self._reached = self.names.index(names[-1]) + 1 if self.names else 0

    def advance(self) -> None:
        """Count the walks that ended, and begin others in their place."""
        running = []
        for pending in self._walks:
            if pending.done():
                self._count(pending)
            else:
                running.append(pending)
        # The search has overtaken the walks: what it reached needs no walk.
        self._next = max(self._next, self._reached)
        while self._next < len(self.names) and len(running) < self.walkers.count:
            names = self.names[self._next : self._next + self.size]
            self._next += len(names)
            running.append(self.walkers.begin(names))
        self._walks = running

    def end(self) -> None:
        """Cancel all walks, because the search is over."""
        self._next = len(self.names)
        for pending in self._walks:
            pending.cancel()
        self._walks = []

    def _count(self, pending: Pending) -> None:
        try:
            fault = pending.result()
        except HapaxError as error:
            fault = str(error)
        if fault:
            self.failed += 1
            self.faults[fault] = None
        else:
            self.done += 1
