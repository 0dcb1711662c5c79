"""Prolog sessions: a worker process loads programs and answers goals under limits.

The process that uses a session never runs Prolog itself. Whatever a goal does (halt, crash, exhaust memory, loop for
ever) happens to a forked child of the worker; the session then raises a `HapaxError` and answers the next goal.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from hapax.engine.prolog.limits import MOST_OF_PROLOG, QueryLimits
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import BUILT_INS
from hapax.grammar.remedies import CALL, Operation, Remedy, Setting
from hapax.grammar.terms import Value, decimal_of
from hapax.grammar.writing.words import counted

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

START_SECONDS = 60.0
"""Seconds that Prolog may take to start: 0.2 on a free machine, much longer on a busy one."""

MAX_GOAL_DEPTH = 1000
"""Open brackets in a goal. Prolog's parser overruns its C stack at about 15,000."""

MAX_GOAL_CHARACTERS = 1_000_000
"""A limit on the text of a goal. Data goes in by `load`, which has no such limit."""

GRACE_SECONDS = 5.0
"""Seconds after a goal's time limit in which the worker may report it, before it is killed and replaced."""

MOST_WAITING = 10
"""A goal's time limit is processor time; this many times as long it may take by the clock, on a busy machine."""

MAX_NUMBER_DIGITS = 4300
"""Digits of a number in an answer: Python's own default limit for converting integers to and from text."""

LOAD_SECONDS = 300.0
"""Most seconds that a program may take to load. 10^6 facts need 5 s."""

ALLOWED = (
    "Goals may call the predicates of the rules, findall, aggregate_all, setof, bagof, forall, list predicates, "
    "comparisons and arithmetic."
)


ABORT_SHARE = 0.5
"""A process that aborts with at least this share of its memory in use has run out of it."""

REMEDIES = {
    "seconds": Remedy("Raise the limit with {}.", Setting("limits.seconds")),
    "inferences": Remedy("Raise the limit with {}.", Setting("limits.inferences")),
    "memory": Remedy("Bind more of the goal's variables, or ask for fewer answers at once."),
}
"""Remedies by the limit that ended a goal."""


class PrologError(HapaxError):
    """A goal or program that Prolog rejected. `kind` is the error term's name, such as `existence_error`."""

    def __init__(self, message: str, kind: str = "error", line: int | None = None, remedy: Remedy | str = "") -> None:
        super().__init__(message, remedy)
        self.kind = kind
        self.line = line


class GoalRefused(PrologError):  # noqa: N818  named after the situation, as LimitExceeded is
    """A goal that calls a predicate which is not on the allow-list (`sandbox.pl`)."""


class LimitExceeded(HapaxError):  # noqa: N818  as BudgetReached and RulesRejected are
    """A goal that exceeded one of its limits; `limit` is a key of `REMEDIES`, whose remedy it has by default."""

    def __init__(self, message: str, limit: str, remedy: Remedy | None = None) -> None:
        super().__init__(message, remedy or REMEDIES[limit])
        self.limit = limit


@dataclass(frozen=True, slots=True)
class PrologTerm:
    """A cell that is not a plain value: a compound term, a list (`name` is `[]`) or a free variable (`name` is `_`)."""

    name: str
    arguments: tuple[AnswerCell, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.arguments))
        if self.name == "[]":
            return f"[{inner}]"
        return f"{self.name}({inner})" if self.arguments else self.name


AnswerCell: TypeAlias = Value | PrologTerm
AnswerRow: TypeAlias = tuple[AnswerCell, ...]


@dataclass(frozen=True, slots=True)
class GoalAnswers:
    """The answers of a goal, a row each with a cell per variable; `truncated`: there are more than the limit allows."""

    rows: list[AnswerRow] = field(default_factory=list)
    truncated: bool = False


