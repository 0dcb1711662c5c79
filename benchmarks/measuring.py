"""Shared by all benchmarks: sizes, processor time, turns of ways that do the same work, and the table of figures."""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil

import hapax

ROOT = Path(__file__).resolve().parent.parent

PEERS = ("duckdb", "torch", "transformers")
"""Packages whose versions stand beside the figures."""

T = TypeVar("T")


class Size(NamedTuple):
    """The size of the work, `tiny`, `small` or `full`, and the number of times that each way does it."""

    name: str
    turns: int

    def pick(self, tiny: T, small: T, full: T) -> T:
        return {"tiny": tiny, "small": small, "full": full}[self.name]


@dataclass(frozen=True)
class Figure:
    """The median of what a way took for some work, with the least and the most of the turns.

    `value`: None if the work was not done, and `note` then says why. `ratio`: how many times as much as this peer Hapax
    takes, the median over the turns. `target`: the most that the ratio, or without a ratio the value, should be at full
    size.
    """

    work: str
    by: str
    unit: str
    value: float | None
    lowest: float | None = None
    highest: float | None = None
    ratio: float | None = None
    target: float | None = None
    note: str = ""


class Turn(NamedTuple):
    """The costs by unit of the work, done once in one way, and the number of its results, in which all ways agree."""

    costs: Mapping[str, float]
    results: int = 0


Way = Callable[[], Turn]


def seconds_of(task: Callable[[], object]) -> float:
    """Processor seconds of a call, in this process and in all that it started, whether these have ended or not."""
    gc.collect()
    running, before = _running_children(), _own_and_ended()
    task()
    # In this order: to look for processes takes time as well.
    return _own_and_ended() - before + _running_children() - running


def _own_and_ended() -> float:
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def _running_children() -> float:
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            total += sum(child.cpu_times()[:4])
    return total


def compared(
    work: str, ways: Mapping[str, Way | None], size: Size, targets: Mapping[tuple[str, str], float] | None = None
) -> list[Figure]:
    """Let all ways do the work in turns; Hapax comes first, and a peer that is not installed is None.

    `targets` are by way and unit. An error of Hapax, such as one of its limits, ends its work, and its figure then says
    so. Raises RuntimeError if the numbers of results differ.
    """
    turns: dict[str, list[Turn]] = {name: [] for name, way in ways.items() if way is not None}
    fault = ""
    for _ in range(size.turns):
        for name, way in ways.items():
            if way is None or (name == "hapax" and fault):
                continue
            try:
                turns[name].append(way())
            except hapax.HapaxError as error:
                fault = f"not done: {error}".partition(". ")[0]
    results = {name: taken[-1].results for name, taken in turns.items() if taken}
    if len(set(results.values())) > 1:
        raise RuntimeError(f"{work}: the numbers of results differ: {results}.")
    units = dict.fromkeys(unit for taken in turns.values() for turn in taken for unit in turn.costs) or {"s": None}
    figures = []
    for unit in units:
        costs = {name: [turn.costs[unit] for turn in taken] for name, taken in turns.items()}
        for name, taken in costs.items():
            target = (targets or {}).get((name, unit))
            if name == "hapax" and fault:
                figures.append(Figure(work, name, unit, None, target=target, note=fault))
                continue
            ratio = None
            if name != "hapax" and not fault:
                # At least a microsecond, as processor time has steps.
                pairs = zip(costs["hapax"], taken, strict=True)
                ratio = statistics.median(ours / max(theirs, 1e-6) for ours, theirs in pairs)
            figures.append(median_of(work, name, unit, taken, target=target, ratio=ratio))
    return figures


def median_of(
    work: str, by: str, unit: str, taken: Sequence[float], *, target: float | None = None, ratio: float | None = None
) -> Figure:
    """The figure of what the turns took."""
    return Figure(work, by, unit, statistics.median(taken), min(taken), max(taken), ratio, target)


_NOTED = """
import atexit, sys
def note():
    peak = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
    print(peak, file=open(sys.argv.pop(), "w"))
atexit.register(note)
"""
COMMAND = "from hapax import cli; cli.main(sys.argv[1:-1])"


def process_cost(words: Sequence[str | Path], code: str = COMMAND) -> Turn:
    """Processor seconds and peak MB of a Hapax command, or of other code with these arguments, in its own process.

    Raises RuntimeError with the end of its messages if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note"
        command = [sys.executable, "-c", f"{_NOTED}{code}", *map(str, words), str(note)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: exit code {ended.returncode}\n{ended.stderr[-2000:]}")
        peak_kb = int(note.read_text("ascii"))
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Turn({"s": seconds, "MB": peak_kb / 1024})


def show(figures: Iterable[Figure]) -> None:
    """Print the figures as a table, those of a work below its name."""
    row = "  {:20}{:>9} {:21}{:20}{:>7}{:>8}".format
    print(row("by", "figure", "unit", "spread", "ratio", "target").rstrip())
    before = ""
    for figure in figures:
        if figure.work != before:
            print(figure.work)
        before = figure.work
        spread = "" if figure.lowest == figure.highest else f"{shown(figure.lowest)} to {shown(figure.highest)}"
        numbers = row(figure.by, shown(figure.value), figure.unit, spread, shown(figure.ratio), shown(figure.target))
        print(f"{numbers.rstrip()} {figure.note}".rstrip())


def shown(number: float | None) -> str:
    """A number with three digits; empty for None."""
    if number is None:
        return ""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def machine() -> dict[str, Any]:
    """Description of the machine, its load, and the software versions."""
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "hapax": version("hapax-kb")}
    for name in PEERS:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[1], 1),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "versions": versions,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def write_figures(path: Path, size: Size, figures: Iterable[Figure]) -> None:
    """Write the figures and the machine as JSON."""
    found = {
        "size": size.name,
        "turns": size.turns,
        "machine": machine(),
        "figures": [vars(figure) for figure in figures],
    }
    path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
