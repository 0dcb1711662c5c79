"""Scorers measured on every subset of the pairs of files, and draws of a fine-tuning selected on dev (section 3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from hapax.evaluation.entailment.datasets import (
    HYPOTHESIS_ONLY,
    SubGroup,
    pair_and_converse,
    pairing_name,
    read_splits,
    subsets,
)
from hapax.evaluation.entailment.metrics import (
    BestThreshold,
    Curve,
    TwinFigure,
    area_above,
    area_of_release,
    best_f1,
    compare,
    concordance,
    curve,
    half_of_release,
    normalised_area,
    refuse_one_label,
    released_area,
)
from hapax.evaluation.entailment.pairs import EntailmentPair, VisibleSides, read_pairs
from hapax.evaluation.entailment.scorers import (
    SCORERS,
    EntailmentScorer,
    ScorerOptions,
    ScorerSession,
    file_scores,
    leak_warning,
)
from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.result_tables import (
    COLOURS,
    Evaluation,
    ExperimentResult,
    ResultTable,
    file_name,
    single,
    write_figure,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.kb.files.unfinished import replace_file
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, DeferralCollector

DIRECTIONAL = pairing_name((SubGroup.DIR_TRUE, SubGroup.DIR_FALSE))


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """The figures of a scorer on a subset, each of whole pairs, of hypotheses alone, and their gap.

    `rel` is AUCREL, `norm` AUCnorm of Eq. 1, `order` the concordance. `released`: `rel` and `area` are taken on the
    released code's curve.
    """

    scorer: str
    subset: str
    sees: VisibleSides | None
    pairs: int
    curve: Curve
    twin_curve: Curve | None
    rel: TwinFigure
    norm: TwinFigure
    order: TwinFigure
    released: bool = False

    @property
    def area(self) -> float:
        """AUC50; on the released code's curve its AUCHALF."""
        return half_of_release(self.curve) if self.released else area_above(self.curve)

    @property
    def threshold(self) -> BestThreshold:
        return best_f1(self.curve)

    @property
    def finding(self) -> str:
        """The conclusion at 95 %, by concordance: a key of `FINDINGS`, or empty if there is nothing to compare with."""
        whole, alone, gap = self.order.whole, self.order.alone, self.order.gap
        if self.sees is VisibleSides.HYPOTHESIS:
            # Its whole pairs are hypotheses alone already.
            alone = whole
        elif self.twin_curve is None:
            return ""
        # Before all others: a reversed scorer can have a hypothesis-only twin above chance.
        if whole.high < CHANCE:
            return "reversed"
        if alone.low > CHANCE:
            return "artefact and more" if gap.low > 0 else "artefact"
        if whole.low > CHANCE:
            return "entailment" if gap.low > 0 else "undecided"
        return "nothing"


CHANCE = 0.5
"""Concordance of a scorer that knows nothing."""

FINDINGS = {
    "entailment": "above chance, and the premises account for it",
    "artefact": "hypotheses alone are above chance, and premises add nothing beyond chance",
    "artefact and more": "hypotheses alone are above chance, and premises add to that",
    "undecided": "above chance, but the contribution of premises is within chance",
    "reversed": "reliably wrong: false pairs have the higher scores",
    "nothing": f"within chance; on {DIRECTIONAL} this means that the direction is not recognised",
}
"""Explanations of the findings in the last column."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Settings of a measurement. `twin`: of hypotheses alone, too; `released`: on the released code's curve, and
    on its own two pairings, too."""

    sides: VisibleSides = VisibleSides.BOTH
    twin: bool = True
    released: bool = False
    seed: int = 0


def measure(
    scorers: Sequence[EntailmentScorer], pairs: Sequence[EntailmentPair], how: Measuring | None = None
) -> Iterator[SubsetResult]:
    """The results of each scorer on each subset. A scorer that sees one side only has no twin."""
    how = how or Measuring()
    # By line: pairs that differ in case alone, or come twice, may have scores of their own.
    pairs = [pair if pair.place else replace(pair, place=f"pair {number}") for number, pair in enumerate(pairs, 1)]
    lines = {pair.place: line for line, pair in enumerate(pairs)}
    chosen = list(subsets(pairs, how.released))
    deferrals = DeferralCollector()
    for scorer in scorers:
        sees = scorer.sees if how.sides is VisibleSides.BOTH else how.sides
        # The full set is scored once: subsets differ in labels alone.
        with deferrals:
            scores = scorer.scores([how.sides.of(pair) for pair in pairs])
        twins = None
        if how.twin and sees is VisibleSides.BOTH:
            with deferrals:
                twins = scorer.scores([pair.hypothesis_only for pair in pairs])
        # Once a request waits in a queue, nothing is measured, but later scorers add their requests to the queue, too.
        if deferrals.first is not None:
            continue
        for subset, members in chosen:
            truth = [pair.entailed for pair in members]
            clusters = [pair_and_converse(pair) for pair in members]  # a pair and its converse are not independent
            score_lists = [
                [scored[lines[pair.place]] for pair in members] for scored in (scores, twins) if scored is not None
            ]
            yield subset_result((scorer.name, subset, sees), truth, score_lists, clusters, how)
    deferrals.raise_first()


