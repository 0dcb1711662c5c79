"""Answers leave as tables: all of them, in bounded memory, with the types that data frames and files have."""

from __future__ import annotations

import csv
import datetime as dt
import io
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from cli_fixture import run
from pyarrow import parquet

import hapax

RULES = hapax.parse_rules("""
given weighs(Number)
given event(Thing, Date, DateTime, Time, Duration, Number)
""")
MANY = 25_000
OSLO = dt.timezone(dt.timedelta(hours=1))
EVENTS = pa.table(
    {
        "X": ["a", "b"],
        "D": [dt.date(2012, 12, 1), dt.date(2013, 1, 2)],
        "S": [dt.datetime(2012, 12, 1, 8, 30, tzinfo=OSLO), dt.datetime(2012, 12, 1, 8, 30, 1, 500_000, tzinfo=OSLO)],
        "T": [dt.time(8, 30), dt.time(9)],
        "U": [dt.timedelta(days=1, hours=2), dt.timedelta(seconds=-5)],
        "N": [1.5, 2.0],
    }
)
EVENT = "event(X, D, S, T, U, N)"


@pytest.fixture
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as kb:
        yield kb


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments for a knowledge base of many facts and its rules."""
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "n.rules").write_text("given weighs(Number)\n", "utf-8")
    with hapax.KnowledgeBase(folder / "n.db") as kb:
        hapax.add_facts(kb, "weighs", [(number,) for number in range(MANY)], RULES)
    return [str(folder / "n.rules"), "--db", str(folder / "n.db")]


# -- many answers


def test_python_has_all_answers_while_the_knowledge_base_is_open(tmp_path: Path) -> None:
    """Many answers are read as one goes through them; few are there at once, and sorted."""
    with hapax.KnowledgeBase(tmp_path / "n.db") as kb:
        hapax.add_facts(kb, "weighs", [(number,) for number in range(MANY)], RULES)
        many = kb.query("weighs(N)", RULES)
        few = kb.query("weighs(N), N < 3", RULES)
        calculated = kb.query("weighs(N), M = N / 8", RULES)

        assert (len(many), many.truncated) == (MANY, False)
        assert sorted(row["N"] for row in many) == list(range(MANY))
        assert many[-1]["N"] == many.rows[MANY - 1][0]
        assert calculated.df()["M"].sum() == sum(range(MANY)) / 8

    assert list(few) == [{"N": 0}, {"N": 1}, {"N": 2}]
    with pytest.raises(hapax.HapaxError, match="closed"):
        many.df()


def test_a_file_gets_all_answers_and_the_screen_the_first(numbers: list[str], tmp_path: Path) -> None:
    """Without --limit a file has all answers, and 10,000 are printed; the table's parts are aligned."""
    target = tmp_path / "all.csv"

    written = run("query", "weighs(N)", *numbers, "-o", target)
    printed = run("query", "weighs(N), M = N + 1", *numbers)

    assert f"{MANY} answers in" in written.stderr
    assert len(target.read_text("utf-8").splitlines()) == MANY + 1
    lines = printed.stdout.splitlines()
    assert len(lines) == 10_001
    assert "Only the first 10000 answers are shown" in printed.stderr
    assert len({line.rindex("  ") for line in lines[2_000:]}) <= 2


def test_a_limit_ends_the_work(numbers: list[str]) -> None:
    """The first answers of a product of 625 million rows come at once."""
    started = time.process_time()
    found = run("query", "weighs(A), weighs(B), A \\= B", *numbers, "--limit", "5", "--csv")

    assert len(found.stdout.splitlines()) == 6
    assert time.process_time() - started < 8


def test_memory_stays_flat(kb: hapax.KnowledgeBase) -> None:
    """Four times the answers take few bytes more a row while they are written."""
    hapax.add_facts(kb, "weighs", [(number,) for number in range(4 * MANY)], RULES)

    def peak(goal: str) -> int:
        tracemalloc.start()
        with io.StringIO() as nowhere:
            nowhere.write = lambda text: 0  # type: ignore[method-assign]
            kb.query(goal, RULES).write_csv(nowhere)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few = peak(f"weighs(N), N < {MANY}")
    many = peak("weighs(N)")

    assert many - few < 3 * MANY * 30


# -- types


def imported(kb: hapax.KnowledgeBase, path: Path) -> None:
    hapax.import_facts(kb, path, mapping=hapax.TableMapping.of("event", list(EVENTS.column_names)), rules=RULES)


def by_csv(kb: hapax.KnowledgeBase, folder: Path) -> None:
    """By the CSV that answers are written as."""
    with hapax.KnowledgeBase() as other, (folder / "events.csv").open("w", encoding="utf-8") as stream:
        hapax.add_facts(other, "event", EVENTS, RULES)
        other.query(EVENT, RULES).write_csv(stream)
    imported(kb, folder / "events.csv")


