"""The HTTP server of `hapax serve`."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0
"""Seconds after which a connection is closed whose next request has not begun."""


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


def http_server(app: ASGIApp) -> Server:
    """A server for an application, to be run with a socket."""
    return Server(Config(app, http=_PromptProtocol, log_level="warning", server_header=False, access_log=False))
