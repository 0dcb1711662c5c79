"""Runs commands in processes that can be ended at any point of their writing, and tells what they asked and left.

A warm process has imported everything and forks one child for each command, so that hundreds of deaths take seconds.
What happens to a child is a list of functions of this module, called in it before the command: nothing in the program
itself knows of them. They watch SQLite from outside (by its trace), and the models at the methods of their protocol.
"""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from prolog_fixture import WorkerSource

import hapax
from hapax import cli
from tools.comparison import differences

ROOT = Path(__file__).parent.parent
TESTS = Path(__file__).parent

BATCHES_IN_FLIGHT = 1
"""Batches of requests that a death may cost: answered, and not in the file yet."""

COMMITTING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP", "PRAGMA journal_mode")
"""First words of statements that change the file by themselves where no transaction is open."""

MANY = " of rows: "
"""Follows a commit in the notes that rows of several statements go into the file by, before their number."""

MOST_DEATHS = 20
"""Times that a command is played anew because its threads made other commits than before."""

WRITTEN_TABLE = re.compile(r"(INSERT|REPLACE)\b.*?\bINTO\s+\S+|UPDATE\s+\S+|DELETE\s+FROM\s+\S+", re.S)

SLOW = 0.03
"""Seconds that a slowed model takes for a batch."""

TRACEBACK = 99
"""The exit code here of a command that ended by an error it does not know."""

Fault = Callable[[], None]

RULES = """
functional was_invented_in(Tool, Year): "the [1] was invented in [2]" / "the [1] was not invented in [2]" / "?".
oracle is_part_of(Part, Machine): "[1] is part of [2]" / "[1] is not part of [2]" / "?".
oracle is_sealed(Machine): "[1] is sealed" / "[1] is not sealed" / "?".
@name older_tool
@generic X
owns(Person X, Tool A) & was_invented_in(Tool A, Year V) & was_invented_in(Tool B, Year W) & W < V
  -> could_have_owned(Person X, Tool B).
@name fits
is_part_of(Part A, Machine B) -> fits_into(Part A, Machine B).
@name repair
makes(Person X, Part A) & fits_into(Part A, Machine B) & not is_sealed(Machine B) -> can_mend(Person X, Machine B).
"""
SEARCH = (
    *("search", "world.rules", "--rule", "older_tool", "--rule", "repair", "--db", "kb.db", "--no-progress"),
    *("-m", "simulated:12", "--evaluator", "simulated:12", "--beam", "2", "--calls", "1", "--values", "3"),
)
"""Rules with a derived and a functional predicate, a negation and a comparison, searched at both ends."""


# --- the test's side -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """The end of a command: its exit code, or minus the signal that killed it, and what it printed."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Command:
    """A command of the command line in a child of its own. `folder` is where it runs and where it leaves its notes."""

    arguments: tuple[str, ...]
    folder: Path
    faults: tuple[Fault, ...] = ()
    name: str = "command"
    pid: int = 0

    def file(self, kind: str) -> Path:
        return self.folder / f"{self.name}.{kind}"

    def batches(self) -> list[list[str]]:
        """The requests that models answered, batch by batch, as the journal words them."""
        log = self.file("asked")
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    def asked(self) -> list[str]:
        return [request for batch in self.batches() for request in batch]

    def points(self) -> list[str]:
        """The commits that the command came to, in order, each with the tables that it wrote to."""
        notes = self.file("points")
        return notes.read_text("utf-8").splitlines() if notes.exists() else []


class Warm:
    """The process that forks the commands. Use it as a context manager."""

    def __enter__(self) -> Warm:
        self._connection, theirs = Pipe()
        path = os.pathsep.join([str(ROOT), str(TESTS)])
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"import fault_harness; fault_harness.serve({theirs.fileno()})"],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
        )
        theirs.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.wait(10)

    def start(self, command: Command) -> Command:
        command.folder.mkdir(parents=True, exist_ok=True)
        self._connection.send(("start", command))
        command.pid = self._connection.recv()
        return command

    def wait(self, command: Command) -> Ended:
        self._connection.send(("wait", command.pid))
        code = self._connection.recv()
        return Ended(code, *(command.file(kind).read_text("utf-8") for kind in ("stdout", "stderr")))

    def run(self, command: Command) -> Ended:
        return self.wait(self.start(command))