def by_parquet(kb: hapax.KnowledgeBase, folder: Path) -> None:
    parquet.write_table(EVENTS, folder / "events.parquet")
    imported(kb, folder / "events.parquet")


def by_own_parquet(kb: hapax.KnowledgeBase, folder: Path) -> None:
    with hapax.KnowledgeBase() as other:
        hapax.add_facts(other, "event", EVENTS, RULES)
        other.query(EVENT, RULES).parquet(folder / "own.parquet")
    imported(kb, folder / "own.parquet")


def by_pandas(kb: hapax.KnowledgeBase, _: Path) -> None:
    hapax.add_facts(kb, "event", EVENTS.to_pandas(date_as_object=False), RULES)


def by_rows(kb: hapax.KnowledgeBase, _: Path) -> None:
    hapax.add_facts(kb, "event", [tuple(row.values()) for row in EVENTS.to_pylist()], RULES)


@pytest.mark.parametrize("way", [by_csv, by_parquet, by_own_parquet, by_pandas, by_rows])
def test_dates_come_back_with_their_types(
    kb: hapax.KnowledgeBase, tmp_path: Path, way: Callable[[hapax.KnowledgeBase, Path], None]
) -> None:
    """Dates, date-times with a zone, times, durations and numbers go in and come out as such."""
    way(kb, tmp_path)
    answers = kb.query(EVENT, RULES)

    assert answers.arrow() == EVENTS
    assert [answers.df()[name].dtype.kind for name in ("D", "U", "N")] == ["M", "m", "f"]
    assert str(answers.df()["S"].dt.tz) == "UTC+01:00"
    assert answers[0]["S"] == "2012-12-01T08:30:00+01:00"


def test_calculated_dates_have_their_types(kb: hapax.KnowledgeBase) -> None:
    """A value that a goal calculates from dates is a date, a date-time or a number."""
    hapax.add_facts(kb, "event", EVENTS, RULES)
    goal = f"{EVENT}, E = D + 30 days, H = D + 1 hour, Y = year(D), W = days(E - D), L = E - D"

    table = kb.query(goal, RULES).arrow()

    types = {name: str(table.schema.field(name).type) for name in ("E", "H", "Y", "W", "L")}
    assert types == {"E": "date32[day]", "H": "timestamp[us]", "Y": "int64", "W": "int64", "L": "duration[us]"}
    assert table["H"][0].as_py() == dt.datetime(2012, 12, 1, 1)


def test_no_type_loses_anything(kb: hapax.KnowledgeBase) -> None:
    """A column of values that no type of Arrow holds together stays exact, as texts."""
    rules = hapax.parse_rules("given at(Thing, DateTime)\ngiven clock(Thing, Time)\ngiven size(Thing, Number)")
    hapax.add_facts(kb, "at", [("a", "2012-12-01"), ("b", "2012-12-01T08:30:00.1234567")], rules)
    hapax.add_facts(kb, "at", [("c", "2012-12-01T08:30:00"), ("d", "2012-12-01T08:30:00-05:00")], rules)
    hapax.add_facts(kb, "clock", [("a", "08:30:00+01:00")], rules)
    hapax.add_facts(kb, "size", [("a", 2**53 + 1), ("b", 1.5), ("c", 10**30)], rules)

    def column(goal: str) -> list[object]:
        table = kb.query(goal, rules).arrow()
        cells: list[object] = table[table.column_names[-1]].to_pylist()
        return cells

    assert column("at(X, T), (X = a ; X = b)") == ["2012-12-01T00:00:00", "2012-12-01T08:30:00.1234567"]
    assert column("clock(X, T)") == ["08:30:00+01:00"]
    assert column("size(X, N), X \\= c") == ["9007199254740993", "1.5"]
    assert column("size(X, N), X = c") == [str(10**30)]
    noon, later = column("at(X, T), (X = c ; X = d)")
    assert isinstance(noon, dt.datetime)
    assert isinstance(later, dt.datetime)
    assert later - noon == dt.timedelta(hours=5)


def test_a_command_writes_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-o` with a name that ends in .parquet writes the table that `arrow` gives; CSV has ISO 8601."""
    monkeypatch.chdir(tmp_path)
    Path("e.rules").write_text("given event(Thing, Date, DateTime, Time, Duration, Number)\n", "utf-8")
    with hapax.KnowledgeBase("e.db") as kb:
        hapax.add_facts(kb, "event", EVENTS, RULES)

    run("query", EVENT, "e.rules", "--db", "e.db", "-o", "e.parquet")
    shown = run("query", EVENT, "e.rules", "--db", "e.db", "--csv").stdout

    assert parquet.read_table("e.parquet") == EVENTS
    assert next(csv.DictReader(shown.splitlines())) == {
        "X": "a",
        "D": "2012-12-01",
        "S": "2012-12-01T08:30:00+01:00",
        "T": "08:30:00",
        "U": "P1DT2H",
        "N": "1.5",
    }
