"""A cluster on Ray: workers are actors, walks are tasks. Ray starts both again where they die.

Actors are not detached, so they end with the process that began them, however it ends.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Ray reads these when it is imported: nothing is reported to anybody, and what it logs of itself stays in its files.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")

import ray
from ray.exceptions import RayError, RayTaskError

from engine.cluster.owner import Opening, Owner, Post, Reply
from engine.cluster.routing import Owners
from engine.cluster.walking import Ahead, walk
from grammar.errors import HapaxError
from llm_oracle.calls import Journal
from llm_oracle.protocols import Models

RESTARTS = 100
"""Of a worker, before its search gives up."""

ASKED_AT_ONCE = 16
"""Calls to a worker that it answers side by side: those of the search do not wait behind those of walks."""

WALK_RETRIES = 3
"""A walk that dies more often is left to the search."""

OBJECT_STORE_BYTES = 200_000_000
"""Of a cluster that is started for one search: batches of answers pass through it, and the rules."""

KNOCK_SECONDS = 5.0

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class RayCluster:
    """`address`: as `ray.init` takes it; `local` starts a cluster on this machine for this search alone.

    `worker_count`: None: one for each processor of the cluster. `gpus`: what each worker reserves.
    """

    address: str = LOCAL
    worker_count: int | None = None
    gpus: float = 0.0

    @contextmanager
    def workers(self, opening: Opening, folder: Path) -> Iterator[Owners]:
        """The workers. Raises HapaxError where there is no cluster, or too small a one."""
        _connect(self.address, self.worker_count)
        try:
            count = self._count()
            options = {
                "num_cpus": 0,
                "num_gpus": self.gpus,
                "max_restarts": RESTARTS,
                "max_task_retries": RESTARTS,
            }
            spread = {"scheduling_strategy": "SPREAD", "concurrency_groups": {"asked": ASKED_AT_ONCE}}
            actor: Any = ray.remote(**options, **spread)(OwnerActor)
            run = uuid.uuid4().hex
            kept = RayOpening(ray.put(opening))
            yield RayOwners([actor.remote(Post(number, count, folder, run), kept) for number in range(count)])
        finally:
            ray.shutdown()

    def walkers(self, ahead: Ahead) -> RayWalkers:
        return RayWalkers(ray.put(ahead), self._count())

    def _count(self) -> int:
        there = ray.cluster_resources()
        count = self.worker_count or max(1, int(there.get("CPU", 1)))
        if count * self.gpus > there.get("GPU", 0):
            raise HapaxError(
                f"{count} workers with {self.gpus:g} GPUs each are more than the cluster's {there.get('GPU', 0):g}. "
                "Give fewer --workers or --worker-gpus."
            )
        return count


class OwnerActor(Owner):
    """A worker: what asks models has threads of its own, all else one other."""

    @ray.method(concurrency_group="asked")  # type: ignore[untyped-decorator]  # Ray is not read by mypy
    def ask(self, role: str, asked: Sequence[Any], *parameters: Any) -> Reply:
        return super().ask(role, asked, *parameters)

    @ray.method(concurrency_group="asked")  # type: ignore[untyped-decorator]
    def identities(self) -> Reply:
        return super().identities()


@dataclass(frozen=True, slots=True)
class RayOpening:
    """An opening that the search keeps in Ray as long as it lasts: an actor that is started again must find it.

    Ray keeps large arguments of actors no longer than their first start (its issue 53727)."""

    reference: Any

    def open(self, journal: Journal, sharers: int) -> Models:
        """As `Opening.open`."""
        opening: Opening = ray.get(self.reference)
        return opening.open(journal, sharers)


@dataclass(frozen=True, slots=True)
class RayPending:
    """What will come of a call to an actor, or of a task."""

    reference: Any

    def done(self) -> bool:
        return bool(ray.wait([self.reference], timeout=0)[0])

    def result(self) -> Any:
        """Waits for it. Raises HapaxError where its process is gone for good."""
        try:
            return ray.get(self.reference)
        except RayTaskError:
            raise  # a defect, with the traceback of the process that it is in
        except RayError as fault:
            told = str(fault).strip().partition("\n")[0]
            raise HapaxError(
                f"A process of the cluster is gone for good: {told}. Look at the cluster, then run the same command "
                "again: nothing that was answered is lost."
            ) from None

    def cancel(self) -> None:
        """End it where it is."""
        ray.cancel(self.reference, force=True)


@dataclass(frozen=True, slots=True)
class RayOwners:
    """Actors by number; goes to tasks as it is."""

    actors: Sequence[Any]

    @property
    def count(self) -> int:
        return len(self.actors)

    def begin(self, number: int, method: str, *arguments: Any) -> RayPending:
        return RayPending(getattr(self.actors[number], method).remote(*arguments))


@dataclass(frozen=True, slots=True)
class RayWalkers:
    """Tasks, one processor each; `ahead`: where Ray keeps what they have in common."""

    ahead: Any
    count: int

    def begin(self, names: Sequence[str]) -> RayPending:
        task: Any = ray.remote(num_cpus=1, max_retries=WALK_RETRIES, scheduling_strategy="SPREAD")(walk)
        return RayPending(task.remote(self.ahead, list(names)))


def _connect(address: str, worker_count: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        with _without_log_level():
            ray.init(
                address=LOCAL,
                num_cpus=worker_count,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                **quiet,
            )
        return
    try:
        _knock(address)
        with _without_log_level():
            ray.init(address=address, **quiet)
    except (OSError, RayError, ValueError, ImportError) as fault:
        told = str(fault).strip().partition("\n")[0].rstrip(".")
        raise HapaxError(
            f"No Ray cluster at {address!r}: {told}. Start one by `ray start --head`, or give --ray-address local."
        ) from None


@contextmanager
def _without_log_level() -> Iterator[None]:
    """Within it stderr is held back, and lacks the line by which Ray's native part says what level it logs at."""
    shown = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(shown, 2)
            os.close(shown)
            held.seek(0)
            for line in held:
                if b"RAY_BACKEND_LOG_LEVEL" not in line:
                    os.write(2, line)


def _knock(address: str) -> None:
    """Raises OSError where nobody listens at HOST:PORT, which Ray itself finds out after minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
