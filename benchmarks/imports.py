"""Processor time and memory of an import, compared with Python's csv and sqlite3 on the same table.

    python -m benchmarks.imports --rows 1000000
    python -m benchmarks.imports --rows 100000 -o imports.json

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import hapax
from benchmarks.common import machine, write_figures
from hapax.kb.mappings import TableMapping

RULES = 'type Feet < Number.\ngiven lies_at(Airport, Feet): "[1] lies at [2] feet" / "[1] does not" / "does [1]?".\n'
COUNTRIES = 200
HIGHEST = 9000


@dataclass(frozen=True)
class ImportCost:
    """Processor seconds of a way into a database, and the memory that it took beyond a process without rows, in MB."""

    seconds: float
    memory_mb: float


def write_table(path: Path, rows: int, seed: int = 1) -> None:
    """A table of airports with an elevation and a country each."""
    numbers = random.Random(seed)  # noqa: S311  no secrets
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["airport", "elevation", "country"])
        for row in range(rows):
            writer.writerow([f"Airport {row}", numbers.randint(0, HIGHEST), f"Country {row % COUNTRIES}"])


def by_sqlite(table: Path, database: Path) -> None:
    """Fill one indexed table by `executemany`: the least that any import has to do."""
    with sqlite3.connect(database) as connection, table.open(newline="", encoding="utf-8") as stream:
        connection.execute("CREATE TABLE lies_at (airport, elevation)")
        connection.execute("CREATE INDEX arguments ON lies_at (airport, elevation)")
        reader = csv.reader(stream)
        next(reader)
        connection.executemany("INSERT INTO lies_at VALUES (?, ?)", ((row[0], int(row[1])) for row in reader))
    connection.close()


def by_hapax(table: Path, database: Path) -> None:
    """Import the same columns, checked against rules."""
    mapping = TableMapping.of("lies_at", ["airport", "elevation"])
    with hapax.KnowledgeBase(database) as kb:
        hapax.import_facts(kb, table, mapping=mapping, rules=hapax.parse_rules(RULES))


def cost(fill: Callable[[Path, Path], None], table: Path, database: Path) -> ImportCost:
    """The cost of one way, in a process of its own, because a process never tells of memory that it gave back."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (fill, table, database))


def _measured(fill: Callable[[Path, Path], None], table: Path, database: Path) -> ImportCost:
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first.csv")
        write_table(first, 1)
        fill(first, Path(folder, "first.db"))  # what is imported late counts for neither time nor memory
    memory, seconds = _peak(), time.process_time()
    fill(table, database)
    return ImportCost(time.process_time() - seconds, _peak() - memory)


def _peak() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both ways with the same table, and print their costs and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "airports.csv")
        write_table(table, options.rows)
        plain = cost(by_sqlite, table, Path(folder, "plain.db"))
        imported = cost(by_hapax, table, Path(folder, "hapax.db"))
    ratio = imported.seconds / plain.seconds
    print(f"csv and executemany: {plain.seconds:.1f} s of processor time, {plain.memory_mb:.0f} MB")
    print(f"import: {imported.seconds:.1f} s of processor time, {imported.memory_mb:.0f} MB")
    print(f"ratio: {ratio:.2f}")
    figures = {"rows": options.rows, "ratio": ratio, "plain": asdict(plain), "import": asdict(imported)}
    write_figures(options.output, {"machine": machine(), **figures})


if __name__ == "__main__":
    main()
