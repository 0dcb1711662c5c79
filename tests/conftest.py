"""Fixtures that more than one test file uses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_harness import Warm
from hypothesis import settings
from money_fixture import RULES
from prolog_fixture import WorkerSource
from random_cases import cases

import hapax

# Two test processes with two threads of Torch each, on two processors, wait for each other at each layer of a network.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("hapax", max_examples=cases(40), deadline=None)
settings.load_profile("hapax")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files that tests and their processes keep stay out of the user's cache and journal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAPAX_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_workers() -> Iterator[None]:
    """Workers of sessions are forks of one that has started, where the system can wait for another's child."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    with WorkerSource() as source, pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", source.popen())
        yield


@pytest.fixture
def fresh_kb() -> Iterator[hapax.KnowledgeBase]:
    """An empty knowledge base in memory."""
    with hapax.KnowledgeBase() as kb:
        yield kb


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """The process that runs commands to which something happens."""
    with Warm() as process:
        yield process


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file with the rule about currencies."""
    path = tmp_path / "money.rules"
    path.write_text(RULES, encoding="utf-8")
    return path
