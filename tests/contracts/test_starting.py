"""The beginning with a table of one's own, and goals one after another."""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from cli_fixture import invoke, run
from click.testing import CliRunner

import hapax
from hapax.cli import main

FLIGHTS = "Flight No.,carrier,day,air time\n" + "".join(
    f"u{number},{'UA' if number % 3 else 'AA'},2013-01-{number:02},{50 * number if number != 4 else ''}\n"
    for number in range(1, 10)
)
FAMILY = "parent(ann, bob). parent(bob, carol).\nancestor(X, Y) :- parent(X, Y).\nancestor(X, Z) :- parent(X, Y), ancestor(Y, Z).\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my flights.csv").write_text(FLIGHTS, "utf-8")
    Path("family.rules").write_text(FAMILY, "utf-8")
    return tmp_path


def test_a_table_becomes_a_folder_whose_commands_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` guesses names, types and key; the commands that it prints give answers, without a warning."""
    told = run("init", "my flights.csv").stdout
    commands = [shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  hapax")]
    monkeypatch.chdir(folder / "my_flights")
    rules = Path("my_flights.rules").read_text("utf-8")
    results = [invoke(*command) for command in commands]

    assert "given my_flights(flight_no: Text, carrier: Text, day: Date, air_time: Number)" in rules
    assert 'key: "Flight No."' in Path("map.yaml").read_text("utf-8")
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    assert not any("warning" in result.output for result in results)
    assert "u9" in results[1].stdout


def test_a_table_with_semicolons_and_a_column_not_is_begun_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mapping names the sign between the cells, and a word of the language is no column's name."""
    Path("odd.csv").write_text("name;not;height,m\nann;1;1,75\nbob;2;1,80\n", "utf-8")
    commands = [
        shlex.split(line)[1:] for line in run("init", "odd.csv").stdout.splitlines() if line.startswith("  hapax")
    ]
    monkeypatch.chdir(folder / "odd")
    results = [invoke(*command) for command in commands]

    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]


FAULTY = """id;day;amount;at
1;2024-01-05;12.50;08:30
2;2024-02-30;7;09:15
3;2024-03-01;n/a;10:00
3;2024-03-02;8;10:05
5;2024-03-04;9
6;2024-03-05;;11:00
7;2024-03-06;4;12:00
8;2024-03-07;5;12:10
9;2024-03-08;5;12:10
"""


def test_faults_of_a_table_are_told_at_the_beginning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad dates and numbers, short rows and repeated ids, by line; the commands take the rest, empty cells too."""
    Path("orders.csv").write_text(FAULTY, "utf-8")
    begun = invoke("init", "orders.csv")
    commands = [shlex.split(line)[1:] for line in begun.stdout.splitlines() if line.startswith("  hapax")]
    monkeypatch.chdir(folder / "orders")
    results = [invoke(*command) for command in commands]
    rules, mapping = Path("orders.rules").read_text("utf-8"), Path("map.yaml").read_text("utf-8")

    for line, word in {3: "2024-02-30", 4: "n/a", 5: "id 3", 6: "3 cells"}.items():
        assert any(text.startswith(f"orders.csv:{line}:") and word in text for text in begun.stderr.splitlines())
    assert "given orders(id: Number, day: Date, amount: Number, at: Time)" in rules
    assert "key" not in mapping
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    assert "6 facts read" in results[0].output
    assert not any("no value" in result.output for result in results)


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "sqlite", "tsv"])
def test_each_table_that_is_imported_can_be_begun_with(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns are guessed, whatever the file; of a SQLite file's only table nobody gives the name."""
    frame = pd.DataFrame({"id": ["a", "b", "c"], "day": ["2024-01-01", "2024-02-29", None], "n": [1.5, 2.5, 3.5]})
    path = Path(f"stock.{kind}")
    if kind == "sqlite":
        with sqlite3.connect(path) as connection:
            frame.to_sql("stock", connection, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t", index=False)
    told = run("init", path).stdout
    commands = [shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  hapax")]
    monkeypatch.chdir(folder / "stock")
    results = [invoke(*command) for command in commands]

    assert "given stock(id: Text, day: Date, n: Number)" in Path("stock.rules").read_text("utf-8")
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    assert results[1].stdout.split() == ["K", "c"]


def test_nothing_of_the_users_is_overwritten() -> None:
    """A folder that has one of the files is refused, and so is a table without rows."""
    run("init", "my flights.csv", "here")
    Path("here/map.yaml").write_text("mine", "utf-8")
    again = invoke("init", "my flights.csv", "here")
    Path("empty.csv").write_text("a,b\n", "utf-8")
    empty = invoke("init", "empty.csv")

    assert (again.exit_code, empty.exit_code) == (1, 1)
    assert "map.yaml" in again.output
    assert Path("here/map.yaml").read_text("utf-8") == "mine"


def test_goals_one_after_another() -> None:
    """The shell answers goals, `why` and `why-not`, names faults and goes on; a fault in a script is its exit code."""
    lines = "ancestor(ann, X)\nwhy ancestor(ann, carol)\nancestor(ann\nwhy-not ancestor(carol, ann)\npredicates\nquit\n"
    result = CliRunner().invoke(main, ["shell", "family.rules"], input=lines)
    good = CliRunner().invoke(main, ["shell", "family.rules"], input="ancestor(bob, carol)\n")

    assert {"bob", "carol"} <= set(result.stdout.split())
    assert "parent(bob, carol)" in result.stdout.replace('"', "")
    assert "ancestor/2" in result.stdout
    assert "HPX084" in result.output
    assert (result.exit_code, good.exit_code) == (1, 0)
    assert good.stdout.strip() == "true"


def test_values_complete_what_is_typed() -> None:
    """Texts of facts that begin so, capital letters apart."""
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, "is_old", [("Rome",), ("rome*",), ("Rouen",)], hapax.parse_rules("given is_old(City)\n"))

    assert kb.texts_beginning("Ro") == ["Rome", "Rouen"]
    assert kb.texts_beginning("rome*") == ["rome*"]
