"""Which files a command opens, what it does with those of other versions, and what it leaves beside them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cli_fixture import invoke
from money_fixture import RULES

import hapax

CITIES = hapax.parse_rules("given is_old(City)\n")
Rows = dict[str, list[tuple[object, ...]]]


def add(path: Path, *cities: str) -> Path:
    with hapax.KnowledgeBase(path) as kb:
        hapax.add_facts(kb, "is_old", [(city,) for city in cities], CITIES)
    return path


def cities(path: Path) -> list[object]:
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        return sorted(fact.arguments[0] for fact in kb.facts())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}  # noqa: S608


def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    """Readers need not wait, and what was committed survives a power cut, whatever signs the name has."""
    with hapax.KnowledgeBase(tmp_path / "odd ?#% name.db") as kb:
        assert kb.sql("PRAGMA journal_mode") == [("wal",)]
        assert kb.sql("PRAGMA synchronous") == [(2,)]
    assert names(tmp_path) == ["odd ?#% name.db"]


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_knowledge_base_is_refused(tmp_path: Path, read_only: bool) -> None:
    """Texts, folders, pipes, devices, links in a circle and other programs' databases are named, and left as they are."""
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("no database at all" * 100, "utf-8")
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE notes (body)")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = text.read_bytes(), other.read_bytes()

    for path in (text, other, tmp_path, tmp_path / "pipe", tmp_path / "loop", tmp_path / "no" / "x.db"):
        with pytest.raises(hapax.HapaxError) as caught:
            hapax.KnowledgeBase(path, read_only=read_only)
        assert str(path) in str(caught.value)
    with pytest.raises(hapax.HapaxError, match="device"):
        hapax.KnowledgeBase("/dev/null", read_only=read_only)
    assert (text.read_bytes(), other.read_bytes()) == before


@pytest.mark.parametrize("added", [True, False])
def test_a_file_of_another_version_is_left_alone(tmp_path: Path, added: bool) -> None:
    """Of a later or an earlier version: the error names what the file knows, and how to take its facts along."""
    path = add(tmp_path / "kb.db", "Ur")
    with closing(sqlite3.connect(path)) as database, database:
        if not added:
            database.execute("DELETE FROM _sqlite_migrations")
        database.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('hapax', 'm999_later', '')"
        )
    before = rows(path)
    for read_only in (False, True):
        with pytest.raises(hapax.HapaxError, match=r"m999_later.*Update Hapax, or export"):
            hapax.KnowledgeBase(path, read_only=read_only)
    assert rows(path) == before


def test_reading_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    """A file that is not there is not made, writing is refused, and nothing stays beside a file that was read or merged."""
    path = tmp_path / "kb.db"
    with pytest.raises(hapax.HapaxError, match="no such knowledge base"):
        hapax.KnowledgeBase(path, read_only=True)
    assert names(tmp_path) == []

    add(path, "Ur")
    with hapax.KnowledgeBase(path, read_only=True) as kb, pytest.raises(hapax.HapaxError, match="may not be written"):
        hapax.add_facts(kb, "is_old", [("Troy",)], CITIES)
    with hapax.KnowledgeBase(add(tmp_path / "other.db", "Troy")) as kb:
        hapax.merge(kb, path)
    assert names(tmp_path) == ["kb.db", "other.db"]
    assert (cities(path), cities(tmp_path / "other.db")) == (["Ur"], ["Troy", "Ur"])


def test_a_reader_sees_what_was_there_before_and_leaves_a_writer_alone(tmp_path: Path) -> None:
    """In the middle of a transaction, and beside the log of a writer that was killed, which a reader keeps."""
    with hapax.KnowledgeBase(tmp_path / "a.db") as writer:
        hapax.add_facts(writer, "is_old", [("Ur",)], CITIES)
        with writer.transaction():
            hapax.add_facts(writer, "is_old", [("Troy",)], CITIES)
            assert cities(tmp_path / "a.db") == ["Ur"]
        assert cities(tmp_path / "a.db") == ["Troy", "Ur"]
        for ending in ("", "-wal"):
            (tmp_path / f"b.db{ending}").write_bytes((tmp_path / f"a.db{ending}").read_bytes())
    log = (tmp_path / "b.db-wal").read_bytes()

    assert cities(tmp_path / "b.db") == ["Troy", "Ur"]
    assert (tmp_path / "b.db-wal").read_bytes() == log


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_can_be_read(tmp_path: Path) -> None:
    """A knowledge base on a read-only medium opens for reading; for writing, the message says what to do."""
    path = add(tmp_path / "kb.db", "Ur")
    for place in (path, tmp_path):
        place.chmod(place.stat().st_mode & 0o555)
    try:
        assert cities(path) == ["Ur"]
        for name in ("kb.db", "new.db"):
            with pytest.raises(hapax.HapaxError, match=r"may not be written|cannot be opened or created"):
                add(tmp_path / name, "Troy")
    finally:
        tmp_path.chmod(0o755)


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    add(path.with_name("other.db"), "Ur").replace(path)


