"""Fixtures that more than one test file uses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from fault_harness import Warm
from hypothesis import settings
from money_fixture import RULES
from prolog_fixture import WorkerSource
from random_cases import cases

from hapax.engine.inference import session as prolog_session
from hapax.engine.inference.session import PrologSession
from hapax.grammar import parser
from hapax.grammar.imports import RuleSource
from hapax.grammar.syntax import Spot
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.cache import CACHE_VARIABLE

# Two test processes with two threads of Torch each, on two processors, wait for each other at each layer of a network.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("hapax", max_examples=cases(40), deadline=None)
settings.load_profile("hapax")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files that tests and their processes keep stay out of the user's cache and journal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_workers() -> Iterator[None]:
    """Workers of sessions are forks of one that has started, where the system can wait for another's child."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    with WorkerSource() as source, pytest.MonkeyPatch.context() as patch:
        patch.setattr(prolog_session, "subprocess", source)
        yield


@pytest.fixture(scope="session", autouse=True)
def texts_parsed_once() -> Iterator[None]:
    """The statements of a rule text are parsed once in a process: most commands read the shipped rules."""
    read_statements = parser._read_statements
    parsed = lru_cache(256)(read_statements)

    def read(file: str, text: str, *spots: Callable[[int], Spot]) -> RuleSource:
        source = read_statements(file, text, *spots) if spots else parsed(file, text)
        return replace(source, lines=list(source.lines), diagnostics=list(source.diagnostics))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "_read_statements", read)
        yield


@pytest.fixture
def own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions start their workers themselves, as outside the tests."""
    monkeypatch.setattr(prolog_session, "subprocess", subprocess)


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


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file with the rule about currencies."""
    path = tmp_path / "money.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def prolog() -> Iterator[PrologSession]:
    """A Prolog process that the tests of a module share."""
    with PrologSession() as session:
        yield session
