"""A knowledge base in a web browser: the application and a server for it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named, missing_of
from hapax.grammar.remedies import Remedy, Setting, worded_for
from hapax.kb.store import KnowledgeBase

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from hapax.api.agent_tools import AskingModels


@dataclass(frozen=True)
class BrowserServer:
    """An application at an address where nobody else listens yet."""

    app: ASGIApp
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
        from hapax.api.browser.serving import http_server
        from hapax.api.browser.wording import Pages

        # The socket is bound already, so that the address could be printed, even for port 0.
        with worded_for(Pages()):
            http_server(self.app).run([self.socket])


@dataclass(frozen=True)
class Allowed:
    """Everything beyond looking that people may do in the browser; by default nothing.

    `judging`: store votes. `control`: pause and end running searches. `asking`: ask these models, within their budget.
    `schemas`: a file of Winograd schemas, which can then be judged, too.
    """

    judging: bool = False
    control: bool = False
    asking: AskingModels | None = None
    schemas: Path | None = None


@extras_named()
def browser_server(
    database: str | Path,
    rules: Sequence[str | Path] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8001,
    allowed: Allowed | None = None,
) -> BrowserServer:
    """A server for the pages of a knowledge base, which it has begun to listen for.

    `rules` as `Browser` has them. Whoever asks needs the token of this server, a new one at each start. Raises
    HapaxError for a knowledge base that cannot be opened, an address that is taken, and without the extra `serve`.
    """
    if missing := missing_of("serve"):
        raise HapaxError(missing)
    from hapax.api.agent_tools import AgentTools
    from hapax.api.browser.app import Browser, browser_app
    from hapax.api.browser.guard import Access, is_this_machine
    from hapax.evaluation.winograd.people import schema_items

    allowed = allowed or Allowed()
    schemas = {} if allowed.schemas is None else schema_items(allowed.schemas)
    # A file that cannot be opened is refused now, and not on the first page.
    KnowledgeBase(database, read_only=True).close()
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
    tools = None if allowed.asking is None else AgentTools(database, rules, asking=allowed.asking)
    browser = Browser(Path(database), tuple(rules), allowed.judging, allowed.control, tools, schemas)
    # Where other machines can ask, any name may lead here.
    access = Access(listening.getsockname()[1], is_this_machine(host))
    return BrowserServer(browser_app(browser, access), listening, host, access.token)
