"""`hapax.derive` of stored facts, beside the same queries by SQLite and DuckDB, and the same clauses by SWI-Prolog.

Each turn derives in a fresh copy of a file with imported facts, so that nothing is there yet. What counts is the
processor time of the call; a process has loaded its libraries by then. Peers have loaded their tables as well.
"""

from __future__ import annotations

import csv
import random
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import Any

import hapax
from benchmarks.measuring import Figure, Size, Turn, Way, compared, median_of, seconds_of

Tables = Mapping[str, Path]
"""CSV files of texts without a line of names, by predicate. The columns are `x` and `y` in SQL."""


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

    return created_by(lambda: sqlite3.connect(path, isolation_level=None), query)


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

    return created_by(lambda: duckdb.connect(str(path), config=one_thread), query)


def created_by(connect: Callable[[], Any], query: str) -> Way:
    """The way of CREATE TABLE AS by a connection."""

    def way() -> Turn:
        with closing(connect()) as connection:
            connection.execute("DROP TABLE IF EXISTS result")
            seconds = seconds_of(lambda: connection.execute(f"CREATE TABLE result AS {query}"))
            return Turn({"s": seconds}, connection.execute("SELECT count(*) FROM result").fetchone()[0])

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
        return Turn({"s": float(seconds)}, int(results))

    return way


Pair = tuple[str, str]

SECONDS = 300.0
"""After which a derivation counts as not done."""


@dataclass(frozen=True)
class Work:
    """Rules over tables of pairs, and the same in SQL and as a Prolog program that defines `results(Count)`."""

    name: str
    rules: str
    tables: Mapping[str, Sequence[Pair]]
    sql: str = ""
    prolog: str = ""
    targets: Mapping[str, float] = field(default_factory=dict)


def figures(size: Size) -> Iterator[Figure]:
    """All figures of derivations."""
    derived(join(20), Size("tiny", 1))  # loads the libraries
    for work in (
        join(size.pick(300, 100_000, 1_000_000)),
        groups(size.pick(300, 100_000, 1_000_000)),
        closure(size.pick(30, 600, 2000)),
        same_generation(size.pick(3, 8, 10)),
        chain(size.pick(20, 200, 2000)),
    ):
        yield from derived(work, size)
    yield from growth(size)
    yield from non_linear(size)
    yield from changes(size)


# --- one derivation ---------------------------------------------------------------------------------------------------


def written(folder: Path, tables: Mapping[str, Sequence[Pair]]) -> dict[str, Path]:
    """The tables as CSV files by predicate."""
    found = {}
    for name, rows in tables.items():
        found[name] = folder / f"{name}.csv"
        with found[name].open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)
    return found


def fill(base: Path, tables: Mapping[str, Path], rules: hapax.Library) -> None:
    """Import the tables into a new knowledge base."""
    with hapax.KnowledgeBase(base) as kb:
        for name, table in tables.items():
            with table.open(newline="", encoding="utf-8") as stream:
                hapax.add_facts(kb, name, csv.reader(stream), rules)


@contextmanager
def fresh(base: Path) -> Iterator[hapax.KnowledgeBase]:
    """An open copy of a knowledge base, which is removed afterwards."""
    copy = base.with_name("fresh.db")
    shutil.copyfile(base, copy)
    try:
        with hapax.KnowledgeBase(copy) as kb:
            yield kb
    finally:
        for path in base.parent.glob("fresh.db*"):
            path.unlink()


def statements_of(derivation: hapax.Derivation) -> int:
    """The number of statements of all rules."""
    return sum(row[derivation.columns.index("statements")] for row in derivation.cells())


def first_derivation(base: Path, rules: hapax.Library) -> Way:
    """The way of `hapax.derive`, with the statements as results."""

    def way() -> Turn:
        found: list[hapax.Derivation] = []
        with fresh(base) as kb:
            seconds = seconds_of(lambda: found.append(hapax.derive(rules, kb, seconds=SECONDS)))
            return Turn({"s": seconds}, statements_of(found[0]))

    return way


