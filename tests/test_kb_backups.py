"""Backups of a knowledge base: copied beside a writer, verified, and put back."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.kb import system
from hapax.kb.asking import asking

RULES = "given owns(Person, Thing)\n"


def filled(path: Path, *things: str) -> Path:
    with hapax.KnowledgeBase(path) as kb:
        hapax.add_facts(kb, "owns", [("Ann", thing) for thing in things], hapax.parse_rules(RULES))
    return path


def things(path: Path) -> set[str]:
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        return {str(fact.arguments[1]) for fact in kb.facts()}


def change_a_fact(path: Path) -> None:
    """Change a stored value behind Hapax's back."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE facts SET arguments = replace(arguments, 'mill', 'farm')")
        connection.commit()


def test_a_backup_holds_everything_and_is_one_file(tmp_path: Path) -> None:
    """A backup has the same facts as the knowledge base, needs no second file, and is never written over another."""
    database = filled(tmp_path / "kb.db", "mill", "crane")
    result = invoke("backup", str(tmp_path / "copy.db"), "--db", str(database))
    again = invoke("backup", str(tmp_path / "copy.db"), "--db", str(database))

    assert result.exit_code == 0, result.stderr
    assert "copied and verified" in result.stdout
    assert things(tmp_path / "copy.db") == {"mill", "crane"}
    assert again.exit_code == 1
    assert "this file exists" in " ".join(again.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "kb.db"]


def test_a_backup_is_taken_beside_a_writer(tmp_path: Path) -> None:
    """While another connection goes on writing, the copy is whole: it has a beginning of what was written, and verifies."""
    database = filled(tmp_path / "kb.db", "thing 0")
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        with hapax.KnowledgeBase(database) as kb:
            rules = hapax.parse_rules(RULES)
            while not stop.is_set() or len(written) < 5:
                hapax.add_facts(kb, "owns", [("Ann", f"thing {len(written) + 1}")], rules)
                written.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        rows = hapax.backup(database, tmp_path / "copy.db")
    finally:
        stop.set()
        writer.join()

    copied = things(tmp_path / "copy.db")
    assert rows > 0
    assert copied == {f"thing {number}" for number in range(len(copied))}
    with hapax.KnowledgeBase(tmp_path / "copy.db", read_only=True) as kb:
        assert hapax.verify(kb).is_clean


def test_a_damaged_knowledge_base_has_no_backup(tmp_path: Path) -> None:
    """A changed row stops the backup with its table, and leaves nothing behind."""
    database = filled(tmp_path / "kb.db", "mill")
    change_a_fact(database)

    with pytest.raises(hapax.HapaxError, match=r"1 damage, the first: facts .*hapax.verify"):
        hapax.backup(database, tmp_path / "copy.db")
    assert [path.name for path in tmp_path.iterdir()] == ["kb.db"]


def test_the_first_of_several_damages_is_told(tmp_path: Path) -> None:
    """In the order of `verify`, whose other findings are only counted."""
    database = filled(tmp_path / "kb.db", "mill", "barn", "mill pond")
    change_a_fact(database)
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        first, *others = hapax.verify(kb).damages

    assert len(others) == 1
    with pytest.raises(hapax.HapaxError, match=re.escape(f"2 damages, the first: {first.table} {first.row} ")):
        hapax.backup(database, tmp_path / "copy.db")


def test_a_backup_gets_its_name_once_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content comes first, then the name, then the folder that has the name."""
    database = filled(tmp_path / "kb.db", "mill")
    done: list[str] = []
    for name in ("sync_path", "rename", "sync_folder"):
        real = getattr(system, name)
        monkeypatch.setattr(system, name, lambda *paths, name=name, real=real: (done.append(name), real(*paths))[1])
    hapax.backup(database, tmp_path / "copy.db")

    assert done[-3:] == ["sync_path", "rename", "sync_folder"]


def test_a_restored_backup_keeps_what_was_there(tmp_path: Path) -> None:
    """Restoring replaces the file, keeps each earlier one beside it by number, and leaves the backup."""
    database = filled(tmp_path / "kb.db", "mill")
    hapax.backup(database, tmp_path / "copy.db")
    filled(database, "crane")

    result = invoke("restore", str(tmp_path / "copy.db"), "--db", str(database))

    assert result.exit_code == 0, result.stderr
    assert "kb-before-restore-1.db" in "".join(result.stdout.split())
    assert things(database) == {"mill"}
    assert things(tmp_path / "kb-before-restore-1.db") == {"mill", "crane"}
    assert things(tmp_path / "copy.db") == {"mill"}
    assert hapax.restore_backup(tmp_path / "copy.db", database) == tmp_path / "kb-before-restore-2.db"
    assert things(tmp_path / "kb-before-restore-2.db") == {"mill"}
    assert hapax.restore_backup(tmp_path / "copy.db", tmp_path / "new.db") is None
    assert things(tmp_path / "new.db") == {"mill"}


def test_a_damaged_backup_restores_nothing(tmp_path: Path) -> None:
    """A backup with a changed row is refused, and the knowledge base stays as it is."""
    database = filled(tmp_path / "kb.db", "mill")
    hapax.backup(database, tmp_path / "copy.db")
    change_a_fact(tmp_path / "copy.db")

    with pytest.raises(hapax.HapaxError, match="damage"):
        hapax.restore_backup(tmp_path / "copy.db", database)
    assert things(database) == {"mill"}


def test_a_broken_file_can_be_replaced(tmp_path: Path) -> None:
    """A file that SQLite cannot read any more is kept byte for byte, and the backup takes its place."""
    database = filled(tmp_path / "kb.db", "mill")
    hapax.backup(database, tmp_path / "copy.db")
    database.write_bytes(b"no database")

    kept = hapax.restore_backup(tmp_path / "copy.db", database)

    assert things(database) == {"mill"}
    assert kept is not None
    assert kept.read_bytes() == b"no database"


def test_a_file_for_which_models_are_asked_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restoring waits for a process that asks models for the file, and then says so."""
    monkeypatch.setattr("hapax.kb.backups.WAITED_SECONDS", 0.1)
    database = filled(tmp_path / "kb.db", "mill")
    hapax.backup(database, tmp_path / "copy.db")
    code = f"from pathlib import Path; from hapax.kb.backups import put_back; put_back(Path({str(tmp_path / 'copy.db')!r}), Path({str(database)!r}))"

    with asking(database):
        ended = subprocess.run(
            [sys.executable, "-c", "import hapax.kb.backups as b; b.WAITED_SECONDS = 0.1; " + code],
            check=False,
            capture_output=True,
            text=True,
        )

    assert ended.returncode != 0
    assert "another process has been asking models for this file" in ended.stderr
    assert things(database) == {"mill"}
