"""Searches that die, run beside each other or lose their disk: nothing is lost, and nothing asked twice."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
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
    beside,
    close_stdout,
    die,
    die_when_told,
    fill_disk,
    is_same,
    journal,
    limit_files,
    lost,
    remember_connections,
    set_clock_back,
    simulate,
    undisturbed,
    wait_until,
    whole,
    with_rules,
)
from money_fixture import RULES as MONEY
from money_fixture import WORLD
from openai_fake import FakeServer, answered
from papers_fixture import fill_csv

import hapax

# --- kills ------------------------------------------------------------------------------------------------------------


pytestmark = pytest.mark.slow

ROUNDS_LEFT = 3
"""The exit code of a search whose requests wait for another round."""

FACTS = "predicate,argument1,argument2\nowns,Ada,plough\nowns,Bob,loom\nis_sealed,radio,\n"


@pytest.fixture(scope="module")
def searched(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rules and what a search of them left."""
    return undisturbed(warm, tmp_path_factory.mktemp("searched")).folder / "whole"


@pytest.mark.timeout(900)  # it plays the search more than 200 times
def test_a_search_survives_death_at_every_commit(warm: Warm, tmp_path: Path) -> None:
    """Whichever commit of a search is its last, all statements, scores and verdicts come out the same."""
    commits = Stage(warm, SEARCH, tmp_path, with_rules).check_every_commit()

    assert commits > 40


def test_a_small_search_survives_death_at_every_row(warm: Warm, tmp_path: Path) -> None:
    """Whichever row is the last that it writes before a commit, nothing of that commit is in the file."""
    model = ("-m", "simulated:12", "--evaluator", "simulated:12", "--beam", "1", "--calls", "1", "--values", "1")
    search = ("search", "world.rules", "--rule", "fits", "--db", "kb.db", "--no-progress", *model)

    assert Stage(warm, search, tmp_path, with_rules).check_every_commit(at_every_row=True) > 10


def test_a_search_survives_death_between_answer_and_commit(warm: Warm, tmp_path: Path) -> None:
    """Killed when a batch is answered and not yet kept, whichever batch it is, it asks for that one again."""
    stage = Stage(warm, SEARCH, tmp_path, with_rules)
    whole, _ = stage.played("whole")
    batches = whole.batches()
    for number, batch in enumerate(batches, 1):
        place = f"answered-{number}"
        killed = stage.killed_by(place, partial(simulate, tmp_path / place / "killed.asked", number, die))
        assert sorted(lost(killed, stage.database(place))) == sorted(batch)
        stage.check_resumed(killed, whole)


def test_a_search_that_dies_again_and_again_comes_to_its_end(warm: Warm, tmp_path: Path) -> None:
    """Killed at the second batch of each play, it goes on by one batch a time, and in the end has nothing to ask."""
    stage = Stage(warm, SEARCH, tmp_path, with_rules)
    whole, _ = stage.played("whole")
    known = set[str]()
    for number in range(1, 2 * len(whole.batches())):
        dying = partial(simulate, tmp_path / "mortal" / f"{number}.asked", 2, die)
        mortal = stage.command("mortal", f"{number}", asked=dying)
        ended = warm.run(mortal)
        assert not known.intersection(mortal.asked()), number
        known = journal(stage.database("mortal"))
        if not ended.code:
            break
        assert ended.code == -signal.SIGKILL, ended.stderr

    assert number >= len(whole.batches())
    assert is_same(stage.database("whole"), stage.database("mortal"))
    again, ended = stage.played("mortal", "again")
    assert (ended.code, again.asked()) == (0, [])


def beginning_with(kb: Path, **files: str) -> Callable[[Path], None]:
    """Folders begin with this knowledge base and these files, named with a `_` for the full stop."""

    def prepare(folder: Path) -> None:
        with_rules(folder)
        shutil.copy(kb / "kb.db", folder)
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")

    return prepare


def test_an_import_survives_death_at_every_commit(warm: Warm, searched: Path, tmp_path: Path) -> None:
    """Facts of a file are all there or not there at all, and a second import mends it."""
    given = beginning_with(searched, facts_csv=FACTS)

    assert Stage(warm, ("import", "facts.csv", "--db", "kb.db"), tmp_path, given).check_every_commit() >= 1


