"""Killed at any commit, every command that writes goes on to the result of the undisturbed one and pays nothing twice."""

from __future__ import annotations

import io
import json
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from fault_harness import SEARCH, Command, Stage, Warm, die, is_same, journal, lost, simulate, undisturbed, with_rules
from money_fixture import RULES as MONEY
from money_fixture import WORLD
from openai_fake import FakeServer, answered
from papers_fixture import fill_csv

import hapax

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
