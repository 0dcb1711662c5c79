"""Everything known about one fact, held or not: what was asked, what was answered, what was judged and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammar.terms import Value
from kb import rows
from kb.records import (
    Assessment,
    CallRecord,
    Candidate,
    Decision,
    FactRecord,
    Pattern,
    Question,
    TypeFact,
)

if TYPE_CHECKING:
    from kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class CandidateStory:
    """One proposal of the fact. `call.request` holds the prompt; `decisions` are in the order they were given."""

    candidate: Candidate
    question: Question | None
    call: CallRecord | None
    decisions: tuple[Decision, ...]
    assessments: tuple[Assessment, ...]
    """The scores that the decisions rest on."""

    @property
    def verdict(self) -> Decision | None:
        """The decision that holds: the last one."""
        return self.decisions[-1] if self.decisions else None


@dataclass(frozen=True, slots=True)
class FactStory:
    """`fact` is None for an atom that is not, or no longer, held true. `assessments` score the texts asked for."""

    predicate: str
    arguments: tuple[Value, ...]
    fact: FactRecord | None
    candidates: tuple[CandidateStory, ...]
    assessments: tuple[Assessment, ...]
    type_facts: tuple[TypeFact, ...]

    @property
    def is_known(self) -> bool:
        """Whether anybody ever asserted or proposed it."""
        return self.fact is not None or bool(self.candidates)


def tell(kb: KnowledgeBase, predicate: str, arguments: tuple[Value, ...], texts: tuple[str, ...] = ()) -> FactStory:
    """The story of `predicate(arguments)`; also finds the candidates of facts that were refused or retracted."""
    fact = kb.fact(predicate, arguments)
    candidates = {found.id: found for found in _proposals(kb, predicate, arguments)}
    if fact and fact.candidate_id and (origin := kb.candidate(fact.candidate_id)):
        candidates = {origin.id: origin} | candidates
    return FactStory(
        predicate,
        arguments,
        fact,
        tuple(_candidate_story(kb, candidate) for candidate in candidates.values()),
        tuple(kb.select_in(rows.ASSESSMENTS, "text", texts)),
        tuple(found for argument in dict.fromkeys(arguments) for found in kb.type_facts(argument)),
    )


def _proposals(kb: KnowledgeBase, predicate: str, arguments: tuple[Value, ...]) -> Iterator[Candidate]:
    """Candidates with the right value of the questions that left some argument open."""
    for pattern, value in _openings(predicate, arguments):
        index = kb.matching(rows.PATTERN_INDEX, pattern_key=rows.pattern_key(pattern))
        for question_id in dict.fromkeys(entry.question_id for entry in index):
            for candidate in kb.candidates(question_id):
                if type(candidate.value) is type(value) and candidate.value == value:
                    yield candidate


def _openings(predicate: str, arguments: tuple[Value, ...]) -> Iterator[tuple[Pattern, Value]]:
    """The atom with one argument open, and, where a value stands twice, with all its places open."""
    for position, value in enumerate(arguments):
        places = {i for i, other in enumerate(arguments) if type(other) is type(value) and other == value}
        for opened in [{position}] if len(places) == 1 else [{position}, places]:
            yield Pattern(predicate, tuple(None if i in opened else a for i, a in enumerate(arguments))), value


def _candidate_story(kb: KnowledgeBase, candidate: Candidate) -> CandidateStory:
    decisions = kb.decisions(subject=candidate.id)
    scores = dict.fromkeys(identity for decision in decisions for identity in decision.assessment_ids)
    return CandidateStory(
        candidate,
        kb.question(candidate.question_id),
        kb.call(candidate.call_id),
        tuple(decisions),
        tuple(kb.select_in(rows.ASSESSMENTS, "id", scores)),
    )
