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


MOST_OF_PROLOG = 10_000
"""Answers of a goal that only Prolog can answer, unless a limit says otherwise."""


@checked
@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of a goal. `answers` truncates the answers; each of the others ends the goal with `LimitExceeded`.

    Without `answers` all are given, but of those that Prolog finds, which may have no end, MOST_OF_PROLOG.
    """

    seconds: Annotated[float, Option("Limit of processor time of a goal.", above=0, most=MOST_SECONDS)] = 10.0
    # Far above what a goal takes.
    inferences: Annotated[int, Option("Inference limit of a goal.", least=1, most=10**15)] = 50_000_000
    answers: Annotated[
        int | None, Option("Limit of answers; default: 10000, or all in a file.", short="--limit", least=1)
    ] = None
    memory_mb: Annotated[int, Option("Memory limit of a goal, in MB.", name="memory", least=64, most=10**6)] = 1024

    def __post_init__(self) -> None:
        for name in ("seconds", "inferences", "memory_mb", *(() if self.answers is None else ("answers",))):
            limit = getattr(self, name)
            if not (isinstance(limit, int | float) and 0 < limit < math.inf):
                raise HapaxError(f"{name} is {limit!r}. Set it to a number above 0.")