class PrologSession:
    """A worker process with at most one loaded program. Safe to share between threads: goals run one at a time."""

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
        """Replace the session's program. It is trusted: its directives run.

        Raises PrologError with the line of the first error or warning that Prolog reports.
        """
        data = _utf8(program, "The program")
        with self._lock:
            self._program = None  # a worker that starts meanwhile must not load the old one
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
    ) -> GoalAnswers:
        """Answer a goal with rows of values for the named variables.

        An untrusted goal may only call what `sandbox.pl` lists and what the program defines. `distinct` drops repeated
        rows. Raises GoalRefused, LimitExceeded or another PrologError; the session stays usable after each of them.
        """
        limits = limits or QueryLimits()
        _check_goal(goal)
        request = {
            "do": "answer",
            # host.pl adds the full stop itself.
            "goal": goal.rstrip().removesuffix("."),
            "names": ",".join(map(_variable, variables)),
            "options": f"options({'trusted' if trusted else 'walked'}, {int(limits.answers or MOST_OF_PROLOG)},"
            f" {int(limits.inferences)}, {'true' if distinct else 'false'})",
            "seconds": float(limits.seconds),
            "most_seconds": MOST_WAITING * float(limits.seconds),
            "memory_mb": int(limits.memory_mb),
        }
        with self._lock:
            text, reply = self._request(request, None, MOST_WAITING * limits.seconds + GRACE_SECONDS)
        return _answers(text, reply, limits)

    def close(self) -> None:
        """End the worker process. Using the session again starts a new one."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            try:
                process.wait(0.5)  # a worker ends by itself once its connection is closed
            except subprocess.TimeoutExpired:
                _kill_group(process)

    # --- the worker ----------------------------------------------------------------------------------------------

    def _load(self, data: bytes) -> list[AnswerRow]:
        text, reply = self._request({"do": "load"}, data, LOAD_SECONDS)
        if reply["kind"] != "done" or not text:
            self._abandon()  # a half-loaded program must answer no goal
            raise PrologError(
                "The Prolog process ended while it loaded the program.",
                "load",
                remedy=Remedy("Run {}.", Operation("doctor")),
            )
        rows, _ = _decoded(text)
        return rows

    def _request(self, request: dict[str, Any], payload: bytes | None, seconds: float) -> tuple[bytes, dict[str, Any]]:
        """Send a request and collect its reply. A worker that has died or is late is killed and replaced."""
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
                f"The Prolog process ended or hung ({type(fault).__name__}). The next goal starts a new one.",
                "died",
            ) from None

    def _interrupted(self) -> None:
        """After Ctrl-C, have the worker kill the goal's process; kill a worker that does not confirm it at once."""
        try:
            assert self._connection is not None  # noqa: S101  set by _connected
            self._connection.send_bytes(json.dumps({"do": "cancel"}).encode())
            _reply(self._connection, 0.5)
        except (EOFError, OSError, TimeoutError, KeyboardInterrupt):
            self._abandon()

    def _connected(self, loading: bool) -> Connection:
        """The connection to a worker that has loaded the session's program. Starts a worker if none is running."""
        if self._connection is not None:
            return self._connection
        # Imported for the first goal of Prolog's: most goals need no worker.
        from multiprocessing import Pipe

        from hapax.engine.prolog.isolation import child_command, child_environment

        ours, theirs = Pipe()
        self._process = subprocess.Popen(
            child_command("hapax.engine.prolog.worker", str(theirs.fileno())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # errors come back as rows; nobody reads the banner
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=child_environment(),
            start_new_session=True,  # Ctrl-C reaches this process only, which then tells the worker
        )
        theirs.close()
        self._connection = ours
        try:
            _, reply = _reply(ours, START_SECONDS)
        except TimeoutError:
            self._abandon()
            raise PrologError(
                f"SWI-Prolog has not started in {START_SECONDS:g} seconds. Run the {CALL} again when the "
                f"machine is less busy, or {Operation('doctor')}.",
                "unavailable",
            ) from None
        except (EOFError, OSError):
            reply = {"kind": "unavailable", "message": "its process ended"}
        if reply["kind"] != "ready":
            self._abandon()
            raise PrologError(
                (
                    f"SWI-Prolog does not start: {reply.get('message', '')}. Run {Operation('doctor')} to see "
                    "what to install."
                ),
                "unavailable",
            )
        if self._program is not None and not loading:
            self._load(self._program)
        return ours

    def _abandon(self) -> None:
        """Kill the worker and the goal's process. The next request starts a new worker."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None:
            _kill_group(process)
        if connection is not None:
            connection.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # The group may have ended by itself.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # Else it would stay as a zombie.
    process.wait()


def _reply(connection: Connection, seconds: float) -> tuple[bytes, dict[str, Any]]:
    """The answer text up to the closing reply. Raises TimeoutError when the worker is silent for `seconds`."""
    from hapax.engine.prolog.worker import END

    pieces: list[bytes] = []
    while True:
        # For each message: a goal may stream answers for longer, and the worker watches its time limit.
        if not connection.poll(seconds):
            raise TimeoutError
        message = connection.recv_bytes()
        if message[:1] == END:
            return b"".join(pieces), json.loads(message[1:])
        pieces.append(message[1:])


def _answers(text: bytes, reply: dict[str, Any], limits: QueryLimits) -> GoalAnswers:
    """The rows of a reply. Raises the error with which the goal ended."""
    if reply["kind"] in ("seconds", "memory"):
        raise _exceeded(reply["kind"], limits)
    rows, end = _decoded(text)
    if reply["kind"] == "cancelled" or end is None:
        # The limit of processor time ended it.
        if reply.get("signal") in (signal.SIGPROF, signal.SIGXCPU):
            raise _exceeded("seconds", limits)
        # Prolog aborts when an allocation fails outside its stacks, and where it finds a fault of its own.
        if reply.get("signal") == signal.SIGABRT:
            if reply.get("resident_mb", 0) >= limits.memory_mb * ABORT_SHARE:
                raise _exceeded("memory", limits)
            raise PrologError(
                "SWI-Prolog aborted while it ran the goal. It requested a block of memory that does not fit into "
                f"{limits.memory_mb} MB, or it has a fault of its own. Ask for less at once; if that does not help, "
                "update SWI-Prolog.",
                "aborted",
            )
        raise PrologError(
            "The goal ended its own process and has no answer. Remove the part of the goal that ends the process.",
            "died",
        )
    kind, message = end
    if kind == "limit":
        raise _exceeded(message, limits)
    if kind not in ("done", "truncated"):
        raise _goal_error(kind, message)
    return GoalAnswers(rows, kind == "truncated")


def _goal_error(kind: str, message: str) -> PrologError:
    """The error with which a goal ended, in words. `kind`: Prolog's name of it, or one that `host.pl` gives."""
    if kind == "refused":
        return GoalRefused(f"A goal may not call {message}. {ALLOWED}", kind)
    name, _, fault = message.partition("\t")
    expected, _, value = fault.partition("\t")
    if expected == "acyclic_term":
        return PrologError(
            "An answer contains itself, as X does in X = f(X), and has no end. Change that equation of the goal.", kind
        )
    if kind == "not_a_number":
        return PrologError(
            f'The goal calculates with the text "{_short(message)}", which is no number. Correct the goal, '
            f"or the facts that have the text in place of a number: {Operation('check_rules', kb=True)} names "
            "them (HPX404).",
            "type_error",
        )
    if kind == "evaluation_error" and "zero_divisor" in message:
        return PrologError(
            "The goal divides by zero for some of its values. Leave these out before the division, as N =\\= 0 does.",
            kind,
        )
    if kind == "instantiation_error":
        called = re.match(r"(\S+/\d+): ", message)
        place = f" in {called[1]}" if called else ""
        return PrologError(
            f"The goal needs a value{place} that a variable does not have yet. Put the part of the goal that gives "
            "the value before it.",
            kind,
        )
    if expected:
        return _argument_error(name, expected, value, kind)
    return PrologError(f"Prolog rejected the goal: {_short(message)} ({kind}).", kind)


_EXPECTED = {
    "integer": "a whole number",
    "nonneg": "a whole number from 0 on",
    "not_less_than_zero": "a whole number from 0 on",
    "list": "a list",
}
"""Prolog's types and domains in words."""


def _argument_error(name: str, expected: str, value: str, kind: str) -> PrologError:
    """The error of a predicate or operator that was called with a value that it cannot take."""
    subject = next((indicator for indicator in BUILT_INS if indicator.partition("/")[0] == name), name) or "The goal"
    wanted = _EXPECTED.get(expected, expected)
    # A list without an end is written with a variable, such as `[1|_123]`.
    if expected == "list" and re.search(r"\b_(G?\d+)?\b", value):
        return PrologError(
            f"{subject} needs a list whose items and end are known. Put the part of the goal that gives it before it.",
            kind,
        )
    shown = re.sub(r"(-?\d+)r(\d+)", lambda ratio: str(decimal_of(Fraction(int(ratio[1]), int(ratio[2])))), value)
    return PrologError(
        f"{subject} needs {wanted}, not {_short(shown)}. Correct the value, or the part of the goal that gives it.",
        kind,
    )


def _exceeded(limit: str, limits: QueryLimits) -> LimitExceeded:
    allowed = {
        "seconds": counted(limits.seconds, "second"),
        "inferences": counted(limits.inferences, "inference"),
        "memory": f"{limits.memory_mb} MB of memory",
    }[limit]
    return LimitExceeded(f"The goal needs more than {allowed}.", limit)


def _load_error(faults: list[AnswerRow]) -> PrologError:
    _, line, message = faults[0]
    more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    place = line if isinstance(line, int) and line else None
    without_file = re.sub(r"\S*hapax-prolog-\S+?\.pl(:\d+)*:? ?", "", str(message))  # a temporary file, gone by now
    return PrologError(
        f"The generated program, line {line}: {_short(without_file)}{more}. A rule or value of that line is at fault.",
        "load",
        place,
    )


def _short(message: str) -> str:
    flat = " ".join(message.split())
    return flat if len(flat) <= 400 else flat[:400] + " ..."


def _variable(name: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*", name) or not (name[0].isupper() or name[0] == "_"):
        raise PrologError(f"{name!r} is not a variable name. Begin it with a capital letter.", "variable")
    return name


def _utf8(text: str, subject: str) -> bytes:
    """Encode a text. Raises PrologError for characters that Prolog cannot represent."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as fault:
        raise PrologError(
            f"{subject} contains half a character (a lone surrogate) at {fault.start}. Remove it.", "text"
        ) from None
    if b"\0" in data:
        raise PrologError(f"{subject} contains a NUL character at {text.index(chr(0))}. Remove it.", "text")
    return data


def _check_goal(goal: str) -> None:
    """Reject a goal that would crash Prolog's parser."""
    _utf8(goal, "The goal")
    if len(goal) > MAX_GOAL_CHARACTERS:
        raise PrologError(
            f"The goal has {len(goal)} characters; at most {MAX_GOAL_CHARACTERS} are allowed. Shorten it.", "size"
        )
    # Brackets inside quotes count, too: too strict by a little, and no second tokenizer to get wrong.
    depth = deepest = 0
    for bracket in re.findall(r"[(\[{}\])]", goal):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_GOAL_DEPTH:
        raise PrologError(
            f"The goal nests {deepest} brackets; at most {MAX_GOAL_DEPTH} are allowed. Nest it less deeply.", "size"
        )


# --- reading what host.pl writes ------------------------------------------------------------------------------------


class _CutOffError(Exception):
    """The text ends inside a row or is malformed: its writer was killed, or a goal wrote to standard output."""


def _decoded(data: bytes) -> tuple[list[AnswerRow], tuple[str, str] | None]:
    """The complete rows, and the end mark (kind, message) if there is one. Raises PrologError for too long a number."""
    reader = _PrefixDecoder(data.decode("utf-8", "replace"))
    rows: list[AnswerRow] = []
    try:
        while True:
            if reader.tag() == "e":
                return rows, (str(reader.cell()), str(reader.cell()))
            row = reader.cell()
            rows.append(row.arguments if isinstance(row, PrologTerm) else (row,))
    except (_CutOffError, ValueError):
        # The rows before the damage are complete.
        return rows, None


class _PrefixDecoder:
    """Reads the prefix code of `host.pl`. Each text carries its length, so no value can be taken for structure."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def tag(self) -> str:
        if self.at >= len(self.text):
            raise _CutOffError
        self.at += 1
        return self.text[self.at - 1]

    def cell(self) -> AnswerCell:
        """Read a cell. An explicit stack holds the open terms, because answers may nest deeper than Python's own."""
        open_terms: list[tuple[str, int, list[AnswerCell]]] = []
        while True:
            tag = self.tag()
            if tag in "cl":
                count = self._count()
                # A compound's first cell is its name; a list has none.
                open_terms.append((tag, count + (tag == "c"), []))
            else:
                done = self._plain(tag)
                if not open_terms:
                    return done
                open_terms[-1][2].append(done)
            # A term that is complete is a cell of the term around it, which may be complete with it.
            while len(open_terms[-1][2]) == open_terms[-1][1]:
                tag, _, parts = open_terms.pop()
                whole = PrologTerm(str(parts[0]), tuple(parts[1:])) if tag == "c" else PrologTerm("[]", tuple(parts))
                if not open_terms:
                    return whole
                open_terms[-1][2].append(whole)

    def _plain(self, tag: str) -> AnswerCell:
        if tag in "as":
            return self._counted()
        if tag == "i":
            return _integer(self._until(";"))
        if tag == "f":
            return _float(self._until(";"))
        if tag == "q":
            above, below = map(_integer, self._until(";").split("/"))
            if below <= 0:
                raise _CutOffError
            return decimal_of(Fraction(above, below))
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
            f"An answer contains a number of {len(text)} digits; at most {MAX_NUMBER_DIGITS} are allowed. "
            "Ask for a smaller one.",
            "size",
        )
    return int(text)


def _float(text: str) -> AnswerCell:
    """A float as the shortest decimal that reads back as the same float; infinities and NaN stay terms."""
    # SWI-Prolog writes 1.0Inf and 1.5NaN.
    number = float(text.lower().replace("1.0inf", "inf").replace("1.5nan", "nan"))
    return Decimal(repr(number)) if math.isfinite(number) else PrologTerm(text)
