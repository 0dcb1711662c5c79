"""The worker process, which owns the Prolog engine. `session.py` starts it and sends it requests.

It has one thread and one engine. Programs are loaded here; every goal runs in a forked child under resource limits and
is killed from outside when its time is up, so that its effects (memory, tables, assertions, crashes) die with it.
pyswip finds and starts SWI-Prolog. Its own conversion of terms is not used: it silently corrupts integers and texts.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from hapax.engine.prolog.landlock import kill_group, lead_group, shut_off

ROWS, END = b"R", b"E"
"""The first byte of a message: a piece of the answer text follows, or the JSON that closes the reply."""

_HERE = Path(__file__).parent
_CHUNK = 1 << 16


class Prolog:
    """The calls of Prolog's C interface that the worker needs. Texts are passed with their lengths."""

    def __init__(self) -> None:
        from pyswip import core
        from pyswip.prolog import Prolog as _Started  # noqa: F401  importing it initialises the engine

        self._core = core
        self._encoding = core.PL_ATOM | core.REP_UTF8

    def call(self, module: str, predicate: str, *texts: str) -> bool:
        """Call `module:predicate` with atoms as arguments; an uncaught error counts as failure."""
        core = self._core
        frame = core.PL_open_foreign_frame()
        try:
            # Consecutive references: the C interface takes the first and their number.
            first = core.PL_new_term_refs(len(texts))
            for offset, text in enumerate(texts):
                data = text.encode("utf-8")
                if not core.PL_put_chars(first + offset, self._encoding, len(data), data):
                    return False
            found = core.PL_predicate(predicate, len(texts), module)
            flags = core.PL_Q_NODEBUG | core.PL_Q_CATCH_EXCEPTION
            return bool(core.PL_call_predicate(None, flags, found, first))
        finally:
            # Also undoes the bindings of the call, which nobody reads.
            core.PL_discard_foreign_frame(frame)


