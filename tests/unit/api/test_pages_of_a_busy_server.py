"""Pages of a server that is asked by many at a time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hapax.api.browser import serving
from hapax.api.browser.app import Browser, browser_app
from hapax.api.browser.serving import Access, Guard
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
