"""Numbers of random cases. `HAPAX_TEST_CASES=10 make test` tries ten times as many as a normal run."""

from __future__ import annotations

import os

_TIMES = float(os.environ.get("HAPAX_TEST_CASES", "1"))


def cases(number: int) -> int:
    """The number of cases of a normal run, multiplied by HAPAX_TEST_CASES."""
    return max(1, round(number * _TIMES))