def subset_result(
    names: tuple[str, str, VisibleSides | None],
    truth: Sequence[bool],
    score_lists: Sequence[Sequence[float]],
    clusters: Sequence[Hashable],
    how: Measuring,
) -> SubsetResult:
    """The figures of the scores of whole pairs and, if given, of hypotheses alone.

    `names`: scorer, subset, and the sides of a pair that it sees.
    """
    # Names of the fields of `SubsetResult` that `compared` fills.
    figures = {
        "rel": area_of_release if how.released else released_area,
        "norm": normalised_area,
        "order": concordance,
    }
    curves = [curve(truth, scores) for scores in score_lists]
    twin_curve = curves[1] if len(curves) > 1 else None
    compared = compare(truth, score_lists, figures, clusters, how.seed)
    rel, norm, order = (compared[name] for name in figures)
    return SubsetResult(*names, len(truth), curves[0], twin_curve, rel, norm, order, how.released)


FIGURE_COLUMNS = ("true", "AUC50", "F1", "AUCnorm", "AUCREL")


def experiment_result(results: Sequence[SubsetResult], remarks: Sequence[str] = ()) -> ExperimentResult:
    """The results as two tables for each scorer, all figures, and as notes the remarks and the findings explained."""
    tables, figures = [], []
    for scorer in dict.fromkeys(result.scorer for result in results):
        rows, twins = [], []
        for result in results:
            if result.scorer == scorer:
                rows.append((result.subset, result.pairs, *figure_cells(result)))
                if result.finding:
                    gap = _with_interval(result.rel.gap)
                    twins.append((result.subset, _with_interval(result.rel.alone), gap, result.finding))
        tables.append(ResultTable(scorer, ("subset", "pairs", *FIGURE_COLUMNS), rows))
        # A table of its own: with these columns a row would be wider than a terminal.
        if twins:
            tables.append(ResultTable("", ("subset", f"AUCREL {HYPOTHESIS_ONLY}", "gap", "finding"), twins))
    for result in results:
        # The names of the first version: AUCnorm alone had hypotheses and gap.
        twin_figures = {"hypothesis_only": result.norm.alone, "gap": result.norm.gap, "finding": result.finding}
        figures.append({**main_figures(result), "sees": result.sees, **twin_figures})
    findings = dict.fromkeys(result.finding for result in results if result.finding)
    notes = [*remarks, *(f"{name}: {FINDINGS[name]}" for name in findings)]
    return ExperimentResult(tables, figures, notes=notes)


def figure_cells(result: SubsetResult) -> tuple[str, ...]:
    """The cells of a table under `FIGURE_COLUMNS`."""
    figures = (result.curve.positive, result.area, result.threshold.f1, result.norm.whole.value)
    return (*(f"{figure:z.2f}" for figure in figures), _with_interval(result.rel.whole))


def main_figures(result: SubsetResult) -> dict[str, object]:
    """The figures of a subset for JSON; the comparisons with hypotheses alone are nan without these."""
    return {
        "scorer": result.scorer,
        "subset": result.subset,
        "pairs": result.pairs,
        "true": result.curve.positive,
        "auc50": result.area,
        "auc_rel": result.rel.whole.value,
        "auc_rel_compared": result.rel,
        "f1": result.threshold,
        "auc_norm": result.norm.whole,
        "concordance": result.order,
        "released_curve": result.released,
    }


@checked
@extras_named()
def draw_entailments(evaluation: Evaluation[list[SubsetResult]], folder: str | Path) -> list[Path]:
    """Write the precision-recall curves of each subset (PNG, SVG, CSV, TSV), and return the paths."""
    return write_curves(evaluation.value, Path(folder))


def write_curves(results: Sequence[SubsetResult], folder: Path) -> list[Path]:
    """Write a figure with its CSV for each subset, and each curve as lines of `precision TAB recall TAB theta`."""
    written: list[Path] = []
    for subset in dict.fromkeys(result.subset for result in results):
        members = [result for result in results if result.subset == subset]
        rows: list[tuple[object, ...]] = []
        files = {}
        for name, measured in chain.from_iterable(map(_curves, members)):
            points = list(zip(measured.precision, measured.recall, measured.thresholds, strict=True))
            rows += [(name, *map(float, point)) for point in points]
            files[folder / f"{file_name(name)}-{subset}.tsv"] = "".join(
                "\t".join(map(str, point)) + "\n" for point in points
            )
        table = ResultTable("", ("scorer", "precision", "recall", "theta"), rows)
        written += write_figure(folder / f"curves-{subset}", single((4.4, 3.6), partial(_draw, members)), table)
        for path, text in files.items():
            replace_file(path, text)
        written += files
    return written


