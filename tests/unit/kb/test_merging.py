"""Merging knowledge bases: the order and the number of merges change nothing, and contradictions are told."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.grammar.errors import HapaxError
from hapax.kb import connection, judgement_records, records, rows, schema
from hapax.kb.call_journal import AttemptLog
from hapax.kb.exchange.merge import merge
from hapax.kb.files import asking, own_files, spill, system
from hapax.kb.files.own_files import ForeignFileError
from hapax.kb.files.unfinished import exchange, sweep, unfinished
from hapax.kb.files.whole_files import atomic_path
from hapax.kb.records import (
    RUNS,
    AttemptRecord,
    CallRecord,
    Distribution,
    FactRecord,
    RunRecord,
    Source,
    StatementRecord,
)
from hapax.kb.store import KnowledgeBase
from hapax.kb.word_index import WordIndex

# Few texts and numbers, so that the two sides often speak of the same things and contradict each other.
T = st.sampled_from(["a", "b"])
N = st.none() | T
S = st.sampled_from([0.25, 0.5])
C = st.sampled_from([0, 1])
B = st.booleans()
RECORDS: dict[Any, Any] = {
    records.RULES: st.builds(records.RuleRecord, T, T, N),
    records.PREDICATES: st.builds(
        records.PredicateRecord, T, st.just(("A", "B")), st.sampled_from(["oracle", "functional"]), N
    ),
    records.TYPE_FACTS: st.builds(records.TypeFact, T, T, st.none() | S),
    records.QUESTIONS: st.builds(records.QuestionRow, st.just((records.AtomPattern("p", (None, "a")),)), T, B, C, C, B),
    records.CALLS: st.builds(records.CallRecord, T, T, T, st.just({}), st.builds(dict, text=T), C, C, st.none() | S, T),
    records.CANDIDATES: st.builds(records.Candidate, T, T, T, T, C, N),
    records.ASSESSMENTS: st.builds(records.Assessment, T, T, T, S, C, N),
    records.DECISIONS: st.builds(records.Decision, T, T, T, B, st.none() | S, st.none() | S, T, N),
    records.FACTS: st.builds(
        records.FactRecord, T, st.tuples(T, T), st.just(()), st.sampled_from(records.Source), st.none() | S, N, N
    ),
    records.STATEMENTS: st.builds(
        records.StatementRecord,
        T,
        st.sampled_from(records.Distribution),
        T,
        st.just(()),
        T,
        T,
        st.builds(dict, x=T),
        st.none() | S,
    ),
    records.RUNS: st.builds(records.RunRecord, T, T, st.just({}), T, T, N, T),
    judgement_records.VOTES: st.builds(judgement_records.VoteRecord, T, T, T, T, T),
    records.MODEL_PROFILES: st.builds(records.ProfileRecord, T, T, st.just({})),
}
CONTENTS = st.fixed_dictionaries({table: st.lists(strategy, max_size=3) for table, strategy in RECORDS.items()})


def filled(path: Path, contents: dict[Any, list[Any]]) -> Path:
    with KnowledgeBase(path) as kb:
        for table, held in contents.items():
            kb.add(table, held, rows.OnConflict.REPLACE)
    return path


def content(kb: KnowledgeBase) -> dict[str, set[tuple[object, ...]]]:
    """All rows of all tables, without their order."""
    tables = [table for table in schema.TABLES if kb.has(table.name)]
    selects = {table.name: f"SELECT {', '.join(table.all_columns)} FROM {table.name}" for table in tables}  # noqa: S608
    return {name: found for name, select in selects.items() if (found := set(kb.sql(select)))}


@given(CONTENTS, CONTENTS, CONTENTS)
@settings(max_examples=cases(4), deadline=None)
def test_merging_is_idempotent_commutative_and_associative(first: Any, second: Any, third: Any) -> None:
    """Whichever file takes over the others, and however often, content and reported conflicts are the same."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [filled(Path(folder) / f"{n}.db", held) for n, held in enumerate((first, second, third))]
        merged, reports = [], []
        for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0, 1, 2), (0, 1), (1, 0)):
            with KnowledgeBase() as kb:
                reports.append([merge(kb, paths[n]) for n in order])
                merged.append(content(kb))

    assert merged[0] == merged[1] == merged[2]
    assert all(report.added == report.replaced == {} for report in reports[2][3:])
    # A file that contradicts itself is told of at each merge that it has been in.
    conflicts = [{conflict for report in both for conflict in report.conflicts} for both in reports[3:]]
    if any(conflict.kind == "predicates" for conflict in conflicts[0]):
        # Two values of a predicate are one conflict only where, by then, the predicate is functional.
        conflicts = [{conflict for conflict in found if conflict.kind != "functional"} for found in conflicts]
    assert set(map(str, conflicts[0])) == set(map(str, conflicts[1]))


