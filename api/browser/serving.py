"""The HTTP server of `hapax serve`."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from hapax.api.browser.app import Browser, browser_app
from hapax.api.browser.guard import Access, is_this_machine
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.remedies import Operation, Remedy, Setting, worded_for

HEAD_SECONDS = 20.0
"""Seconds after which a connection is closed whose next request has not begun."""


SERVER_OPTIONS = {"models": "--ask", "control": "--control", "judge": "--judge", "schemas": "--schemas"}
"""Options of `hapax serve` that allow what the server refuses by itself."""


class PageWording:
    """The words of the pages for what messages name: a visitor of the browser can type no setting or operation."""

    call = "request"

    def setting(self, setting: Setting) -> str:
        return SERVER_OPTIONS.get(setting.name) or f"the setting “{_words(setting.name.rpartition('.')[2])}”"

    def operation(self, operation: Operation) -> str:
        return f"“{_words(operation.name)}” of Hapax"


def _words(name: str) -> str:
    return name.replace("_", " ")


class _PromptProtocol(H11Protocol):
    """HTTP over connections that do not stay half open: uvicorn itself waits for the head of a request for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        before = self.cycle

        def close_if_waiting() -> None:
            if self.cycle is before and (before is None or before.response_complete):
                self.transport.close()

        self.loop.call_later(HEAD_SECONDS, close_if_waiting)


@dataclass(frozen=True)
class BrowserServer:
    """A server at an address where nobody else listens yet."""

    server: Server
    socket: socket.socket
    host: str
    token: str

    @property
    def address(self) -> str:
        """The address of the front page, without the last slash."""
        # In a URL an IPv6 address stands in brackets.
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.socket.getsockname()[1]}"

    @property
    def link(self) -> str:
        """The address that logs a browser in: it keeps the token as a cookie and shows the front page."""
        return f"{self.address}/?token={self.token}"

    def run(self) -> None:
        """Serve until interrupted."""
        # The socket is bound already, so that the address could be printed, even for port 0.
        with worded_for(PageWording()):
            self.server.run([self.socket])


def browser_server(browser: Browser, host: str = "127.0.0.1", port: int = 8001) -> BrowserServer:
    """A server for the pages of a knowledge base, which it has begun to listen for.

    Whoever asks needs the token of this server, a new one at each start. Raises HapaxError for an address that is
    taken, and without the whole extra `serve`.
    """
    if missing := missing_of("serve"):
        raise HapaxError(missing)
    # Of addresses only those of IPv6 have colons.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    # Else the port of a server that has just ended would be refused for a minute or so (TIME_WAIT).
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # Before the address is printed: who opens it at once waits until the server answers.
        listening.listen(128)
    except OSError as fault:
        listening.close()
        reason = fault.strerror or str(fault)
        raise HapaxError(
            f"hapax cannot listen on {host}:{port}: {reason}.", Remedy("Choose another {}.", Setting("port"))
        ) from None
    # Where other machines can ask, any name may lead here.
    access = Access(listening.getsockname()[1], is_this_machine(host))
    app = browser_app(browser, access)
    config = Config(app, http=_PromptProtocol, log_level="warning", server_header=False, access_log=False)
    return BrowserServer(Server(config), listening, host, access.token)
