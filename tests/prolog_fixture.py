"""Workers of Prolog sessions, forked from one that has started: a test then waits for no start.

The first worker is started by a session's own command, with the same isolation. Where it would wait for the session's
first request, it forks a worker for each session that comes.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Client
from multiprocessing.reduction import send_handle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FORKING = """
import gc, os, select, signal, socket, sys
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle

listener = socket.socket(fileno=int(sys.argv.pop(1)))

class ForkingConnection(Connection):
    said = []  # what the session hears when its worker has started
    is_forked = False

    def send_bytes(self, content):
        super().send_bytes(content) if self.is_forked else self.said.append(content)

    def recv_bytes(self):
        if not self.is_forked:
            self.fork_for_sessions()
        return super().recv_bytes()

    def fork_for_sessions(self):
        gc.freeze()  # otherwise a collection would copy the memory that forks share
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for the forks
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            with Connection(listener.accept()[0].detach()) as session:
                folder, descriptor = session.recv(), recv_handle(session)
                if pid := os.fork():
                    os.setpgid(pid, pid)  # before its pid is told: a session may kill the group before it has run
                    os.close(descriptor)
                    session.send(pid)
                    continue
            os.setpgid(0, 0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the worker waits for its goals
            listener.close()
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(descriptor, self.fileno())
            os.close(descriptor)
            self.is_forked = True
            for content in self.said:
                self.send_bytes(content)
            return
        os._exit(0)  # whoever started it has ended

connection.Connection = ForkingConnection
sys.argv[-1] = str(os.open(os.devnull, os.O_RDWR))
exec(sys.argv.pop(1))
"""
"""Runs the command of a worker, given after the descriptor of a listening socket, and serves sessions by forks."""


start_process = subprocess.Popen


class ForkedWorker:
    """A worker as the session sees it: the part of `subprocess.Popen` that it uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # Its parent is the process that forked it, so `waitpid` does not know it here.
        self.handle = os.pidfd_open(pid)
        self.has_ended = False

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the end of the process."""
        if self.has_ended:
            return
        if not select.select([self.handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("worker", timeout or 0.0)
        os.close(self.handle)
        self.has_ended = True


class WorkerSource:
    """Forks workers for sessions of this process and of its forks. Use it as a context manager."""

    def __init__(self) -> None:
        self.environment: Mapping[str, str] | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WorkerSource:
        self.folder = TemporaryDirectory(prefix="workers-")
        self.address = str(Path(self.folder.name) / "socket")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(10)
        self.folder.cleanup()

    def forked(self, command: Sequence[str], pass_fds: Sequence[int], env: Mapping[str, str]) -> ForkedWorker | None:
        """A worker for the session of this command; None where Prolog does not start, or in another environment."""
        if self.process is None:
            self.start(command, env)
        if env != self.environment:
            return None
        with suppress(OSError, EOFError), Client(self.address, "AF_UNIX") as connection:
            connection.send(str(Path.cwd()))
            send_handle(connection, pass_fds[0], 0)
            return ForkedWorker(connection.recv())
        return None

    def start(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        program, isolated, flag, *rest = command
        self.environment = env
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(64)
            self.process = start_process(
                [program, isolated, flag, FORKING, str(listener.fileno()), *rest],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                env=env,
                start_new_session=True,
            )

    def popen(self) -> type[subprocess.Popen[Any]]:
        """`subprocess.Popen` that takes a worker from here; other commands start as ever."""
        source = self

        class Popen(start_process):
            def __new__(cls, command: Any, *arguments: Any, **options: Any) -> Any:
                is_isolated = isinstance(command, list) and command[:2] == [sys.executable, "-I"]
                if is_isolated and options.get("pass_fds"):
                    return source.forked(command, options["pass_fds"], options["env"]) or super().__new__(cls)
                return super().__new__(cls)

        return Popen
