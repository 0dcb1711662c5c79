"""The door to Prolog: a session whose worker process consults programs and answers goals under limits.

The process that uses a session never runs Prolog itself. Whatever a goal does (halt, crash, eat memory, loop without
end) happens to a forked child of the worker; the session then raises a `HapaxError` and answers the next goal.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from engine.worker import END
from grammar.errors import HapaxError
from grammar.terms import Value
from grammar.words import counted

MAX_GOAL_DEPTH = 1000
"""Open brackets in a goal. Prolog's parser overruns its C stack at about 15,000."""

MAX_GOAL_CHARACTERS = 1_000_000
"""Longer goals are no questions; loading data has `load`."""

GRACE_SECONDS = 5.0
"""How long after a goal's own time limit the worker may take to say so, before it is replaced."""

MAX_NUMBER_DIGITS = 4300
"""Digits of a number in an answer: as many as Python reads and writes."""

LOAD_SECONDS = 300.0
"""How long a program may take to load: far above the 5 s that 10^6 facts need."""

ALLOWED = (
    "Goals call the predicates of the rules, findall, aggregate_all, setof, bagof, forall, the list predicates, "
    "comparisons and arithmetic."
)

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one goal may use. `answers` only cuts the answers off; the others end the goal with `LimitExceeded`."""

    seconds: float = 10.0
    inferences: int = 50_000_000
    answers: int = 10_000
    memory_mb: int = 1024


REMEDIES = {
    "seconds": "--seconds raises the limit.",
    "inferences": "--inferences raises the limit.",
    "memory": "Bind more of its variables, or ask for less at once.",
}
"""What to do about each limit that ends a goal."""


class PrologError(HapaxError):
    """A goal or program that Prolog refused. `kind` is the error term's name, such as `existence_error`."""

    def __init__(self, message: str, kind: str = "error", line: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line


class GoalRefused(PrologError):  # noqa: N818  named after the situation, as LimitExceeded is
    """A goal that calls what goals may not call."""


class LimitExceeded(HapaxError):  # noqa: N818  as BudgetReached and RulesRejected are
    """A goal that ran into one of its limits; `limit` is a key of `REMEDIES`."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class PrologTerm:
    """An answer that is no plain value: a compound term, a list (`name` is `[]`) or a free variable (`name` is `_`)."""

    name: str
    arguments: tuple[Cell, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.arguments))
        if self.name == "[]":
            return f"[{inner}]"
        return f"{self.name}({inner})" if self.arguments else self.name


Cell: TypeAlias = Value | PrologTerm
Row: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of a goal, one cell a variable; `truncated`: there were more than the limit allows."""

    rows: list[Row] = field(default_factory=list)
    truncated: bool = False


class PrologSession:
    """A worker process with one loaded program at a time. Safe to use from several threads: goals queue up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._program: bytes | None = None

    def __enter__(self) -> PrologSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def load(self, program: str) -> None:
        """Make `program` the session's program, in place of the one before. It is trusted: directives run.

        Raises PrologError with the first fault's line if anything in it is an error or a warning.
        """
        data = _utf8(program, "The program")
        with self._lock:
            self._program = None
            faults = self._load(data)
            if faults:
                raise _load_error(faults)
            self._program = data

    def solutions(
        self,
        goal: str,
        variables: Sequence[str],
        limits: QueryLimits | None = None,
        *,
        trusted: bool = False,
        distinct: bool = False,
    ) -> Answers:
        """Every answer of the goal, as the values of the named variables.

        An untrusted goal may call what `sandbox.pl` lists and what the program defines. `distinct` drops rows that came
        before. Raises GoalRefused, LimitExceeded or another PrologError; the session is usable after each of them.
        """
        limits = limits or QueryLimits()
        _check_goal(goal)
        request = {
            "do": "answer",
            "goal": goal.rstrip().removesuffix("."),
            "names": ",".join(map(_variable, variables)),
            "options": f"options({'trusted' if trusted else 'walked'}, {int(limits.answers)}, {int(limits.inferences)},"
            f" {'true' if distinct else 'false'})",
            "seconds": float(limits.seconds),
            "memory_mb": int(limits.memory_mb),
        }
        with self._lock:
            text, reply = self._request(request, None, limits.seconds + GRACE_SECONDS)
        return _answers(text, reply, limits)

    def close(self) -> None:
        """End the worker; the session starts a new one if it is used again."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                _kill_group(process)

    # --- the worker ----------------------------------------------------------------------------------------------

    def _load(self, data: bytes) -> list[Row]:
        text, reply = self._request({"do": "load"}, data, LOAD_SECONDS)
        if reply["kind"] != "done" or not text:
            self._abandon()
            raise PrologError("Prolog ended while it loaded the program. Run `hapax doctor`.", "load")
        rows, _ = _decoded(text)
        return rows

    def _request(self, request: dict[str, Any], payload: bytes | None, seconds: float) -> tuple[bytes, dict[str, Any]]:
        """Send one request and collect its reply; a worker that is gone or late is replaced."""
        connection = self._connected(loading=request["do"] == "load")
        try:
            connection.send_bytes(json.dumps(request).encode())
            if payload is not None:
                connection.send_bytes(payload)
            return _reply(connection, seconds)
        except KeyboardInterrupt:
            self._interrupted()
            raise
        except (EOFError, OSError, TimeoutError) as fault:
            self._abandon()
            raise PrologError(
                f"The Prolog process ended or hung ({type(fault).__name__}); it is started anew for the next goal.",
                "died",
            ) from None

    def _interrupted(self) -> None:
        """Ctrl-C: have the child killed; a worker that does not say so at once goes as well."""
        try:
            assert self._connection is not None  # noqa: S101  set by _connected
            self._connection.send_bytes(json.dumps({"do": "cancel"}).encode())
            _reply(self._connection, 0.5)
        except (EOFError, OSError, TimeoutError, KeyboardInterrupt):
            self._abandon()

    def _connected(self, loading: bool) -> Connection:
        """The connection to a running worker that holds the session's program."""
        if self._connection is not None:
            return self._connection
        ours, theirs = Pipe()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))),
            "XDG_CONFIG_HOME": os.devnull,  # no init.pl of the user's
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engine.worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=environment,
            start_new_session=True,  # Ctrl-C reaches this process only, which then tells the worker
        )
        theirs.close()
        self._connection = ours
        try:
            _, reply = _reply(ours, 60.0)
        except (EOFError, OSError, TimeoutError):
            reply = {"kind": "unavailable", "message": "its process ended"}
        if reply["kind"] != "ready":
            self._abandon()
            raise PrologError(
                f"SWI-Prolog does not start: {reply.get('message', '')}. Run `hapax doctor`; it names what to install.",
                "unavailable",
            )
        if self._program is not None and not loading:
            self._load(self._program)
        return ours

    def _abandon(self) -> None:
        """Kill the worker and its child. The next request starts another one."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None:
            _kill_group(process)
        if connection is not None:
            connection.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reply(connection: Connection, seconds: float) -> tuple[bytes, dict[str, Any]]:
    """All pieces of text up to the closing reply; TimeoutError when the worker is silent for so long."""
    pieces: list[bytes] = []
    while True:
        if not connection.poll(seconds):
            raise TimeoutError
        message = connection.recv_bytes()
        if message[:1] == END:
            return b"".join(pieces), json.loads(message[1:])
        pieces.append(message[1:])


def _answers(text: bytes, reply: dict[str, Any], limits: QueryLimits) -> Answers:
    """The rows, or the error that the end of the reply tells."""
    if reply["kind"] in ("seconds", "memory"):
        raise _exceeded(reply["kind"], limits)
    rows, end = _decoded(text)
    if reply["kind"] == "cancelled" or end is None:
        if reply.get("signal") == signal.SIGXCPU:
            raise _exceeded("seconds", limits)
        if reply.get("signal") == signal.SIGABRT:
            raise _exceeded("memory", limits)
        raise PrologError("The goal ended its own process, so it has no answer. Ask it without what does that.", "died")
    kind, message = end
    if kind == "limit":
        raise _exceeded(message, limits)
    if kind == "refused":
        raise GoalRefused(f"A goal may not call {message}. {ALLOWED}", kind)
    if kind not in ("done", "truncated"):
        raise PrologError(f"Prolog refused the goal: {_short(message)} ({kind}).", kind)
    return Answers(rows, kind == "truncated")


def _exceeded(limit: str, limits: QueryLimits) -> LimitExceeded:
    allowed = {
        "seconds": counted(limits.seconds, "second"),
        "inferences": counted(limits.inferences, "inference"),
        "memory": f"{limits.memory_mb} MB of memory",
    }[limit]
    return LimitExceeded(f"The goal needs more than {allowed}. {REMEDIES[limit]}", limit)


def _load_error(faults: list[Row]) -> PrologError:
    _, line, message = faults[0]
    more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    place = line if isinstance(line, int) and line else None
    told = re.sub(r"\S*hapax-prolog-\S+?\.pl(:\d+)*:? ?", "", str(message))
    return PrologError(
        f"The generated program, line {line}: {_short(told)}{more}. A rule or value of that line is at fault.",
        "load",
        place,
    )


def _short(message: str) -> str:
    flat = " ".join(message.split())
    return flat if len(flat) <= 400 else flat[:400] + " ..."


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Z_][A-Za-z0-9_]*", name, re.ASCII):
        raise PrologError(f"{name!r} is no variable name: one starts with a capital letter.", "variable")
    return name


def _utf8(text: str, what: str) -> bytes:
    """UTF-8, or the refusal of what Prolog cannot hold whole."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as fault:
        raise PrologError(
            f"{what} holds half a character (a lone surrogate) at {fault.start}. Remove it.", "text"
        ) from None
    if b"\0" in data:
        raise PrologError(f"{what} holds a NUL character at {text.index(chr(0))}. Remove it.", "text")
    return data


