"""Reservations of the ledger, estimates by it, and requests at a time."""

from __future__ import annotations

import pytest

from hapax.engine.search.plan import Range, RoleEstimate, RunEstimate, with_ledger
from hapax.kb.records import ATTEMPTS, AttemptRecord, Outcome
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.openai_transport import Concurrency
from hapax.llm_oracle.budget import Account, Budget, BudgetReached, CallStatistics, Ledger, Price
from hapax.llm_oracle.protocols import Usage


def test_a_reservation_waits_for_those_under_way() -> None:
    """Tokens that were reserved and not used are free again once the request has ended."""
    ledger = Ledger(Budget(max_tokens=100))
    account = Account(ledger, "critic", None)

    first = account.reserve(Usage(0, 80))
    assert first is not None
    assert account.reserve(Usage(0, 80)) is None
    first.settle(Usage(0, 10))
    second = account.reserve(Usage(0, 80))
    assert second is not None
    second.settle(None)

    assert ledger.used == CallStatistics(1, 0, 0, 10, None)
    with pytest.raises(BudgetReached):
        account.reserve(Usage(0, 91))
    with pytest.raises(BudgetReached):  # smaller ones do not overtake
        account.reserve(Usage(0, 1))


MODEL = "openai/host/small"


def attempts(outcome: Outcome, count: int) -> list[AttemptRecord]:
    """Requests to the critic with 30 prompt tokens and 2 of the answer."""
    return [
        AttemptRecord(f"{outcome}{number}", "critic", MODEL, "x", "2026", "2026", outcome, 30, 2, 0.1)
        for number in range(count)
    ]


def test_repeated_requests_are_expected_again(fresh_kb: KnowledgeBase) -> None:
    """Of 50 requests 40 were answered: 100 calls are expected to take 125 requests, with their tokens and money."""
    kept = [*attempts(Outcome.ANSWERED, 40), *attempts(Outcome.UNUSABLE, 10)]
    fresh_kb.add(ATTEMPTS, [*kept, *attempts(Outcome.QUEUED, 7), *attempts(Outcome.UNSENT, 3)])
    need = RoleEstimate(MODEL, Range(100, 110), Range(500, 600), (1.0, 2.0))
    other = RoleEstimate("frequency", Range(9, 9))
    estimate = RunEstimate((), {"critic": need, "likelihood": other})
    found = with_ledger(estimate, fresh_kb, {MODEL: Price(1e6, 0.0)}).roles

    assert found["critic"] == RoleEstimate(MODEL, Range(125, 125), Range(4000, 4000), (3750.0, 3750.0), None, 40)
    assert found["likelihood"] == other


def test_concurrency_adapts() -> None:
    """Twice as many at a time each round until a refusal, then one more after 25 successes; a refusal takes a quarter,
    once per cool-down, and never the last one."""
    now = [0.0]
    concurrency = Concurrency(14, lambda: now[0])
    for expected in (8, 14):
        for _ in range(int(concurrency.allowed)):
            concurrency.succeeded()
        assert concurrency.allowed == expected

    concurrency.refused()
    concurrency.refused()
    assert concurrency.allowed == 10.5
    assert concurrency.pause == 0
    for _ in range(50):
        concurrency.succeeded()
    assert concurrency.allowed == 12.5

    for _ in range(40):
        now[0] += 10
        concurrency.refused(5.0)
    assert concurrency.allowed == 1
    assert concurrency.pause == 5.0
