"""Measure scorers, opened by name, on the pairs of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from hapax.evaluation.entailment.datasets import read_splits, skipped_note
from hapax.evaluation.entailment.metrics import refuse_one_label
from hapax.evaluation.entailment.opening import ScorerOptions, ScorerSession, leak_warning
from hapax.evaluation.entailment.report import Measuring, SubsetResult, measure
from hapax.evaluation.entailment.scorers import VisibleSides
from hapax.grammar.arguments import checked


@checked
@dataclass(frozen=True)
class EntailmentOptions(ScorerOptions):
    """Scorers by name, their options, and how they are measured.

    `sides`: the sides of a pair that they see. `twin`: hypotheses alone are measured, too. `released`: curves as the
    released code draws them. `skip_faulty`: faulty lines are left out instead of refusing their file.
    """

    scorers: tuple[str, ...] = ("critic",)
    sides: Literal["both", "hypothesis", "premise"] = "both"
    twin: bool = True
    released: bool = False
    skip_faulty: bool = False


def measure_files(
    session: ScorerSession, paths: Sequence[Path], options: EntailmentOptions, seed: int
) -> tuple[list[SubsetResult], list[str]]:
    """The results of each scorer on each subset of the pairs of these files, and notes on their lines and leaks."""
    skipped: list[str] = []
    splits = read_splits(paths, skipped if options.skip_faulty else None)
    pairs = list(chain.from_iterable(splits.values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    how = Measuring(VisibleSides(options.sides), options.twin, options.released, seed)
    results = list(measure(scorers, pairs, how))
    return results, [*skipped_note(skipped), *([warning] if warning else [])]
