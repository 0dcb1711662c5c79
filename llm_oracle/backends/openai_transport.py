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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

import httpx2

from llm_oracle.backends.openai_limits import Concurrency, Fault, Limits, Patience, Sleep, Throttle
from llm_oracle.backends.openai_wire import MESSAGE_LENGTH, is_of_one_request, one_line, refusal, usage
from llm_oracle.protocols import PartlyAnswered, Usage

MOST_REPLY_BYTES = 16 * 2**20
SHORTEST_SECRET = 12
"""Characters; shorter keys, such as `EMPTY` for servers that want none, are words that a reply may well hold."""

HIDDEN = "[key]"

_FOR_NOW = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

Answer = TypeVar("Answer")


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
    raised as PartlyAnswered with what had come by then.
    """

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]: ...


class HttpTransport:
    """Answers over HTTP, in order. What is refused or fails for more than one request's sake ends the others.

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
        self._throttle = Throttle(limits, self.concurrency, sleep)
        self._sleep = sleep
        self._loop = asyncio.new_event_loop()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if server.key:
            headers["Authorization"] = f"Bearer {server.key}"
        encrypted = server.base_url.startswith("https:")  # loading certificates for nothing takes a while
        self._client = httpx2.AsyncClient(headers=headers, timeout=self.patience.timeout, verify=encrypted)
        threading.Thread(target=_serve, args=(self._loop, self._client), daemon=True).start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        """One answer or refusal per request. Raises PartlyAnswered where the server refuses all or patience ends."""
        answers = asyncio.run_coroutine_threadsafe(self._all(asks, read), self._loop)
        try:
            return answers.result()
        except BaseException:
            answers.cancel()
            raise

    async def _all(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        tasks: list[asyncio.Task[Answer | Refused]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(self._one(ask, read)) for ask in asks]
        except ExceptionGroup as several:
            failed = several.exceptions[0]
            if isinstance(failed, PartlyAnswered):
                came = (not task.cancelled() and task.exception() is None for task in tasks)
                failed.answers = tuple(task.result() if ok else None for task, ok in zip(tasks, came, strict=True))
            raise failed from None
        return [task.result() for task in tasks]

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
            return Fault(f"HTTP {status} {said}".strip(), status, _retry_after(response.headers.get("retry-after")))
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


def _retry_after(value: str | None) -> float | None:
    """Seconds, from a number or a date; what is neither is not heeded."""
    if value is None:
        return None
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    with suppress(ValueError, TypeError):
        date = parsedate_to_datetime(value)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    return None


def _serve(loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient) -> None:
    """Runs requests until the transport is gone, then closes what it held open."""
    loop.run_forever()
    loop.run_until_complete(client.aclose())
    loop.close()
