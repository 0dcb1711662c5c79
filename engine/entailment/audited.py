"""Margin of directions from the last audit of entailments, kept as a run of the knowledge base."""

from __future__ import annotations

from hapax.kb.records import RUNS, RunRecord, content_id
from hapax.kb.store import KnowledgeBase

COMMAND = "evaluate entailment consistency"

NEVER = 1.0
"""Margin where no lead makes a direction sure: only an entailment without any way back counts as directed."""


def keep_margin(kb: KnowledgeBase, scorer: str, margin: float | None) -> None:
    """Store the lead from which on directions count; None: the audit found none."""
    settings = {"scorer": scorer}
    run = RunRecord.now(content_id(COMMAND, settings), COMMAND, settings)
    kb.add(RUNS, [run])
    kb.finish_run(run.id, summary={"margin": margin})


def audited_margin(kb: KnowledgeBase) -> float | None:
    """The margin of the last audit; None without one."""
    audits = [run for run in kb.runs() if run.command == COMMAND and run.finished]
    if not audits:
        return None
    # Times in ISO notation sort as texts.
    audits.sort(key=lambda run: str(run.finished))
    margin = audits[-1].summary.get("margin")
    return NEVER if margin is None else float(margin)