@dataclass
class Stage:
    """One command line, played again and again: undisturbed, and with faults, each time in a folder of its own.

    `prepare` puts into a folder what the command begins with; the knowledge base is always `kb.db`.
    """

    warm: Warm
    arguments: tuple[str, ...]
    folder: Path
    prepare: Callable[[Path], None] = lambda folder: None

    def command(self, place: str, name: str, *faults: Fault, asked: Fault | None = None) -> Command:
        """The command in the folder of this name; `asked`: the simulated model instead of the plain one."""
        folder = self.folder / place
        if not folder.exists():
            folder.mkdir(parents=True)
            self.prepare(folder)
        model = asked or partial(simulate, folder / f"{name}.asked")
        return Command(self.arguments, folder, (*faults, model), name)

    def database(self, place: str) -> Path:
        return self.folder / place / "kb.db"

    def played(self, place: str, name: str = "whole") -> tuple[Command, Ended]:
        """The command to its end, its commits counted."""
        command = self.command(place, name, partial(note_points, self.folder / place / f"{name}.points"))
        return command, self.warm.run(command)

    def killed_by(self, place: str, asked: Fault) -> Command:
        """The command up to the death that its model brings about."""
        command = self.command(place, "killed", asked=asked)
        assert self.warm.run(command).code == -signal.SIGKILL, place
        return command

    def started(self, place: str, name: str, *faults: Fault, batches: int = 4) -> Command:
        """The command, slowed down, at the moment when it has asked so many batches."""
        slowly = partial(simulate, self.folder / place / f"{name}.asked", slow=SLOW)
        command = self.warm.start(self.command(place, name, *faults, asked=slowly))
        while len(command.batches()) < batches:
            time.sleep(SLOW / 10)
        return command

    def killed(self, number: int, points: Sequence[str], *moments: str) -> list[Command]:
        """The command up to its death at this commit, each time at another moment, in folders named after them.

        Until then it made the commits of `points`: where its threads made others first, or fewer, it is played anew.
        """
        deaths: dict[str, Command] = {}
        for _ in range(MOST_DEATHS):
            dying = {moment: self._dying(number, moment) for moment in moments if moment not in deaths}
            for moment, command in dying.items():
                is_killed = self.warm.wait(command).code == -signal.SIGKILL
                noted = command.points()
                if is_killed and noted == list(points[: len(noted)]):
                    deaths[moment] = command
            if len(deaths) == len(moments):
                return [deaths[moment] for moment in moments]
        raise AssertionError(f"in {MOST_DEATHS} plays the command never came to commit {number} of {points}")

    def _dying(self, number: int, moment: str) -> Command:
        place = f"{moment}-{number}"
        if (self.folder / place).exists():
            shutil.rmtree(self.folder / place)
        death = partial(die_at, self.folder / place / "killed.points", moment, number)
        return self.warm.start(self.command(place, "killed", death))

    def check_resumed(self, killed: Command, whole: Command, code: int = 0) -> None:
        """Go on from what a killed command left: it ends as the whole one, and no request kept is sent again."""
        place = f"{killed.folder.name}-resumed"
        shutil.copytree(killed.folder, self.folder / place)
        database = self.database(place)
        in_flight, known = lost(killed, database), journal(database)
        resumed, ended = self.played(place, "resumed")
        assert ended.code == code, (place, ended.stderr)
        assert not known.intersection(resumed.asked()), place
        assert Counter(killed.asked() + resumed.asked()) == Counter(whole.asked() + in_flight), place
        assert is_same(self.database("whole"), database), place

    def check_every_commit(self, code: int = 0, *, at_every_row: bool = False) -> int:
        """Kill the command at each commit that it makes, and play it to its end. Gives the number of commits.

        Killed before a commit, or amidst its rows, it leaves nothing of it; killed after it, all of it: the same, row
        by row, as when killed before the next one. From there it ends as if nothing had been. `at_every_row`: within
        a commit it is killed after each of its rows, not after the first alone.
        """
        whole, ended = self.played("whole")
        assert ended.code == code, ended.stderr
        points = whole.points()
        for number, point in enumerate(points, 1):
            rows = int(point.partition(MANY)[2] or 1)
            amidst = [f"within-{row}" for row in range(1, rows if at_every_row else min(rows, 2))]
            before, after, *_ = self.killed(number, points, "before", "after", *amidst)
            if number > 1:
                assert is_same(self.database(f"after-{number - 1}"), self.database(f"before-{number}")), number
            for moment in amidst:
                assert is_same(self.database(f"before-{number}"), self.database(f"{moment}-{number}")), (number, moment)
            self.check_resumed(before, whole, code)
        self.check_resumed(after, whole, code)
        return len(points)


def undisturbed(warm: Warm, folder: Path) -> Stage:
    """A search in the folder that was played to its end, undisturbed, under the name `whole`."""
    stage = Stage(warm, SEARCH, folder, with_rules)
    _, ended = stage.played("whole")
    assert ended.code == 0, ended.stderr
    return stage


def whole(stage: Stage) -> Command:
    """The undisturbed search of the stage."""
    return stage.command("whole", "whole")


