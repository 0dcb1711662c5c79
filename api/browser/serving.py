"""The HTTP server of `hapax serve`, with a guard that refuses whoever lacks the token, and all other sites."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
from dataclasses import dataclass, field
from html import escape
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from hapax.api.browser.app import Browser, browser_app
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.remedies import Operation, Remedy, Setting, worded_for

# Nothing comes from elsewhere, no script or style stands in a page, and no page in a frame of another site.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: browsers would then send a form with the origin `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""
LOGIN = "Open the address with the token that <code>hapax serve</code> printed when it started."
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]+)?")
_READING = ("GET", "HEAD")


def is_this_machine(name: str) -> bool:
    """True for `localhost` and the addresses that only this machine can reach: nobody can lead them elsewhere."""
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """The token of a server, and the port that tells its cookie from those of other servers on the machine.

    `is_local`: it answers to names of this machine only, so that no web site can give it one of its own.
    """

    port: int
    is_local: bool = True
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """The name of the cookie that brings the token; browsers send cookies to all ports of a machine."""
        return f"hapax-{self.port}"

    def admits(self, token: str) -> bool:
        """True for the token, compared in constant time, so that it cannot be guessed letter by letter."""
        # As bytes, since texts must be ASCII for this.
        return secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


class Guard:
    """The application behind the guard: other requests are refused before anything is read or computed."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the headers of every answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """The refusal or login of a request; None for one that the application answers."""
        access, headers = self._access, request.headers
        host = headers.get("host", "")
        if access.is_local and not _leads_here(host):
            return _short_page(400, f"This server has another name. {LOGIN}")
        token = request.query_params.get("token")
        logs_in = token is not None and access.admits(token) and request.method in _READING
        # Another port of this machine is another site, too, and browsers say `same-site` of it.
        comes_from_elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if comes_from_elsewhere and not (logs_in and headers.get("sec-fetch-dest") == "document"):
            return _short_page(403, f"Another site has sent this request. {LOGIN}")
        if logs_in:
            return self._login(request, comes_from_elsewhere)
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        brought = sent if scheme.lower() == "bearer" else request.cookies.get(access.cookie, "")
        # A wrong token in the address is that of an earlier server: the printed address is the remedy.
        if token is not None or not access.admits(brought):
            return _short_page(401, f"This server answers nobody without its token. {LOGIN}")
        if request.method not in _READING and headers.get("origin") not in (f"http://{host}", f"https://{host}"):
            fault = "has another Origin than" if "origin" in headers else "lacks the header Origin of"
            remedy = f"A program sends <code>Origin: http://{escape(host)}</code>."
            return _short_page(403, f"This request {fault} a page of this server. Send it from that page. {remedy}")
        return None

    def _login(self, request: Request, comes_from_elsewhere: bool) -> Response:
        """The same page without the token, which the browser keeps as a cookie and never shows to a script."""
        others = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        # Two slashes at the beginning would lead to another machine.
        place = "/" + request.scope["raw_path"].decode("latin-1").lstrip("/\\")
        place += f"?{urlencode(others)}" if others else ""
        response: Response = RedirectResponse(place, 303)
        if comes_from_elsewhere:
            # A browser sends no strict cookie while it is redirected from another site: the page goes on by itself.
            response = _short_page(200, f'<a href="{escape(place)}">Go on.</a>')
            response.headers["Refresh"] = f"0; url={place}"
        access = self._access
        response.set_cookie(access.cookie, access.token, httponly=True, samesite="strict")
        return response


def _leads_here(host: str) -> bool:
    """True if the header `Host` names this machine, with any port or none."""
    found = _HOST.fullmatch(host)
    return found is not None and is_this_machine(found[1].removeprefix("[").removesuffix("]"))


def _short_page(status: int, sentence: str) -> Response:
    """A page without links or scripts, for those who may see no other."""
    text = f'<!DOCTYPE html><html lang="en"><title>Hapax</title><main role="alert">{sentence}</main></html>\n'
    return HTMLResponse(text, status, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


HEAD_SECONDS = 20.0
"""Seconds after which a connection is closed whose next request has not begun."""


SERVER_OPTIONS = {"models": "--ask", "judge": "--judge"}
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
    config = Config(
        Guard(browser_app(browser), access),
        http=_PromptProtocol,
        log_level="warning",
        server_header=False,
        access_log=False,
    )
    return BrowserServer(Server(config), listening, host, access.token)
