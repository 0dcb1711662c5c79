"""The ledger beside the account of a server that refuses a fifth of the requests."""

from __future__ import annotations

import pytest

from benchmarks.common import chosen_rules
from benchmarks.ledger import measure
from hapax.llm_oracle.budget import Budget

pytestmark = pytest.mark.slow


def test_the_ledger_equals_the_account_of_the_server() -> None:
    """Requests, charged requests and tokens agree after each run, and limits hold."""
    library, rules = chosen_rules([], 30)
    runs = measure(library, rules[:1], 0.2, [Budget(max_calls=20), Budget(max_tokens=3000)])

    assert [run.status for run in runs] == ["budget", "budget"]
    assert all(run.within_limit and run.server == run.ledger for run in runs)
    assert runs[-1].server.charged < runs[-1].server.requests