def wait_until(happens: Callable[[], bool], seconds: float = 60.0) -> None:
    """Look again and again; fails where it does not happen."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(SLOW / 10)


def is_same(first: Path, second: Path) -> bool:
    """True if two knowledge bases differ in nothing but times; a file that is no knowledge base yet counts as empty."""
    made = (is_made(first), is_made(second))
    return not any(differences(first, second).values()) if all(made) else not any(made)


def journal(database: Path) -> set[str]:
    """The requests whose answers the file holds, or the one beside it, as `Command.asked` words them."""
    if not is_made(database):
        return set()
    with closing(sqlite3.connect(database)) as connection:
        kept = [request for (request,) in connection.execute("SELECT request FROM calls")]
    return {worded(json.loads(request)) for request in (*kept, *beside(database))}


def beside(database: Path) -> list[str]:
    """The requests whose answers are in the file beside a knowledge base, each in a line as a row of `calls`."""
    answers = database.with_name(f"{database.name}-answers")
    return [json.loads(line)[3] for line in answers.read_text("ascii").splitlines()] if answers.exists() else []


def is_made(database: Path) -> bool:
    """True if the file exists and has its tables."""
    if not database.exists():
        return False
    with closing(sqlite3.connect(database)) as connection:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'calls'").fetchone()[0])


def lost(command: Command, database: Path) -> list[str]:
    """Requests that were answered and whose answers the file does not hold. Fails for more than were in flight."""
    kept = journal(database)
    batches = command.batches()
    gone = [number for number, batch in enumerate(batches) if not kept.issuperset(batch)]
    assert all(number >= len(batches) - BATCHES_IN_FLIGHT for number in gone)
    return [request for number in gone for request in batches[number] if request not in kept]


def with_rules(folder: Path) -> None:
    """Write the files that a search begins with."""
    (folder / "world.rules").write_text(RULES, encoding="utf-8")


# --- the child's side: what happens to a command ---------------------------------------------------------------------


@dataclass
class _Points:
    """Counts the commits of this process, notes each in a file, and calls `at` around them."""

    notes: Path
    at: Callable[[str, int], None]
    count: int = 0
    rows: int = 0
    tables: list[str] = field(default_factory=list)
    open_point: bool = False

    def begins(self, statement: str, connection: sqlite3.Connection) -> None:
        """SQLite is about to run this statement."""
        self.ended()
        writes = statement.startswith(COMMITTING)
        if statement.startswith("BEGIN"):
            self._clear()
        elif writes and connection.in_transaction:
            self.rows += 1
            self._note_table(statement)
            if self.rows > 1:  # the rows before this one are written
                self.at(f"within-{self.rows - 1}", self.count + 1)
        elif writes or statement == "COMMIT":
            self.at("before", self.count + 1)
            self.count += 1
            self.open_point = True
            self._note_table(statement)
            with self.notes.open("a", encoding="utf-8") as stream:
                stream.write(", ".join(self.tables) + (f"{MANY}{self.rows}" if self.rows > 1 else "") + "\n")
            self._clear()

    def _note_table(self, statement: str) -> None:
        words = WRITTEN_TABLE.match(statement)
        changed = words[0] if words else statement.split(maxsplit=1)[0]
        if changed not in self.tables:
            self.tables.append(changed)

    def _clear(self) -> None:
        self.rows = 0
        self.tables = []

    def ended(self) -> None:
        """The statement that commits is over."""
        if self.open_point:
            self.open_point = False
            self.at("after", self.count)


def watch(notes: Path, at: Callable[[str, int], None]) -> None:
    """Call `at("before" | "after", number)` around the commits of every connection, and `at("within-<rows>", number)`
    between the rows of one."""
    points = _Points(notes, at)

    class Traced(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            cursor = super().execute(*arguments)
            points.ended()
            return cursor

        def executemany(self, *arguments: Any) -> sqlite3.Cursor:
            cursor = super().executemany(*arguments)
            points.ended()
            return cursor

    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **{"factory": Traced, **options})
        connection.set_trace_callback(partial(points.begins, connection=connection))
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]  # the same arguments


def note_points(notes: Path) -> None:
    """Only count."""
    watch(notes, lambda place, number: None)


def die_at(notes: Path, place: str, number: int) -> None:
    """SIGKILL before or after the commit with this number, or within its transaction, when so many rows are written."""
    watch(notes, lambda *here: os.kill(os.getpid(), signal.SIGKILL) if here == (place, number) else None)


def simulate(log: Path, after: int | None = None, fault: Fault | None = None, slow: float = 0.0) -> None:
    """The simulated model writes each batch it answered to the log, and from there to the disk.

    `fault` happens when so many batches are answered and noted; `slow`: seconds that each takes.
    """
    model: Any = type(hapax.open_models("simulated", library=hapax.parse_rules(RULES)).knowledge)
    count = 0

    def noted(method: Callable[..., Any], wording: Callable[..., list[Any]]) -> Callable[..., Any]:
        def asked(self: Any, requests: Sequence[Any], *parameters: Any) -> Any:
            nonlocal count
            answers = method(self, requests, *parameters)
            line = json.dumps([worded(request) for request in wording(requests, *parameters)]) + "\n"
            with log.open("a", encoding="utf-8") as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
            time.sleep(slow)
            count += 1
            if fault is not None and count == after:
                fault()
            return answers

        return asked

    for name, wording in (
        ("generate", lambda several, given: [{**one.content, "parameters": asdict(given)} for one in several]),
        ("probabilities", lambda claims: list(map(claim_request, claims))),
        ("log_likelihoods", lambda texts: [{"text": text} for text in texts]),
    ):
        setattr(model, name, noted(getattr(model, name), wording))


def claim_request(claim: Any) -> dict[str, Any]:
    """A claim as the journal has it: with its predicate or data type, if it says what it states."""
    return {"claim": claim, "about": claim.about} if hasattr(claim, "about") else {"claim": claim}


def die() -> None:
    """SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_when_told(told: Path) -> None:
    """SIGKILL as soon as there is this file."""
    wait_until(told.exists)
    die()


