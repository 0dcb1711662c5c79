"""Truth by votes of people who err: estimated rates of error decide better than the majority."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hapax.engine.judgements import Vote, weigh
from hapax.engine.search.score_maps import AUDIT_QUESTION, voted_truths
from hapax.kb.records import VOTES, VoteRecord
from hapax.kb.store import KnowledgeBase

RATES = {"ann": (0.97, 0.95), "bob": (0.75, 0.7), "cem": (0.97, 0.25), "dee": (0.7, 0.75), "eve": (0.9, 0.5)}
"""Shares of right votes on true and on false items: one careful voter, two who tend to yes, two who hardly look."""


def simulated(seed: int, items: int = 300) -> tuple[dict[str, bool], list[Vote]]:
    draw = random.Random(seed)
    truths = {f"item {number}": draw.random() < 0.6 for number in range(items)}
    votes = []
    for item, is_true in truths.items():
        for voter, (on_true, on_false) in RATES.items():
            is_right = draw.random() < (on_true if is_true else on_false)
            votes.append(Vote(item, voter, is_true if is_right else not is_true))
    return truths, votes


def test_estimated_errors_decide_better_than_the_majority() -> None:
    """In ten simulated worlds the weighed votes are right more often, and the rates are near the true ones. Of items
    with a probability of .8 to .95 about as many are true."""
    weighed_right = majority_right = total = 0
    between = []
    for seed in range(10):
        truths, votes = simulated(seed)
        found = weigh(votes)
        balance: Counter[str] = Counter()
        for vote in votes:
            balance[vote.item] += 1 if vote.is_yes else -1
        for item, is_true in truths.items():
            weighed_right += (found.probabilities[item] > 0.5) == is_true
            majority_right += (balance[item] > 0) == is_true
        total += len(truths)
        between += [(chance, truths[item]) for item, chance in found.probabilities.items() if 0.8 < chance < 0.95]
        assert found.voters["ann"].on_true == pytest.approx(0.97, abs=0.1)
        assert found.voters["cem"].on_false == pytest.approx(0.25, abs=0.1)
        assert found.share == pytest.approx(0.6, abs=0.1)

    assert weighed_right / total > 0.94
    assert majority_right / total < 0.91
    said = sum(chance for chance, _ in between) / len(between)
    assert sum(is_true for _, is_true in between) / len(between) == pytest.approx(said, abs=0.08)


def test_what_all_deny_is_no_label_of_a_true_fact() -> None:
    """A no of a single voter who often errs stays a no, however many other facts are true."""
    draw = random.Random(0)
    votes = [Vote("lone", "ann", False)]
    for number in range(100):
        is_true = draw.random() < 0.95
        for voter in ("ann", "bob", "cem"):
            votes.append(Vote(f"item {number}", voter, is_true if draw.random() < 0.92 else not is_true))
    with KnowledgeBase() as kb:
        said = [(vote.item, vote.voter, "yes" if vote.is_yes else "no") for vote in votes]
        kb.add(VOTES, (VoteRecord(item, AUDIT_QUESTION, voter, answer) for item, voter, answer in said))
        found = voted_truths(kb)

    assert weigh(votes).probabilities["lone"] > 0.5
    assert found["lone"] is False