def test_a_merge_survives_death_at_every_commit(warm: Warm, searched: Path, tmp_path: Path) -> None:
    """A merge into a new file, which it makes first, is whole or not there."""

    def prepare(folder: Path) -> None:
        shutil.copy(searched / "kb.db", folder / "other.db")

    assert Stage(warm, ("data", "merge", "other.db", "--db", "kb.db"), tmp_path, prepare).check_every_commit() >= 3


def test_a_question_survives_death_at_every_commit(warm: Warm, searched: Path, tmp_path: Path) -> None:
    """`query --ask` keeps what it paid for, and asks for no more of it the second time."""
    goal = ("query", "fits_into(Part, reliri), \\+ is_sealed(reliri)", "--rules", "world.rules", "--ask")
    stage = Stage(warm, (*goal, "-m", "simulated:12", "--db", "kb.db"), tmp_path, beginning_with(searched))

    assert stage.check_every_commit() >= 5


def test_an_import_of_votes_survives_death_at_every_commit(warm: Warm, searched: Path, tmp_path: Path) -> None:
    """The votes of a sheet are all there or not there at all."""
    export = ("votes", "export", "statements", "--format", "csv", "--voter", "ann", "--db", "kb.db", "--out", ".")
    shutil.copytree(searched, tmp_path / "sheets")
    _, ended = Stage(warm, export, tmp_path).played("sheets", "export")
    assert ended.code == 0, ended.stderr
    sheet = next((tmp_path / "sheets").glob("statements*.csv"))
    fill_csv(sheet, lambda *_: "yes")

    def prepare(folder: Path) -> None:
        shutil.copy(searched / "kb.db", folder)
        shutil.copy(sheet, folder / "sheet.csv")

    command = ("votes", "import", "sheet.csv", "--db", "kb.db")

    assert Stage(warm, command, tmp_path / "votes", prepare).check_every_commit() >= 1


def test_a_derivation_survives_death_at_every_commit(warm: Warm, tmp_path: Path) -> None:
    """Killed before its commit, `derive` leaves what was derived before, and told as out of date; then it mends it."""
    rules = "@name join\n@generic none\na(Thing X, Thing Y) & b(Thing Y, Thing Z) -> c(Thing X, Thing Z).\n"
    rules += "@name on\n@generic none\nc(Thing X, Thing Y) & c(Thing Y, Thing Z) -> c(Thing X, Thing Z).\n"
    library = hapax.parse_rules(rules, "join.rules")

    def add(kb: hapax.KnowledgeBase, first: int) -> None:
        for predicate in "ab":
            hapax.add_facts(kb, predicate, [(str(one), str(one + 1)) for one in range(first, first + 5)], library)

    def statements(place: str) -> list[str]:
        stream = io.StringIO()
        with hapax.KnowledgeBase(stage.database(place)) as kb:
            hapax.export_statements(kb, library, stream)
        return stream.getvalue().splitlines()

    def prepare(folder: Path) -> None:
        (folder / "join.rules").write_text(rules, encoding="utf-8")
        with hapax.KnowledgeBase(folder / "kb.db") as kb:
            add(kb, 0)
            hapax.derive(library, kb)
            add(kb, 5)

    stage = Stage(warm, ("derive", "join.rules", "--rule", "join", "--rule", "on", "--db", "kb.db"), tmp_path, prepare)
    commits = stage.check_every_commit()
    whole = statements("whole")
    stats_of = ("data", "stats", "--db", "kb.db")
    stats = [warm.run(Command(stats_of, tmp_path / "whole", name="told")).stdout]

    assert commits >= 1
    assert len(whole) > 10
    for number in range(1, commits + 1):
        for place in (f"before-{number}", f"after-{number}"):
            if place.startswith("before") or number < commits:
                assert statements(place) == []
        assert statements(f"before-{number}-resumed") == whole
        stats.append(warm.run(Command(stats_of, tmp_path / f"before-{number}-resumed", name="told")).stdout)
    assert statements(f"after-{commits}") == statements(f"after-{commits}-resumed") == whole
    assert len(set(stats)) == 1


