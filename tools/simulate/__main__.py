"""Simulate Hapax under faults that a seed draws: `python -m tools.simulate --seeds 1-200`.

Each seed takes a scenario and up to three runs with deaths and errors, then one without, and compares what is left with
a run that nothing disturbed. A seed that fails is printed as the command that repeats it.
"""

from __future__ import annotations

from tools.simulate import scheduling

scheduling.install()  # before Hapax is imported

import argparse  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402

from tools.simulate.running import Simulation, Totals  # noqa: E402

HASH_SEEDS = 4
"""A seed runs under the hash seed that is its remainder, and is compared with a run under another."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 1 if a seed fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="1-200", help="a seed, or FIRST-LAST (default: %(default)s)")
    parser.add_argument("--scenario", help="only this one")
    parser.add_argument("--hash-seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--planted", help="plant this bug of tests/unit/kb/planted_bugs.py")
    parser.add_argument("--trace", action="store_true", help="print each seed's time on the simulated clock and faults")
    parser.add_argument("--until-failure", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if options.hash_seed is None:
        return _spread(options, seeds)
    if options.planted:
        sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "unit" / "kb"))
        import_module("planted_bugs").PLANTED[options.planted]()
    totals = Totals()
    simulation = Simulation(options.scenario)
    for seed in seeds:
        if seed % HASH_SEEDS != options.hash_seed:
            continue
        began = time.process_time()
        failures = simulation.run(seed, totals)
        totals.seconds += time.process_time() - began
        for failure in failures:
            print(f"python -m tools.simulate --seeds {seed}{_chosen(options)}  # {failure}", flush=True)
        totals.failed += bool(failures)
        if options.trace:
            print(f"seed {seed}: {simulation.trace}", flush=True)
        if failures and options.until_failure:
            break
    print(totals, file=sys.stderr)
    return 1 if totals.failed else 0


def _chosen(options: argparse.Namespace) -> str:
    """The options that a seed needs to be repeated."""
    scenario = f" --scenario '{options.scenario}'" if options.scenario else ""
    return scenario + (f" --planted {options.planted}" if options.planted else "")


def _spread(options: argparse.Namespace, seeds: range) -> int:
    """Run the seeds in a process for each hash seed, so many at a time."""
    waiting = sorted({seed % HASH_SEEDS for seed in seeds})
    running: list[subprocess.Popen[bytes]] = []
    codes: list[int] = []
    while waiting or running:
        while waiting and len(running) < options.processes:
            number = waiting.pop(0)
            command = [sys.executable, "-m", "tools.simulate", "--seeds", f"{seeds[0]}-{seeds[-1]}"]
            command += ["--hash-seed", str(number)]
            for name in ("scenario", "planted"):
                if value := getattr(options, name):
                    command += [f"--{name}", value]
            command += [f"--{name.replace('_', '-')}" for name in ("trace", "until_failure") if getattr(options, name)]
            running.append(subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": str(number)}))
        codes.append(running.pop(0).wait())
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
