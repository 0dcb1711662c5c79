"""The command `import` for a table and for a file of facts, beside Python's csv and sqlite3; and bytes a fact.

What counts is the whole process, start-up included.
"""

from __future__ import annotations

import csv
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import hapax
from benchmarks.inference import fill, join, written
from benchmarks.measuring import COMMAND, Figure, Size, Turn, compared, median_of, process_cost

RULES = 'type Feet < Number.\ngiven lies_at(Airport, Feet): "[1] lies at [2] feet" / "[1] does not" / "does [1]?".\n'
HIGHEST = 9000
BY_CSV = "from benchmarks.plain_import import Path, fill; fill(*map(Path, sys.argv[1:-1]))"


def figures(size: Size) -> Iterator[Figure]:
    """All figures of imports."""
    rows = size.pick(100, 100_000, 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, facts, rules = folder / "airports.csv", folder / "airports.jsonl", folder / "my.rules"
        rules.write_text(RULES, "utf-8")
        write_tables(table, facts, rows)
        mapped = ["--predicate", "lies_at", "--columns", "airport,elevation"]
        targets = {("csv, executemany", "s"): 2.0, ("hapax", "MB"): 60.0}
        for source, options in ((table, mapped), (facts, [])):
            words: list[str | Path] = ["import", source, *options, "--rules", rules, "--db", folder / "new.db"]
            ways = {
                "hapax": partial(fresh_cost, words),
                "csv, executemany": partial(fresh_cost, [table, folder / "new.db"], BY_CSV),
            }
            yield from compared(f"import of {rows:,} rows, {source.suffix[1:]}", ways, size, targets)
    yield from sizes(size.pick(100, 100_000, 1_000_000))


def fresh_cost(words: Sequence[str | Path], code: str = COMMAND) -> Turn:
    """The cost of a process whose last word is a file that it makes."""
    Path(words[-1]).unlink(missing_ok=True)
    return process_cost(words, code)


def write_tables(table: Path, facts: Path, rows: int) -> None:
    """Airports with an elevation each, as a table with another column and as facts."""
    rng = random.Random(1)  # noqa: S311  a sample, no secret
    with table.open("w", newline="", encoding="utf-8") as stream, facts.open("w", encoding="utf-8") as lines:
        writer = csv.writer(stream)
        writer.writerow(["airport", "elevation", "country"])
        for row in range(rows):
            name, feet = f"Airport {row}", rng.randint(0, HIGHEST)
            writer.writerow([name, feet, f"Country {row % 200}"])
            lines.write(json.dumps({"predicate": "lies_at", "arguments": [name, feet]}) + "\n")


def sizes(count: int) -> Iterator[Figure]:
    """Bytes of the file for each fact of a join, after the import and after the derivation with its proofs."""
    work = join(count)
    rules = hapax.parse_rules(work.rules)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = folder / "base.db"
        tables = written(folder, work.tables)
        fill(base, tables, rules)
        facts = sum(map(len, work.tables.values()))
        imported = base.stat().st_size / facts
        with hapax.KnowledgeBase(base) as kb:
            hapax.derive(rules, kb)
        yield median_of(f"size after import of {facts:,} facts", "hapax", "bytes a fact", [imported], target=80)
        yield median_of("size after their join", "hapax", "bytes a fact", [base.stat().st_size / facts], target=110)
