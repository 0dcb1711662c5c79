"""Sends requests to an OpenAI-compatible server, many at a time, until each has a usable reply or patience ends.

A reply is untrusted: it may be cut off, endless, no JSON, or quote the key. The key goes into one header and nowhere
else; where a server says it back, it is taken out.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

import httpx2

from llm_oracle.backends.openai_limits import Concurrency, Fault, Limits, Patience, Sleep, Throttle
from llm_oracle.backends.openai_wire import MESSAGE_LENGTH, is_of_one_request, one_line, refusal, usage
from llm_oracle.protocols import PartlyAnswered, Stream, Usage, gathered

AHEAD = 256
"""Requests kept at hand beyond those in flight, so that these are not few while answers are being written."""

MOST_REPLY_BYTES = 16 * 2**20
SHORTEST_SECRET = 12
"""Characters; shorter keys, such as `EMPTY` for servers that want none, are words that a reply may well hold."""

HIDDEN = "[key]"

_FOR_NOW = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

Answer = TypeVar("Answer")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: path under the base URL (under the host, if it begins with /), body, most tokens it can take."""

    path: str
    body: Mapping[str, Any]
    tokens: int = 1

    @property
    def prompt(self) -> str:
        """What the model is shown."""
        messages = self.body.get("messages")
        shown = messages[0]["content"] if messages else self.body.get("prompt", self.body.get("state", ""))
        return str(shown)


Read = Callable[[Any, Ask], Answer]
"""Reads an answer to a request out of a parsed reply; raises Fault for a reply that holds none."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go. `place` names it in messages and in the journal; `remedy` says where its key comes from."""

    base_url: str
    place: str
    key: str = field(default="", repr=False)
    key_name: str = "OPENAI_API_KEY"

    def hidden(self, text: str) -> str:
        """The text without the key."""
        return text.replace(self.key, HIDDEN) if len(self.key) >= SHORTEST_SECRET else text

    def without_key(self, value: Any) -> Any:
        """A JSON tree without the key."""
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, list):
            return [self.without_key(one) for one in value]
        if isinstance(value, dict):
            return {self.hidden(name): self.without_key(one) for name, one in value.items()}
        return value