@pytest.mark.parametrize("move", [delete, rename, replace])
def test_a_file_that_is_moved_away_ends_a_search_with_every_answer_safe(
    tmp_path: Path, move: Callable[[Path], None]
) -> None:
    """A file renamed, deleted or replaced under a run ends it with an error, and a copy beside it has all answers."""
    library, path = hapax.parse_rules(RULES), tmp_path / "run.db"
    models = hapax.open_models("simulated:3", library=library)
    moved: list[set[str]] = []
    with hapax.KnowledgeBase(path) as kb:

        def progress(_: hapax.Progress) -> None:
            if len(kb.calls()) > 4 and not moved:
                moved.append(set(kb.calls()))
                move(path)

        with pytest.raises(hapax.HapaxError, match="renamed, deleted or replaced"):
            hapax.search(library, kb, models, progress=progress)

    (copy,) = tmp_path.glob("run-rescued-*.db")
    with hapax.KnowledgeBase(copy) as rescued:
        assert moved[0] <= rescued.calls().keys()


# --- standard streams and places of output ----------------------------------------------------------------------------


def ended(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line of Hapax, run by a shell."""
    variables = {**os.environ, **environment, "HAPAX_DB": "kb.db", "PYTHONPATH": str(Path(__file__).parents[3])}
    line = f"'{sys.executable}' -m hapax.cli {command}"
    return subprocess.run(line, shell=True, check=False, capture_output=True, env=variables, cwd=folder)  # noqa: S602


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(tmp_path: Path, closed: str) -> None:
    """The command does its work as with /dev/null in their place, and writes nothing else into its file."""
    path = add(tmp_path / "kb.db", "Ur")
    result = ended(f"data stats {closed}", tmp_path)

    assert result.returncode == 0
    assert b"Traceback" not in result.stderr
    with hapax.KnowledgeBase(path) as kb:
        assert hapax.verify(kb).is_clean


def test_narrow_output_shows_escapes_and_refuses_exports(tmp_path: Path) -> None:
    """Signs that the encoding of stdout lacks are escapes in answers, those of JSON in JSON; an export is never changed."""
    add(tmp_path / "kb.db", "Łódź 😀")
    (tmp_path / "old.rules").write_text("given is_old(City)\n", "utf-8")
    shown = ended("query 'is_old(X)' --rules old.rules", tmp_path, PYTHONIOENCODING="latin-1")
    found = ended("query 'is_old(X)' --rules old.rules --json", tmp_path, PYTHONIOENCODING="latin-1")
    exported = ended("export -o -", tmp_path, PYTHONIOENCODING="latin-1")

    assert shown.returncode == 0, shown.stderr
    assert b"\\u0141\xf3d\\u017a \\U0001f600" in shown.stdout
    assert json.loads(found.stdout)["answers"] == [{"X": "Łódź 😀"}]
    assert exported.returncode == 1
    assert b"PYTHONIOENCODING=utf-8" in exported.stderr
    assert b"Traceback" not in exported.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("export", "-o"),
        ("data", "dataset"),
    ],
)
def test_links_in_a_circle_are_no_place_for_output(tmp_path: Path, command: tuple[str, ...]) -> None:
    """They are named like any other place that cannot be written."""
    add(tmp_path / "kb.db", "Ur")
    (tmp_path / "loop").symlink_to("loop")
    result = invoke(*command, tmp_path / "loop", "--db", tmp_path / "kb.db")

    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "loop" in result.stderr


def test_a_new_file_has_few_tables_and_the_page_tells_of_each(tmp_path: Path) -> None:
    """It has at most twenty tables and views, each of which the page on the knowledge base describes."""
    path = tmp_path / "kb.db"
    hapax.KnowledgeBase(path).close()
    with closing(sqlite3.connect(path)) as connection:
        found = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        }
    page = (Path(__file__).parents[3] / "docs" / "reference" / "knowledge-base.md").read_text("utf-8")

    assert len(found) <= 20
    assert sorted(name for name in found if f"`{name}`" not in page) == []
