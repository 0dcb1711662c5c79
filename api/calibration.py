"""Calibration of critics from Python."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hapax.api.evaluations import Evaluation
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named

if TYPE_CHECKING:
    from hapax.evaluation.calibration.run import CalibrationOptions, CalibrationResult
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions


@checked
@extras_named()
def calibrate(
    rules: Library, kb: KnowledgeBase, options: CalibrationOptions | None = None, opening: OpeningOptions | None = None
) -> Evaluation[CalibrationResult]:
    """Learn what a critic's scores are worth from facts with known truth, and store it in the knowledge base.

    `options`: the critic by its string, and the sources of labels. `opening`: options of opening models; its journal,
    if any, has the budget. Needs the extra `calibration`.
    """
    from hapax.evaluation.calibration.run import CalibrationOptions, Calibrator
    from hapax.llm_oracle.backend import OpeningOptions

    # A simulated model makes its world from the rules.
    opening = replace(opening or OpeningOptions(), library=rules)
    measured = Calibrator(kb, rules, options or CalibrationOptions(), opening).run()
    return Evaluation(measured, measured.to_result())
