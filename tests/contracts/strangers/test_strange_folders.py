"""A folder of a stranger, such as a clone: no command reads, moves, changes or removes the user's files through it."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result

CSV = "predicate,argument1,argument2\nlives_in,Ann,Oslo\n"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file of the user, outside of the clone."""
    folder = tmp_path / "home/.ssh"
    folder.mkdir(parents=True)
    (folder / "id_ed25519").write_text("key")
    return folder / "id_ed25519"


@pytest.fixture
def clone(private: Path) -> Path:
    """A stranger's folder, with a table to import."""
    folder = private.parents[1] / "code/clone"
    folder.mkdir(parents=True)
    (folder / "people.csv").write_text(CSV)
    return folder


def command(folder: Path, *arguments: object) -> Result:
    """Run a command line in the folder."""
    with chdir(folder):
        return invoke(*arguments)


def imported(folder: Path) -> Result:
    return command(folder, "import", "people.csv", "--db", "hapax.db")


def linked(clone: Path, name: str, target: Path) -> Path:
    """A relative link, as git keeps it."""
    link = clone / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
    return link


def super_journal(name: str) -> bytes:
    """A rollback journal of SQLite that names a super-journal, which SQLite removes when it rolls back."""
    magic = bytes.fromhex("d9d505f920a163d7")
    header = (magic + struct.pack(">IIIII", 0, 1, 1, 512, 4096)).ljust(512, b"\0")
    page = struct.pack(">I", 0x40000000 // 4096 + 1)
    return header + page + name.encode() + struct.pack(">II", len(name), sum(name.encode())) + magic


def test_a_planted_folder_of_an_interrupted_command_moves_nothing(clone: Path, private: Path) -> None:
    """A link to the user's folder in it moves no file, and files in one that no command left stay, beside a pipe, too."""
    linked(clone, ".hapax-unfinished-a/earlier", private.parent)
    kept = clone / ".hapax-unfinished-notes"
    (kept / "earlier").mkdir(parents=True)
    (kept / "mine.txt").write_text("mine")
    (kept / "earlier" / "thesis.txt").write_text("thesis")
    os.mkfifo(clone / "hapax.db-answers")
    for words in (("import", "people.csv"), ("export", "-o", "out.csv")):
        done = command(clone, *words, "--db", "hapax.db")
        assert done.exit_code == 0, done.stderr

    assert private.read_text() == "key"
    assert (kept / "mine.txt").read_text() == "mine"
    assert (kept / "earlier" / "thesis.txt").read_text() == "thesis"
    assert (clone / "hapax.db-answers").is_fifo()
    files = {".hapax-unfinished-a", kept.name, "people.csv", "hapax.db", "hapax.db-answers", "out.csv"}
    assert {path.name for path in clone.iterdir()} == files


def test_a_planted_journal_deletes_nothing(clone: Path, private: Path) -> None:
    """A rollback journal that names a file of the user is refused, so that SQLite does not delete that file."""
    assert imported(clone).exit_code == 0
    before = (clone / "hapax.db").read_bytes()
    (clone / "hapax.db-journal").write_bytes(super_journal(os.path.relpath(private, clone)))
    refused = imported(clone)

    assert private.read_text() == "key"
    assert refused.exit_code != 0
    assert "hapax.db-journal" in refused.stderr
    assert (clone / "hapax.db").read_bytes() == before


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["pipe", "link", "hard link"])
def test_no_log_of_sqlite_leads_elsewhere(clone: Path, private: Path, ending: str, kind: str) -> None:
    """SQLite opens its logs itself: what is none of its files is refused first, beside tables to import, too."""
    assert imported(clone).exit_code == 0
    private.write_text("key that is longer than a header of SQLite")
    log = clone / f"hapax.db{ending}"
    if kind == "pipe":
        os.mkfifo(log)
    elif kind == "link":
        linked(clone, log.name, private)
    else:
        log.hardlink_to(private)
    written = imported(clone)
    table = ("import", "hapax.db", "--table", "facts", "--predicate", "a", "--columns", "id,id", "--db", "other.db")
    read = command(clone, *table)

    assert private.read_text() == "key that is longer than a header of SQLite"
    for refused in (written, read):
        assert refused.exit_code != 0
        assert log.name in refused.stderr
        assert "Move it away" in refused.stderr


