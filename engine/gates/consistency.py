"""The consistency gate: facts that break a declaration with others open a conflict, in which the least sure loses."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from hapax.engine.gates.gates import CONSISTENCY
from hapax.engine.gates.inquiry import AskedQuestion
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.logic.conflicts import (
    FactConflict,
    Settlement,
    conflicts_around,
    constrained_predicates,
    settlement,
)
from hapax.grammar.rules import Library
from hapax.kb.records import CONFLICTS, DECISIONS, Candidate, ConflictRecord, Decision, FactRecord, Source
from hapax.kb.store import KnowledgeBase


class ProposedFact(NamedTuple):
    """A fact that an accepted candidate of a question makes."""

    question: AskedQuestion
    candidate: Candidate
    fact: FactRecord


@dataclass(slots=True)
class Consistency:
    """Decides the conflicts of a run.

    `conflicts`: number of those decided.
    """

    kb: KnowledgeBase
    library: Library
    known: RunFacts
    run_id: str
    conflicts: int = field(default=0, init=False)
    _constrained: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._constrained = constrained_predicates(self.library)

    def settle(self, proposals: Sequence[ProposedFact], new: Sequence[FactRecord] = ()) -> None:
        """Decide the conflicts of facts not yet stored, or of `new` facts just stored, with all that are known.

        Candidates that lose are marked in their questions' gates; stored facts that lose are retracted. The conflicts
        are stored with their decisions.
        """
        arrived = [*(item.fact for item in proposals), *new]
        if not any(fact.indicator in self._constrained for fact in arrived):
            return
        settled: dict[tuple[str, tuple[str, ...]], Settlement] = {}
        lost: dict[str, FactRecord] = {}
        # A fact that loses may have hidden another proof of the same fault, so the search goes on until nothing new
        # is found: each round loses a fact or ends.
        while True:
            found = self._around(arrived, lost)
            new_conflicts = {_key(item): item for item in found if _key(item) not in settled}
            if not new_conflicts:
                break
            # The smallest first, but for those whose facts lost in an earlier one.
            for key, conflict in new_conflicts.items():
                if lost.keys().isdisjoint(fact.id for fact in conflict.facts):
                    settled[key] = settlement(conflict)
                    lost.update((fact.id, fact) for fact in settled[key].lost)
        self.conflicts += len(settled)
        self._apply(list(settled.values()), proposals)

    def _around(self, arrived: Sequence[FactRecord], lost: Container[str] = ()) -> list[FactConflict]:
        denied = chain.from_iterable(map(self.known.denials, sorted(self.library.open_negations)))
        return conflicts_around(self.library, arrived, self.known, denied=denied, lost=lost)

    def losing(self, facts: Sequence[FactRecord]) -> set[str]:
        """Ids of the facts that lose whatever a critic says: alone, or beside given facts, they break a declaration."""
        if not any(fact.indicator in self._constrained for fact in facts):
            return set()
        claimed = map(_claimed, self._around(facts))
        return {own[0].id for own in claimed if len(own) == 1}

    @property
    def is_needed(self) -> bool:
        """True if the rule files declare anything that a fact can break."""
        return bool(self._constrained)

    def _apply(self, settled: Sequence[Settlement], proposals: Sequence[ProposedFact]) -> None:
        """Mark and retract the facts that lost, and store the conflicts with their decisions."""
        reasons: dict[str, str] = {}
        for settlement_made in settled:
            reasons |= {fact.id: settlement_made.reason for fact in settlement_made.lost}
        for item in proposals:
            if item.fact.id in reasons:
                item.question.gates.objections[CONSISTENCY.name, item.candidate] = reasons[item.fact.id]
        records = []
        for made in settled:
            facts, lost = (tuple(fact.text for fact in found) for found in (made.conflict.facts, made.lost))
            records.append(ConflictRecord(made.conflict.declaration, facts, lost, made.reason, self.run_id))
        decisions: list[Decision] = []
        stored: dict[FactRecord, str] = {}
        for fact in chain.from_iterable(item.lost for item in settled):
            # A proposal is not stored yet, and a given fact stays.
            current = self.kb.fact(fact.predicate, fact.arguments)
            if current is not None and current.source is not Source.GIVEN:
                stored[current] = reasons[fact.id]
                reason, subject = reasons[fact.id], current.candidate_id or current.id
                decisions.append(Decision(self.run_id, CONSISTENCY.name, subject, False, None, None, reason))
        with self.kb.transaction():
            self.kb.add(CONFLICTS, records)
            self.kb.add(DECISIONS, decisions)
            self.known.retract(stored, CONSISTENCY.name)


def _claimed(conflict: FactConflict) -> list[FactRecord]:
    """The facts of the conflict that can lose."""
    return [fact for fact in conflict.facts if fact.source is not Source.GIVEN]


def _key(conflict: FactConflict) -> tuple[str, tuple[str, ...]]:
    return conflict.declaration, tuple(fact.id for fact in conflict.facts)
