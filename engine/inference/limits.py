"""The limits of a goal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option

MOST_SECONDS = 86_400
"""A day."""


@checked
@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of a goal. `answers` truncates the answers; each of the others ends the goal with `LimitExceeded`."""

    seconds: Annotated[float, Option("Limit of processor time of a goal.", above=0, most=MOST_SECONDS)] = 10.0
    # Far above what a goal takes.
    inferences: Annotated[int, Option("Inference limit of a goal.", least=1, most=10**15)] = 50_000_000
    answers: Annotated[int, Option("Limit of printed answers.", short="--limit", least=1)] = 10_000
    memory_mb: Annotated[int, Option("Memory limit of a goal, in MB.", name="memory", least=64, most=10**6)] = 1024

    def __post_init__(self) -> None:
        for name in ("seconds", "inferences", "answers", "memory_mb"):
            limit = getattr(self, name)
            if not (isinstance(limit, int | float) and 0 < limit < math.inf):
                raise HapaxError(f"{name} is {limit!r}. Set it to a number above 0.")
