"""Workers of Prolog sessions, forked from a process in which Prolog has started: a test then waits for no start.

That process starts as a session starts a worker, with the same isolation, and serves requests for forks of itself.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any

from hapax.engine.inference.isolation import child_command, child_environment

WORKER = "hapax.engine.inference.worker"


class ForkedWorker:
    """A worker as the session sees it: the part of `subprocess.Popen` that it uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # Its parent is the process that forked it, so `waitpid` does not know it here.
        self._handle = os.pidfd_open(pid)
        self._has_ended = False

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the end of the process."""
        if self._has_ended:
            return
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(WORKER, timeout or 0.0)
        os.close(self._handle)
        self._has_ended = True


class WorkerSource:
    """The part of the module `subprocess` that a session uses; its workers are forks. Use it as a context manager."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._environment = child_environment()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> WorkerSource:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._connection is not None:
            self._connection.close()
            self._process.wait(10)

    def Popen(self, command: Sequence[str], *, pass_fds: Sequence[int], env: Mapping[str, str], **options: Any) -> Any:  # noqa: N802
        """A forked worker; where a test changed the environment of workers, or Prolog does not start, the process."""
        if WORKER in command and env == self._environment:
            with suppress(OSError, EOFError), self._lock:
                connection = self._connected()
                connection.send(str(Path.cwd()))
                send_handle(connection, pass_fds[0], 0)
                return ForkedWorker(connection.recv())
        return subprocess.Popen(command, pass_fds=pass_fds, env=env, **options)

    def _connected(self) -> Connection:
        """The connection to the process that forks, which starts with the first worker."""
        if self._connection is None:
            self._connection, theirs = Pipe()
            self._process = subprocess.Popen(
                child_command(__name__, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=self._environment,
                start_new_session=True,
            )
            theirs.close()
        return self._connection


def serve(requests: Connection) -> None:
    """Fork a worker for each working folder and connection that come, until the other side is gone."""
    from hapax.engine.inference.worker import Worker

    worker = Worker(Connection(os.open(os.devnull, os.O_RDWR)))
    gc.freeze()  # otherwise a collection would copy the memory that forks share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for the forks
    while True:
        try:
            folder, descriptor = Path(requests.recv()), recv_handle(requests)
        except EOFError:
            return
        if pid := os.fork():
            os.setpgid(pid, pid)  # before its pid is told: a session may kill the group before the fork has run at all
            os.close(descriptor)
            requests.send(pid)
            continue
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the worker waits for its goals
            requests.close()
            os.chdir(folder)
            worker.connection = Connection(descriptor)
            worker.serve()
        finally:
            os._exit(0)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