@pytest.fixture
def rules(clone: Path) -> Path:
    """A rule that a simulated model answers."""
    path = clone / "town.rules"
    path.write_text(
        'oracle lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"\n'
        "@name town\ntours(Person X, Country A) & lies_in(City B, Country A) -> may_see(Person X, City B).\n"
    )
    return path


def search(clone: Path, rules: Path) -> Result:
    (clone / "people.csv").write_text("predicate,argument1,argument2\ntours,Ann,Norway\n")
    command(clone, "import", "people.csv", "--rules", rules, "--db", "hapax.db")
    models = ("--knowledge", "simulated:1", "--critic", "simulated:1", "--likelihood", "simulated:1")
    return command(clone, "search", "--rules", rules, "--db", "hapax.db", *models)


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("name", ["hapax.db-asking", "hapax.db-answers"])
def test_a_planted_link_beside_a_knowledge_base_changes_nothing(
    clone: Path, private: Path, rules: Path, name: str, dangling: bool
) -> None:
    """A target is neither changed nor brought about, and a search says which link is in its way, if it is."""
    private.chmod(0o600)
    target = private.with_name("authorized_keys")
    linked(clone, name, target if dangling else private)
    done = search(clone, rules)

    assert not target.exists()
    assert (private.read_text(), private.stat().st_mode & 0o777) == ("key", 0o600)
    if name.endswith("asking"):
        assert done.exit_code != 0
        assert [word for word in (name, "symbolic link", "Remove it") if word not in done.stderr] == []
    elif not dangling:
        assert done.exit_code == 0, done.stderr


def test_a_folder_for_sheets_writes_through_no_link(clone: Path, private: Path, rules: Path) -> None:
    """Files that a command names itself in an output folder replace links of their names."""
    assert search(clone, rules).exit_code == 0
    export = ("votes", "export", "statements", "--db", "hapax.db", "--voter", "voter-1", "--out", "sheets")
    done = command(clone, *export)
    written = sorted((clone / "sheets").iterdir())
    for path in written:
        path.unlink()
        linked(clone, f"sheets/{path.name}", private)
    assert command(clone, *export).exit_code == 0, done.output

    assert written
    assert private.read_text() == "key"
    assert not any(path.is_symlink() for path in (clone / "sheets").iterdir())


KILLED = """
import os
import sys
from hapax import cli

sys.addaudithook(lambda event, _: os._exit(9) if event == "os.rename" else None)
cli.main(["export", "--db", "hapax.db", "-o", "out.csv"])
"""


def test_only_the_journal_says_what_a_killed_command_left(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leftovers of a killed command go with the next command of the same journal, and stay for those of another."""
    assert imported(clone).exit_code == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=clone, env=environment, check=False)
    (left,) = clone.glob(".hapax-unfinished-*")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert imported(clone).exit_code == 0
    stays = left.is_dir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    assert imported(clone).exit_code == 0

    assert killed.returncode == 9
    assert stays
    assert not left.exists()
    assert not any((tmp_path / "own/hapax/unfinished").iterdir())


def test_a_link_is_no_knowledge_base_that_nobody_named(clone: Path, private: Path) -> None:
    """The knowledge base of another folder changes only if the user names it, or the link to it."""
    other = private.parents[1] / "own.db"
    linked(clone, "hapax.db", other)
    refused = command(clone, "import", "people.csv")
    made = other.exists()
    named = command(clone, "import", "people.csv", "--db", "hapax.db")

    assert refused.exit_code != 0
    assert "symbolic link" in refused.stderr
    assert "--db" in refused.stderr
    assert not made
    assert named.exit_code == 0
