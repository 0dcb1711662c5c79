"""Reading, checking, compiling and planning of large rule libraries: time for each rule, and whether it stays the same.

    python -m benchmarks.rules --rules 10000 -o rules.json
    python -m benchmarks.rules --rules 1000 --shape long

`benchmarks/README.md` tells what the figures mean.
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

import grammar.parser
from benchmarks.common import machine, write_figures
from benchmarks.libraries import SHAPES, library_text
from engine.session import PrologSession
from grammar.checks import CHECKS
from grammar.dependencies import search_plans
from grammar.parser import parse_library
from grammar.prolog_text import program_text
from grammar.rule_pairs import duplicate_and_subsumed_rules, opposite_conclusions
from grammar.rules import Library

PAIR_CHECKS = (duplicate_and_subsumed_rules, opposite_conclusions)

PLANNED = 200
"""Rules of a library that are planned, spread over all."""

LEAST_SECONDS = 0.02
"""Stages shorter than this are not compared: the clock and other programs would decide."""

CLI = Path(__file__).parent.parent / "cli.py"


@dataclass(frozen=True)
class Measured:
    """One library. `seconds` by stage, `plan` of `planned` rules alone; `peak_mb` is of `hapax check`'s process."""

    shape: str
    rules: int
    characters: int
    findings: int
    planned: int
    peak_mb: float
    seconds: Mapping[str, float]

    def each(self, stage: str) -> float:
        """Milliseconds for each rule."""
        return 1000 * self.seconds[stage] / (self.planned if stage == "plan" else self.rules)


STAGES = ("tokens", "parse", "checks", "pairs", "compile", "load", "plan", "process")


def measure(shape: str, rules: int, seed: int) -> Measured:
    """One library, stage by stage."""
    text = library_text(shape, rules, seed)
    clock = Clock()
    clock.run("tokens", lambda: tokens(text))
    library: Library = clock.run("parse", lambda: parse_library([(f"{shape}.rules", text)]))
    single = [check for check in CHECKS if check not in PAIR_CHECKS]
    found = clock.run("checks", lambda: [one for check in single for one in check(library)])
    found += clock.run("pairs", lambda: [one for check in PAIR_CHECKS for one in check(library)])
    program = clock.run("compile", lambda: program_text(library))
    with PrologSession() as session:
        session.load("")
        begin = time.perf_counter()  # another process does it
        session.load(program)
        clock.seconds["load"] = time.perf_counter() - begin
    planned = library.rules[:: max(1, len(library.rules) // PLANNED)][:PLANNED]
    clock.run("plan", lambda: [search_plans(rule, library) for rule in planned])
    seconds, peak = checked_by_command(text)
    return Measured(shape, rules, len(text), len(found), len(planned), peak, {**clock.seconds, "process": seconds})


class Clock:
    """Times stages one after another, by the processor: others may use the machine."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, stage: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        result = work()
        self.seconds[stage] = time.process_time() - begin
        return result


def tokens(text: str) -> int:
    """What lark needs to cut a text into the tokens of the rule language: less than that no parser of it can take."""
    folder = Path(grammar.parser.__file__).parent
    lark = Lark((folder / "rule.lark").read_text("utf-8"), start=["statement", "other"], parser="lalr", lexer="basic")
    return sum(1 for _ in lark.lex(text))


LAUNCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""A small process that starts the command: memory is counted from the one that started a process."""


def checked_by_command(text: str) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of `hapax check` on the text. Raises SystemExit where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "generated.rules"
        file.write_text(text, "utf-8")
        command = [sys.executable, "-c", LAUNCH, sys.executable, str(CLI), "check", str(file)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(ended.stderr[-2000:])
    seconds, kilobytes = map(float, ended.stdout.split())
    return seconds, kilobytes / 1024


def growth(smaller: Measured, larger: Measured, stage: str) -> float | None:
    """How much more a rule costs among many: 1 is linear. None where both together take less than can be measured."""
    if larger.seconds[stage] < LEAST_SECONDS:
        return None
    return larger.each(stage) / smaller.each(stage)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; write with -o. Exit code 0."""
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
    """Libraries of one shape, printed as they come, and how the cost of a rule grows from each size to the next."""
    measured: list[Measured] = []
    for size in sizes:
        one = measure(shape, size, seed)
        each = "".join(f"{one.each(stage):10.2f}" for stage in STAGES)
        print(f"{shape:15}{one.rules:7}{one.findings:7}{each}{one.peak_mb:6.0f}", flush=True)
        measured.append(one)
    grown = {stage: [growth(*pair, stage) for pair in pairwise(measured)] for stage in STAGES}
    told = "".join(f"{'-' if grown[stage][-1] is None else f'{grown[stage][-1]:.2f}':>10}" for stage in STAGES)
    print(f"{'':15}{'':7}{'growth':>7}{told}\n", flush=True)
    return {"shape": shape, "measured": [asdict(one) for one in measured], "growth": grown}


if __name__ == "__main__":
    sys.exit(main())
