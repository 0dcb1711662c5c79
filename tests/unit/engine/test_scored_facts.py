"""Truths of proposed facts by labels and votes, and the claims by which critics judge them."""

from __future__ import annotations

import pytest

from hapax.engine.search.scored_facts import (
    AUDIT_QUESTION,
    entity_key,
    fact_truths,
    proposed_atoms,
    proposed_types,
    stored_scores,
    voted_truths,
)
from hapax.grammar.parser import parse_library
from hapax.kb.records import (
    ASSESSMENTS,
    CANDIDATES,
    LABELS,
    VOTES,
    Assessment,
    AtomPattern,
    Candidate,
    FactLabel,
    FactRecord,
    Question,
    QuestionState,
    Source,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase

LIBRARY = parse_library(
    [("f.rules", 'oracle is_in(Food, Dish): "[1] is in [2]"\nfunctional is_of(Dish, Year): "[1] is of [2]"\n')]
)


def fact_id(value: str) -> str:
    return FactRecord("is_in", (value, "soup"), (), Source.MODEL).id


@pytest.fixture
def labelled(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """Labels of two sources and votes: on some facts they agree, on others not."""
    labels = [
        ("leek", True, "atlas"), ("leek", True, "file"), ("salt", True, "atlas"), ("salt", False, "file"),
        ("sand", False, "atlas"), ("rice", False, "file"), ("corn", True, "file"),
    ]  # fmt: skip
    fresh_kb.add(LABELS, (FactLabel("is_in", (value, "soup"), is_true, source) for value, is_true, source in labels))
    votes = [("rice", "ann", "yes"), ("peas", "ann", "no"), ("beet", "ann", "yes"), ("beet", "bob", "no")]
    fresh_kb.add(VOTES, (VoteRecord(fact_id(value), AUDIT_QUESTION, voter, answer) for value, voter, answer in votes))
    return fresh_kb


def named(truths: dict[str, bool]) -> dict[str, bool]:
    names = {fact_id(value): value for value in ("leek", "salt", "sand", "rice", "corn", "peas", "beet")}
    return {names[key]: is_true for key, is_true in truths.items()}


def test_votes_outweigh_labels_and_ties_say_nothing(labelled: KnowledgeBase) -> None:
    """Sources count alike, a fact on which they or the voters are divided is left out, and only wanted sources count."""
    assert named(fact_truths(labelled)) == {"leek": True, "sand": False, "corn": True, "rice": True, "peas": False}
    assert named(fact_truths(labelled, ["atlas"])) == {"leek": True, "salt": True, "sand": False}
    assert named(fact_truths(labelled, ["file"])) == {"leek": True, "salt": False, "rice": False, "corn": True}
    assert named(fact_truths(labelled, ["votes"])) == named(voted_truths(labelled)) == {"rice": True, "peas": False}


def test_proposals_are_told_with_the_claims_that_critics_judge(fresh_kb: KnowledgeBase) -> None:
    """Candidates of one pattern of a known predicate make facts; readable values that are no numbers make types."""
    food = Question((AtomPattern("is_in", (None, "soup")),), "Food")
    year = Question((AtomPattern("is_of", ("soup", None)),), "Year", functional=True)
    both = Question((AtomPattern("is_in", (None, "soup")), AtomPattern("is_in", (None, "pie"))), "Food")
    gone = Question((AtomPattern("is_by", (None, "soup")),), "Person")
    fresh_kb.set_question_states([(item, QuestionState(1, 0)) for item in (food, year, both, gone)])
    fresh_kb.add(
        CANDIDATES,
        [
            Candidate(food.id, "leek", "1. leek", "c", 0),
            Candidate(food.id, "sand", "2. sand", "c", 1, "has a colon"),
            Candidate(year.id, 1900, "1900", "d", 0),
            Candidate(both.id, "salt", "salt", "e", 0),
            Candidate(gone.id, "ann", "ann", "f", 0),
        ],
    )
    fresh_kb.add(ASSESSMENTS, [Assessment("Leek is in soup.", "probability", "m", 0.9)])
    atoms = proposed_atoms(fresh_kb, LIBRARY)

    assert {atom.claim for atom in atoms.values()} == {"Leek is in soup.", "Soup is of 1900."}
    assert {atom.indicator for atom in atoms.values()} == {"is_in/2", "is_of/2"}
    assert stored_scores(fresh_kb, atoms, "m") == {fact_id("leek"): 0.9}
    assert stored_scores(fresh_kb, atoms, "other") == {}
    assert {(item.value, item.data_type) for item in proposed_types(fresh_kb, LIBRARY)} == {
        ("leek", "Food"), ("salt", "Food"), ("ann", "Person"),
    }  # fmt: skip
    assert entity_key(("a", None, 3)) == "a|3"
