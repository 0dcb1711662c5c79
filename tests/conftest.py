"""Fixtures that more than one test file uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_harness import Warm

from kb import KnowledgeBase


@pytest.fixture
def fresh_kb() -> Iterator[KnowledgeBase]:
    """An empty knowledge base in memory."""
    with KnowledgeBase() as kb:
        yield kb


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """The process that runs commands to which something happens."""
    with Warm() as process:
        yield process
