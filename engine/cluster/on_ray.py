"""A cluster on Ray: workers are actors, which Ray restarts when they die.

Actors are not detached, so they end with the process that started them, however it ends.
"""

from __future__ import annotations

import logging
import os
import socket
import sysconfig
from collections.abc import Callable, Iterator, Sequence
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
from ray.util import ActorPool

from hapax.engine.cluster.spreading import ModelWorker, Opening
from hapax.engine.prolog.isolation import IMPORT_ROOT
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.llm_oracle.egress import permit
from hapax.llm_oracle.protocols import ModelIdentity

RESTARTS = 100
"""Restarts of a worker before its search fails."""

OBJECT_STORE_BYTES = 200_000_000
"""Object store of a cluster that is started for one search: requests and answers pass through it."""

KNOCK_SECONDS = 5.0

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster. `address`: as for `ray.init`; `local` starts a cluster on this machine for this search alone.

    `worker_count`: None: one per processor of the cluster. `gpus`: reserved by each worker. `notice`: hears that a
    worker died.
    """

    address: str
    worker_count: int | None
    gpus: float
    notice: Callable[[str], None]

    @contextmanager
    def workers(self, opening: Opening) -> Iterator[RayWorkers]:
        """The workers. Raises HapaxError if there is no cluster, or if it has too few GPUs."""
        _connect(self.address, self.worker_count)
        try:
            options = {
                "num_gpus": self.gpus,
                "max_restarts": RESTARTS,
                "max_task_retries": RESTARTS,
                "scheduling_strategy": "SPREAD",
            }
            actor: Any = ray.remote(**options)(RayWorker)
            # Referenced as long as the search runs, because a restarted actor needs it.
            kept = ray.put(opening)
            yield RayWorkers([actor.remote([kept]) for _ in range(self._count())], kept, self.notice)
        finally:
            ray.shutdown()

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


class RayWorker(ModelWorker):
    """A worker whose opening is in Ray's object store.

    It is passed in a list, because Ray frees large arguments of actors after their first start (its issue 53727).
    """

    def __init__(self, references: Sequence[Any]) -> None:
        super().__init__(ray.get(references[0]))
        self._is_restarted = ray.get_runtime_context().was_current_actor_reconstructed

    def numbered(self, number: int, call: Sequence[Any]) -> tuple[int, list[Any] | str, bool]:
        """The number of a call, what `answers` returns for it, and whether this process replaces a dead one."""
        replaces, self._is_restarted = self._is_restarted, False
        return number, self.answers(*call), replaces


@dataclass(frozen=True, slots=True)
class RayWorkers:
    """The actors, the reference to what they opened, and who hears of their deaths."""

    actors: Sequence[Any]
    opening: Any
    notice: Callable[[str], None]

    @property
    def count(self) -> int:
        return len(self.actors)

    def identities(self, role: str) -> list[ModelIdentity | str]:
        """Like `Workers.identities`. Begun for all first, so that they open their models side by side."""
        with _loss_told():
            found: list[ModelIdentity | str] = ray.get([actor.identity.remote(role) for actor in self.actors])
            return found

    def answers(self, calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, list[Any] | str]]:
        """Like `Workers.answers`."""
        pool = ActorPool(self.actors)
        with _loss_told():
            for number, answers, replaces in pool.map_unordered(
                lambda actor, call: actor.numbered.remote(*call), list(enumerate(calls))
            ):
                if replaces:
                    self.notice("A worker died and was started again; it answers its requests once more.")
                yield number, answers


@contextmanager
def _loss_told() -> Iterator[None]:
    """Raises HapaxError for a process that is gone for good."""
    try:
        yield
    except RayTaskError:
        raise  # a defect; it has the traceback of its process
    except RayError as fault:
        reason = str(fault).strip().partition("\n")[0]
        raise HapaxError(
            f"A process of the cluster is gone for good: {reason}.",
            Remedy("Check the cluster, then run the same {} again: no answer is lost.", CALL),
        ) from None


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
        ray.init(address=address, **settings)
    except (OSError, RayError, ValueError, ImportError) as fault:
        reason = str(fault).strip().partition("\n")[0].rstrip(".")
        raise HapaxError(
            f"No Ray cluster at {address!r}: {reason}.",
            Remedy("Start one with `ray start --head`, or use {} local.", Setting("ray_address")),
        ) from None


def _knock(address: str) -> None:
    """Raises OSError if nothing listens at HOST:PORT, which Ray itself notices only after minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        permit(host)
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