def _check_goal(goal: str) -> None:
    """Refuse what would crash Prolog's parser before it sees it."""
    _utf8(goal, "The goal")
    if len(goal) > MAX_GOAL_CHARACTERS:
        raise PrologError(f"The goal has {len(goal)} characters; {MAX_GOAL_CHARACTERS} are allowed.", "size")
    depth = deepest = 0
    for bracket in re.findall(r"[(\[{}\])]", goal):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_GOAL_DEPTH:
        raise PrologError(f"The goal nests {deepest} brackets; {MAX_GOAL_DEPTH} are allowed.", "size")


# --- reading what host.pl writes ------------------------------------------------------------------------------------


class _CutOffError(Exception):
    """The text ends inside a row, or is none of ours: its writer was killed, or a goal wrote in its place."""


def _decoded(data: bytes) -> tuple[list[Row], tuple[str, str] | None]:
    """All whole rows, and the end mark (kind, message) if it was written. Raises PrologError for too long a number."""
    reader = _Reader(data.decode("utf-8", "replace"))
    rows: list[Row] = []
    try:
        while True:
            if reader.tag() == "e":
                return rows, (str(reader.cell()), str(reader.cell()))
            row = reader.cell()
            rows.append(row.arguments if isinstance(row, PrologTerm) else (row,))
    except (_CutOffError, ValueError):
        return rows, None


