"""Several searches on one file, signals, a dead Prolog, a reader that has gone, a clock that goes back."""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fault_harness import (
    SEARCH,
    SLOW,
    Command,
    Ended,
    Stage,
    Warm,
    close_stdout,
    die_when_told,
    is_same,
    set_clock_back,
    simulate,
    undisturbed,
    wait_until,
    whole,
    with_rules,
)

import hapax

CLI = Path(__file__).parents[2] / "cli.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stage(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A search that has been played to its end, undisturbed, as `whole`."""
    return undisturbed(warm, tmp_path_factory.mktemp("processes"))


def of_rule(stage: Stage, rule: str) -> Stage:
    """The search of one rule alone, in folders beside the others'."""
    others = {"older_tool", "repair"} - {rule}
    at = [SEARCH.index(one) for one in others]
    kept = [one for number, one in enumerate(SEARCH) if number not in at and number + 1 not in at]
    return Stage(stage.warm, tuple(kept), stage.folder, with_rules)


def runs(database: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM runs ORDER BY rowid")]


def test_two_searches_of_the_same_rules_pay_once(stage: Stage) -> None:
    """Both end well and together send what one would; the file is the one that one would leave."""
    first = stage.started("same", "first", batches=1)
    second = stage.warm.start(stage.command("same", "second"))
    ended = [stage.warm.wait(one) for one in (first, second)]

    assert [one.code for one in ended] == [0, 0], ended
    assert Counter(first.asked() + second.asked()) == Counter(whole(stage).asked())
    assert is_same(stage.database("whole"), stage.database("same"))


def test_two_searches_of_different_rules_leave_what_one_after_the_other_leaves(stage: Stage) -> None:
    """Neither waits for the other's end, and the file is that of the two in turn."""
    tools, repairs = of_rule(stage, "older_tool"), of_rule(stage, "repair")
    for one, name in ((tools, "first"), (repairs, "second")):
        assert one.played("in-turn", name)[1].code == 0
    first = tools.started("beside", "first", batches=1)
    second = repairs.started("beside", "second", batches=1)
    ended = [stage.warm.wait(one) for one in (second, first)]

    assert [one.code for one in ended] == [0, 0], ended
    assert max(Counter(first.asked() + second.asked()).values()) == 1
    assert is_same(stage.database("in-turn"), stage.database("beside"))


def test_who_asks_and_dies_keeps_nobody_out(stage: Stage) -> None:
    """A search killed while it asks leaves its right to ask to the next at once."""
    place = "orphaned"
    told = stage.folder / place / "die"
    asking = partial(simulate, stage.folder / place / "killed.asked", 3, partial(die_when_told, told))
    killed = stage.warm.start(stage.command(place, "killed", asked=asking))
    wait_until(lambda: len(killed.batches()) == 3)
    second = stage.warm.start(stage.command(place, "second"))
    time.sleep(10 * SLOW)  # the second comes to wait
    assert second.batches() == []
    told.touch()

    assert stage.warm.wait(killed).code == -signal.SIGKILL
    assert stage.warm.wait(second).code == 0
    assert Counter(killed.asked() + second.asked()) == Counter(whole(stage).asked() + killed.batches()[2])
    assert is_same(stage.database("whole"), stage.database(place))


def test_who_asks_keeps_no_reader_out(stage: Stage) -> None:
    """While a search asks, the file can be counted, asked and exported."""
    search = stage.started("read", "first", batches=2)
    for arguments in (
        ("data", "stats", "--db", "kb.db"),
        ("query", "is_sealed(M)", "--rules", "world.rules", "--db", "kb.db"),
        ("export", "--db", "kb.db"),
    ):
        ended = stage.warm.run(Command(arguments, search.folder, name=arguments[0]))
        assert ended.code == 0, ended.stderr
    assert stage.warm.wait(search).code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_marks_the_run_as_interrupted(stage: Stage, number: signal.Signals) -> None:
    """Asked to end, a search says so in its run, ends with the signal's exit code, and goes on when asked again."""
    command = stage.started(number.name, "ended")
    os.kill(command.pid, number)
    ended = stage.warm.wait(command)
    (run,) = runs(stage.database(number.name))

    assert ended.code == 128 + number
    assert "Run the same command to go on." in ended.stderr
    assert (run["status"], run["finished"] is not None) == ("interrupted", True)
    stage.check_resumed(command, whole(stage))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_long_derivation(warm: Warm, number: signal.Signals, tmp_path: Path) -> None:
    """Amidst one SELECT of hours, `derive` ends with the signal's exit code and leaves what was derived before."""
    text = "@name {}\n@generic none\n{} -> c(Thing X).\n"
    few = text.format("few", "n(Number A, Thing X) & A < 5")
    many = " & ".join(f"n(Number {name}, Thing X)" for name in "ABCDEFG")
    (tmp_path / "slow.rules").write_text(few + text.format("many", f"{many} & A + B + C + D + E + F + G > 100000"))
    library = hapax.parse_rules(few, "few.rules")
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.add_facts(kb, "n", [(number, "y") for number in range(400)], library)
        hapax.derive(library, kb)
    command = warm.start(Command(("derive", "slow.rules", "--rule", "many", "--db", "kb.db"), tmp_path))
    with closing(sqlite3.connect(tmp_path / "kb.db", timeout=0, isolation_level=None)) as other:
        while is_writable(other):
            time.sleep(0.01)
    time.sleep(0.5)
    os.kill(command.pid, number)

    assert warm.wait(command).code == 128 + number
    stream = io.StringIO()
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.export_statements(kb, library, stream)
    assert len(stream.getvalue().splitlines()) == 5


def is_writable(connection: sqlite3.Connection) -> bool:
    """True if nobody else is writing."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    connection.execute("ROLLBACK")
    return True


def children(pid: int) -> list[int]:
    """The processes that any thread of this one started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_a_dead_prolog_ends_a_goal_clearly(tmp_path: Path) -> None:
    """Whenever the Prolog process of a goal dies, as when memory runs out, the command says so and ends."""
    (tmp_path / "family.rules").write_text("parent(ann, bob).\n", encoding="utf-8")
    goal = "parent(ann, X), length(L, 3), between(1, 99999999999, N), N < 0"
    command = [sys.executable, CLI, "query", goal, "family.rules", "--inferences", "100000000000"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: bool(children(process.pid)))
        os.kill(children(process.pid)[0], signal.SIGKILL)
        _, said = process.communicate()

    assert process.returncode == 1
    assert "process ended" in said


def test_a_reader_that_has_gone_costs_no_answer(stage: Stage) -> None:
    """With its output closed a search is stored all the same, and ends without a traceback."""
    command = stage.command("closed", "alone", close_stdout)
    ended: Ended = stage.warm.run(command)

    assert ended.code in (0, 1)
    assert ended.stderr == ""
    assert is_same(stage.database("whole"), stage.database("closed"))


def test_a_clock_that_goes_back_changes_nothing(stage: Stage) -> None:
    """With an hour less at each look at the clock, the rows are the same, and no run ends before it began."""
    ended = stage.warm.run(stage.command("back", "alone", set_clock_back))
    (run,) = runs(stage.database("back"))

    assert ended.code == 0, ended.stderr
    assert is_same(stage.database("whole"), stage.database("back"))
    assert run["started"] <= run["finished"]
