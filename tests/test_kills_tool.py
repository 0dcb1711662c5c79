"""Real processes that are killed at random moments, by `tools.kills`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_harness import Warm

from tools.kills import Tally, measured, stages, trial


@pytest.mark.simulation
@pytest.mark.timeout(900)
def test_commands_killed_at_random_moments_go_on(warm: Warm, tmp_path: Path) -> None:
    """Search, derive, import, merge and dataset, killed twice each, end as if nothing had been."""
    tally = Tally()
    for name, stage in stages(warm, tmp_path).items():
        seconds = measured(stage)
        for number in (1, 2):
            assert list(trial(name, stage, number, seconds, tally)) == []

    assert tally.deaths.total() > 5
