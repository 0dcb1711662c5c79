"""Reservations of the ledger, estimates by it, and requests at a time."""

from __future__ import annotations

import pytest

from hapax.llm_oracle.backends.openai_transport import Concurrency
from hapax.llm_oracle.budget import Account, Budget, BudgetReached, CallStatistics, Ledger
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