class Refused(PartlyAnswered):
    """The server does not answer this request, however often it is sent.

    `alone`: what it says against it concerns this request and no other, such as a content filter or the context's
    length. `usage`: what it charges for saying so.
    """

    def __init__(self, message: str, status: int, said: str, alone: bool = False, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.said = said
        self.alone = alone
        self.usage = usage or Usage()

    @property
    def reason(self) -> str:
        """What the journal keeps of it."""
        return self.said or f"HTTP {self.status}"


class Exhausted(PartlyAnswered):
    """Patience has ended. `status` is that of the last fault; None: no reply came."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.status = fault.status


class Transport(Protocol):
    """Carries requests to wherever answers come from.

    A request that is refused for its own sake has its refusal in the answer's place. Whatever else fails for good is
    raised as PartlyAnswered, by `ask` with what had come by then, by `stream` behind it.
    """

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        """One answer or refusal for each request."""

    def stream(self, asks: Iterable[Ask], read: Read[Answer]) -> Stream[Answer | Refused]:
        """The same in groups as they come; requests are taken from `asks` as there is room for them."""


class HttpTransport:
    """Answers over HTTP. What is refused or fails for more than one request's sake ends the others.

    The event loop runs in a thread of its own, so that limits hold from one batch to the next, and callers may have a
    loop of their own.
    """

    def __init__(
        self,
        server: Server,
        limits: Limits | None = None,
        patience: Patience | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.server = server
        self.patience = patience or Patience()
        limits = limits or Limits()
        self.concurrency = Concurrency(limits.max_concurrency)
        self._at_hand = self.concurrency.most + AHEAD
        self._throttle = Throttle(limits, self.concurrency, sleep)
        self._sleep = sleep
        self._loop = asyncio.new_event_loop()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if server.key:
            headers["Authorization"] = f"Bearer {server.key}"
        encrypted = server.base_url.startswith("https:")  # loading certificates for nothing takes a while
        connections = httpx2.Limits(max_connections=None, max_keepalive_connections=self.concurrency.most)
        self._client = httpx2.AsyncClient(
            headers=headers, timeout=self.patience.timeout, verify=encrypted, limits=connections
        )
        threading.Thread(target=_serve, args=(self._loop, self._client), daemon=True).start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        """One answer or refusal per request. Raises PartlyAnswered where the server refuses all or patience ends."""
        return gathered(self.stream(asks, read), len(asks))

    def stream(self, asks: Iterable[Ask], read: Read[Answer]) -> Stream[Answer | Refused]:
        """The same as they come. A stream that is left cancels what it has in flight."""
        over: SimpleQueue[tuple[int, asyncio.Task[Answer | Refused]]] = SimpleQueue()
        tasks: set[asyncio.Task[Answer | Refused]] = set()  # the loop's thread alone touches it

        def start(more: Sequence[tuple[int, Ask]]) -> None:
            for place, ask in more:
                task = self._loop.create_task(self._one(ask, read))
                tasks.add(task)
                task.add_done_callback(partial(finished, place))

        def finished(place: int, task: asyncio.Task[Answer | Refused]) -> None:
            tasks.discard(task)
            if not task.cancelled():
                task.exception()  # looked at, or asyncio complains of one that nobody waits for any more
            over.put((place, task))

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        waiting, open_ = enumerate(asks), 0
        try:
            while True:
                if more := list(islice(waiting, self._at_hand - open_)):
                    self._loop.call_soon_threadsafe(start, more)
                    open_ += len(more)
                if not open_:
                    return
                group = _ready(over)
                open_ -= len(group)
                yield from _outcome(group)
        finally:
            self._loop.call_soon_threadsafe(cancel)

    async def _one(self, ask: Ask, read: Read[Answer]) -> Answer | Refused:
        try:
            async for attempt in self.patience.retrying(self._sleep):
                with attempt:
                    async with self._throttle.slot(ask.tokens):
                        reply = await self._post(ask)
                        return refused_reply(reply, ask, self.server.place) or read(reply, ask)
        except Refused as refused:
            if not refused.alone:
                raise
            return refused
        except Fault as fault:
            raise Exhausted(
                f"{self.server.place} gave no usable reply to {ask.path}: {fault.reason}. "
                "Look at the server, then run the same command: nothing that was answered is lost.",
                fault,
            ) from None
        raise AssertionError("retrying ends by an answer or a fault")

    async def _post(self, ask: Ask) -> Any:
        url = str(httpx2.URL(f"{self.server.base_url}/").join(ask.path))
        try:
            async with (
                asyncio.timeout(self.patience.timeout),
                self._client.stream("POST", url, content=json.dumps(ask.body).encode()) as response,
            ):
                content = await _content(response)
        except TimeoutError:
            raise Fault(f"no reply within {self.patience.timeout:g} seconds", None) from None
        except httpx2.HTTPError as fault:
            raise Fault(f"{type(fault).__name__}: {self._harmless(str(fault)) or 'no connection'}", None) from None
        if response.status_code != 200:
            raise self._fault(response, content)
        return self._parsed(content)

    def _parsed(self, content: bytes) -> Any:
        try:
            return self.server.without_key(json.loads(content))
        except (ValueError, RecursionError):
            raise Fault("a reply that is no JSON" if content.strip() else "an empty reply") from None

    def _fault(self, response: httpx2.Response, content: bytes) -> Exception:
        status = response.status_code
        said, codes = _told(self.server.hidden(content.decode("utf-8", "replace")))
        said = self._harmless(said)
        if (status in _FOR_NOW | {429} and not codes & _SPENT) or (status >= 500 and status not in _NEVER):
            pause = _retry_after(response.headers.get("retry-after"), response.headers.get("date"))
            return Fault(f"HTTP {status} {said}".strip(), status, pause)
        reason = f"{self.server.place} refused ({status}): {said or 'no reason'}."
        return Refused(f"{reason} {self._remedy(status)}", status, said, is_of_one_request(status, codes, said))

    def _remedy(self, status: int) -> str:
        if status in (401, 403):
            return f"Set {self.server.key_name} to a key that this server accepts."
        if status in (402, 429):
            return "The account has run out of money or quota."
        if 300 <= status < 400:
            return "The server has moved: give its new base URL."
        if status == 404:
            return "Look at the model's name and at the base URL, which mostly ends in /v1."
        return "The request is one that this model does not take."

    def _harmless(self, text: str) -> str:
        """The text in one line of bounded length, without the key."""
        return one_line(self.server.hidden(text))


def _ready(over: SimpleQueue[Item]) -> list[Item]:
    """What is in the queue now, at least one."""
    group = [over.get()]
    with suppress(Empty):
        while True:
            group.append(over.get_nowait())
    return group


def _outcome(group: Sequence[tuple[int, asyncio.Task[Answer]]]) -> Stream[Answer]:
    """The answers of tasks that are over; then raises what made one of them fail."""
    faults = {place: task.exception() for place, task in group}
    if answers := [(place, task.result()) for place, task in group if faults[place] is None]:
        yield answers
    for fault in faults.values():
        if fault is not None:
            raise fault


def refused_reply(reply: Any, ask: Ask, place: str) -> Refused | None:
    """The refusal that a reply holds in an answer's place; None: it holds none."""
    said = refusal(reply)
    if not said:
        return None
    return Refused(f"{place} refused: {said}.", 200, said, alone=True, usage=usage(reply, ask.prompt, ()))


def refused_result(status: Any, body: Any, place: str) -> Refused | None:
    """The refusal for one request's sake that a status and an error's body tell; None: they tell of no such."""
    said, codes = _told(json.dumps(body))
    said = one_line(said)
    if not isinstance(status, int) or not is_of_one_request(status, codes, said):
        return None
    return Refused(f"{place} refused ({status}): {said}.", status, said, alone=True)


async def _content(response: httpx2.Response) -> bytes:
    """The body, as far as anybody would want to read it."""
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > MOST_REPLY_BYTES:
            raise Fault(f"a reply of more than {MOST_REPLY_BYTES // 2**20} MiB")
    return bytes(content)


def _told(content: str) -> tuple[str, frozenset[str]]:
    """The message and the codes of an error's body, in the shapes that servers use; its beginning if it has none."""
    with suppress(ValueError, RecursionError):
        body = json.loads(content)
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, dict):
            message = error.get("message") or error.get("detail") or ""
            codes = frozenset(str(error[name]) for name in ("code", "type") if error.get(name))
            return (message if isinstance(message, str) else json.dumps(message)), codes
        if isinstance(error, str):
            return error, frozenset()
    return content[: 4 * MESSAGE_LENGTH], frozenset()


def _retry_after(value: str | None, now: str | None) -> float | None:
    """Seconds, from a number or a date, which counts from the server's own (`now`) where it tells it: clocks differ.

    What is neither is not heeded.
    """
    if value is None:
        return None
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    date = _date(value)
    return None if date is None else max(0.0, (date - (_date(now) or datetime.now(UTC))).total_seconds())


def _date(value: str | None) -> datetime | None:
    """A date as HTTP writes it; None: it is none."""
    with suppress(ValueError, TypeError):
        date = parsedate_to_datetime(value or "")
        return date.replace(tzinfo=date.tzinfo or UTC)
    return None


def _serve(loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient) -> None:
    """Runs requests until the transport is gone, then closes what it held open."""
    loop.run_forever()
    loop.run_until_complete(client.aclose())
    loop.close()
