"""The lock beside a knowledge base: who may take it, who waits for it, and what is told where it cannot be had."""

from __future__ import annotations

import errno
import fcntl
import stat
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hapax.engine.search.plan import plan_run
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb import asking
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld

RULES = """
oracle lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"
@name town
tours(Person X, Country A) & lies_in(City B, Country A) -> may_see(Person X, City B).
"""


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_the_lock_has_the_permissions_of_the_file(tmp_path: Path, mode: int) -> None:
    """Who may write a shared knowledge base may lock it, also where they were given that right later."""
    database, lock = tmp_path / "hapax.db", tmp_path / "hapax.db-asking"
    with KnowledgeBase(database) as kb:
        with kb.asking():
            pass
        database.chmod(mode)
        with kb.asking():
            pass

    assert stat.S_IMODE(lock.stat().st_mode) == mode


def test_a_file_that_may_not_be_written_leaves_a_lock_that_may(tmp_path: Path) -> None:
    """The owner of a file that was read-only for a while can lock it afterwards."""
    database, lock = tmp_path / "hapax.db", tmp_path / "hapax.db-asking"
    with KnowledgeBase(database) as kb:
        database.chmod(0o444)
        with kb.asking():
            pass

    assert stat.S_IMODE(lock.stat().st_mode) == 0o644


def test_who_waits_too_long_is_told_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It nests within its thread, also by another connection; others wait until the outermost ends, and name the file."""
    monkeypatch.setattr(asking, "WAIT_SECONDS", 0.1)

    def other() -> None:
        with KnowledgeBase(tmp_path / "hapax.db") as its_own, its_own.asking():
            pass

    with KnowledgeBase(tmp_path / "hapax.db") as kb, ThreadPoolExecutor(1) as thread:
        with kb.asking():
            with kb.asking():
                other()
            with pytest.raises(HapaxError, match=r"another process.*hapax\.db-asking"):
                thread.submit(other).result()
        thread.submit(other).result()


def test_a_plan_needs_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a search can be estimated while another search asks models for the same file."""
    monkeypatch.setattr(asking, "WAIT_SECONDS", 0.0)
    library = parse_library([("test.rules", RULES)])
    model = SimulatedModel(SimulatedWorld(library, 1))
    models = Models(model, model, model, model)

    def planned() -> int:
        with KnowledgeBase(tmp_path / "hapax.db") as its_own:
            return plan_run(library, library.rules, its_own, models).calls.expected

    with KnowledgeBase(tmp_path / "hapax.db") as kb, ThreadPoolExecutor(1) as thread, kb.asking():
        assert thread.submit(planned).result() > 0


def test_a_lock_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """The message names the lock's file and what stands against it."""
    (tmp_path / "hapax.db-asking").mkdir()
    with (
        KnowledgeBase(tmp_path / "hapax.db") as kb,
        pytest.raises(HapaxError, match=r"hapax\.db-asking cannot be created or opened \(Is a directory\)"),
        kb.asking(),
    ):
        pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """No weaker lock is taken in silence or with a library's warning: the message says what helps."""

    def without(*_: Any) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", without)
    with (
        warnings.catch_warnings(action="error"),
        KnowledgeBase(tmp_path / "hapax.db") as kb,
        pytest.raises(HapaxError, match="does not support locks: keep the file on"),
        kb.asking(),
    ):
        pass
