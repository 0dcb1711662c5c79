"""History of one fact, stored or not: questions, answers, scores and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hapax.grammar.terms import Value
from hapax.kb.records import (
    ASSESSMENTS,
    CANDIDATES,
    PATTERNS,
    QUESTIONS,
    TYPE_FACTS,
    Assessment,
    AtomPattern,
    CallRecord,
    Candidate,
    Decision,
    FactRecord,
    Question,
    TypeFact,
    content_id,
)
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class CandidateStory:
    """A proposal of the fact. `call.request` contains the prompt; `decisions` are in the order they were made."""

    candidate: Candidate
    question: Question | None
    call: CallRecord | None
    decisions: tuple[Decision, ...]
    assessments: tuple[Assessment, ...]
    """Scores that the decisions are based on."""

    @property
    def verdict(self) -> Decision | None:
        """The valid decision, which is the last one."""
        return self.decisions[-1] if self.decisions else None


@dataclass(frozen=True, slots=True)
class FactStory:
    """History of an atom. `fact` is None if the atom is not, or no longer, stored as a fact.

    `assessments` are scores of the texts that `fact_story` was given.
    """

    predicate: str
    arguments: tuple[Value, ...]
    fact: FactRecord | None
    candidates: tuple[CandidateStory, ...]
    assessments: tuple[Assessment, ...]
    type_facts: tuple[TypeFact, ...]


def fact_story(kb: KnowledgeBase, predicate: str, arguments: Sequence[Value], texts: Iterable[str] = ()) -> FactStory:
    """Everything stored about `predicate(arguments)`, candidates of refused and retracted facts included.

    `texts` are claims about the atom in words, whose scores belong to the story.
    """
    arguments = tuple(arguments)
    fact = kb.fact(predicate, arguments)
    candidates = {candidate.id: candidate for candidate in _proposals(kb, predicate, arguments)}
    # The fact names its candidate even if no question can be found under its present pattern.
    if fact and fact.candidate_id and (origin := kb.first(CANDIDATES, id=fact.candidate_id)):
        candidates = {origin.id: origin} | candidates
    type_facts: list[TypeFact] = []
    for argument in dict.fromkeys(arguments):
        type_facts += kb.matching(TYPE_FACTS, constant_id=content_id("constant", argument))
    return FactStory(
        predicate,
        arguments,
        fact,
        tuple(_candidate_story(kb, candidate) for candidate in candidates.values()),
        tuple(kb.select_in(ASSESSMENTS, "text", texts)),
        tuple(type_facts),
    )


def _proposals(kb: KnowledgeBase, predicate: str, arguments: tuple[Value, ...]) -> Iterator[Candidate]:
    """Candidates that propose the atom, found through the questions that left one of its arguments open."""
    for pattern, value in _openings(predicate, arguments):
        # As it is written in the list of a question's patterns.
        written = str(PATTERNS.encode((pattern,)))[1:-1]
        for row in kb.select(QUESTIONS, "WHERE instr(patterns, ?)", [written]):
            for candidate in kb.candidates(row.id):
                # 2 and Decimal(2) are equal in Python but are different constants.
                if type(candidate.value) is type(value) and candidate.value == value:
                    yield candidate


def _openings(predicate: str, arguments: tuple[Value, ...]) -> Iterator[tuple[AtomPattern, Value]]:
    """The atom with each argument open in turn, and with all places of a repeated value open, each with the value."""
    for position, value in enumerate(arguments):
        equal = {i for i, argument in enumerate(arguments) if type(argument) is type(value) and argument == value}
        for free in [{position}] if len(equal) == 1 else [{position}, equal]:
            pattern = tuple(None if i in free else argument for i, argument in enumerate(arguments))
            yield AtomPattern(predicate, pattern), value


def _candidate_story(kb: KnowledgeBase, candidate: Candidate) -> CandidateStory:
    decisions = kb.decisions(subject=candidate.id)
    scores: dict[str, None] = {}
    for decision in decisions:
        scores.update(dict.fromkeys(decision.assessment_ids))
    return CandidateStory(
        candidate,
        kb.question(candidate.question_id),
        kb.call(candidate.call_id),
        tuple(decisions),
        tuple(kb.select_in(ASSESSMENTS, "id", scores)),
    )