def test_an_import_of_batch_results_survives_death_at_every_commit(warm: Warm, tmp_path: Path) -> None:
    """Results of a batch are taken in whole, and what is still missing is queued as it would have been."""
    alias = {"model_id": "small", "model_name": "tiny", "api_base": "http://127.0.0.1:9/v1", "logprobs": "echo"}
    given = {"money.rules": MONEY, "models.yaml": json.dumps([alias])}

    def prepare(folder: Path) -> None:
        for name, text in given.items():
            (folder / name).write_text(text, encoding="utf-8")

    search = ("search", "money.rules", "-m", "openai:small", "--aliases", "models.yaml", "--db", "kb.db")
    queueing = Stage(warm, (*search, "--no-progress", "--queue", "next.jsonl"), tmp_path / "first", prepare)
    command, ended = queueing.played("whole")
    assert ended.code == ROUNDS_LEFT, ended.stderr
    results = tmp_path / "answered.jsonl"
    answered(command.folder / "next.jsonl", results, FakeServer(WORLD))
    given["answered.jsonl"] = results.read_text("utf-8")
    taking = (*queueing.arguments, "--results", "answered.jsonl")

    assert Stage(warm, taking, tmp_path / "second", prepare).check_every_commit(ROUNDS_LEFT) >= 5


# --- disk -------------------------------------------------------------------------------------------------------------


STEPS = 4
"""Number of sizes that are tried."""

SMALL = 40_000
"""Bytes: less than an export here has, more than the index of a WAL."""


