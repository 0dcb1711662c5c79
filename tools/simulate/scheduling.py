"""Simulated processes as threads of which one runs at a time: a seed decides which, and the clock is a number.

A thread hands over at crossings (each write, rename, answer and pause) and where it waits for a lock of `threading`.
Queues, events, futures and executors rest on these locks, so that all of it follows the seed. `install` must be called
before Hapax is imported.
"""

from __future__ import annotations

import _thread
import functools
import queue
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CROSSING_SECONDS = 0.0005
"""Time that passes at each crossing."""


class Killed(BaseException):
    """The process of this thread was killed. No effect of it reaches the disk any more."""


class Stuck(Exception):  # noqa: N818  says what happened
    """All threads wait for each other, or have waited for too long."""


@dataclass(eq=False)
class SimulatedProcess:
    """A process: its number and its fault. `work` is its main function, with which all of its threads end.

    `is_dead`: it has ended; `is_killed`: it did not end by itself.
    """

    number: int
    work: Callable[[], object]
    is_dead: bool = False
    is_killed: bool = False
    fault: BaseException | None = None


@dataclass(eq=False)
class SimulatedThread:
    """A thread of a process. It runs while it holds the baton, which others release for it."""

    process: SimulatedProcess
    baton: Any = field(default_factory=_thread.allocate_lock)
    is_ready: bool = True
    is_done: bool = False
    wake_at: float | None = None

    def __post_init__(self) -> None:
        self.baton.acquire()


class Scheduler:
    """Runs processes until all have ended. `choose` decides, by the seed, which of several threads goes on."""

    def __init__(self, seed: int, switching: float = 0.1, most_crossings: int = 2_000_000) -> None:
        self.random = random.Random(f"schedule {seed}")  # noqa: S311  no secret
        self.switching = switching
        self.clock = 1_000_000.0
        self.crossings = 0
        self._most_crossings = most_crossings
        self._threads: list[SimulatedThread] = []
        self._by_ident: dict[int, SimulatedThread] = {}
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self._is_stuck = False

    # -- from outside

    def run(self, processes: list[SimulatedProcess]) -> None:
        """Run the processes to their ends. Raises Stuck if they wait for each other for ever."""
        for process in processes:
            self.spawn(process, functools.partial(self._main, process))
        first = self.random.choice(self._threads)
        first.baton.release()
        self._over.acquire()
        self._threads.clear()
        if self._is_stuck:
            raise Stuck("all threads wait for each other")

    def spawn(self, process: SimulatedProcess, work: Callable[[], None]) -> SimulatedThread:
        """Add a thread, which begins when it is chosen."""
        thread = SimulatedThread(process)
        self._threads.append(thread)

        def body() -> None:
            self._by_ident[_thread.get_ident()] = thread
            thread.baton.acquire()
            try:
                work()
            except BaseException:  # noqa: BLE001, S110  a killed thread; the main one keeps its fault
                pass
            finally:
                del self._by_ident[_thread.get_ident()]
                thread.is_done = True
                self._threads.remove(thread)
                self._next(None)

        _REAL_START(body, ())
        return thread

    # -- from within

    @property
    def me(self) -> SimulatedThread | None:
        """The running thread; None outside the simulation."""
        return self._by_ident.get(_thread.get_ident())

    def cross(self) -> None:
        """Let time pass, and maybe another thread run. Raises Killed in a process that was killed."""
        me = self.me
        if me is None:
            return
        if me.process.is_dead:
            raise Killed
        self.clock += CROSSING_SECONDS
        self.crossings += 1
        if self.crossings > self._most_crossings:
            self._is_stuck = True
            self.kill_all()
            raise Killed
        if self.random.random() < self.switching:
            self._next(me)
            if me.process.is_dead:
                raise Killed

    def wait(self, seconds: float | None, until: Callable[[], bool]) -> bool:
        """Wait until the condition holds; False after `seconds`. Whoever makes it true calls `wake`."""
        me = self.me
        if me is None:
            raise RuntimeError("only a thread of the simulation can wait in it")
        ends = None if seconds is None else self.clock + max(0.0, seconds)
        while True:
            if me.process.is_dead:
                raise Killed
            if until():
                return True
            if ends is not None and self.clock >= ends:
                return False
            me.is_ready, me.wake_at = False, ends
            self._next(me)

    def wake(self) -> None:
        """Let all threads that wait look at their conditions again."""
        for thread in self._threads:
            thread.is_ready = True

    def kill(self, process: SimulatedProcess) -> None:
        """Kill a process: its threads raise Killed when they run next."""
        process.is_killed = process.is_killed or not process.is_dead
        process.is_dead = True
        self.wake()

    def kill_all(self) -> None:
        for thread in self._threads:
            self.kill(thread.process)

    def _main(self, process: SimulatedProcess) -> None:
        try:
            process.work()
        except BaseException as fault:  # noqa: BLE001  looked at by whoever started the process
            process.fault = fault
        process.is_dead = True
        self.wake()

    def _next(self, me: SimulatedThread | None) -> None:
        """Hand the baton to a thread that is ready, and wait until it comes back; `me` None: this thread ends."""
        if not self._threads:
            self._over.release()
            return
        chosen = self._chosen()
        if chosen is me:
            return
        chosen.baton.release()
        if me is not None:
            me.baton.acquire()

    def _chosen(self) -> SimulatedThread:
        ready = [thread for thread in self._threads if thread.is_ready]
        if not ready:
            waking = [thread.wake_at for thread in self._threads if thread.wake_at is not None]
            if waking:
                self.clock = max(self.clock, min(waking))
            else:
                self._is_stuck = True
                self.kill_all()
            for thread in self._threads:
                if not waking or (thread.wake_at is not None and thread.wake_at <= self.clock):
                    thread.is_ready = True
            ready = [thread for thread in self._threads if thread.is_ready]
        chosen = ready[0] if len(ready) == 1 else self.random.choice(ready)
        chosen.wake_at = None
        return chosen


