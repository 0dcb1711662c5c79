"""A simulated machine: processes of Hapax on one disk and clock, and what they left."""

from __future__ import annotations

import gc
import json
import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hapax.kb.files import system
from hapax.kb.files.unfinished import PREFIX, journal_folder
from tools.simulate import scheduling, vfs
from tools.simulate.disk import Disk, DiskFault
from tools.simulate.scheduling import Killed, Scheduler, SimulatedProcess

Work = Callable[[], object]

_LAYER: list[vfs.Layer] = []
"""SQLite's layer, which is registered once."""


class SimulatedFileLock:
    """A lock of the simulated system: processes wait for it on the simulated clock, and lose it when they end."""

    holders: dict[str, tuple[SimulatedProcess, int]] = {}  # noqa: RUF012  the locks of the machine
    """By name, the process that took a lock, and how often."""

    def __init__(self, machine: Machine, path: Path) -> None:
        self.lock_file, self._machine = str(path), machine

    def acquire(self, timeout: float | None = None) -> None:
        """Take the lock, which nests in one process."""
        scheduler = self._machine.scheduler
        if scheduler is None or scheduler.me is None:
            return
        process = scheduler.me.process
        self._machine.disk.cross("lock", Path(self.lock_file).touch)

        def is_free() -> bool:
            holder, depth = self.holders.get(self.lock_file, (process, 0))
            return not depth or holder is process or holder.is_dead

        if not scheduler.wait(timeout, is_free):
            raise system.LockTimeout(self.lock_file)
        holder, depth = self.holders.get(self.lock_file, (process, 0))
        self.holders[self.lock_file] = (process, depth + 1 if holder is process else 1)

    @property
    def lock_counter(self) -> int:
        """Number of times that this process holds the lock."""
        return self.holders[self.lock_file][1] if self.lock_file in self.holders else 0

    def release(self) -> None:
        scheduler = self._machine.scheduler
        if scheduler is not None and scheduler.me is not None and self.lock_counter:
            holder, depth = self.holders[self.lock_file]
            if holder is scheduler.me.process:
                self.holders[self.lock_file] = (holder, depth - 1)
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

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        folder.mkdir(parents=True)
        self.disk = Disk(folder, seed)
        self.scheduler: Scheduler | None = None
        self.crossings: Counter[str] = Counter()
        self.clock = 0.0
        """Seconds on the simulated clock, of all runs."""
        self._runs = 0

    def run(
        self, works: Sequence[Work], faults: Sequence[DiskFault] = (), switching: float = 0.1
    ) -> list[SimulatedProcess]:
        """Run one process for each function; returns the processes. A power cut has then changed the folder."""
        self._runs += 1
        processes = [SimulatedProcess(1000 * self._runs + number, work) for number, work in enumerate(works)]
        self.scheduler = scheduler = Scheduler(self.seed * 100 + self._runs, switching)
        self.disk.restart(scheduler, list(faults))
        SimulatedFileLock.holders.clear()
        random.seed(self.seed)  # pauses between attempts are random
        if not _LAYER:
            _LAYER.append(vfs.Layer())
        scheduling.use(scheduler)
        _LAYER[0].watcher = self.disk
        gc.disable()  # when it runs depends on all seeds before
        try:
            with patch.multiple(system, **self._replaced(scheduler)):
                scheduler.run(processes)
                for process in processes:
                    if process.fault is not None:
                        traceback.clear_frames(process.fault.__traceback__)
                gc.collect()  # connections of killed processes are closed while their writes still fail
        finally:
            gc.enable()
            _LAYER[0].watcher = None
            scheduling.use(None)
            self.clock += scheduler.clock
            self.disk.scheduler = self.scheduler = None
            self.crossings += self.disk.crossings
        if self.disk.is_cut:
            self.disk.cut()
            _renumber(self.folder)
        return processes

    def _replaced(self, scheduler: Scheduler) -> dict[str, Any]:
        disk = self.disk

        def sleep(seconds: float) -> None:
            if scheduler.me is not None:
                scheduler.wait(seconds, lambda: False)

        def monotonic() -> float:
            if scheduler.me is not None and scheduler.me.process.is_dead:
                raise Killed  # or it would wait for ever for what the living do
            return scheduler.clock

        return {
            "now": lambda: datetime.fromtimestamp(1_700_000_000 + scheduler.clock, UTC),
            # Not `monotonic` itself: some defaults of parameters refer to that function.
            "time": SimpleNamespace(monotonic=monotonic, sleep=sleep),
            "process_id": lambda: scheduler.me.process.number if scheduler.me else 0,
            "file_lock": lambda path: SimulatedFileLock(self, path),
            "write": disk.write_file,
            "sync": disk.sync_file,
            "sync_folder": disk.sync_folder,
            "rename": disk.rename,
            "remove": disk.remove,
            "remove_folder": disk.remove_folder,
        }
