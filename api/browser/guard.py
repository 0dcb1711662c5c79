"""The guard before all pages of `hapax serve`: whoever asks has the token of this server, and no other site asks."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from html import escape
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
