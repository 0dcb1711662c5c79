"""Majority verdicts of people's votes on statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from hapax.kb.records import VoteRecord

ENTAILMENT_QUESTION = "entailment"
"""Question of a vote on whether the premise entails the conclusion."""

DATA_TYPE_QUESTION = "data type"
"""Question of a vote on a value's data type; a variable may follow: `data type B`."""


class VoteVerdicts(NamedTuple):
    """Ids of the statements that more voters denied than affirmed, by kind of question."""

    contradicted: frozenset[str]
    wrong_type: frozenset[str]


def vote_balance(votes: Iterable[VoteRecord]) -> Counter[tuple[str, str]]:
    """Yes votes minus no votes, by statement and question; other answers count for neither side."""
    balance: Counter[tuple[str, str]] = Counter()
    for vote in votes:
        question, answer = vote.question.strip().casefold(), vote.answer.strip().casefold()
        balance[vote.statement_id, question] += {"yes": 1, "no": -1}.get(answer, 0)
    return balance


def vote_verdicts(votes: Iterable[VoteRecord]) -> VoteVerdicts:
    """Statements that a majority found to be no entailment, or to hold a value of a wrong type."""
    # A tie has a balance of 0 and denies nothing.
    denied = [key for key, balance in vote_balance(votes).items() if balance < 0]
    return VoteVerdicts(
        frozenset(statement for statement, question in denied if question == ENTAILMENT_QUESTION),
        frozenset(statement for statement, question in denied if question.startswith(DATA_TYPE_QUESTION)),
    )
