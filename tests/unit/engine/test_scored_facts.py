"""Truths of proposed facts by labels and votes."""

from __future__ import annotations

import pytest

from hapax.engine.search.score_maps import (
    AUDIT_QUESTION,
    fact_truths,
    voted_truths,
)
from hapax.kb.records import (
    LABELS,
    VOTES,
    FactLabel,
    FactRecord,
    Source,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase


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
