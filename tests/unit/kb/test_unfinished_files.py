"""Leftovers of a killed process are removed by the next command; those of a living one stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hapax.kb import system
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import exchange, sweep, unfinished
from hapax.kb.whole_files import atomic_path

WRITER = """
import sys
from pathlib import Path
from hapax.kb.unfinished import unfinished

place = Path(sys.argv[1])
with unfinished(place) as new:
    new.mkdir()
    (new / "file").write_text("new")
    if sys.argv[2] == "exchange":
        (new.parent / "earlier").mkdir()
        place.replace(new.parent / "earlier" / place.name)
    print("ready", flush=True)
    input()
"""


def writer(place: Path, step: str = "write") -> subprocess.Popen[str]:
    """A process that waits amid its writing."""
    command = [sys.executable, "-c", WRITER, str(place), step]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("opened", [True, False], ids=["knowledge base", "file"])
def test_the_next_command_removes_what_a_killed_one_left(tmp_path: Path, opened: bool) -> None:
    """A hidden folder outlives SIGKILL, and is gone when a file or a knowledge base is written beside it."""
    kill(writer(tmp_path / "out"))
    assert len(names(tmp_path)) == 1
    if opened:
        KnowledgeBase(tmp_path / "other").close()
    else:
        with atomic_path(tmp_path / "other") as path:
            path.write_text("whole")

    assert names(tmp_path) == {"other"}


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    """A folder that is locked is not swept."""
    process = writer(tmp_path / "out")
    before = names(tmp_path)
    sweep(tmp_path)
    after = names(tmp_path)
    kill(process)

    assert before == after != set()


def test_a_folder_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    """Killed between its two renames, an exchange leaves the earlier folder after the next sweep."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("old")
    kill(writer(tmp_path / "out", "exchange"))
    assert not (tmp_path / "out").exists()
    sweep(tmp_path)

    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / "file").read_text() == "old"


def test_a_failure_puts_the_earlier_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the second rename fails, the place has its earlier folder."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    rename = system.rename

    def failing(source: Path, target: Path, *folders: tuple[int, int]) -> None:
        if target == tmp_path / "out" and (source / "new").exists():
            raise OSError("no")
        rename(source, target, *folders)

    monkeypatch.setattr(system, "rename", failing)
    with suppress(OSError), unfinished(tmp_path / "out") as new:
        new.mkdir()
        (new / "new").touch()
        exchange(new, tmp_path / "out")

    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {"old"}


def test_files_reach_the_disk_before_their_folder_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of the new folder is synced before it takes the place of the earlier one, of which nothing is left."""
    place = tmp_path / "out"
    place.mkdir()
    (place / "old").touch()
    steps: list[str] = []
    rename = system.rename

    def renamed(source: Path, target: Path) -> None:
        steps.append(f"{source.name} becomes {target.parent.name}/{target.name}")
        rename(source, target)

    with unfinished(place) as new:
        monkeypatch.setattr(system, "sync_path", lambda path: steps.append(f"sync {path.name}"))
        monkeypatch.setattr(system, "sync_folder", lambda folder: steps.append(f"sync folder {folder.name}"))
        monkeypatch.setattr(system, "rename", renamed)
        (new / "inner").mkdir(parents=True)
        (new / "inner" / "file").write_text("new")
        (new / "other").write_text("new")
        exchange(new, place)

    assert sorted(steps[:2]) == ["sync file", "sync other"]
    assert steps[2:] == ["out becomes earlier/out", f"out becomes {tmp_path.name}/out", f"sync folder {tmp_path.name}"]
    assert names(place) == {"inner", "other"}
    assert names(tmp_path) == {"out"}
