"""A simulated machine: processes of Hapax on one disk and clock, and what they left."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2

from benchmarks.server import ExclusionReader, reply_to
from hapax.kb.files import system
from hapax.kb.files.unfinished import PREFIX, journal_folder
from tools.simulate import scheduling, vfs
from tools.simulate.disk import Disk, DiskFault
from tools.simulate.scheduling import Killed, Scheduler, SimulatedProcess

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


Work = Callable[[], object]

_LAYER: list[vfs.Layer] = []
"""SQLite's layer, which is registered once."""


class SimulatedFileLock:
    """A lock of the simulated system: processes wait for it on the simulated clock, and lose it when they end."""

    owners: dict[str, tuple[SimulatedProcess | None, int]] = {}  # noqa: RUF012  the locks of the machine

    def __init__(self, machine: Machine, path: Path) -> None:
        self.lock_file = str(path)
        self._machine = machine

    def acquire(self, timeout: float | None = None) -> None:
        """Take the lock, which nests in one process."""
        disk, scheduler = self._machine.disk, self._machine.scheduler
        path = Path(self.lock_file)
        if scheduler is None or scheduler.me is None:
            return
        disk.cross("lock", path.touch)

        def is_free() -> bool:
            owner, depth = self.owners.get(self.lock_file, (None, 0))
            return not depth or owner is process or (owner is not None and owner.is_dead)

        process = scheduler.me.process
        if not scheduler.wait(timeout, is_free):
            raise system.LockTimeout(self.lock_file)
        owner, depth = self.owners.get(self.lock_file, (None, 0))
        self.owners[self.lock_file] = (process, depth + 1 if owner is process else 1)

    @property
    def lock_counter(self) -> int:
        """Number of times that this process holds the lock."""
        return self.owners.get(self.lock_file, (None, 0))[1]

    def release(self) -> None:
        scheduler = self._machine.scheduler
        if scheduler is None or scheduler.me is None:
            return
        owner, depth = self.owners.get(self.lock_file, (None, 0))
        if owner is scheduler.me.process:
            self.owners[self.lock_file] = (owner, depth - 1)
            scheduler.wake()


def _renumber(folder: Path) -> None:
    """Enter the inodes into the journal that hidden folders got when `Disk.cut` made them again."""
    journal = journal_folder()
    for path in folder.glob(f"{PREFIX}*"):
        record = journal / path.name if journal else None
        if record is not None and record.exists():
            content = json.loads(record.read_text("ascii"))
            content["identity"] = path.stat().st_ino, path.stat().st_uid
            record.write_text(json.dumps(content), "ascii")


class Machine:
    """Runs processes in a folder. The counts of faults and crossings add up over its runs."""

    def __init__(self, folder: Path, seed: int, provider: SimulatedModelServer | None = None) -> None:
        self.folder, self.seed = folder, seed
        folder.mkdir(parents=True)
        self.disk = Disk(folder, seed)
        self.scheduler: Scheduler | None = None
        self.provider = provider
        self.crossings: Counter[str] = Counter()
        self.clock = 0.0
        """Seconds on the simulated clock, of all runs."""
        self._runs = 0

    def run(self, works: Sequence[Work], faults: Sequence[DiskFault] = (), switching: float = 0.1) -> list[Any]:
        """Run one process for each function; returns the processes. A power cut has then changed the folder."""
        self._runs += 1
        processes = [SimulatedProcess(1000 * self._runs + number, work) for number, work in enumerate(works)]
        self.scheduler = Scheduler(self.seed * 100 + self._runs, switching)
        self.disk.restart(self.scheduler, list(faults))
        SimulatedFileLock.owners.clear()
        random.seed(self.seed)  # pauses between attempts are random
        if not _LAYER:
            _LAYER.append(vfs.Layer())
        replaced = self._replaced()
        real = {name: getattr(system, name) for name in replaced}
        install(self.provider, self.disk)
        scheduling.use(self.scheduler)
        _LAYER[0].watcher = self.disk
        for name, function in replaced.items():
            setattr(system, name, function)
        gc.disable()  # when it runs depends on all seeds before
        try:
            self.scheduler.run(processes)
        finally:
            for process in processes:
                if process.fault is not None:
                    traceback.clear_frames(process.fault.__traceback__)
            gc.collect()  # connections of killed processes are closed while their writes still fail
            gc.enable()
            for name, function in real.items():
                setattr(system, name, function)
            _LAYER[0].watcher = None
            scheduling.use(None)
            self.clock += self.scheduler.clock
            self.disk.scheduler = self.scheduler = None
            self.crossings += self.disk.crossings
        if self.disk.is_cut:
            self.disk.cut()
            _renumber(self.folder)
        return processes

    def _replaced(self) -> dict[str, Any]:
        disk, scheduler = self.disk, self.scheduler
        if scheduler is None:
            raise RuntimeError("no run is under way")

        def sleep(seconds: float) -> None:
            if scheduler.me is not None:
                scheduler.wait(seconds, lambda: False)

        def process_id() -> int:
            return scheduler.me.process.number if scheduler.me else 0

        def monotonic() -> float:
            if scheduler.me is not None and scheduler.me.process.is_dead:
                raise Killed  # or it would wait for ever for what the living do
            return scheduler.clock

        return {
            "now": lambda: datetime.fromtimestamp(1_700_000_000 + scheduler.clock, UTC),
            # Not `monotonic` itself: some defaults of parameters refer to that function.
            "time": SimpleNamespace(monotonic=monotonic, sleep=sleep),
            "process_id": process_id,
            "file_lock": lambda path: SimulatedFileLock(self, path),
            "write": disk.write_file,
            "sync": disk.sync_file,
            "sync_folder": disk.sync_folder,
            "rename": disk.rename,
            "remove": disk.remove,
            "remove_folder": disk.remove_folder,
        }
