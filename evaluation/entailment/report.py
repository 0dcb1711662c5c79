"""Scorers on every subset, with both sides of a pair and with the hypothesis alone: what is artefact (section 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.drawing import COLOURS, single, write_figure
from evaluation.entailment.datasets import HYPOTHESIS_ONLY, subsets
from evaluation.entailment.groups import SubGroup, pair_and_converse, pairing_name
from evaluation.entailment.metrics import (
    Curve,
    Threshold,
    area_above,
    best_f1,
    curve,
    estimate,
    estimate_gap,
    normalised_area,
    released_area,
)
from evaluation.entailment.pairs import EntailmentPair
from evaluation.entailment.scorers import Scorer, Shown
from evaluation.estimates import NOTHING, Estimate
from llm_oracle.calls import GoingOn

DIRECTIONAL = pairing_name((SubGroup.DIR_TRUE, SubGroup.DIR_FALSE))


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """One scorer on one subset. `twin` is AUCnorm on hypotheses alone, `gap` how much more the premises bring."""

    scorer: str
    subset: str
    sees: Shown | None
    pairs: int
    curve: Curve
    twin_curve: Curve | None
    norm: Estimate
    twin: Estimate
    gap: Estimate

    @property
    def area(self) -> float:
        """AUC50."""
        return area_above(self.curve)

    @property
    def released(self) -> float:
        """AUCREL."""
        return released_area(self.curve)

    @property
    def threshold(self) -> Threshold:
        return best_f1(self.curve)

    @property
    def finding(self) -> str:
        """What the figures say, at 95 %: a key of `FINDINGS`, or empty where there is nothing to compare with."""
        if self.sees is Shown.HYPOTHESIS:
            return "artefact" if self.norm.low > 0 else "nothing"
        if self.twin_curve is None:
            return ""
        if self.twin.low > 0:
            return "artefact and more" if self.gap.low > 0 else "artefact"
        if self.norm.low > 0:
            return "entailment" if self.gap.low > 0 else "undecided"
        return "nothing"


FINDINGS = {
    "entailment": "above chance, and it is the premises that bring it",
    "artefact": "hypotheses alone are above chance, and premises bring no more than chance does",
    "artefact and more": "hypotheses alone are above chance, and premises bring more",
    "undecided": "above chance, but what premises bring is within chance",
    "nothing": f"within chance; on {DIRECTIONAL} that means: no idea of the direction",
}
"""What the words in the last column mean."""


def measure(
    scorers: Sequence[Scorer], pairs: Sequence[EntailmentPair], shown: Shown = Shown.BOTH, seed: int = 0
) -> Iterator[SubsetResult]:
    """Each scorer on each subset, scored once for the full set: subsets differ in labels alone.

    A scorer that sees one side only has no twin.
    """
    chosen = list(subsets(pairs))
    going_on = GoingOn()
    for scorer in scorers:
        sees = scorer.sees if shown is Shown.BOTH else shown
        with going_on:
            found = _by_pair(scorer, [shown.of(pair) for pair in pairs], pairs)
        with going_on:
            twins = _by_pair(scorer, [pair.hypothesis_only for pair in pairs], pairs) if sees is Shown.BOTH else None
        if going_on.first is not None:
            continue
        for subset, some in chosen:
            yield _result((scorer.name, subset, sees), some, found, twins, seed)
    going_on.settle()


def _by_pair(
    scorer: Scorer, shown: Sequence[EntailmentPair], pairs: Sequence[EntailmentPair]
) -> dict[tuple[object, str], float]:
    return {_mark(pair): score for pair, score in zip(pairs, scorer.scores(shown), strict=True)}


def _mark(pair: EntailmentPair) -> tuple[object, str]:
    """Two pairs of one wording and language have one score."""
    return (pair.key, pair.language)


def _result(
    names: tuple[str, str, Shown | None],
    pairs: Sequence[EntailmentPair],
    found: dict[tuple[object, str], float],
    twins: dict[tuple[object, str], float] | None,
    seed: int,
) -> SubsetResult:
    truth = [pair.entailed for pair in pairs]
    clusters = [pair_and_converse(pair) for pair in pairs]
    scores = [found[_mark(pair)] for pair in pairs]
    norm = estimate(truth, scores, normalised_area, clusters, seed)
    if twins is None:
        return SubsetResult(*names, len(pairs), curve(truth, scores), None, norm, NOTHING, NOTHING)
    alone = [twins[_mark(pair)] for pair in pairs]
    return SubsetResult(
        *names,
        len(pairs),
        curve(truth, scores),
        curve(truth, alone),
        norm,
        estimate(truth, alone, normalised_area, clusters, seed),
        estimate_gap(truth, (scores, alone), normalised_area, clusters, seed),
    )


COLUMNS = ("scorer", "subset", "pairs", "true", "AUC50", "AUCREL", "F1", "AUCnorm", HYPOTHESIS_ONLY, "gap", "finding")


def rows(results: Sequence[SubsetResult]) -> Iterator[tuple[str, ...]]:
    """The table's rows under `COLUMNS`."""
    for one in results:
        yield (
            one.scorer,
            one.subset,
            str(one.pairs),
            f"{one.curve.positive:.2f}",
            f"{one.area:.2f}",
            f"{one.released:.2f}",
            f"{one.threshold.f1:.2f}",
            _told(one.norm),
            _told(one.twin),
            _told(one.gap),
            one.finding,
        )