# --- locks and threads ------------------------------------------------------------------------------------------------

_REAL_START = _thread.start_new_thread
_current: Scheduler | None = None


def use(scheduler: Scheduler | None) -> None:
    """Let locks follow this scheduler; None: no simulation is under way."""
    global _current  # noqa: PLW0603  there is one simulation at a time
    _current = scheduler


class SimulatedLock:
    """A lock as of `_thread`, for which simulated threads wait in their scheduler."""

    def __init__(self) -> None:
        self._real = _thread.allocate_lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._real.acquire(False):
            return True
        if not blocking:
            return False
        scheduler = _current
        if scheduler is None or scheduler.me is None:
            return self._real.acquire(blocking, timeout)
        return scheduler.wait(None if timeout < 0 else timeout, lambda: self._real.acquire(False))

    def release(self) -> None:
        self._real.release()
        if _current is not None:
            _current.wake()

    def locked(self) -> bool:
        return self._real.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._real = _thread.allocate_lock()


def _start_thread(function: Callable[..., object], arguments: tuple[Any, ...], *named: Any) -> int:
    """As `_thread.start_new_thread`: a thread of a simulated one belongs to the same process."""
    scheduler, thread = _current, getattr(function, "__self__", None)

    def work() -> None:
        try:
            function(*arguments)
        finally:
            # Python itself releases this lock only when the thread's memory goes, which no simulated thread sees.
            if isinstance(lock := getattr(thread, "_tstate_lock", None), SimulatedLock) and lock.locked():
                lock.release()

    if scheduler is None or (me := scheduler.me) is None:
        return _REAL_START(work, (), *named)
    scheduler.spawn(me.process, work)
    return 0


def install() -> None:
    """Replace the locks and threads of this interpreter for good."""
    threading._allocate_lock = threading.Lock = SimulatedLock  # type: ignore[attr-defined, assignment]
    threading._CRLock = None  # type: ignore[attr-defined]
    threading._set_sentinel = SimulatedLock  # type: ignore[attr-defined]
    threading._start_new_thread = _start_thread  # type: ignore[attr-defined]
    functools.RLock = threading._RLock  # type: ignore[attr-defined]
    queue.SimpleQueue = queue._PySimpleQueue  # type: ignore[attr-defined, misc]
    threading.excepthook = lambda _: None
    sys.unraisablehook = lambda _: None  # of killed processes
