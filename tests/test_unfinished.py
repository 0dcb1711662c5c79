"""Files that a killed process leaves beside its output are removed by the next command; those of a living one stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hapax.api.whole_files import atomic_path
from hapax.kb import system
from hapax.kb import unfinished as unfinished_files
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import exchange, sweep, unfinished

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


def end(process: subprocess.Popen[str], number: int) -> None:
    os.kill(process.pid, number)
    process.communicate()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_next_command_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """A hidden folder outlives SIGKILL, and is gone when a file is written beside it."""
    end(writer(tmp_path / "out"), signal.SIGKILL)
    left = names(tmp_path)
    with atomic_path(tmp_path / "other.txt") as path:
        path.write_text("whole")

    assert len(left) == 1
    assert names(tmp_path) == {"other.txt"}


def test_opening_a_knowledge_base_removes_it_too(tmp_path: Path) -> None:
    """A command that opens a knowledge base for writing sweeps its folder."""
    end(writer(tmp_path / "out"), signal.SIGKILL)
    with KnowledgeBase(tmp_path / "kb.db"):
        pass

    assert names(tmp_path) == {"kb.db"}


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    """A folder that is locked is not swept."""
    process = writer(tmp_path / "out")
    before = names(tmp_path)
    sweep(tmp_path)
    after = names(tmp_path)
    end(process, signal.SIGKILL)

    assert before == after != set()


def test_a_folder_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    """Killed between its two renames, an exchange leaves the earlier folder after the next sweep."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("old")
    end(writer(tmp_path / "out", "exchange"), signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    sweep(tmp_path)

    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / "file").read_text() == "old"


def test_an_exchange_replaces_the_whole_folder(tmp_path: Path) -> None:
    """Nothing of the earlier folder is left."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with unfinished(tmp_path / "out") as new:
        new.mkdir()
        (new / "new").write_text("new")
        exchange(new, tmp_path / "out")

    assert names(tmp_path / "out") == {"new"}
    assert names(tmp_path) == {"out"}


def test_a_failure_puts_the_earlier_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the second rename fails, the place has its earlier folder."""
    (tmp_path / "out").mkdir()
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if path.name == "out" and path.parent.name.startswith(".") and target.parent == tmp_path:
            monkeypatch.undo()
            raise OSError("no")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with suppress(OSError), unfinished(tmp_path / "out") as new:
        new.mkdir()
        exchange(new, tmp_path / "out")

    assert names(tmp_path) == {"out"}


def test_files_reach_the_disk_before_their_folder_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of the new folder is synced, then the earlier folder moves away, the new one in, and the names are synced."""
    place = tmp_path / "out"
    place.mkdir()
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


def test_a_record_that_is_swept_before_its_lock_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may remove the new record before it is locked; then another is made, and no lock stays open."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    real, locked = unfinished_files.fcntl.flock, []

    def swept(lock: int, kind: int) -> None:
        real(lock, kind)
        if not locked:
            for record in (tmp_path / "state/hapax/unfinished").iterdir():
                record.unlink()
        locked.append(lock)

    monkeypatch.setattr(unfinished_files.fcntl, "flock", swept)
    with atomic_path(tmp_path / "out.txt") as path:
        path.write_text("whole")
        records = list((tmp_path / "state/hapax/unfinished").iterdir())

    assert len(records) == 1
    assert locked[0] == locked[1]  # the number of a closed file is used again
    assert names(tmp_path) == {"out.txt", "state"}
    assert names(tmp_path / "state/hapax/unfinished") == set()


def test_without_a_journal_a_file_is_written_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder of the journal cannot be made, a file is still written as a whole, and nothing is left."""
    (tmp_path / "state").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with atomic_path(tmp_path / "out.txt") as path:
        path.write_text("whole")

    assert names(tmp_path) == {"out.txt", "state"}
