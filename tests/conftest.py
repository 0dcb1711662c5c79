"""Fixtures that more than one test file uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kb import KnowledgeBase


@pytest.fixture
def fresh_kb() -> Iterator[KnowledgeBase]:
    """An empty knowledge base in memory."""
    with KnowledgeBase() as kb:
        yield kb
