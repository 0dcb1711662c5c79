"""Start-up time of each command, compared with an interpreter that does nothing, and the libraries it imports.

    python -m benchmarks.startup -o startup.json
    python -m benchmarks.startup --turns 1

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.common import machine, write_figures
from hapax import cli
from hapax.kb.store import KnowledgeBase

ROOT = Path(cli.__file__).resolve().parent
LIBRARIES = (
    "httpx2", "inflect", "jinja2", "lark", "matplotlib", "networkx", "numpy", "pandas", "pyarrow", "pyswip", "rich",
    "scipy", "sqlite_utils", "tokenizers", "torch", "transformers", "yaml",
)  # fmt: skip
"""Libraries to look for among the imported modules."""

RULE = """given eats(Person, Food)
oracle is_in(Food, Dish)
eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)
"""

IMPORTED = """
import atexit, json, pathlib, sys
def tell():
    pathlib.Path({listing!r}).write_text(json.dumps([name for name in {libraries} if name in sys.modules]))
atexit.register(tell)
from hapax import cli
cli.main(sys.argv[1:])
"""


@dataclass(frozen=True)
class Start:
    """A command with the medians of its processor time and of the ratio to the bare interpreter in the same turn."""

    command: str
    seconds: float
    ratio: float
    imports: Sequence[str]


def leaves(group: click.Group, names: Sequence[str] = ()) -> Iterator[list[str]]:
    """All commands below a group, and the groups themselves, as lists of words."""
    yield list(names)
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*names, name))
        else:
            yield [*names, name]


def real_runs(folder: Path) -> Iterator[list[str]]:
    """Minimal runs of the most used commands, on one rule and one fact."""
    rules, database = folder / "one.rules", folder / "one.db"
    rules.write_text(RULE, "utf-8")
    (folder / "facts.jsonl").write_text('{"predicate": "is_in", "arguments": ["rice", "risotto"]}\n', "utf-8")
    with KnowledgeBase(database):
        pass
    atom = 'is_in("rice", "risotto")'
    yield ["check", str(rules)]
    yield ["compile", str(rules)]
    yield ["import", str(folder / "facts.jsonl"), "--db", str(database)]
    yield ["stats", "--db", str(database)]
    yield ["query", "is_in(rice, Dish)", "--rules", str(rules), "--db", str(database)]
    yield ["why", atom, "--rules", str(rules), "--db", str(database)]


def measure(words: Sequence[str], turns: int, folder: Path) -> Start:
    """Time a command and an interpreter that does nothing, in turns. Raises SystemExit if the command fails."""
    command = [sys.executable, str(ROOT / "cli.py"), *words]
    pairs = [(processor([sys.executable, "-c", "pass"]), processor(command)) for _ in range(turns)]
    return Start(
        " ".join(word.replace(f"{folder}/", "") for word in words),
        statistics.median(taken for _, taken in pairs),
        statistics.median(taken / bare for bare, taken in pairs),
        imported(words, folder),
    )


def processor(command: Sequence[str]) -> float:
    """Processor seconds of a process and its children. Raises SystemExit if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imported(words: Sequence[str], folder: Path) -> list[str]:
    """The `LIBRARIES` that the command's own process imports."""
    listing = folder / "imported"
    code = IMPORTED.format(libraries=LIBRARIES, listing=str(listing))
    subprocess.run([sys.executable, "-c", code, *words], check=False, capture_output=True, cwd=ROOT)
    names: list[str] = json.loads(listing.read_text("utf-8"))
    return names


def figures(turns: int, only: Sequence[str]) -> Mapping[str, Any]:
    """Measure all commands (or those that begin with a word of `only`), printing each result as soon as it is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = [*([*words, "--help"] for words in leaves(cli.main)), *real_runs(folder)]
        measured = []
        for words in wanted:
            if not only or words[0] in only:
                measured.append(measure(words, turns, folder))
                print(line(measured[-1]), flush=True)
    return {"machine": machine(), "turns": turns, "measured": [asdict(start) for start in measured]}


def line(start: Start) -> str:
    """A row of the table."""
    return f"{start.seconds:7.3f} s {start.ratio:6.1f}  {start.command}  [{', '.join(start.imports)}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; write with -o. Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5, help="of each command and the bare interpreter")
    parser.add_argument("--only", action="append", default=[], help="commands of this first word; may be repeated")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for all of it")
    options = parser.parse_args(arguments)
    write_figures(options.output, figures(options.turns, options.only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
