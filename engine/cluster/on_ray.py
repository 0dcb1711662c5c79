"""A cluster on Ray: workers are actors, walks are tasks. Ray restarts both when they die.

Actors are not detached, so they end with the process that started them, however it ends.
"""

from __future__ import annotations

import logging
import os
import socket
import sysconfig
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Ray reads these when it is imported: it reports usage to nobody, and its own log stays in its files.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")

import ray
from ray.exceptions import RayError, RayTaskError
from ray.job_config import JobConfig

from hapax.engine.cluster.owner import Allowance, Opening, Owner, OwnerReply, Post
from hapax.engine.cluster.routing import Owners
from hapax.engine.cluster.running import Ahead, walk
from hapax.engine.inference.isolation import IMPORT_ROOT
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.llm_oracle.egress import permit
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models

RESTARTS = 100
"""Restarts of a worker before its search fails."""

ASKED_AT_ONCE = 16
"""Calls that a worker answers side by side, so that those of the search do not wait behind those of walks."""

WALK_RETRIES = 3
"""Retries of a walk whose process dies; after that the search does its rules itself."""

OBJECT_STORE_BYTES = 200_000_000
"""Object store of a cluster that is started for one search: batches of answers and the rules pass through it."""

KNOCK_SECONDS = 5.0

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster. `address`: as for `ray.init`; `local` starts a cluster on this machine for this search alone.

    `worker_count`: None: one per processor of the cluster. `gpus`: reserved by each worker.
    """

    address: str = LOCAL
    worker_count: int | None = None
    gpus: float = 0.0

    @contextmanager
    def workers(self, opening: Opening, folder: Path) -> Iterator[Owners]:
        """The workers. Raises HapaxError if there is no cluster, or if it has too few GPUs."""
        _connect(self.address, self.worker_count)
        try:
            count = self._count()
            options = {
                "num_cpus": 0,  # processors are reserved by walks; workers mostly wait for models
                "num_gpus": self.gpus,
                "max_restarts": RESTARTS,
                "max_task_retries": RESTARTS,
            }
            spread = {"scheduling_strategy": "SPREAD", "concurrency_groups": {"asked": ASKED_AT_ONCE}}
            actor: Any = ray.remote(**options, **spread)(OwnerActor)
            # Part of the shards' names: those of other runs may be in the same folders.
            run = uuid.uuid4().hex
            kept = RayOpening(ray.put(opening))
            yield RayOwners([actor.remote(Post(number, count, folder, run), kept) for number in range(count)])
        finally:
            ray.shutdown()

    def walkers(self, ahead: Ahead) -> RayWalkers:
        return RayWalkers(ray.put(ahead), self._count())

    def _count(self) -> int:
        resources = ray.cluster_resources()
        count = self.worker_count or max(1, int(resources.get("CPU", 1)))
        gpus = resources.get("GPU", 0)
        if count * self.gpus > gpus:
            raise HapaxError(
                f"{count} workers with {self.gpus:g} GPUs each need more than the cluster's {gpus:g} GPUs.",
                Remedy("Reduce {} or {}.", Setting("workers"), Setting("worker_gpus")),
            )
        return count


class OwnerActor(Owner):
    """A worker: the methods that ask models share a pool of threads, all others have one thread."""

    @ray.method(concurrency_group="asked")  # type: ignore[untyped-decorator]  # Ray is not read by mypy
    def ask(self, allowance: Allowance | None, role: str, asked: Sequence[Any], *parameters: Any) -> OwnerReply:
        return super().ask(allowance, role, asked, *parameters)

    @ray.method(concurrency_group="asked")  # type: ignore[untyped-decorator]
    def identities(self) -> OwnerReply:
        return super().identities()


@dataclass(frozen=True, slots=True)
class RayOpening:
    """An opening in Ray's object store, referenced by the search as long as it runs: a restarted actor needs it.

    Ray frees large arguments of actors after their first start (its issue 53727).
    """

    reference: Any

    def open(self, journal: Journal, sharers: int) -> Models:
        """As `Opening.open`."""
        opening: Opening = ray.get(self.reference)
        return opening.open(journal, sharers)


@dataclass(frozen=True, slots=True)
class RayPending:
    """Result of a call to an actor, or of a task, once it is done."""

    reference: Any

    def done(self) -> bool:
        return bool(ray.wait([self.reference], timeout=0)[0])

    def result(self) -> Any:
        """Wait for the result. Raises HapaxError if its process is gone for good."""
        try:
            return ray.get(self.reference)
        except RayTaskError:
            raise  # a defect; it has the traceback of its process
        except RayError as fault:
            reason = str(fault).strip().partition("\n")[0]
            raise HapaxError(
                f"A process of the cluster is gone for good: {reason}.",
                Remedy("Check the cluster, then run the same {} again: no answer is lost.", CALL),
            ) from None

    def cancel(self) -> None:
        """Kill its process."""
        ray.cancel(self.reference, force=True)


@dataclass(frozen=True, slots=True)
class RayOwners:
    """Actors by number. Tasks receive it unchanged."""

    actors: Sequence[Any]

    @property
    def count(self) -> int:
        return len(self.actors)

    def begin(self, number: int, method: str, *arguments: Any) -> RayPending:
        return RayPending(getattr(self.actors[number], method).remote(*arguments))


@dataclass(frozen=True, slots=True)
class RayWalkers:
    """Tasks, one processor each. `ahead`: reference to their common data."""

    ahead: Any
    count: int

    def begin(self, names: Sequence[str]) -> RayPending:
        task: Any = ray.remote(num_cpus=1, max_retries=WALK_RETRIES, scheduling_strategy="SPREAD")(walk)
        return RayPending(task.remote(self.ahead, list(names)))


class IsolatedJob(JobConfig):  # type: ignore[misc]  # Ray is not read by mypy
    """Job whose workers import nothing from the working folder, but `hapax` from where this process has it."""

    def __init__(self) -> None:
        # Ray puts these folders before Python's own, so site-packages, where its workers look anyway, stays behind.
        is_installed = Path(sysconfig.get_path("purelib")).resolve() == IMPORT_ROOT
        super().__init__(_py_driver_sys_path=[] if is_installed else [str(IMPORT_ROOT)])

    def _runtime_env_has_working_dir(self) -> bool:
        """Without a working folder of its own, Ray would put this process's folder first on the path of each worker."""
        return True