def test_contradictions_are_reported(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """A functional fact with two values, and one request, score or vote told in two ways, are conflicts; a last digit is none."""
    born = records.FactRecord("was_born_in", ("Ada", 1815), (), records.Source.MODEL)
    call = records.CallRecord("r1", "knowledge", "m", {}, {"text": "yes"})
    score = records.Assessment("x", "probability", "m", 0.5)
    likelihood = records.Assessment("x", "log_likelihood", "m", -29.3844666)
    vote = judgement_records.VoteRecord("s", "entailed?", "ann", "yes")
    here: dict[Any, list[Any]] = {
        records.FACTS: [born],
        records.PREDICATES: [records.PredicateRecord("was_born_in", ("Person", "Year"), "functional")],
        records.CALLS: [call],
        records.ASSESSMENTS: [score, likelihood],
        judgement_records.VOTES: [vote],
    }
    there: dict[Any, list[Any]] = {
        records.FACTS: [replace(born, arguments=("Ada", 1816))],
        records.CALLS: [replace(call, response={"text": "no"})],
        records.ASSESSMENTS: [replace(score, score=0.6), replace(likelihood, score=-29.3844686)],
        judgement_records.VOTES: [replace(vote, answer="no")],
    }
    for table, held in here.items():
        fresh_kb.add(table, held)
    conflicts = merge(fresh_kb, filled(tmp_path / "other.db", there)).conflicts

    assert [conflict.kind for conflict in conflicts] == ["calls", "assessments", "votes", "functional"]
    assert all(word in str(conflicts[3]) for word in ("Ada", "1815", "1816"))


def test_a_fact_that_the_other_rejected_is_reported(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """Held here and rejected there: the fact stays, and the report names the reason."""
    candidate = records.Candidate(
        records.Question((records.AtomPattern("is_old", (None,)),), "City").id, "Ur", "Ur", "r1", 1
    )
    fact = records.FactRecord("is_old", ("Ur",), (), records.Source.MODEL, candidate_id=candidate.id)
    fresh_kb.add_facts([fact])
    rejected = records.Decision("run", "critic", candidate.id, False, 0.2, 0.65, "below the threshold")
    report = merge(
        fresh_kb, filled(tmp_path / "o.db", {records.CANDIDATES: [candidate], records.DECISIONS: [rejected]})
    )

    (conflict,) = report.conflicts
    assert conflict.kind == "rejected"
    assert "below the threshold" in str(conflict)
    assert fresh_kb.facts() == [fact]


def statement(number: int, premise: str) -> StatementRecord:
    return StatementRecord("r", Distribution.HEAD, "run", (("A", number),), premise, "c", {})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A knowledge base with two statements and two facts."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add(RUNS, [RunRecord("run", "search", {}, "f", "2026-01-01")])
        kb.add_statements([statement(1, "she visits Zürich"), statement(2, "he visits Oslo by train")])
        kb.add_facts([FactRecord("p", ("Zürich", 12), ("T", "N"), Source.GIVEN)])
        kb.add_facts([FactRecord("p", ("Łódź Groß-Ødegaard", 12), ("T", "N"), Source.GIVEN)])
    return tmp_path / "kb.db"


def test_case_accents_and_ends_of_words_do_not_matter(place: Path) -> None:
    """A word is found by its beginning in values and sentences; all words have to be there; a number is a value."""
    index = WordIndex(place)

    assert (index.search("ZUR").names, index.search("12").names) == (("Zürich",), ("12",))
    assert index.search("lodz odeg gross").names == index.search("ŁÓDŹ ødegaard").names == ("Łódź Groß-Ødegaard",)
    counts = [
        index.search(words).row_count for words in ("zuri visit", "visits", "urich", "…", "", "\udc80", "zuri\0visit")
    ]
    assert counts == [1, 2, 0, 0, 0, 0, 1]


def test_the_index_follows_the_file(place: Path) -> None:
    """New, changed and deleted rows count in the next search; a file that is gone is named."""
    index = WordIndex(place)
    assert index.search("bergen").row_count == 0
    with KnowledgeBase(place) as kb:
        kb.add_statements([statement(3, "they visit Bergen")])
    assert index.search("bergen").row_count == 1
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE statements SET premise = 'we visit Trondheim' WHERE premise LIKE '%Bergen%'")
    with KnowledgeBase(place) as kb:
        kb.withdraw([fact for fact in kb.facts() if "12" in str(fact.arguments)], "", "user")
    assert (index.search("bergen").row_count, index.search("trondheim").row_count) == (0, 1)
    assert index.search("12").names == ()
    place.unlink()
    with pytest.raises(HapaxError, match=r"kb\.db"):
        index.search("oslo")


CALLS = [CallRecord(name, "critic", "m", {"prompt": name}, {"text": name}) for name in "abc"]


@pytest.fixture
def locks_database(tmp_path: Path) -> Path:
    KnowledgeBase(tmp_path / "kb.db").close()
    return tmp_path / "kb.db"


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o666, 0o666), (0o444, 0o644)])
def test_lock_and_waiting_answers_have_the_rights_of_the_file(locks_database: Path, mode: int, expected: int) -> None:
    """Who may write a shared knowledge base may lock it; the owner of a file that was read-only can lock it afterwards."""
    with KnowledgeBase(locks_database) as kb:
        locks_database.chmod(mode)
        with kb.asking():
            lock_mode = stat.S_IMODE(locks_database.with_name("kb.db-asking").stat().st_mode)
    before = os.umask(0)
    try:
        spill.append(locks_database, CALLS[:1])
    finally:
        os.umask(before)

    assert lock_mode == expected
    assert not locks_database.with_name("kb.db-asking").exists()
    assert stat.S_IMODE(spill.spill_path(locks_database).stat().st_mode) == mode


