"""Kill real processes at random moments: `python -m tools.kills --count 60 --seed 1`.

Each trial starts a command, sends it SIGKILL at a moment drawn from the time that it takes undisturbed, sometimes
kills the next attempt as well, and then plays it to its end. Afterwards nothing that the file kept may have been asked
again, no more than one batch may have been lost at a death, the content must be that of an undisturbed run, `verify`
must find no damage, and no hidden folder may be left. The exit code is 1 if a trial fails.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import hapax
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import PREFIX

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fault_harness import (  # type: ignore[import-not-found]  # a folder that mypy does not search from here
    SEARCH,
    Command,
    Stage,
    Warm,
    is_same,
    journal,
    lost,
    with_rules,
)

RULES = """
given makes(Person, Part): "[1] makes [2]" / "[1] does not make [2]" / "?".
given is_in(Part, Machine): "[1] is in [2]" / "[1] is not in [2]" / "?".
@name mend
@generic X
makes(Person X, Part A) & is_in(Part A, Machine B) -> can_mend(Person X, Machine B).
"""
FACTS = 4000

AGAIN = 0.3
"""Share of trials in which the attempt after the first death is killed, too."""


@dataclass
class Tally:
    """Counts by command: deaths, attempts that ended before their death, and requests lost in flight."""

    deaths: Counter[str] = field(default_factory=Counter)
    survived: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def give_facts(folder: Path, name: str = "kb.db", first: int = 0) -> None:
    """A knowledge base of given facts, and the rules that join them."""
    (folder / "mend.rules").write_text(RULES, "utf-8")
    library = hapax.parse_rules(RULES)
    with KnowledgeBase(folder / name) as kb:
        numbers = range(first, first + FACTS)
        hapax.add_facts(kb, "makes", [(f"person {i % 97}", f"part {i}") for i in numbers], library)
        hapax.add_facts(kb, "is_in", [(f"part {i}", f"machine {i % 89}") for i in numbers], library)


def prepare_merge(folder: Path) -> None:
    """Two knowledge bases of different facts."""
    give_facts(folder)
    give_facts(folder, "other.db", FACTS // 2)


def prepare_import(folder: Path) -> None:
    """A table of facts."""
    give_facts(folder)
    lines = [f"makes,someone {i % 31},gear {i}" for i in range(5 * FACTS)]
    (folder / "facts.csv").write_text("\n".join(["predicate,argument1,argument2", *lines, ""]), "utf-8")


def stages(warm: Warm, folder: Path) -> dict[str, Stage]:
    """The commands by name, each with what it begins with."""
    search = Stage(warm, SEARCH, folder / "search", with_rules)
    _, ended = search.played("given")
    if ended.code:
        raise RuntimeError(ended.stderr)

    def prepare_dataset(place: Path) -> None:
        shutil.copy(search.database("given"), place / "kb.db")

    dataset = ("dataset", "out", "--db", "kb.db", "--format", "jsonl", "--in-both", "keep")
    return {
        "search": search,
        "derive": Stage(warm, ("derive", "mend.rules", "--db", "kb.db"), folder / "derive", give_facts),
        "import": Stage(warm, ("import", "facts.csv", "--db", "kb.db"), folder / "import", prepare_import),
        "merge": Stage(warm, ("merge", "other.db", "--db", "kb.db"), folder / "merge", prepare_merge),
        "dataset": Stage(warm, dataset, folder / "dataset", prepare_dataset),
    }


def kill(stage: Stage, place: str, name: str, seconds: float) -> tuple[Command, bool]:
    """Start the command and kill it after so long; False if it had ended by then."""
    command = stage.warm.start(stage.command(place, name))
    time.sleep(seconds)
    os.kill(command.pid, signal.SIGKILL)  # the harness has not waited for it, so the number is still its own
    return command, stage.warm.wait(command).code == -signal.SIGKILL


def trial(name: str, stage: Stage, number: int, seconds: float, tally: Tally) -> Iterator[str]:
    """One or two deaths, and the run that goes on; yields what went wrong."""
    stream = random.Random(f"{name} {number}")  # noqa: S311  no secret
    place = f"trial-{number}"
    attempts: list[Command] = []
    known: set[str] = set()
    for attempt in range(1 + (stream.random() < AGAIN)):
        command, was_killed = kill(stage, place, f"killed-{attempt}", stream.uniform(0.0, seconds))
        tally.deaths[name] += was_killed
        tally.survived[name] += not was_killed
        if known.intersection(command.asked()):
            yield "it asked again for what was kept"
        gone = lost(command, stage.database(place))
        tally.lost[name] += len(gone)
        attempts.append(command)
        known = journal(stage.database(place))
    resumed, ended = stage.played(place, "resumed")
    if ended.code:
        yield f"it ends with {ended.code}: {ended.stderr[-300:]}"
        return
    if known.intersection(resumed.asked()):
        yield "it asked again for what was kept"
    if not is_same(stage.database("whole"), stage.database(place)):
        yield "the file differs from that of an undisturbed run"
    if whole_dataset(stage.folder / "whole") != whole_dataset(stage.folder / place):
        yield "the dataset differs from that of an undisturbed run"
    if left := sorted(path.name for path in (stage.folder / place).glob(f"{PREFIX}*")):
        yield f"left over: {left}"
    with KnowledgeBase(stage.database(place), read_only=True) as kb:
        yield from (f"verify: {damage}" for damage in hapax.verify(kb).damages[:3])


def whole_dataset(folder: Path) -> dict[str, bytes]:
    """The statements of the dataset in a folder."""
    return {path.name: path.read_bytes() for path in sorted((folder / "out").rglob("*.jsonl"))}


def measured(stage: Stage) -> float:
    """Seconds of the undisturbed run, which is played twice, as the first one imports more."""
    seconds = 0.0
    for place in ("first", "whole"):
        stage.command(place, "whole")
        began = time.monotonic()
        _, ended = stage.played(place)
        seconds = time.monotonic() - began
        if ended.code:
            raise RuntimeError(ended.stderr)
    return seconds


def run(count: int, seed: int, show: Callable[[str], None]) -> Tally:
    """Trials of all commands in turn, until so many processes were killed."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="hapax-kills-") as folder, Warm() as warm:
        played = stages(warm, Path(folder))
        seconds = {name: measured(stage) for name, stage in played.items()}
        number = 1000 * seed
        while tally.deaths.total() < count:
            for name, stage in played.items():
                for failure in trial(name, stage, number, seconds[name], tally):
                    tally.failures.append(f"{name}, trial {number}: {failure}")
                    show(tally.failures[-1])
                shutil.rmtree(stage.folder / f"trial-{number}", ignore_errors=True)
            number += 1
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="processes to kill (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    options = parser.parse_args(arguments)
    tally = run(options.count, options.seed, print)
    print(f"{'command':8} {'killed':>7} {'ended first':>12} {'answers lost in flight':>23}")
    for name in tally.deaths | tally.survived:
        print(f"{name:8} {tally.deaths[name]:>7} {tally.survived[name]:>12} {tally.lost[name]:>23}")
    print(f"{tally.deaths.total()} processes killed, {len(tally.failures)} failures")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
