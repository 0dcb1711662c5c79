"""Measure scorers, opened by name, on the pairs of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from hapax.evaluation.entailment.datasets import read_splits
from hapax.evaluation.entailment.metrics import refuse_one_label
from hapax.evaluation.entailment.opening import ScorerOptions, ScorerSession, leak_warning
from hapax.evaluation.entailment.report import SubsetResult, measure
from hapax.evaluation.entailment.scorers import VisibleSides
from hapax.grammar.arguments import checked
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions


@checked
@dataclass(frozen=True)
class EntailmentOptions(ScorerOptions):
    """Scorers by name, their options, and the sides of a pair that they see; both: also hypotheses alone."""

    scorers: tuple[str, ...] = ("critic",)
    sides: Literal["both", "hypothesis", "premise"] = "both"


def measure_files(
    kb: KnowledgeBase, paths: Sequence[Path], options: EntailmentOptions, opening: OpeningOptions
) -> tuple[list[SubsetResult], list[str]]:
    """The results of each scorer on each subset of the pairs of these files, and notes on the training pairs."""
    pairs = list(chain.from_iterable(read_splits(paths).values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    session = ScorerSession(kb, options, opening)
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    results = list(measure(scorers, pairs, VisibleSides(options.sides), opening.seed))
    return results, [warning] if warning else []
