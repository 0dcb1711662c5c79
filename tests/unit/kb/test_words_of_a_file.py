"""Full-text search beside a knowledge base."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hapax.grammar.errors import HapaxError
from hapax.kb.records import RUNS, Distribution, FactRecord, RunRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.kb.word_index import WordIndex


def statement(number: int, premise: str) -> StatementRecord:
    return StatementRecord("r", Distribution.HEAD, "run", (("A", number),), premise, "c", {})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A knowledge base with two statements and two facts."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add(RUNS, [RunRecord("run", "search", {}, "f", "2026-01-01")])
        kb.add_statements([statement(1, "she visits Zürich"), statement(2, "he visits Oslo by train")])
        kb.add_facts([FactRecord("p", ("Zürich", 12), ("T", "N"), Source.GIVEN)])
    return tmp_path / "kb.db"


def test_case_accents_and_ends_of_words_do_not_matter(place: Path) -> None:
    """A word is found by its beginning in values and sentences; all words have to be there; a number is a value."""
    index = WordIndex(place)

    assert (index.search("ZUR").names, index.search("12").names) == (("Zürich",), ("12",))
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
