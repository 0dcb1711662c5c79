"""Reading, checking, compiling and planning large rule libraries: time per rule, and its growth with the library.

    python -m benchmarks.rules --rules 10000 -o rules.json
    python -m benchmarks.rules --rules 1000 --shape long

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lark import Lark

from benchmarks.common import machine, write_figures
from benchmarks.libraries import SHAPES, library_text
from hapax.engine.inference.session import PrologSession
from hapax.grammar import parser
from hapax.grammar.checks import CHECKS
from hapax.grammar.dependencies import search_plans
from hapax.grammar.pair_checks import duplicate_and_subsumed_rules, opposite_conclusions
from hapax.grammar.parser import parse_library
from hapax.grammar.prolog_text import program_text
from hapax.grammar.rules import Library

PAIR_CHECKS = (duplicate_and_subsumed_rules, opposite_conclusions)

PLANNED = 200
"""Number of rules of a library that are planned, spread evenly."""

LEAST_SECONDS = 0.02
"""Shorter stages are not compared: their times depend on the clock and on other programs."""

CLI = Path(__file__).parent.parent / "cli.py"


@dataclass(frozen=True)
class LibraryMeasurement:
    """The figures of a library.

    `seconds` are by stage, those of `plan` for `planned` rules only; `peak_mb` is of the process of `hapax check`.
    """

    shape: str
    rules: int
    characters: int
    findings: int
    planned: int
    peak_mb: float
    seconds: Mapping[str, float]

    def per_rule(self, stage: str) -> float:
        """Milliseconds per rule."""
        return 1000 * self.seconds[stage] / (self.planned if stage == "plan" else self.rules)


STAGES = ("tokens", "parse", "checks", "pairs", "compile", "load", "plan", "process")


def measure(shape: str, rules: int, seed: int) -> LibraryMeasurement:
    """Measure a library, stage by stage."""
    text = library_text(shape, rules, seed)
    clock = Clock()
    clock.run("tokens", lambda: tokens(text))
    library: Library = clock.run("parse", lambda: parse_library([(f"{shape}.rules", text)]))
    single = [check for check in CHECKS if check not in PAIR_CHECKS]
    found = clock.run("checks", lambda: [list(check(library)) for check in single])
    found += clock.run("pairs", lambda: [list(check(library)) for check in PAIR_CHECKS])
    program = clock.run("compile", lambda: program_text(library))
    with PrologSession() as session:
        session.load("")
        begin = time.perf_counter()  # wall time, because another process does the work
        session.load(program)
        clock.seconds["load"] = time.perf_counter() - begin
    planned = library.rules[:: max(1, len(library.rules) // PLANNED)][:PLANNED]
    clock.run("plan", lambda: [search_plans(rule, library) for rule in planned])
    seconds, peak = checked_by_command(text)
    findings = sum(map(len, found))
    return LibraryMeasurement(
        shape, rules, len(text), findings, len(planned), peak, {**clock.seconds, "process": seconds}
    )


class Clock:
    """Measures stages in processor time, since other programs may use the machine."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, stage: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        result = work()
        self.seconds[stage] = time.process_time() - begin
        return result


def tokens(text: str) -> int:
    """Count the tokens of a text with lark's lexer alone: the lower bound for any parser of the rule language."""
    folder = Path(parser.__file__).parent
    lark = Lark((folder / "rule.lark").read_text("utf-8"), start=["statement", "other"], parser="lalr", lexer="basic")
    return sum(1 for _ in lark.lex(text))


LAUNCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""A small process that starts the command, because the peak memory of a process includes that of its parent."""


def checked_by_command(text: str) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of `hapax check` on the text. Raises SystemExit if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "generated.rules"
        file.write_text(text, "utf-8")
        command = [sys.executable, "-c", LAUNCH, sys.executable, str(CLI), "check", str(file)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(ended.stderr[-2000:])
    seconds, kilobytes = map(float, ended.stdout.split())
    return seconds, kilobytes / 1024


def growth(smaller: LibraryMeasurement, larger: LibraryMeasurement, stage: str) -> float | None:
    """Ratio of the times per rule in the two libraries: 1 is linear. None if the stage is too short to measure."""
    if larger.seconds[stage] < LEAST_SECONDS:
        return None
    return larger.per_rule(stage) / smaller.per_rule(stage)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; write with -o. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rules", type=int, default=10_000, help="in the largest library; others have a tenth and less"
    )
    parser.add_argument("--shape", choices=SHAPES, action="append", help="of this shape alone; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="JSON file for all of it")
    options = parser.parse_args(arguments)
    sizes = sorted({max(1, options.rules // part) for part in (100, 10, 1)})
    print(f"{'shape':15}{'rules':>7}{'found':>7}" + "".join(f"{stage:>10}" for stage in STAGES) + "  MB")
    figures = [figures_of(shape, sizes, options.seed) for shape in options.shape or SHAPES]
    write_figures(options.output, {"machine": machine(), "seed": options.seed, "shapes": figures})
    return 0


def figures_of(shape: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
    """Measure and print libraries of a shape, and the growth of the time per rule from each size to the next."""
    measured: list[LibraryMeasurement] = []
    for size in sizes:
        library = measure(shape, size, seed)
        cells = "".join(f"{library.per_rule(stage):10.2f}" for stage in STAGES)
        print(f"{shape:15}{library.rules:7}{library.findings:7}{cells}{library.peak_mb:6.0f}", flush=True)
        measured.append(library)
    grown = {stage: [growth(*pair, stage) for pair in pairwise(measured)] for stage in STAGES}
    growths = "".join(f"{'-' if grown[stage][-1] is None else f'{grown[stage][-1]:.2f}':>10}" for stage in STAGES)
    print(f"{'':15}{'':7}{'growth':>7}{growths}\n", flush=True)
    return {"shape": shape, "measured": [asdict(library) for library in measured], "growth": grown}


if __name__ == "__main__":
    sys.exit(main())