def _curves(result: SubsetResult) -> Iterator[tuple[str, Curve]]:
    yield result.scorer, result.curve
    if result.twin_curve is not None:
        yield f"{result.scorer}, {HYPOTHESIS_ONLY}", result.twin_curve


def _draw(results: Sequence[SubsetResult], axes: Any) -> None:
    axes.axhline(results[0].curve.positive, color="0.6", linewidth=0.8, label="share of true pairs")
    for number, result in enumerate(results):
        for name, measured in _curves(result):
            style = "-" if measured is result.curve else ":"
            axes.plot(*measured.points, style, color=COLOURS[number % len(COLOURS)], linewidth=1.2, label=name)
    axes.set(xlabel="recall", ylabel="precision", title=results[0].subset, xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(frameon=False).set_in_layout(False)  # long names must not squeeze the curves


def _with_interval(figure: Estimate) -> str:
    return figure.text(2, 2, empty="")


@checked
@dataclass(frozen=True)
class EntailmentOptions(ScorerOptions):
    """Scorers by name, their options, and how they are measured.

    `sides`: the sides of a pair that they see. `twin`: hypotheses alone are measured, too. `released`: curves as the
    released code draws them.
    """

    scorers: Annotated[tuple[str, ...], Option(f"{SCORERS}; repeat the option to compare scorers.", name="scorer")] = (
        "critic",
    )
    sides: Annotated[
        Literal["both", "hypothesis", "premise"],
        Option("Sides of a pair that a scorer sees.", name="shown"),
    ] = "both"
    twin: bool = True
    released: Annotated[
        bool,
        Option("Take curves as the released code does: precision 1 at recall 0, AUC50 from .51 on.", name="release"),
    ] = False


@checked
@extras_named()
def score_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[SubsetResult]]:
    """Measure scorers on each subset of the pairs, with whole pairs and with hypotheses alone.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    `progress` is called with the sentences done and their number. Raises HapaxError for an unknown scorer, a missing
    option, and pairs that all have one label.
    """
    options = options or EntailmentOptions()
    session = ScorerSession(kb, options, opening, budget, progress)
    splits = read_splits(list(map(Path, paths)))
    pairs = list(chain.from_iterable(splits.values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    # A scorer that is named twice is measured once.
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    how = Measuring(VisibleSides(options.sides), options.twin, options.released, session.seed)
    results = list(measure(scorers, pairs, how))
    return Evaluation(results, experiment_result(results, [warning] if warning else []))


DRAWS = 100
"""Draws of hyperparameters in the paper's protocol."""


@checked
@extras_named()
def select_draw(
    folder: str | Path,
    dev: str | Path,
    test: str | Path,
    *,
    draws: Annotated[int, Option("Draws that must be there.", least=1)] = DRAWS,
) -> dict[str, Any]:
    """Select the draw of hyperparameters with the best AUC50 on dev, and measure it on test, once.

    `folder` has a folder for each draw of a fine-tuning, with its scores in `dev.txt` and `test.txt`, as lines of
    `truth score`. The figures are kept there in `selected.json`, and the same call returns them. Raises HapaxError
    while draws are missing, and for other sets than those of the first call.
    """
    folder, sets = Path(folder), {"dev": _digest(Path(dev)), "test": _digest(Path(test))}
    selected = folder / "selected.json"
    if selected.is_file():
        stored: dict[str, Any] = json.loads(selected.read_text("utf-8"))
        if stored["sets"] != sets:
            raise HapaxError(f"{folder}: its draws were selected and tested on other sets. Train again for these.")
        return stored
    if sets["dev"] == sets["test"]:
        raise HapaxError(f"{test}: the draws are selected on this file. Name a separate test set.")
    finished = sorted(path.parent for path in folder.glob("*/dev.txt"))
    if len(finished) < draws:
        raise HapaxError(
            f"{folder}: {draws - len(finished)} of {draws} draws are missing, and the test comes after the last."
        )
    pairs = read_pairs(Path(dev))
    on_dev = {draw.name: _draw_figures(pairs, draw / "dev.txt") for draw in finished}
    # Of equal draws the first; the test scores of the others are never read.
    best = max(on_dev, key=lambda name: on_dev[name]["auc50"])
    on_test = _draw_figures(read_pairs(Path(test)), folder / best / "test.txt")
    figures = {"sets": sets, "draw": best, "draws": len(finished), "dev": on_dev[best], "test": on_test}
    replace_file(selected, json.dumps(figures, indent=1) + "\n")
    return figures


def _draw_figures(pairs: Sequence[EntailmentPair], path: Path) -> dict[str, float]:
    measured = curve([pair.entailed for pair in pairs], file_scores(pairs, path))
    areas = {"auc50": area_above(measured), "auc_norm": normalised_area(measured), "auc_rel": released_area(measured)}
    return {**areas, "f1": best_f1(measured).f1}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a file of premises and hypotheses.") from None
