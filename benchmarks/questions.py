"""Import, single questions and export, by Hapax and by other engines over the same roads between places.

`benchmarks/inference.py` runs it; `benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import csv
import random
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import hapax
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.query import run_query
from hapax.grammar.parser import parse_library
from hapax.kb.mappings import TableMapping
from hapax.kb.store import KnowledgeBase

RULES = """
given road(Place, Place).
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B).
@name further
@generic none
reaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C).
@name twice
@generic none
road(Place A, Place B) & road(Place B, Place C) -> is_two_roads_from(Place C, Place A).
"""
FAR = (
    "WITH RECURSIVE far(y) AS (SELECT y FROM road WHERE x = ? "
    "UNION SELECT road.y FROM far JOIN road ON road.x = far.y) SELECT y FROM far"
)
TWICE = "SELECT a.x, a.y, b.y AS z FROM road a JOIN road b ON b.x = a.y"
ASKED = 20
"""Places that are asked about; the median counts."""

Figures = dict[str, float]
"""Seconds by task: `import`, `first`, `point`, `reach`, `derive`, `export`."""


def questions(facts: int, seed: int) -> dict[str, Any]:
    """Measure all engines that are installed over a number of random roads, with one road for every two places."""
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "road.csv"
        with table.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("x", "y"))
            writer.writerows((f"p{rng.randrange(2 * facts)}", f"p{rng.randrange(2 * facts)}") for _ in range(facts))
        places = [f"p{rng.randrange(2 * facts)}" for _ in range(ASKED)]
        engines: dict[str, Callable[[Path, Sequence[str]], Figures | None]] = {
            "Hapax": by_hapax,
            "SQLite": by_sqlite,
            "DuckDB": by_duckdb,
            "SWI-Prolog": by_prolog,
            "clingo": by_clingo,
        }
        found = {engine: measure(table, places) for engine, measure in engines.items()}
    return {"facts": facts, "seconds": {engine: figures for engine, figures in found.items() if figures is not None}}


def seconds_of(task: Callable[[], object]) -> float:
    """Wall time of a call."""
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def _median(places: Iterable[str], ask: Callable[[str], object]) -> float:
    return statistics.median(seconds_of(lambda place=place: ask(place)) for place in places)  # type: ignore[misc]


def by_hapax(table: Path, places: Sequence[str]) -> Figures:
    """Import, goals in a session that is open, and `derive -o` of a join with proofs."""
    library = parse_library([("road.rules", RULES)])
    mapping = TableMapping.of("road", ["x", "y"])
    with KnowledgeBase(table.with_suffix(".db")) as kb, PrologSession() as session:
        theory = Theory(library, kb)
        took = {"import": seconds_of(lambda: hapax.import_facts(kb, table, mapping=mapping, rules=library))}
        session.load("")  # starts the process
        took["first"] = seconds_of(lambda: run_query(theory, f"road({places[0]}, Y)", session=session))
        took["point"] = _median(places, lambda place: run_query(theory, f"road({place}, Y)", session=session))
        took["reach"] = _median(places, lambda place: run_query(theory, f"reaches({place}, Y)", session=session))
        took["derive"] = seconds_of(lambda: hapax.derive(library, kb, only="twice"))
        # Facts have not changed since, so that the second derivation only names what is stored.
        derived = hapax.derive(library, kb, only="twice")
        took["export"] = seconds_of(lambda: derived.write(table.with_suffix(".jsonl")))
    return took


def by_sqlite(table: Path, places: Sequence[str]) -> Figures:
    """A table with two indexes, and the join as CSV without proofs."""
    with closing(sqlite3.connect(table.with_name("plain.db"))) as connection:

        def fill() -> None:
            connection.execute("CREATE TABLE road (x TEXT, y TEXT)")
            connection.executemany("INSERT INTO road VALUES (?, ?)", _rows(table))
            connection.execute("CREATE INDEX by_x ON road (x, y)")
            connection.execute("CREATE INDEX by_y ON road (y, x)")
            connection.commit()

        def ask(sql: str) -> Callable[[str], object]:
            return lambda place: connection.execute(sql, (place,)).fetchall()

        def export() -> None:
            with table.with_name("twice.csv").open("w", newline="", encoding="utf-8") as stream:
                csv.writer(stream).writerows(connection.execute(TWICE))

        took = {"import": seconds_of(fill), "point": _median(places, ask("SELECT y FROM road WHERE x = ?"))}
        return took | {"reach": _median(places, ask(FAR)), "export": seconds_of(export)}


def by_duckdb(table: Path, places: Sequence[str]) -> Figures | None:
    """The same on one thread; None if it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    with closing(duckdb.connect(str(table.with_name("plain.duckdb")), config={"threads": 1})) as duck:

        def fill() -> None:
            duck.execute(f"CREATE TABLE road AS SELECT * FROM read_csv('{table}', header = true)")  # noqa: S608  ours
            duck.execute("CREATE INDEX by_x ON road (x)")

        def ask(sql: str) -> Callable[[str], object]:
            return lambda place: duck.execute(sql, [place]).fetchall()

        took = {"import": seconds_of(fill), "point": _median(places, ask("SELECT y FROM road WHERE x = ?"))}
        took["reach"] = _median(places, ask(FAR))
        copy = f"COPY ({TWICE}) TO '{table.with_name('twice.duck.csv')}'"
        return took | {"export": seconds_of(lambda: duck.execute(copy))}


