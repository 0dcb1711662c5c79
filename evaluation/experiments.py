"""Which runs' statements are Hapax's own, and which are there to be compared with them."""

from __future__ import annotations

from collections.abc import Sequence

from grammar.errors import HapaxError
from kb.records import RunRecord
from kb.store import KnowledgeBase

INSTRUCT = "evaluate instruct"
"""The command of runs by instruction alone."""

RUNS_TOLD = 5
"""How many runs an error names."""


def skipped_runs(kb: KnowledgeBase, wanted: Sequence[str]) -> set[str]:
    """The runs whose statements are not taken: all but those wanted, by how their ids begin; without any, experiments.

    Raises HapaxError for a wanted run that there is not.
    """
    runs = kb.runs()
    for beginning in wanted:
        if not any(run.id.startswith(beginning) for run in runs):
            there = ", ".join(f"{run.id[:8]} ({run.command})" for run in runs[-RUNS_TOLD:])
            raise HapaxError(
                f"{kb.place}: no run whose id begins with {beginning!r}. The latest are: {there or 'none'}."
            )
    if wanted:
        return {run.id for run in runs if not run.id.startswith(tuple(wanted))}
    return {run.id for run in runs if _is_experiment(run)}


def _is_experiment(run: RunRecord) -> bool:
    """Whether the run went without a gate, or by instruction alone: its statements are there to be compared."""
    ungated = run.settings.get("critic") is False or run.settings.get("likelihood", "model") != "model"
    return ungated or run.command == INSTRUCT
