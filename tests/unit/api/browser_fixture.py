"""The pages of `hapax serve`, met by requests in the process of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.testclient import TestClient

from hapax.api.browser.app import Browser, browser_app
from hapax.api.browser.serving import Access, Guard

ADDRESS = "http://localhost:8001"


@contextmanager
def browsing(browser: Browser, **headers: str) -> Iterator[TestClient]:
    """A client that has logged in, and sends these headers with each request."""
    access = Access(8001)
    headers = {"Authorization": f"Bearer {access.token}", **headers}
    with TestClient(Guard(browser_app(browser), access), base_url=ADDRESS, headers=headers) as client:
        yield client
