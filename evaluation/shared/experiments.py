"""Experiments: runs whose statements exist for comparison with those of full searches."""

from __future__ import annotations

from collections.abc import Sequence

from hapax.grammar.errors import HapaxError
from hapax.kb.records import RunRecord
from hapax.kb.store import KnowledgeBase

INSTRUCT = "evaluate instruct"
"""Command of runs by instruction only."""

RUNS_LISTED = 5
"""Runs that an error message lists."""


def skipped_runs(kb: KnowledgeBase, wanted: Sequence[str]) -> set[str]:
    """Ids of the runs to leave out: all but the wanted ones, by the beginnings of their ids; if none is wanted, all
    experiments.

    Raises HapaxError if a beginning matches no run.
    """
    runs = kb.runs()
    for beginning in wanted:
        if not any(run.id.startswith(beginning) for run in runs):
            latest = ", ".join(f"{run.id[:8]} ({run.command})" for run in runs[-RUNS_LISTED:])
            raise HapaxError(
                f"{kb.place}: no run whose id begins with {beginning!r}. The latest runs are: {latest or 'none'}."
            )
    if wanted:
        return {run.id for run in runs if not run.id.startswith(tuple(wanted))}
    return {run.id for run in runs if _is_experiment(run)}


def _is_experiment(run: RunRecord) -> bool:
    """True for a run without a gate, or by instruction only."""
    # Imports, and runs of older versions, lack these settings.
    ungated = run.settings.get("critic") is False or run.settings.get("likelihood", "model") != "model"
    return ungated or run.command == INSTRUCT
