"""The same work by other engines over the same tables: SQLite, DuckDB on one thread, and SWI-Prolog with tabling."""

from __future__ import annotations

import csv
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measuring import Turn, Way, seconds_of

Tables = Mapping[str, Path]
"""CSV files of texts without a line of names, by predicate. The columns are `x` and `y` in SQL."""

_COUNTED = "SELECT count(*) FROM result"


def rows_of(table: Path) -> Iterator[list[str]]:
    """The rows of a CSV file."""
    with table.open(newline="", encoding="utf-8") as stream:
        yield from csv.reader(stream)


def by_sqlite(folder: Path, tables: Tables, query: str) -> Way:
    """CREATE TABLE AS of the query over tables without an index, in a file."""
    path = folder / "peer.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, table in tables.items():
            connection.execute(f"CREATE TABLE {name} (x TEXT, y TEXT)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows_of(table))  # noqa: S608  our names

    def way() -> Turn:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DROP TABLE IF EXISTS result")
            seconds = seconds_of(lambda: connection.execute(f"CREATE TABLE result AS {query}"))
            return Turn(seconds, connection.execute(_COUNTED).fetchone()[0])

    return way


def by_duckdb(folder: Path, tables: Tables, query: str) -> Way | None:
    """CREATE TABLE AS of the query on one thread, in a file; None if DuckDB is not installed."""
    if find_spec("duckdb") is None:
        return None
    import duckdb

    path = folder / "peer.duckdb"
    path.unlink(missing_ok=True)
    one_thread: dict[str, Any] = {"threads": 1}
    with closing(duckdb.connect(str(path), config=one_thread)) as connection:
        for name, table in tables.items():
            read = f"read_csv('{table}', header = false, all_varchar = true, names = ['x', 'y'])"
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {read}")  # noqa: S608  our names

    def way() -> Turn:
        with closing(duckdb.connect(str(path), config=one_thread)) as connection:
            connection.execute("DROP TABLE IF EXISTS result")
            seconds = seconds_of(lambda: connection.execute(f"CREATE TABLE result AS {query}"))
            return Turn(seconds, connection.sql(_COUNTED).fetchall()[0][0])

    return way


_MAIN = """
:- initialization(main).
main :-
    statistics(cputime, Before), results(Count), statistics(cputime, After),
    Seconds is After - Before, format("~w ~w~n", [Seconds, Count]), halt.
"""


def by_prolog(folder: Path, tables: Tables, program: str) -> Way | None:
    """The goal `results(Count)` of a program over loaded facts; None if `swipl` is not installed."""
    if shutil.which("swipl") is None:
        return None
    path = folder / "peer.pl"
    with path.open("w", encoding="utf-8") as stream:
        for name, table in tables.items():
            stream.writelines(f"{name}({x}, {y}).\n" for x, y in rows_of(table))
        stream.write(program + _MAIN)

    def way() -> Turn:
        command = ["swipl", "--stack-limit=8g", "--table-space=8g", str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, results = ended.stdout.split()
        return Turn(float(seconds), int(results))

    return way
