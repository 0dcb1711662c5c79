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
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402

from tools.simulate.running import Simulation  # noqa: E402

HASH_SEEDS = 4
"""A seed runs under the hash seed that is its remainder, and is compared with a run under another."""


def main() -> int:
    """Run the command line; the exit code is 1 if a seed fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="1-200", help="a seed, or FIRST-LAST (default: %(default)s)")
    parser.add_argument("--scenario", help="only this one")
    parser.add_argument("--hash-seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--planted", help="plant this bug of tests/unit/kb/planted_bugs.py")
    parser.add_argument("--trace", action="store_true", help="print each seed's time on the simulated clock and faults")
    parser.add_argument("--until-failure", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if options.hash_seed is None:
        with ThreadPoolExecutor(options.processes) as pool:
            return max(pool.map(_run_under, sorted({seed % HASH_SEEDS for seed in seeds})))
    repeated = f" --scenario '{options.scenario}'" if options.scenario else ""
    if options.planted:
        repeated += f" --planted {options.planted}"
        sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "unit" / "kb"))
        import_module("planted_bugs").PLANTED[options.planted]()
    simulation, failed = Simulation(options.scenario), 0
    chosen = [seed for seed in seeds if seed % HASH_SEEDS == options.hash_seed]
    for seed in chosen:
        failures = simulation.run(seed)
        failed += bool(failures)
        for failure in failures:
            print(f"python -m tools.simulate --seeds {seed}{repeated}  # {failure}", flush=True)
        if options.trace:
            print(f"seed {seed}: {simulation.trace}", flush=True)
        if failures and options.until_failure:
            break
    print(f"{len(chosen)} seeds, {failed} failed", file=sys.stderr)
    return 1 if failed else 0


def _run_under(hash_seed: int) -> int:
    """Run this command in a process of its own, for the seeds of a hash seed; returns its exit code."""
    command = [sys.executable, "-m", "tools.simulate", *sys.argv[1:], "--hash-seed", str(hash_seed)]
    return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": str(hash_seed)}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
