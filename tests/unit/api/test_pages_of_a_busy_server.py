"""Pages under load: rows that are still being counted, half-open connections."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hapax.api.browser import app, serving
from hapax.api.browser.app import Browser, browser_app
from hapax.api.browser.serving import Access, Guard
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

# --- fixture ----------------------------------------------------------------------------------------------------------


ADDRESS = "http://localhost:8001"


@contextmanager
def browsing(browser: Browser, **headers: str) -> Iterator[TestClient]:
    """A client that has logged in, and sends these headers with each request."""
    access = Access(8001)
    headers = {"Authorization": f"Bearer {access.token}", **headers}
    with TestClient(Guard(browser_app(browser), access), base_url=ADDRESS, headers=headers) as client:
        yield client


# --- busy -------------------------------------------------------------------------------------------------------------


def test_a_list_does_not_wait_for_its_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While rows are being counted the page is shown without numbers, and asks for them by itself."""
    goes_on, counts = threading.Event(), app.facet_counts

    def slow(*asked: Any) -> Any:
        goes_on.wait(30)
        return counts(*asked)

    monkeypatch.setattr("hapax.api.browser.app.facet_counts", slow)
    monkeypatch.setattr("hapax.api.browser.facets.COUNTING_SECONDS", 0.1)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add_facts([FactRecord("is_sweet", ("melon",), ("Fruit",), Source.MODEL)])
    with browsing(Browser(tmp_path / "kb.db")) as client:
        before = client.get("/facts").text
        goes_on.set()
        while "data-running" in (after := client.get("/facts").text):
            pass

    assert ("melon" in before, "data-running" in before) == (True, True)
    assert '<span class="count">1</span>' in after


def test_a_half_open_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever begins a request and does not end its head is disconnected, also behind a whole request."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    KnowledgeBase(tmp_path / "kb.db").close()
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
