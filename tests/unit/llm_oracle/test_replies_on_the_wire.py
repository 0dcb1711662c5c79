"""Keys are removed from replies; counts that cannot be are not believed; half a line is no answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hapax.kb.records import CallRecord
from hapax.kb.spill import spill_path, spilled
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.openai_wire import TransientFault, answered_texts, usage

CHOICE = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}


def test_two_first_choices_are_a_fault() -> None:
    """Two different choices of the same index are no answer, since either could be meant."""
    with pytest.raises(TransientFault):
        answered_texts({"choices": [CHOICE, {**CHOICE, "message": {"content": "b"}}]})


@pytest.mark.parametrize("count", [2**40, -4, 10**30, True, "7"])
def test_a_count_beyond_any_context_window_is_not_believed(count: object) -> None:
    """Usage that no model can have is replaced by an estimate from the text."""
    found = usage({"usage": {"prompt_tokens": count, "completion_tokens": count}}, "a b c", ("x",))

    assert 0 < found.prompt_tokens < 100
    assert 0 < found.completion_tokens < 100


def call(name: str) -> CallRecord:
    return CallRecord(name, "critic", "tiny", {"claim": name}, {"probability": 0.5}, 3, 1, 0.25, "now")


def test_a_torn_line_is_no_answer(tmp_path: Path) -> None:
    """Answers behind a lock lie beside the file; a line that a killed process wrote in part is left out; all others come home
    with the next command that writes."""
    database = tmp_path / "kb.db"
    with KnowledgeBase(database) as kb, closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kb.record_calls([call("first")])
        assert kb.calls(["first"]) == {"first": call("first")}
        with spill_path(database).open("ab") as stream:
            stream.write(spill_path(database).read_bytes()[:25])
        kb.record_calls([call("second")])
        assert [record.request_id for record in spilled(database)] == ["first", "second"]
        other.execute("ROLLBACK")
    with KnowledgeBase(database) as kb:
        assert set(kb.calls()) == {"first", "second"}
    assert not spill_path(database).exists()