class Worker:
    """Serves the requests of a session until its connection is closed."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.prolog = Prolog()
        self.programs = 0
        self.file = ""
        self.module = "hapax_0"
        if not (
            self.prolog.call("system", "consult", str(_HERE / "host.pl")) and self.prolog.call("hapax_host", "ready")
        ):
            raise RuntimeError(f"{_HERE / 'host.pl'} does not load")

    def serve(self) -> None:
        self._end({"kind": "ready"})
        while True:
            try:
                request = json.loads(self.connection.recv_bytes())
                if request["do"] == "load":
                    self._load(self.connection.recv_bytes())
                elif request["do"] == "answer":
                    self._answer(request)
                # A "cancel" that arrives here comes after its goal has ended: nothing is left to cancel.
            except (EOFError, ConnectionError):
                return

    def _load(self, program: bytes) -> None:
        """Load the program into a new module, after removing the clauses of the program before."""
        self.programs += 1
        module = f"hapax_{self.programs}"
        with tempfile.TemporaryDirectory(prefix="hapax-prolog-") as folder:
            file, faults = Path(folder) / f"{module}.pl", Path(folder) / "faults"
            file.write_bytes(program)
            with _standard_output_to(faults):
                loaded = self.prolog.call("hapax_host", "load_program", str(file), module, self.file)
            report = faults.read_bytes()
        # The file is gone by now; Prolog only needs its name to unload the clauses.
        self.file, self.module = str(file), module
        self.connection.send_bytes(ROWS + report)
        self._end({"kind": "done" if loaded else "died"})

    def _answer(self, request: Mapping[str, Any]) -> None:
        """Run a goal in a child process and forward its output."""
        pipe = _AnswerPipe(self.connection)
        # A fork, because a goal may crash Prolog or exhaust its memory, and the loaded program must outlive that.
        child = os.fork()
        if child == 0:
            self._run(pipe, request)
        # Else the pipe would never report its end, since this process would still hold the child's end open.
        pipe.close_child_end()
        try:
            ended = pipe.pass_on(time.monotonic() + request["most_seconds"], request["memory_mb"] << 20)
        finally:
            pipe.close()
            kill_group(child)  # with what `shell` left behind, which hangs for seconds where it may start nothing
            _, status, usage = os.wait4(child, 0)
        killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        self._end({"kind": ended, "signal": killed_by, "resident_mb": usage.ru_maxrss >> 10})

    def _run(self, pipe: _AnswerPipe, request: Mapping[str, Any]) -> NoReturn:
        """The child: make the pipe its output, set the limits, run the goal. Never returns."""
        try:
            lead_group()
            pipe.take_child_end()
            os.environ.clear()  # no goal has a use for it
            _limit(request["seconds"], request["memory_mb"])
            self.prolog.call("hapax_host", "limit_stacks", str(request["memory_mb"]))
            self.prolog.call("hapax_host", "answer", request["goal"], request["names"], self.module, request["options"])
        finally:
            # Not `sys.exit`, which would run the worker's own clean-up in the child.
            os._exit(0)

    def _end(self, reply: Mapping[str, Any]) -> None:
        self.connection.send_bytes(END + json.dumps(reply).encode())


class _AnswerPipe:
    """The pipe from a goal's process to the worker, which passes the answers on."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.answers, self._to_answers = os.pipe()

    def close_child_end(self) -> None:
        os.close(self._to_answers)

    def close(self) -> None:
        os.close(self.answers)

    def take_child_end(self) -> None:
        """In the child: answers are its standard output, and it keeps nothing of the worker open."""
        os.dup2(self._to_answers, 1)
        os.closerange(3, 256)

    def pass_on(self, deadline: float, room: int) -> str:
        """Forward the child's bytes until it closes its end. Returns how it ended, or which limit it exceeded."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "seconds"
            # The connection is watched as well: a cancel, or the end of the parent, ends the goal.
            ready, _, _ = select.select([self.answers, self.connection.fileno()], [], [], left)
            if self.connection.fileno() in ready:
                self.connection.recv_bytes()  # at the end of the file the error ends the worker
                return "cancelled"
            if self.answers in ready:
                chunk = os.read(self.answers, _CHUNK)
                room -= len(chunk)
                if not chunk:
                    return "closed"
                if room < 0:
                    return "memory"
                self.connection.send_bytes(ROWS + chunk)


@contextmanager
def _standard_output_to(file: Path) -> Iterator[None]:
    """Redirect descriptor 1, to which Prolog writes, to a file."""
    kept = os.dup(1)
    with file.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _limit(seconds: float, memory_mb: int) -> None:
    """Have the kernel refuse files, sockets and processes, and cap time, memory and core files."""
    import resource

    # Processor time, so that a goal has the same answers on a busy machine. The signal ends the process.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    cpu = int(seconds) + 2  # the timer comes first; this one holds if something stops it
    # 3 descriptors are open already, and no process more may start: so nothing can be opened or started at all.
    caps = {"RLIMIT_CPU": cpu, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0, "RLIMIT_NOFILE": 3, "RLIMIT_NPROC": 0}
    mapped = _mapped_bytes()
    if mapped:
        caps["RLIMIT_AS"] = mapped + (memory_mb << 20)
    # Behind all that reads a file, and before the limit that lets no more descriptors be made. Limits hold without it.
    shut_off()
    for name, cap in caps.items():
        try:
            resource.setrlimit(getattr(resource, name), (cap, cap))
        except (OSError, ValueError):
            continue  # macOS refuses some of them; the worker's clock and kill work everywhere


def _mapped_bytes() -> int:
    """The address space in use, which RLIMIT_AS includes; 0 where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Start Prolog and serve requests. A failure to start is reported to the session."""
    connection = Connection(int(sys.argv[1]))
    try:
        worker = Worker(connection)
    except Exception as fault:  # noqa: BLE001  the parent turns it into the message that names the remedy
        reply = {"kind": "unavailable", "message": f"{type(fault).__name__}: {fault}"}
        connection.send_bytes(END + json.dumps(reply).encode())
        return
    worker.serve()


if __name__ == "__main__":
    main()
