"""A full disk, a disk that may not be written, and a locked file end a command with a clear error and lose nothing."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from fault_harness import (
    SEARCH,
    SLOW,
    Command,
    Stage,
    Warm,
    beside,
    fill_disk,
    is_same,
    limit_files,
    lost,
    remember_connections,
    simulate,
    undisturbed,
    whole,
)

pytestmark = pytest.mark.slow

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
