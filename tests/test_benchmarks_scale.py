"""The benchmark of scale: what it measures, how it kills, and that it sees a difference where there is one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_engine_search import ALLERGY, OLDER, VOCABULARY

from benchmarks.scale import MOST_DELAY, Kill, RepeatedSearch, Task, differences, is_same, kills, main
from hapax.kb.records import CallRecord, Decision, RunRecord
from hapax.kb.store import KnowledgeBase

pytestmark = pytest.mark.slow

CALL = CallRecord("c1", "critic", "m", {"claim": "x"}, {"probability": 0.5}, created="2026-01-01")
DECISION = Decision("run", "critic", "subject", accepted=True, score=0.9, threshold=0.85, reason="high")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file of two small rules."""
    path = tmp_path / "test.rules"
    path.write_text("\n".join((VOCABULARY, ALLERGY, OLDER)), "utf-8")
    return path


def written(path: Path, call: CallRecord = CALL, *decisions: Decision) -> Path:
    with KnowledgeBase(path) as kb:
        kb.start_run(RunRecord("run", "search", {}, "run", f"2026 {path.stem}"))
        kb.record_calls([call])
        kb.add_decisions(decisions)
    return path


def test_a_killed_search_ends_as_an_undisturbed_one(rules: Path, tmp_path: Path) -> None:
    """Killed by SIGKILL and resumed: no row differs, and nothing that was answered is asked again."""
    output = tmp_path / "figures.json"

    code = main([str(rules), "--beam", "60", "--kill", "2", "--seed", "3", "-o", str(output)])
    figures = json.loads(output.read_text("utf-8"))
    first, killed = figures["undisturbed"], figures["killed"]

    assert code == 0
    assert set(killed["different_rows"].values()) == {0}
    assert killed["answered_requests_sent_again"] == 0
    assert killed["kills"]
    assert killed["statements"] == first["statements"]
    assert first["rules"] == 2
    assert first["rows"]["statements"] == first["statements"]["head"] + first["statements"]["long_tail"] > 0
    assert sum(counts["sent"] for counts in first["calls"].values()) == first["rows"]["calls"]
    assert first["database_mb"] > 0
    assert first["peak_memory_mb"] > 0
    assert {"system", "cores", "memory_gb"} <= set(figures["machine"])


def test_a_kill_leaves_what_was_answered(rules: Path, tmp_path: Path) -> None:
    """A search that is killed when its journal holds 50 rows leaves at least these."""
    searches = RepeatedSearch(Task((rules,), beam=60), tmp_path, "killed")

    killed = searches.killed(0, Kill(50, 0.0))

    assert killed is not None
    assert killed["rows"] == searches.rows() >= 50
    assert not searches.figures_file.exists()


def test_kills_come_in_order_and_some_early() -> None:
    """Seeded, at growing numbers of rows; every third while the journal is being replayed."""
    planned = kills(1000, 9, seed=4)
    later = [kill.rows for kill in planned if kill.rows]

    assert planned == kills(1000, 9, seed=4) != kills(1000, 9, seed=5)
    assert [kill.rows == 0 for kill in planned] == [False, False, True] * 3
    assert later == sorted(later)
    assert all(0 < rows < 1000 for rows in later)
    assert all(0 <= kill.delay <= MOST_DELAY[not kill.rows] for kill in planned)


def test_differences_are_counted_by_table(tmp_path: Path) -> None:
    """A row that one lacks and a row that says otherwise are differences; dates are none."""
    first = written(tmp_path / "one.db", CALL, DECISION)
    same = written(tmp_path / "same.db", replace(CALL, created="2026-02-02"), DECISION)
    changed = written(tmp_path / "other.db", replace(CALL, response={"probability": 0.6}))

    assert set(differences(first, same).values()) == {0}
    assert {table: count for table, count in differences(first, changed).items() if count} == {
        "calls": 2,
        "decisions": 1,
    }


@pytest.mark.parametrize(
    ("killed", "same"),
    [
        (None, True),
        ({"answered_requests_sent_again": 0, "different_rows": {"facts": 0}}, True),
        ({"answered_requests_sent_again": 1, "different_rows": {"facts": 0}}, False),
        ({"answered_requests_sent_again": 0, "different_rows": {"facts": 1}}, False),
    ],
)
def test_any_difference_fails_the_benchmark(killed: dict[str, object] | None, same: bool) -> None:
    """One row that differs, or one answered request that was sent again, is a failure."""
    assert is_same({"killed": killed} if killed else {}) is same


def test_a_search_that_fails_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Rules that are not there end the benchmark with a message and exit code 1."""
    assert main([str(tmp_path / "none.rules")]) == 1
    assert "none.rules" in capfd.readouterr().err


def test_the_folder_must_be_new(rules: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Databases of an earlier benchmark are never gone on with."""
    assert main([str(rules), "--folder", str(tmp_path)]) == 1
    assert str(tmp_path) in capfd.readouterr().err