@pytest.fixture(scope="module")
def stage(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A search that has been played to its end, undisturbed, as `whole`."""
    return undisturbed(warm, tmp_path_factory.mktemp("disk"))


def spread(least: int, most: int) -> list[int]:
    return sorted({least + (most - least) * step // STEPS for step in range(STEPS)})


def test_a_full_disk_ends_a_search_at_once(stage: Stage) -> None:
    """Whichever answers the disk is full at, the search says so, loses none of them, and goes on once it can."""
    kept_beside = 0
    for number in range(1, len(whole(stage).batches()) + 1):
        place = f"full-{number}"
        notes = stage.folder / place / "full.asked"
        command = stage.command(place, "full", remember_connections, asked=partial(simulate, notes, number, fill_disk))
        ended = stage.warm.run(command)
        if ended.code == 0:  # what was still to be written fits into the pages that the file has
            assert is_same(stage.database("whole"), stage.database(place)), place
            continue
        assert "kb.db: the disk is full" in ended.stderr
        assert "Free some space and run the same command again" in ended.stderr
        assert lost(command, stage.database(place)) == []
        kept_beside += len(beside(stage.database(place)))
        stage.check_resumed(command, whole(stage))

    assert kept_beside > 0


def test_files_that_may_not_grow_end_a_search_at_once(stage: Stage) -> None:
    """A limit on the size of files, at which writes fail within a commit, is told and costs the answers in flight."""
    for size in spread(100_000, 400_000):
        place = f"bytes-{size}"
        command = stage.command(place, "full", partial(limit_files, size))
        ended = stage.warm.run(command)
        assert ended.code == 1, (place, ended.stderr)
        assert "kb.db: the disk" in ended.stderr
        assert "run the same command again" in ended.stderr
        stage.check_resumed(command, whole(stage))


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small disk of its own, where this user may have one."""
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root may mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_an_export_on_a_full_disk_leaves_no_half_file(stage: Stage, tmp_path: Path) -> None:
    """Where an export or a report cannot be written whole, the file of that name is still the earlier one."""
    facts = tmp_path / "facts.csv"
    facts.write_text("".join(f"owns,Ada,plough number {number}\n" for number in range(2000)), encoding="utf-8")
    shutil.copy(stage.database("whole"), tmp_path)
    assert stage.warm.run(Command(("import", "facts.csv", "--db", "kb.db"), tmp_path)).code == 0
    for arguments in (("export", "--format", "jsonl"), ("report", "--rules", str(stage.folder / "whole"))):
        kept = tmp_path / arguments[0]
        kept.mkdir()
        (kept / "out").write_text("earlier", encoding="utf-8")
        command = Command((*arguments, "--db", str(tmp_path / "kb.db"), "-o", "out"), kept)
        ended = stage.warm.run(replace(command, faults=(partial(limit_files, SMALL),)))
        assert ended.code == 1, ended.stderr
        assert "out: it cannot be written" in ended.stderr
        assert (kept / "out").read_text("utf-8") == "earlier"
        assert [path.name for path in kept.iterdir() if path.name.startswith(".")] == []

        assert stage.warm.run(command).code == 0
        assert (kept / "out").stat().st_size > SMALL


def test_a_disk_that_may_not_be_written_is_told(stage: Stage, tmp_path: Path) -> None:
    """On a read-only disk a search ends with the remedy and asks nothing; counting and asking stored facts work."""
    with mounted(tmp_path / "disk") as disk:
        for name in ("world.rules", "kb.db"):
            (disk / name).write_bytes((stage.folder / "whole" / name).read_bytes())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        notes = tmp_path / "notes"
        files = {name: str(disk / name) for name in ("world.rules", "kb.db")}
        search = tuple(files.get(one, one) for one in SEARCH)
        ended = stage.warm.run(Command((*search, "--seed", "7"), notes, (partial(simulate, notes / "x.asked"),)))
        stats = stage.warm.run(Command(("data", "stats", "--db", files["kb.db"]), notes))
        query = ("query", "is_sealed(M)", "--rules", files["world.rules"], "--db", files["kb.db"])
        told = stage.warm.run(Command(query, notes))

    assert (ended.code, stats.code, told.code) == (1, 0, 0), (ended.stderr, stats.stderr, told.stderr)
    # SQLite opens a database with a WAL only where it can create the index beside it.
    assert "the file cannot be opened or created" in ended.stderr
    assert not (notes / "x.asked").exists()


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another process's long write."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=10)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def test_a_search_waits_for_a_lock_that_goes(stage: Stage) -> None:
    """A file that another process locks for a while, in the middle of a search, only delays it."""
    command = stage.started("delayed", "slowed")
    with locked(stage.database("delayed")):
        time.sleep(4 * SLOW)
        asked = len(command.batches())
        time.sleep(4 * SLOW)
        assert len(command.batches()) <= asked + 1
    ended = stage.warm.wait(command)

    assert ended.code == 0, ended.stderr
    assert lost(command, stage.database("delayed")) == []


def test_commands_give_up_behind_a_lock_that_stays(stage: Stage, tmp_path: Path) -> None:
    """After a minute a search ends with the reason, and loses what was in flight at most; an import, too."""
    facts = tmp_path / "facts.csv"
    facts.write_text("owns,Ada,plough\n", encoding="utf-8")
    search = stage.started("locked", "slowed")
    database = stage.database("locked")
    with locked(database):
        given = stage.warm.start(Command(("import", str(facts), "--db", str(database)), tmp_path))
        ended = [stage.warm.wait(command) for command in (search, given)]

    for command in ended:
        assert command.code == 1
        assert "another process has been writing for a long time" in command.stderr
    stage.check_resumed(search, whole(stage))


# --- processes --------------------------------------------------------------------------------------------------------


CLI = Path(__file__).parents[2] / "cli.py"


@pytest.fixture(scope="module")
def processes_stage(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A search that has been played to its end, undisturbed, as `whole`."""
    return undisturbed(warm, tmp_path_factory.mktemp("processes"))


def of_rule(processes_stage: Stage, rule: str) -> Stage:
    """The search of one rule alone, in folders beside the others'."""
    others = {"older_tool", "repair"} - {rule}
    at = [SEARCH.index(one) for one in others]
    kept = [one for number, one in enumerate(SEARCH) if number not in at and number + 1 not in at]
    return Stage(processes_stage.warm, tuple(kept), processes_stage.folder, with_rules)


def runs(database: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM runs ORDER BY rowid")]


def test_two_searches_of_the_same_rules_pay_once(processes_stage: Stage) -> None:
    """Both end well and together send what one would; the file is the one that one would leave."""
    first = processes_stage.started("same", "first", batches=1)
    second = processes_stage.warm.start(processes_stage.command("same", "second"))
    ended = [processes_stage.warm.wait(one) for one in (first, second)]

    assert [one.code for one in ended] == [0, 0], ended
    assert Counter(first.asked() + second.asked()) == Counter(whole(processes_stage).asked())
    assert is_same(processes_stage.database("whole"), processes_stage.database("same"))


def test_two_searches_of_different_rules_leave_what_one_after_the_other_leaves(processes_stage: Stage) -> None:
    """Neither waits for the other's end, and the file is that of the two in turn."""
    tools, repairs = of_rule(processes_stage, "older_tool"), of_rule(processes_stage, "repair")
    for one, name in ((tools, "first"), (repairs, "second")):
        assert one.played("in-turn", name)[1].code == 0
    first = tools.started("beside", "first", batches=1)
    second = repairs.started("beside", "second", batches=1)
    ended = [processes_stage.warm.wait(one) for one in (second, first)]

    assert [one.code for one in ended] == [0, 0], ended
    assert max(Counter(first.asked() + second.asked()).values()) == 1
    assert is_same(processes_stage.database("in-turn"), processes_stage.database("beside"))


def test_who_asks_and_dies_keeps_nobody_out(processes_stage: Stage) -> None:
    """A search killed while it asks leaves its right to ask to the next at once."""
    place = "orphaned"
    told = processes_stage.folder / place / "die"
    asking = partial(simulate, processes_stage.folder / place / "killed.asked", 3, partial(die_when_told, told))
    killed = processes_stage.warm.start(processes_stage.command(place, "killed", asked=asking))
    wait_until(lambda: len(killed.batches()) == 3)
    second = processes_stage.warm.start(processes_stage.command(place, "second"))
    time.sleep(10 * SLOW)  # the second comes to wait
    assert second.batches() == []
    told.touch()

    assert processes_stage.warm.wait(killed).code == -signal.SIGKILL
    assert processes_stage.warm.wait(second).code == 0
    assert Counter(killed.asked() + second.asked()) == Counter(whole(processes_stage).asked() + killed.batches()[2])
    assert is_same(processes_stage.database("whole"), processes_stage.database(place))


def test_who_asks_keeps_no_reader_out(processes_stage: Stage) -> None:
    """While a search asks, the file can be counted, asked and exported."""
    search = processes_stage.started("read", "first", batches=2)
    for arguments in (
        ("data", "stats", "--db", "kb.db"),
        ("query", "is_sealed(M)", "--rules", "world.rules", "--db", "kb.db"),
        ("export", "--db", "kb.db"),
    ):
        ended = processes_stage.warm.run(Command(arguments, search.folder, name=arguments[0]))
        assert ended.code == 0, ended.stderr
    assert processes_stage.warm.wait(search).code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_marks_the_run_as_interrupted(processes_stage: Stage, number: signal.Signals) -> None:
    """Asked to end, a search says so in its run, ends with the signal's exit code, and goes on when asked again."""
    command = processes_stage.started(number.name, "ended")
    os.kill(command.pid, number)
    ended = processes_stage.warm.wait(command)
    (run,) = runs(processes_stage.database(number.name))

    assert ended.code == 128 + number
    assert "Run the same command to go on." in ended.stderr
    assert (run["status"], run["finished"] is not None) == ("interrupted", True)
    processes_stage.check_resumed(command, whole(processes_stage))


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


def test_a_reader_that_has_gone_costs_no_answer(processes_stage: Stage) -> None:
    """With its output closed a search is stored all the same, and ends without a traceback."""
    command = processes_stage.command("closed", "alone", close_stdout)
    ended: Ended = processes_stage.warm.run(command)

    assert ended.code in (0, 1)
    assert ended.stderr == ""
    assert is_same(processes_stage.database("whole"), processes_stage.database("closed"))


def test_a_clock_that_goes_back_changes_nothing(processes_stage: Stage) -> None:
    """With an hour less at each look at the clock, the rows are the same, and no run ends before it began."""
    ended = processes_stage.warm.run(processes_stage.command("back", "alone", set_clock_back))
    (run,) = runs(processes_stage.database("back"))

    assert ended.code == 0, ended.stderr
    assert is_same(processes_stage.database("whole"), processes_stage.database("back"))
    assert run["started"] <= run["finished"]
