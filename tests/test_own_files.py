"""Files whose names Hapax chooses: nothing else of that name is opened, changed or removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hapax.engine.cluster.gathering import locked
from hapax.grammar.errors import HapaxError
from hapax.kb import own_files, spill
from hapax.kb.own_files import ForeignFileError
from hapax.kb.records import CallRecord
from hapax.kb.running import RunFiles, Wish
from hapax.kb.store import KnowledgeBase

CALL = CallRecord("1", "knowledge", "m", {}, {"text": "a"}, created="2026-01-01")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base, beside a folder of the user's."""
    path = tmp_path / "clone" / "hapax.db"
    path.parent.mkdir()
    KnowledgeBase(path).close()
    return path


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file of the user."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    return path


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_paid_answer_goes_into_no_other_file(database: Path, private: Path, link: str) -> None:
    """Answers are appended neither through a symbolic link nor to a file with a second name."""
    getattr(spill.spill_path(database), link)(private)
    with pytest.raises(ForeignFileError):
        spill.append(database, [CALL])

    assert private.read_text() == "mine"


def test_answers_of_another_file_are_not_taken(database: Path, tmp_path: Path) -> None:
    """A link to the answers of another knowledge base brings none of them in, and stays."""
    other = tmp_path / "other.db"
    KnowledgeBase(other).close()
    spill.append(other, [CALL])
    spill.spill_path(database).symlink_to(spill.spill_path(other))
    with KnowledgeBase(database) as kb:
        assert kb.calls() == {}

    assert spill.spilled(other) == [CALL]
    assert spill.spill_path(database).is_symlink()


def test_a_wish_is_not_written_through_a_link(database: Path, private: Path) -> None:
    """Asking a search to pause replaces a link of that name."""
    files = RunFiles(database, "run")
    files.ask(Wish.PAUSE)
    (wish,) = database.parent.glob("*-wish-*")
    wish.unlink()
    wish.symlink_to(private)
    read = files.wish()
    files.ask(Wish.END)

    assert read is None
    assert private.read_text() == "mine"
    assert files.wish() is Wish.END


@pytest.mark.parametrize("name", ["", "lock"])
def test_shards_are_kept_in_no_linked_folder(database: Path, tmp_path: Path, name: str) -> None:
    """Neither the folder that Hapax names nor its lock may be a link."""
    folder = database.with_name("hapax.db.shards")
    if name:
        folder.mkdir()
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HapaxError, match="symbolic link"), locked(folder):
        pass

    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_another_user_owns_no_file_beside_an_unshared_knowledge_base(database: Path) -> None:
    """Another user's file counts only where others may write the knowledge base, or its owner is that user."""
    answers = spill.spill_path(database)
    answers.touch()
    os.chown(answers, 12345, 12345)
    alone = own_files.is_there(answers, database)
    database.chmod(0o666)
    shared = own_files.is_there(answers, database)
    database.chmod(0o644)
    os.chown(database, 12345, 12345)

    assert (alone, shared, own_files.is_there(answers, database)) == (False, True, True)