_PROLOG = """
:- initialization(main).
:- table reaches/2.
reaches(A, B) :- road(A, B).
reaches(A, B) :- reaches(A, C), road(C, B).
timed(Goal, T) :- get_time(A), ignore(Goal), get_time(B), T is B - A.
median(Goal, P, T) :-
    findall(S, (asked(P), timed(forall(Goal, true), S)), Ss),
    msort(Ss, L), length(L, N), M is N // 2, nth0(M, L, T).
main :-
    timed(consult(roads), Load), median(road(P, _), P, Point), median(reaches(Q, _), Q, Reach),
    timed(setup_call_cleanup(open('twice.txt', write, S),
        forall((road(A, B), road(B, C)), format(S, "~w,~w,~w~n", [A, B, C])), close(S)), Export),
    format("~w ~w ~w ~w~n", [Load, Point, Reach, Export]), halt.
"""


def by_prolog(table: Path, places: Sequence[str]) -> Figures | None:
    """Facts in a Prolog file, and tabling for recursion; None if `swipl` is not installed."""
    if shutil.which("swipl") is None:
        return None
    folder = table.parent
    (folder / "roads.pl").write_text("".join(f"road({x}, {y}).\n" for x, y in _rows(table)), "utf-8")
    asked = "".join(f"asked({place}).\n" for place in places)
    (folder / "main.pl").write_text(_PROLOG + asked, "utf-8")
    command = ["swipl", "--stack-limit=8g", "main.pl"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        load, point, reach, export = map(float, ended.stdout.split())
    except ValueError:
        return None
    return {"import": load, "point": point, "reach": reach, "export": export}


def by_clingo(table: Path, places: Sequence[str]) -> Figures | None:
    """Reading, and everything that is reachable from one place, grounded anew; None if clingo is not installed."""
    try:
        import clingo  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    text = "".join(f"road({x},{y}).\n" for x, y in _rows(table))

    def grounded(rules: str) -> None:
        control = clingo.Control(["--warn=none"])
        control.add("base", [], text + rules)
        control.ground([("base", [])])

    reach = f"far(Y) :- road({places[0]},Y). far(Z) :- far(Y), road(Y,Z)."
    return {"import": seconds_of(lambda: grounded("")), "reach": seconds_of(lambda: grounded(reach))}


def _rows(table: Path) -> Iterator[list[str]]:
    with table.open(newline="", encoding="utf-8") as stream:
        rows = csv.reader(stream)
        next(rows)
        yield from rows
