"""The lock of those who ask models, answers that wait beside a busy file, and what a writer may not lose."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hapax.grammar.errors import HapaxError
from hapax.kb import asking, connection, own_files, spill, system
from hapax.kb.attempts import AttemptLog
from hapax.kb.own_files import ForeignFileError
from hapax.kb.records import RUNS, AttemptRecord, CallRecord, RunRecord
from hapax.kb.store import KnowledgeBase

CALLS = [CallRecord(name, "critic", "m", {"prompt": name}, {"text": name}) for name in "abc"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    KnowledgeBase(tmp_path / "kb.db").close()
    return tmp_path / "kb.db"


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o666, 0o666), (0o444, 0o644)])
def test_lock_and_waiting_answers_have_the_rights_of_the_file(database: Path, mode: int, expected: int) -> None:
    """Who may write a shared knowledge base may lock it; the owner of a file that was read-only can lock it afterwards."""
    with KnowledgeBase(database) as kb:
        database.chmod(mode)
        with kb.asking():
            lock_mode = stat.S_IMODE(database.with_name("kb.db-asking").stat().st_mode)
    before = os.umask(0)
    try:
        spill.append(database, CALLS[:1])
    finally:
        os.umask(before)

    assert lock_mode == expected
    assert not database.with_name("kb.db-asking").exists()
    assert stat.S_IMODE(spill.spill_path(database).stat().st_mode) == mode


def test_who_waits_too_long_is_told_of_the_lock(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It nests within its thread, also by another connection; others wait until the outermost ends, and name the file."""
    monkeypatch.setattr(asking, "WAIT_SECONDS", 0.1)

    def other() -> None:
        with KnowledgeBase(database) as its_own, its_own.asking():
            pass

    with KnowledgeBase(database) as kb, ThreadPoolExecutor(1) as thread:
        with kb.asking():
            with kb.asking():
                other()
            with pytest.raises(HapaxError, match=r"another process.*kb\.db-asking"):
                thread.submit(other).result()
            waiting = thread.submit(other)
        waiting.result()
        thread.submit(other).result()
    assert not database.with_name("kb.db-asking").exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(database: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """No weaker lock is taken in silence: the message says where to keep the file."""

    def without(*_: Any) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", without)
    with KnowledgeBase(database) as kb, pytest.raises(HapaxError, match="locks: keep the file on"), kb.asking():
        pass


def test_two_writers_do_not_wait_for_ever(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that another one keeps out too long is told so; readers see what was there before."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    with KnowledgeBase(database) as writer, KnowledgeBase(database) as second:
        with writer.transaction():
            writer.add(RUNS, [RunRecord("first", "search", {}, "f", "now")])
            with pytest.raises(HapaxError, match="another process has been writing"):
                second.add(RUNS, [RunRecord("second", "search", {}, "f", "now")])
            with KnowledgeBase(database, read_only=True) as reader:
                assert reader.runs() == []
        assert [run.id for run in second.runs()] == ["first"]


def test_an_answer_that_a_full_disk_cuts_off_leaves_nothing(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of waiting answers keeps its earlier lines, and the next answer begins a line of its own."""
    first, second, third = CALLS
    spill.append(database, [first])
    before = spill.spill_path(database).read_bytes()

    def half(file: int, content: bytes) -> None:
        os.write(file, content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(system, "write", half)
        with pytest.raises(OSError, match="No space left"):
            spill.append(database, [second])
    assert spill.spill_path(database).read_bytes() == before
    spill.append(database, [third])

    with KnowledgeBase(database) as kb:
        assert sorted(kb.calls()) == ["a", "c"]
    assert not spill.spill_path(database).exists()


@pytest.mark.parametrize(("status", "waiting"), [("complete", 0), ("interrupted", 1)])
def test_waiting_answers_come_home_at_the_end_of_a_run(database: Path, status: str, waiting: int) -> None:
    """A run that was interrupted leaves them where they are, and ends at once."""
    with KnowledgeBase(database) as kb:
        run = RunRecord.now("run", "search", {})
        kb.add(RUNS, [run])
        spill.append(database, CALLS[:1])
        kb.finish_run(run.id, status, {})

        assert len(spill.spilled(database)) == waiting


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_paid_answer_goes_into_no_other_file(database: Path, tmp_path: Path, link: str) -> None:
    """Answers are appended neither through a symbolic link nor to a file with a second name; a link brings none in."""
    other = tmp_path / "other.db"
    KnowledgeBase(other).close()
    spill.append(other, CALLS[:1])
    before = spill.spill_path(other).read_bytes()
    getattr(spill.spill_path(database), link)(spill.spill_path(other))
    with pytest.raises(ForeignFileError):
        spill.append(database, CALLS[1:])
    if link == "symlink_to":
        with KnowledgeBase(database) as kb:
            assert kb.calls() == {}

    assert spill.spill_path(other).read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_another_user_owns_no_file_beside_an_unshared_knowledge_base(database: Path) -> None:
    """Another user's file counts only where others may write the knowledge base, or its owner is that user."""
    answers = spill.spill_path(database)
    answers.touch()
    os.chown(answers, 12345, 12345)
    found = []
    for mode, owner in ((0o644, 0), (0o666, 0), (0o644, 12345)):
        database.chmod(mode)
        os.chown(database, owner, owner)
        found.append(own_files.is_there(answers, database))

    assert found == [False, True, True]


def test_an_attempt_that_cannot_be_written_fails_for_its_sender(tmp_path: Path) -> None:
    """Without its line in the ledger nothing is sent; the next attempt is written once the file is there."""
    path = tmp_path / "none" / "kb.db"
    attempt = AttemptRecord("1", "critic", "tiny@1", "chat/completions", "2026-01-01")
    log = AttemptLog(path)

    assert isinstance(log.write(attempt).exception(), Exception)
    path.parent.mkdir()
    KnowledgeBase(path).close()
    assert log.write(attempt).exception() is None
    log.close()
    assert log.write(attempt).exception() is not None
    with KnowledgeBase(path) as kb:
        assert len(kb.attempts()) == 1
