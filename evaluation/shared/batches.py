"""Ask models about many items in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hapax.llm_oracle.budget import BudgetReached, Deferred

Item = TypeVar("Item")


def for_batches(
    items: Sequence[Item],
    size: int,
    ask: Callable[[Sequence[Item]], object],
    finished: Callable[[int], None] | None = None,
) -> BudgetReached | None:
    """Call `ask` with each batch of `size` items, until a budget is reached; return that budget.

    `finished` is called with the number of items done so far.
    """
    stopped: BudgetReached | None = None
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        try:
            ask(batch)
        except BudgetReached as reached:
            # The first reason counts; later batches only add to it.
            stopped = stopped or reached
            # A deferred batch leaves a queue to be filled: the next batches must add their requests to it, too.
            if not isinstance(reached, Deferred):
                break
        if finished is not None:
            finished(start + len(batch))
    return stopped
