"""Killed at any commit, every command that writes goes on to the result of the undisturbed one and pays nothing twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from fault_harness import SEARCH, Stage, Warm, die, lost, simulate, with_rules
from openai_fake import FakeServer
from test_oracle_openai import RULES as MONEY
from test_oracle_openai import WORLD
from test_oracle_openai_batch import answered
from votes_fixture import fill_csv

from commands.console import BUDGET_REACHED

FACTS = "predicate,argument1,argument2\nowns,Ada,plough\nowns,Bob,loom\nis_sealed,radio,\n"


@pytest.fixture(scope="module")
def searched(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rules and what a search of them left."""
    stage = Stage(warm, SEARCH, tmp_path_factory.mktemp("searched"), with_rules)
    _, ended = stage.played("whole")
    assert ended.code == 0, ended.stderr
    return stage.folder / "whole"


@pytest.mark.timeout(900)  # it plays the search more than 200 times
def test_a_search_survives_death_at_every_commit(warm: Warm, tmp_path: Path) -> None:
    """Whichever commit of a search is its last, all statements, scores and verdicts come out the same."""
    commits = Stage(warm, SEARCH, tmp_path, with_rules).check_every_commit()

    assert commits > 40


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

    assert Stage(warm, ("merge", "other.db", "--db", "kb.db"), tmp_path, prepare).check_every_commit() >= 3


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


def test_a_migration_survives_death_at_every_commit(warm: Warm, tmp_path: Path) -> None:
    """A file of the first version, opened to write into, is brought up to date as a whole or left as it was."""
    old = (Path(__file__).parent / "old_kbs" / "m001_initial.sql").read_text("utf-8")

    def prepare(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "kb.db")) as database:
            database.executescript(old)
        (folder / "facts.csv").write_text(FACTS, encoding="utf-8")

    assert Stage(warm, ("import", "facts.csv", "--db", "kb.db"), tmp_path, prepare).check_every_commit() >= 3


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
    assert ended.code == BUDGET_REACHED, ended.stderr
    results = tmp_path / "answered.jsonl"
    answered(command.folder / "next.jsonl", results, FakeServer(WORLD))
    given["answered.jsonl"] = results.read_text("utf-8")
    taking = (*queueing.arguments, "--results", "answered.jsonl")

    assert Stage(warm, taking, tmp_path / "second", prepare).check_every_commit(BUDGET_REACHED) >= 5
