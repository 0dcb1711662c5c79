"""The cost of checking the identity of each row that is read: `python -m benchmarks.identities --facts 100000`.

An identity is a hash of its row's content. Reading, exporting and looking up facts is timed with that check and without
it, one after the other, and the best of several repetitions counts. The ratios are of processor time.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hapax
from benchmarks.common import machine, write_figures
from hapax.kb.rows import TableSchema
from hapax.kb.store import KnowledgeBase

RULES = 'given makes(Person, Part): "[1] makes [2]" / "[1] does not make [2]" / "?".\n'


@contextmanager
def unchecked() -> Iterator[None]:
    """Read rows without a look at their identities."""
    checked = TableSchema.read

    def read(table: TableSchema[Any], row: tuple[Any, ...]) -> Any:
        cells = zip(table._decoders, row[len(table.computed) :], strict=True)
        return table.record(**{name: None if cell is None else decode(cell) for (name, decode), cell in cells})

    TableSchema.read = read  # type: ignore[method-assign]
    try:
        yield
    finally:
        TableSchema.read = checked  # type: ignore[method-assign]


def best(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the fastest repetition."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def measure(facts: int, repeats: int) -> dict[str, float]:
    """The ratio of the time with the check to that without it, by what is done."""
    library = hapax.parse_rules(RULES)
    with KnowledgeBase(None) as kb:
        hapax.add_facts(kb, "makes", [(f"person {i % 997}", f"part {i}") for i in range(facts)], library)
        works: dict[str, Callable[[], object]] = {
            "read": kb.facts,
            "export": lambda: hapax.export_facts(kb, io.StringIO(), form="jsonl"),
            "look up": lambda: [hapax.query(f"makes(X, 'part {i}')", library, kb) for i in range(3)],
        }
        ratios = {}
        for name, work in works.items():
            work()
            with unchecked():
                without = best(work, repeats)
            ratios[name] = best(work, repeats) / without
    return ratios


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.identities", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--facts", type=int, default=100_000, help="number of facts (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="of which the best counts (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args(arguments)
    ratios = measure(options.facts, options.repeats)
    for name, ratio in ratios.items():
        print(f"{name:8} {ratio:.2f}")
    write_figures(options.output, {"machine": machine(), "facts": options.facts, "ratios": ratios})
    return 0


if __name__ == "__main__":
    sys.exit(main())
