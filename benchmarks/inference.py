"""Bulk inference compared with SQLite's own joins, Prolog's tabling and rows fetched through pyswip.

    python -m benchmarks.inference -o inference.json
    python -m benchmarks.inference --facts 1000 10000 --edges 200 --nodes 100 --shipped 50 --rounds 2

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

import hapax
from benchmarks.common import SHIPPED, machine, write_figures
from benchmarks.questions import questions
from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.program import build_program
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.derive import DerivationReport, derive_all
from hapax.grammar.parser import load_library, parse_library
from hapax.grammar.rules import Library, PredicateKind
from hapax.grammar.terms import Value
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

R = TypeVar("R")

JOIN = (
    "@name join\n@generic none\na(Thing X, Thing Y) & b(Thing Y, Thing Z) & c(Thing Z, Thing W) -> d(Thing X, Thing W)."
)
CLOSURE = """
given road(Place, Place).
given reaches(Place, Place).
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B).
@name further
@generic none
reaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C).
"""
BARE = "SELECT a.x, a.y, b.y AS z, c.y AS w FROM {0}a a JOIN {0}b b ON b.x = a.y JOIN {0}c c ON c.x = b.y"
SOLUTIONS_A_FACT = 3.3
"""Number of facts of a relation with the same name; a fact is then in the square of it statements."""


UNLIMITED = QueryLimits(seconds=600.0, inferences=10**14, answers=10**8, memory_mb=8192)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; write with -o."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--facts", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], help="of each join")
    parser.add_argument("--edges", type=int, default=2000, help="of the closure; 0: leave it out")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--shipped", type=int, default=1000, help="facts a predicate; 0: leave the shipped rules out")
    parser.add_argument("--questions", type=int, default=1_000_000, help="facts asked about; 0: leave them out")
    parser.add_argument("--changing", type=int, default=1_000_000, help="facts of which ten change; 0: leave them out")
    parser.add_argument("--probable", type=int, default=100_000, help="facts with probabilities; 0: leave them out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sample", type=int, default=20_000, help="rows fetched through pyswip")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="JSON file for all of it")
    options = parser.parse_args(arguments)
    joins = [_in_new_process(join, facts, options.rounds, options.sample, options.seed) for facts in options.facts]
    found: dict[str, Any] = {
        "machine": machine(),
        "settings": {name: value for name, value in vars(options).items() if name != "output"},
        "joins": joins,
        "slopes": slopes(joins),
    }
    if options.edges:
        found["closure"] = _in_new_process(closure, options.edges, options.nodes, options.rounds, options.seed)
    if options.shipped:
        found["shipped"] = _in_new_process(shipped, options.shipped, options.seed)
    if options.questions:
        found["questions"] = _in_new_process(questions, options.questions, options.seed)
    if options.changing:
        found["changes"] = _in_new_process(changes, options.changing, options.rounds, options.seed)
    if options.probable:
        found["probabilities"] = _in_new_process(probabilities, options.probable, options.seed)
    show(found, Console())
    write_figures(options.output, found)


def _in_new_process(task: Callable[..., R], *arguments: int) -> R:
    """Run the task in a new process, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, arguments)


