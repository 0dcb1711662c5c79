"""Experiments: runs whose statements exist for comparison with those of full searches."""

from __future__ import annotations

from collections.abc import Sequence

from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase

INSTRUCT = "evaluate instruct"
"""Command of runs by instruction only."""

RUNS_LISTED = 5
"""Runs that an error message lists."""


def skipped_runs(kb: KnowledgeBase, beginnings: Sequence[str]) -> set[str]:
    """Ids of the runs to leave out: all whose ids begin with none of `beginnings`; without any, all experiments.

    Raises HapaxError if a beginning matches no run.
    """
    runs = kb.runs()
    for beginning in beginnings:
        if not any(run.id.startswith(beginning) for run in runs):
            latest = ", ".join(f"{run.id[:8]} ({run.command})" for run in runs[-RUNS_LISTED:])
            raise HapaxError(
                f"{kb.place}: no run whose id begins with {beginning!r}. The latest runs are: {latest or 'none'}."
            )
    # Named runs are wanted whatever they are, experiments included.
    if beginnings:
        return {run.id for run in runs if not run.id.startswith(tuple(beginnings))}
    experiments = set()
    for run in runs:
        # Imports lack these settings.
        ungated = run.settings.get("critic") is False or run.settings.get("likelihood", "model") != "model"
        if ungated or run.command == INSTRUCT:
            experiments.add(run.id)
    return experiments
