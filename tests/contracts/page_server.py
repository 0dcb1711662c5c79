"""A process of `hapax serve`, asked by HTTP."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Answer:
    """An answer to a request."""

    status: int
    headers: http.client.HTTPMessage
    text: str


@dataclass(frozen=True)
class Served:
    """A running server, asked by HTTP."""

    host: str
    port: int
    token: str

    @property
    def origin(self) -> str:
        """The server as a browser names it in what it sends from a page of it."""
        return f"http://{self.host}:{self.port}"

    def ask(self, place: str, method: str = "GET", body: str = "", **headers: str) -> Answer:
        """The answer to a request with these headers, `_` for `-` in their names, and the token if there is none."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("Authorization", f"Bearer {self.token}")
        with closing(http.client.HTTPConnection(self.host, self.port, timeout=60)) as connection:
            connection.request(method, place, body, {"Content-Type": "application/x-www-form-urlencoded", **sent})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode("utf-8"))

    def ask_without_token(self, place: str, method: str = "GET", **headers: str) -> Answer:
        """The answer to a request that brings no token."""
        return self.ask(place, method, Authorization="", **headers)

    def send(self, place: str, form: Mapping[str, str]) -> Answer:
        """The answer to a form that the server's own page sends, or to the page that it leads to."""
        answer = self.ask(place, "POST", urlencode(form), Origin=self.origin)
        return self.ask(str(answer.headers["Location"])) if answer.status == 303 else answer


@contextmanager
def serving(database: Path, *options: str) -> Iterator[Served]:
    """A process of `hapax serve` at a free port, with what it printed."""
    command = [sys.executable, "cli.py", "serve", "--db", str(database), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stderr is not None
        try:
            link = urlsplit(next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line))))
            yield Served(str(link.hostname), int(link.port or 0), link.query.removeprefix("token="))
        finally:
            server.kill()
