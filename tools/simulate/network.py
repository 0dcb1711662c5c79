"""A simulated server for language models and the network to it, in the place of httpx2's transport."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from dataclasses import dataclass, field
from typing import Any

import httpx2

from benchmarks.server import ExclusionReader, reply_to
from tools.simulate.disk import Disk

URL = "http://127.0.0.1:9/v1"

FAULTS = (
    "busy",
    "down",
    "refused connection",
    "lost request",
    "lost reply",
    "late reply",
    "double request",
    "unusable",
)
"""`late reply`: after the client has given up. `double request`: a proxy sends it twice; the second reply is lost."""

LATE_SECONDS = 200.0
"""More than the client waits for one attempt."""


@dataclass(slots=True)
class ServedRequest:
    """A request that reached the server: body, status, and the tokens that it charged."""

    body: str
    status: int
    tokens: int
    is_extra: bool
    """True if the same request had to come again, or came twice, by no fault of the client."""


@dataclass
class SimulatedModelServer:
    """A server that keeps its own account. `fault_share`: of requests; `knows_keys`: it charges a key once."""

    model: ExclusionReader
    fault_share: float = 0.0
    knows_keys: bool = False
    served: list[ServedRequest] = field(default_factory=list)
    repeated: int = 0
    """Requests that got the stored answer of an earlier one with the same key."""
    faults: dict[str, int] = field(default_factory=dict)
    stream: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311  no secret
    _by_key: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    @property
    def charged(self) -> list[ServedRequest]:
        return [request for request in self.served if request.status == 200]

    async def answer(self, disk: Disk, request: httpx2.Request) -> httpx2.Response:
        """The reply to a request of a simulated process, or what the network makes of it."""
        fault = self.stream.choice(FAULTS) if self.stream.random() < self.fault_share else ""
        self.faults[fault] = self.faults.get(fault, 0) + bool(fault)
        if fault == "refused connection":
            raise httpx2.ConnectError("refused", request=request)
        arrived: list[tuple[int, bytes]] = []
        is_extra = fault in ("lost reply", "late reply", "unusable")
        if fault == "lost request":
            disk.cross("send", lambda: None)
            raise httpx2.ReadError("reset", request=request)
        disk.cross("send", lambda: arrived.append(self._serve(request, fault, is_extra)))
        if fault == "double request":
            self._serve(request, fault, True)
        await asyncio.sleep(LATE_SECONDS if fault == "late reply" else self.stream.uniform(0.01, 2.0))
        if fault == "lost reply":
            raise httpx2.ReadError("reset", request=request)
        disk.cross("reply", lambda: None)
        status, content = arrived[0]
        return httpx2.Response(status, headers={"Retry-After": "1"}, content=content, request=request)

    def _serve(self, request: httpx2.Request, fault: str, is_extra: bool) -> tuple[int, bytes]:
        content, key = request.content, request.headers.get("Idempotency-Key", "")
        if self.knows_keys and key in self._by_key and fault != "unusable":
            self.repeated += 1
            return self._by_key[key]
        refusals: dict[str, tuple[int, Any]] = {"busy": (429, {"error": "busy"}), "down": (503, {"error": "down"})}
        status, reply = refusals.get(fault, (200, None))
        if status == 200:
            reply = reply_to(self.model, request.url.path, json.loads(content))
            status, reply = (404, {"error": "no such page"}) if reply is None else (200, self._worded(reply, fault))
        tokens = sum(reply["usage"].values()) if status == 200 else 0
        body = hashlib.sha256(request.url.path.encode() + content).hexdigest()
        self.served.append(ServedRequest(body, status, tokens, is_extra))
        answer = status, json.dumps(reply).encode()
        if status == 200 and fault != "unusable":
            self._by_key[key] = answer
        return answer

    def _worded(self, reply: Any, fault: str) -> Any:
        for choice in reply["choices"]:
            if fault == "unusable":
                choice["message"] = {"content": 7}
                choice.pop("text", None)
        return reply


def install(provider: SimulatedModelServer | None, disk: Disk) -> None:
    """Let every client send to this server."""

    async def handle(_: Any, request: httpx2.Request) -> httpx2.Response:
        if provider is None:
            raise httpx2.ConnectError("no server", request=request)
        return await provider.answer(disk, request)

    httpx2.AsyncHTTPTransport.handle_async_request = handle  # type: ignore[method-assign, assignment]
