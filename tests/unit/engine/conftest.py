"""Sessions of Prolog for the tests of the engine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from prolog_fixture import start_process

from hapax.engine.prolog.session import PrologSession


@pytest.fixture(scope="module")
def prolog() -> Iterator[PrologSession]:
    """A Prolog process that the tests of a module share."""
    with PrologSession() as session:
        yield session


@pytest.fixture
def own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions start their workers themselves, as outside the tests."""
    monkeypatch.setattr(subprocess, "Popen", start_process)
