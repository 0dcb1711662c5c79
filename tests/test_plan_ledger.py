"""The estimate of a run follows what the ledger says of requests to its models."""

from __future__ import annotations

from hapax.engine.search.plan import LEAST_MEASURED, Range, RoleEstimate, RunEstimate, with_ledger
from hapax.kb import rows
from hapax.kb.records import AttemptRecord, Outcome
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Price

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
    fresh_kb.add(rows.ATTEMPTS, [*kept, *attempts(Outcome.QUEUED, 7), *attempts(Outcome.UNSENT, 3)])
    need = RoleEstimate(MODEL, Range(100, 110), Range(500, 600), (1.0, 2.0))
    other = RoleEstimate("frequency", Range(9, 9))
    estimate = RunEstimate((), {"critic": need, "likelihood": other})
    found = with_ledger(estimate, fresh_kb, {MODEL: Price(1e6, 0.0)}).roles

    assert found["critic"] == RoleEstimate(MODEL, Range(125, 125), Range(4000, 4000), (3750.0, 3750.0), None, 40)
    assert found["likelihood"] == other


def test_few_requests_say_nothing(fresh_kb: KnowledgeBase) -> None:
    """Below the least number of answered requests the estimate stays as it is."""
    fresh_kb.add(rows.ATTEMPTS, attempts(Outcome.ANSWERED, LEAST_MEASURED - 1))
    estimate = RunEstimate((), {"critic": RoleEstimate(MODEL, Range(100, 110))})

    assert with_ledger(estimate, fresh_kb, {}) == estimate
    fresh_kb.add(rows.ATTEMPTS, attempts(Outcome.REFUSED, 1))
    assert with_ledger(estimate, fresh_kb, {}).roles["critic"].measured == LEAST_MEASURED
