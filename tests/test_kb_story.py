"""Everything known about a fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hapax.grammar.errors import HapaxError
from hapax.kb.records import (
    Assessment,
    AtomPattern,
    CallRecord,
    Candidate,
    Decision,
    FactRecord,
    Question,
    Source,
    TypeFact,
)
from hapax.kb.store import KnowledgeBase
from hapax.kb.story import fact_story

QUESTION = Question((AtomPattern("is_ingredient_in", (None, "paella")),), "Ingredient")
CALL = CallRecord("r1", "knowledge", "embedded", {"prompt": "Give me 50 values"}, {"text": "1. saffron"})
SAFFRON = Candidate(QUESTION.id, "saffron", "saffron", "r1", 1)
CLAIM = Assessment("Saffron is an ingredient in paella.", "probability", "critic", 0.9)
ACCEPTED = Decision("run1", "critic", SAFFRON.id, True, 0.9, 0.85, "above", assessment_ids=(CLAIM.id,))
FACT = FactRecord(
    "is_ingredient_in", ("saffron", "paella"), ("Ingredient", "Dish"), Source.MODEL, 0.9, SAFFRON.id, "run1"
)
ATOM = ("is_ingredient_in", ("saffron", "paella"))


@pytest.fixture
def told_kb(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """A knowledge base in which saffron was asked for, answered, judged and accepted."""
    fresh_kb.record_calls([CALL])
    fresh_kb.add_questions([QUESTION])
    fresh_kb.add_candidates([SAFFRON, Candidate(QUESTION.id, "sand", "sand", "r1", 2)])
    fresh_kb.add_assessments([CLAIM])
    fresh_kb.add_decisions([ACCEPTED])
    fresh_kb.add_facts([FACT])
    fresh_kb.add_type_facts([TypeFact("saffron", "Ingredient", 0.8)])
    return fresh_kb


def test_the_story_of_a_fact_goes_down_to_the_prompt(told_kb):
    """Question, call, scores and verdicts of the candidate behind the fact are all there."""
    story = fact_story(told_kb, *ATOM)
    (origin,) = story.candidates

    assert story.fact == FACT
    assert (origin.candidate, origin.question, origin.call) == (SAFFRON, QUESTION, CALL)
    assert (origin.decisions, origin.assessments, origin.verdict) == ((ACCEPTED,), (CLAIM,), ACCEPTED)
    assert story.type_facts == (TypeFact("saffron", "Ingredient", 0.8),)


def test_a_retracted_fact_still_has_its_story(told_kb):
    """After a retrospective rejection the candidate is found through its question, and the last verdict tells why."""
    rejected = replace(ACCEPTED, accepted=False, threshold=0.95, reason="threshold rose")
    told_kb.add_decisions([rejected])
    told_kb.withdraw([FACT.id], "wrong", "user")
    story = fact_story(told_kb, *ATOM)

    assert story.fact is None
    assert story.candidates[0].verdict == rejected


def test_a_candidate_that_was_never_judged_has_no_verdict(told_kb):
    """An atom whose value was proposed and not judged yet is known, without verdict."""
    story = fact_story(told_kb, "is_ingredient_in", ("sand", "paella"))

    (candidate,) = story.candidates
    assert candidate.verdict is None


def test_an_atom_that_nobody_proposed_has_no_story(told_kb):
    """Another value, another predicate or another kind of value finds nothing."""
    for atom in (
        ("is_ingredient_in", ("rice", "paella")),
        ("is_old", ("saffron",)),
        ("is_ingredient_in", (1, "paella")),
    ):
        story = fact_story(told_kb, *atom)

        assert (story.fact, story.candidates) == (None, ())


def test_scores_of_further_texts_belong_to_the_story(told_kb):
    """The caller, who can put the fact into words, asks for the scores of the sentence under every model."""
    second_score = replace(CLAIM, model="another critic", score=0.4)
    told_kb.add_assessments([second_score])

    assert fact_story(told_kb, *ATOM, texts=[CLAIM.text]).assessments == (CLAIM, second_score)


def test_the_origin_of_a_fact_is_found_without_its_question(fresh_kb):
    """The fact names its candidate, so that the story does not depend on the question's wording."""
    fresh_kb.add_candidates([SAFFRON])
    fresh_kb.add_facts([FACT])
    (origin,) = fact_story(fresh_kb, *ATOM).candidates

    assert (origin.candidate, origin.question, origin.call) == (SAFFRON, None, None)


def test_questions_over_a_variable_that_stands_twice_are_found(fresh_kb):
    """`borders(B, B)` asks for both places at once, and proposes nothing about two different values."""
    question = Question((AtomPattern("borders", (None, None)),), "Country")
    candidate = Candidate(question.id, "Lesotho", "Lesotho", "r1", 1)
    fresh_kb.add_questions([question])
    fresh_kb.add_candidates([candidate])

    assert [c.candidate for c in fact_story(fresh_kb, "borders", ("Lesotho", "Lesotho")).candidates] == [candidate]
    assert fact_story(fresh_kb, "borders", ("Lesotho", "Chad")).candidates == ()


def test_questions_of_several_patterns_are_found_by_each(fresh_kb):
    """A question that joined several literals belongs to the story of each of them."""
    question = Question((AtomPattern("p", (None, "a")), AtomPattern("q", ("b", None))), "Thing")
    candidate = Candidate(question.id, "x", "x", "r1", 1)
    fresh_kb.add_questions([question])
    fresh_kb.add_candidates([candidate])

    for atom in (("p", ("x", "a")), ("q", ("b", "x"))):
        assert [story.candidate for story in fact_story(fresh_kb, *atom).candidates] == [candidate]


def test_an_atom_that_cannot_be_is_refused(fresh_kb):
    """A value that no fact can hold is an expected error here too."""
    with pytest.raises(HapaxError, match="half a character"):
        fact_story(fresh_kb, "p", ("\ud83d",))