class _Reader:
    """Reads the prefix code; each text says its own length, so nothing in a value can end it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def tag(self) -> str:
        if self.at >= len(self.text):
            raise _CutOffError
        self.at += 1
        return self.text[self.at - 1]

    def cell(self) -> Cell:
        """One cell. Compound terms are built from a stack of their own, because answers may nest deeper than Python."""
        open_terms: list[tuple[str, int, list[Cell]]] = []
        while True:
            tag = self.tag()
            if tag in "cl":
                count = self._count()
                open_terms.append((tag, count + (tag == "c"), []))
            else:
                done = self._plain(tag)
                if not open_terms:
                    return done
                open_terms[-1][2].append(done)
            while len(open_terms[-1][2]) == open_terms[-1][1]:
                tag, _, parts = open_terms.pop()
                whole = PrologTerm(str(parts[0]), tuple(parts[1:])) if tag == "c" else PrologTerm("[]", tuple(parts))
                if not open_terms:
                    return whole
                open_terms[-1][2].append(whole)

    def _plain(self, tag: str) -> Cell:
        if tag in "as":
            return self._counted()
        if tag == "i":
            return _integer(self._until(";"))
        if tag == "f":
            return _float(self._until(";"))
        if tag == "q":
            above, below = map(_integer, self._until(";").split("/"))
            return _decimal(above, below)
        if tag == "v":
            self._counted()
            return PrologTerm("_")
        raise _CutOffError

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise _CutOffError
        found = self.text[self.at : stop]
        self.at = stop + 1
        return found

    def _count(self) -> int:
        count = int(self._until(":"))
        if count < 0:
            raise _CutOffError
        return count

    def _counted(self) -> str:
        length = self._count()
        start = self.at
        self.at += length
        if self.at > len(self.text):
            raise _CutOffError
        return self.text[start : self.at]


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_DIGITS:
        raise PrologError(
            f"An answer holds a number of {len(text)} digits; {MAX_NUMBER_DIGITS} are allowed. Ask for a smaller one.",
            "size",
        )
    return int(text)


def _float(text: str) -> Cell:
    """A float as the shortest decimal that reads back as it; infinities and NaN are no values."""
    number = float(text.lower().replace("1.0inf", "inf").replace("1.5nan", "nan"))
    return Decimal(repr(number)) if math.isfinite(number) else PrologTerm(text)


def _decimal(above: int, below: int) -> Decimal:
    """A rational as the decimal it is; one that never ends, such as a third, or not soon, is cut at 28 digits."""
    if below <= 0:
        raise _CutOffError
    rest = below
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    top, bottom = Decimal(above), Decimal(below)
    if rest != 1 or below.bit_length() > MAX_NUMBER_DIGITS:
        return top / bottom
    enough = above.bit_length() // 3 + below.bit_length() + 2  # digits of the exact quotient, at the most
    return Context(prec=enough).divide(top, bottom)
