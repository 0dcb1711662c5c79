"""An interrupted command says what is true of it: what it has stored, and what it has not."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

import hapax

RULES = """
given lives_in(Person, City)
given works_in(Person, City)
oracle is_twin_of(City, City): "[1] is a twin of [2]" / "[1] is not a twin of [2]" / "is [1] a twin of [2]?"
@name commute
@generic none
lives_in(Person X, City A) & works_in(Person X, City B) & A \\= B -> commutes(Person X, City B)
@name guest
lives_in(Person X, City A) & is_twin_of(City A, City B) -> may_visit(Person X, City B)
"""
ROOT = Path(hapax.__file__).resolve().parents[1]
ANSWERS, NOTHING, WHOLE = "answers so far are kept", "Nothing was stored", "all of it was stored or nothing"
COMMANDS = {
    "derive my.rules": NOTHING,
    "derive": NOTHING,
    "import more.csv": WHOLE,
    "data merge other.db": WHOLE,
    "data retract lives_in(ann,rome) --reason moved --rules my.rules": WHOLE,
    "search my.rules --rule guest -m simulated": ANSWERS,
    "query is_twin_of(rome,X) --ask -m simulated --rules my.rules": ANSWERS,
}
"""Commands that wait for another process's lock, with what an interruption leaves."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a knowledge base, another one, rules and facts."""
    (tmp_path / "my.rules").write_text(RULES, "utf-8")
    (tmp_path / "more.csv").write_text("lives_in,bob,oslo\n", "utf-8")
    rules = hapax.parse_rules(RULES)
    for name in ("kb.db", "other.db"):
        with hapax.KnowledgeBase(tmp_path / name) as kb:
            hapax.add_facts(kb, "lives_in", [("ann", "rome"), (name, "rome")], rules)
            hapax.add_facts(kb, "works_in", [("ann", "bari")], rules)
    return tmp_path


@contextmanager
def started(folder: Path, command: str) -> Iterator[subprocess.Popen[str]]:
    """The command, once it has opened the knowledge base."""
    words = [sys.executable, str(ROOT / "cli.py"), *command.split(), "--db", "kb.db"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while not _has_open(process, folder / "kb.db"):
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def _has_open(process: subprocess.Popen[str], file: Path) -> bool:
    opened = Path(f"/proc/{process.pid}/fd")
    try:
        return any(os.path.realpath(entry) == str(file.resolve()) for entry in opened.iterdir())
    except OSError:  # a file was closed in between
        return False


def contents(folder: Path) -> list[str]:
    """All rows of the knowledge base, but for the record of the run that was interrupted."""
    with closing(sqlite3.connect(folder / "kb.db")) as connection:
        return [line for line in connection.iterdump() if "INSERT INTO" in line and '"runs"' not in line]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
@pytest.mark.parametrize(
    ("command", "ending"), [("derive", signal.SIGTERM), *((command, signal.SIGINT) for command in COMMANDS)]
)
def test_a_command_that_waits_says_what_its_interruption_leaves(
    command: str, ending: signal.Signals, folder: Path
) -> None:
    """Only a command that asks models promises answers, and what none promises is not there."""
    before = contents(folder)
    with closing(sqlite3.connect(folder / "kb.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with started(folder, command) as process:
            process.send_signal(ending)
            _, said = process.communicate(timeout=120)

    assert "Interrupted" in said
    assert COMMANDS[command] in " ".join(said.split())
    assert process.returncode == 128 + ending
    assert contents(folder) == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_derivation_that_is_interrupted_leaves_neither_rules_nor_statements(
    folder: Path, ending: signal.Signals
) -> None:
    """An accidental product of large tables is ended in the middle, and what was there before is all there is."""
    rules = hapax.parse_rules(RULES)
    with hapax.KnowledgeBase(folder / "kb.db") as kb:
        for predicate in ("lives_in", "works_in"):
            hapax.add_facts(kb, predicate, [(f"p{number}", f"c{number}") for number in range(8000)], rules)
    product = "lives_in(Person X, City A) & works_in(Person Y, City B) & X \\= Y -> may_meet(Person X, Person Y)"
    (folder / "product.rules").write_text(f"{RULES}@name product\n@generic none\n{product}\n", "utf-8")
    before = contents(folder)
    with started(folder, "derive product.rules --rule product") as process:
        with closing(sqlite3.connect(folder / "kb.db", timeout=0, isolation_level=None)) as other:
            while not _is_locked(other):
                assert process.poll() is None, process.communicate()
        process.send_signal(ending)
        _, said = process.communicate(timeout=120)

    assert NOTHING in said
    assert contents(folder) == before


def _is_locked(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    connection.execute("ROLLBACK")
    time.sleep(0.02)
    return False


def test_a_terminal_shows_what_takes_long(folder: Path) -> None:
    """An import that waits for another process says so with its seconds on a terminal, and what Ctrl-C leaves."""
    screen, terminal = os.openpty()
    words = [sys.executable, str(ROOT / "cli.py"), "import", "more.csv", "--db", "kb.db"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    shown = ""
    with closing(sqlite3.connect(folder / "kb.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=terminal, text=True
        ) as process:
            os.close(terminal)
            while "0:00:0" not in shown:
                assert process.poll() is None, shown
                shown += os.read(screen, 10_000).decode()
            process.send_signal(signal.SIGINT)
            with suppress(OSError):  # the terminal ends with its process
                while more := os.read(screen, 10_000):
                    shown += more.decode()
            assert not process.communicate(timeout=120)[0]
    os.close(screen)

    assert "Importing more.csv" in shown
    assert WHOLE in " ".join(shown.split())
