"""Pages under load: popularity that is still being measured, pages far down a list, half-open connections."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from browser_fixture import browsing

from hapax.api.browser import serving, tables
from hapax.api.browser.app import Browser
from hapax.api.browser.tables import Page, Wanted
from hapax.kb.popularity import Measure, add_ranks
from hapax.kb.records import RULES, RUNS, Distribution, FactRecord, RuleRecord, RunRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase

FRUITS = ("apple", "carambola", "zzqxj", "melon")
BY_POPULARITY = ["zzqxj", "carambola", "melon", "apple"]


def fruit_kb(path: Path, fruits: tuple[str, ...] = FRUITS, run_id: str = "run") -> None:
    """A statement about each fruit, at both ends, and a fact behind it."""
    with KnowledgeBase(path) as kb:
        kb.add(RUNS, [RunRecord(run_id, "search", {}, "f", "2026-01-01")])
        kb.add(RULES, [RuleRecord("r", "r", None, None, None)])
        for fruit in fruits:
            fact = FactRecord("is_sweet", (fruit,), ("Fruit",), Source.MODEL)
            kb.add_facts([fact])
            goal = {"predicate": "is_sweet", "arguments": [fruit]}
            proof = {"steps": [{"by": "fact", "fact": fact.id, "goal": goal}]}
            for end in Distribution:
                kb.add_statements([StatementRecord("r", end, run_id, (("A", fruit),), "p", fruit, proof, -1.0)])


def test_a_page_does_not_wait_for_the_popularity_of_a_million_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows are being measured the page says so and asks again; then it has the order."""
    goes_on = threading.Event()

    def slow(database: Path, measure: Measure) -> None:
        goes_on.wait(30)
        add_ranks(database, measure)

    monkeypatch.setattr("hapax.api.browser.ranking.add_ranks", slow)
    monkeypatch.setattr("hapax.api.browser.app.RANKING_SECONDS", 0.1)
    fruit_kb(tmp_path / "kb.db")
    place = "/statements?order=popularity"
    with browsing(Browser(tmp_path / "kb.db")) as client:
        before, sheet = client.get(place), client.get(f"{place}&format=csv")
        goes_on.set()
        while (answer := client.get(f"{place}&format=json")).status_code == 503:
            pass
        after = client.get(place).text

    assert (before.status_code, sheet.status_code) == (503, 503)
    assert 'http-equiv="refresh"' in before.text
    assert [row["statement"].split()[-1][:-1] for row in answer.json()] == BY_POPULARITY
    assert 'http-equiv="refresh"' not in after


@pytest.mark.parametrize("order", ["", "popularity", "-log-likelihood", "statement", "rule"])
def test_far_pages_have_the_rows_that_follow_the_near_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """A page far down lists what the other way of finding it lists: each statement once, none whose facts are withdrawn."""
    database = tmp_path / "kb.db"
    fruit_kb(database)
    fruit_kb(database, ("apple", "lemon"), "again")
    with KnowledgeBase(database) as kb:
        kb.withdraw([FactRecord("is_sweet", ("melon",), ("Fruit",), Source.MODEL)], "it is not", "user")
    with KnowledgeBase(database, read_only=True) as kb:
        tables.know_popularity(kb)
        near = [tables.statements(kb, Wanted(), Page(number, 1, order)).rows for number in range(1, 7)]
        monkeypatch.setattr(tables, "FAR", 0)
        far = [tables.statements(kb, Wanted(), Page(number, 1, order)).rows for number in range(1, 7)]

    assert near == far
    assert [len(rows) for rows in near] == [1, 1, 1, 1, 0, 0]


def test_a_half_open_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever begins a request and does not end its head is disconnected, also behind a whole request."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    fruit_kb(tmp_path / "kb.db")
    browser = serving.browser_server(Browser(tmp_path / "kb.db"), port=0)
    thread = threading.Thread(target=browser.run, daemon=True)
    thread.start()
    try:
        for begun, answers in ((b"", 0), (b"GET /style.css HTTP/1.1\r\nHost: localhost\r\n\r\n", 1)):
            with socket.create_connection(browser.socket.getsockname(), timeout=30) as connection:
                connection.sendall(begun)
                time.sleep(0.1)
                connection.sendall(b"GET / HTTP/1.1\r\nHost:")
                # Ends when the server closes the connection.
                received = b"".join(iter(lambda: connection.recv(65536), b""))
            assert received.count(b"HTTP/1.1 ") == answers
    finally:
        browser.server.should_exit = True
        thread.join(10)
