"""Full-text search beside a knowledge base."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hapax.grammar.errors import HapaxError
from hapax.kb.records import Distribution, FactRecord, RunRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.kb.word_index import WordIndex, WordMatches


def statement(number: int, premise: str) -> StatementRecord:
    return StatementRecord("r", Distribution.HEAD, "run", (("A", number),), premise, "c", "t", {})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A knowledge base with two statements and two facts."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("run", "search", {}, "f", "2026-01-01"))
        kb.add_statements([statement(1, "she visits Z\u00fcrich"), statement(2, "he visits Oslo by train")])
        kb.add_facts([FactRecord("p", ("Z\u00fcrich", 12), ("T", "N"), Source.GIVEN)])
    return tmp_path / "kb.db"


def test_case_accents_and_ends_of_words_do_not_matter(place: Path) -> None:
    """A word is found by its beginning in values and sentences; all words have to be there; a number is a value."""
    index = WordIndex(place)

    assert index.search("ZUR").names == ("Z\u00fcrich",)
    assert index.search("zuri visit").row_count == 1
    assert index.search("visits").row_count == 2
    assert index.search("urich").row_count == 0
    assert index.search("12").names == ("12",)
    for words in ("\u2026", "", "\udc80"):
        assert index.search(words) == WordMatches((), 0, (), 0)
    assert index.search("zuri\0visit").row_count == 1


def test_the_index_follows_the_file(place: Path) -> None:
    """New, changed and deleted rows count in the next search, and values stay single."""
    index = WordIndex(place)
    assert index.search("bergen").row_count == 0

    with KnowledgeBase(place) as kb:
        kb.add_statements([statement(3, "they visit Bergen")])
        kb.add_facts([FactRecord("p", ("Bergen", "Z\u00fcrich"), ("T", "T"), Source.GIVEN)])
    assert index.search("bergen").row_count == 1
    assert index.search("bergen").names == ("Bergen",)
    assert index.search("zurich").names == ("Z\u00fcrich",)

    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE statements SET premise = 'we visit Trondheim' WHERE premise LIKE '%Bergen%'")
        connection.execute("DELETE FROM facts WHERE arguments LIKE '%12%'")
    connection.close()
    assert (index.search("bergen").row_count, index.search("trondheim").row_count) == (0, 1)
    assert (index.search("12").names, index.search("oslo").row_count) == ((), 1)


def test_a_file_that_is_gone_is_told(place: Path) -> None:
    """The search of a file that was deleted is an error with its place."""
    index = WordIndex(place)
    place.unlink()

    assert index.ready(10)
    with pytest.raises(HapaxError, match=r"kb\.db"):
        index.search("oslo")


def test_a_closed_index_answers_no_more(place: Path) -> None:
    """Its temporary database is gone with it."""
    index = WordIndex(place)
    assert index.ready(10.0)
    index.close()

    with pytest.raises((sqlite3.Error, HapaxError)):
        index.search("visits")