def _connect(address: str, worker_count: int | None) -> None:
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address.startswith("ray://"):  # there the driver runs on the cluster and does not know this folder
        settings["job_config"] = IsolatedJob()
    if address == LOCAL:
        with _without_log_level():
            ray.init(
                address=LOCAL,
                num_cpus=worker_count,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                **settings,
            )
        return
    try:
        _knock(address)
        with _without_log_level():
            ray.init(address=address, **settings)
    except (OSError, RayError, ValueError, ImportError) as fault:
        reason = str(fault).strip().partition("\n")[0].rstrip(".")
        raise HapaxError(
            f"No Ray cluster at {address!r}: {reason}.",
            Remedy("Start one with `ray start --head`, or use {} local.", Setting("ray_address")),
        ) from None


@contextmanager
def _without_log_level() -> Iterator[None]:
    """Remove from stderr the line in which Ray's native part states its log level."""
    # The line comes from C++, so the file descriptor itself has to be replaced, not sys.stderr.
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as buffer:
        os.dup2(buffer.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            buffer.seek(0)
            for line in buffer:
                if b"RAY_BACKEND_LOG_LEVEL" not in line:
                    os.write(2, line)


def _knock(address: str) -> None:
    """Raises OSError if nothing listens at HOST:PORT, which Ray itself notices only after minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        permit(host)
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