def seconds_of(task: Callable[[], object]) -> float:
    """Wall time of a call."""
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def peak_mb() -> float:
    """Peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


# --- joins ------------------------------------------------------------------------------------------------------------


def join(facts: int, rounds: int, sample: int, seed: int) -> dict[str, Any]:
    """Measure a(X,Y), b(Y,Z), c(Z,W) over this number of facts, from the file to the commit, and the bare join."""
    library = parse_library([("join.rules", JOIN)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kb.db"
        with KnowledgeBase(path) as kb:
            _fill(kb, ("a", "b", "c"), facts // 3, max(2, int(facts / 3 / SOLUTIONS_A_FACT)), seed)
        with KnowledgeBase() as none:
            _derived(none, library)  # imports the libraries
        with KnowledgeBase(path) as kb:
            began_with = peak_mb()
            cold, derived = _derived(kb, library)
            found = {
                "facts": kb.counts()["facts"],
                "statements": derived.rules[0].statements,
                "memory_mb": {"before": began_with, "after": peak_mb()},
                "reading_s": derived.seconds_reading,
            }
            ways = _sqlite_ways(path)
            times = _turns({"again": lambda: _derived(kb, library), **ways}, rounds)
        found |= {"database_mb": path.stat().st_size / 1e6, "cold_s": cold}
        found |= {f"{name}_s": statistics.median(seconds) for name, seconds in times.items()}
        found |= _ratios(times, cold)
        found |= _duckdb(path, times["again"])
        found |= _pyswip(path, sample, found)
    return found


def _fill(  # noqa: PLR0917  a relation in full
    kb: KnowledgeBase,
    predicates: Sequence[str],
    count: int,
    names: int,
    seed: int,
    source: Source = Source.GIVEN,
) -> None:
    rng = random.Random(seed)  # noqa: S311  a sample, no secret

    def facts() -> Iterator[FactRecord]:
        for predicate in predicates:
            for _ in range(count):
                pair = (f"value {rng.randrange(names)}", f"value {rng.randrange(names)}")
                probability = None if source is Source.GIVEN else rng.random()
                yield FactRecord(predicate, pair, ("Thing", "Thing"), source, probability)

    waiting = facts()
    while batch := list(islice(waiting, 50_000)):
        kb.add_facts(batch)


def _derived(kb: KnowledgeBase, library: Library) -> tuple[float, DerivationReport]:
    """Derive everything anew, the relations of facts apart."""
    kb.connection.execute("UPDATE derivations SET fingerprint = ''")
    began = time.perf_counter()
    derived = derive_all(kb, library, library.rules)
    return time.perf_counter() - began, derived


def _sqlite_ways(path: Path) -> dict[str, Callable[[], None]]:
    """CREATE TABLE AS of the bare join in another file with the same settings, over integers and over texts.

    `from_facts` first reads the cells of the facts into indexed tables of texts.
    """
    beside = sqlite3.connect(path.with_name("beside.db"), isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "wal_autocheckpoint = 16000"):
        beside.execute(f"PRAGMA {pragma}")
    beside.execute("ATTACH DATABASE ? AS kb", [str(path)])
    cells = "arguments ->> 0 AS x, arguments ->> 1 AS y FROM kb.facts WHERE predicate = "
    numbers = dict(beside.execute("SELECT indicator, number FROM kb.relations"))
    for name in "abc":
        number = numbers[f"{name}/2"]
        beside.execute(f"CREATE TABLE int_{name} AS SELECT a1 AS x, a2 AS y FROM kb._relation_{number}")  # noqa: S608  ours
        _index(beside, f"int_{name}")

    def made(kind: str) -> None:
        beside.execute("DROP TABLE IF EXISTS result")
        beside.execute(f"CREATE TABLE result AS {BARE.format(kind)}")

    def from_facts() -> None:
        for name in "abc":
            beside.execute(f"DROP TABLE IF EXISTS text_{name}")
            beside.execute(f"CREATE TABLE text_{name} AS SELECT {cells} '{name}'")
            _index(beside, f"text_{name}")
        made("text_")

    return {"from_facts": from_facts, "ctas_int": partial(made, "int_"), "ctas_text": partial(made, "text_")}


def _index(connection: sqlite3.Connection, table: str) -> None:
    """Index a table by the first and by the second argument, as Hapax's relations are."""
    connection.execute(f"CREATE INDEX {table}_xy ON {table} (x, y)")
    connection.execute(f"CREATE INDEX {table}_yx ON {table} (y, x)")