def fill_disk() -> None:
    """From now on the database cannot grow."""
    for connection in _CONNECTIONS:
        with suppress(sqlite3.ProgrammingError):  # it is closed
            connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size for the least


def remember_connections() -> None:
    """Keep track of connections, which `fill_disk` needs."""
    connect = sqlite3.connect

    def remembered(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        _CONNECTIONS.append(connection)
        return connection

    sqlite3.connect = remembered  # type: ignore[assignment]  # the same arguments


_CONNECTIONS: list[sqlite3.Connection] = []


def limit_files(size: int) -> None:
    """No file, such as the WAL, may grow beyond so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def set_clock_back() -> None:
    """The time of day goes back an hour whenever somebody looks at it."""
    import datetime as dt

    hours = 0

    class Backwards(dt.datetime):
        @classmethod
        def now(cls, zone: dt.tzinfo | None = None) -> Any:
            nonlocal hours
            hours += 1
            return dt.datetime.fromtimestamp(2_000_000_000, zone) - dt.timedelta(hours=hours)

    true = dt.datetime
    for one in list(sys.modules.values()):
        if getattr(one, "datetime", None) is true:
            one.datetime = Backwards  # type: ignore[attr-defined]
    time.time = lambda: Backwards.now(dt.UTC).timestamp()  # type: ignore[no-any-return]


def close_stdout() -> None:
    """Whoever read what the command prints has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    os.close(writing)


def worded(request: Any) -> str:
    return json.dumps(request, sort_keys=True)


# --- the warm process ------------------------------------------------------------------------------------------------


def serve(descriptor: int) -> None:
    """Fork a child for each command that comes, until the other side is gone."""
    connection = Connection(descriptor)
    # A detached shell may ignore SIGINT, and nohup ignores SIGHUP; both is inherited, and the tests send both.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with WorkerSource() as source:
        subprocess.Popen = source.popen()  # type: ignore[misc]
        warm_up()
        gc.freeze()  # what is never looked at stays shared with the children
        while True:
            try:
                what, told = connection.recv()
            except EOFError:
                return
            if what == "wait":
                connection.send(os.waitstatus_to_exitcode(os.waitpid(told, 0)[1]))
            elif child := os.fork():
                connection.send(child)
            else:
                connection.close()
                os._exit(obey(told))


def warm_up() -> None:
    """Import and build what commands import and build when they first need it, by a search that leaves nothing."""
    print_to(Path(os.devnull), Path(os.devnull))
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        with_rules(Path(folder))
        os.chdir(folder)
        obeyed(SEARCH)
        obeyed(("query", "is_sealed(a)", "--rules", "world.rules", "--ask", "-m", "simulated", "--db", "kb.db"))
        os.chdir(here)


def obey(command: Command) -> int:
    """The child: the command, its output in files."""
    print_to(command.file("stdout"), command.file("stderr"))
    os.chdir(command.folder)
    return obeyed(command.arguments, command.faults)


def obeyed(arguments: Sequence[str], faults: Sequence[Fault] = ()) -> int:
    code: Any = 1
    try:
        for fault in faults:
            fault()
        cli.main(arguments, prog_name="hapax")
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001  a traceback is what no command may end with; the test sees it
        traceback.print_exc()
        code = TRACEBACK
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return int(code or 0)


def print_to(stdout: Path, stderr: Path) -> None:
    for descriptor, path in ((1, stdout), (2, stderr)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(file, descriptor)
        os.close(file)
