"""Refusals of a knowledge base, told with the place, the fact and the remedy."""

from __future__ import annotations

import math
import os
import socket
from decimal import Decimal
from pathlib import Path

import pytest

from hapax.grammar.errors import HapaxError
from hapax.kb import loading, system
from hapax.kb.backups import copy_verified
from hapax.kb.records import Assessment, AtomPattern, CallRecord, FactRecord, Question, Source, canonical_text
from hapax.kb.relations import Relations
from hapax.kb.roots import Roots, RunRoot
from hapax.kb.running import SILENT_SECONDS, RunFiles, RunState, Wish
from hapax.kb.spill import append, spill_path, spilled
from hapax.kb.store import KnowledgeBase


def test_a_copy_of_no_knowledge_base_is_refused(tmp_path: Path) -> None:
    """The error names the missing file, and nothing is written."""
    with pytest.raises(HapaxError, match=r"none\.db: there is no such knowledge base\. Name an existing file\."):
        copy_verified(tmp_path / "none.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_into_no_folder_is_refused(tmp_path: Path) -> None:
    """The error names the file that cannot be written, with the system's reason and the remedies."""
    KnowledgeBase(tmp_path / "kb.db").close()

    with pytest.raises(
        HapaxError, match=r"copy\.db: it cannot be written \(.*\)\. Free some space, allow writing, or name"
    ):
        copy_verified(tmp_path / "kb.db", tmp_path / "nowhere" / "copy.db")


def test_a_score_that_is_no_number_is_refused(fresh_kb: KnowledgeBase) -> None:
    """The model is at fault, which the error says."""
    with pytest.raises(HapaxError, match=r"is not a number .NaN.; fix the model that returned it"):
        fresh_kb.add_assessments([Assessment("text", "probability", "m", math.nan)])
    assert fresh_kb.assessments(["text"], "probability", "m") == {}


def test_rows_that_are_gone_new_or_changed_are_told_by_run() -> None:
    """Each run whose rows are not as sealed has its difference in words, in the order of their names."""
    sealed = Roots((RunRoot("", 1, "00"), RunRoot("a", 3, "01"), RunRoot("b", 2, "02"), RunRoot("c", 2, "03")))
    now = Roots((RunRoot("", 1, "00"), RunRoot("b", 4, "05"), RunRoot("c", 2, "04"), RunRoot("d", 7, "06")))

    assert now.changed_since(sealed) == [
        ("a", "its rows are gone"),
        ("b", "it had 2 rows and has 4, not all the same"),
        ("c", "it had 2 rows and has 2, not all the same"),
        ("d", "it is not in the seal, with 7 rows"),
    ]
    assert now.changed_since(now) == []


@pytest.mark.parametrize(("silent", "alive"), [(0.0, True), (SILENT_SECONDS - 1, True), (SILENT_SECONDS, False)])
def test_a_search_on_another_machine_ends_with_an_hour_of_silence(
    silent: float, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process cannot be asked for there, so the time since it last wrote decides."""
    now = system.now()
    monkeypatch.setattr(system, "now", lambda: now)
    state = RunState(1, f"not {socket.gethostname()}", now.timestamp() - silent, 5.0)

    assert state.is_alive is alive


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not be signalled exists; one that is not there has ended."""

    def kill(process: int, signal: int) -> None:
        assert signal == 0
        raise PermissionError if process == 7 else ProcessLookupError

    monkeypatch.setattr("os.kill", kill)

    assert RunState(7, socket.gethostname(), 0.0, 0.0).is_alive
    assert RunState(8, socket.gethostname(), 0.0, 0.0).is_alive is False


def test_a_name_that_cannot_be_stored_is_in_no_statement(fresh_kb: KnowledgeBase) -> None:
    """SQLite ends a text at a NUL and stores no half character, so that no rule has such a name."""
    for name in ("a\0b", "\ud83d"):
        assert fresh_kb.statements(rule=name) == []
        assert fresh_kb.statements_with([name], most=3) == []
        assert fresh_kb.statements_with(["a"], rule=name, most=3) == []


def test_decimals_have_one_form_in_identities() -> None:
    """Equal numbers are one value of a question, and infinity is refused by no identity."""
    ids = {Question((AtomPattern("p", (Decimal(text), None)),), "T").id for text in ("1.10", "1.1", "01.100")}

    assert len(ids) == 1
    assert canonical_text(Decimal("Infinity")) == '{"decimal":"Infinity"}'
    assert canonical_text(Decimal("-1.50")) == '{"decimal":"-15E-1"}'


def test_a_foreign_cell_is_told_with_the_beginning_of_its_row(fresh_kb: KnowledgeBase) -> None:
    """The error names the cell, the key of its row and sixty characters of each other cell, 120 in all."""
    fresh_kb.add_facts([FactRecord("p" * 70, ("a",), (), Source.GIVEN)])
    fresh_kb.query("UPDATE facts SET source = 'somebody'")

    with pytest.raises(HapaxError) as refused:
        list(fresh_kb.facts())
    told = str(refused.value)

    assert "facts.source: the cell 'somebody' was not written by Hapax (" in told
    assert f" {'p' * 60}," in told
    assert f"{'p' * 61}" not in told


def test_a_wish_for_a_search_whose_folder_is_gone_is_refused(tmp_path: Path) -> None:
    """The error names the file, the system's reason and the way that is left; removing a wish that is not there is fine."""
    files = RunFiles(tmp_path / "gone" / "kb.db", "run")

    with pytest.raises(HapaxError) as refused:
        files.ask(Wish.PAUSE)
    assert f"{tmp_path / 'gone'}" in str(refused.value)
    assert "cannot be written (No such file or directory). Allow writing to its folder, or press Ctrl-C" in str(
        refused.value
    )
    files.ask(None)
    assert files.wish() is None


def test_an_answer_that_a_full_disk_cuts_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has its earlier lines alone, so that the next answer begins a line of its own."""
    database = tmp_path / "kb.db"
    KnowledgeBase(database).close()
    first, second, third = (CallRecord(name, "generate", "model", {"prompt": name}, {"text": name}) for name in "abc")
    append(database, [first])
    before = spill_path(database).read_bytes()

    def half(file: int, content: bytes) -> None:
        os.write(file, content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(system, "write", half)
        with pytest.raises(OSError, match="No space left"):
            append(database, [second])
    assert spill_path(database).read_bytes() == before
    append(database, [third])
    assert [call.request_id for call in spilled(database)] == ["a", "c"]

    with KnowledgeBase(database) as kb:
        assert not kb.bring_home()  # it was opened to write, which moved them already
        append(database, [second])
        assert kb.bring_home()
        assert sorted(kb.calls("abc")) == ["a", "b", "c"]
    assert not spill_path(database).exists()


def test_facts_are_loaded_by_batches_whatever_their_size(
    fresh_kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relations read in batches of two, flushed before all is read, have every fact once."""
    monkeypatch.setattr(loading, "_FACTS_PER_BATCH", 2)
    monkeypatch.setattr(loading, "_FACTS_WAITING", 3)
    facts = [FactRecord(name, (number,), (), Source.GIVEN) for number in range(7) for name in "pqr"[: 1 + number % 3]]
    fresh_kb.add_facts(facts)
    relations = Relations(fresh_kb)

    assert relations.bring_up_to_date() == len(facts)
    for name in "pqr":
        count = sum(fact.predicate == name for fact in facts)
        assert relations.row_count(relations.relation(f"{name}/1")) == count


def test_what_is_synced_reaches_the_disk_by_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a path and a folder are each forced to the disk by their own descriptors, which are closed again."""
    forced: list[tuple[int, int]] = []
    monkeypatch.setattr("os.fsync", lambda file: forced.append((os.fstat(file).st_ino, file)))
    path = tmp_path / "file"
    path.write_text("content")
    with path.open("rb") as stream:
        system.sync(stream.fileno())
    system.sync_path(path)
    system.sync_folder(tmp_path)

    assert [number for number, _ in forced] == [path.stat().st_ino, path.stat().st_ino, tmp_path.stat().st_ino]
    for _, descriptor in forced:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
