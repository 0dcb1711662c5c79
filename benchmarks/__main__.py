"""Measure Hapax beside its peers, and print one table.

python -m benchmarks
python -m benchmarks inference questions --size full -o figures.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks import imports, inference, questions, scoring, search, server
from benchmarks.measuring import Figure, Size, show, write_figures

BENCHMARKS = {
    "inference": inference.figures,
    "questions": questions.figures,
    "imports": imports.figures,
    "search": search.figures,
    "scoring": scoring.figures,
    "server": server.figures,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; write with -o."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--size", choices=("tiny", "small", "full"), default="small", help="(default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="of each way; the median counts (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="JSON file of the figures")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(BENCHMARKS)):
        parser.error(f"no such benchmark: {', '.join(unknown)}. There are {', '.join(BENCHMARKS)}.")
    size = Size(options.size, options.turns)
    found: list[Figure] = []
    for name in track(options.names or list(BENCHMARKS), console=Console(stderr=True)):
        found += BENCHMARKS[name](size)
    show(found)
    if options.output is not None:
        write_figures(options.output, size, found)


if __name__ == "__main__":
    main()
