"""Hapax on a simulated clock, disk and scheduler: seeds of `tools.simulate`, and bugs that they find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from planted_bugs import PLANTED

ROOT = Path(__file__).parents[3]

FOUND_BY = {
    "commit_without_sync": ("search", "1-24"),
    "answer_used_before_it_is_stored": ("search", "61-84"),
    "asking_without_a_lock": ("two searches", "1-24"),
    "newest_answer_overlooked": ("search", "129-153"),
    "renamed_without_sync": ("export", "1-24"),
}
"""The scenario and the seeds that find each planted bug."""


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.simulate", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.simulation
@pytest.mark.timeout(3600)
def test_two_hundred_seeds_end_as_if_nothing_had_happened() -> None:
    """Kills, power cuts and disk errors change no content, lose no answer and ask nothing twice."""
    ended = simulate("--seeds", "1-200")

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_seed_repeats_exactly() -> None:
    """A seed fails in nothing, and injects the same faults at the same crossings, whichever seeds ran before it."""
    first, again = (simulate("--seeds", seeds, "--hash-seed", "1", "--trace") for seeds in ("5", "1-5"))

    assert again.returncode == 0, again.stdout + again.stderr
    trace = [line for line in first.stdout.splitlines() if line.startswith("seed 5:")]
    assert trace
    assert trace == [line for line in again.stdout.splitlines() if line.startswith("seed 5:")]


@pytest.mark.simulation
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FOUND_BY)
def test_a_planted_bug_is_found(name: str) -> None:
    """A seed fails when the bug is planted, and says how to repeat it."""
    scenario, seeds = FOUND_BY[name]
    ended = simulate("--seeds", seeds, "--scenario", scenario, "--planted", name, "--until-failure")

    assert ended.returncode == 1, ended.stderr
    assert "python -m tools.simulate --seeds" in ended.stdout


def test_the_planted_bugs_are_listed() -> None:
    """Each entry of the table above is a bug that can be planted."""
    assert set(FOUND_BY) == set(PLANTED)