def _turns(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each way in each round; within a round the ways take turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(seconds_of(way))
    return times


def _ratios(times: dict[str, list[float]], cold: float) -> dict[str, float]:
    """Median ratios of our time to that of each bare join, and the first derivation in relation to their medians."""
    found = {f"again_to_{name}": _median_ratio(times["again"], times[name]) for name in times if name != "again"}
    return found | {f"cold_to_{name}": cold / statistics.median(times[name]) for name in ("from_facts", "ctas_text")}


def _median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over rounds: a machine that slows down slows both in a round."""
    return statistics.median(our_time / their_time for our_time, their_time in zip(ours, theirs, strict=True))


def _duckdb(path: Path, ours: Sequence[float]) -> dict[str, float]:
    """DuckDB's CREATE TABLE AS over the same integers on one thread, into a file; empty if it is not installed."""
    try:
        import duckdb
    except ImportError:
        return {}
    with closing(duckdb.connect(str(path.with_name("beside.duckdb")), config={"threads": 1})) as duck:
        with closing(sqlite3.connect(path.with_name("beside.db"))) as beside:
            for name in "abc":
                import pyarrow as pa

                columns = list(zip(*beside.execute(f"SELECT x, y FROM int_{name}"), strict=True))  # noqa: S608
                duck.register("rows", pa.table({"x": columns[0], "y": columns[1]}))
                duck.execute(f"CREATE TABLE int_{name} AS SELECT * FROM rows")  # noqa: S608
        joined = BARE.format("int_")
        took = statistics.median(
            seconds_of(lambda: duck.execute(f"CREATE OR REPLACE TABLE result AS {joined}")) for _ in ours
        )
    return {"duckdb_s": took, "again_to_duckdb": statistics.median(ours) / took}


def _pyswip(path: Path, sample: int, found: dict[str, Any]) -> dict[str, Any]:
    """Time for all rows through `Prolog.query` from loaded and indexed facts, extrapolated from a sample."""
    with KnowledgeBase(path, read_only=True) as kb:
        program = build_program(parse_library([("join.rules", JOIN)]), kb.facts())
    file = path.with_name("facts.pl")
    file.write_text(program, "utf-8")
    from pyswip import Prolog

    prolog = Prolog()
    prolog.consult(str(file))
    list(prolog.query("aggregate_all(count, (a(X,Y),b(Y,Z),c(Z,W)), N)"))
    began = time.perf_counter()
    fetched = sum(1 for _ in islice(prolog.query("a(X,Y),b(Y,Z),c(Z,W)"), sample))
    took = (time.perf_counter() - began) / max(1, fetched) * found["statements"]
    return {
        "pyswip_s": took,
        "pyswip_rows_fetched": fetched,
        "pyswip_to_again": took / found["again_s"],
        "pyswip_to_cold": took / found["cold_s"],
    }


def slopes(joins: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Exponents of the cost by least squares on logarithms: 1 is linear. Empty for fewer than two sizes."""
    if len({figures["facts"] for figures in joins}) < 2:
        return {}
    pairs = {
        "reading_by_facts": [(figures["facts"], figures["reading_s"]) for figures in joins],
        "cold_by_facts": [(figures["facts"], figures["cold_s"]) for figures in joins],
        "again_by_statements": [(figures["statements"], figures["again_s"]) for figures in joins],
    }
    return {name: _slope([(math.log(x), math.log(y)) for x, y in points]) for name, points in pairs.items()}


def _slope(points: Sequence[tuple[float, float]]) -> float:
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


# --- closure ----------------------------------------------------------------------------------------------------------


def closure(edges: int, nodes: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure all connected pairs of a random graph, from indexed relations to the commit, and Prolog's tabling alone.

    Prolog's facts are loaded, and it only counts the pairs. In each round the facts count as changed, so that nothing
    is reused.
    """
    library = parse_library([("closure.rules", CLOSURE)])
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    roads = {(f"place {rng.randrange(nodes)}", f"place {rng.randrange(nodes)}") for _ in range(edges)}
    with (
        tempfile.TemporaryDirectory() as folder,
        PrologSession() as session,
        KnowledgeBase(Path(folder) / "k.db") as kb,
    ):
        kb.add_facts(FactRecord("road", pair, ("Place", "Place"), Source.GIVEN) for pair in sorted(roads))
        session.load(build_program(library, Theory(library, kb).facts()))
        pairs: list[int] = []

        def ours() -> None:
            kb.connection.execute("UPDATE derived_predicates SET fingerprint = ''")
            pairs.append(derive_all(kb, library, []).atoms["reaches/2"])

        def tabled() -> None:
            # `solutions` checks a goal before it runs, which loads the library predicates in it.
            found = session.solutions("aggregate_all(count, reaches(_, _), N)", ["N"], UNLIMITED)
            pairs.append(int(str(found.rows[0][0])))

        def recursive() -> None:
            kb.connection.execute("DROP TABLE IF EXISTS beside_all")
            kb.connection.execute(
                "CREATE TABLE beside_all AS WITH RECURSIVE r(x, y) AS (SELECT a1, a2 FROM _relation_1 UNION "
                "SELECT r.x, e.a2 FROM r JOIN _relation_1 e ON e.a1 = r.y) SELECT * FROM r"
            )

        cold = seconds_of(ours)
        times = _turns({"ours": ours, "prolog": tabled, "recursive": recursive}, rounds)
    assert len(set(pairs)) == 1, pairs  # noqa: S101  the ways would not be comparable
    found = {f"{name}_s": statistics.median(taken) for name, taken in times.items()}
    return {
        "edges": len(roads),
        "nodes": nodes,
        "pairs": pairs[0],
        "cold_s": cold,
        **found,
        "ours_to_prolog": _median_ratio(times["ours"], times["prolog"]),
        "ours_to_recursive": _median_ratio(times["ours"], times["recursive"]),
        "memory_mb": peak_mb(),
    }


# --- changes of facts -------------------------------------------------------------------------------------------------

CHANGING = (
    CLOSURE
    + """
@name pairs
@generic none
a(Thing X, Thing Y) & b(Thing Y, Thing Z) & not c(Thing X, Thing Z) -> paired(Thing X, Thing Z).
@name triples
@generic none
a(Thing X, Thing Y) & b(Thing Y, Thing Z) & c(Thing Z, Thing W) -> joined(Thing X, Thing W).
@name onward
@generic none
reaches(Place X, Place Y) & a(Place Y, Place Z) -> leads(Place X, Place Z).
"""
)


def changes(facts: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure `derive` after ten facts were added, and after ten were withdrawn, beside the first derivation.

    Two joins, one with a negation, over three relations, and a closure over a hundredth as many roads below a third
    join. In each round the facts are random facts of all four relations.
    """
    library = parse_library([("changing.rules", CHANGING)])
    rules = [library.rule(name) for name in ("pairs", "triples", "onward")]
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    with tempfile.TemporaryDirectory() as folder, KnowledgeBase(Path(folder) / "kb.db") as kb:
        _fill(kb, ("a", "b", "c"), facts // 3, facts // 3, seed)
        _fill(kb, ("road",), facts // 100, facts // 50, seed)
        first = seconds_of(lambda: derive_all(kb, library, rules))
        times: dict[str, list[float]] = {"add": [], "remove": []}
        for round_ in range(rounds):
            added = []
            for number in range(10):
                name, most = ("a", "b", "c", "road")[number % 4], facts // (50 if number % 4 == 3 else 3)
                pair = (f"value {rng.randrange(most)}", f"value {rng.randrange(most)}")
                added.append(FactRecord(name, pair, ("Thing", "Thing"), Source.GIVEN))
            kb.add_facts(added)
            times["add"].append(seconds_of(lambda: derive_all(kb, library, rules)))
            last = kb.connection.execute("SELECT max(rowid) FROM facts").fetchone()[0]
            numbers = ", ".join(str(rng.randrange(1, last)) for _ in range(10))
            gone = kb.connection.execute(f"SELECT id FROM facts WHERE rowid IN ({numbers})").fetchall()  # noqa: S608
            kb.withdraw([fact_id for (fact_id,) in gone], f"round {round_}", "user")
            times["remove"].append(seconds_of(lambda: derive_all(kb, library, rules)))
        counts = kb.counts()["facts"], sum(kb.derived_counts().values())
    medians = {f"{name}_s": statistics.median(seconds) for name, seconds in times.items()}
    shares = {f"{name}_to_first": medians[f"{name}_s"] / first for name in times}
    return {"facts": counts[0], "statements": counts[1], "first_s": first, **medians, **shares}


# --- the shipped rules ------------------------------------------------------------------------------------------------


def shipped(facts: int, seed: int) -> dict[str, Any]:
    """Measure the shipped rules over this number of random facts of each predicate."""
    library = load_library([SHIPPED])
    rules = [rule for rule in library.rules if not library.is_definition(rule)]
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    with tempfile.TemporaryDirectory() as folder, KnowledgeBase(Path(folder) / "kb.db") as kb:
        for signature in library.completed().signatures:
            if signature.kind is not PredicateKind.COMPUTED:
                kb.add_facts(
                    FactRecord(
                        signature.name,
                        tuple(_value(library, data_type, facts, rng) for data_type in signature.argument_types),
                        signature.argument_types,
                        Source.GIVEN,
                    )
                    for _ in range(facts)
                )
        fact_count = kb.counts()["facts"]
        first = seconds_of(lambda: derive_all(kb, library, rules))
        for table in ("derivations", "derived_predicates"):
            kb.connection.execute(f"UPDATE {table} SET fingerprint = ''")  # noqa: S608  ours
        began = time.perf_counter()
        derived = derive_all(kb, library, rules)
        again = time.perf_counter() - began
    return {
        "rules": len(rules),
        "facts": fact_count,
        "statements": sum(rule.statements for rule in derived.rules),
        "cold_s": first,
        "again_s": again,
        "memory_mb": peak_mb(),
    }


PROBABLE = """
given a(Thing, Thing).
given b(Thing, Thing).
@generic none
@name facts
a(Thing X, Thing Y) & b(Thing Y, Thing Z) -> joined(Thing X, Thing Z)
@generic none
near(X, Z) :- a(Thing X, Thing Y), b(Thing Y, Thing Z)
@generic none
@name derived
near(Thing X, Thing Y) -> reached(Thing X, Thing Y)
"""
"""Two rules with a statement for each pair that the relations join: over facts, and over a derived predicate."""


def probabilities(facts: int, seed: int) -> dict[str, Any]:
    """Compare derivation and export with best proofs, and with exact probabilities, to the same without."""
    rules = hapax.parse_rules(PROBABLE)
    found: dict[str, Any] = {"facts": facts}
    for rule in ("facts", "derived"):
        for method in (None, "best", "exact"):
            with tempfile.TemporaryDirectory() as folder, KnowledgeBase(Path(folder) / "kb.db") as kb:
                _fill(kb, ("a", "b"), facts // 2, max(2, facts // 2), seed, Source.MODEL)
                options = None if method is None else hapax.ProbabilityOptions(method=method)
                output = Path(folder) / "statements.jsonl"
                key = f"{rule}_{method or 'without'}_s"
                found[key] = seconds_of(
                    lambda: hapax.derive(rules, kb, only=rule, probability=options).write(output)  # noqa: B023  called here
                )
    for rule in ("facts", "derived"):
        found[f"{rule}_best_to_without"] = found[f"{rule}_best_s"] / found[f"{rule}_without_s"]
    return found


def _value(library: Library, data_type: str, facts: int, rng: random.Random) -> Value:
    number = rng.randrange(max(2, int(facts / SOLUTIONS_A_FACT)))
    return 1900 + number if library.is_numeric(data_type) else f"value {number}"


# --- the table --------------------------------------------------------------------------------------------------------


def show(found: dict[str, Any], console: Console) -> None:
    """Print the joins as a table, and the rest as lines."""
    columns = {
        "facts": "facts",
        "statements": "statements",
        "cold_s": "cold s",
        "again_s": "again s",
        "again_to_ctas_int": "to CTAS int",
        "again_to_ctas_text": "to CTAS text",
        "cold_to_from_facts": "cold to SQLite from facts",
        "cold_to_ctas_text": "cold to CTAS text",
        "pyswip_to_again": "pyswip to again",
        "pyswip_to_cold": "pyswip to cold",
        "again_to_duckdb": "to DuckDB",
    }
    # A row for each figure and a column for each size, which fit into 80 characters.
    if found["joins"]:
        rows = [[_cell(figures.get(name)) for figures in found["joins"]] for name in columns]
        _print_rows(console, "join", list(columns.values()), rows)
    if "questions" in found:
        seconds = found["questions"]["seconds"]
        tasks = ("import", "first", "point", "reach", "derive", "export")
        rows = [[_cell(figures.get(task)) for figures in seconds.values()] for task in tasks]
        _print_rows(console, f"s, {found['questions']['facts']} facts", tasks, rows, list(seconds))
    for name in ("slopes", "closure", "changes", "shipped", "probabilities"):
        if name in found:
            text = ", ".join(
                f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in found[name].items()
            )
            console.print(f"{name}: {text}", soft_wrap=True, highlight=False)


def _cell(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:.3g}" if isinstance(figure, float) else str(figure)


def _print_rows(
    console: Console, title: str, names: Sequence[str], rows: Sequence[Sequence[str]], heads: Sequence[str] = ()
) -> None:
    """Print a table with a title over the names of its rows; `heads` name the other columns."""
    table = Table(title, *(heads or [""] * len(rows[0])), box=None, show_header=bool(heads))
    for name, cells in zip(names, rows, strict=True):
        table.add_row(name, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