def derived(work: Work, size: Size) -> list[Figure]:
    """Derive the work, beside the peers that it has text for."""
    rules = hapax.parse_rules(work.rules)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = written(folder, work.tables)
        fill(folder / "base.db", tables, rules)
        ways: dict[str, Way | None] = {"hapax": first_derivation(folder / "base.db", rules)}
        if work.sql:
            ways |= {"SQLite": by_sqlite(folder, tables, work.sql), "DuckDB": by_duckdb(folder, tables, work.sql)}
        if work.prolog:
            ways["SWI-Prolog"] = by_prolog(folder, tables, work.prolog)
        return compared(work.name, ways, size, {(way, "s"): most for way, most in work.targets.items()})


# --- the works --------------------------------------------------------------------------------------------------------


def random_pairs(count: int, names: int, seed: int) -> list[Pair]:
    """Pairs of so many names."""
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    return [(f"v{rng.randrange(names)}", f"v{rng.randrange(names)}") for _ in range(count)]


def distinct(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs once each: facts are a set, and the tables of peers are not."""
    return list(dict.fromkeys(pairs))


def join(facts: int) -> Work:
    """A join of two relations with about one conclusion for each fact of a relation, stored with the facts it uses."""
    half = facts // 2
    return Work(
        f"join of {facts:,} facts, with proofs",
        """
        given a(Thing, Thing).
        given b(Thing, Thing).
        @name joined
        @generic none
        a(Thing A, Thing B) & b(Thing B, Thing C) -> joined(Thing A, Thing C).
        """,
        {name: distinct(random_pairs(half, half, seed)) for seed, name in enumerate("ab")},
        "SELECT a.x, b.y, a.rowid AS first, b.rowid AS second FROM a JOIN b ON b.x = a.y",
        targets={"DuckDB": 3, "SQLite": 2},
    )


def groups(facts: int) -> Work:
    """The number of values in each of many groups."""
    return Work(
        f"count per group, {facts:,} facts",
        """
        given a(Thing, Thing).
        aggregate values_of(Thing A, Number K) := K = count(Thing B: a(Thing A, Thing B))
        @name counted
        @generic none
        values_of(Thing A, Number K) & K > 0 -> has_values(Thing A, Number K).
        """,
        {"a": distinct(random_pairs(facts, max(2, facts // 10), 0))},
        "SELECT x, count(*) AS k FROM a GROUP BY x",
        targets={"SQLite": 3},
    )


COUNTED = """
aggregate reached(Place A, Number K) := K = count(Place B: reaches(Place A, Place B))
@name counted
@generic none
reached(Place A, Number K) & K > 0 -> reaches_many(Place A, Number K).
"""
"""Makes one statement of all that can be reached from a place, so that the closure is computed and not listed."""

CLOSURE = """
given road(Place, Place).
@generic none
reaches(A, B) :- road(Place A, Place B).
@generic none
reaches(A, C) :- reaches(Place A, Place B), road(Place B, Place C).
"""

RECURSIVE = "WITH RECURSIVE reaches(x, y) AS ({base} UNION {step}) SELECT x, count(*) AS k FROM reaches GROUP BY x"
PROLOG_COUNTED = """
results(Count) :- aggregate_all(count, reaches(_, _), _), aggregate_all(count, A, distinct(A, reaches(A, _)), Count).
"""


def closure(places: int) -> Work:
    """All pairs of places that are connected by random roads, two for each place."""
    return Work(
        f"closure of {2 * places:,} random roads",
        CLOSURE + COUNTED,
        {"road": distinct(random_pairs(2 * places, places, 0))},
        RECURSIVE.format(
            base="SELECT x, y FROM road", step="SELECT r.x, road.y FROM reaches r JOIN road ON road.x = r.y"
        ),
        ":- table reaches/2.\nreaches(A, B) :- road(A, B).\nreaches(A, C) :- reaches(A, B), road(B, C)."
        + PROLOG_COUNTED,
        {"DuckDB": 1.3, "SWI-Prolog": 0.5},
    )


def same_generation(depth: int) -> Work:
    """All pairs of the same generation in a binary tree."""
    parents = [(f"v{(child - 1) // 2}", f"v{child}") for child in range(1, 2 ** (depth + 1) - 1)]
    return Work(
        f"same generation, {len(parents):,} children",
        """
        given parent(Place, Place).
        @generic none
        reaches(A, B) :- parent(Place P, Place A), parent(Place P, Place B).
        @generic none
        reaches(A, B) :- parent(Place P, Place A), reaches(Place P, Place Q), parent(Place Q, Place B).
        """
        + COUNTED,
        {"parent": parents},
        RECURSIVE.format(
            base="SELECT a.y, b.y FROM parent a JOIN parent b ON a.x = b.x",
            step="SELECT a.y, b.y FROM reaches r JOIN parent a ON a.x = r.x JOIN parent b ON b.x = r.y",
        ),
        """
        :- table reaches/2.
        reaches(A, B) :- parent(P, A), parent(P, B).
        reaches(A, B) :- parent(P, A), reaches(P, Q), parent(Q, B).
        """
        + PROLOG_COUNTED,
        {"DuckDB": 1.3, "SWI-Prolog": 0.5},
    )


def chain(rules: int) -> Work:
    """Rules of which each needs the conclusion of the one before, over two facts."""
    steps = [
        f"@name step_{n}\n@generic none\np{n}(Thing A, Thing B) -> p{n + 1}(Thing A, Thing B).\n" for n in range(rules)
    ]
    clauses = [f":- table p{n + 1}/2.\np{n + 1}(A, B) :- p{n}(A, B).\n" for n in range(rules)]
    return Work(
        f"chain of {rules:,} rules over two facts",
        "given p0(Thing, Thing).\n" + "".join(steps),
        {"p0": [("v0", "v1"), ("v1", "v2")]},
        prolog="".join(clauses) + f"results(Count) :- aggregate_all(count, p{rules}(_, _), Count).\n",
        targets={"hapax": 2},
    )


def triangles(edges: int) -> Work:
    """Triangles over a hub with edges to and from all other nodes."""
    leaves = [f"v{number}" for number in range(1, edges // 2 + 1)]
    table = [("v0", "v0"), *(("v0", leaf) for leaf in leaves), *((leaf, "v0") for leaf in leaves)]
    return Work(
        f"triangles over a hub, {edges:,} edges",
        """
        given edge(Thing, Thing).
        @name triangle
        @generic none
        edge(Thing A, Thing B) & edge(Thing B, Thing C) & edge(Thing C, Thing A) -> triangle(A, B, C).
        """,
        {"edge": table},
        "SELECT a.x, a.y, b.y AS z FROM edge a JOIN edge b ON b.x = a.y JOIN edge c ON c.x = b.y AND c.y = a.x",
        "results(Count) :- aggregate_all(count, (edge(A, B), edge(B, C), edge(C, A)), Count).",
        {"DuckDB": 2},
    )


# --- growth, forms of a rule, changes ---------------------------------------------------------------------------------


def growth(size: Size) -> Iterator[Figure]:
    """Triangles over hubs of several sizes, and the exponent of the time by the edges."""
    points: dict[str, list[tuple[float, float]]] = {}
    for edges in size.pick((21, 41), (301, 1001, 3001), (1001, 3001, 10_001)):
        for figure in derived(triangles(edges), size):
            yield figure
            if figure.value:
                points.setdefault(figure.by, []).append((log(edges), log(figure.value)))
    for name, found in points.items():
        slope = statistics.linear_regression([x for x, _ in found], [y for _, y in found]).slope
        target = 1.5 if name == "hapax" else None
        yield median_of("triangles: exponent by edges", name, "", [slope], target=target)


def non_linear(size: Size) -> Iterator[Figure]:
    """A closure by joining it with itself, beside that by joining it with roads: all of it, a goal, and `why`."""
    linear = hapax.parse_rules(CLOSURE + COUNTED)
    twice = hapax.parse_rules(CLOSURE.replace("road(Place B, Place C).", "reaches(Place B, Place C).") + COUNTED)
    # The time of a question grows with a high power of the path.
    places, path = size.pick((20, 5), (150, 40), (1414, 100))

    def goal(rules: hapax.Library, kb: hapax.KnowledgeBase) -> int:
        return len(hapax.query("reaches(v0, B)", rules, kb))

    def explanation(rules: hapax.Library, kb: hapax.KnowledgeBase) -> int:
        hapax.why(f"reaches(v0, v{path})", rules, kb)
        return 1

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for length in (places, path):
            roads = {"road": [(f"v{place}", f"v{place + 1}") for place in range(length)]}
            fill(folder / f"{length}.db", written(folder, roads), linear)
        works: dict[str, Callable[[hapax.Library], Way]] = {
            f"non-linear closure, {places * (places + 1) // 2:,} pairs": partial(
                first_derivation, folder / f"{places}.db"
            ),
            f"goal of a non-linear closure, {path} answers": partial(question, folder / f"{path}.db", goal),
            f"`why` of a non-linear closure, {path} roads": partial(question, folder / f"{path}.db", explanation),
        }
        for work, way in works.items():
            ways = {"hapax": way(twice), "hapax, linear": way(linear)}
            yield from compared(work, ways, size, {("hapax, linear", "s"): 2})


def question(base: Path, ask: Callable[[hapax.Library, hapax.KnowledgeBase], int], rules: hapax.Library) -> Way:
    """The way of a question to a knowledge base in which nothing is derived; `ask` gives the number of answers."""

    def way() -> Turn:
        found: list[int] = []
        with hapax.KnowledgeBase(base) as kb:
            seconds = seconds_of(lambda: found.append(ask(rules, kb)))
            return Turn({"s": seconds}, found[0])

    return way


CHANGING = (
    CLOSURE
    + """
    given a(Place, Place).
    given b(Place, Place).
    given c(Place, Place).
    @name paired
    @generic none
    a(Place A, Place B) & b(Place B, Place C) & not c(Place A, Place C) -> paired(Place A, Place C).
    @name leads
    @generic none
    reaches(Place A, Place B) & a(Place B, Place C) -> leads(Place A, Place C).
    """
)


def changes(size: Size) -> Iterator[Figure]:
    """Ten facts added and derived from, and ten facts taken away with what rests on them, as shares of a first derive.

    Two joins, one with a negation and one over the closure of few roads.
    """
    facts = size.pick(300, 100_000, 1_000_000)
    rules = hapax.parse_rules(CHANGING)
    third, few = facts // 3, facts // 100
    tables = {name: distinct(random_pairs(third, third, seed)) for seed, name in enumerate("abc")}
    tables["road"] = distinct(random_pairs(few, 2 * few, 3))
    shares: dict[str, list[float]] = {"added to": [], "taken from": []}
    with tempfile.TemporaryDirectory() as name:
        base = Path(name) / "base.db"
        fill(base, written(base.parent, tables), rules)
        for turn in range(size.turns):
            with fresh(base) as kb:
                first = seconds_of(partial(hapax.derive, rules, kb))
                tasks = {"added to": added(rules, kb, third, turn), "taken from": taken(rules, kb, tables, turn)}
                for change, task in tasks.items():
                    shares[change].append(100 * seconds_of(task) / first)
    for change, percent in shares.items():
        yield median_of(f"ten facts {change} {facts:,}", "hapax", "% of a first derive", percent, target=1)


def added(rules: hapax.Library, kb: hapax.KnowledgeBase, names: int, seed: int) -> Callable[[], Any]:
    """Adds ten facts and derives what they change."""
    rows = random_pairs(10, names, 10 + seed)

    def change() -> None:
        hapax.add_facts(kb, "a", rows[:5], rules)
        hapax.add_facts(kb, "road", rows[5:], rules)
        hapax.derive(rules, kb)

    return change


def taken(
    rules: hapax.Library, kb: hapax.KnowledgeBase, tables: Mapping[str, Sequence[Pair]], seed: int
) -> Callable[[], Any]:
    """Withdraws ten facts, which takes what rests on them away."""
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    names = ["a", "b", "c", "road", "a"] * 2
    atoms = [f"{name}({', '.join(rng.choice(tables[name]))})" for name in names]
    return lambda: hapax.retract(atoms, rules, kb, reason="measured")
