"""Time and memory of a large entailment graph: imported, counted, and used by goals.

    python -m benchmarks.graphs --edges 1000000
    python -m benchmarks.graphs --edges 100000 --goals 50 -o graphs.json

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import hapax
from benchmarks.common import machine, write_figures
from hapax.engine.entailment.lookup import edges_into
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.query import run_query

T = TypeVar("T")

TYPES = ("person", "location", "organization", "event", "product")
EDGES_PER_PREDICATE = 20
GRAPHS_PER_PREDICATE = 3


@dataclass(frozen=True)
class GraphCost:
    """Seconds for the import and for the summary, milliseconds a goal, and the most memory of the process in MB.

    `look_up_ms`: the entailments of a goal found. `goal_ms`: found, made rules and proved by a running Prolog.
    """

    edges: int
    import_s: float
    import_mb: float
    summary_s: float
    summary_mb: float
    look_up_ms: float
    goal_ms: float
    slowest_goal_ms: float
    used: float


def write_graphs(folder: Path, edges: int, seed: int = 1) -> None:
    """Write graphs of all pairs of types in entGraph's format, with about as many edges each.

    Each predicate is in about three graphs. Few edges are strong and most are weak, as in published graphs: a score is
    the sixth power of a uniform number.
    """
    draw = random.Random(seed)  # noqa: S311  no secrets
    pairs = [(first, second) for number, first in enumerate(TYPES) for second in TYPES[number:]]
    of_file = edges // len(pairs)
    predicates = max(2, of_file // EDGES_PER_PREDICATE)
    for place, (first, second) in enumerate(pairs):
        begin = place * predicates // GRAPHS_PER_PREDICATE
        labels = f"#{first}_1#{second}_2" if first == second else f"#{first}#{second}"
        with (folder / f"{first}#{second}_sim.txt").open("w", encoding="utf-8") as stream:
            stream.write(f"types: {first}#{second}, num preds: {predicates}\n")
            written = 0
            for number in range(predicates):
                count = (of_file - written) // (predicates - number)
                written += count
                stream.write(f"\npredicate: (verb{begin + number}.1,verb{begin + number}.in.2){labels}\nBInc sims\n")
                for other in draw.sample(range(predicates), min(count, predicates)):
                    stream.write(f"(verb{begin + other}.1,verb{begin + other}.in.2){labels} {draw.random() ** 6:.4f}\n")


def measured(folder: Path, database: Path, goals: int, at_least: float) -> GraphCost:
    """Import the graphs of a folder, count them, and prove goals over them."""
    with hapax.KnowledgeBase(database) as kb:
        report, import_s = _timed(lambda: hapax.import_entailment_graphs(kb, folder))
        import_mb = _peak()
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        summary, summary_s = _timed(lambda: hapax.summarise_entailments(kb, 0.0))
        summary_mb = _peak()
        rules = hapax.parse_rules("")
        names = random.Random(2).sample(range(report.added // EDGES_PER_PREDICATE // 15), goals)  # noqa: S311  no secrets
        look_ups, proofs, used = [], [], []
        with PrologSession() as session:
            session.load("")  # Prolog's start is not counted
            for name in names:
                goal = f"verb{name}_in(ann, Place)"
                found, seconds = _timed(lambda goal=goal: edges_into(kb, rules, [goal.partition("(")[0]], at_least))
                look_ups.append(seconds * 1000)
                used.append(len(found))
                if found:
                    _, seconds = _timed(lambda goal=goal: _prove(kb, rules, goal, at_least, session))
                    proofs.append(seconds * 1000)
    medians = statistics.median(look_ups), statistics.median(proofs)
    figures = (import_s, import_mb, summary_s, summary_mb, *medians, max(proofs), statistics.mean(used))
    return GraphCost(summary.entailments, *figures)


def _prove(kb: hapax.KnowledgeBase, rules: hapax.Library, goal: str, at_least: float, session: PrologSession) -> object:
    entailing = hapax.with_entailments(rules, kb, at_least, goal)
    first = next(rule.literals[0].atom.predicate for rule in entailing.rules)
    return run_query(Theory(entailing, kb, (f"{first}(ann, rome)",)), goal, session=session)


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    begun = time.perf_counter()
    return call(), time.perf_counter() - begun


def _peak() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the graphs, measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--goals", type=int, default=100)
    parser.add_argument("--entail", type=float, default=0.8, help="lowest product of scores of a chain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "graphs")
        folder.mkdir()
        write_graphs(folder, options.edges, options.seed)
        cost = measured(folder, Path(name, "kb.db"), options.goals, options.entail)
    print(f"{cost.edges:,} entailments imported in {cost.import_s:.0f} s, {cost.import_mb:.0f} MB at most")
    print(f"components of the whole graph: {cost.summary_s:.0f} s, {cost.summary_mb:.0f} MB at most")
    print(f"entailments of a goal looked up: {cost.look_up_ms:.1f} ms in the median, {cost.used:.0f} on average")
    print(f"goal answered by a running Prolog: {cost.goal_ms:.1f} ms in the median, {cost.slowest_goal_ms:.0f} at most")
    write_figures(options.output, {"machine": machine(), **asdict(cost)})


if __name__ == "__main__":
    main()