def test_who_waits_too_long_is_told_of_the_lock(locks_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It nests within its thread, also by another connection; others wait until the outermost ends, and name the file."""
    monkeypatch.setattr(asking, "WAIT_SECONDS", 0.1)

    def other() -> None:
        with KnowledgeBase(locks_database) as its_own, its_own.asking():
            pass

    with KnowledgeBase(locks_database) as kb, ThreadPoolExecutor(1) as thread:
        with kb.asking():
            with kb.asking():
                other()
            with pytest.raises(HapaxError, match=r"another process.*kb\.db-asking"):
                thread.submit(other).result()
            waiting = thread.submit(other)
        waiting.result()
        thread.submit(other).result()
    assert not locks_database.with_name("kb.db-asking").exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(
    locks_database: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """No weaker lock is taken in silence: the message says where to keep the file."""

    def without(*_: Any) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", without)
    with KnowledgeBase(locks_database) as kb, pytest.raises(HapaxError, match="locks: keep the file on"), kb.asking():
        pass


def test_two_writers_do_not_wait_for_ever(locks_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that another one keeps out too long is told so; readers see what was there before."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    with KnowledgeBase(locks_database) as writer, KnowledgeBase(locks_database) as second:
        with writer.transaction():
            writer.add(RUNS, [RunRecord("first", "search", {}, "f", "now")])
            with pytest.raises(HapaxError, match="another process has been writing"):
                second.add(RUNS, [RunRecord("second", "search", {}, "f", "now")])
            with KnowledgeBase(locks_database, read_only=True) as reader:
                assert reader.runs() == []
        assert [run.id for run in second.runs()] == ["first"]


def test_an_answer_that_a_full_disk_cuts_off_leaves_nothing(
    locks_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of waiting answers keeps its earlier lines, and the next answer begins a line of its own."""
    first, second, third = CALLS
    spill.append(locks_database, [first])
    before = spill.spill_path(locks_database).read_bytes()

    def half(file: int, content: bytes) -> None:
        os.write(file, content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(system, "write", half)
        with pytest.raises(OSError, match="No space left"):
            spill.append(locks_database, [second])
    assert spill.spill_path(locks_database).read_bytes() == before
    spill.append(locks_database, [third])

    with KnowledgeBase(locks_database) as kb:
        assert sorted(kb.calls()) == ["a", "c"]
    assert not spill.spill_path(locks_database).exists()


@pytest.mark.parametrize(("status", "waiting"), [("complete", 0), ("interrupted", 1)])
def test_waiting_answers_come_home_at_the_end_of_a_run(locks_database: Path, status: str, waiting: int) -> None:
    """A run that was interrupted leaves them where they are, and ends at once."""
    with KnowledgeBase(locks_database) as kb:
        run = RunRecord.now("run", "search", {})
        kb.add(RUNS, [run])
        spill.append(locks_database, CALLS[:1])
        kb.finish_run(run.id, status, {})

        assert len(spill.spilled(locks_database)) == waiting


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_paid_answer_goes_into_no_other_file(locks_database: Path, tmp_path: Path, link: str) -> None:
    """Answers are appended neither through a symbolic link nor to a file with a second name; a link brings none in."""
    other = tmp_path / "other.db"
    KnowledgeBase(other).close()
    spill.append(other, CALLS[:1])
    before = spill.spill_path(other).read_bytes()
    getattr(spill.spill_path(locks_database), link)(spill.spill_path(other))
    with pytest.raises(ForeignFileError):
        spill.append(locks_database, CALLS[1:])
    if link == "symlink_to":
        with KnowledgeBase(locks_database) as kb:
            assert kb.calls() == {}

    assert spill.spill_path(other).read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_another_user_owns_no_file_beside_an_unshared_knowledge_base(locks_database: Path) -> None:
    """Another user's file counts only where others may write the knowledge base, or its owner is that user."""
    answers = spill.spill_path(locks_database)
    answers.touch()
    os.chown(answers, 12345, 12345)
    found = []
    for mode, owner in ((0o644, 0), (0o666, 0), (0o644, 12345)):
        locks_database.chmod(mode)
        os.chown(locks_database, owner, owner)
        found.append(own_files.is_there(answers, locks_database))

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


WRITER = """
import sys
from pathlib import Path
from hapax.kb.files.unfinished import unfinished

place = Path(sys.argv[1])
with unfinished(place) as new:
    new.mkdir()
    (new / "file").write_text("new")
    if sys.argv[2] == "exchange":
        (new.parent / "earlier").mkdir()
        place.replace(new.parent / "earlier" / place.name)
    print("ready", flush=True)
    input()
"""


def writer(place: Path, step: str = "write") -> subprocess.Popen[str]:
    """A process that waits amid its writing."""
    command = [sys.executable, "-c", WRITER, str(place), step]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("opened", [True, False], ids=["knowledge base", "file"])
def test_the_next_command_removes_what_a_killed_one_left(tmp_path: Path, opened: bool) -> None:
    """A hidden folder outlives SIGKILL, and is gone when a file or a knowledge base is written beside it."""
    kill(writer(tmp_path / "out"))
    assert len(names(tmp_path)) == 1
    if opened:
        KnowledgeBase(tmp_path / "other").close()
    else:
        with atomic_path(tmp_path / "other") as path:
            path.write_text("whole")

    assert names(tmp_path) == {"other"}


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    """A folder that is locked is not swept."""
    process = writer(tmp_path / "out")
    before = names(tmp_path)
    sweep(tmp_path)
    after = names(tmp_path)
    kill(process)

    assert before == after != set()


def test_a_folder_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    """Killed between its two renames, an exchange leaves the earlier folder after the next sweep."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("old")
    kill(writer(tmp_path / "out", "exchange"))
    assert not (tmp_path / "out").exists()
    sweep(tmp_path)

    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / "file").read_text() == "old"


def test_a_failure_puts_the_earlier_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the second rename fails, the place has its earlier folder."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    rename = system.rename

    def failing(source: Path, target: Path, *folders: tuple[int, int]) -> None:
        if target == tmp_path / "out" and (source / "new").exists():
            raise OSError("no")
        rename(source, target, *folders)

    monkeypatch.setattr(system, "rename", failing)
    with suppress(OSError), unfinished(tmp_path / "out") as new:
        new.mkdir()
        (new / "new").touch()
        exchange(new, tmp_path / "out")

    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {"old"}


def test_files_reach_the_disk_before_their_folder_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of the new folder is synced before it takes the place of the earlier one, of which nothing is left."""
    place = tmp_path / "out"
    place.mkdir()
    (place / "old").touch()
    steps: list[str] = []
    rename = system.rename

    def renamed(source: Path, target: Path) -> None:
        steps.append(f"{source.name} becomes {target.parent.name}/{target.name}")
        rename(source, target)

    with unfinished(place) as new:
        monkeypatch.setattr(system, "sync_path", lambda path: steps.append(f"sync {path.name}"))
        monkeypatch.setattr(system, "sync_folder", lambda folder: steps.append(f"sync folder {folder.name}"))
        monkeypatch.setattr(system, "rename", renamed)
        (new / "inner").mkdir(parents=True)
        (new / "inner" / "file").write_text("new")
        (new / "other").write_text("new")
        exchange(new, place)

    assert sorted(steps[:2]) == ["sync file", "sync other"]
    assert steps[2:] == ["out becomes earlier/out", f"out becomes {tmp_path.name}/out", f"sync folder {tmp_path.name}"]
    assert names(place) == {"inner", "other"}
    assert names(tmp_path) == {"out"}