def to_json(results: Sequence[SubsetResult]) -> list[dict[str, Any]]:
    """Every figure; None where there is none."""
    return [
        {
            "scorer": one.scorer,
            "subset": one.subset,
            "sees": one.sees,
            "pairs": one.pairs,
            "true": one.curve.positive,
            "auc50": one.area,
            "auc_rel": one.released,
            "f1": asdict(one.threshold),
            "auc_norm": _plain(one.norm),
            "hypothesis_only": _plain(one.twin),
            "gap": _plain(one.gap),
            "finding": one.finding,
        }
        for one in results
    ]


def write_curves(results: Sequence[SubsetResult], folder: Path) -> list[Path]:
    """A figure for each subset with its CSV, and each curve as lines of `precision TAB recall TAB theta`."""
    written: list[Path] = []
    for subset in dict.fromkeys(one.subset for one in results):
        some = [one for one in results if one.subset == subset]
        drawn = single((4.4, 3.6), partial(_draw, some))
        written += write_figure(folder / f"curves-{subset}", drawn, _table(some))
        for one in some:
            for name, each in _curves(one):
                path = folder / f"{file_name(name)}-{subset}.tsv"
                lines = zip(each.precision, each.recall, each.thresholds, strict=True)
                path.write_text("".join(f"{p!s}\t{r!s}\t{t!s}\n" for p, r, t in lines), "utf-8")
                written.append(path)
    return written


def _curves(one: SubsetResult) -> Iterator[tuple[str, Curve]]:
    yield one.scorer, one.curve
    if one.twin_curve is not None:
        yield f"{one.scorer}, {HYPOTHESIS_ONLY}", one.twin_curve


def _table(results: Sequence[SubsetResult]) -> tuple[tuple[str, ...], list[Sequence[object]]]:
    found: list[Sequence[object]] = [
        (name, float(p), float(r), float(t))
        for one in results
        for name, each in _curves(one)
        for p, r, t in zip(each.precision, each.recall, each.thresholds, strict=True)
    ]
    return ("scorer", "precision", "recall", "theta"), found


def _draw(results: Sequence[SubsetResult], axes: Any) -> None:
    axes.axhline(results[0].curve.positive, color="0.6", linewidth=0.8, label="share of true pairs")
    for number, one in enumerate(results):
        for name, each in _curves(one):
            style = "-" if each is one.curve else ":"
            axes.plot(*each.points, style, color=COLOURS[number % len(COLOURS)], linewidth=1.2, label=name)
    axes.set(xlabel="recall", ylabel="precision", title=results[0].subset, xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(frameon=False).set_in_layout(False)  # long names must not squeeze the curves


def file_name(text: str) -> str:
    """A name as part of a file's."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in text).split())


def _told(one: Estimate) -> str:
    return (
        ""
        if math.isnan(one.value)
        else "{:.2f} ({:.2f} to {:.2f})".format(*(round(part, 2) + 0.0 for part in (one.value, one.low, one.high)))
    )


def _plain(one: Estimate) -> dict[str, float | int | None]:
    return {name: None if isinstance(part, float) and math.isnan(part) else part for name, part in asdict(one).items()}
